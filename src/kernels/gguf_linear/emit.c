/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries: h for all tokens of a launch (prepare.c), then the product. For one token the
 * product may make h itself.
 *
 *     kernel before ─▶ prepare: g, h, fixed point ─▶ records in the workspace
 *                                                        │ whole, once, for the CTA's part of K
 *     w, rows as files have them                         ▼
 *       copies ─▶ rings of shared memory ─▶ codes ─▶ mma.sync × planes ─▶ scale, f32 (product.c)
 *                                                            ─▶ end of the tile (finish.c) ─▶ y
 *
 * A CTA has wn × wk warps. The wk warps along K take a tile of 16 rows; they synchronise among
 * themselves, and not with the rest of the CTA. From sm_90 on the rings are filled while the
 * kernels ahead still run. Weights come in one of two ways:
 *   - by tensor copies, two units of K at a time, to a ring for each warp, which meets the others
 * at the ends of tiles only, or eight to a ring of four warps along K (tensor_stream.c);
 *   - by cp.async, neighbouring units of K for the warps along K, which copy them together and meet
 *     in each step: wait for the oldest copies, meet, issue those of units stages − 1 steps further
 *     on, multiply (stream.c).
 *
 * Matrices are grouped by type into phases. The code of a phase stands once for each type; a warp
 * goes through the tiles of one phase, then of the next.
 */
#include "emit.h"
#include "direct.h"
#include "floats.h"

#include "../gemm/empty.h"
#include "../gemm/tile.h"

/* ---- the begin ---- */

static void load_params(struct gguf_linear_kernel *q)
{
    static const char *const wide[] = {"w0", "w1", "w2", "bias0",   "bias1",    "bias2",
                                       "y0", "y1", "y2", "records", "counters", "partials"};
    static const char *const narrow[] = {"y_stride0", "y_stride1", "y_stride2"};
    ptx_kernel *k = q->k;
    for (int i = 0; i < PRODUCT_X; i++)
        q->params[i] = ptx_param_u64(k, wide[i]);
    gguf_linear_h_params(k, q->spec, q->v->makes_h, &q->in);
    for (int i = 0; i < MATRICES; i++)
        q->y_stride[i] = ptx_param_u32(k, narrow[i]);
    gguf_linear_h_strides(k, q->spec, q->v->makes_h, &q->in);
    for (uint32_t i = 0; q->v->tensor && i < MATRICES; i++) {
        static const char *const maps[] = {"map0", "map1", "map2"};
        ptx_param map = ptx_param_declare(k, maps[i], 128, 64);
        q->maps[i] = q->spec->n[i] ? ptx_param_address(k, map) : U64(0);
    }
}

static ptx_u32 shared_buffer(ptx_kernel *k, const char *name, uint32_t bytes, uint32_t align)
{
    return ptx_shared_address(k, ptx_shared_declare(k, name, bytes, align));
}

/* The first unit, or pair of units, of a part of `all` in `count` parts. */
static ptx_u32 share(ptx_kernel *k, ptx_u32 number, ptx_u32 all, uint32_t count)
{
    return count == 1 ? ptx_mul_lo_u32(k, number, all)
                      : gemm_divide(k, ptx_mul_lo_u32(k, number, all), count);
}

/* The units of the CTA's part; with tensor copies a part has whole pairs. */
static void find_part(struct gguf_linear_kernel *q)
{
    ptx_kernel *k = q->k;
    const uint32_t parts = q->v->parts;
    ptx_u32 next = ptx_add_u32(k, q->part, U32(1));
    ptx_u32 all = ptx_mov_u32(k, U32(q->v->tensor ? pairs(q->spec) : units(q->spec)));
    ptx_u32 first = share(k, q->part, all, parts), end = share(k, next, all, parts);
    if (q->v->tensor) {
        q->part_pair = first;
        q->part_end_pair = end;
        first = ptx_shl_b32(k, first, U32(1));
        end = ptx_min_u32(k, ptx_shl_b32(k, end, U32(1)), U32(units(q->spec)));
    }
    q->part_first = first;
    q->part_count = ptx_sub_u32(k, end, first);
}

