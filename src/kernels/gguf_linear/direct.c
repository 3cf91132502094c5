/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of direct.h. Of the warps beside the consumer warpgroups one thread copies the packed
 * rows, and another h. A warpgroup has 64 features, or 32 of gate and of up, and all tokens of the
 * tile. It multiplies a group of slices while it decodes the next into the other of two sets of
 * registers, which the products of the group before have released:
 *
 *     wgmma    │ group 0 ──────│ group 1 ──────│ group 2 ──────│
 *     warps      decode 1 ─────│ decode 2 ─────│ decode 3 ─────│
 *
 * The bytes of a group are loaded before the wait for the products of the group before, so that
 * this wait hides their latency. A slot of packed rows belongs to one warpgroup, or to two. Each
 * warpgroup takes the slots that have its rows, and releases one as soon as all codes are in
 * registers, however far the others are. A slot of h is released when the products of the next
 * group have begun and those that read it have ended.
 */
#include "direct_lane.h"
#include "emit.h"
#include "output.h"

enum {
    BLOCK_SLICES = DIRECT_SLICES / DIRECT_BLOCKS,
    GROUP = 2, /* slices of a group: four take more registers than four warpgroups have */
    CHUNK = 16u
};

struct direct {
    struct dense_product q;
    const struct direct_type *type;
    struct gguf_linear_output output;
    uint32_t matrices;
    ptx_param w_maps[MATRICES];

    struct direct_producer {
        struct gemm_producer p;
        ptx_u64 map[2]; /* of the tile's matrix; of gate and up */
        ptx_u32 row;    /* the tile's first row of its matrix, or token */
    } units, blocks;

    struct gemm_ring h_ring;       /* that of packed rows is the entry's */
    struct gemm_ring_place h_read; /* the consumers' place in it */
    ptx_u32 held;                  /* the full barrier of the slot whose products may still run */
    ptx_pred releases;             /* whether the thread releases such slots */
    struct direct_lane lane;
    ptx_u32 lane_at; /* offset of the lane's first row in a slot */
    ptx_u32 a[2][GROUP][4];
};

static struct direct *direct_of(struct gemm *g)
{
    return (struct direct *)g;
}

static uint32_t block_bytes(const struct direct *d)
{
    return gemm_operand_stage_bytes(d->q.v->tile_m, 1);
}

/* Slices of a slot of h. */
static uint32_t slot_slices(const struct direct *d)
{
    return direct_slot_blocks(d->q.v) * BLOCK_SLICES;
}

/* Rows of w that a copy brings: a warpgroup's, or of gate and of up. */
static uint32_t copy_rows(const struct direct *d)
{
    return is_gated(d->output.spec) ? DIRECT_WARPGROUP_ROWS / 2 : DIRECT_WARPGROUP_ROWS;
}

/* ---- packed rows ---- */

static void locate_units(struct gemm *g, struct gemm_producer *p)
{
    struct direct *d = direct_of(g);
    struct direct_producer *s = (struct direct_producer *)p;
    ptx_kernel *k = g->k;
    gemm_walk_next(k, &g->division, &p->walk);
    ptx_u32 row = dense_find_tile(&d->q, p->walk.tile).n;
    if (is_gated(d->output.spec)) {
        ptx_shr_u32_to(k, s->row, row, U32(1));
        return;
    }
    ptx_mov_u32_to(k, s->row, row);
    for (uint32_t i = 1; i < d->matrices; i++) {
        const uint32_t first = d->output.slices.first[i];
        ptx_pred is_later = ptx_setp_ge_u32(k, row, U32(first));
        ptx_u64 map = ptx_param_address(k, d->w_maps[i]);
        ptx_selp_u64_to(k, s->map[0], map, i == 1 ? ptx_param_address(k, d->w_maps[0]) : s->map[0],
                        is_later);
        ptx_selp_u32_to(k, s->row, ptx_sub_u32(k, row, U32(first)), s->row, is_later);
    }
}

