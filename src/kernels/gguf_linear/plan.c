/* SPDX-License-Identifier: Apache-2.0 */
/* From a spec to the shapes of the kernels. */
#include "direct.h"
#include "floats.h"

#include "../gemm/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_WARPS = 16, MAX_N = 1 << 29, MAX_K = 1 << 22, MAX_STAGES = 8 };

/* Shared memory that is left to a CTA of the next launch's kernel that makes h. */
enum { SHARED_BESIDE = 4 * 1024 };
/* Beside so much shared memory Hopper's L1 cache keeps 60 KB; beside more, 28. */
enum { SHARED_BESIDE_L1 = 195 * 1024 };

/* ---- validation ---- */

static ptxgen_status check_matrix(const ptxgen_gguf_linear_spec *s, uint32_t i, ptxgen_error *err)
{
    const ptxgen_gguf_type_info *info = ptxgen_gguf_type_find(s->w_type[i]);
    const struct gguf_linear_facts *facts = gguf_linear_facts(s->w_type[i]);
    if (!info)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "gguf_linear: w_type[%u] = %u is the number of no type that this "
                           "library decodes",
                           i, s->w_type[i]);
    if (facts->block_weights == 1 && s->k % FLOAT_MULTIPLE)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "gguf_linear: K = %u is not a multiple of %u, as weights in %s need it",
                           s->k, FLOAT_MULTIPLE, info->name);
    if (s->k % facts->block_weights)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "gguf_linear: K = %u is not a multiple of %u: a row of %s is whole "
                           "blocks",
                           s->k, facts->block_weights, info->name);
    if (s->n[i] > MAX_N)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "gguf_linear: N[%u] = %u is above %d", i,
                           s->n[i], MAX_N);
    return PTXGEN_OK;
}

static ptxgen_status check_shape(const ptxgen_gguf_linear_spec *s, ptxgen_error *err)
{
    if (!s->k || s->k > MAX_K)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "gguf_linear: K = %u is not within 1 and %d", s->k, MAX_K);
    if ((s->n[1] && !s->n[0]) || (s->n[2] && !s->n[1]))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "gguf_linear: N = %u, %u, %u; the matrices must be given in order",
                           s->n[0], s->n[1], s->n[2]);
    if (s->max_m > GEMM_ANY_M)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "gguf_linear: max_m = %u is above %d",
                           s->max_m, GEMM_ANY_M);
    ptxgen_status status = PTXGEN_OK;
    for (uint32_t i = 0; status == PTXGEN_OK && i < matrix_count(s); i++)
        status = check_matrix(s, i, err);
    return status;
}

static ptxgen_status check_options(const ptxgen_gguf_linear_spec *s, ptxgen_error *err)
{
    const struct plan_flag flags[] = {{"residual_out", s->residual_out, 1},
                                      {"bias", s->bias, 1},
                                      {"reserved[0]", s->reserved[0], 0}};
    ptxgen_status status =
        plan_check_flags("gguf_linear", flags, sizeof flags / sizeof *flags, err);
    if (status != PTXGEN_OK)
        return status;
    if (s->x_type > PTXGEN_BF16 || s->y_type > PTXGEN_BF16)
        return ptxgen_fail(
            err, plan_refuses_enumerator(s->x_type <= PTXGEN_F64 && s->y_type <= PTXGEN_F64),
            "gguf_linear: x_type = %u, y_type = %u; f32, f16 and bf16 are 0, 1, 2", s->x_type,
            s->y_type);
    if (s->norm > PTXGEN_GGUF_LINEAR_RMSNORM)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_linear: norm = %u; none and RMSNorm are 0 and 1", s->norm);
    if (s->residual > PTXGEN_GGUF_LINEAR_AFTER)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_linear: residual = %u; none, before and after the norm are 0, 1 "
                           "and 2",
                           s->residual);
    if (s->compute > PTXGEN_BF16)
        return ptxgen_fail(err, plan_refuses_enumerator(s->compute <= PTXGEN_F64),
                           "gguf_linear: compute = %u; x's type, f16 and bf16 are 0, 1 and 2",
                           s->compute);
    if (s->epilogue > PTXGEN_EPILOGUE_GEGLU)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_linear: epilogue = %u; none, SwiGLU and GeGLU are 0, 1 and 2",
                           s->epilogue);
    return PTXGEN_OK;
}

