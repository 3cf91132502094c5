/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a launch of any family's product refuses before anything runs, with which sentence, and what
 * it says that it needs.
 */
#include "tests/launch_subjects.h"

static struct emulated emulated;

static int setup(void **state)
{
    (void)state;
    open_emulated(&emulated);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close_emulated(&emulated);
    return 0;
}

/* Where an array is not aligned, more of it may be needed. */
static void give_room(struct bench *p)
{
    if (p->of->workspace_align)
        args_set(&p->args, p->of->harness->workspace_bytes, 1 << 30);
}

/* Calls `check` with each subject, loaded. */
static void with_subjects(void (*check)(struct bench *p))
{
    for (int i = 0; i < SUBJECTS; i++) {
        struct bench p;
        bench_load(&p, &subjects[i], &emulated.driver);
        check(&p);
        bench_free(&p);
    }
}

#define TEST_OF_SUBJECTS(name)                                                                     \
    static void check_##name(struct bench *p);                                                     \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        with_subjects(check_##name);                                                               \
    }                                                                                              \
    static void check_##name(struct bench *p)

TEST_OF_SUBJECTS(no_tokens_launch_nothing_and_need_nothing)
{
    memset(&p->args, 0, sizeof p->args);
    assert_launches(&p->launched, "no tokens");
    assert_int_equal(workspace_of(p), 0);
    assert_null(p->of->harness->verbs->attributes(p->kernel, 0));
    assert_int_equal(emulated.driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
}

TEST_OF_SUBJECTS(more_tokens_than_planned_are_refused)
{
    const uint64_t too_many[] = {(uint64_t)p->of->most_m + 1, (UINT64_C(1) << 32) + 1};
    const struct harness *h = p->of->harness;
    const ptxgen_status status =
        h->product(p->plan).n ? PTXGEN_ERROR_INVALID_ARGUMENT : PTXGEN_ERROR_UNSUPPORTED;
    assert_non_null(h->verbs->attributes(p->kernel, (uint64_t)p->of->most_m));
    for (int i = 0; i < 2; i++) {
        uint64_t bytes;
        ptxgen_error err = {0};
        args_set(&p->args, h->m, too_many[i]);
        assert_launch_refused(
            &p->launched, status,
            h == &w8a8_harness
                ? "%s: m = %llu is outside the 0 to %d tokens that the plan serves (0: any)"
            : h == &quantise_harness ? "%s: m = %llu is above %d, the most CTAs of a grid"
            : h == &gguf_rows_harness
                ? "%s: m = %llu is above %d, the most rows of K = 256 in a launch"
                : "%s: m = %llu is above the %d tokens that the plan serves",
            p->launched.family, (unsigned long long)too_many[i], p->of->most_m);
        assert_int_equal(h->verbs->workspace_bytes(p->kernel, &p->args, &bytes, &err), status);
        assert_null(h->verbs->attributes(p->kernel, too_many[i]));
    }
}

TEST_OF_SUBJECTS(null_and_misaligned_addresses_are_refused_by_name)
{
    const struct launched *l = &p->launched;
    give_room(p);
    for (unsigned i = 0; i < l->count; i++) {
        const struct array *a = &l->arrays[i];
        uint64_t *address = word_at(l, a->address), kept = *address;
        *address = 0;
        assert_launch_refused(l, PTXGEN_ERROR_INVALID_ARGUMENT, "%s: %s is null", l->family,
                              a->name);
        *address = kept + a->align / 2;
        if (a->align > 1)
            assert_launch_refused(l, PTXGEN_ERROR_INVALID_ARGUMENT,
                                  "%s: %s at 0x%llx is not a multiple of %u bytes", l->family,
                                  a->name, (unsigned long long)*address, a->align);
        *address = kept;
    }
}

TEST_OF_SUBJECTS(strides_below_a_row_are_refused)
{
    const struct launched *l = &p->launched;
    give_room(p);
    for (unsigned i = 0; i < l->count; i++) {
        const struct array *a = &l->arrays[i];
        if (!a->stride)
            continue;
        uint64_t *stride = word_at(l, a->stride), kept = *stride;
        *stride = a->columns - 1;
        assert_launch_refused(l, PTXGEN_ERROR_INVALID_ARGUMENT,
                              "%s: the row stride of %s, %llu, is below its %llu columns",
                              l->family, a->name, (unsigned long long)*stride,
                              (unsigned long long)a->columns);
        *stride = kept;
    }
}

TEST_OF_SUBJECTS(strides_of_more_than_32_bits_are_refused_by_kernels_that_take_no_more)
{
    const struct launched *l = &p->launched;
    give_room(p);
    for (unsigned i = 0; p->of->is_narrow && i < l->count; i++) {
        const struct array *a = &l->arrays[i];
        if (!a->stride)
            continue;
        uint64_t *stride = word_at(l, a->stride), kept = *stride;
        uint64_t *address = word_at(l, a->address), home = *address;
        *stride = UINT64_C(1) << 32;
        *address = UINT64_C(1) << 42; /* apart from all others */
        assert_launch_refused(l, PTXGEN_ERROR_UNSUPPORTED,
                              "%s: the row stride of %s, %llu, is above the %u elements that the "
                              "kernel takes",
                              l->family, a->name, (unsigned long long)*stride, UINT32_MAX);
        *stride = kept;
        *address = home;
    }
}

/* A byte less than it takes is stated of each buffer, the workspace among them. */
TEST_OF_SUBJECTS(buffers_that_are_too_short_are_refused_with_what_they_must_hold)
{
    const struct launched *l = &p->launched;
    for (unsigned i = 0; i < l->count; i++) {
        const struct array *a = &l->arrays[i];
        uint64_t *size = word_at(l, a->size), kept = *size;
        unsigned long long given = *size = a->bytes - 1, bytes = a->bytes;
        if (a->is_workspace)
            assert_launch_refused(
                l, PTXGEN_ERROR_INVALID_ARGUMENT,
                "%s: a workspace of %llu bytes is below the %llu that m = %d needs", l->family,
                given, bytes, p->of->m);
        else if (a->stride)
            assert_launch_refused(
                l, PTXGEN_ERROR_INVALID_ARGUMENT,
                "%s: %s has %llu bytes, fewer than the %llu of %llu rows of %llu elements of %u "
                "bytes with a row stride of %llu",
                l->family, a->name, given, bytes, (unsigned long long)a->rows,
                (unsigned long long)a->columns, a->element, (unsigned long long)stride_of(l, a));
        else
            assert_launch_refused(
                l, PTXGEN_ERROR_INVALID_ARGUMENT,
                "%s: %s has %llu bytes, fewer than the %llu that the launch needs", l->family,
                a->name, given, bytes);
        *size = kept;
    }
}

TEST_OF_SUBJECTS(rows_of_x_that_are_not_aligned_need_room)
{
    const struct array *x = &p->launched.arrays[0];
    if (!x->stride)
        return;
    uint64_t *stride = word_at(&p->launched, x->stride),
             *address = word_at(&p->launched, x->address);
    uint64_t odd_stride = workspace_of(p), aligned, misaligned;
    *stride = 0;
    aligned = workspace_of(p);
    *address += 8;
    misaligned = workspace_of(p);
    assert_int_equal(misaligned, odd_stride);
    if (p->of->copies_x)
        assert_true(misaligned >= aligned + (uint64_t)p->of->m * K * x->element);
    else
        assert_int_equal(misaligned, aligned);
}

TEST_OF_SUBJECTS(another_context_than_the_kernels_is_refused)
{
    ptxgen_cu_context other;
    ptxgen_error err;
    assert_int_equal(emulated.driver.ctx_create(&other, 0, 1), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(p->launched.launch(p->kernel, &p->args, NULL, &err),
                     PTXGEN_ERROR_WRONG_DEVICE);
    emulated.driver.ctx_destroy(other);
    assert_int_equal(emulated.driver.ctx_set_current(emulated.context), PTXGEN_CUDA_SUCCESS);
}

/* ---- the dispatchers of families ---- */

#define DISPATCH(f)                                                                                \
    static ptxgen_status dispatch_##f(ptxgen_dispatcher *dispatcher, const void *spec,             \
                                      void **kernel, ptxgen_error *err)                            \
    {                                                                                              \
        ptxgen_##f *found = NULL;                                                                  \
        ptxgen_status status = ptxgen_##f##_dispatch(dispatcher, spec, &found, err);               \
        *kernel = found;                                                                           \
        return status;                                                                             \
    }
DISPATCH(dense)
DISPATCH(marlin)
DISPATCH(sparse24)
DISPATCH(w8a8)
DISPATCH(rmsnorm_q4k)
DISPATCH(gguf_linear)
DISPATCH(quantise)
DISPATCH(gguf_rows)

static void dispatch_loads_a_spec_once(void **state)
{
    static const struct {
        const struct harness *harness;
        ptxgen_status (*dispatch)(ptxgen_dispatcher *dispatcher, const void *spec, void **kernel,
                                  ptxgen_error *err);
    } families[] = {{&dense_harness, dispatch_dense},
                    {&marlin_harness, dispatch_marlin},
                    {&sparse24_harness, dispatch_sparse24},
                    {&w8a8_harness, dispatch_w8a8},
                    {&rmsnorm_q4k_harness, dispatch_rmsnorm_q4k},
                    {&gguf_linear_harness, dispatch_gguf_linear},
                    {&quantise_harness, dispatch_quantise},
                    {&gguf_rows_harness, dispatch_gguf_rows}};
    const ptxgen_dispatch_options options = {.no_cache = true};
    ptxgen_dispatcher *dispatcher;
    ptxgen_error err = {0};
    (void)state;
    assert_ok(ptxgen_dispatcher_create(&emulated.driver, &options, &dispatcher, &err), &err);
    for (int i = 0; i < SUBJECTS; i++)
        for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
            const struct harness *h = subjects[i].harness;
            uint64_t no_spec[32];
            memset(no_spec, 0xFF, sizeof no_spec);
            void *first, *second;
            if (families[f].harness != h)
                continue;
            assert_ok(families[f].dispatch(dispatcher, subjects[i].spec, &first, &err), &err);
            assert_ok(families[f].dispatch(dispatcher, subjects[i].spec, &second, &err), &err);
            assert_ptr_equal(first, second);
            h->verbs->destroy(first);
            h->verbs->destroy(second);
            assert_true(families[f].dispatch(dispatcher, no_spec, &first, &err) != PTXGEN_OK);
            assert_null(first);
        }
    ptxgen_dispatcher_destroy(dispatcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_tokens_launch_nothing_and_need_nothing),
        cmocka_unit_test(more_tokens_than_planned_are_refused),
        cmocka_unit_test(null_and_misaligned_addresses_are_refused_by_name),
        cmocka_unit_test(strides_below_a_row_are_refused),
        cmocka_unit_test(strides_of_more_than_32_bits_are_refused_by_kernels_that_take_no_more),
        cmocka_unit_test(buffers_that_are_too_short_are_refused_with_what_they_must_hold),
        cmocka_unit_test(rows_of_x_that_are_not_aligned_need_room),
        cmocka_unit_test(another_context_than_the_kernels_is_refused),
        cmocka_unit_test(dispatch_loads_a_spec_once),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
