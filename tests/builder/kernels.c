/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

/* ---- scale: parameters, guards, immediates of every kind, local memory ---- */

static void emit_scale(ptx_kernel *k)
{
    ptx_kernel_maxntid(k, 256);
    ptx_kernel_minnctapersm(k, 4);
    ptx_section(k, "index");
    ptx_u64 x = ptx_param_u64(k, "x");
    ptx_u32 n = ptx_param_u32(k, "n");
    ptx_f32 factor = ptx_param_f32(k, "factor");
    ptx_u32 cta = ptx_sreg_ctaid_x(k), tid = ptx_sreg_tid_x(k);
    ptx_comment(k, "256 × CTA + thread; n ≤ 2^32 − 1\nand a second line — of words");
    ptx_u32 i = ptx_mad_lo_u32(k, cta, ptx_imm_u32(256), tid);
    ptx_section(k, "scale");
    ptx_if(k, ptx_setp_lt_u32(k, i, n))
    {
        ptx_u64 p = ptx_add_u64(k, x, ptx_mul_wide_u32(k, i, ptx_imm_u32(4)));
        ptx_f32 v = ptx_ld_global_nc_f32_m(k, PTX_L1_NO_ALLOCATE, p, 0);
        ptx_f32 y = ptx_fma_f32(k, v, factor, ptx_imm_f32(-0.0f));
        ptx_pred small = ptx_setp_lt_f32(k, y, ptx_imm_f32(1e-30f));
        ptx_guarded(k, small) ptx_mov_f32_to(k, y, ptx_imm_f32(0));
        ptx_guarded_not(k, small) ptx_red_global_add_u32(k, x, -16, ptx_imm_u32(0xdeadbeef));
        ptx_st_global_f32(k, p, 0, y);
    }
    ptx_section(k, "constants");
    ptx_u64 spill = ptx_local_address(k, ptx_local_declare(k, "spill of γ", 16, 8));
    ptx_f64 d = ptx_add_f64(k, ptx_mov_f64(k, ptx_imm_f64(3.5)), ptx_imm_f64(-1e300));
    ptx_st_local_f64(k, spill, 8, d);
    ptx_s16 h = ptx_mov_s16(k, ptx_imm_s16(-7));
    ptx_s32 w = ptx_add_s32(k, ptx_cvt_s32_s16(k, h), ptx_imm_s32(INT32_MIN));
    ptx_s64 q = ptx_add_s64(k, ptx_cvt_s64_s32(k, w), ptx_imm_s64(INT64_MIN));
    ptx_st_local_s64(k, spill, 0, q);
}

static ptx_module *build_scale(const ptx_allocator *allocator)
{
    ptx_target target = {.sm = 80};
    ptx_module *m = ptx_module_create(&target, allocator);
    if (!m)
        return NULL;
    ptx_kernel *k = ptx_kernel_begin(m, "scale");
    emit_scale(k);
    ptx_kernel_end(k);
    return m;
}

/* ---- tiles: cp.async pipeline, ldmatrix, mma, loops, static and dynamic shared memory ---- */

enum { STAGES = 3, TILE = 16 * 16 * 2 };

static void emit_copy(ptx_kernel *k, ptx_u32 to, int stage, ptx_u64 from)
{
    ptx_cp_async_cg(k, to, stage * TILE, from, 0, 16);
    ptx_cp_async_commit_group(k);
}

