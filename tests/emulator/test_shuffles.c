/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shfl.sync of every mode, by every distance, with every clamp and every mask of segments (ISA
 * "shfl.sync"): lane by lane against a model of the segments. A CTA has one operand c, each of its
 * 32 warps one operand b.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

enum { UP, DOWN, BFLY, IDX, MODES };
enum { LANES = 32, DISTANCES = 32, CLAMPS = 32, SEGMENTS = 32, BLOCK = LANES * DISTANCES };

static const char *const names[MODES] = {"up", "down", "bfly", "idx"};

/* What lane l carries. */
static uint32_t payload(uint32_t lane)
{
    return 1000 + 7 * lane;
}

/*
 * A lane's segment is the lanes that agree with it in the bits of the mask; the clamp's other bits
 * pick the lane of the segment beyond which nothing is taken: the last, or with .up the first.
 */
static uint32_t source_of(int mode, uint32_t lane, uint32_t b, uint32_t clamp, uint32_t segments,
                          bool *taken)
{
    uint32_t bound = 0, own = 0;
    for (uint32_t bit = 1; bit < LANES; bit *= 2) {
        own += segments & bit ? lane & bit : b & bit;
        bound += segments & bit ? lane & bit : clamp & bit;
    }
    int j = mode == UP     ? (int)lane - (int)b
            : mode == DOWN ? (int)lane + (int)b
            : mode == BFLY ? (int)(lane ^ b)
                           : (int)own;
    *taken = mode == UP ? j >= (int)bound : j <= (int)bound;
    return *taken ? (uint32_t)j : lane;
}

static const char body[] =
    ".reg .pred %p<2>; .reg .b32 %r<20>; .reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [po];\n"
    "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shr.u32 %r3, %r1, 5;\n" /* lane, b */
    "mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; shl.b32 %r6, %r5, 8; or.b32 %r6, %r6, %r4;\n"
    "mad.lo.u32 %r7, %r2, 7, 1000;\n"
    "mad.lo.u32 %r8, %r5, 32, %r4; mad.lo.u32 %r8, %r8, 1024, %r1;\n"
    "mul.wide.u32 %rd2, %r8, 16; add.u64 %rd1, %rd1, %rd2;\n"
    "shfl.sync.up.b32 %r10|%p1, %r7, %r3, %r6, -1; selp.u32 %r14, 0x10000, 0, %p1;\n"
    "or.b32 %r10, %r10, %r14;\n"
    "shfl.sync.down.b32 %r11|%p1, %r7, %r3, %r6, -1; selp.u32 %r14, 0x10000, 0, %p1;\n"
    "or.b32 %r11, %r11, %r14;\n"
    "shfl.sync.bfly.b32 %r12|%p1, %r7, %r3, %r6, -1; selp.u32 %r14, 0x10000, 0, %p1;\n"
    "or.b32 %r12, %r12, %r14;\n"
    "shfl.sync.idx.b32 %r13|%p1, %r7, %r3, %r6, -1; selp.u32 %r14, 0x10000, 0, %p1;\n"
    "or.b32 %r13, %r13, %r14;\n"
    "st.global.v4.u32 [%rd1], {%r10, %r11, %r12, %r13};\nret;";

static int wrong_lanes(uint32_t segments, uint32_t clamp, const uint32_t got[BLOCK][MODES])
{
    int wrong = 0;
    for (uint32_t i = 0; i < BLOCK; i++)
        for (int mode = 0; mode < MODES; mode++) {
            bool taken;
            uint32_t from = source_of(mode, i % 32, i / 32, clamp, segments, &taken);
            uint32_t want = payload(from) | (uint32_t)taken << 16;
            if (got[i][mode] != want && wrong++ < 3)
                print_error("shfl.%s lane %u, b %u, clamp %u, segments 0x%02x: %x, not %x\n",
                            names[mode], i % 32, i / 32, clamp, segments, got[i][mode], want);
        }
    return wrong;
}

static void shuffles_take_from_the_lane_that_the_segments_allow(void **state)
{
    (void)state;
    size_t bytes = sizeof(uint32_t[SEGMENTS][CLAMPS][BLOCK][MODES]);
    uint32_t(*got)[CLAMPS][BLOCK][MODES] = malloc(bytes);
    struct bench bench;
    int wrong = 0;
    bench_open(&bench, "cpu:sm_80");
    bench.grid_y = SEGMENTS;
    bench_kernel(&bench, "sm_80", ".param .u64 po", body);
    ptxgen_cu_deviceptr out = bench_blank(&bench, bytes);
    bench_run(&bench, "k", CLAMPS, BLOCK, (void *[]){&out});
    bench_read(&bench, got, out, bytes);
    for (uint32_t segments = 0; segments < SEGMENTS; segments++)
        for (uint32_t clamp = 0; clamp < CLAMPS; clamp++)
            wrong += wrong_lanes(segments, clamp, (const uint32_t(*)[MODES])got[segments][clamp]);
    assert_int_equal(wrong, 0);
    free(got);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffles_take_from_the_lane_that_the_segments_allow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
