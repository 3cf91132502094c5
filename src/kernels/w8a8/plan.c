/* SPDX-License-Identifier: Apache-2.0 */
/* From a w8a8 spec to the tiles of its kernels, and from M to the one that serves it. */
#include "tile.h"

#include <stdio.h>

ptxgen_element ptxgen_w8a8_work_type(const ptxgen_w8a8_spec *spec)
{
    bool wide_x = spec && !w8a8_takes_codes(spec) && spec->x_type == PTXGEN_F64;
    bool wide = spec && (wide_x || spec->y_type == PTXGEN_F64);
    return wide ? PTXGEN_F64 : PTXGEN_F32;
}

/* ---- validation ---- */

static ptxgen_status check_epilogue(const ptxgen_w8a8_spec *s, ptxgen_error *err)
{
    bool gated = w8a8_gated(s);
    if (s->epilogue > PTXGEN_EPILOGUE_SWIGLU)
        return ptxgen_fail(err, plan_refuses_enumerator(s->epilogue <= PTXGEN_EPILOGUE_GEGLU),
                           "w8a8: %u is not an epilogue of this family", s->epilogue);
    if (s->activation > PTXGEN_ACTIVATION_RELU)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "w8a8: %u is not an activation",
                           s->activation);
    if (gated && s->activation)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: SwiGLU has its own activation, but activation is %u",
                           s->activation);
    if (gated && (s->n % W8A8_PAIR_ROWS || s->n > INT32_MAX / 2))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: N = %u; with SwiGLU it must be a multiple of 8 below 2^30", s->n);
    if (w8a8_is_wide(s) && (gated || s->activation || s->residual || w8a8_takes_codes(s)))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: x_type = %u, y_type = %u; a function, SwiGLU, a residual or the "
                           "caller's codes are not supported with f64 (3)",
                           s->x_type, s->y_type);
    return PTXGEN_OK;
}

static ptxgen_status check_groups(const ptxgen_w8a8_spec *s, ptxgen_error *err)
{
    if (s->group && s->group != PTXGEN_W8A8_GROUP)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: group = %u is neither 0, scales of tokens and features, nor %d",
                           s->group, PTXGEN_W8A8_GROUP);
    if (s->group && s->codes != PTXGEN_W8A8_E4M3)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: group = %u with codes = %u; scales of groups need e4m3 codes (1)",
                           s->group, s->codes);
    if (s->group && s->scales != PTXGEN_W8A8_DYNAMIC && !w8a8_takes_codes(s))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: group = %u with scales = %u; scales of groups are dynamic (0), "
                           "or x is quantised (3)",
                           s->group, s->scales);
    return PTXGEN_OK;
}

static ptxgen_status check_spec(const void *spec, ptxgen_error *err)
{
    const ptxgen_w8a8_spec *s = spec;
    if (s->n > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "w8a8: N = %u is above %d", s->n,
                           INT32_MAX);
    if (s->max_m && s->min_m > s->max_m)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: min_m = %u is above max_m = %u", s->min_m, s->max_m);
    if (s->w_stride && s->w_stride < s->k)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: w_stride = %u is below K = %u", s->w_stride, s->k);
    if (s->x_type > PTXGEN_F64 || s->y_type > PTXGEN_F64)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: x_type = %u, y_type = %u; f32, f16, bf16 and f64 are 0, 1, 2, 3",
                           s->x_type, s->y_type);
    if (s->scales > PTXGEN_W8A8_QUANTISED)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: scales = %u; dynamic, tensor, token and quantised are 0, 1, 2, 3",
                           s->scales);
    if (s->asymmetric > 1 || s->bias > 1 || s->residual > 1 || s->reserved)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: a flag is neither 0 nor 1, or a reserved byte is not 0");
    ptxgen_status status = check_epilogue(s, err);
    if (status == PTXGEN_OK)
        status = w8a8_check_codes(s, err);
    return status == PTXGEN_OK ? check_groups(s, err) : status;
}

