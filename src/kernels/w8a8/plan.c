/* SPDX-License-Identifier: Apache-2.0 */
/* From a w8a8 spec to the shapes of its kernels. */
#include "layout.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ROWS_OF_TILE = 256, MAX_ACCUMULATORS = 128, MAX_STAGES = 12, SMALL_BYTES = 2048 };

ptxgen_element ptxgen_w8a8_work_type(const ptxgen_w8a8_spec *spec)
{
    return spec->x_type == PTXGEN_F64 || spec->y_type == PTXGEN_F64 ? PTXGEN_F64 : PTXGEN_F32;
}

/* ---- validation ---- */

static ptxgen_status check_codes(const ptxgen_w8a8_spec *s, ptxgen_error *err)
{
    if (s->q_min < -128 || s->q_min > 0 || s->q_max <= 0 || s->q_max > 127)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: codes of %d ... %d; the rule is -128 <= q_min <= 0 < q_max <= 127",
                           s->q_min, s->q_max);
    int reach = s->asymmetric         ? s->q_max - s->q_min
                : -s->q_min > s->q_max ? -s->q_min
                                       : s->q_max;
    uint32_t most = (uint32_t)(INT32_MAX / (128 * reach));
    if (s->k > most)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: K = %u is above %u, from where sums of products of %scodes %d ... %d "
                           "with weights down to -128 can leave 32 bits", s->k, most,
                           s->asymmetric ? "asymmetric " : "", s->q_min, s->q_max);
    return PTXGEN_OK;
}

static ptxgen_status check_spec(const ptxgen_w8a8_spec *s, ptxgen_error *err)
{
    if (!s->k || !s->n || s->n > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: K = %u and N = %u; both must be positive, N below 2^31", s->k, s->n);
    if (s->w_stride && s->w_stride < s->k)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: w_stride = %u is below K = %u", s->w_stride, s->k);
    if (s->x_type > PTXGEN_F64 || s->y_type > PTXGEN_F64)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: x_type = %u, y_type = %u; f32, f16, bf16 and f64 are 0, 1, 2, 3",
                           s->x_type, s->y_type);
    if (s->scales > PTXGEN_W8A8_TOKEN)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: scales = %u; dynamic, tensor and token are 0, 1, 2", s->scales);
    if (s->asymmetric > 1 || s->bias > 1 || s->reserved[0] || s->reserved[1] || s->reserved[2])
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: a flag is neither 0 nor 1, or a reserved byte is not 0");
    return check_codes(s, err);
}

static ptxgen_status check_target(const ptxgen_target *t, ptxgen_error *err)
{
    ptxgen_status status = ptx_target_check(&t->ptx, err);
    if (status == PTXGEN_OK && (!t->multiprocessors || t->shared_per_cta < 48 * 1024))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: a target of %u multiprocessors with %u bytes of shared memory per "
                           "CTA is none", t->multiprocessors, t->shared_per_cta);
    return status;
}

/* ---- shared memory ---- */

/* Of a stage of the ring: rows of W, and codes of tokens where they stream too. */
static uint64_t stage_bytes(const ptxgen_w8a8_variant *v)
{
    return (uint64_t)(v->rows + (v->fused ? 0 : v->tokens)) * v->depth;
}

static uint64_t resident_bytes(const ptxgen_w8a8_spec *s, const ptxgen_w8a8_variant *v)
{
    return v->fused ? (uint64_t)v->tokens * resident_stride(s, v->depth) : 0;
}

/* What the warps along K hand over, in place of the ring. */
static uint64_t handover_bytes(const ptxgen_w8a8_variant *v)
{
    uint32_t columns = v->tokens < TILE_TOKENS ? TILE_TOKENS : v->tokens;
    return (uint64_t)(v->wk - 1) * v->rows * columns * 4;
}

static bool fit_shared(const ptxgen_w8a8_plan *p, ptxgen_w8a8_variant *v)
{
    uint64_t fixed = resident_bytes(&p->spec, v) + SMALL_BYTES;
    if (fixed >= p->target.shared_per_cta)
        return false;
    uint64_t stages = (p->target.shared_per_cta - fixed) / stage_bytes(v);
    uint64_t useful = depth_steps(&p->spec, v) + 1;
    stages = stages < useful ? stages : useful;
    v->stages = (uint32_t)(stages < MAX_STAGES ? stages : MAX_STAGES);
    if (v->stages < 2)
        return false;
    uint64_t ring = v->stages * stage_bytes(v), handover = handover_bytes(v);
    uint64_t all = fixed + (ring > handover ? ring : handover);
    v->shared_bytes = (uint32_t)all;
    v->dynamic_shared_bytes = all > 48 * 1024 ? (uint32_t)all : 0;
    return all <= p->target.shared_per_cta;
}

