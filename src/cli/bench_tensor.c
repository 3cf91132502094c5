/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensor cores' ceiling: each warp multiplies the same operands again and again, from registers
 * by mma.sync into eight accumulators, or where there is wgmma, each warpgroup from shared memory
 * into its one, which comes back in order. Operands are random, since zeros would let the chip's
 * clock go higher than any work does. Sums are stored only if they have one certain value, so that
 * nothing is dead and no store is made.
 */
#include "bench_tensor.h"

#include "../harness/bench_probe.h"

#include <ptxgen/instr.h>

enum {
    THREADS = 256,
    UNROLLED = 16, /* instructions in a turn of the loop */
    ACCUMULATORS = 8,
    WGMMA_N = 256,
    CORE = 128, /* bytes of 8 rows of 16 bytes, which lie together */
    A_BYTES = 64 * 32,
    B_BYTES = WGMMA_N * 32,
};

/* ---- the kernels ---- */

/* Two f16 of less than 2 in magnitude. */
static ptx_u32 random_pair(ptx_kernel *k, ptx_u32 seed)
{
    ptx_u32 bits = ptx_mul_lo_u32(k, seed, ptx_imm_u32(0x9E3779B1));
    bits = ptx_xor_b32(k, bits, ptx_shr_u32(k, bits, ptx_imm_u32(15)));
    bits = ptx_mul_lo_u32(k, bits, ptx_imm_u32(0x85EBCA77));
    return ptx_and_b32(k, bits, ptx_imm_u32(0xBFFFBFFF));
}

static void store_if(ptx_kernel *k, ptx_u64 out, const ptx_f32 *sums, int count)
{
    ptx_f32 sum = sums[0];
    for (int i = 1; i < count; i++)
        sum = ptx_add_f32(k, sum, sums[i]);
    ptx_if(k, ptx_setp_eq_f32(k, sum, ptx_imm_f32(0.123f)))
        ptx_st_global_f32(k, out, 0, sum);
}

static void emit_mma(ptx_module *module)
{
    ptx_kernel *k = ptx_kernel_begin(module, "tensor_ceiling");
    ptx_kernel_reqntid(k, THREADS, 1, 1);
    ptx_u64 out = ptx_param_u64(k, "out");
    ptx_u32 turns = ptx_param_u32(k, "turns"), turn = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_u32 a[4], b[2], seed = ptx_mul_lo_u32(k, ptx_sreg_tid_x(k), ptx_imm_u32(8));
    ptx_f32 sums[ACCUMULATORS][4];
    for (unsigned i = 0; i < 6; i++)
        *(i < 4 ? &a[i] : &b[i - 4]) = random_pair(k, ptx_add_u32(k, seed, ptx_imm_u32(i)));
    for (int i = 0; i < ACCUMULATORS; i++)
        for (int j = 0; j < 4; j++)
            sums[i][j] = ptx_mov_f32(k, ptx_imm_f32(0));
    ptx_for(k, turn, turns, ptx_imm_u32(1))
        for (int i = 0; i < UNROLLED; i++) {
            ptx_f32 *c = sums[i % ACCUMULATORS];
            ptx_mma_m16n8k16_f32_f16_to(k, c, a, b, c);
        }
    store_if(k, out, sums[0], ACCUMULATORS * 4);
    ptx_kernel_end(k);
}

/* Operands without a swizzle: core matrices follow each other along K, then along rows. */
static ptx_u64 descriptor(ptx_kernel *k, ptx_u32 address)
{
    const uint64_t fields = (uint64_t)(CORE / 16) << 16 | (uint64_t)(2 * CORE / 16) << 32;
    ptx_u32 start = ptx_bfe_u32(k, address, ptx_imm_u32(4), ptx_imm_u32(14));
    return ptx_or_b64(k, ptx_cvt_u64_u32(k, start), ptx_imm_u64(fields));
}

static void fill(ptx_kernel *k, ptx_u32 shared)
{
    ptx_u32 tid = ptx_sreg_tid_x(k);
    ptx_u32 at = ptx_mad_lo_u32(k, tid, ptx_imm_u32(4), shared);
    for (unsigned i = 0; i < (A_BYTES + B_BYTES) / 4 / THREADS; i++)
        ptx_st_shared_u32(k, at, (int)(4 * THREADS * i),
                          random_pair(k, ptx_add_u32(k, tid, ptx_imm_u32(THREADS * i))));
    ptx_fence_proxy_async(k);
    ptx_bar_sync(k, 0);
}