static void find_threads(struct gguf_linear_kernel *q)
{
    ptx_kernel *k = q->k;
    const ptxgen_gguf_linear_variant *v = q->v;
    const uint32_t warps = v->wn * v->wk;
    q->at = gemm_find_threads(k);
    q->wn = gemm_divide(k, q->at.warp, v->wk);
    q->wk = gemm_remainder(k, q->at.warp, v->wk);
    q->part = gemm_divide(k, q->at.cta, v->part_ctas);
    q->place = gemm_remainder(k, q->at.cta, v->part_ctas);
    q->own_tile = ptx_mad_lo_u32(k, q->wn, U32(v->part_ctas), q->place); /* dealt out to CTAs */

    find_part(q);
    q->thread = ptx_mad_lo_u32(k, q->wk, U32(32), q->at.lane);

    uint32_t record = record_bytes(q->plan, v->tile_m);
    uint32_t rings = ring_count(v);
    uint32_t ring =
        v->stages * (v->tensor ? tensor_slot_bytes(q->spec, v) : slot_bytes(q->spec, v->wk));
    ptx_u32 first = shared_buffer(k, "rings of weights", rings * ring, 128);
    q->ring_number = v->tensor && !shares_slots(v) ? q->at.warp : q->wn;
    q->ring = ptx_mad_lo_u32(k, q->ring_number, U32(ring), first);
    q->records = shared_buffer(k, "records of h", part_units(q->spec, v) * record, 16);
    uint32_t partial = columns(q->plan, v->tile_m) * TILE_ROWS * 4;
    uint32_t buffers = v->tensor ? 2 : 1;
    ptx_u32 partials = shared_buffer(k, "partial sums", buffers * warps * partial, 16);
    q->partials = ptx_mad_lo_u32(k, q->wn, U32(v->wk * partial), partials);
    if (v->tensor) {
        q->partials = ptx_mov_u32(k, q->partials);
        q->both_partials = ptx_mad_lo_u32(k, q->partials, U32(2), U32(warps * partial));
        const uint32_t own = ring_barrier_bytes(v);
        ptx_u32 barriers = shared_buffer(k, "barriers of the rings", rings * own, 8);
        q->ring_barriers = ptx_mad_lo_u32(k, q->ring_number, U32(own), barriers);
    }
    if (v->parts > 1)
        q->arrivals = shared_buffer(k, "arrivals", v->wn * 4, 4);
}

/* All threads copy the part's records, and the CTA waits for them. */
static void load_records(struct gguf_linear_kernel *q, void (*behind_loads)(void *), void *what)
{
    ptx_kernel *k = q->k;
    const uint32_t record = record_bytes(q->plan, q->v->tile_m);
    const uint32_t threads = 32 * q->v->wn * q->v->wk;
    ptx_section(k, "records of h into shared memory");
    ptx_u32 chunks = ptx_mul_lo_u32(k, q->part_count, U32(record / 16));
    ptx_u64 base = ptx_mad_wide_u32(k, q->part_first, U32(record), q->params[PRODUCT_RECORDS]);
    ptx_u32 chunk = ptx_mov_u32(k, q->at.thread);
    ptx_for(k, chunk, chunks, U32(threads)) {
        ptx_u32 to = ptx_mad_lo_u32(k, chunk, U32(16), q->records);
        ptx_cp_async_cg(k, to, 0, ptx_mad_wide_u32(k, chunk, U32(16), base), 0, 16);
    }
    if (behind_loads)
        behind_loads(what);
    ptx_cp_async_wait_all(k);
    ptx_bar_sync(k, 0);
}

/* ---- sums of a tile ---- */

static struct sums new_sums(struct gguf_linear_kernel *q)
{
    struct sums sums;
    for (uint32_t n = 0; n < n_tiles(q->plan, q->v->tile_m); n++)
        for (int i = 0; i < 4; i++)
            sums.acc[n][i] = ptx_mov_f32(q->k, F32(0));
    return sums;
}

static void clear_sums(struct gguf_linear_kernel *q, struct sums *sums)
{
    for (uint32_t n = 0; n < n_tiles(q->plan, q->v->tile_m); n++)
        for (int i = 0; i < 4; i++)
            ptx_mov_f32_to(q->k, sums->acc[n][i], F32(0));
}

/* ---- a phase ---- */

