/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The read ceiling: persistent CTAs stride over 2 GiB of random data, 16 bytes a load and eight
 * loads in flight a thread, and fold what they read into one word by exclusive or. The word is
 * stored only if it has one certain value, so that no load is dead and no store is made.
 */
#include "bench_ceiling.h"

#include "../harness/bench_probe.h"
#include "../harness/operand.h"

#include <ptxgen/instr.h>

enum { THREADS = 512, LOADS = 8, LOAD_BYTES = 16, MAX_CTAS = 4 };

static void emit_kernel(ptx_module *module)
{
    ptx_kernel *k = ptx_kernel_begin(module, "read_ceiling");
    ptx_kernel_reqntid(k, THREADS, 1, 1);
    ptx_u64 data = ptx_param_u64(k, "data"), out = ptx_param_u64(k, "out");
    ptx_u64 stride = ptx_param_u64(k, "stride"); /* bytes that all threads load at once */
    ptx_u32 turns = ptx_param_u32(k, "turns");
    ptx_u32 cta = ptx_sreg_ctaid_x(k), tid = ptx_sreg_tid_x(k);
    ptx_u32 thread = ptx_mad_lo_u32(k, cta, ptx_imm_u32(THREADS), tid);
    ptx_u64 at = ptx_mad_wide_u32(k, thread, ptx_imm_u32(LOAD_BYTES), data);
    ptx_u32 folded = ptx_mov_u32(k, ptx_imm_u32(0)), turn = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_for(k, turn, turns, ptx_imm_u32(1)) {
        ptx_u32 words[LOADS][4];
        for (int i = 0; i < LOADS; i++) {
            ptx_ld_global_nc_v4_u32(k, words[i], at, 0);
            ptx_add_u64_to(k, at, at, stride);
        }
        for (int i = 0; i < LOADS; i++)
            for (int j = 0; j < 4; j++)
                ptx_xor_b32_to(k, folded, folded, words[i][j]);
    }
    ptx_if(k, ptx_setp_eq_u32(k, folded, ptx_imm_u32(0x9E3779B9)))
        ptx_st_global_u32(k, out, 0, folded);
    ptx_kernel_end(k);
}

struct reader {
    struct device *device;
    struct probe probe;
    struct bench_memory memory;
    uint64_t data, out; /* device addresses */
    uint64_t bytes;     /* of data */
    unsigned ctas;
};

static uint64_t stride_of(const struct reader *r)
{
    return (uint64_t)r->ctas * (unsigned)r->device->facts.sm_count * THREADS * LOAD_BYTES;
}

static uint32_t turns_of(const struct reader *r)
{
    return (uint32_t)(r->bytes / (stride_of(r) * LOADS));
}

static ptxgen_status launch(void *state, uint32_t copy, ptxgen_error *err)
{
    struct reader *r = state;
    uint64_t stride = stride_of(r);
    uint32_t turns = turns_of(r);
    void *arguments[] = {&r->data, &r->out, &stride, &turns};
    ptxgen_launch_shape shape = {
        .grid = {(uint64_t)r->ctas * (unsigned)r->device->facts.sm_count, 1, 1},
        .block = {THREADS, 1, 1}};
    (void)copy;
    return ptxgen_launch(r->probe.kernel, &shape, r->device->stream, arguments, err);
}

static ptxgen_status allocate(struct reader *r, ptxgen_error *err)
{
    size_t free_bytes, total;
    ptxgen_status status =
        device_check(r->device, r->device->driver.mem_get_info(&free_bytes, &total),
                     "asking for free memory", err);
    if (status != PTXGEN_OK)
        return status;
    r->bytes = free_bytes / 2 < (size_t)2 << 30 ? free_bytes / 2 : (size_t)2 << 30;
    if (r->device->emulated) /* one turn of the smallest grid: the time means nothing */
        r->bytes = (uint64_t)(unsigned)r->device->facts.sm_count * THREADS * LOADS * LOAD_BYTES;
    status =
        bench_random_memory(&r->memory, "the read ceiling", ELEMENT_BYTES, r->bytes, &r->data, err);
    if (status == PTXGEN_OK)
        status = bench_zeroed_memory(&r->memory, "a word", 4, &r->out, err);
    return status;
}

static ptxgen_status measure(struct reader *r, unsigned replays, struct ceiling *best,
                             ptxgen_error *err)
{
    *best = (struct ceiling){0};
    ptxgen_status status = PTXGEN_OK;
    for (r->ctas = 1; status == PTXGEN_OK && r->ctas <= MAX_CTAS; r->ctas++) {
        struct timing t;
        uint64_t bytes = turns_of(r) * stride_of(r) * LOADS;
        if (!bytes)
            break;
        status = bench_time(r->device, launch, r, 1, r->device->emulated ? 1 : 4, replays, &t, err);
        double bandwidth = (double)bytes / t.median;
        if (status == PTXGEN_OK && !(bandwidth <= best->bandwidth))
            *best = (struct ceiling){bandwidth, bytes, r->ctas, t};
    }
    return status;
}

ptxgen_status bench_ceiling(struct device *device, unsigned replays, struct ceiling *ceiling,
                            ptxgen_error *err)
{
    struct reader r = {.device = device, .memory = {.device = device}};
    const ptxgen_target target = ptxgen_device_target(&device->facts);
    ptxgen_status status =
        probe_load(&r.probe, device, &target.ptx, emit_kernel, "read_ceiling", err);
    if (status == PTXGEN_OK)
        status = allocate(&r, err);
    if (status == PTXGEN_OK)
        status = measure(&r, replays, ceiling, err);
    bench_free(&r.memory);
    probe_free(&r.probe);
    return status;
}