static void emit_wgmma(ptx_module *module)
{
    ptx_kernel *k = ptx_kernel_begin(module, "tensor_ceiling");
    ptx_kernel_reqntid(k, THREADS, 1, 1);
    ptx_u64 out = ptx_param_u64(k, "out");
    ptx_u32 turns = ptx_param_u32(k, "turns"), turn = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_u32 shared =
        ptx_shared_address(k, ptx_shared_declare(k, "operands", A_BYTES + B_BYTES, CORE));
    ptx_f32 sums[WGMMA_N / 2];
    fill(k, shared);
    ptx_u64 a = descriptor(k, shared);
    ptx_u64 b = descriptor(k, ptx_add_u32(k, shared, ptx_imm_u32(A_BYTES)));
    ptx_pred accumulate = ptx_setp_ne_u32(k, turns, ptx_imm_u32(0));
    for (int i = 0; i < WGMMA_N / 2; i++)
        sums[i] = ptx_mov_f32(k, ptx_imm_f32(0));
    ptx_for(k, turn, turns, ptx_imm_u32(1)) {
        ptx_wgmma_fence(k);
        for (int i = 0; i < UNROLLED; i++)
            ptx_wgmma_k16_f32_f16(k, WGMMA_N, sums, a, b, accumulate, 1, 1, 0, 0);
        ptx_wgmma_commit_group(k);
        ptx_wgmma_wait_group(k, 0);
    }
    store_if(k, out, sums, WGMMA_N / 2);
    ptx_kernel_end(k);
}

/* The forms, the better first; operations are those of a CTA's warps or warpgroups at once. */
static const struct form {
    const char *name;
    int sm;
    char suffix;
    double operations;
    void (*emit)(ptx_module *module);
} forms[] = {
    {"wgmma.m64n256k16", 90, 'a', THREADS / 128 * 2.0 * 64 * WGMMA_N * 16, emit_wgmma},
    {"mma.m16n8k16", 80, 0, THREADS / 32 * 2.0 * 16 * 8 * 16, emit_mma},
};

/* An exact target's form is for that chip alone. */
static const struct form *form_for(ptx_target *target)
{
    const struct form *form = &forms[0];
    ptx_target exact = *target;
    exact.sm = form->sm;
    exact.suffix = form->suffix;
    if (target->sm != form->sm || ptx_target_check(&exact, NULL) != PTXGEN_OK)
        return &forms[1];
    *target = exact;
    return form;
}

/* ---- measuring ---- */

struct multiplier {
    struct probe probe;
    ptxgen_cu_deviceptr out;
    uint32_t turns;
    unsigned ctas; /* of the grid */
};

static ptxgen_status launch(void *state, uint32_t copy, ptxgen_error *err)
{
    struct multiplier *m = state;
    void *arguments[] = {&m->out, &m->turns};
    const ptxgen_launch_shape shape = {.grid = {m->ctas, 1, 1}, .block = {THREADS, 1, 1}};
    (void)copy;
    return ptxgen_launch(m->probe.kernel, &shape, m->probe.device->stream, arguments, err);
}

static ptxgen_status measure(struct multiplier *m, const struct form *form, unsigned replays,
                             struct tensor_ceiling *ceiling, ptxgen_error *err)
{
    struct device *device = m->probe.device;
    double operations = m->ctas * (double)m->turns * UNROLLED * form->operations;
    ptxgen_status status =
        device_check(device, device->driver.mem_alloc(&m->out, 4), "allocating a word", err);
    if (status == PTXGEN_OK)
        status = bench_time(device, launch, m, 1, device->emulated ? 1 : 4, replays,
                            &ceiling->timing, err);
    ceiling->form = form->name;
    ceiling->rate = operations / ceiling->timing.median;
    return status;
}

ptxgen_status bench_tensor_ceiling(struct device *device, unsigned replays,
                                   struct tensor_ceiling *ceiling, ptxgen_error *err)
{
    enum { CTAS = 2 }; /* a multiprocessor, twice over: a wgmma's CTA has it to itself */
    ptx_target target = ptxgen_device_target(&device->facts).ptx;
    const struct form *form = form_for(&target);
    struct multiplier m = {.turns = device->emulated ? 1 : 400,
                           .ctas =
                               device->emulated ? 1 : 2 * CTAS * (unsigned)device->facts.sm_count};
    ptxgen_status status = probe_load(&m.probe, device, &target, form->emit, "tensor_ceiling", err);
    if (status == PTXGEN_OK)
        status = measure(&m, form, replays, ceiling, err);
    if (m.out)
        device->driver.mem_free(m.out);
    probe_free(&m.probe);
    return status;
}
