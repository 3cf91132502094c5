/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles of direct.h. */
#include "direct.h"

#include "../half.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { FEWEST_ROWS = 32, MOST_ROWS = 256, CHUNK = 16 };

/* ---- which specs ---- */

static bool is_16_bits(const ptxgen_gguf_linear_spec *s)
{
    return gguf_linear_compute_type(s) != PTXGEN_F32;
}

const struct direct_type *gguf_linear_direct(const ptxgen_gguf_linear_plan *plan)
{
    const ptxgen_gguf_linear_spec *s = &plan->spec;
    const struct direct_type *type = gguf_linear_direct_type(s->w_type[0]);
    if (!type || !gemm_has_wgmma(&plan->target) || !is_16_bits(s) || s->k % UNIT ||
        row_bytes(s, s->w_type[0]) % CHUNK)
        return NULL;
    for (uint32_t i = 1; i < matrix_count(s); i++)
        if (s->w_type[i] != s->w_type[0])
            return NULL;
    return type;
}

/* ---- weights in f16 ---- */

static double held_in_f16(double number)
{
    const double most = 65504;
    return ptxgen_element_round(PTXGEN_F16, fmin(fmax(number, -most), most));
}

double direct_f16_weight(const struct direct_type *type, const struct gguf_block *block, size_t i)
{
    const size_t group = i / block->group;
    if (type->has_floats)
        return ptxgen_element_round(PTXGEN_F16, (double)block->scale[group] * block->code[i]);
    const double scale = held_in_f16((double)block->scale[group]);
    const double minimum = held_in_f16((double)block->min[group]);
    return ptxgen_element_round(PTXGEN_F16, scale * block->code[i] - minimum);
}

/* ---- tiles ---- */

static void derive(ptxgen_tile *v)
{
    v->tile_m = v->wm * v->warp_m;
    v->tile_n = v->wn * v->warp_n;
}

static uint64_t shared_bytes(const void *of, const ptxgen_tile *v)
{
    const struct direct_type *type = gguf_linear_direct(of);
    return (uint64_t)v->stages * direct_slot_of_units(type) + v->steps * direct_slot_bytes(v) +
           dense_staging_bytes(v) + gemm_ring_barrier_bytes(v->stages + v->steps);
}

/* A cluster is of no use where the second CTA has no features. */
static bool adapt(const void *of, ptxgen_tile *v)
{
    const ptxgen_gguf_linear_plan *plan = of;
    const bool is_shared = v->cluster == 1 || gguf_linear_all_rows(&plan->spec) > v->tile_n;
    return is_shared && plan->target.multiprocessors % v->cluster == 0;
}

/* Tiles along N; the CTAs of a cluster count as one. */
static uint32_t tiles_n(const ptxgen_gguf_linear_spec *s, const ptxgen_tile *v)
{
    const uint32_t rows = v->tile_n * v->cluster;
    return (gguf_linear_all_rows(s) + rows - 1) / rows;
}

/*
 * The time of a unit of a tile, in picoseconds, where so many rows of tiles share w. It is the
 * longest of four times: reading packed rows from memory (30 bytes a nanosecond and multiprocessor,
 * once for all rows of tiles), reading both operands from the L2 (42 bytes a nanosecond), decoding
 * (82 weights a nanosecond), and multiplying (2650 products a nanosecond); and a part of the
 * others, which is the less the more tokens there are, since then products leave more time for the
 * rest. docs/notes/gguf_linear.md says where these come from.
 */
static uint64_t unit_cost(const ptxgen_gguf_linear_plan *plan, const ptxgen_tile *v, uint64_t rows)
{
    enum { MEMORY = 30, L2 = 42, DECODING = 82, PRODUCTS = 2650, TIMES = 4 };
    enum { HIDING = 16, FEWEST_HIDING = 64 }; /* tokens */
    const uint64_t w = (uint64_t)v->tile_n * gguf_linear_direct(plan)->pitch;
    const uint64_t x = (uint64_t)v->tile_m * UNIT * 2;
    const uint64_t times[TIMES] = {w * 1000 / MEMORY / rows, (w + x / v->cluster) * 1000 / L2,
                                   (uint64_t)v->tile_n * UNIT * 1000 / DECODING,
                                   (uint64_t)v->tile_n * UNIT * v->tile_m * 1000 / PRODUCTS};
    uint64_t longest = 0, sum = 0;
    for (int i = 0; i < TIMES; i++) {
        longest = times[i] > longest ? times[i] : longest;
        sum += times[i];
    }
    const uint32_t tokens = v->tile_m > FEWEST_HIDING ? v->tile_m : FEWEST_HIDING;
    return longest + (sum - longest) * HIDING / tokens;
}

/* The time of the CTA with the most work, in picoseconds; dividing costs more for more tokens. */
static uint64_t all_cost(const ptxgen_gguf_linear_plan *plan, const ptxgen_tile *v, uint64_t tiles,
                         uint64_t ctas, uint64_t rows, bool whole)
{
    enum { END = 2500000, END_TOKEN = 34000 };
    const uint64_t unit = unit_cost(plan, v, rows), all = tiles * units(&plan->spec);
    if (whole)
        return (tiles + ctas - 1) / ctas * units(&plan->spec) * unit;
    return (all + ctas - 1) / ctas * unit + END + v->tile_m * (uint64_t)END_TOKEN;
}