static ptxgen_status check_together(const ptxgen_gguf_linear_spec *s, ptxgen_error *err)
{
    if (!(s->epsilon >= 0) || !isfinite(s->epsilon))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "gguf_linear: epsilon = %g must be at least 0 and finite", s->epsilon);
    if (s->residual_out && !s->residual)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "gguf_linear: residual_out without residual would only copy x");
    if (s->residual_out && !s->n[0])
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "gguf_linear: N = 0 launches nothing, and residual_out would not be "
                           "written");
    if (is_gated(s) && (s->n[0] != s->n[1] || s->n[2]))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "gguf_linear: a gate needs two matrices of equal N, not N = %u, %u, %u",
                           s->n[0], s->n[1], s->n[2]);
    return PTXGEN_OK;
}

/* ---- making h ---- */

static bool has_reductions(const ptxgen_gguf_linear_spec *s)
{
    return s->norm || s->residual == PTXGEN_GGUF_LINEAR_AFTER;
}

/* Each warp takes a unit at a time; a row's sums of squares want one CTA. */
uint32_t gguf_linear_prepare_threads(const ptxgen_gguf_linear_spec *s)
{
    enum { MOST = 32, MOST_ALONE = 8 };
    uint32_t most = has_reductions(s) ? MOST : MOST_ALONE;
    return 32 * (units(s) < most ? units(s) : most);
}

uint32_t gguf_linear_prepare_ctas(const ptxgen_gguf_linear_spec *s)
{
    uint32_t warps = gguf_linear_prepare_threads(s) / 32;
    return has_reductions(s) ? 1 : (units(s) + warps - 1) / warps;
}

/* ---- the workspace ---- */

