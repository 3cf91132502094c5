/* SPDX-License-Identifier: Apache-2.0 */
/* From a spec to the shape of the kernel. */
#include "layout.h"

#include "../gemm/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_WARPS = 16, MAX_N = 1 << 29, MAX_K = 1 << 24 };

/* ---- validation ---- */

static ptxgen_status check_shape(const ptxgen_rmsnorm_q4k_spec *s, ptxgen_error *err)
{
    if (!s->k || s->k % SUPER_BLOCK || s->k > MAX_K)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "rmsnorm_q4k: K = %u must be a positive multiple of 256 (Q4_K's "
                           "super-block) up to %d",
                           s->k, MAX_K);
    for (int i = 0; i < PTXGEN_RMSNORM_Q4K_MATRICES; i++)
        if (s->n[i] > MAX_N)
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "rmsnorm_q4k: N[%d] = %u is above %d",
                               i, s->n[i], MAX_N);
    if ((s->n[1] && !s->n[0]) || (s->n[2] && !s->n[1]))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "rmsnorm_q4k: N = %u, %u, %u; the matrices must be given in order",
                           s->n[0], s->n[1], s->n[2]);
    if (s->max_m > PTXGEN_RMSNORM_Q4K_MAX_M)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "rmsnorm_q4k: max_m = %u is above 8",
                           s->max_m);
    return PTXGEN_OK;
}

static ptxgen_status check_options(const ptxgen_rmsnorm_q4k_spec *s, ptxgen_error *err)
{
    if (!(s->epsilon >= 0) || !isfinite(s->epsilon))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "rmsnorm_q4k: epsilon = %g must be at least 0 and finite", s->epsilon);
    if (s->x_type > PTXGEN_BF16 || s->y_type > PTXGEN_BF16)
        return ptxgen_fail(
            err, plan_refuses_enumerator(s->x_type <= PTXGEN_F64 && s->y_type <= PTXGEN_F64),
            "rmsnorm_q4k: x_type = %u, y_type = %u; f32, f16 and bf16 are 0, 1, 2", s->x_type,
            s->y_type);
    if (s->epilogue == PTXGEN_EPILOGUE_GEGLU)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "rmsnorm_q4k: epilogue = 2, GeGLU, which gguf_linear has");
    if (s->epilogue > PTXGEN_EPILOGUE_SWIGLU || s->bias > 1 || s->residual > 1 ||
        s->residual_out > 1 || s->reserved[0] || s->reserved[1])
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "rmsnorm_q4k: a flag is neither 0 nor 1, or a reserved byte is not 0");
    if (s->residual_out && !s->residual)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "rmsnorm_q4k: residual_out without residual would only copy x");
    if (s->residual_out && !s->n[0])
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "rmsnorm_q4k: N = 0 launches nothing, and residual_out would not be "
                           "written");
    if (s->epilogue == PTXGEN_EPILOGUE_SWIGLU && (s->n[0] != s->n[1] || s->n[2]))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "rmsnorm_q4k: SwiGLU needs two matrices of equal N, not N = %u, %u, %u",
                           s->n[0], s->n[1], s->n[2]);
    return PTXGEN_OK;
}

/* ---- shared memory ---- */

/*
 * Shared memory without x: rings and their mbarriers, partial sums of every warp's tile, twice so
 * that rounds may overlap, sums of squares, and zeros.
 */
static uint64_t fixed_bytes(const ptxgen_rmsnorm_q4k_plan *p, const ptxgen_rmsnorm_q4k_variant *v)
{
    uint64_t warps = v->wk * v->wn;
    uint64_t barriers = has_tensor_copies(&p->target) ? warps * v->stages * 8 : 0;
    uint64_t partials = v->wk > 1 ? 2 * warps * partial_bytes(v) : 0;
    return warps * v->stages * STAGE_BYTES + partials +
           (uint64_t)v->tile_m * super_blocks(&p->spec) * 8 + barriers + zero_bytes(v->tile_m);
}

/* Beside so much shared memory Hopper's L1 cache keeps 60 KB; beside more, 28. */
enum { SHARED_BESIDE_L1 = 195 * 1024 };