/* ---- the time of a variant ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Tiles of tokens that m tokens fill. */
static uint64_t token_tiles(const ptxgen_w8a8_variant *v, uint32_t m)
{
    return ((uint64_t)m + v->tokens - 1) / v->tokens;
}

uint64_t ptxgen_w8a8_grid(const ptxgen_w8a8_variant *v, uint32_t m)
{
    return token_tiles(v, m) * v->row_blocks * v->splits;
}

/*
 * Cycles for m tokens, by an H100's figures: a multiprocessor's share of the memory is 13 bytes a
 * cycle, of the L2 23, and alone it draws 40; shared memory moves 128 bytes a cycle at best, the
 * tensor cores do 2600 products. An output costs its warp 20 cycles at the end, for each warp
 * along K; meeting in the workspace costs 3000.
 */
static uint64_t cycles(const ptxgen_w8a8_plan *p, const ptxgen_w8a8_variant *v, uint32_t m)
{
    uint64_t k = (uint64_t)depth_steps(&p->spec, v) * v->depth / v->splits;
    uint64_t rows = (p->spec.n + v->row_blocks - 1) / v->row_blocks;
    uint64_t ctas = ptxgen_w8a8_grid(v, m), sms = p->target.multiprocessors;
    uint64_t waves = (ctas + sms - 1) / sms, active = ctas < sms ? ctas : sms;
    uint64_t in_flight = (v->stages - 1) * rows * v->depth;
    uint64_t memory = larger(rows * k * active / (13 * sms), rows * k / 40);
    if (in_flight < 40 * 1024)
        memory = memory * (40 * 1024) / in_flight;
    uint64_t second = larger((rows + v->tokens) * k * active / (23 * sms), (rows + v->tokens) * k / 40);
    uint64_t columns = v->tokens < TILE_TOKENS ? TILE_TOKENS : v->tokens;
    uint64_t shared = (v->wm * v->rows + v->wn * columns + stage_bytes(v) / v->depth) * k / 100;
    uint64_t tensor = (uint64_t)v->rows * columns * k / 2600;
    uint64_t end = (uint64_t)v->rows * columns * v->wk * 20 / (32 * v->wn * v->wm);
    uint64_t split = v->splits > 1 ? 3000 : 0;
    return waves * (larger(larger(memory, second), larger(shared, tensor)) + end + split);
}

/* ---- the search ---- */

static bool is_shape(const ptxgen_w8a8_variant *v)
{
    uint32_t columns = v->tokens < TILE_TOKENS ? TILE_TOKENS : v->tokens;
    uint32_t tiles = v->rows / TILE_ROWS, token_tiles = columns / TILE_TOKENS;
    bool divides = tiles % v->wn == 0 && token_tiles % v->wm == 0;
    uint32_t accumulators = tiles / v->wn * (token_tiles / v->wm) * 4;
    uint32_t per_warp = token_tiles / v->wm;
    return divides && accumulators <= MAX_ACCUMULATORS && v->depth / TILE_DEPTH >= v->wk &&
           (per_warp == 1 || per_warp % 2 == 0);
}

/* The best division among warps of a tile whose rows, tokens and splits are given. */
static bool divide_tile(const ptxgen_w8a8_plan *p, ptxgen_w8a8_variant *v, uint32_t m)
{
    bool found = false;
    ptxgen_w8a8_variant best = {0};
    for (uint32_t depth = 64; depth <= 256; depth *= 2)
        for (uint32_t wn = 1; wn <= CTA_WARPS; wn *= 2)
            for (uint32_t wm = 1; wn * wm <= CTA_WARPS; wm *= 2) {
                ptxgen_w8a8_variant one = *v;
                one.depth = depth;
                one.wn = wn;
                one.wm = wm;
                one.wk = CTA_WARPS / (wn * wm);
                if (is_shape(&one) && fit_shared(p, &one) &&
                    (!found || cycles(p, &one, m) < cycles(p, &best, m))) {
                    best = one;
                    found = true;
                }
            }
    if (found)
        *v = best;
    return found;
}

