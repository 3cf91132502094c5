/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds of shared memory, to the byte: every kind of access at the last place that holds it and
 * one place further, at the end of the memory and at the end of a buffer, before padding and before
 * another buffer, by addresses that come from the buffer and by such of which nothing is known.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 256, SECOND_BYTES = 256 };

/* A kernel's part before the access: %r10 is the place, %rd1 global memory, %rd2 a tensor map's
 * address, %r8 an mbarrier, of which arrive and wait is nothing asked. */
struct kind {
    const char *name, *text;
    uint32_t bytes, alignment, threads;
    bool of_cluster; /* on the memory of CTA 1, by CTA 0 */
};

#define GENERIC "cvt.u64.u32 %rd3, %r10;\ncvta.shared.u64 %rd3, %rd3;\n"
#define FAR "mapa.shared::cluster.u32 %r10, %r10, 1;\nmapa.shared::cluster.u32 %r8, %r8, 1;\n"
#define BULK "mbarrier::complete_tx::bytes"
#define WGMMA(a, b)                                                                                \
    "shr.u32 %r20, %r10, 4;\ncvt.u64.u32 %rd6, %r20;\nmov.b64 %rd7, 0;\n"                          \
    "wgmma.fence.sync.aligned;\nsetp.ne.b32 %p7, 0, 0;\n"                                          \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, " a ", " b               \
    ", %p7, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"

