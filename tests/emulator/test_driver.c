/* SPDX-License-Identifier: Apache-2.0 */
/* The driver table: devices, modules and their refusals, launches, streams, graphs, cubins. */
#include "bench.h"

#include "ptxgen/kernel.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char add_one[] =
    ".reg .b32 %r<4>; .reg .b64 %rd<4>;\nld.param.u64 %rd1, [px]; mov.u32 %r1, %tid.x;\n"
    "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n"
    "ld.global.u32 %r2, [%rd1]; add.u32 %r2, %r2, 1; st.global.u32 [%rd1], %r2;\nret;";

static void devices_have_the_facts_of_their_chips(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int major, minor, sms, shared;
    } chips[] = {{"cpu", 9, 0, 132, 227 << 10},
                 {"cpu:sm_80", 8, 0, 108, 163 << 10},
                 {"sm_89", 8, 9, 142, 99 << 10},
                 {"cpu:sm_100", 10, 0, 148, 227 << 10}};
    struct bench bench;
    ptxgen_error err;
    int value, ordinal;
    bench_open(&bench, "cpu");
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        assert_int_equal(ptxgen_emulator_ordinal(chips[i].name, &ordinal, &err), PTXGEN_OK);
#define FACT(which, want)                                                                          \
    bench.driver.device_get_attribute(&value, PTXGEN_CU_DEVICE_ATTRIBUTE_##which, ordinal);        \
    assert_int_equal(value, want)
        FACT(COMPUTE_CAPABILITY_MAJOR, chips[i].major);
        FACT(COMPUTE_CAPABILITY_MINOR, chips[i].minor);
        FACT(MULTIPROCESSOR_COUNT, chips[i].sms);
        FACT(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, chips[i].shared);
        FACT(WARP_SIZE, 32);
    }
    assert_int_equal(ptxgen_emulator_ordinal("cpu:sm_11", &ordinal, &err), PTXGEN_ERROR_NO_DEVICE);
    assert_non_null(strstr(err.message, "cpu:sm_90"));
    bench_close(&bench);
}

static void refused_text_is_named_by_line_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "line 1, column 1"},
        {".version 7.0\n.target sm_80\n.visible .entry k() {\n add.u32 %r1, %r1, 1;\n}",
         "line 4, column 2: add: '%r1' is no register"},
        {".version 7.0\n.target sm_80\n.entry k() {\n.reg .b32 %r<2>;\n frobnicate.b32 %r1;\n}",
         "line 5, column 2: frobnicate: no instruction"},
        {".version 7.0\n.target sm_80\n.entry k() {\n.reg .b32 %r<2>;\nadd.u32.wide %r1, %r1, "
         "%r1;\n}",
         "modifier .wide is unknown"},
        {".version 7.0\n.target sm_80\n.entry k() {\n.reg .b32 %r<2>; .reg .b64 %d<2>;\nadd.u32 "
         "%r1, %d1, 1;\n}",
         "line 5, column 1: add: operand '%d1' is 64 bits wide"},
        {".version 7.0\n.target sm_80\n.entry k() {\n.reg .f32 %f<2>;\nmov.f32 %f1, 1;\n}",
         "a floating-point immediate is written 0f"},
        {".version 7.0\n.target sm_80\n.entry k() {\n bra NOWHERE;\n}", "'NOWHERE' is no label"},
        {".version 7.0\n.target sm_80\n.entry k() {\n /* never closed\n",
         "line 4, column 2: '/*' begins nothing"},
        {".version 7.0\n.target sm_80\n.entry k() {\n.reg .b64 %d<2>;\nmov.u64 %d1, "
         "18446744073709551616;\n}",
         "line 5, column 14: '18446744073709551616' begins nothing"},
        {".version 7.4\n.target sm_80\n.entry k() {\n.reg .b64 %d<2>;\n"
         "createpolicy.fractional.b64 %d1;\n}",
         "line 5, column 1: createpolicy: an eviction priority is due"},
        {".version 7.4\n.target sm_80\n.entry k() {\n.reg .b64 %d<2>;\n"
         "createpolicy.fractional.L2::evict_last.L2::evict_last.b64 %d1;\n}",
         "createpolicy: modifier .L2::evict_last is unknown or does not belong here"},
        {".version 7.0\n.target sm_80\n.entry k() {\n.shared .b8 x[50000];\n.reg .b32 %r<2>;\n "
         "mov.u32 %r1, x;\n}",
         "50000 bytes of static shared memory"},
    };
    struct bench bench;
    bench_open(&bench, "cpu");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(bench_try_load(&bench, cases[i].text), PTXGEN_CUDA_ERROR_INVALID_PTX);
        if (!strstr(bench.log, cases[i].message))
            fail_msg("'%s' lacks '%s'", bench.log, cases[i].message);
    }
    bench_close(&bench);
}