/* ---- tiles ---- */

/*
 * The time for m tokens; of the widest tiles, which are compared with each other alone, that of a
 * byte of K of 256 features, for any m.
 */
static uint64_t candidate_cost(const void *of, const ptxgen_tile *v, uint64_t m)
{
    const ptxgen_w8a8_plan *p = of;
    if (v->tile_m == W8A8_MOST_TILE_M)
        return w8a8_byte_cost(p, v, W8A8_MOST_TILE_M, p->target.multiprocessors) * W8A8_MAX_TILE_N /
               v->tile_n;
    return w8a8_cost(p, v, (uint32_t)m);
}

/* Candidates for `tokens`, with even shares of N or with a fixed tile_n. */
enum { MOST_CANDIDATES = 10 };
static size_t list_candidates(const ptxgen_w8a8_plan *p, uint32_t tokens,
                              ptxgen_tile all[MOST_CANDIDATES])
{
    static const uint32_t wgmma_n[] = {0, 64, 128}; /* 0: even shares */
    static const uint32_t parts[] = {1, 2, 4}, fixed_n[] = {128, 64, 32, 16};
    size_t count = 0;
    for (size_t i = tokens == W8A8_MOST_TILE_M; i < (tokens == W8A8_LEAST_TILE_M ? 1 : 3); i++) {
        ptxgen_tile *v = &all[count++];
        *v = (ptxgen_tile){.kind = PTXGEN_WGMMA, .tile_m = tokens, .cluster = 1};
        if (wgmma_n[i])
            w8a8_divide_n(p, wgmma_n[i], v);
        else
            w8a8_divide_evenly(p, 1, w8a8_most_n_of(v), v);
    }
    for (size_t i = 0; i < 3 && tokens < W8A8_MOST_TILE_M; i++) {
        ptxgen_tile *v = &all[count++];
        *v = (ptxgen_tile){.tile_m = tokens,
                           .cluster = parts[i] == 2 && w8a8_has_clusters(p) ? 2 : 1};
        w8a8_divide_evenly(p, parts[i], W8A8_MAX_TILE_N, v);
    }
    bool has_mma = tokens < W8A8_MOST_TILE_M || !w8a8_widens_codes(p);
    for (size_t i = 0; i < 4 && has_mma; i++) {
        ptxgen_tile *v = &all[count++];
        *v = (ptxgen_tile){.tile_m = tokens};
        w8a8_divide_n(p, fixed_n[i], v);
    }
    return count;
}

static bool choose_tile(const ptxgen_w8a8_plan *p, uint32_t tokens, ptxgen_tile *best)
{
    ptxgen_tile all[MOST_CANDIDATES];
    struct gemm_choice choice = {all, list_candidates(p, tokens, all), tokens, tokens};
    return gemm_cheapest(&w8a8_planner, p, &choice, tokens, best);
}

/* CTAs that quantise for themselves find one scale for each token. */
static bool may_be_fused(const ptxgen_w8a8_plan *p)
{
    return w8a8_copies_directly(p) && !w8a8_takes_codes(&p->spec) && !w8a8_has_groups(&p->spec);
}

/*
 * The fused tile with the most tokens that leave room for a ring that keeps the memory busy, and
 * that every CTA can read twice from the L2 while its first weights arrive, as it can one token.
 */
static bool choose_fused(const ptxgen_w8a8_plan *p, ptxgen_tile *v)
{
    enum { LEAST_RING = 24 * 1024, MOST_OF_X = 16 * 1024 };
    uint64_t row = (uint64_t)p->spec.k * ptxgen_element_size((ptxgen_element)p->spec.x_type);
    for (uint32_t tokens = W8A8_TILE_TOKENS; tokens && may_be_fused(p); tokens /= 2) {
        *v = (ptxgen_tile){.tile_m = tokens, .fused = 1, .ctas = 1, .cluster = 1};
        w8a8_divide_evenly(p, 1, W8A8_MAX_TILE_N, v);
        if ((tokens == 1 || tokens * row <= MOST_OF_X) && w8a8_arrange_warps(p, v) &&
            (v->stages - 1) * w8a8_ring_stage_bytes(p, v) >= LEAST_RING)
            return true;
    }
    return false;
}