static const struct kind kinds[] = {
    {"ld.u8", "ld.shared.u8 %r4, [%r10];\n", 1, 1, 1, false},
    {"ld.u16", "ld.shared.u16 %r4, [%r10];\n", 2, 2, 1, false},
    {"ld.u32", "ld.shared.u32 %r4, [%r10];\n", 4, 4, 1, false},
    {"ld.u64", "ld.shared.u64 %rd4, [%r10];\n", 8, 8, 1, false},
    {"ld.v2.u32", "ld.shared.v2.u32 {%r4,%r5}, [%r10];\n", 8, 8, 1, false},
    {"ld.v4.u32", "ld.shared.v4.u32 {%r4,%r5,%r6,%r7}, [%r10];\n", 16, 16, 1, false},
    {"ld.v4.u32 of a warp", "ld.shared.v4.u32 {%r4,%r5,%r6,%r7}, [%r10];\n", 16, 16, 32, false},
    {"ld.volatile", "ld.volatile.shared.u32 %r4, [%r10];\n", 4, 4, 1, false},
    {"ld.acquire", "ld.acquire.cta.shared.u64 %rd4, [%r10];\n", 8, 8, 1, false},
    {"generic ld", GENERIC "ld.u32 %r4, [%rd3];\n", 4, 4, 1, false},
    {"generic ld.v4", GENERIC "ld.v4.u32 {%r4,%r5,%r6,%r7}, [%rd3];\n", 16, 16, 1, false},
    {"st.u8", "st.shared.u8 [%r10], 1;\n", 1, 1, 1, false},
    {"st.u16", "st.shared.u16 [%r10], 1;\n", 2, 2, 1, false},
    {"st.u32", "st.shared.u32 [%r10], 1;\n", 4, 4, 1, false},
    {"st.v2.u32", "st.shared.v2.u32 [%r10], {%r3,%r3};\n", 8, 8, 1, false},
    {"st.v4.u32", "st.shared.v4.u32 [%r10], {%r3,%r3,%r3,%r3};\n", 16, 16, 1, false},
    {"st.release", "st.release.cta.shared.u32 [%r10], 1;\n", 4, 4, 1, false},
    {"generic st", GENERIC "st.u16 [%rd3], 1;\n", 2, 2, 1, false},
    {"atom.u32", "atom.shared.add.u32 %r4, [%r10], 1;\n", 4, 4, 1, false},
    {"atom.u64", "atom.shared.add.u64 %rd4, [%r10], 1;\n", 8, 8, 1, false},
    {"atom.cas.b16", "atom.shared.cas.b16 %h1, [%r10], %h2, %h2;\n", 2, 2, 1, false},
    {"generic atom", GENERIC "atom.exch.b32 %r4, [%rd3], 1;\n", 4, 4, 1, false},
    {"red", "red.shared.or.b32 [%r10], 1;\n", 4, 4, 1, false},
    {"ldmatrix", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r10];\n", 16, 16, 32, false},
    {"ldmatrix.x4", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4,%r5,%r6,%r7}, [%r10];\n", 16, 16,
     32, false},
    {"stmatrix", "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r10], {%r3};\n", 16, 16, 32, false},
    {"cp.async of 4", "cp.async.ca.shared.global [%r10], [%rd1], 4;\ncp.async.wait_all;\n", 4, 4, 1,
     false},
    {"cp.async of 8", "cp.async.ca.shared.global [%r10], [%rd1], 8;\ncp.async.wait_all;\n", 8, 8, 1,
     false},
    {"cp.async of 16", "cp.async.cg.shared.global [%r10], [%rd1], 16;\ncp.async.wait_all;\n", 16,
     16, 1, false},
    {"cp.async of part", "cp.async.cg.shared.global [%r10], [%rd1], 16, 3;\n", 16, 16, 1, false},
    {"bulk load", "cp.async.bulk.shared::cluster.global." BULK " [%r10], [%rd1], 48, [%r8];\n", 48,
     16, 1, false},
    {"bulk store",
     ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10], 48;\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"),
     48, 16, 1, false},
    {"tensor load",
     "cp.async.bulk.tensor.1d.shared::cluster.global." BULK " [%r10], [%rd2, {%r19}], [%r8];\n", 48,
     128, 1, false},
    {"tensor store",
     ("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd2, {%r19}], [%r10];\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"),
     48, 128, 1, false},
    {"wgmma's A", WGMMA("%rd6", "%rd7"), 128, 16, 128, false},
    {"wgmma's B", WGMMA("%rd7", "%rd6"), 128, 16, 128, false},
    {"mbarrier.init", "mbarrier.init.shared.b64 [%r10], 1;\n", 8, 8, 1, false},
    {"ld of a cluster", FAR "ld.shared::cluster.u32 %r4, [%r10];\n", 4, 4, 1, true},
    {"st.v4 of a cluster", FAR "st.shared::cluster.v4.u32 [%r10], {%r3,%r3,%r3,%r3};\n", 16, 16, 1,
     true},
    {"atom of a cluster", FAR "atom.shared::cluster.add.u32 %r4, [%r10], 1;\n", 4, 4, 1, true},
    {"generic st of a cluster", FAR GENERIC "st.u8 [%rd3], 1;\n", 1, 1, 1, true},
    {"st.async", FAR "st.async.shared::cluster." BULK ".v2.u32 [%r10], {%r3,%r3}, [%r8];\n", 8, 8,
     1, true},
    {"red.async",
     FAR "red.async.relaxed.cluster.shared::cluster." BULK ".add.u32 [%r10], %r3, [%r8];\n", 4, 4,
     1, true},
    {"bulk copy to a cluster",
     FAR "cp.async.bulk.shared::cluster.shared::cta." BULK " [%r10], [%r9], 32, [%r8];\n", 32, 16,
     1, true},
    {"bulk copy from",
     "mapa.shared::cluster.u32 %r8, %r8, 1;\n"
     "mapa.shared::cluster.u32 %r9, %r9, 1;\n"
     "cp.async.bulk.shared::cluster.shared::cta." BULK " [%r9], [%r10], 32, [%r8];\n",
     32, 16, 1, true},
    {"bulk reduction to a cluster",
     FAR "cp.reduce.async.bulk.shared::cluster.shared::cta." BULK
         ".add.u32 [%r10], [%r9], 32, [%r8];\n",
     32, 16, 1, true},
    {"multicast",
     ("mov.b16 %h1, 2;\n"
      "cp.async.bulk.shared::cluster.global." BULK
      ".multicast::cluster [%r10], [%rd1], 16, [%r8], %h1;\n"),
     16, 16, 1, true},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/*
 * Kernel k<i> is of kind i. `at` is added to the address of the first buffer, or of the dynamic
 * memory; `forget` takes that address through local memory, so that nothing is known of it.
 */