static uint64_t align16(uint64_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

struct gguf_linear_space gguf_linear_space(const ptxgen_gguf_linear_plan *p,
                                           const ptxgen_gguf_linear_variant *v)
{
    const ptxgen_gguf_linear_spec *s = &p->spec;
    const bool has_records = has_quantised(s) && !v->makes_h;
    uint64_t at = has_records ? (uint64_t)units(s) * record_bytes(p, v->tile_m) : 0;
    const uint64_t tiles = all_tiles(s);
    struct gguf_linear_space space;
    for (int i = 0; i < 2; i++) {
        space.joined[i] = at;
        at += is_joined(s) ? align16(4 * (uint64_t)v->tile_m * s->n[0]) : 0;
    }
    space.counters = at;
    at += v->parts > 1 ? align16(4 * tiles) : 0;
    space.partials = at;
    at += v->parts > 1 ? 4 * tiles * v->parts * v->tile_m * TILE_ROWS : 0;
    space.rows = at;
    at += has_float_rows(s) ? 4 * (uint64_t)v->tile_m * s->k : 0;
    space.bytes = at;
    return space;
}

/* ---- the search ---- */

/* Words of each warp for its sums of squares. */
static uint32_t square_words(const ptxgen_gguf_linear_spec *s)
{
    uint32_t norms = (s->norm ? 1 : 0) + (s->residual == PTXGEN_GGUF_LINEAR_AFTER ? 1 : 0);
    return norms * (s->x_type == PTXGEN_F16 ? 1 : 2);
}

/*
 * Rings, with tensor copies and barriers for each slot; the part's records; sums of each warp's
 * tile, with tensor copies in two places; a word for each wn (parts of K); sums of squares (h of
 * its own).
 */
static uint64_t shared_bytes(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_variant *v)
{
    uint64_t warps = v->wn * v->wk;
    const uint64_t ring = v->tensor
                              ? v->stages * tensor_slot_bytes(&p->spec, v) + ring_barrier_bytes(v)
                              : v->stages * slot_bytes(&p->spec, v->wk);
    return ring_count(v) * ring + (uint64_t)part_units(&p->spec, v) * record_bytes(p, v->tile_m) +
           (v->tensor ? 2 : 1) * warps * columns(p, v->tile_m) * TILE_ROWS * 4 +
           (v->parts > 1 ? v->wn * 4 : 0) + (v->makes_h ? 4 * warps * square_words(&p->spec) : 0);
}

/* Shapes whose shared memory is within the target's. */
static bool complete(const ptxgen_gguf_linear_plan *p, ptxgen_gguf_linear_variant *v)
{
    uint32_t tiles = all_tiles(&p->spec), multiprocessors = p->target.multiprocessors;
    v->makes_h = v->tile_m == 1 && v->parts == 1 && !float_count(&p->spec) &&
                 units(&p->spec) <= product_held_units(&p->spec) * v->wk * v->wn;
    uint64_t bytes = shared_bytes(p, v);
    uint32_t shares = v->tensor ? pairs(&p->spec) : units(&p->spec);
    if (v->wk * v->parts > shares || bytes + SHARED_BESIDE > p->target.shared_per_cta)
        return false;
    v->part_ctas = multiprocessors / v->parts ? multiprocessors / v->parts : 1;
    v->part_ctas = v->part_ctas < tiles ? v->part_ctas : tiles;
    v->shared_bytes = (uint32_t)bytes;
    v->dynamic_shared_bytes = plan_dynamic_shared(v->shared_bytes);
    return true;
}

static uint32_t first_quantised(const ptxgen_gguf_linear_spec *s)
{
    uint32_t i = 0;
    while (is_float(s, i))
        i++;
    return s->w_type[i];
}

/*
 * Time on a multiprocessor, in hundredths of the time that memory takes to deliver one unit of a
 * tile. docs/notes/gguf_linear.md says where the weights come from. The terms:
 *   - the units of the CTA with the most tiles: reading them, which takes longer where the warps
 *     along K read short runs of a row, where fewer than 32 KB in flight do not keep the memory
 *     busy, and where the L1 cache is small; or multiplying them, if that takes longer; either with
 *     few warps;
 *   - tiles and steps in which warps have nothing to multiply, six tenths each;
 *   - records that the CTA loads before it multiplies, half of which the ring hides;
 *   - the ends of rounds, which the CTA's other tiles hide in part but for one, and sums of parts.
 */
static uint64_t cost_by_cp_async(const ptxgen_gguf_linear_plan *p,
                                 const ptxgen_gguf_linear_variant *v)
{
    const ptxgen_gguf_linear_spec *s = &p->spec;
    uint64_t warps = v->wn * v->wk, own = part_units(s, v);
    uint64_t slot = slot_bytes(s, v->wk) / v->wk;
    uint64_t tiles = all_tiles(s), cta_tiles = (tiles + v->part_ctas - 1) / v->part_ctas;
    uint64_t rounds = (cta_tiles + v->wn - 1) / v->wn;
    uint64_t in_flight = warps * (v->stages - 1) * slot;
    uint64_t reading = 100 + 16000 / (v->wk * unit_bytes(first_quantised(s)));
    uint64_t multiplying = (70 + 45 * n_tiles(p, v->tile_m)) * 1940 / slot;
    if (in_flight < 32 * 1024)
        reading = reading * (32 * 1024) / in_flight;
    if (v->shared_bytes > SHARED_BESIDE_L1)
        reading += reading / 14;
    uint64_t streaming = cta_tiles * own * (reading > multiplying ? reading : multiplying);
    if (warps < 12)
        streaming = streaming * (24 - warps) / 12;
    uint64_t idle =
        (rounds * v->wn - cta_tiles) * own * 60 + cta_tiles * (warp_units(s, v) * v->wk - own) * 60;
    uint64_t records = own * record_bytes(p, v->tile_m) * 50 / slot;
    uint64_t end = 600 + 60 * v->tile_m + (v->parts > 1 ? 3000 : 0);
    return streaming + idle + records + end + (rounds - 1) * end / v->wn;
}

/*
 * Likewise with tensor copies, where a ring is a warp's own, and 64 KB of slots keep the memory
 * busy. Few warps may multiply more slowly than memory delivers. Runs of a row are longer with more
 * warps along K. Each warp fewer than 16 costs half a hundredth of the streaming, a step without a
 * pair three tenths of it or half of the multiplying, tiles that the last round lacks four tenths,
 * and each part of K a sixth of all.
 *
 * Slots that warps share are read a twentieth faster, as their copies do not overlap; tiles that
 * the last round lacks cost half as much, and the first slot arrives later than a pair would.
 */
static uint64_t cost_by_tensor_copies(const ptxgen_gguf_linear_plan *p,
                                      const ptxgen_gguf_linear_variant *v)
{
    enum { BUSY_BYTES = 64 * 1024 };
    const ptxgen_gguf_linear_spec *s = &p->spec;
    uint64_t warps = v->wn * v->wk, own = part_units(s, v);
    uint64_t tiles = all_tiles(s), cta_tiles = (tiles + v->part_ctas - 1) / v->part_ctas;
    uint64_t rounds = (cta_tiles + v->wn - 1) / v->wn;
    uint64_t slots = ring_count(v) * v->stages * tensor_slot_bytes(s, v);
    uint64_t steps = ((own + 1) / 2 + v->wk - 1) / v->wk;
    uint64_t multiplying =
        (255 + 153 * n_tiles(p, v->tile_m)) * 121 / (warps * unit_bytes(first_quantised(s)));
    uint64_t reading = slots < BUSY_BYTES ? 100 * BUSY_BYTES / slots : 100;
    uint64_t unit = reading > multiplying ? reading : multiplying;
    const bool shared = shares_slots(v);
    unit += 28 / v->wk + (MAX_WARPS - warps) / 2 - (shared ? 5 : 0);
    uint64_t streaming = cta_tiles * own * unit;
    uint64_t missing = multiplying > 45 ? multiplying : 45;
    uint64_t idle = (rounds * v->wn - cta_tiles) * own * (shared ? 20 : 40) +
                    cta_tiles * (2 * steps * v->wk - own) * missing;
    uint64_t end = 200 + 30 * v->tile_m;
    uint64_t all = streaming + idle + end + (rounds - 1) * end / v->wn + (shared ? 250 : 0);
    return v->parts > 1 ? all + all * v->parts / 6 : all;
}

static uint64_t cost(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_variant *v)
{
    enum { KERNEL_AHEAD = 1000 };
    uint64_t product = v->tensor ? cost_by_tensor_copies(p, v) : cost_by_cp_async(p, v);
    return product + (v->makes_h ? 0 : KERNEL_AHEAD);
}

/* Takes the shape for `best`, which costs `least`, if it fits and costs less. */
static bool compare(const ptxgen_gguf_linear_plan *p, ptxgen_gguf_linear_variant v, uint64_t *least,
                    ptxgen_gguf_linear_variant *best)
{
    if (!complete(p, &v))
        return false;
    uint64_t its = cost(p, &v);
    if (its < *least) {
        *least = its;
        *best = v;
    }
    return true;
}

static bool choose_shape(const ptxgen_gguf_linear_plan *p, uint32_t tile_m,
                         ptxgen_gguf_linear_variant *best)
{
    enum { MORE_PARTS = 4 };
    uint64_t least = UINT64_MAX;
    uint32_t first = 0; /* the fewest parts that fit */
    for (uint32_t parts = 1; parts <= units(&p->spec) && (!first || parts < first + MORE_PARTS);
         parts++)
        for (uint32_t stages = MAX_STAGES; stages >= 2; stages--)
            for (uint32_t wk = 1; wk <= MAX_WARPS; wk++)
                for (uint32_t wn = 1; wk * wn <= MAX_WARPS && wn < MAX_WARPS; wn++) {
                    ptxgen_gguf_linear_variant v = {.tile_m = tile_m,
                                                    .parts = parts,
                                                    .wn = wn,
                                                    .wk = wk,
                                                    .stages = stages,
                                                    .tensor = takes_tensor_copies(p)};
                    v.ring_warps = v.tensor ? 1 : wk;
                    bool fits = compare(p, v, &least, best);
                    v.ring_warps = wk;
                    if (may_share_slots(&p->spec, &v))
                        fits = compare(p, v, &least, best) || fits;
                    if (fits && !first)
                        first = parts;
                }
    return first != 0;
}

/* The largest M that is served. */
static uint32_t most_of(const ptxgen_gguf_linear_spec *spec)
{
    return spec->max_m ? spec->max_m : GEMM_ANY_M;
}

static ptxgen_status choose_shapes(ptxgen_gguf_linear_plan *plan, ptxgen_error *err)
{
    const ptxgen_gguf_linear_spec *spec = &plan->spec;
    plan->planes = spec->x_type == PTXGEN_F32 ? 3 : 2;
    for (uint32_t tile_m = 1; spec->n[0]; tile_m *= 2) {
        ptxgen_gguf_linear_variant *v = &plan->variants[plan->variant_count++];
        if (!has_quantised(spec))
            *v = gguf_linear_float_variant(spec, tile_m);
        else if (!choose_shape(plan, tile_m, v))
            return plan_no_tile("gguf_linear", &plan->target, err);
        if (tile_m >= most_of(spec) || tile_m >= PASS_TOKENS || tile_m >= passes_most_m(plan))
            break;
    }
    return PTXGEN_OK;
}

ptxgen_status ptxgen_gguf_linear_make_plan(const ptxgen_gguf_linear_spec *spec,
                                           const ptxgen_target *target,
                                           ptxgen_gguf_linear_plan *plan, ptxgen_error *err)
{
    if (!spec || !target || !plan)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_linear: spec, target and plan must be given");
    ptxgen_status status = check_shape(spec, err);
    if (status == PTXGEN_OK)
        status = check_options(spec, err);
    if (status == PTXGEN_OK)
        status = check_together(spec, err);
    if (status == PTXGEN_OK)
        status = plan_check_target("gguf_linear", target, err);
    if (status != PTXGEN_OK)
        return status;
    /* Spec and target may be those of the plan itself. */
    *plan = (ptxgen_gguf_linear_plan){.spec = *spec, .target = *target};
    status = choose_shapes(plan, err);
    if (status == PTXGEN_OK)
        gguf_linear_plan_direct(plan);
    if (status == PTXGEN_OK && !plan->direct_count && gguf_linear_serves_many(plan))
        status = gguf_linear_plan_inflated(plan, err);
    if (status != PTXGEN_OK)
        memset(plan, 0, sizeof *plan);
    return status;
}

/* ---- a plan's variants ---- */

const ptxgen_gguf_linear_variant *ptxgen_gguf_linear_choose(const ptxgen_gguf_linear_plan *plan,
                                                            uint64_t m)
{
    if (!gguf_linear_is_plan(plan))
        return NULL;
    const uint32_t passes = passes_most_m(plan);
    const uint64_t most = most_of(&plan->spec) < passes ? most_of(&plan->spec) : passes;
    const uint64_t at_once = m < PASS_TOKENS ? m : PASS_TOKENS;
    for (uint32_t i = 0; m && m <= most && i < plan->variant_count; i++)
        if (plan->variants[i].tile_m >= at_once)
            return &plan->variants[i];
    return NULL;
}

ptxgen_status gguf_linear_refuse_m(const ptxgen_gguf_linear_plan *plan, uint64_t m,
                                   ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "gguf_linear: m = %llu is above the %u tokens that the plan serves",
                       (unsigned long long)m, most_of(&plan->spec));
}