static void emit_tiles(ptx_kernel *k, size_t more_shared)
{
    ptx_kernel_reqntid(k, 32, 1, 1);
    ptx_section(k, "addresses");
    ptx_u64 a = ptx_param_u64(k, "a");
    ptx_u64 c = ptx_param_u64(k, "c");
    ptx_u32 turns = ptx_param_u32(k, "turns");
    ptx_shared ring = ptx_shared_declare(k, "ring of A tiles", STAGES * TILE, 128);
    ptx_shared_declare(k, "the rest", more_shared, 16);
    ptx_u32 lane = ptx_sreg_laneid(k);
    ptx_u32 lane_bytes = ptx_shl_b32(k, lane, ptx_imm_u32(4));
    ptx_u32 base = ptx_shared_address(k, ring);
    ptx_u32 mine = ptx_add_u32(k, base, lane_bytes);
    ptx_u64 from = ptx_add_u64(k, a, ptx_cvt_u64_u32(k, lane_bytes));
    ptx_section(k, "prologue");
    for (int stage = 0; stage < STAGES - 1; stage++)
        emit_copy(k, mine, stage, from);
    ptx_f32 sum[4];
    for (int j = 0; j < 4; j++)
        sum[j] = ptx_mov_f32(k, ptx_imm_f32(0));
    ptx_u32 turn = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_section(k, "main loop");
    ptx_for(k, turn, turns, ptx_imm_u32(1))
    {
        ptx_cp_async_wait_group(k, STAGES - 2);
        ptx_bar_sync(k, 0);
        ptx_u32 f[4];
        ptx_ldmatrix_x4_b16_m(k, PTX_TRANS, f, mine, 0);
        ptx_mma_m16n8k16_f32_f16_to(k, sum, f, f + 2, sum);
        emit_copy(k, mine, STAGES - 1, from);
    }
    ptx_section(k, "epilogue");
    ptx_u64 to = ptx_add_u64(k, c, ptx_cvt_u64_u32(k, lane_bytes));
    ptx_st_global_v4_f32(k, to, 0, sum);
}

static ptx_module *build_tiles(const ptx_allocator *allocator)
{
    ptx_target target = {.sm = 80};
    ptx_module *m = ptx_module_create(&target, allocator);
    if (!m)
        return NULL;
    ptx_kernel *k = ptx_kernel_begin(m, "tiles");
    emit_tiles(k, 64);
    ptx_kernel_end(k);
    k = ptx_kernel_begin(m, "tiles_dynamic");
    emit_tiles(k, 64 * 1024);
    ptx_kernel_end(k);
    return m;
}

/* ---- warps: collectives, second destinations, sinks, predicates, raw, labels ---- */

static void emit_warps(ptx_kernel *k)
{
    ptx_kernel_reqntid(k, 128, 1, 1);
    ptx_u64 out = ptx_param_u64(k, "out");
    ptx_u32 full = ptx_mov_u32(k, ptx_imm_u32(0xffffffff));
    ptx_u32 tid = ptx_sreg_tid_x(k);
    ptx_u32 warp = ptx_shr_u32(k, tid, ptx_imm_u32(5));
    ptx_barrier pair = ptx_barrier_new(k, 64), all = ptx_barrier_new(k, 0);
    ptx_pred same;
    ptx_u32 matched = ptx_match_all_sync_b32(k, &same, warp, full);
    ptx_pred got;
    ptx_u32 up = ptx_shfl_sync_p_up_u32(k, &got, tid, ptx_imm_u32(1), ptx_imm_u32(0), full);
    ptx_u32 x = ptx_selp_u32(k, up, matched, ptx_or_pred(k, same, ptx_not_pred(k, got)));
    ptx_if_else(k, ptx_setp_lt_u32(k, warp, ptx_imm_u32(2))) ptx_barrier_wait(k, pair);
    else ptx_add_u32_to(k, x, x, ptx_imm_u32(65536));
    ptx_label again = ptx_label_new(k, "again");
    ptx_label_bind(k, again);
    ptx_u32 low = ptx_and_b32(k, x, ptx_imm_u32(15));
    ptx_shr_u32_to(k, x, x, ptx_imm_u32(1));
    ptx_pred more = ptx_setp_gt_u32(k, low, ptx_imm_u32(7));
    ptx_guarded(k, more) ptx_bra(k, again);
    ptx_barrier_wait(k, all);
    ptx_operand o[3] = {{.type = PTX_U32}, x.o, ptx_imm_u32(12).o};
    ptx_raw(k, "add.u32 %0, %1, %2", 0, o, 3, 1);
    ptx_u16 halves[2];
    ptx_unpack_u32(k, halves, (ptx_u32){o[0]});
    ptx_st_global_u16(k, out, 2, halves[1]);
    ptx_loop(k, b)
    {
        ptx_u32 left = ptx_atom_global_dec_u32_m(k, PTX_ACQ_REL, out, 4, ptx_imm_u32(9));
        ptx_loop_break_if(&b, ptx_setp_eq_u32(k, left, ptx_imm_u32(0)), false);
        ptx_nanosleep_u32(k, ptx_imm_u32(20));
    }
}