static void put_kernel(char *text, uint32_t i, uint32_t size, uint32_t alignment, bool dynamic,
                       bool forget)
{
    sprintf(
        text + strlen(text),
        ".visible .entry k%u(.param .u64 pa, .param .align 64 .b8 map[128], .param .u32 at)\n{\n"
        ".reg .pred %%p<8>; .reg .b16 %%h<3>; .reg .b32 %%r<30>; .reg .b64 %%rd<9>;\n"
        ".reg .f32 %%f<5>;\n.local .align 4 .b8 frame[4];\n"
        ".shared .align 16 .b8 begin[128];\n.shared .align 8 .b64 bar;\n"
        ".shared .align 128 .b8 first[%u];\n.shared .align %u .b8 second[%u];\n"
        "ld.param.u64 %%rd1, [pa];\nld.param.u32 %%r11, [at];\nmov.u64 %%rd2, map;\n"
        "cvta.param.u64 %%rd2, %%rd2;\nmov.u32 %%r3, 1;\nmov.u32 %%r19, 0;\n"
        "mov.u32 %%r8, bar;\nmov.u32 %%r9, begin;\nmov.u32 %%r12, %%tid.x;\nmov.u16 %%h2, 1;\n"
        "setp.eq.u32 %%p1, %%r12, 0;\n@%%p1 mbarrier.init.shared.b64 [%%r8], 1;\n"
        "bar.sync 0;\nmov.u32 %%r10, %s;\n%s"
        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
        "add.u32 %%r10, %%r10, %%r11;\nmov.u32 %%r13, %%cluster_ctarank;\n"
        "setp.ne.u32 %%p2, %%r13, 0;\n@%%p2 bra END;\n%s"
        "END: barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nret;\n}\n",
        i, size, alignment, SECOND_BYTES, dynamic ? "dynamic" : "first",
        forget ? "st.local.u32 [frame], %r10;\nld.local.u32 %r10, [frame];\n" : "", kinds[i].text);
}

static void load(struct bench *bench, uint32_t size, uint32_t alignment, bool dynamic, bool forget)
{
    char *text = malloc(KINDS * 2048);
    strcpy(text, ".version 8.6\n.target sm_90a\n.address_size 64\n"
                 ".extern .shared .align 128 .b8 dynamic[];\n");
    for (uint32_t i = 0; i < KINDS; i++)
        put_kernel(text, i, size, alignment, dynamic, forget);
    bench_load(bench, text);
    free(text);
}

static void open_with_words(struct bench *bench)
{
    static const uint8_t words[4096];
    const ptxgen_emulator_options options = {
        .workers = 1,
        .disabled_checks = ~(uint32_t)(PTXGEN_CHECK_BOUNDS | PTXGEN_CHECK_SHARED_BUFFERS)};
    bench_open(bench, "cpu:sm_90");
    bench_options(bench, &options);
    bench_buffer(bench, words, sizeof words);
}

/* A tensor of bytes whose box is 48 of them. */
static void make_map(struct bench *bench, ptxgen_cu_tensor_map *map)
{
    const uint64_t dims[] = {4096}, strides[] = {0};
    const uint32_t box[] = {48}, steps[] = {1};
    assert_int_equal(bench->driver.tensor_map_encode_tiled(
                         map, (ptxgen_cu_tensor_map_data_type)0, 1,
                         (void *)(uintptr_t)bench->buffers[0], dims, strides, box, steps,
                         (ptxgen_cu_tensor_map_interleave)0, (ptxgen_cu_tensor_map_swizzle)0,
                         (ptxgen_cu_tensor_map_l2_promotion)0,
                         (ptxgen_cu_tensor_map_float_oob_fill)0),
                     PTXGEN_CUDA_SUCCESS);
}

static ptxgen_emulator_fault run(struct bench *bench, uint32_t i, uint32_t at)
{
    char name[12];
    ptxgen_cu_tensor_map map;
    make_map(bench, &map);
    sprintf(name, "k%u", i);
    bench->cluster = kinds[i].of_cluster ? 2 : 1;
    bench_launch(bench, name, bench->cluster, kinds[i].threads,
                 (void *[]){&bench->buffers[0], &map, &at});
    ptxgen_emulator_fault fault = bench_fault(bench);
    ptxgen_emulator_clear_fault(bench->context);
    return fault;
}

/* The last place of a buffer of `size` bytes that holds all of an access. */
static uint32_t last_place(const struct kind *kind, uint32_t size)
{
    return (size - kind->bytes) / kind->alignment * kind->alignment;
}

static int expect(const struct kind *kind, uint32_t size, uint32_t at, ptxgen_emulator_check check,
                  const char *says, const ptxgen_emulator_fault *fault)
{
    if (fault->check == check && strstr(fault->message, says))
        return 0;
    print_error("%s at %u of %u: want '%s', got '%s'\n", kind->name, at, size, says,
                fault->message);
    return 1;
}