ptxgen_status ptxgen_gguf_linear_ctas(const ptxgen_gguf_linear_plan *plan, uint64_t m,
                                      uint32_t *ctas, ptxgen_error *err)
{
    if (!gguf_linear_is_plan(plan) || !ctas)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_linear: a plan that was made, and ctas, must be given");
    if (ptxgen_gguf_linear_choose_direct(plan, m))
        return gemm_ctas(&gguf_linear_direct_planner, plan, m, ctas, err);
    if (ptxgen_gguf_linear_choose_inflated(plan, m))
        return ptxgen_dense_ctas(&plan->inflated, m, ctas, err);
    const ptxgen_gguf_linear_variant *v = ptxgen_gguf_linear_choose(plan, m);
    if (m && !v && (plan->spec.n[0] || m > most_of(&plan->spec)))
        return gguf_linear_refuse_m(plan, m, err);
    *ctas = v ? v->parts * v->part_ctas : 0;
    return PTXGEN_OK;
}

static void explain_inflated(const ptxgen_gguf_linear_plan *plan, uint64_t m, char *text,
                             size_t size)
{
    static const char *const types[] = {"f32", "f16", "bf16"};
    const struct gguf_linear_slices slices = gguf_linear_slices(plan);
    char dense[160];
    ptxgen_dense_explain(&plan->inflated, m, dense, sizeof dense);
    if (gguf_linear_takes_w(&plan->spec)) {
        snprintf(text, size, "w is multiplied as it is, if it is aligned: %s", dense);
        return;
    }
    snprintf(text, size, "w is decoded to %s, %u rows at a time in %u slice%s, each multiplied: %s",
             types[gguf_linear_compute_type(&plan->spec)], slices.rows, slices.count,
             slices.count > 1 ? "s" : "", dense);
}