/* The low bits of the addresses of the lane's two rows at the tile's first unit. */
static void find_shifts(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 tile,
                        ptx_u32 shifts[2])
{
    ptx_kernel *k = q->k;
    if (row_align(q->spec, p->type->type) == 16)
        return;
    ptx_u64 rows[2];
    struct place at = gguf_linear_locate(q, p, tile);
    gguf_linear_find_rows(q, p, &at, rows);
    for (int i = 0; i < 2; i++) {
        ptx_u32 low = ptx_cvt_u32_u64(k, rows[i]);
        ptx_mad_lo_u32_to(k, shifts[i], q->part_first, U32(unit_bytes(p->type->type)), low);
    }
}

static void multiply_tile(struct gguf_linear_kernel *q, const struct phase *p, struct stream *s,
                          ptx_u32 slot, const ptx_u32 lows[2], struct sums *sums)
{
    ptx_kernel *k = q->k;
    ptx_section(k, "a unit: wait, issue the copies of another, multiply");
    const bool is_shifted = row_align(q->spec, p->type->type) < 16;
    ptx_u32 record = ptx_mov_u32(k, q->records), number = ptx_mov_u32(k, U32(0));
    ptx_loop(k, steps) {
        ptx_nounroll(k);
        ptx_loop_break_if(&steps, ptx_setp_ge_u32(k, number, q->part_count), false);
        ptx_cp_async_wait_group(k, (int)q->v->stages - 2);
        gguf_linear_synchronise(q); /* copies are visible, and the slot before has been read */
        gguf_linear_issue(q, s);
        ptx_u32 shifts[2] = {U32(0), U32(0)};
        for (int i = 0; is_shifted && i < 2; i++)
            shifts[i] = ptx_and_b32(k, lows[i], U32(15));
        ptx_u32 own = ptx_add_u32(k, number, q->wk);
        ptx_if(k, ptx_setp_lt_u32(k, own, q->part_count))
            gguf_linear_multiply(q, p, slot, shifts, record, ptx_add_u32(k, q->part_first, own),
                                 sums);
        gguf_linear_next_slot(q, slot);
        for (int i = 0; is_shifted && i < 2; i++)
            ptx_add_u32_to(k, lows[i], lows[i], U32(q->v->wk * unit_bytes(p->type->type)));
        ptx_add_u32_to(k, record, record, U32(q->v->wk * record_bytes(q->plan, q->v->tile_m)));
        ptx_add_u32_to(k, number, number, U32(q->v->wk));
    }
}

static void take_tiles(struct gguf_linear_kernel *q, const struct phase *p, struct stream *s)
{
    ptx_kernel *k = q->k;
    ptx_u32 tile = ptx_mov_u32(k, gguf_linear_first_tile(q, p)), slot = ptx_mov_u32(k, q->ring);
    ptx_u32 lows[2];
    for (int i = 0; i < 2; i++)
        lows[i] = ptx_mov_u32(k, U32(0));
    struct sums sums = new_sums(q);
    ptx_for(k, tile, U32(phase_tiles(q->spec, p)), U32(tile_step(q))) {
        ptx_nounroll(k);
        clear_sums(q, &sums);
        find_shifts(q, p, tile, lows);
        multiply_tile(q, p, s, slot, lows, &sums);
        gguf_linear_finish(q, p, tile, &sums);
    }
}

/* ---- a phase, with tensor copies ---- */

static void multiply_pair(struct gguf_linear_kernel *q, const struct phase *p, struct slot slot,
                          ptx_u32 pair, struct sums *sums)
{
    ptx_kernel *k = q->k;
    const uint32_t bytes = record_bytes(q->plan, q->v->tile_m);
    const uint32_t whole = pair_size(p->type->type);
    ptx_u32 at = gguf_linear_slot_address(q, slot);
    if (shares_slots(q->v)) {
        at = ptx_mad_lo_u32(k, q->wk, U32(whole), at);
    } else if (whole % 16) {
        ptx_u32 shift = ptx_and_b32(k, ptx_mul_lo_u32(k, pair, U32(whole)), U32(15));
        at = ptx_add_u32(k, at, shift);
    }
    ptx_u32 unit = ptx_shl_b32(k, pair, U32(1)), next = ptx_add_u32(k, unit, U32(1));
    ptx_u32 in_part = ptx_sub_u32(k, unit, q->part_first);
    ptx_u32 record = ptx_mad_lo_u32(k, in_part, U32(bytes), q->records);
    ptx_u32 second = ptx_add_u32(k, record, U32(bytes));
    gguf_linear_multiply_of_pair(q, p, at, 0, record, unit, sums);
    if (units(q->spec) % 2 == 0) {
        gguf_linear_multiply_of_pair(q, p, at, 1, second, next, sums);
        return;
    }
    ptx_if(k, ptx_setp_lt_u32(k, next, U32(units(q->spec))))
        gguf_linear_multiply_of_pair(q, p, at, 1, second, next, sums);
}

