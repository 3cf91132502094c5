/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a module takes from creation to text and destruction, by kernel size. Prints a table;
 * decides nothing. The kernel is shaped like a GEMM: a few loops of loads, multiply-adds, shuffled
 * integer work and guarded stores, so that live ranges of all lengths occur.
 *
 *     bench_emission [repeats]
 */
#include <ptxgen/instr.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ACCUMULATORS = 32, LOOPS = 4 };

static void emit_turn(ptx_kernel *k, ptx_u64 p, ptx_u32 s, ptx_u32 i, ptx_f32 *sum, int turn)
{
    ptx_u32 w[4];
    ptx_ld_global_nc_v4_u32(k, w, p, 16 * turn);
    for (int j = 0; j < 4; j++) {
        ptx_u32 low = ptx_and_b32(k, w[j], ptx_imm_u32(0x0f0f0f0f));
        ptx_u32 high = ptx_and_b32(k, ptx_shr_u32(k, w[j], ptx_imm_u32(4)), ptx_imm_u32(0x0f0f0f0f));
        ptx_f32 a = ptx_u32_as_f32(ptx_lop3_b32(k, low, high, i, 0x6a));
        ptx_f32 b = ptx_ld_shared_f32(k, s, 4 * (turn * 4 + j) % 1024);
        ptx_f32 *to = &sum[(turn * 4 + j) % ACCUMULATORS];
        ptx_fma_f32_to(k, *to, a, b, *to);
    }
    if (turn % 8 == 7) {
        ptx_pred last = ptx_setp_eq_u32(k, i, ptx_imm_u32((uint32_t)turn));
        ptx_guarded(k, last) ptx_st_global_f32(k, p, 4 * turn, sum[turn % ACCUMULATORS]);
    }
}

/* About `instructions` instructions; a turn has 22. */
static void emit_kernel(ptx_kernel *k, int instructions)
{
    int turns = instructions / 22 / LOOPS;
    ptx_kernel_reqntid(k, 128, 1, 1);
    ptx_u64 p = ptx_param_u64(k, "p");
    ptx_u32 n = ptx_param_u32(k, "n");
    ptx_u32 s = ptx_shared_address(k, ptx_shared_declare(k, "s", 4096, 16));
    ptx_f32 sum[ACCUMULATORS];
    for (int j = 0; j < ACCUMULATORS; j++)
        sum[j] = ptx_mov_f32(k, ptx_imm_f32(0));
    for (int loop = 0; loop < LOOPS; loop++) {
        ptx_u32 i = ptx_mov_u32(k, ptx_imm_u32(0));
        ptx_for(k, i, n, ptx_imm_u32(1))
            for (int turn = 0; turn < turns; turn++)
                emit_turn(k, p, s, i, sum, turn);
        ptx_bar_sync(k, 0);
    }
    for (int j = 0; j < ACCUMULATORS; j++)
        ptx_st_global_f32(k, p, 4 * j, sum[j]);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct lap {
    double emit, end, text, all;
    size_t instructions, bytes;
};

static int run(int instructions, struct lap *lap)
{
    ptx_target target = {.sm = 80};
    double start = seconds();
    ptx_module *m = ptx_module_create(&target, NULL);
    if (!m)
        return 1;
    ptx_kernel *k = ptx_kernel_begin(m, "bench");
    emit_kernel(k, instructions);
    double emitted = seconds();
    ptx_kernel_end(k);
    double ended = seconds();
    const char *text;
    ptxgen_error err;
    if (ptx_module_text(m, 0, &text, &lap->bytes, &err) != PTXGEN_OK) {
        fprintf(stderr, "%s\n", err.message);
        ptx_module_destroy(m);
        return 1;
    }
    double written = seconds();
    ptx_kernel_info info;
    ptx_module_kernel_info(m, 0, &info);
    ptx_module_destroy(m);
    double all = seconds() - start;
    lap->instructions = info.instructions;
    if (!lap->all || all < lap->all) {
        lap->all = all;
        lap->emit = emitted - start;
        lap->end = ended - emitted;
        lap->text = written - ended;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const int sizes[] = {1000, 3000, 10000, 30000, 100000};
    int repeats = argc > 1 ? atoi(argv[1]) : 20;
    printf("instructions  text bytes   emit us    end us   text us    all us   ns/instruction\n");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct lap lap = {0};
        for (int j = 0; j < repeats; j++)
            if (run(sizes[i], &lap))
                return 1;
        printf("%12zu %11zu %9.0f %9.0f %9.0f %9.0f %16.0f\n", lap.instructions, lap.bytes,
               1e6 * lap.emit, 1e6 * lap.end, 1e6 * lap.text, 1e6 * lap.all,
               1e9 * lap.all / (double)lap.instructions);
    }
    return 0;
}