static void explain_floats(const ptxgen_gguf_linear_plan *plan, const ptxgen_gguf_linear_variant *v,
                           uint64_t m, char *text, size_t size)
{
    const uint32_t kernels = entries_before(&plan->spec, v, GGUF_LINEAR_KINDS);
    snprintf(text, size,
             "%u kernel%s: %u CTAs of %u x %u warps along N and K take %u features each for the %u "
             "tokens (at most %u), in f32",
             kernels, kernels > 1 ? "s" : "", v->part_ctas, v->wn, v->wk,
             float_cta_rows(&plan->spec, v->tile_m), (unsigned)m, v->tile_m);
}

void ptxgen_gguf_linear_explain(const ptxgen_gguf_linear_plan *plan, uint64_t m, char *text,
                                size_t size)
{
    const ptxgen_gguf_linear_variant *v = ptxgen_gguf_linear_choose(plan, m);
    const bool made = gguf_linear_is_plan(plan);
    const uint32_t kernels = v ? entries_before(&plan->spec, v, GGUF_LINEAR_KINDS) : 0;
    size = plan_room(text, size);
    if (made && ptxgen_gguf_linear_choose_direct(plan, m)) {
        gemm_explain(&gguf_linear_direct_planner, plan, m, text, size);
        return;
    }
    if (made && ptxgen_gguf_linear_choose_inflated(plan, m)) {
        explain_inflated(plan, m, text, size);
        return;
    }
    if (made && m && m <= most_of(&plan->spec) && !plan->spec.n[0])
        snprintf(text, size, "no launch: N is 0");
    else if (v && !v->stages)
        explain_floats(plan, v, m, text, size);
    else if (!plan_explains_none(made, m, v, made ? most_of(&plan->spec) : 0, text, size))
        snprintf(text, size,
                 "%u kernel%s: %s %u planes of h, and %u CTAs of %u x %u warps along N and K take "
                 "tiles of %u features and %u part%s of K for the %u tokens (at most %u), in %u "
                 "stages%s",
                 kernels, kernels > 1 ? "s" : "", v->makes_h ? "each CTA makes" : "one makes",
                 plan->planes, v->parts * v->part_ctas, v->wn, v->wk, tile_features(&plan->spec),
                 v->parts, v->parts > 1 ? "s" : "", (unsigned)m, v->tile_m, v->stages,
                 shares_slots(v) ? " that the warps along K share" : "");
}

