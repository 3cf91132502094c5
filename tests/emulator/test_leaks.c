/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, launches, faults, links, graphs and contexts keep no memory when they are gone. */
#include "bench.h"

#include "tests/edges/leaks.h"

#include <stdio.h>
#include <stdlib.h>

struct texts {
    char *wide;  /* hundreds of constants, functions, variables, parameters, labels */
    char *wrong; /* the same, and nonsense at its end */
};

static char *wide_text(const char *end)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    fprintf(to, ".version 8.0\n.target sm_80\n.address_size 64\n");
    for (int i = 0; i < 40; i++)
        fprintf(to,
                ".global .align 8 .u64 g%d[4] = {1, 2, %d};\n.func (.param .u32 r) f%d() { ret; }\n",
                i, i, i);
    fprintf(to,
            ".visible .entry k(.param .u64 p, .param .b8 q[40])\n{\n.reg .b32 r<300>; .reg .b64 "
            "d<9>; .reg .pred p1; .shared .b8 s[64]; .local .b8 l[64];\nld.param.u64 d1, [p];\n");
    for (int i = 0; i < 250; i++)
        fprintf(to, "L%d: add.u32 r%d, r%d, %d;\nmov.u64 d2, %lld;\n", i, i + 1, i, i * 7919,
                (long long)i << 33);
    fprintf(to, "mov.u32 r1, %%tid.y; mov.u32 r2, %%clock; ld.global.u32 r3, [d1]; ret;\n%s\n}\n",
            end);
    fclose(to);
    return text;
}

static int setup(void **state)
{
    static struct texts texts;
    texts.wide = wide_text("");
    texts.wrong = wide_text("frobnicate.u32 r1, r2;");
    *state = &texts;
    return 0;
}

static int teardown(void **state)
{
    struct texts *texts = *state;
    free(texts->wide);
    free(texts->wrong);
    return 0;
}

static void load_wide(void *user)
{
    const struct texts *texts = user;
    struct bench bench;
    bench_open(&bench, "cpu");
    bench_load(&bench, texts->wide);
    bench_close(&bench);
}

static void load_wrong(void *user)
{
    const struct texts *texts = user;
    struct bench bench;
    bench_open(&bench, "cpu");
    assert_int_not_equal(bench_try_load(&bench, texts->wrong), PTXGEN_CUDA_SUCCESS);
    bench_close(&bench);
}

/* A launch that faults: its address is that of no allocation. */
static void fault(void *user)
{
    const struct texts *texts = user;
    struct bench bench;
    uint64_t p = 64, q[5] = {0};
    bench_open(&bench, "cpu");
    bench_options(&bench, &(ptxgen_emulator_options){.workers = 1, .profile = true});
    bench_load(&bench, texts->wide);
    assert_int_not_equal(bench_launch(&bench, "k", 2, 64, (void *[]){&p, q}), PTXGEN_CUDA_SUCCESS);
    ptxgen_emulator_clear_fault(bench.context);
    bench_close(&bench);
}

static void link_in(void *user)
{
    const struct texts *texts = user;
    struct bench bench;
    ptxgen_cu_link_state link;
    void *cubin;
    size_t size;
    bench_open(&bench, "cpu");
    const ptxgen_driver *d = &bench.driver;
    for (int i = 0; i < 2; i++) {
        char *text = i ? texts->wrong : texts->wide;
        assert_int_equal(d->link_create(0, NULL, NULL, &link), 0);
        ptxgen_cu_result result = d->link_add_data(link, PTXGEN_CU_JIT_INPUT_PTX, text,
                                                   strlen(text) + 1, "k", 0, NULL, NULL);
        if (result == PTXGEN_CUDA_SUCCESS)
            result = d->link_complete(link, &cubin, &size);
        assert_int_equal(result != PTXGEN_CUDA_SUCCESS, i);
        if (!i)
            assert_int_equal(bench_try_load(&bench, cubin), PTXGEN_CUDA_SUCCESS);
        assert_int_equal(d->link_destroy(link), 0);
    }
    bench_close(&bench);
}

/* A capture that ends, one that its stream's end cuts off, and memory that nobody frees. */
static void capture(void *user)
{
    struct bench bench;
    ptxgen_cu_stream stream;
    ptxgen_cu_event event;
    ptxgen_cu_graph graph;
    ptxgen_cu_graph_exec exec;
    ptxgen_cu_deviceptr memory;
    ptxgen_cu_function k;
    void *host;
    (void)user;
    bench_open(&bench, "cpu");
    bench_kernel(&bench, "sm_80", ".param .u64 p", "ret;");
    const ptxgen_driver *d = &bench.driver;
    assert_int_equal(d->module_get_function(&k, bench.module, "k"), 0);
    assert_int_equal(d->mem_alloc(&memory, 4096), 0);
    assert_int_equal(d->mem_host_alloc(&host, 4096, 0), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(d->stream_create(&stream, 0), 0);
        assert_int_equal(d->event_create(&event, 0), 0);
        assert_int_equal(d->stream_begin_capture(stream, PTXGEN_CU_STREAM_CAPTURE_MODE_RELAXED), 0);
        for (int j = 0; j < 40; j++)
            assert_int_equal(
                d->launch_kernel(k, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&memory}, NULL), 0);
        if (i == 0) {
            assert_int_equal(d->stream_end_capture(stream, &graph), 0);
            assert_int_equal(d->graph_instantiate(&exec, graph, 0), 0);
            assert_int_equal(d->graph_launch(exec, stream), 0);
            assert_int_equal(d->graph_destroy(graph), 0);
            assert_int_equal(d->graph_exec_destroy(exec), 0);
        }
        assert_int_equal(d->event_destroy(event), 0);
        assert_int_equal(d->stream_destroy(stream), 0);
    }
    assert_int_equal(d->mem_free_host(host), 0);
    bench_close(&bench);
}

static void hold_primary_contexts(void *user)
{
    ptxgen_driver d;
    ptxgen_cu_context context;
    (void)user;
    ptxgen_emulator_driver(&d);
    for (int device = 0; device < 3; device++)
        for (int i = 0; i < 2; i++)
            assert_int_equal(d.device_primary_ctx_retain(&context, device), 0);
    for (int device = 0; device < 3; device++)
        for (int i = 0; i < 2; i++)
            assert_int_equal(d.device_primary_ctx_release(device), 0);
}

static void what_is_gone_keeps_no_memory(void **state)
{
    static const struct {
        const char *name;
        void (*call)(void *user);
    } calls[] = {
        {"a module of hundreds of constants", load_wide},
        {"a module that is refused", load_wrong},
        {"a launch that faults", fault},
        {"a link", link_in},
        {"a capture", capture},
        {"a primary context", hold_primary_contexts},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_keeps_nothing(calls[i].name, calls[i].call, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_gone_keeps_no_memory)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