/* Copies the units of all warpgroups; the caller moves on from the last slot. */
static void issue_units(struct gemm *g, struct gemm_producer *p)
{
    struct direct *d = direct_of(g);
    const struct direct_producer *s = (const struct direct_producer *)p;
    ptx_kernel *k = g->k;
    const uint32_t copies = is_gated(d->output.spec) ? 2 : 1,
                   warpgroups = direct_warpgroups(d->q.v);
    ptx_u32 column =
        ptx_mul_lo_u32(k, p->walk.stage, U32(unit_bytes(d->type->type) / DIRECT_ELEMENT));
    if (direct_shifts(d->type))
        column = ptx_and_b32(k, column, U32(~(CHUNK / DIRECT_ELEMENT - 1)));
    const uint32_t sharers = direct_sharers(d->type);
    for (uint32_t warpgroup = 0; warpgroup < warpgroups; warpgroup++) {
        const uint32_t at = warpgroup % sharers * direct_unit_bytes(d->type);
        ptx_u32 row = ptx_add_u32(k, s->row, U32(warpgroup * copy_rows(d)));
        const ptx_s32 corner[2] = {ptx_u32_as_s32(column), ptx_u32_as_s32(row)};
        if (!at)
            gemm_ring_claim(k, &g->ring, &p->place, g->ring.stage_bytes);
        for (uint32_t i = 0; i < copies; i++)
            ptx_cp_async_bulk_tensor_2d_g2s(k, p->place.slot,
                                            (int)(at + i * copy_rows(d) * d->type->pitch),
                                            s->map[i], corner, p->place.barrier, 0);
        if ((warpgroup + 1) % sharers == 0 && warpgroup + 1 < warpgroups)
            gemm_ring_advance(k, &g->ring, &p->place, NULL);
    }
}

/* ---- h ---- */

static void locate_blocks(struct gemm *g, struct gemm_producer *p)
{
    struct direct *d = direct_of(g);
    ptx_kernel *k = g->k;
    gemm_walk_next(k, &g->division, &p->walk);
    struct gemm_place first = dense_find_tile(&d->q, p->walk.tile);
    if (g->cluster > 1) {
        ptx_mad_lo_u32_to(k, d->blocks.row, g->rank, U32(dense_box_rows(d->q.v)), first.m);
        return;
    }
    ptx_mov_u32_to(k, d->blocks.row, first.m);
    gemm_boxes_locate(k, &d->q.boxes, first.m);
}

/* Copies a block to `at`; of a cluster each CTA copies half of the tokens, to both. */
static void copy_block(struct direct *d, const struct gemm_ring_place *place, uint32_t at,
                       ptx_u32 column)
{
    ptx_kernel *k = d->q.g.k;
    const ptx_s32 corner[2] = {ptx_u32_as_s32(column), ptx_u32_as_s32(d->blocks.row)};
    const uint32_t cluster = d->q.g.cluster;
    if (cluster > 1) {
        const uint32_t bytes = dense_box_rows(d->q.v) * DENSE_BLOCK_BYTES;
        ptx_u32 slot = ptx_mad_lo_u32(k, d->q.g.rank, U32(bytes), place->slot);
        ptx_cp_async_bulk_tensor_2d_g2s_multicast(k, slot, (int)at, d->q.boxes.map, corner,
                                                  place->barrier, 0,
                                                  ptx_imm_u16((uint16_t)((1 << cluster) - 1)));
    } else
        ptx_cp_async_bulk_tensor_2d_g2s(k, place->slot, (int)at, d->q.boxes.map, corner,
                                        place->barrier, 0);
}

/* Copies a unit's blocks; the caller moves on from the last slot. */
static void issue_blocks(struct gemm *g, struct gemm_producer *p)
{
    struct direct *d = direct_of(g);
    ptx_kernel *k = g->k;
    const uint32_t in_slot = direct_slot_blocks(d->q.v);
    for (uint32_t i = 0; i < DIRECT_BLOCKS; i++) {
        if (i % in_slot == 0)
            gemm_ring_claim_some(k, &d->h_ring, &p->place, d->q.boxes.bytes);
        ptx_u32 column = ptx_mad_lo_u32(k, p->walk.stage, U32(UNIT), U32(i * DIRECT_BLOCK));
        copy_block(d, &p->place, i % in_slot * block_bytes(d), column);
        if ((i + 1) % in_slot == 0 && i + 1 < DIRECT_BLOCKS)
            gemm_ring_advance(k, &d->h_ring, &p->place, NULL);
    }
}