/*
 * Tiles of 128 tokens for launches of more, whose warpgroups have all features of the tile. Tiles
 * of fewer features are added where N is so small that two rows of tiles take less time with them.
 */
static void add_wide(ptxgen_w8a8_plan *p)
{
    ptxgen_tile wide[] = {{.kind = PTXGEN_WGMMA, .tile_m = W8A8_WIDE_TILE_M, .wn = 1},
                          {.kind = PTXGEN_WGMMA, .tile_m = W8A8_WIDE_TILE_M, .wn = 1}};
    w8a8_divide_n(p, W8A8_MAX_WGMMA_N / 2, &wide[0]);
    w8a8_divide_n(p, W8A8_MAX_WGMMA_N, &wide[1]);
    bool serves_more = !p->spec.max_m || p->spec.max_m > W8A8_WIDE_TILE_M;
    if (!serves_more || w8a8_rows(&p->spec) <= W8A8_FEW_ROWS)
        return;
    gemm_add_cheapest(&w8a8_planner, p, GEMM_AMONG(wide, W8A8_WIDE_TILE_M, W8A8_WIDE_TILE_M),
                      2 * W8A8_WIDE_TILE_M);
    const struct gemm_choice widest = {&wide[1], 1, W8A8_WIDE_TILE_M, W8A8_WIDE_TILE_M};
    gemm_add_cheapest(&w8a8_planner, p, &widest, 2 * W8A8_WIDE_TILE_M);
}

/* wgmma's tile of 64 tokens copies only the launch's tokens, so it may serve fewer as well. */
static bool is_served_by_wgmma(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    ptxgen_tile w = {.kind = PTXGEN_WGMMA, .tile_m = W8A8_LEAST_WGMMA_M, .ctas = 1, .cluster = 1};
    w8a8_divide_evenly(p, 1, w8a8_most_n_of(&w), &w);
    return v->tile_m < w.tile_m && w8a8_arrange_wgmma(p, &w) &&
           w8a8_cost(p, &w, v->tile_m) < w8a8_cost(p, v, v->tile_m) + !gemm_is_wgmma(v);
}

static uint32_t copy_bytes(const ptxgen_w8a8_spec *s)
{
    uint32_t stride = w8a8_w_stride(s);
    return stride % 16 == 0 ? 16 : stride % 8 == 0 ? 8 : stride % 4 == 0 ? 4 : 1;
}

static ptxgen_status choose_tiles(void *of, ptxgen_error *err)
{
    ptxgen_w8a8_plan *p = of;
    p->spec = w8a8_with_range(&p->spec);
    if (w8a8_takes_codes(&p->spec))
        p->spec.x_type = PTXGEN_F32; /* which is not used */
    p->spec.w_stride = w8a8_w_stride(&p->spec);
    p->copy_bytes = copy_bytes(&p->spec);
    ptxgen_status status = w8a8_check_code_target(p, err);
    if (status != PTXGEN_OK)
        return status;
    uint32_t served = 0;
    ptxgen_tile v;
    if (choose_fused(p, &v)) {
        served = v.tile_m;
        if (served >= p->spec.min_m)
            gemm_add(&w8a8_planner, p, &v);
    }
    for (uint32_t tokens = W8A8_LEAST_TILE_M; tokens <= w8a8_most_tile_m(p); tokens *= 2) {
        if (p->spec.max_m && served >= p->spec.max_m)
            break;
        bool serves = tokens >= p->spec.min_m || tokens >= W8A8_MOST_TILE_M / 2;
        if (!serves || !choose_tile(p, tokens, &v) || is_served_by_wgmma(p, &v))
            continue;
        served = tokens;
        gemm_add(&w8a8_planner, p, &v);
        if (tokens == W8A8_WIDE_TILE_M)
            add_wide(p);
    }
    bool ends_fused = p->variant_count && p->variants[p->variant_count - 1].fused;
    if (p->variant_count && (!ends_fused || (p->spec.max_m && served >= p->spec.max_m)))
        return PTXGEN_OK;
    return plan_no_tile("w8a8", &p->target, err);
}

