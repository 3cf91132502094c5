/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CTA for each sequence. What is compared is a number of 64 bits: above, the logit's bits,
 * changed so that they order as the values do; below, the complement of the id, so that of equal
 * logits the first wins.
 */
#include "greedy.h"

#include "emit.h"

#include <stdio.h>
#include <string.h>

enum { THREADS = 1024, UNROLL = 4 };

struct greedy_plan {
    struct greedy_spec spec;
    ptxgen_target target;
};

static void consider(ptx_kernel *k, ptx_u64 best, ptx_u32 bits, ptx_u32 id)
{
    ptx_s32 sign = ptx_shr_s32(k, ptx_u32_as_s32(bits), U32(31));
    ptx_u32 flip = ptx_or_b32(k, ptx_s32_as_u32(sign), U32(0x80000000));
    ptx_u32 halves[2];
    halves[0] = ptx_not_b32(k, id);
    halves[1] = ptx_xor_b32(k, bits, flip);
    ptx_max_u64_to(k, best, best, ptx_pack_u64(k, halves));
}

/* The thread's best of the logits at `row`; ids past the end are read as the last ones. */
static ptx_u64 find_best(ptx_kernel *k, uint32_t n, ptx_u64 row, ptx_u32 tid)
{
    const uint32_t width = n % 4 ? 1 : 4;
    ptx_u64 best = ptx_mov_u64(k, ptx_imm_u64(0));
    ptx_u32 base = ptx_mov_u32(k, U32(0)), mine = ptx_mul_lo_u32(k, tid, U32(width));
    ptx_for(k, base, U32(n), U32(UNROLL * THREADS * width)) {
        ptx_nounroll(k);
        ptx_u32 first[UNROLL], bits[UNROLL][4];
        for (uint32_t u = 0; u < UNROLL; u++) {
            ptx_u32 id = ptx_add_u32(k, base, U32(u * THREADS * width));
            first[u] = ptx_min_u32(k, ptx_add_u32(k, id, mine), U32(n - width));
            ptx_u64 at = ptx_mad_wide_u32(k, first[u], U32(4), row);
            if (width == 4)
                ptx_ld_global_v4_u32(k, bits[u], at, 0);
            else
                bits[u][0] = ptx_ld_global_u32(k, at, 0);
        }
        for (uint32_t u = 0; u < UNROLL; u++)
            for (uint32_t i = 0; i < width; i++)
                consider(k, best, bits[u][i], ptx_add_u32(k, first[u], U32(i)));
    }
    return best;
}

static void share_among_lanes(ptx_kernel *k, ptx_u64 best)
{
    for (uint32_t mask = 1; mask < 32; mask *= 2) {
        ptx_u32 halves[2];
        ptx_unpack_u64(k, halves, best);
        for (int i = 0; i < 2; i++)
            halves[i] = ptx_shfl_sync_bfly_u32(k, halves[i], U32(mask), U32(31), ALL_LANES);
        ptx_max_u64_to(k, best, best, ptx_pack_u64(k, halves));
    }
}

/* The best of all warps, in every lane of every warp. */
static void share_among_warps(ptx_kernel *k, ptx_u64 best, ptx_u32 tid)
{
    ptx_u32 slots = ptx_shared_address(k, ptx_shared_declare(k, "best of the warps", 32 * 8, 8));
    ptx_u32 lane = ptx_and_b32(k, tid, U32(31)), warp = ptx_shr_u32(k, tid, U32(5));
    ptx_if(k, ptx_setp_eq_u32(k, lane, U32(0)))
        ptx_st_shared_u64(k, ptx_mad_lo_u32(k, warp, U32(8), slots), 0, best);
    ptx_bar_sync(k, 0);
    ptx_mov_u64_to(k, best, ptx_ld_shared_u64(k, ptx_mad_lo_u32(k, lane, U32(8), slots), 0));
    share_among_lanes(k, best);
}

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    const struct greedy_plan *p = plan;
    const uint32_t n = p->spec.vocabulary;
    ptx_kernel *k = ptx_kernel_begin(module, "greedy");
    ptx_kernel_reqntid(k, THREADS, 1, 1);
    ptx_u64 logits = ptx_param_u64(k, "logits"), ids = ptx_param_u64(k, "ids");
    ptx_u64 positions = ptx_param_u64(k, "positions");
    emit_let_next_begin(k);
    emit_wait_for_previous(k);
    ptx_u32 tid = ptx_sreg_tid_x(k), sequence = ptx_sreg_ctaid_x(k);
    ptx_u64 row =
        ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, sequence), ptx_imm_u64(4 * (uint64_t)n), logits);
    ptx_u64 best = find_best(k, n, row, tid);
    share_among_lanes(k, best);
    share_among_warps(k, best, tid);
    ptx_if(k, ptx_setp_eq_u32(k, tid, U32(0))) {
        ptx_u32 halves[2];
        ptx_unpack_u64(k, halves, best);
        ptx_u32 id = ptx_not_b32(k, halves[0]);
        ptx_st_global_u32(k, ptx_mad_wide_u32(k, sequence, U32(4), ids), 0, id);
        ptx_u64 at = ptx_mad_wide_u32(k, sequence, U32(4), positions);
        ptx_u32 position = ptx_ld_global_u32(k, at, 0);
        ptx_st_global_u32(k, at, 0, ptx_add_u32(k, position, U32(1)));
    }
    ptx_kernel_end(k);
    return ptx_module_status(module, err);
}

static ptxgen_status make_plan(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err)
{
    struct greedy_plan *p = plan;
    memset(p, 0, sizeof *p);
    memcpy(&p->spec, spec, sizeof p->spec);
    p->target = *target;
    if (p->spec.vocabulary < 4)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "greedy: a vocabulary of %u tokens; at least 4 are due",
                           p->spec.vocabulary);
    return PTXGEN_OK;
}

static void describe(const void *spec, char *text, size_t size)
{
    snprintf(text, size, "vocabulary=%u", ((const struct greedy_spec *)spec)->vocabulary);
}

const ptxgen_family *greedy_family(void)
{
    static const ptxgen_family family = {.name = "generate_greedy",
                                         .plan_version = 1,
                                         .spec_bytes = sizeof(struct greedy_spec),
                                         .plan_bytes = sizeof(struct greedy_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .describe = describe};
    return &family;
}

ptxgen_status greedy_launch(const ptxgen_loaded *loaded, const struct greedy_args *args,
                            ptxgen_cu_stream stream, ptxgen_error *err)
{
    const struct greedy_plan *plan = ptxgen_loaded_plan(loaded);
    struct greedy_args a = *args;
    void *parameters[] = {&a.logits, &a.ids, &a.positions};
    ptxgen_launch_shape shape = launch_shape(&plan->target, THREADS, a.m, 1, 1);
    return ptxgen_launch(ptxgen_loaded_entry(loaded, 0), &shape, stream, parameters, err);
}