static void take_tensor_tiles(struct gguf_linear_kernel *q, const struct phase *p,
                              struct tensor_stream *s, struct slot *slot)
{
    ptx_kernel *k = q->k;
    ptx_section(k, "a tile: wait for a pair of units, multiply, issue the copies of another");
    ptx_u32 tile = ptx_mov_u32(k, gguf_linear_first_tile(q, p)), pair = ptx_mov_u32(k, U32(0));
    struct sums sums = new_sums(q);
    ptx_for(k, tile, U32(phase_tiles(q->spec, p)), U32(tile_step(q))) {
        ptx_nounroll(k);
        clear_sums(q, &sums);
        ptx_add_u32_to(k, pair, q->part_pair, q->wk);
        ptx_loop(k, steps) {
            ptx_nounroll(k);
            gguf_linear_wait(q, *slot);
            multiply_pair(q, p, *slot, pair, &sums);
            gguf_linear_release(q, *slot);
            gguf_linear_advance_slot(q, slot);
            ptx_bar_warp_sync(k, ALL_LANES); /* all lanes have read the slot */
            gguf_linear_issue_pair(q, s);
            ptx_add_u32_to(k, pair, pair, U32(q->v->wk));
            ptx_loop_break_if(&steps, ptx_setp_ge_u32(k, pair, q->part_end_pair), false);
        }
        gguf_linear_finish(q, p, tile, &sums);
        ptx_sub_u32_to(k, q->partials, q->both_partials, q->partials);
    }
}

/* ---- entries ---- */

/* Groups the quantised matrices by type, in the order of their first. */
static uint32_t make_phases(const ptxgen_gguf_linear_spec *s, struct phase phases[MATRICES])
{
    uint32_t count = 0, before = 0;
    for (uint32_t i = 0; i < matrix_count(s); i++) {
        uint32_t at = 0;
        if (is_float(s, i))
            continue;
        while (at < count && phases[at].type->type != s->w_type[i])
            at++;
        if (at == count)
            phases[count++] = (struct phase){.type = gguf_linear_type(s->w_type[i])};
        phases[at].matrices[phases[at].count++] = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        phases[i].before = before;
        before += phase_tiles(s, &phases[i]);
    }
    return count;
}

/* Lets the launch behind begin, and waits for the kernels ahead, which write x or records. */
static void wait_for_inputs(struct gguf_linear_kernel *q)
{
    if (!gemm_overlaps(&q->plan->target))
        return;
    ptx_griddepcontrol_launch_dependents(q->k);
    ptx_griddepcontrol_wait(q->k);
}
/*
 * What h is made of, or records of it, would wait behind all copies that are under way. So only
 * some slots are filled before that is asked for, and the others behind it: fewer where the rings
 * hold all that the CTA multiplies, since memory has nothing else to bring then.
 */
enum { EARLY_BYTES = 72 * 1024, EARLY_BYTES_OF_FEW = 40 * 1024 };
struct late_copies {
    struct gguf_linear_kernel *q;
    struct tensor_stream *s;
    ptx_u32 count;
};
static void issue_late_copies(void *what)
{
    const struct late_copies *c = what;
    gguf_linear_fill_slots(c->q, c->s, c->count);
}

/* The ring's slots that are filled early. */
static ptx_u32 early_slots(struct gguf_linear_kernel *q)
{
    const uint32_t rings = ring_count(q->v), all = rings * q->v->stages;
    const uint32_t tiles = (all_tiles(q->spec) + q->v->part_ctas - 1) / q->v->part_ctas;
    const bool are_few = (uint64_t)tiles * part_units(q->spec, q->v) <= 2 * q->v->ring_warps * all;
    uint32_t slots =
        (are_few ? EARLY_BYTES_OF_FEW : EARLY_BYTES) / tensor_slot_bytes(q->spec, q->v);
    slots = slots < all ? slots : all;
    ptx_pred has_more = ptx_setp_lt_u32(q->k, q->ring_number, U32(slots % rings));
    return ptx_selp_u32(q->k, U32(slots / rings + 1), U32(slots / rings), has_more);
}