/* ---- tiles of the caller's choice ---- */

static bool is_known(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    if (v->fused)
        return v->fused == 1 && v->tile_m && v->tile_m <= W8A8_TILE_TOKENS && may_be_fused(p);
    return v->tile_m >= W8A8_LEAST_TILE_M && v->tile_m <= W8A8_MOST_TILE_M &&
           !(v->tile_m & (v->tile_m - 1));
}

/* Whether the caller's warps of mma.sync divide the tile. */
static bool has_known_warps(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    return v->wn && (v->wm == 1 || v->wk == 1) && v->wn * v->wm * v->wk == W8A8_WARPS &&
           w8a8_divides(p, v);
}

static ptxgen_status check_tile(const void *of, ptxgen_tile *v, ptxgen_error *err)
{
    const ptxgen_w8a8_plan *p = of;
    const ptxgen_tile asked = *v;
    bool wgmma = gemm_is_wgmma(v), known = is_known(p, v);
    if (!wgmma) {
        v->wm = v->wm ? v->wm : 1;
        v->wk = v->wk ? v->wk : 1;
    }
    if (known && !v->tile_n)
        w8a8_divide_evenly(p, v->cluster, w8a8_most_n_of(v), v);
    else if (known)
        w8a8_divide_n(p, v->tile_n, v);
    bool in_range =
        known && (wgmma || has_known_warps(p, v)) && v->tile_n <= W8A8_MAX_TILE_N && v->ctas == 1;
    bool clusters = v->cluster == 1 || (v->cluster == 2 && !v->fused && w8a8_has_clusters(p));
    bool allowed = in_range && (wgmma ? w8a8_arrange_wgmma(p, v)
                                      : clusters && w8a8_steps(&p->spec, v) % v->cluster == 0);
    v->stages = asked.stages;
    if (!allowed)
        return ptxgen_fail(err, in_range ? PTXGEN_ERROR_UNSUPPORTED : PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: no CTA holds a tile of %u tokens by %u features for %u x %u x %u "
                           "warps along M, N and K in %u stages, in a cluster of %u",
                           asked.tile_m, asked.tile_n, asked.wm, asked.wn, asked.wk, asked.stages,
                           asked.cluster);
    return PTXGEN_OK;
}

/* ---- what serves m tokens ---- */

/* The fused variant serves as many tokens as it has, otherwise the cheapest does. */
static uint64_t variant_cost(const void *of, const ptxgen_tile *v, uint64_t m)
{
    if (v->fused && m <= v->tile_m)
        return 0;
    return w8a8_takes_all_tokens(v) && m > v->tile_m ? UINT64_MAX : w8a8_cost(of, v, (uint32_t)m);
}

const char *ptxgen_w8a8_entry(const ptxgen_tile *v)
{
    if (!v)
        return NULL;
    /* even shares of more than 32 features have more warps along N */
    bool wide = w8a8_tokens_are_m(v) && v->wn == 1 && v->tile_n > W8A8_FEW_ROWS;
    if (wide && v->tile_m == W8A8_WIDE_TILE_M)
        return v->tile_n > W8A8_MAX_WGMMA_N / 2 ? "w8a8_m128_n128" : "w8a8_m128_n64";
    return v->fused           ? "w8a8_fused"
           : v->tile_m == 16  ? "w8a8_m16"
           : v->tile_m == 32  ? "w8a8_m32"
           : v->tile_m == 64  ? "w8a8_m64"
           : v->tile_m == 128 ? "w8a8_m128"
                              : "w8a8_m256";
}