/*
 * All of one token's x of 16 bits is staged where it is so large that it arrives late, if shared
 * memory has the room. A smaller x arrives sooner by loads, except for the second of two
 * super-blocks of each warp, which is needed later.
 */
uint32_t rmsnorm_q4k_staged_bytes(const ptxgen_rmsnorm_q4k_plan *p,
                                  const ptxgen_rmsnorm_q4k_variant *v)
{
    const ptxgen_rmsnorm_q4k_spec *s = &p->spec;
    uint32_t all = super_blocks(s), warps = v->wk * v->wn, most = p->target.shared_per_cta;
    uint32_t bytes = all * SUPER_BLOCK * 2;
    if (v->tile_m > 1 || s->x_type == PTXGEN_F32 || s->residual || all <= warps)
        return 0;
    if (!x_is_larger(s, v)) {
        if (all != 2 * warps || !has_tensor_copies(&p->target))
            return 0;
        bytes = staged_second_bytes(v);
        most = most < SHARED_BESIDE_L1 ? most : SHARED_BESIDE_L1;
    }
    return fixed_bytes(p, v) + all * record_bytes(1) + bytes <= most ? bytes : 0;
}

/* Super-blocks of x that fit beside the rest: all, or a multiple of wk pairs; 0: none. */
static uint32_t fit_chunk(const ptxgen_rmsnorm_q4k_plan *p, const ptxgen_rmsnorm_q4k_variant *v)
{
    uint32_t all = super_blocks(&p->spec), step = v->wk * PAIR;
    uint64_t fixed = fixed_bytes(p, v);
    if (fixed >= p->target.shared_per_cta)
        return 0;
    uint64_t room = (p->target.shared_per_cta - fixed) / record_bytes(v->tile_m);
    return room >= all ? all : (uint32_t)(room / step * step);
}

/* ---- the search ---- */

static bool complete(const ptxgen_rmsnorm_q4k_plan *p, ptxgen_rmsnorm_q4k_variant *v)
{
    uint32_t all = super_blocks(&p->spec), all_tiles = tiles(&p->spec);
    v->grid = all_tiles < p->target.multiprocessors ? all_tiles : p->target.multiprocessors;
    uint32_t cta_tiles = (all_tiles + v->grid - 1) / v->grid;
    v->rounds = (cta_tiles + v->wn - 1) / v->wn;
    v->chunk = fit_chunk(p, v);
    if (!v->chunk)
        return false;
    v->chunks = (all + v->chunk - 1) / v->chunk;
    v->shared_bytes = (uint32_t)(fixed_bytes(p, v) + (uint64_t)v->chunk * record_bytes(v->tile_m)) +
                      rmsnorm_q4k_staged_bytes(p, v);
    v->dynamic_shared_bytes = plan_dynamic_shared(v->shared_bytes);
    return true;
}

/*
 * Time on a multiprocessor, in hundredths of the time that memory takes to deliver one pair of
 * super-blocks of a tile, 4608 bytes. docs/notes/rmsnorm_q4k.md says where the weights come from.
 * The terms:
 *   - the bytes, longer where the warps along K read short pieces of a row of 288 bytes, and where
 *     fewer than 64 KB in flight do not keep the memory busy;
 *   - steps in which a warp has nothing to multiply, a seventh each;
 *   - preparing activations: four for each super-block of a token that a warp prepares. Where x
 *     does not fit into shared memory at once, that comes again each round, with eight more for
 *     each chunk;
 *   - one token's x arrives behind the ring's first slots: the part of preparing x, and of a tile's
 *     steps at two each, that the other bytes do not hide;
 *   - the end of a round, a fifth for each warp along K and one more.
 */