static void multiply_by_tensor_copies(struct gguf_linear_kernel *q)
{
    ptx_kernel *k = q->k;
    ptx_section(k, "first copies of weights");
    struct tensor_stream s = gguf_linear_start_tensor_stream(q);
    ptx_u32 early = early_slots(q);
    gguf_linear_fill_slots(q, &s, early);
    wait_for_inputs(q);
    gguf_linear_find_columns(q);
    struct late_copies late = {q, &s, ptx_sub_u32(k, U32(q->v->stages), early)};
    if (q->v->makes_h)
        gguf_linear_make_records(q, issue_late_copies, &late);
    else
        load_records(q, issue_late_copies, &late);
    struct slot slot = gguf_linear_first_slot(q);
    for (uint32_t i = 0; i < q->phase_count; i++)
        take_tensor_tiles(q, &q->phases[i], &s, &slot);
}

static void multiply_by_cp_async(struct gguf_linear_kernel *q)
{
    ptx_kernel *k = q->k;
    ptx_section(k, "first copies of weights");
    struct stream s = gguf_linear_start_stream(q, &q->phases[0]);
    wait_for_inputs(q);
    gguf_linear_find_columns(q);
    if (q->v->makes_h)
        gguf_linear_make_records(q, NULL, NULL);
    else
        load_records(q, NULL, NULL);
    q->records = ptx_mad_lo_u32(k, q->wk, U32(record_bytes(q->plan, q->v->tile_m)), q->records);
    for (uint32_t i = 0; i < q->phase_count; i++) {
        if (i) {
            ptx_cp_async_wait_all(k);
            gguf_linear_synchronise(q); /* the slots have been read */
            s = gguf_linear_start_stream(q, &q->phases[i]);
        }
        take_tiles(q, &q->phases[i], &s);
    }
    ptx_cp_async_wait_all(k);
}

static void emit_product(const ptxgen_gguf_linear_plan *plan, const ptxgen_gguf_linear_variant *v,
                         ptx_module *module)
{
    struct gguf_linear_kernel q = {.plan = plan, .spec = &plan->spec, .v = v};
    q.phase_count = make_phases(&plan->spec, q.phases);
    ptx_kernel *k = q.k = ptx_kernel_begin(module, ptxgen_gguf_linear_entry(v));
    ptx_kernel_reqntid(k, 32 * v->wk * v->wn, 1, 1);
    ptx_kernel_minnctapersm(k, 1);
    load_params(&q);
    find_threads(&q);
    if (v->tensor)
        multiply_by_tensor_copies(&q);
    else
        multiply_by_cp_async(&q);
    ptx_kernel_end(k);
}

ptxgen_status ptxgen_gguf_linear_emit(const ptxgen_gguf_linear_plan *plan, uint32_t variants,
                                      ptx_module *module, ptxgen_error *err)
{
    if (!gguf_linear_is_plan(plan) || !module)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_linear: a plan that was made, and a module, must be given");
    if (!plan->spec.n[0])
        gemm_emit_empty(module, "gguf_linear_empty", &(const struct gemm_empty){.n = 0});
    for (uint32_t i = 0; i < plan->variant_count; i++) {
        if (!(variants >> i & 1))
            continue;
        const ptxgen_gguf_linear_variant *v = &plan->variants[i];
        if (has_quantised(&plan->spec)) {
            if (!v->makes_h)
                gguf_linear_emit_prepare(plan, v, module);
            emit_product(plan, v, module);
        }
        if (float_count(&plan->spec))
            gguf_linear_emit_floats(plan, v, module);
        if (is_joined(&plan->spec))
            gguf_linear_emit_join(plan, v, module);
    }
    if (plan->inflated.variant_count && variants >> PTXGEN_GGUF_LINEAR_VARIANTS & 1)
        gguf_linear_emit_inflated(plan, module);
    if (plan->direct_count && variants >> PTXGEN_GGUF_LINEAR_VARIANTS & 1)
        gguf_linear_emit_direct(plan, module);
    return ptx_module_status(module, err);
}
