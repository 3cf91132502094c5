/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's allocator: what it is told, and what happens when it gives out. */
#include "kernels.h"
#include "support.h"

#include <stdlib.h>

/* Keeps the size of each block in front of it, to check what the builder says it was. */
struct ledger {
    size_t calls, blocks, bytes, most_bytes;
    size_t fails_at; /* the call that gets nothing, counted from 1; 0: none */
    bool fails_after; /* and all calls after it */
    size_t mistakes;
};

union header {
    size_t size;
    max_align_t align;
};

static void *ledger_resize(void *ctx, void *block, size_t old_size, size_t new_size)
{
    struct ledger *l = ctx;
    union header *h = block ? (union header *)block - 1 : NULL;
    l->mistakes += h ? h->size != old_size : old_size != 0;
    if (!new_size) {
        l->mistakes += !h;
        l->blocks--;
        l->bytes -= h ? h->size : 0;
        free(h);
        return NULL;
    }
    l->calls++;
    if (l->calls == l->fails_at || (l->fails_after && l->fails_at && l->calls > l->fails_at))
        return NULL;
    union header *grown = realloc(h, sizeof *h + new_size);
    assert_non_null(grown);
    l->blocks += !block;
    l->bytes += new_size - (block ? grown->size : 0);
    if (l->bytes > l->most_bytes)
        l->most_bytes = l->bytes;
    grown->size = new_size;
    return grown + 1;
}

static ptxgen_status build_and_print(const struct sample *s, struct ledger *l)
{
    ptx_allocator allocator = {ledger_resize, l};
    ptx_module *m = s->build(&allocator);
    if (!m)
        return PTXGEN_ERROR_OUT_OF_MEMORY;
    const char *text = NULL;
    ptxgen_error err;
    ptxgen_status status = ptx_module_text(m, PTX_TEXT_ANNOTATE, &text, NULL, &err);
    ptx_mix_row rows[4];
    ptx_module_kernel_mix(m, 0, rows, 4);
    assert_true((status == PTXGEN_OK) == (text != NULL));
    assert_int_equal(status, ptx_module_status(m, NULL));
    ptx_module_destroy(m);
    return status;
}

static void allocator_gets_everything_back_with_the_right_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        struct ledger l = {0};
        assert_int_equal(build_and_print(&samples[i], &l), PTXGEN_OK);
        assert_int_equal(l.mistakes, 0);
        assert_int_equal(l.blocks, 0);
        assert_int_equal(l.bytes, 0);
        assert_true(l.calls > 20);
    }
}

static void check_failure_at_each_call(const struct sample *s, bool and_after)
{
    struct ledger all = {0};
    build_and_print(s, &all);
    for (size_t n = 1; n <= all.calls; n++) {
        struct ledger l = {.fails_at = n, .fails_after = and_after};
        ptxgen_status status = build_and_print(s, &l);
        /* The two of the mix are not the module's memory: it returns 0 and leaves no error. */
        bool mix = n + 1 >= all.calls;
        if (status != (mix ? PTXGEN_OK : PTXGEN_ERROR_OUT_OF_MEMORY) || l.mistakes || l.blocks ||
            l.bytes)
            fail_msg("%s, allocation %zu of %zu: %s, %zu blocks and %zu bytes left, %zu mistakes",
                     s->name, n, all.calls, ptxgen_status_name(status), l.blocks, l.bytes, l.mistakes);
    }
}

static void failure_of_any_one_allocation_is_out_of_memory_without_a_leak(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++)
        check_failure_at_each_call(&samples[i], false);
}

static void failure_of_all_allocations_from_one_on_is_out_of_memory_without_a_leak(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++)
        check_failure_at_each_call(&samples[i], true);
}

static void an_error_before_memory_gives_out_stays(void **state)
{
    (void)state;
    struct ledger l = {0};
    ptx_allocator allocator = {ledger_resize, &l};
    ptx_target target = {.sm = 80};
    ptx_module *m = ptx_module_create(&target, &allocator);
    ptx_kernel *k = ptx_kernel_begin(m, "1bad");
    l.fails_at = l.calls + 1;
    l.fails_after = true;
    ptx_kernel_end(k);
    k = ptx_kernel_begin(m, "next");
    ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_kernel_end(k);
    assert_int_equal(ptx_module_status(m, NULL), PTXGEN_ERROR_STRUCTURE);
    ptx_module_destroy(m);
    assert_int_equal(l.blocks, 0);
    assert_int_equal(l.mistakes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(allocator_gets_everything_back_with_the_right_sizes),
        TEST(failure_of_any_one_allocation_is_out_of_memory_without_a_leak),
        TEST(failure_of_all_allocations_from_one_on_is_out_of_memory_without_a_leak),
        TEST(an_error_before_memory_gives_out_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