static void describe(const void *of, const ptxgen_tile *v, uint64_t m, char *text, size_t size)
{
    const ptxgen_w8a8_plan *p = of;
    if (v->fused)
        snprintf(
            text, size,
            "one launch: each CTA quantises the %u tokens (at most %u) for itself while its first "
            "weights arrive",
            (unsigned)m, v->tile_m);
    else if (w8a8_takes_codes(&p->spec))
        snprintf(text, size, "%s: tiles of %u tokens by %u features take the caller's codes",
                 w8a8_aligns(p, v) ? "two launches, of which one copies W" : "one launch",
                 v->tile_m, v->tile_n);
    else if (w8a8_aligns(p, v))
        snprintf(
            text, size,
            "three launches: rows of W, %u bytes apart, are brought to multiples of 16; one kernel "
            "quantises the %llu tokens; then tiles of %u tokens by %u features",
            p->spec.w_stride, (unsigned long long)m, v->tile_m, v->tile_n);
    else
        snprintf(
            text, size,
            "two launches: one kernel quantises the %llu tokens; then tiles of %u tokens by %u "
            "features",
            (unsigned long long)m, v->tile_m, v->tile_n);
}

/* ---- a launch's division of work ---- */

static bool is_whole(const void *of, const ptxgen_tile *v, uint64_t tiles, uint32_t units)
{
    if (w8a8_takes_all_tokens(v) || gemm_is_wgmma(v))
        return w8a8_is_whole(of, v);
    return v->cluster > 1 || gemm_deals_whole(tiles, units);
}

/* Bytes of a CTA's partial sums: those of a tile, as in registers. */
static uint64_t partials_bytes(const ptxgen_tile *v)
{
    return (uint64_t)v->tile_n * v->tile_m * v->wk * 4;
}

static struct gemm_work work(const void *of, const ptxgen_tile *v)
{
    const ptxgen_w8a8_plan *p = of;
    return (struct gemm_work){v->blocks_n, w8a8_own_steps(&p->spec, v), v->cluster,
                              partials_bytes(v)};
}

static void guarantee(const void *of, const ptxgen_tile *v, ptxgen_guarantee *g)
{
    const ptxgen_w8a8_spec *s = &((const ptxgen_w8a8_plan *)of)->spec;
    const struct w8a8_code_type *codes = w8a8_code_type(s->codes);
    (void)v;
    g->exact = ptxgen_w8a8_is_exact(s);
    g->sums = codes->integer ? PTXGEN_SUMS_S32 : PTXGEN_SUMS_F32;
    g->x_rounding = w8a8_takes_codes(s) ? PTXGEN_ROUNDING_NONE : codes->rounding;
    g->bound = g->exact         ? PTXGEN_BOUND_ZERO
               : codes->integer ? PTXGEN_BOUND_SUM
                                : PTXGEN_BOUND_PRODUCTS;
}

const struct gemm_planner w8a8_planner = {
    GEMM_PLANNER_MEMBERS(w8a8),
    .min_m = offsetof(ptxgen_w8a8_plan, spec.min_m),
    .is_plan = w8a8_is_plan,
    .check_spec = check_spec,
    .choose_tiles = choose_tiles,
    .defaults = {.ctas = 1, .cluster = 1},
    .unused = {"warp_m", "warp_n", "steps", "pass_m", "split"},
    .most_kind = PTXGEN_WGMMA,
    .least_stages = W8A8_LEAST_STAGES,
    .most_stages = {W8A8_MOST_STAGES, W8A8_MOST_WGMMA_STAGES},
    .adapt = w8a8_arrange,
    .shared_bytes = w8a8_shared_bytes,
    .candidate_cost = candidate_cost,
    .cost = variant_cost,
    .check_tile = check_tile,
    .most_ctas = 1,
    .work = work,
    .is_whole = is_whole,
    .guarantee = guarantee,
    .describe = describe,
};
GEMM_PLANS(w8a8, w8a8_planner)
GEMM_LAUNCHES(w8a8, w8a8_planner)