static uint64_t cost(const ptxgen_rmsnorm_q4k_plan *p, const ptxgen_rmsnorm_q4k_variant *v)
{
    uint64_t warps = v->wk * v->wn, items = (uint64_t)super_blocks(&p->spec) * v->tile_m;
    uint64_t cta_tiles = (tiles(&p->spec) + v->grid - 1) / v->grid;
    uint64_t pairs_taken = cta_tiles * pairs(&p->spec);
    uint64_t slots = (uint64_t)v->rounds * steps(&p->spec, v->wk) * warps;
    uint64_t in_flight = warps * (v->stages - 1) * STAGE_BYTES;
    uint64_t streaming = pairs_taken * 100 + pairs_taken * 11 / v->wk;
    if (in_flight < 64 * 1024)
        streaming = streaming * (64 * 1024) / in_flight;
    uint64_t idle = (slots - pairs_taken) * 15;
    uint64_t preparing = (items + warps - 1) / warps * 400;
    uint64_t first = (v->wn < cta_tiles ? v->wn : cta_tiles) * v->wk * 100;
    uint64_t behind = first + preparing + (uint64_t)steps(&p->spec, v->wk) * 200;
    bool is_late = v->tile_m == 1 && v->chunks == 1 && behind > streaming;
    if (v->chunks > 1)
        preparing = v->rounds * (preparing + (uint64_t)v->chunks * 800);
    return streaming + idle + preparing + (is_late ? behind - streaming : 0) +
           (uint64_t)v->rounds * (v->wk + 1) * 20;
}

static bool better(const ptxgen_rmsnorm_q4k_plan *p, const ptxgen_rmsnorm_q4k_variant *a,
                   const ptxgen_rmsnorm_q4k_variant *b)
{
    uint64_t ca = cost(p, a), cb = cost(p, b);
    if (ca != cb)
        return ca < cb;
    if (a->wk * a->wn != b->wk * b->wn)
        return a->wk * a->wn > b->wk * b->wn;
    return a->stages > b->stages;
}

static bool choose_tiles(const ptxgen_rmsnorm_q4k_plan *p, uint32_t tokens,
                         ptxgen_rmsnorm_q4k_variant *best)
{
    bool found = false;
    for (uint32_t stages = 4; stages >= 2; stages--)
        for (uint32_t wk = 1; wk <= MAX_WARPS && wk <= pairs(&p->spec); wk++)
            for (uint32_t wn = 1; wk * wn <= MAX_WARPS; wn++) {
                ptxgen_rmsnorm_q4k_variant v = {
                    .tile_m = tokens, .wk = wk, .wn = wn, .stages = stages};
                if (complete(p, &v) && (!found || better(p, &v, best))) {
                    *best = v;
                    found = true;
                }
            }
    return found;
}

/* The largest M that is served. */
static uint32_t most_of(const ptxgen_rmsnorm_q4k_spec *spec)
{
    return spec->max_m ? spec->max_m : PTXGEN_RMSNORM_Q4K_MAX_M;
}

ptxgen_status ptxgen_rmsnorm_q4k_make_plan(const ptxgen_rmsnorm_q4k_spec *spec,
                                           const ptxgen_target *target,
                                           ptxgen_rmsnorm_q4k_plan *plan, ptxgen_error *err)
{
    if (!spec || !target || !plan)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "rmsnorm_q4k: spec, target and plan must be given");
    ptxgen_status status = check_shape(spec, err);
    if (status == PTXGEN_OK)
        status = check_options(spec, err);
    if (status == PTXGEN_OK)
        status = plan_check_target("rmsnorm_q4k", target, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_rmsnorm_q4k_plan made; /* spec and target may be those of the plan itself */
    memset(&made, 0, sizeof made);
    made.spec = *spec;
    made.target = *target;
    uint32_t most = most_of(spec);
    const uint32_t capacities[] = {1, most == 2 ? 2 : 4, 8};
    for (int i = 0; spec->n[0] && i < 3 && (!i || capacities[i - 1] < most); i++)
        if (!choose_tiles(&made, capacities[i], &made.variants[made.variant_count++])) {
            memset(plan, 0, sizeof *plan);
            return ptxgen_fail(
                err, PTXGEN_ERROR_UNSUPPORTED,
                "rmsnorm_q4k: K = %u with %u tokens does not fit into the %u bytes of "
                "shared memory of a CTA",
                made.spec.k, capacities[i], made.target.shared_per_cta);
        }
    memcpy(plan, &made, sizeof made);
    return PTXGEN_OK;
}

const ptxgen_rmsnorm_q4k_variant *ptxgen_rmsnorm_q4k_choose(const ptxgen_rmsnorm_q4k_plan *plan,
                                                            uint64_t m)
{
    if (!rmsnorm_q4k_is_plan(plan))
        return NULL;
    for (uint32_t i = 0; m && m <= most_of(&plan->spec) && i < plan->variant_count; i++)
        if (plan->variants[i].tile_m >= m)
            return &plan->variants[i];
    return NULL;
}