static void targets_run_where_the_lattice_says(void **state)
{
    (void)state;
    static const struct {
        const char *device, *target;
        ptxgen_cu_result result;
    } cases[] = {{"cpu:sm_90", "sm_80", 0},
                 {"cpu:sm_90", "sm_90a", 0},
                 {"cpu:sm_100", "sm_90", 0},
                 {"cpu:sm_100", "sm_90a", PTXGEN_CUDA_ERROR_NO_BINARY_FOR_GPU},
                 {"cpu:sm_103", "sm_100f", 0},
                 {"cpu:sm_120", "sm_100f", PTXGEN_CUDA_ERROR_NO_BINARY_FOR_GPU},
                 {"cpu:sm_80", "sm_90", PTXGEN_CUDA_ERROR_NO_BINARY_FOR_GPU}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench bench;
        char text[200];
        snprintf(text, sizeof text, ".version 8.8\n.target %s\n.visible .entry k() { ret; }",
                 cases[i].target);
        bench_open(&bench, cases[i].device);
        assert_int_equal(bench_try_load(&bench, text), cases[i].result);
        assert_int_equal(bench_try_load(&bench, ".version 9.9\n.target sm_80\n"),
                         PTXGEN_CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
        bench_close(&bench);
    }
}

static void launches_that_the_chip_cannot_take_are_refused(void **state)
{
    (void)state;
    struct bench bench;
    ptxgen_cu_function k;
    bench_open(&bench, "cpu:sm_80");
    bench_load(&bench,
               ".version 7.0\n.target sm_80\n.visible .entry k() .maxntid 128, 1, 1 { ret; }");
    bench.driver.module_get_function(&k, bench.module, "k");
#define LAUNCH(gx, gy, bx, shared)                                                                 \
    bench.driver.launch_kernel(k, gx, gy, 1, bx, 1, 1, shared, NULL, NULL, NULL)
    assert_int_equal(LAUNCH(1, 1, 128, 0), 0);
    assert_int_equal(LAUNCH(0, 1, 128, 0), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(LAUNCH(1, 65536, 128, 0), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(LAUNCH(1, 1, 129, 0), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(LAUNCH(1, 1, 128, 48 << 10), 0);
    assert_int_equal(LAUNCH(1, 1, 128, 64 << 10), PTXGEN_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(bench.driver.func_set_attribute(
                         k, PTXGEN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10),
                     0);
    assert_int_equal(LAUNCH(1, 1, 128, 64 << 10), 0);
    assert_int_equal(bench.driver.func_set_attribute(
                         k, PTXGEN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 164 << 10),
                     PTXGEN_CUDA_ERROR_INVALID_VALUE);
    bench_close(&bench);
}

static void occupancy_follows_the_chips_limits(void **state)
{
    (void)state;
    struct bench bench;
    ptxgen_cu_function k;
    int blocks;
    bench_open(&bench, "cpu:sm_80");
    bench_load(&bench, ".version 7.0\n.target sm_80\n.visible .entry k() { ret; }");
    bench.driver.module_get_function(&k, bench.module, "k");
    bench.driver.occupancy_max_active_blocks(&blocks, k, 256, 0);
    assert_int_equal(blocks, 8); /* 2048 threads */
    bench.driver.occupancy_max_active_blocks(&blocks, k, 32, 0);
    assert_int_equal(blocks, 32); /* CTAs an SM */
    bench.driver.occupancy_max_active_blocks(&blocks, k, 128, 80 << 10);
    assert_int_equal(blocks, 2); /* 164 KB of shared memory, 1 KB reserved for each */
    bench_close(&bench);
}

static void a_captured_graph_replays_its_work(void **state)
{
    (void)state;
    struct bench bench;
    ptxgen_cu_stream stream;
    ptxgen_cu_graph graph;
    ptxgen_cu_graph_exec exec;
    ptxgen_cu_function k;
    ptxgen_cu_deviceptr unused;
    ptxgen_cu_event begin, end;
    uint32_t out[32];
    size_t nodes = 0;
    float milliseconds = -1;
    bench_open(&bench, "cpu");
    bench_kernel(&bench, "sm_80", ".param .u64 px", add_one);
    ptxgen_cu_deviceptr x = bench_buffer(&bench, NULL, sizeof out);
    const ptxgen_driver *d = &bench.driver;
    d->module_get_function(&k, bench.module, "k");
    assert_int_equal(d->stream_create(&stream, PTXGEN_CU_STREAM_NON_BLOCKING), 0);
    d->event_create(&begin, 0);
    d->event_create(&end, 0);
    assert_int_equal(d->stream_begin_capture(stream, PTXGEN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                     0);
    assert_int_equal(d->memset_d32_async(x, 5, 32, stream), 0);
    for (int i = 0; i < 3; i++) {
        ptxgen_cu_deviceptr argument = x; /* copied by the launch */
        assert_int_equal(
            d->launch_kernel(k, 1, 1, 1, 32, 1, 1, 0, stream, (void *[]){&argument}, NULL), 0);
        argument = 0;
    }
    assert_int_equal(d->mem_alloc(&unused, 4), PTXGEN_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(d->stream_synchronize(stream), PTXGEN_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(d->stream_end_capture(stream, &graph), 0);
    bench_read(&bench, out, x, sizeof out);
    assert_int_equal(out[0], 0); /* nothing has run yet */
    assert_int_equal(d->graph_get_nodes(graph, NULL, &nodes), 0);
    assert_int_equal(nodes, 4);
    assert_int_equal(d->graph_instantiate(&exec, graph, 0), 0);
    assert_int_equal(d->graph_destroy(graph), 0);
    d->event_record(begin, stream);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(d->graph_launch(exec, stream), 0);
        d->stream_synchronize(stream);
        bench_read(&bench, out, x, sizeof out);
        for (int t = 0; t < 32; t++)
            assert_int_equal(out[t], 8);
    }
    d->event_record(end, stream);
    assert_int_equal(d->event_elapsed_time(&milliseconds, begin, end), 0);
    assert_true(milliseconds > 0);
    d->graph_exec_destroy(exec);
    d->event_destroy(begin);
    d->event_destroy(end);
    d->stream_destroy(stream);
    bench_close(&bench);
}

static void a_linked_cubin_loads_and_a_spoilt_one_is_refused(void **state)
{
    (void)state;
    struct bench bench;
    ptxgen_cu_link_state link;
    void *cubin;
    size_t size;
    static const char text[] = ".version 7.0\n.target sm_80\n.visible .entry k() { ret; }";
    bench_open(&bench, "cpu");
    const ptxgen_driver *d = &bench.driver;
    assert_int_equal(d->link_create(0, NULL, NULL, &link), 0);
    assert_int_equal(d->link_add_data(link, PTXGEN_CU_JIT_INPUT_PTX, (void *)(uintptr_t)text,
                                      sizeof text, "k", 0, NULL, NULL),
                     0);
    assert_int_equal(d->link_complete(link, &cubin, &size), 0);
    char *copy = malloc(size);
    memcpy(copy, cubin, size);
    assert_int_equal(d->link_destroy(link), 0);
    assert_int_equal(bench_try_load(&bench, copy), 0);
    bench_run(&bench, "k", 3, 64, NULL);
    copy[size - 5] ^= 1;
    assert_int_equal(bench_try_load(&bench, copy), PTXGEN_CUDA_ERROR_INVALID_IMAGE);
    copy[size - 5] ^= 1;
    for (size_t i = 0; i < size - sizeof text; i++)
        for (int bit = 0; bit < 8; bit++) {
            copy[i] ^= (char)(1 << bit);
            assert_int_not_equal(bench_try_load(&bench, copy), 0);
            copy[i] ^= (char)(1 << bit);
        }
    free(copy);
    bench_close(&bench);
}

/* The text's length is a terabyte, and its section has no bytes in the file. */
static void a_cubin_whose_text_is_not_in_it_is_refused(void **state)
{
    (void)state;
    static const uint64_t more = (uint64_t)1 << 40;
    static const char text[] = ".version 7.0\n.target sm_80\n.visible .entry k() { ret; }";
    struct bench bench;
    ptxgen_cu_link_state link;
    void *cubin;
    size_t size;
    ptxgen_module *module;
    ptxgen_error err;
    bench_open(&bench, "cpu");
    const ptxgen_driver *d = &bench.driver;
    assert_int_equal(d->link_create(0, NULL, NULL, &link), 0);
    assert_int_equal(d->link_add_data(link, PTXGEN_CU_JIT_INPUT_PTX, (void *)(uintptr_t)text,
                                      sizeof text, "k", 0, NULL, NULL),
                     0);
    assert_int_equal(d->link_complete(link, &cubin, &size), 0);
    char *copy = malloc(size);
    memcpy(copy, cubin, size);
    assert_int_equal(d->link_destroy(link), 0);
    Elf64_Ehdr elf;
    Elf64_Shdr section;
    memcpy(&elf, copy, sizeof elf);
    char *at = copy + elf.e_shoff + 2 * sizeof section;
    memcpy(&section, at, sizeof section);
    uint64_t length = sizeof text - 1 + more;
    memcpy(copy + section.sh_offset, &length, sizeof length);
    section.sh_size += more;
    section.sh_type = SHT_NOBITS;
    memcpy(at, &section, sizeof section);
    assert_int_equal(bench_try_load(&bench, copy), PTXGEN_CUDA_ERROR_INVALID_IMAGE);
    assert_int_not_equal(ptxgen_module_load_cubin(d, copy, size, NULL, &module, &err), PTXGEN_OK);
    free(copy);
    bench_close(&bench);
}

static void module_variables_are_placed_and_initialised(void **state)
{
    (void)state;
    struct bench bench;
    ptxgen_cu_deviceptr address;
    size_t bytes;
    uint32_t out[4];
    bench_open(&bench, "cpu");
    bench_load(&bench,
               ".version 7.0\n.target sm_80\n.address_size 64\n"
               ".const .align 4 .u32 table[4] = {10, 0x20, 30, 40};\n"
               ".global .align 8 .u64 pointer = generic(values)+4;\n"
               ".global .f32 values[3] = {0f3F800000, 2.5, -1.0};\n"
               ".global .align 4 .b8 zeroes[8];\n"
               ".visible .entry k(.param .u64 po)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
               "ld.param.u64 %rd1, [po]; ld.const.u32 %r1, [table+4];\n"
               "ld.global.u64 %rd2, [pointer]; ld.u32 %r2, [%rd2]; ld.global.u32 %r3, [values+8];\n"
               "ld.global.u32 %r4, [zeroes+4];\n"
               "st.global.v4.u32 [%rd1], {%r1,%r2,%r3,%r4};\nret;\n}\n");
    ptxgen_cu_deviceptr po = bench_blank(&bench, sizeof out);
    bench_run(&bench, "k", 1, 1, (void *[]){&po});
    bench_read(&bench, out, po, sizeof out);
    assert_int_equal(out[0], 0x20);
    assert_int_equal(out[1], 0x40200000);
    assert_int_equal(out[2], 0xbf800000);
    assert_int_equal(out[3], 0);
    assert_int_equal(bench.driver.module_get_global(&address, &bytes, bench.module, "values"), 0);
    assert_int_equal(bytes, 12);
    bench_read(&bench, out, address, 12);
    assert_int_equal(out[1], 0x40200000);
    assert_int_equal(bench.driver.module_get_global(&address, &bytes, bench.module, "none"),
                     PTXGEN_CUDA_ERROR_NOT_FOUND);
    bench_close(&bench);
}

/* Coalesced and strided loads; conflict-free and 32-way conflicting shared stores. */
static void the_profile_counts_sectors_and_conflicts(void **state)
{
    (void)state;
    struct bench bench;
    ptxgen_emulator_profile *profile;
    uint64_t sectors[2] = {0}, conflicts[2] = {0};
    int loads = 0, stores = 0;
    bench_open(&bench, "cpu");
    bench_options(&bench, &(ptxgen_emulator_options){.profile = true});
    bench_kernel(
        &bench, "sm_80", ".param .u64 px",
        ".reg .b32 %r<9>; .reg .b64 %rd<9>;\n.shared .b8 buf[4096];\n"
        "ld.param.u64 %rd1, [px]; mov.u32 %r1, %tid.x; mov.u32 %r5, buf;\n"
        "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;\n"
        "mul.wide.u32 %rd3, %r1, 128; add.u64 %rd3, %rd1, %rd3;\n"
        "ld.global.u32 %r2, [%rd2];\nld.global.u32 %r3, [%rd3];\n"
        "shl.b32 %r6, %r1, 2; add.u32 %r6, %r6, %r5; shl.b32 %r7, %r1, 7; add.u32 %r7, %r7, %r5;\n"
        "st.shared.u32 [%r6], %r2;\nbar.sync 0;\nst.shared.u32 [%r7], %r3;\nret;");
    ptxgen_cu_deviceptr x = bench_buffer(&bench, NULL, 4096);
    bench_run(&bench, "k", 1, 32, (void *[]){&x});
    assert_int_equal(ptxgen_emulator_profile_take(bench.context, &profile, NULL), PTXGEN_OK);
    for (size_t i = 0; i < ptxgen_emulator_profile_count(profile); i++) {
        ptxgen_emulator_line line = ptxgen_emulator_profile_line(profile, i);
        if (strncmp(line.text, "ld.global", 9) == 0) {
            assert_int_equal(line.bytes_needed, 128);
            assert_int_equal(line.warps, 1);
            assert_int_equal(line.lanes, 32);
            sectors[loads++] = line.sectors;
        } else if (strcmp(line.kind, "shared") == 0) {
            conflicts[stores++] = line.conflicts;
        }
    }
    ptxgen_emulator_profile_free(profile);
    assert_int_equal(sectors[0], 4);
    assert_int_equal(sectors[1], 32);
    assert_int_equal(conflicts[0], 0);
    assert_int_equal(conflicts[1], 31);
    bench_close(&bench);
}

/* f32 atomics of many CTAs: the order of additions is fixed, so are the bits. */
static void atomics_give_the_same_bits_with_any_number_of_workers(void **state)
{
    (void)state;
    uint32_t first = 0;
    for (uint32_t workers = 1; workers <= 4; workers++) {
        struct bench bench;
        float x[512];
        uint32_t sum;
        for (int i = 0; i < 512; i++)
            x[i] = 1.0f / (float)(i + 3);
        bench_open(&bench, "cpu");
        bench_options(&bench, &(ptxgen_emulator_options){.workers = workers});
        bench_kernel(&bench, "sm_80", ".param .u64 px, .param .u64 ps",
                     ".reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<3>;\n"
                     "ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [ps];\n"
                     "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r1, 32, %r2;\n"
                     "mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd3, %rd1;\n"
                     "ld.global.f32 %f1, [%rd3]; red.global.add.f32 [%rd2], %f1;\nret;");
        ptxgen_cu_deviceptr px = bench_buffer(&bench, x, sizeof x),
                            ps = bench_buffer(&bench, NULL, 4);
        bench_run(&bench, "k", 16, 32, (void *[]){&px, &ps});
        bench_read(&bench, &sum, ps, 4);
        first = workers == 1 ? sum : first;
        assert_int_equal(sum, first);
        bench_close(&bench);
    }
}

/* Each CTA waits for the one before it, over more CTAs than host threads. */
static void ctas_that_wait_for_each_other_all_finish(void **state)
{
    (void)state;
    struct bench bench;
    uint32_t turn;
    bench_open(&bench, "cpu");
    bench_kernel(&bench, "sm_80", ".param .u64 pt",
                 ".reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<3>;\n"
                 "ld.param.u64 %rd1, [pt]; mov.u32 %r1, %ctaid.x; mov.u32 %r4, %tid.x;\n"
                 "mov.u32 %r5, %nctaid.x; sub.u32 %r1, %r5, %r1; sub.u32 %r1, %r1, 1;\n"
                 "setp.ne.u32 %p1, %r4, 0;\n@%p1 bra OUT;\n"
                 "WAIT: ld.acquire.gpu.global.u32 %r2, [%rd1]; setp.ne.u32 %p2, %r2, %r1;\n"
                 "@%p2 bra WAIT;\nadd.u32 %r3, %r1, 1; st.release.gpu.global.u32 [%rd1], %r3;\n"
                 "OUT: bar.sync 0;\nret;");
    ptxgen_cu_deviceptr pt = bench_buffer(&bench, NULL, 4);
    bench_run(&bench, "k", 200, 64, (void *[]){&pt}); /* the last CTA goes first */
    bench_read(&bench, &turn, pt, 4);
    assert_int_equal(turn, 200);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_have_the_facts_of_their_chips),
        cmocka_unit_test(refused_text_is_named_by_line_and_column),
        cmocka_unit_test(targets_run_where_the_lattice_says),
        cmocka_unit_test(launches_that_the_chip_cannot_take_are_refused),
        cmocka_unit_test(occupancy_follows_the_chips_limits),
        cmocka_unit_test(a_captured_graph_replays_its_work),
        cmocka_unit_test(a_linked_cubin_loads_and_a_spoilt_one_is_refused),
        cmocka_unit_test(a_cubin_whose_text_is_not_in_it_is_refused),
        cmocka_unit_test(module_variables_are_placed_and_initialised),
        cmocka_unit_test(the_profile_counts_sectors_and_conflicts),
        cmocka_unit_test(atomics_give_the_same_bits_with_any_number_of_workers),
        cmocka_unit_test(ctas_that_wait_for_each_other_all_finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