/* Ends that are all a byte apart, and whose remainders by 16 are each of them. */
static void an_access_stays_in_the_memory_to_the_byte(void **state)
{
    struct bench bench;
    int wrong = 0;
    (void)state;
    open_with_words(&bench);
    for (int forget = 0; forget < 2; forget++) {
        load(&bench, 64, 128, true, forget);
        for (uint32_t size = 256; size < 272; size++)
            for (uint32_t i = 0; i < KINDS; i++) {
                const struct kind *kind = &kinds[i];
                uint32_t at = last_place(kind, size), past = at + kind->alignment;
                char says[100];
                bench.dynamic_bytes = size;
                ptxgen_emulator_fault fault = run(&bench, i, at);
                wrong += expect(kind, size, at, PTXGEN_CHECK_NONE, "", &fault);
                fault = run(&bench, i, past);
                sprintf(says, "out of bounds: the CTA has %u bytes of shared memory", 640 + size);
                wrong += expect(kind, size, past, PTXGEN_CHECK_BOUNDS, says, &fault);
            }
    }
    bench_close(&bench);
    assert_int_equal(wrong, 0);
}

/* Whether all is in one of the buffers; wgmma reads 16 bytes at a time. */
static bool in_any(const struct kind *kind, uint32_t size, uint32_t gap, uint32_t at)
{
    uint32_t piece = strncmp(kind->name, "wgmma", 5) == 0 ? 16 : kind->bytes, second = size + gap;
    for (uint32_t from = at; from < at + kind->bytes; from += piece)
        if (from + piece > size && (from < second || from + piece > second + SECOND_BYTES))
            return false;
    return true;
}

/* `gap` bytes of padding are before the second buffer. */
static int check_buffer(struct bench *bench, uint32_t i, uint32_t size, uint32_t gap, bool forget,
                        uint32_t at)
{
    enum { FIRST_AT = 256 };
    const struct kind *kind = &kinds[i];
    char says[200] = "";
    bool fault_due = at + kind->bytes > size && !(forget && in_any(kind, size, gap, at));
    ptxgen_emulator_fault fault = run(bench, i, at);
    if (fault_due && !forget)
        sprintf(says,
                "of shared memory are not all in the buffer 'first', %u bytes from offset %d "
                "on, from which the address comes",
                size, FIRST_AT);
    else if (fault_due)
        strcpy(says, "of shared memory are not all in any buffer: the one before them is 'first'");
    return expect(kind, size, at, fault_due ? PTXGEN_CHECK_SHARED_BUFFERS : PTXGEN_CHECK_NONE, says,
                  &fault);
}

static void an_access_stays_in_its_buffer_to_the_byte(void **state)
{
    static const uint32_t remainders[] = {0, 1, 2, 3, 4, 6, 8, 12, 15};
    struct bench bench;
    int wrong = 0;
    (void)state;
    open_with_words(&bench);
    for (size_t r = 0; r < sizeof remainders / sizeof *remainders; r++)
        for (uint32_t alignment = 1; alignment <= 128; alignment *= 128)
            for (int forget = 0; forget < 2; forget++) {
                uint32_t size = FIRST_BYTES + remainders[r];
                uint32_t gap = (alignment - size % alignment) % alignment;
                load(&bench, size, alignment, false, forget);
                for (uint32_t i = 0; i < KINDS; i++) {
                    uint32_t at = last_place(&kinds[i], size);
                    wrong += check_buffer(&bench, i, size, gap, forget, at);
                    wrong += check_buffer(&bench, i, size, gap, forget, at + kinds[i].alignment);
                    wrong += check_buffer(&bench, i, size, gap, forget,
                                          last_place(&kinds[i], size + gap));
                    wrong +=
                        check_buffer(&bench, i, size, gap, forget, (size + gap + 127) / 128 * 128);
                }
            }
    bench_close(&bench);
    assert_int_equal(wrong, 0);
}

/* ---- where addresses come from ---- */

struct path {
    const char *name, *text; /* from `first` in %r9 and `second` in %r8 to %r10, and an access */
    bool known;              /* that %r10 points into `first` */
};