ptxgen_status rmsnorm_q4k_refuse_m(const ptxgen_rmsnorm_q4k_plan *plan, uint64_t m,
                                   ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "rmsnorm_q4k: m = %llu is above the %u tokens that the plan serves",
                       (unsigned long long)m, most_of(&plan->spec));
}

ptxgen_status ptxgen_rmsnorm_q4k_ctas(const ptxgen_rmsnorm_q4k_plan *plan, uint64_t m,
                                      uint32_t *ctas, ptxgen_error *err)
{
    if (!rmsnorm_q4k_is_plan(plan) || !ctas)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "rmsnorm_q4k: a plan that was made, and ctas, must be given");
    const ptxgen_rmsnorm_q4k_variant *v = ptxgen_rmsnorm_q4k_choose(plan, m);
    if (m && !v && (plan->spec.n[0] || m > most_of(&plan->spec)))
        return rmsnorm_q4k_refuse_m(plan, m, err);
    *ctas = v ? v->grid : 0;
    return PTXGEN_OK;
}

void ptxgen_rmsnorm_q4k_explain(const ptxgen_rmsnorm_q4k_plan *plan, uint64_t m, char *text,
                                size_t size)
{
    const ptxgen_rmsnorm_q4k_variant *v = ptxgen_rmsnorm_q4k_choose(plan, m);
    bool made = rmsnorm_q4k_is_plan(plan);
    size = plan_room(text, size);
    if (made && m && m <= most_of(&plan->spec) && !plan->spec.n[0])
        snprintf(text, size, "no launch: N is 0");
    else if (!plan_explains_none(made, m, v, made ? most_of(&plan->spec) : 0, text, size))
        snprintf(text, size,
                 "one launch: %u CTAs of %u x %u warps along N and K take tiles of %u features "
                 "for the %u tokens (at most %u), in %u stages",
                 v->grid, v->wn, v->wk, tile_outputs(&plan->spec), (unsigned)m, v->tile_m,
                 v->stages);
}

const char *ptxgen_rmsnorm_q4k_entry(const ptxgen_rmsnorm_q4k_variant *variant)
{
    if (!variant)
        return NULL;
    switch (variant->tile_m) {
    case 1: return "rmsnorm_q4k_m1";
    case 2: return "rmsnorm_q4k_m2";
    case 4: return "rmsnorm_q4k_m4";
    default: return "rmsnorm_q4k_m8";
    }
}

/* A row's bits depend on the variant alone, which serves all M up to its own tokens. */
ptxgen_status ptxgen_rmsnorm_q4k_guarantee(const ptxgen_rmsnorm_q4k_plan *plan, uint64_t m,
                                           ptxgen_guarantee *guarantee, ptxgen_error *err)
{
    if (!rmsnorm_q4k_is_plan(plan) || !guarantee || !m)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: a plan that was made, m above 0 and a guarantee must be given",
                           "rmsnorm_q4k");
    const ptxgen_rmsnorm_q4k_variant *v = ptxgen_rmsnorm_q4k_choose(plan, m);
    uint32_t most = most_of(&plan->spec);
    if (!v && (plan->spec.n[0] || m > most))
        return rmsnorm_q4k_refuse_m(plan, m, err);
    if (!v) {
        *guarantee = gemm_guarantee_of_nothing("rmsnorm_q4k", 1, most);
        return PTXGEN_OK;
    }
    ptxgen_guarantee g = {.same_bits = 1,
                          .x_rounding = PTXGEN_ROUNDING_FIXED,
                          .bound = PTXGEN_BOUND_PARTS,
                          .from_m = v > plan->variants ? v[-1].tile_m + 1 : 1,
                          .to_m = v->tile_m < most ? v->tile_m : most};
    strncpy(g.sku, ptxgen_rmsnorm_q4k_entry(v), sizeof g.sku - 1);
    g.batch_invariant = g.from_m == 1 && g.to_m == most;
    *guarantee = g;
    return PTXGEN_OK;
}