static void begin_producer(struct direct *d, struct direct_producer *s,
                           const struct gemm_ring *ring)
{
    ptx_kernel *k = d->q.g.k;
    s->p.ring = ring;
    s->p.place = gemm_ring_first(k, ring, true);
    s->p.walk = gemm_walk_begin(k, d->q.g.first, d->q.g.end);
    s->row = ptx_mov_u32(k, U32(0));
}

/* h is not there before the kernel ahead has ended; packed rows are. */
static void produce(struct gemm *g)
{
    struct direct *d = direct_of(g);
    ptx_kernel *k = g->k;
    const uint32_t first = gemm_tile_threads(d->q.v);
    ptx_if(k, ptx_setp_eq_u32(k, g->at.thread, U32(first))) {
        d->units.p.locate = locate_units;
        d->units.p.issue = issue_units;
        begin_producer(d, &d->units, &g->ring);
        for (uint32_t i = 0; i < (is_gated(d->output.spec) ? 2 : 1); i++)
            d->units.map[i] = ptx_mov_u64(k, ptx_param_address(k, d->w_maps[i]));
        gemm_issue_parts(g, &d->units.p);
    }
    ptx_if(k, ptx_setp_eq_u32(k, g->at.thread, U32(first + 32))) {
        d->blocks.p.locate = locate_blocks;
        d->blocks.p.issue = issue_blocks;
        begin_producer(d, &d->blocks, &d->h_ring);
        ptx_griddepcontrol_wait(k);
        gemm_issue_parts(g, &d->blocks.p);
    }
}

/* ---- products ---- */

static void load(struct direct *d, uint32_t first)
{
    direct_lane_load(&d->lane, first, GROUP);
}

static void decode(struct direct *d, uint32_t first)
{
    for (uint32_t i = 0; i < GROUP; i++)
        direct_lane_decode(&d->lane, first + i, d->a[first / GROUP % 2][i]);
}

/* `blocks`: the first of the slot. */
static void multiply_group(struct direct *d, uint32_t first, ptx_u64 blocks)
{
    struct dense_product *q = &d->q;
    ptx_kernel *k = q->g.k;
    const int n = (int)q->v->tile_m;
    ptx_wgmma_fence(k);
    for (uint32_t i = 0; i < GROUP; i++) {
        const uint32_t slice = (first + i) % slot_slices(d);
        ptx_u64 x = gemm_wgmma_advance(k, blocks,
                                       slice / BLOCK_SLICES * block_bytes(d) +
                                           slice % BLOCK_SLICES * DENSE_STEP_BYTES);
        const ptx_u32 *a = d->a[first / GROUP % 2][i];
        if (d->lane.bf16)
            ptx_wgmma_k16_f32_bf16_ra(k, n, q->acc[0][0], a, x, q->accumulate, 1, 1, 0);
        else
            ptx_wgmma_k16_f32_f16_ra(k, n, q->acc[0][0], a, x, q->accumulate, 1, 1, 0);
    }
    ptx_wgmma_commit_group(k);
}

static void multiply(struct gemm *g, const struct gemm_part *part)
{
    struct direct *d = direct_of(g);
    ptx_kernel *k = g->k;
    const uint32_t in_slot = slot_slices(d);
    ptx_u64 blocks = {0};
    gemm_ring_wait(k, &g->read);
    direct_lane_enter(&d->lane, ptx_add_u32(k, g->read.slot, d->lane_at), part->walk.stage);
    load(d, 0);
    /* The slot that is held is of the unit before, if that is of this part: others were drained. */
    ptx_pred follows = ptx_setp_bool_ne_u32(k, part->walk.stage, part->first, d->releases);
    for (uint32_t i = 0; i < DIRECT_SLICES; i += GROUP) {
        const uint32_t next = i + GROUP;
        decode(d, i);
        if (next == DIRECT_SLICES)
            gemm_ring_release(k, &g->ring, g->read.barrier, g->releases);
        if (i % in_slot == 0) {
            gemm_ring_wait(k, &d->h_read);
            blocks = gemm_wgmma_descriptor(k, d->h_read.slot);
        }
        multiply_group(d, i, blocks);
        if (next < DIRECT_SLICES)
            load(d, next);
        ptx_wgmma_wait_group(k, 1);
        if (i % in_slot == 0)
            gemm_ring_release(k, &d->h_ring, d->held, i ? d->releases : follows);
        if (next % in_slot == 0) {
            ptx_mov_u32_to(k, d->held, d->h_read.barrier);
            gemm_ring_advance(k, &d->h_ring, &d->h_read, NULL);
        }
    }
    gemm_ring_advance_by(k, &g->ring, &g->read,
                         direct_warpgroups(d->q.v) / direct_sharers(d->type));
}