/* Tiles are divided where that is faster, which it is the most with one tile for many CTAs. */
static bool is_whole(const void *of, const ptxgen_tile *v, uint64_t tiles, uint32_t ctas)
{
    const ptxgen_gguf_linear_plan *plan = of;
    const uint64_t along_n = tiles_n(&plan->spec, v), rows = tiles > along_n ? tiles / along_n : 1;
    return gemm_deals_whole(tiles, ctas) || all_cost(plan, v, tiles, ctas, rows, true) <=
                                                all_cost(plan, v, tiles, ctas, rows, false);
}

static uint64_t cost(const void *of, const ptxgen_tile *v, uint64_t m)
{
    const ptxgen_gguf_linear_plan *plan = of;
    const uint64_t rows = (m + v->tile_m - 1) / v->tile_m;
    const uint64_t tiles = rows * tiles_n(&plan->spec, v);
    const uint64_t ctas = (uint64_t)plan->target.multiprocessors * v->ctas / v->cluster;
    return all_cost(plan, v, tiles, ctas, rows, is_whole(of, v, tiles, (uint32_t)ctas));
}

/* Of equally cheap candidates the first is used. */
static const ptxgen_tile candidates[] = {
    {.kind = PTXGEN_WGMMA, .warp_m = 32, .wn = 16, .steps = 2},
    {.kind = PTXGEN_WGMMA, .warp_m = 32, .wn = 8, .steps = 2},
    {.kind = PTXGEN_WGMMA, .warp_m = 64, .wn = 16, .steps = 2},
    {.kind = PTXGEN_WGMMA, .warp_m = 64, .wn = 8, .steps = 2},
    {.kind = PTXGEN_WGMMA, .warp_m = 128, .wn = 8, .steps = 3},
    {.kind = PTXGEN_WGMMA, .warp_m = 256, .wn = 8, .steps = 4, .cluster = 2},
    {.kind = PTXGEN_WGMMA, .warp_m = 256, .wn = 8, .steps = 4},
};

/*
 * The cheapest of those that hold all tokens, else the one with the most: several rows of tiles
 * decode each weight as often.
 */
static uint64_t variant_cost(const void *of, const ptxgen_tile *v, uint64_t m)
{
    const ptxgen_gguf_linear_plan *plan = of;
    const ptxgen_tile *last = &plan->direct[plan->direct_count - 1];
    return v->tile_m < m && v != last ? UINT64_MAX : cost(of, v, m);
}

static struct gemm_work work(const void *of, const ptxgen_tile *v)
{
    const ptxgen_gguf_linear_spec *s = &((const ptxgen_gguf_linear_plan *)of)->spec;
    return (struct gemm_work){tiles_n(s, v), units(s), v->cluster,
                              gemm_partials_bytes(gemm_tile_threads(v), dense_fragments(v))};
}

static void guarantee(const void *plan, const ptxgen_tile *v, ptxgen_guarantee *g)
{
    (void)plan, (void)v;
    g->bound = PTXGEN_BOUND_PRODUCTS;
}

static void describe(const void *of, const ptxgen_tile *v, uint64_t m, char *text, size_t size)
{
    const ptxgen_gguf_linear_plan *plan = of;
    char tile[160];
    gemm_describe_tile(v, gemm_name_kind(v), "", tile, sizeof tile);
    snprintf(text, size,
             "2 kernels for %llu tokens: of h, then w is decoded to %s in registers: %s",
             (unsigned long long)m,
             gguf_linear_compute_type(&plan->spec) == PTXGEN_BF16 ? "bf16" : "f16", tile);
}

const struct gemm_planner gguf_linear_direct_planner = {
    .family = "gguf_linear",
    .entry = ptxgen_gguf_linear_direct_entry,
    .n = offsetof(ptxgen_gguf_linear_plan, spec.n),
    .k = offsetof(ptxgen_gguf_linear_plan, spec.k),
    .max_m = offsetof(ptxgen_gguf_linear_plan, spec.max_m),
    .target = offsetof(ptxgen_gguf_linear_plan, target),
    .variant_count = offsetof(ptxgen_gguf_linear_plan, direct_count),
    .variants = offsetof(ptxgen_gguf_linear_plan, direct),
    .most_variants = PTXGEN_GGUF_LINEAR_DIRECT,
    .is_plan = gguf_linear_is_plan,
    .defaults = {.warp_n = 16, .wm = 1, .wk = 1, .ctas = 1, .pass_m = 16, .cluster = 1, .split = 1},
    .least_stages = 4,
    .most_stages = {16, 16, 16},
    .derive = derive,
    .adapt = adapt,
    .shared_bytes = shared_bytes,
    .candidate_cost = cost,
    .cost = variant_cost,
    .most_ctas = PTXGEN_DENSE_MOST_CTAS,
    .work = work,
    .is_whole = is_whole,
    .guarantee = guarantee,
    .describe = describe,
};

/* For each number of tokens the cheapest tile that has as many. */
void gguf_linear_plan_direct(ptxgen_gguf_linear_plan *plan)
{
    const uint32_t most = plan->spec.max_m ? plan->spec.max_m : GEMM_ANY_M;
    if (!plan->spec.n[0] || !gguf_linear_direct(plan) || most <= PASS_TOKENS)
        return;
    for (uint32_t rows = FEWEST_ROWS; rows <= MOST_ROWS; rows *= 2) {
        gemm_add_cheapest(&gguf_linear_direct_planner, plan, GEMM_AMONG(candidates, rows, rows),
                          rows);
        if (rows >= most)
            break;
    }
}

const ptxgen_tile *ptxgen_gguf_linear_choose_direct(const ptxgen_gguf_linear_plan *p, uint64_t m)
{
    if (!gguf_linear_is_plan(p) || m <= passes_most_m(p) || !p->direct_count)
        return NULL;
    return gemm_choose(&gguf_linear_direct_planner, p, m);
}