static const struct path paths[] = {
    {"by_itself", "mov.u32 %r10, %r9;\n", true},
    {"a_sum", "add.u32 %r10, %r9, %r3;\nsub.u32 %r10, %r10, %r3;\n", true},
    {"a_product", "mad.lo.u32 %r10, %r3, 0, %r9;\n", true},
    {"a_mask", "or.b32 %r10, %r9, 0;\nxor.b32 %r10, %r10, %r4;\n", true},
    {"wide_and_back",
     "cvt.u64.u32 %rd3, %r9;\ncvta.shared.u64 %rd3, %rd3;\n"
     "cvta.to.shared.u64 %rd3, %rd3;\ncvt.u32.u64 %r10, %rd3;\n",
     true},
    {"packed", "mov.b64 %rd3, {%r9, %r4};\nmov.b64 {%r10, %r5}, %rd3;\n", true},
    {"shuffled", "shfl.sync.idx.b32 %r10, %r9, 0, 31, -1;\n", true},
    {"in_a_loop",
     "mov.u32 %r10, %r9;\nmov.u32 %r5, 3;\nLOOP: add.u32 %r10, %r10, 4;\n"
     "sub.u32 %r5, %r5, 1;\nsetp.ne.u32 %p2, %r5, 0;\n@%p2 bra LOOP;\n"
     "sub.u32 %r10, %r10, 12;\n",
     true},
    {"one_of_two_places",
     "add.u32 %r5, %r9, 4;\nsetp.eq.u32 %p2, %r4, 0;\n"
     "selp.b32 %r10, %r9, %r5, %p2;\n",
     true},
    {"an_offset_that_was_loaded",
     "st.local.u32 [frame], 0;\nld.local.u32 %r5, [frame];\n"
     "add.u32 %r10, %r9, %r5;\n",
     true},
    {"one_of_two_buffers", "setp.eq.u32 %p2, %r4, 0;\nselp.b32 %r10, %r9, %r8, %p2;\n", false},
    {"a_register_of_two_buffers",
     "mov.u32 %r10, %r8;\nld.shared.u32 %r5, [%r10];\n"
     "mov.u32 %r10, %r9;\n",
     false},
    {"a_difference_of_buffers",
     "sub.u32 %r5, %r8, %r9;\nadd.u32 %r10, %r9, %r5;\n"
     "sub.u32 %r10, %r10, %r5;\n",
     false},
    {"through_memory", "st.local.u32 [frame], %r9;\nld.local.u32 %r10, [frame];\n", false},
    {"a_number", "mov.u32 %r10, 0;\n", false},
};

static ptxgen_emulator_fault run_path(struct bench *bench, const struct path *path, uint32_t at)
{
    char body[1500];
    snprintf(body, sizeof body,
             ".reg .pred %%p<4>; .reg .b32 %%r<20>; .reg .b64 %%rd<9>;\n"
             ".local .align 4 .b8 frame[4];\n.shared .align 16 .b8 first[32];\n"
             ".shared .align 16 .b8 second[32];\n"
             "mov.u32 %%r9, first;\nmov.u32 %%r8, second;\nmov.u32 %%r3, 8;\nmov.u32 %%r4, 0;\n"
             "%sld.shared.u32 %%r6, [%%r10+%u];\nret;",
             path->text, at);
    bench_kernel(bench, "sm_90", "", body);
    bench_launch(bench, "k", 1, 32, NULL);
    ptxgen_emulator_fault fault = bench_fault(bench);
    ptxgen_emulator_clear_fault(bench->context);
    return fault;
}

static void an_address_stays_in_the_buffer_that_it_comes_from(void **state)
{
    struct bench bench;
    (void)state;
    open_with_words(&bench);
    bench.cluster = 1;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        ptxgen_emulator_fault inside = run_path(&bench, &paths[i], 28);
        ptxgen_emulator_fault beside = run_path(&bench, &paths[i], 32);
        if (inside.check != PTXGEN_CHECK_NONE)
            fail_msg("%s: %s", paths[i].name, inside.message);
        if (beside.check != (paths[i].known ? PTXGEN_CHECK_SHARED_BUFFERS : PTXGEN_CHECK_NONE))
            fail_msg("%s: '%s'", paths[i].name, beside.message);
    }
    bench_close(&bench);
}