const char *ptxgen_gguf_linear_entry(const ptxgen_gguf_linear_variant *variant)
{
    if (!variant)
        return NULL;
    if (!variant->stages)
        return gguf_linear_float_entry(variant->tile_m);
    switch (variant->tile_m) {
    case 1: return "gguf_linear_m1";
    case 2: return "gguf_linear_m2";
    case 4: return "gguf_linear_m4";
    default: return "gguf_linear_m8";
    }
}

/* As of dense's product, but for what h and the weights are rounded to. */
static ptxgen_status guarantee_inflated(const ptxgen_gguf_linear_plan *plan, uint64_t m,
                                        ptxgen_guarantee *guarantee, ptxgen_error *err)
{
    static const uint8_t roundings[] = {PTXGEN_ROUNDING_TF32_PAIR, PTXGEN_ROUNDING_F16,
                                        PTXGEN_ROUNDING_BF16};
    const ptxgen_gguf_linear_spec *s = &plan->spec;
    ptxgen_guarantee g;
    const ptxgen_tile *tile = ptxgen_gguf_linear_choose_inflated(plan, m);
    ptxgen_status status = tile ? ptxgen_dense_guarantee(&plan->inflated, m, &g, err)
                                : gemm_guarantee(&gguf_linear_direct_planner, plan, m, &g, err);
    if (status != PTXGEN_OK)
        return status;
    if (tile) {
        memset(g.sku, 0, sizeof g.sku);
        strncpy(g.sku, ptxgen_gguf_linear_inflated_entry(tile), sizeof g.sku - 1);
    }
    g.w_rounding = roundings[gguf_linear_compute_type(s)];
    g.x_rounding = gguf_linear_takes_x(s) && g.x_rounding == PTXGEN_ROUNDING_NONE
                       ? PTXGEN_ROUNDING_NONE
                       : g.w_rounding;
    g.batch_invariant = 0; /* fewer tokens are multiplied in another way */
    if (g.from_m <= passes_most_m(plan))
        g.from_m = passes_most_m(plan) + 1;
    *guarantee = g;
    return PTXGEN_OK;
}