/* Rows of a tile such that all row blocks run at once, or in as few turns as the tile allows. */
static uint32_t even_rows(const ptxgen_w8a8_plan *p, uint32_t *row_blocks)
{
    uint64_t n = p->spec.n, blocks = p->target.multiprocessors;
    while ((n + blocks - 1) / blocks > MAX_ROWS_OF_TILE)
        blocks += p->target.multiprocessors;
    if (blocks > (n + TILE_ROWS - 1) / TILE_ROWS)
        blocks = (n + TILE_ROWS - 1) / TILE_ROWS;
    *row_blocks = (uint32_t)blocks;
    return (uint32_t)(((n + blocks - 1) / blocks + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS);
}

/* The best for m tokens with tiles of `tokens`: of one turn's rows, or of 64, 128 or 256. */
static bool choose_rows(const ptxgen_w8a8_plan *p, uint32_t tokens, uint32_t m, bool fused,
                        ptxgen_w8a8_variant *best)
{
    bool found = false;
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t splits = 1; splits <= (fused || m > tokens ? 1 : 8); splits *= 2) {
            ptxgen_w8a8_variant v = {.tokens = tokens, .splits = splits, .fused = fused};
            v.rows = 32u << i;
            v.row_blocks = (p->spec.n + v.rows - 1) / v.rows;
            if (!i)
                v.rows = even_rows(p, &v.row_blocks);
            if (splits > 1 && (uint64_t)v.row_blocks * splits > p->target.multiprocessors)
                continue;
            if (!divide_tile(p, &v, m) || (splits > 1 && depth_steps(&p->spec, &v) < 4 * splits))
                continue;
            if (!found || cycles(p, &v, m) < cycles(p, best, m)) {
                *best = v;
                found = true;
            }
        }
    return found;
}

/* As many tokens as leave room for a ring that keeps the memory busy. */
static bool choose_fused(const ptxgen_w8a8_plan *p, ptxgen_w8a8_variant *v)
{
    for (uint32_t tokens = TILE_TOKENS; tokens; tokens /= 2) {
        uint64_t resident = (uint64_t)tokens * (code_stride(&p->spec) + 16);
        bool has_ring = resident + 32 * 1024 + SMALL_BYTES <= p->target.shared_per_cta;
        if (has_ring && choose_rows(p, tokens, tokens, true, v))
            return true;
    }
    return false;
}

static bool same_tile(const ptxgen_w8a8_variant *a, const ptxgen_w8a8_variant *b)
{
    return a->tokens == b->tokens && a->rows == b->rows && a->splits == b->splits;
}

static ptxgen_status choose_variants(ptxgen_w8a8_plan *p, ptxgen_error *err)
{
    /* Tokens of a tile, and how many it is chosen for. */
    static const uint32_t tiles[][2] = {{16, 16},   {32, 32},     {64, 64},
                                        {128, 128}, {128, 1024}, {256, 4096}};
    uint32_t served = 0;
    if (choose_fused(p, &p->variants[0]))
        served = p->variants[p->variant_count++].tokens;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        ptxgen_w8a8_variant v;
        if (p->spec.max_tokens && served >= p->spec.max_tokens)
            break;
        if (!choose_rows(p, tiles[i][0], tiles[i][1], false, &v))
            continue;
        served = tiles[i][1];
        if (!p->variant_count || !same_tile(&v, &p->variants[p->variant_count - 1]))
            p->variants[p->variant_count++] = v;
    }
    if (p->variant_count)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                       "w8a8: no tile fits into the %u bytes of shared memory of a CTA",
                       p->target.shared_per_cta);
}

static uint32_t copy_bytes(const ptxgen_w8a8_spec *s)
{
    uint32_t stride = w_stride(s);
    return stride % 16 == 0 ? 16 : stride % 8 == 0 ? 8 : stride % 4 == 0 ? 4 : 1;
}

ptxgen_status ptxgen_w8a8_make_plan(const ptxgen_w8a8_spec *spec, const ptxgen_target *target,
                                    ptxgen_w8a8_plan *plan, ptxgen_error *err)
{
    if (!spec || !target || !plan)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: spec, target and plan must be given");
    ptxgen_w8a8_spec s = *spec;
    if (!s.q_min && !s.q_max) {
        s.q_min = -127;
        s.q_max = 127;
    }
    ptxgen_status status = check_spec(&s, err);
    if (status == PTXGEN_OK)
        status = check_target(target, err);
    if (status != PTXGEN_OK)
        return status;
    memset(plan, 0, sizeof *plan);
    s.w_stride = w_stride(&s);
    plan->spec = s;
    plan->target = *target;
    plan->copy_bytes = copy_bytes(&s);
    return choose_variants(plan, err);
}