static void drain(struct gemm *g)
{
    struct direct *d = direct_of(g);
    ptx_wgmma_wait_group(g->k, 0);
    gemm_ring_release(g->k, &d->h_ring, d->held, d->releases);
}

/* ---- the entry ---- */

static void begin(struct gemm *g)
{
    static const char *const names[MATRICES] = {"w_map", "w_map_1", "w_map_2"};
    struct direct *d = direct_of(g);
    struct dense_product *q = &d->q;
    ptx_kernel *k = g->k;
    dense_load_params(q);
    g->division.stages = units(d->output.spec);
    g->at = gemm_find_threads(k);
    g->tiles_m = gemm_divide_up(k, g->m, q->v->tile_m);
    gemm_find_share(g);
    g->at.cta = g->unit;
    if (g->cluster > 1)
        q->last_tile = gemm_divide(k, ptx_sub_u32(k, g->end, U32(1)), g->division.stages);
    g->ring = (struct gemm_ring){.stages = q->v->stages,
                                 .stage_bytes = direct_slot_of_units(d->type),
                                 .users = GEMM_WARPGROUP_WARPS * direct_sharers(d->type),
                                 .by_lane = true};
    const uint32_t slot_bytes = direct_slot_blocks(q->v) * block_bytes(d);
    d->h_ring = (struct gemm_ring){.stages = q->v->steps,
                                   .stage_bytes = slot_bytes,
                                   .ctas = g->cluster > 1 ? g->cluster : 0,
                                   .users = gemm_tile_threads(q->v) / 32,
                                   .name = "blocks",
                                   .barriers_name = "barriers_of_blocks"};
    ptx_param x_maps = ptx_param_declare(k, "x_maps", 2 * GEMM_MAP_BYTES, GEMM_MAP_ALIGN);
    for (uint32_t i = 0; i < d->matrices; i++)
        d->w_maps[i] = ptx_param_declare(k, names[i], GEMM_MAP_BYTES, GEMM_MAP_ALIGN);
    gemm_ring_declare(k, &g->ring);
    gemm_ring_declare(k, &d->h_ring);
    gemm_ring_begin(k, &g->at, &g->ring);
    gemm_ring_begin(k, &g->at, &d->h_ring);
    q->boxes = (struct gemm_boxes){.rows = q->v->tile_m,
                                   .blocks = direct_slot_blocks(q->v),
                                   .stage_bytes = slot_bytes,
                                   .maps = ptx_param_address(k, x_maps),
                                   .all = g->m};
    gemm_boxes_begin(k, &q->boxes);
    if (g->cluster == 1) /* the boxes of a pair of CTAs are halves, whatever h has of them */
        gemm_boxes_clear(k, &q->boxes, &g->at, gemm_cta_threads(q->v), &d->h_ring);
}

