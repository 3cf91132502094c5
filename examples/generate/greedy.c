/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each CTA finds the best of 2,048 logits of a sequence. What is compared is a number of 64 bits:
 * above, the logit's bits, changed so that they order as the values do; below, the complement of
 * the id, so that of equal logits the first wins. No logit gives 0, which stands for "none yet".
 *
 *     threads   8 logits each          → the best of a warp (redux), of the CTA (shared memory)
 *     CTAs      maximum in the cell    → the CTA that comes last takes it out and leaves zeros
 */
#include "greedy.h"

#include "emit.h"

#include <stdio.h>
#include <string.h>

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    CTA_LOGITS = 2048,
    /* A sequence's cell: the maximum so far and, at COUNT_OFFSET, how many CTAs have come. */
    CELL_BYTES = 16,
    COUNT_OFFSET = 8
};

struct greedy_plan {
    struct greedy_spec spec;
    ptxgen_target target;
};

/*
 * Raises `best` to the number of a logit. Adding 0 makes −0 to 0, which is equal, and any NaN to
 * the one whose bits are 0x7FFFFFFF, which comes above all numbers.
 */
static void consider(ptx_kernel *k, ptx_u64 best, ptx_f32 logit, ptx_u32 id)
{
    ptx_u32 bits = ptx_f32_as_u32(ptx_add_f32(k, logit, F32(0)));
    ptx_s32 sign = ptx_shr_s32(k, ptx_u32_as_s32(bits), U32(31));
    ptx_u32 flip = ptx_or_b32(k, ptx_s32_as_u32(sign), U32(0x80000000));
    ptx_u32 halves[2];
    halves[0] = ptx_not_b32(k, id);
    halves[1] = ptx_xor_b32(k, bits, flip);
    ptx_max_u64_to(k, best, best, ptx_pack_u64(k, halves));
}

/* The best of the thread's logits of CTA `part`. Past the end, the last logits are read again. */
static ptx_u64 find_best(ptx_kernel *k, uint32_t n, ptx_u64 row, ptx_u32 part, ptx_u32 tid)
{
    enum { MOST_WIDTH = 4, MOST_LOADS = CTA_LOGITS / THREADS };
    const uint32_t width = n % MOST_WIDTH ? 1 : MOST_WIDTH, loads = MOST_LOADS / width;
    ptx_u64 best = ptx_mov_u64(k, ptx_imm_u64(0));
    ptx_u32 cta_first = ptx_mul_lo_u32(k, part, U32(CTA_LOGITS));
    ptx_u32 thread_first = ptx_mad_lo_u32(k, tid, U32(width), cta_first);
    ptx_u32 first[MOST_LOADS];
    ptx_f32 logit[MOST_LOADS][MOST_WIDTH];
    for (uint32_t i = 0; i < loads; i++) {
        first[i] = ptx_add_u32(k, thread_first, U32(i * THREADS * width));
        first[i] = ptx_min_u32(k, first[i], U32(n - width));
        ptx_u64 at = ptx_mad_wide_u32(k, first[i], U32(4), row);
        if (width == MOST_WIDTH)
            ptx_ld_global_v4_f32(k, logit[i], at, 0);
        else
            logit[i][0] = ptx_ld_global_f32(k, at, 0);
    }
    for (uint32_t i = 0; i < loads; i++)
        for (uint32_t j = 0; j < width; j++)
            consider(k, best, logit[i][j], ptx_add_u32(k, first[i], U32(j)));
    return best;
}

/*
 * `best` becomes the largest of the warp's, in every lane: the largest upper half, then the largest
 * lower half of the lanes that have that upper half.
 */
static void best_of_lanes(ptx_kernel *k, ptx_u64 best)
{
    ptx_u32 halves[2];
    ptx_unpack_u64(k, halves, best);
    ptx_u32 upper = ptx_redux_sync_max_u32(k, halves[1], ALL_LANES);
    ptx_pred has_it = ptx_setp_eq_u32(k, halves[1], upper);
    ptx_u32 lower = ptx_selp_u32(k, halves[0], U32(0), has_it);
    halves[0] = ptx_redux_sync_max_u32(k, lower, ALL_LANES);
    halves[1] = upper;
    ptx_mov_u64_to(k, best, ptx_pack_u64(k, halves));
}