/* ---- what serves m tokens ---- */

const ptxgen_w8a8_variant *ptxgen_w8a8_choose(const ptxgen_w8a8_plan *p, uint32_t m)
{
    const ptxgen_w8a8_variant *best = NULL;
    if (!m || (p->spec.max_tokens && m > p->spec.max_tokens))
        return NULL;
    for (uint32_t i = 0; i < p->variant_count; i++) {
        const ptxgen_w8a8_variant *v = &p->variants[i];
        if (v->fused && v->tokens >= m)
            return v;
        if (v->fused || (v->splits > 1 && v->tokens < m))
            continue;
        if (!best || cycles(p, v, m) < cycles(p, best, m))
            best = v;
    }
    return best;
}

void ptxgen_w8a8_entry(const ptxgen_w8a8_variant *v, char *name, size_t size)
{
    if (v->fused)
        snprintf(name, size, "w8a8_fused");
    else if (v->splits > 1)
        snprintf(name, size, "w8a8_t%ux%u_split%u", v->rows, v->tokens, v->splits);
    else
        snprintf(name, size, "w8a8_t%ux%u", v->rows, v->tokens);
}

void ptxgen_w8a8_explain(const ptxgen_w8a8_plan *p, uint32_t m, char *text, size_t size)
{
    const ptxgen_w8a8_variant *v = ptxgen_w8a8_choose(p, m);
    if (!v && !m)
        snprintf(text, size, "no launch: there are no tokens");
    else if (!v)
        snprintf(text, size, "no launch: %u tokens are above the plan's %u", m, p->spec.max_tokens);
    else if (v->fused)
        snprintf(text, size,
                 "one launch: each of %u CTAs quantises the %u tokens (at most %u) for itself while "
                 "its first weights arrive", v->row_blocks, m, v->tokens);
    else
        snprintf(text, size,
                 "two launches: %u tokens are too many for every CTA to quantise again, so one kernel "
                 "does it, then %llu CTAs multiply tiles of %u rows by %u tokens%s", m,
                 (unsigned long long)ptxgen_w8a8_grid(v, m), v->rows, v->tokens,
                 v->splits > 1 ? ", K split among them" : "");
}

/* ---- the workspace ---- */

/* Sets *at to the start of the next part, at a multiple of 256 bytes. */
static bool add_part(uint64_t *end, uint64_t count, uint64_t each, uint64_t *at)
{
    uint64_t bytes;
    *at = *end;
    return !__builtin_mul_overflow(count, each, &bytes) && !__builtin_add_overflow(*end, bytes, end) &&
           !__builtin_add_overflow(*end, 255, end) && (*end &= ~(uint64_t)255, true);
}

bool w8a8_lay_out_workspace(const ptxgen_w8a8_plan *p, const ptxgen_w8a8_variant *v, uint32_t m,
                            struct w8a8_workspace *to)
{
    memset(to, 0, sizeof *to);
    if (v->fused)
        return true;
    uint64_t tiles = token_tiles(v, m) * v->row_blocks;
    bool split = v->splits > 1;
    return add_part(&to->bytes, m, code_stride(&p->spec), &to->codes) &&
           add_part(&to->bytes, m, work_bytes(&p->spec), &to->scales) &&
           add_part(&to->bytes, p->spec.asymmetric ? m : 0, 4, &to->zeros) &&
           add_part(&to->bytes, split ? tiles : 0, 4, &to->counters) &&
           add_part(&to->bytes, split ? tiles * v->splits : 0, (uint64_t)v->rows * v->tokens * 4,
                    &to->partials);
}

ptxgen_status ptxgen_w8a8_workspace(const ptxgen_w8a8_plan *plan, uint32_t m, uint64_t *bytes,
                                    ptxgen_error *err)
{
    if (!plan || !bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "w8a8: plan and bytes must be given");
    const ptxgen_w8a8_variant *v = ptxgen_w8a8_choose(plan, m);
    struct w8a8_workspace layout = {0};
    if (m && !v)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: m = %u is above the %u tokens that the plan serves", m,
                           plan->spec.max_tokens);
    if (v && !w8a8_lay_out_workspace(plan, v, m, &layout))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: the workspace for m = %u does not fit into 64 bits", m);
    *bytes = layout.bytes;
    return PTXGEN_OK;
}