static ptx_module *build_warps(const ptx_allocator *allocator)
{
    ptx_target target = {.sm = 80};
    ptx_module *m = ptx_module_create(&target, allocator);
    if (!m)
        return NULL;
    ptx_kernel *k = ptx_kernel_begin(m, "warps");
    emit_warps(k);
    ptx_kernel_end(k);
    return m;
}

/* ---- hopper: clusters, tensor maps, mbarriers, wgmma ---- */

static void emit_hopper(ptx_kernel *k)
{
    enum { N = 32 };
    ptx_kernel_reqntid(k, 128, 1, 1);
    ptx_kernel_reqnctapercluster(k, 2, 1, 1);
    ptx_param map = ptx_param_declare(k, "map", 128, 64);
    ptx_u64 out = ptx_param_u64(k, "out");
    ptx_u64 map_address = ptx_param_address(k, map);
    ptx_u32 tile = ptx_shared_address(k, ptx_shared_declare(k, "tile", 64 * 64 * 2, 1024));
    ptx_u32 bar = ptx_shared_address(k, ptx_shared_declare(k, "barrier", 8, 8));
    ptx_u32 tid = ptx_sreg_tid_x(k);
    ptx_pred first = ptx_setp_eq_u32(k, tid, ptx_imm_u32(0));
    ptx_s32 at[2];
    for (int j = 0; j < 2; j++)
        at[j] = ptx_mov_s32(k, ptx_imm_s32(64 * j));
    ptx_if(k, first)
    {
        ptx_mbarrier_init(k, bar, 0, ptx_imm_u32(1));
        ptx_fence_mbarrier_init_release_cluster(k);
        ptx_mbarrier_arrive_expect_tx(k, bar, 0, ptx_imm_u32(64 * 64 * 2));
        ptx_cp_async_bulk_tensor_2d_g2s(k, tile, 0, map_address, at, bar, 0);
    }
    ptx_bar_sync(k, 0);
    ptx_loop(k, b)
        ptx_loop_break_if(&b, ptx_mbarrier_try_wait_parity(k, bar, 0, ptx_imm_u32(0)), false);
    ptx_u64 descriptor = ptx_cvt_u64_u32(k, ptx_shr_u32(k, tile, ptx_imm_u32(4)));
    ptx_f32 sum[N / 2];
    for (int j = 0; j < N / 2; j++)
        sum[j] = (ptx_f32){ptx_new_operand(PTX_F32)};
    ptx_u32 turn = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_loop(k, b)
    {
        ptx_wgmma_fence(k);
        ptx_pred add = ptx_setp_ne_u32(k, turn, ptx_imm_u32(0));
        ptx_wgmma_k16_f32_f16(k, N, sum, descriptor, descriptor, add, 1, 1, 0, 0);
        ptx_wgmma_commit_group(k);
        ptx_add_u32_to(k, turn, turn, ptx_imm_u32(1));
        ptx_loop_break_if(&b, ptx_setp_eq_u32(k, turn, ptx_imm_u32(4)), false);
    }
    ptx_wgmma_wait_group(k, 0);
    ptx_u64 to = ptx_add_u64(k, out, ptx_mul_wide_u32(k, tid, ptx_imm_u32(N * 2)));
    for (int j = 0; j < N / 2; j += 4)
        ptx_st_global_v4_f32(k, to, 4 * j, sum + j);
}

static ptx_module *build_hopper(const ptx_allocator *allocator)
{
    ptx_target target = {.sm = 90, .suffix = 'a'};
    ptx_module *m = ptx_module_create(&target, allocator);
    if (!m)
        return NULL;
    ptx_kernel *k = ptx_kernel_begin(m, "hopper");
    emit_hopper(k);
    ptx_kernel_end(k);
    return m;
}

const struct sample samples[SAMPLES] = {{"scale", "sm_80", build_scale},
                                        {"tiles", "sm_80", build_tiles},
                                        {"warps", "sm_80", build_warps},
                                        {"hopper", "sm_90a", build_hopper}};