static void an_mbarrier_is_named_by_its_own_address(void **state)
{
    static const char *const uses[] = {
        "mbarrier.arrive.shared.b64 %rd3, [%r9+8];\n",
        "mbarrier.test_wait.parity.shared.b64 %p2, [first+8], 1;\n",
        "mbarrier.inval.shared.b64 [%r9+8];\n", "cp.async.mbarrier.arrive.shared.b64 [%r9+8];\n",
        "cp.async.bulk.shared::cluster.global." BULK " [%r7], [%rd1], 16, [%r9+8];\n"};
    struct bench bench;
    (void)state;
    open_with_words(&bench);
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        char body[1000];
        snprintf(body, sizeof body,
                 ".reg .pred %%p<4>; .reg .b32 %%r<20>; .reg .b64 %%rd<9>;\n"
                 ".shared .b64 first;\n.shared .b64 second;\n.shared .align 16 .b8 data[16];\n"
                 "ld.param.u64 %%rd1, [pa];\nmov.u32 %%r9, first;\nmov.u32 %%r8, second;\n"
                 "mov.u32 %%r7, data;\nmbarrier.init.shared.b64 [%%r8], 2;\n%sret;",
                 uses[i]);
        bench_kernel(&bench, "sm_90", ".param .u64 pa", body);
        bench_launch(&bench, "k", 1, 1, (void *[]){&bench.buffers[0]});
        ptxgen_emulator_fault fault = bench_fault(&bench);
        ptxgen_emulator_clear_fault(bench.context);
        assert_int_equal(fault.check, PTXGEN_CHECK_SHARED_BUFFERS);
        assert_non_null(strstr(fault.message, "8 bytes at offset 8 of shared memory are not all in "
                                              "the buffer 'first', 8 bytes from offset 0 on"));
    }
    bench_close(&bench);
}

static void bounds_of_buffers_can_be_disabled(void **state)
{
    const ptxgen_emulator_options options = {.disabled_checks = PTXGEN_CHECK_SHARED_BUFFERS |
                                                                PTXGEN_CHECK_SHARED_INIT};
    struct bench bench;
    (void)state;
    open_with_words(&bench);
    bench_options(&bench, &options);
    for (uint32_t at = 29; at < 40; at++) {
        ptxgen_emulator_fault fault = run_path(&bench, &paths[0], at / 4 * 4);
        assert_string_equal(fault.message, "");
    }
    bench_close(&bench);
}

/* Accesses of every kind that lie in two buffers. */
static void bounds_of_buffers_can_be_disabled_for_every_access(void **state)
{
    const ptxgen_emulator_options options = {.workers = 1,
                                             .disabled_checks = ~(uint32_t)PTXGEN_CHECK_BOUNDS};
    struct bench bench;
    int wrong = 0;
    (void)state;
    open_with_words(&bench);
    bench_options(&bench, &options);
    for (int forget = 0; forget < 2; forget++) {
        load(&bench, 72, 8, false, forget);
        for (uint32_t i = 0; i < KINDS; i++) {
            uint32_t at = last_place(&kinds[i], 72) + kinds[i].alignment;
            ptxgen_emulator_fault fault = run(&bench, i, at);
            wrong += expect(&kinds[i], 72, at, PTXGEN_CHECK_NONE, "", &fault);
        }
    }
    bench_close(&bench);
    assert_int_equal(wrong, 0);
}

/* Dynamic memory is declared without a size: it has what the launch gives it. */
static void dynamic_memory_ends_with_the_launch(void **state)
{
    enum { SIZE = 264, DYNAMIC_AT = 640 };
    struct bench bench;
    int wrong = 0;
    (void)state;
    open_with_words(&bench);
    load(&bench, 64, 128, true, false);
    bench.dynamic_bytes = SIZE;
    for (uint32_t i = 0; i < KINDS; i++) {
        uint32_t before = 0u - kinds[i].alignment;
        char says[200];
        ptxgen_emulator_fault fault = run(&bench, i, before);
        sprintf(says,
                "of shared memory are not all in the buffer 'dynamic memory', %d bytes from offset "
                "%d on, "
                "from which the address comes",
                SIZE, DYNAMIC_AT);
        wrong += expect(&kinds[i], SIZE, before, PTXGEN_CHECK_SHARED_BUFFERS, says, &fault);
    }
    bench_close(&bench);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_access_stays_in_the_memory_to_the_byte),
        cmocka_unit_test(an_access_stays_in_its_buffer_to_the_byte),
        cmocka_unit_test(an_address_stays_in_the_buffer_that_it_comes_from),
        cmocka_unit_test(an_mbarrier_is_named_by_its_own_address),
        cmocka_unit_test(bounds_of_buffers_can_be_disabled),
        cmocka_unit_test(bounds_of_buffers_can_be_disabled_for_every_access),
        cmocka_unit_test(dynamic_memory_ends_with_the_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