/* `best`, which is that of a warp, becomes that of all warps, in every lane of every warp. */
static void best_of_warps(ptx_kernel *k, ptx_u64 best, ptx_u32 tid)
{
    ptx_u32 slots = ptx_shared_address(k, ptx_shared_declare(k, "best of the warps", WARPS * 8, 8));
    ptx_u32 lane = ptx_and_b32(k, tid, U32(31)), warp = ptx_shr_u32(k, tid, U32(5));
    ptx_if(k, ptx_setp_eq_u32(k, lane, U32(0)))
        ptx_st_shared_u64(k, ptx_mad_lo_u32(k, warp, U32(8), slots), 0, best);
    ptx_bar_sync(k, 0);
    ptx_u32 other = ptx_and_b32(k, tid, U32(WARPS - 1));
    ptx_mov_u64_to(k, best, ptx_ld_shared_u64(k, ptx_mad_lo_u32(k, other, U32(8), slots), 0));
    best_of_lanes(k, best);
}

/*
 * One thread of each CTA brings the CTA's best into the cell. That of the last CTA of the sequence
 * stores the id and the next position, and leaves the cell zero.
 */
static void merge(ptx_kernel *k, ptx_u64 best, ptx_u64 cell, ptx_u64 id, ptx_u64 position)
{
    ptx_u32 old_position = ptx_ld_global_u32(k, position, 0);
    ptx_red_global_max_u64_m(k, PTX_GPU, cell, 0, best);
    ptx_u32 last = ptx_sub_u32(k, ptx_sreg_nctaid_x(k), U32(1));
    ptx_u32 earlier_ctas =
        ptx_atom_global_inc_u32_m(k, PTX_ACQ_REL | PTX_GPU, cell, COUNT_OFFSET, last);
    ptx_if(k, ptx_setp_eq_u32(k, earlier_ctas, last)) {
        ptx_u32 halves[2];
        ptx_u64 all = ptx_atom_global_exch_b64_m(k, PTX_RELAXED | PTX_GPU, cell, 0, ptx_imm_u64(0));
        ptx_unpack_u64(k, halves, all);
        ptx_st_global_u32(k, id, 0, ptx_not_b32(k, halves[0]));
        ptx_st_global_u32(k, position, 0, ptx_add_u32(k, old_position, U32(1)));
    }
}

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    const struct greedy_plan *p = plan;
    const uint32_t n = p->spec.vocabulary;
    ptx_kernel *k = ptx_kernel_begin(module, "greedy");
    ptx_kernel_reqntid(k, THREADS, 1, 1);
    ptx_u64 logits = ptx_param_u64(k, "logits"), ids = ptx_param_u64(k, "ids");
    ptx_u64 positions = ptx_param_u64(k, "positions"), cells = ptx_param_u64(k, "cells");
    emit_let_next_begin(k);
    emit_wait_for_previous(k);
    ptx_u32 tid = ptx_sreg_tid_x(k), part = ptx_sreg_ctaid_x(k), sequence = ptx_sreg_ctaid_y(k);
    ptx_u64 row =
        ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, sequence), ptx_imm_u64(4 * (uint64_t)n), logits);
    ptx_u64 best = find_best(k, n, row, part, tid);
    best_of_lanes(k, best);
    best_of_warps(k, best, tid);
    ptx_if(k, ptx_setp_eq_u32(k, tid, U32(0))) {
        ptx_u64 cell = ptx_mad_wide_u32(k, sequence, U32(CELL_BYTES), cells);
        ptx_u64 id = ptx_mad_wide_u32(k, sequence, U32(4), ids);
        merge(k, best, cell, id, ptx_mad_wide_u32(k, sequence, U32(4), positions));
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
    if (p->spec.vocabulary == 0)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "greedy: the vocabulary has no tokens");
    return PTXGEN_OK;
}

static void describe(const void *spec, char *text, size_t size)
{
    snprintf(text, size, "vocabulary=%u", ((const struct greedy_spec *)spec)->vocabulary);
}

const ptxgen_family *greedy_family(void)
{
    static const ptxgen_family family = {.name = "generate_greedy",
                                         .plan_version = 3, /* raised whenever the text changes */
                                         .spec_bytes = sizeof(struct greedy_spec),
                                         .plan_bytes = sizeof(struct greedy_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .describe = describe};
    return &family;
}

uint64_t greedy_cells_bytes(uint64_t m)
{
    return CELL_BYTES * m;
}

ptxgen_status greedy_launch(const ptxgen_loaded *loaded, const struct greedy_args *args,
                            ptxgen_cu_stream stream, ptxgen_error *err)
{
    const struct greedy_plan *plan = ptxgen_loaded_plan(loaded);
    struct greedy_args a = *args;
    void *parameters[] = {&a.logits, &a.ids, &a.positions, &a.cells};
    const uint64_t parts = ((uint64_t)plan->spec.vocabulary + CTA_LOGITS - 1) / CTA_LOGITS;
    ptxgen_launch_shape shape = launch_shape(&plan->target, THREADS, parts, a.m, 1);
    return ptxgen_launch(ptxgen_loaded_entry(loaded, 0), &shape, stream, parameters, err);
}