/* Of a gate, 16 rows of a warp are 8 rows of gate and the same 8 of up, which are a copy behind. */
static void find_lane(struct direct *d)
{
    struct direct_lane *l = &d->lane;
    struct dense_product *q = &d->q;
    ptx_kernel *k = q->g.k;
    const bool gated = is_gated(d->output.spec);
    const uint32_t rows = copy_rows(d) / GEMM_WARPGROUP_WARPS;
    l->row_step = (gated ? copy_rows(d) : HALF_ROWS) * d->type->pitch;
    ptx_u32 warp = ptx_and_b32(k, q->along_n, U32(GEMM_WARPGROUP_WARPS - 1));
    ptx_u32 row = ptx_mad_lo_u32(k, warp, U32(rows), q->g.at.group);
    d->lane_at = ptx_mul_lo_u32(k, row, U32(d->type->pitch));
    l->k = k;
    l->type = d->type;
    l->bf16 = q->spec->type == PTXGEN_BF16;
    l->quad = q->g.at.quad;
    direct_lane_begin(l);
}

static void begin_consumer(struct gemm *g)
{
    struct direct *d = direct_of(g);
    struct dense_product *q = &d->q;
    ptx_kernel *k = g->k;
    ptx_u32 warpgroup = dense_begin_warpgroup(g);
    find_lane(d);
    for (uint32_t i = 0; i < 2 * GROUP; i++)
        gemm_new_registers(k, d->a[i % 2][i / 2], 4);
    dense_declare_sums(q);
    ptx_u32 stages = gemm_begin_reading(g);
    q->accumulate = ptx_setp_eq_u32(k, stages, stages); /* always: sums are cleared before */
    const uint32_t sharers = direct_sharers(d->type);
    ptx_u32 slot = warpgroup;
    if (sharers > 1) {
        ptx_u32 in_slot = ptx_and_b32(k, warpgroup, U32(sharers - 1));
        ptx_mad_lo_u32_to(k, d->lane_at, in_slot, U32(direct_unit_bytes(d->type)), d->lane_at);
        slot = gemm_divide(k, warpgroup, sharers);
    }
    ptx_mad_lo_u32_to(k, g->read.slot, slot, U32(g->ring.stage_bytes), g->read.slot);
    ptx_mad_lo_u32_to(k, g->read.barrier, slot, U32(8), g->read.barrier);
    d->h_read = gemm_ring_first(k, &d->h_ring, false);
    d->held = ptx_mov_u32(k, d->h_read.barrier);
    d->releases = gemm_ring_releasers(k, &d->h_ring, &g->at);
    ptx_griddepcontrol_wait(k);
    dense_begin_output(q);
}

static const struct gemm_ops ops = {.begin = begin,
                                    .begin_consumer = begin_consumer,
                                    .clear = dense_clear,
                                    .multiply = multiply,
                                    .drain = drain,
                                    .epilogue = gemm_epilogue,
                                    .produce = produce,
                                    .end = dense_end_bulk};

/* Tiles of any number of sums may be divided, unlike dense's. */
static void begin_output(struct dense_product *q, struct gemm_epilogue *o)
{
    o->partials.fragments = dense_fragments(q->v);
    gguf_linear_begin_output(q, o);
}

const char *ptxgen_gguf_linear_direct_entry(const ptxgen_tile *tile)
{
    static const char *const names[GEMM_WIDTHS] = GEMM_NAMES("gguf_linear_direct_m");
    return tile ? names[gemm_width(tile)] : NULL;
}

static void emit_product(const ptxgen_gguf_linear_plan *plan, const ptxgen_tile *v,
                         ptx_module *module)
{
    const ptxgen_gguf_linear_spec *s = &plan->spec;
    struct direct d = {.type = gguf_linear_direct(plan),
                       .output = {.spec = s, .slices = gguf_linear_slices(plan)},
                       .matrices = matrix_count(s)};
    const ptxgen_dense_plan all = {.spec = gguf_linear_dense_spec(s, gguf_linear_all_rows(s)),
                                   .target = plan->target};
    const struct dense_use use = {ptxgen_gguf_linear_direct_entry(v), gguf_linear_declare_output,
                                  begin_output, &d.output};
    d.q = dense_make_product(&all, v, &use);
    d.q.g.ops = &ops;
    gemm_emit_entry(&d.q.g, module);
}

void gguf_linear_emit_direct(const ptxgen_gguf_linear_plan *plan, ptx_module *module)
{
    gguf_linear_emit_ordered_rows(plan, module);
    for (uint32_t i = 0; i < plan->direct_count; i++)
        emit_product(plan, &plan->direct[i], module);
}