/* A row's bits depend on the variant alone, and the last one has several passes. */
ptxgen_status ptxgen_gguf_linear_guarantee(const ptxgen_gguf_linear_plan *plan, uint64_t m,
                                           ptxgen_guarantee *guarantee, ptxgen_error *err)
{
    if (!gguf_linear_is_plan(plan) || !guarantee || !m)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: a plan that was made, m above 0 and a guarantee must be given",
                           "gguf_linear");
    if (ptxgen_gguf_linear_choose_inflated(plan, m) || ptxgen_gguf_linear_choose_direct(plan, m))
        return guarantee_inflated(plan, m, guarantee, err);
    const ptxgen_gguf_linear_variant *v = ptxgen_gguf_linear_choose(plan, m);
    uint32_t most = most_of(&plan->spec);
    if (!v && (plan->spec.n[0] || m > most))
        return gguf_linear_refuse_m(plan, m, err);
    if (!v) {
        *guarantee = gemm_guarantee_of_nothing("gguf_linear", 1, most);
        return PTXGEN_OK;
    }
    const uint32_t served = v->tile_m < PASS_TOKENS ? v->tile_m : passes_most_m(plan);
    ptxgen_guarantee g = {.same_bits = 1,
                          .x_rounding = !has_quantised(&plan->spec) ? PTXGEN_ROUNDING_NONE
                                        : plan->planes == 2         ? PTXGEN_ROUNDING_FIXED_16
                                                                    : PTXGEN_ROUNDING_FIXED_24,
                          .bound = PTXGEN_BOUND_PARTS,
                          .from_m = v > plan->variants ? v[-1].tile_m + 1 : 1,
                          .to_m = served < most ? served : most};
    strncpy(g.sku, ptxgen_gguf_linear_entry(v), sizeof g.sku - 1);
    g.batch_invariant = g.from_m == 1 && g.to_m == most;
    *guarantee = g;
    return PTXGEN_OK;
}
