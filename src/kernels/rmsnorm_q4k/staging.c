/* SPDX-License-Identifier: Apache-2.0 */
/* One token's x by way of shared memory; rmsnorm_q4k_staged_bytes says when. */
#include "activations.h"

/*
 * Where a lane's values of an item are staged: gamma where the item's record will be, and x in a
 * place of its own for each item or for each warp.
 */
struct stage {
    ptx_u32 x, gamma;
};

static struct stage find_stage(struct rmsnorm_q4k_kernel *q, ptx_u32 place, ptx_u32 number)
{
    ptx_u32 x = times_plus(q, q->at.lane, LANE_VALUES * 2, q->sh.staged);
    ptx_u32 gamma = times_plus(q, q->at.lane, LANE_VALUES * 4, q->sh.records);
    struct stage s;
    s.x = times_plus(q, place, SUPER_BLOCK * 2, x);
    s.gamma = times_plus(q, number, record_bytes(1), gamma);
    return s;
}

/* Issues the copies of the item `ahead` super-blocks on. */
static void stage_vectors(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_source *from,
                          const struct stage *to, int ahead)
{
    ptx_kernel *k = q->k;
    ptx_cp_async_cg(k, to->x, 0, from->x, ahead * SUPER_BLOCK * 2, 16);
    for (int i = 0; i < 2; i++)
        ptx_cp_async_cg(k, to->gamma, ahead * (int)record_bytes(1) + 16 * i, from->gamma,
                        ahead * SUPER_BLOCK * 4 + 16 * i, 16);
}

/* Copies an item one element at a time, where vectors are not allowed. */
static void stage_elements(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_source *from,
                           const struct stage *to)
{
    ptx_kernel *k = q->k;
    ptx_u32 i = ptx_mov_u32(k, U32(0));
    ptx_loop(k, elements) {
        ptx_nounroll(k);
        ptx_u32 to_x = times_plus(q, i, 2, to->x);
        ptx_u32 to_gamma = times_plus(q, i, 4, to->gamma);
        ptx_cp_async_ca(k, to_gamma, 0, ptx_mad_wide_u32(k, i, U32(4), from->gamma), 0, 4);
        ptx_u64 x = ptx_mad_wide_u32(k, i, U32(2), from->x);
        ptx_st_shared_u16(k, to_x, 0, ptx_ld_global_u16(k, x, 0));
        move_on(q, i, 1);
        ptx_loop_break_if(&elements, ptx_setp_eq_u32(k, i, U32(LANE_VALUES)), false);
    }
}

static void stage_item(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_share *s)
{
    struct rmsnorm_q4k_source from = rmsnorm_q4k_find_source(q, s->first, s->number);
    struct stage to = find_stage(q, s->number, s->number);
    ptx_if_else(q->k, s->vectors)
        stage_vectors(q, &from, &to, 0);
    else
        stage_elements(q, &from, &to);
}

static void load_staged(struct rmsnorm_q4k_kernel *q, const struct stage *at,
                        struct rmsnorm_q4k_item *item)
{
    ptx_kernel *k = q->k;
    ptx_ld_shared_v4_u32_to(k, item->x, at->x, 0);
    for (int i = 0; i < 2; i++)
        ptx_ld_shared_v4_f32_to(k, &item->gamma[4 * i], at->gamma, 16 * i);
    ptx_bar_warp_sync(k, ALL_LANES); /* the record overwrites gamma */
}

static void prepare_staged(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_share *s)
{
    struct stage at = find_stage(q, s->number, s->number);
    struct rmsnorm_q4k_item item = rmsnorm_q4k_no_item();
    load_staged(q, &at, &item);
    rmsnorm_q4k_prepare_item(q, s->first, s->number, &item);
}

/* Calls `take` for each of the warp's items, in a loop of the kernel. */
static void each_item(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_share *s,
                      void (*take)(struct rmsnorm_q4k_kernel *, const struct rmsnorm_q4k_share *))
{
    ptx_kernel *k = q->k;
    ptx_mov_u32_to(k, s->number, q->at.warp);
    ptx_loop(k, items) {
        ptx_nounroll(k);
        ptx_loop_break_if(&items, ptx_setp_ge_u32(k, s->number, s->end), false);
        take(q, s);
        move_on(q, s->number, s->takers);
    }
}

static void take_all_staged(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_share *s)
{
    ptx_kernel *k = q->k;
    each_item(q, s, stage_item);
    ptx_cp_async_commit_group(k);
    bool behind = s->stream && !tensor(q);
    if (s->stream)
        rmsnorm_q4k_issue_other_loads(q, s->stream);
    ptx_cp_async_wait_group(k, behind ? (int)loads_ahead(q->v) - 1 : 0);
    each_item(q, s, prepare_staged);
}

/*
 * Where each warp has two items, loads bring the first, and copies that are issued at the same time
 * the second. So one loop prepares both from the same registers. Where x does not allow vectors, an
 * item is staged just before it is prepared.
 */
static void take_second_staged(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_share *s)
{
    ptx_kernel *k = q->k;
    uint32_t warps = s->takers;
    struct rmsnorm_q4k_item item = rmsnorm_q4k_new_item(q);
    struct rmsnorm_q4k_source from = rmsnorm_q4k_find_source(q, s->first, s->number);
    struct stage at = find_stage(q, q->at.warp, s->number);
    ptx_if(k, s->vectors) {
        rmsnorm_q4k_load_item(q, &from, &item);
        stage_vectors(q, &from, &at, (int)warps);
    }
    if (s->stream)
        rmsnorm_q4k_issue_other_loads(q, s->stream);
    ptx_pred by_element = ptx_not_pred(k, s->vectors);
    ptx_loop(k, items) {
        ptx_pred is_second = ptx_setp_ge_u32(k, s->number, U32(warps));
        ptx_if(k, ptx_or_pred(k, is_second, by_element)) {
            ptx_if(k, by_element) {
                from = rmsnorm_q4k_find_source(q, s->first, s->number);
                stage_elements(q, &from, &at);
            }
            ptx_cp_async_wait_all(k);
            load_staged(q, &at, &item);
        }
        rmsnorm_q4k_prepare_item(q, s->first, s->number, &item);
        move_on(q, s->number, warps);
        move_on(q, at.gamma, warps * record_bytes(1));
        ptx_loop_break_if(&items, ptx_setp_ge_u32(k, s->number, s->end), false);
    }
}

void rmsnorm_q4k_take_staged(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_share *s)
{
    if (rmsnorm_q4k_staged_bytes(q->plan, q->v) == staged_second_bytes(q->v))
        take_second_staged(q, s);
    else
        take_all_staged(q, s);
}
