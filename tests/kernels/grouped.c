/* SPDX-License-Identifier: Apache-2.0 */
#include "grouped.h"

#include "src/kernels/gemm/entry.h"
#include "src/kernels/gemm/epilogue.h"
#include "src/kernels/gemm/operand.h"

enum {
    STEPS = 4,  /* of a stage: 64 of K, 128 bytes of a row */
    STAGES = 4, /* of the pipeline */
    X_BYTES = GROUPED_TILE_M * GEMM_BLOCK_BYTES,
    W_BYTES = GROUPED_TILE_N * GEMM_BLOCK_BYTES,
    ROW_GROUPS = GROUPED_TILE_M / 8,
};

struct product {
    struct gemm g;
    const struct grouped *s;
    ptx_u64 x_at, w_at, y_at, workspace;
    struct gemm_operand x, w;
    struct gemm_epilogue output;
    ptx_u32 x_step[4], w_step[4]; /* the operands of an mma step */
    ptx_f32 acc[ROW_GROUPS][4];
};

uint32_t grouped_tiles_n(const struct grouped *s)
{
    return (s->n + GROUPED_TILE_N - 1) / GROUPED_TILE_N;
}

uint32_t grouped_stages(const struct grouped *s)
{
    return (s->k * 2 + GEMM_BLOCK_BYTES - 1) / GEMM_BLOCK_BYTES;
}

size_t grouped_workspace_bytes(uint32_t ctas)
{
    return GROUPED_FLAGS + ctas * gemm_partials_bytes(GROUPED_THREADS, ROW_GROUPS);
}

/* ---- operands ---- */

/* The place of a tile, with `m` and `n` as the first row of y and the first column. */
static struct gemm_place find_tile(struct product *p, ptx_u32 tile)
{
    ptx_kernel *k = p->g.k;
    ptx_u32 dealt = gemm_deal_places(k, &p->g.division, tile);
    struct gemm_place place = gemm_groups_locate(k, &p->g.groups, dealt, 16);
    place.m = ptx_mad_lo_u32(k, place.m, U32(GROUPED_TILE_M), place.first);
    place.n = ptx_mul_lo_u32(k, place.n, U32(GROUPED_TILE_N));
    return place;
}

/* The rows of w[g] are rows g·N to (g + 1)·N − 1 of a matrix. */
static void locate(void *user, const struct gemm_walk *walk)
{
    struct product *p = user;
    ptx_kernel *k = p->g.k;
    struct gemm_place at = find_tile(p, walk->tile);
    ptx_u32 w_first = ptx_mul_lo_u32(k, at.group, U32(p->s->n));
    ptx_u32 w_row = ptx_add_u32(k, w_first, at.n), w_end = ptx_add_u32(k, w_first, U32(p->s->n));
    gemm_operand_locate(k, &p->x, p->x_at, at.m, at.end, walk->stage);
    gemm_operand_locate(k, &p->w, p->w_at, w_row, w_end, walk->stage);
}

static void issue(void *user, ptx_u32 slot)
{
    struct product *p = user;
    gemm_operand_issue(p->g.k, &p->x, slot);
    gemm_operand_issue(p->g.k, &p->w, ptx_add_u32(p->g.k, slot, U32(X_BYTES)));
}

static void begin_operand(struct product *p, struct gemm_operand *o, uint32_t rows)
{
    o->rows = rows;
    o->blocks = 1;
    o->threads = GROUPED_THREADS;
    o->row_bytes = p->s->k * 2;
    gemm_operand_begin(p->g.k, &p->g.at, U64(o->row_bytes), o);
}

/* ---- the steps of the entry ---- */

static void begin(struct gemm *g)
{
    struct product *p = (struct product *)g;
    ptx_kernel *k = g->k;
    p->x_at = ptx_param_u64(k, "x");
    p->w_at = ptx_param_u64(k, "w");
    g->groups.ends = ptx_param_u64(k, "ends");
    p->y_at = ptx_param_u64(k, "y");
    p->workspace = ptx_param_u64(k, "workspace");
    g->m = ptx_param_u32(k, "m");
    g->at = gemm_find_threads(k);
    p->w.as_a = true;
    begin_operand(p, &p->x, GROUPED_TILE_M);
    begin_operand(p, &p->w, GROUPED_TILE_N);
    gemm_operand_divide_rows(k, g->at.warp, GROUPED_WARP_N, &p->w);
    gemm_find_share(g);
    g->pipeline = (struct gemm_pipeline){.stages = STAGES,
                                         .stage_bytes = X_BYTES + W_BYTES,
                                         .division = &g->division,
                                         .locate = locate,
                                         .issue = issue,
                                         .user = p};
    gemm_pipeline_begin(k, &g->pipeline, g->first, g->end);
}

static void locate_output(void *user, ptx_u32 tile, struct gemm_epilogue *o)
{
    struct gemm_place at = find_tile(user, tile);
    o->first_row = at.m;
    o->first_column = at.n;
    o->end_row = at.end;
}

static ptx_u32 accumulator(const void *from, uint32_t t, uint32_t j, uint32_t r)
{
    (void)t;
    return ptx_f32_as_u32(((const struct product *)from)->acc[j][r]);
}

static void begin_consumer(struct gemm *g)
{
    struct product *p = (struct product *)g;
    ptx_kernel *k = g->k;
    uint32_t staging = gemm_sums_bytes(GROUPED_TILE_N, GROUPED_TILE_M, 1);
    gemm_new_registers(k, p->x_step, 4);
    gemm_new_registers(k, p->w_step, 4);
    for (uint32_t j = 0; j < ROW_GROUPS; j++)
        for (uint32_t r = 0; r < 4; r++)
            p->acc[j][r] = ptx_mov_f32(k, F32(0));
    ptx_u64 partials = ptx_add_u64(k, p->workspace, U64(GROUPED_FLAGS));
    p->output = (struct gemm_epilogue){
        .g = g,
        .at = &g->at,
        .type = PTXGEN_F16,
        .n = p->s->n,
        .y = p->y_at,
        .y_stride = U64(p->s->n),
        .first_partials = partials,
        .flags = p->workspace,
        .sums = {.tile_m = GROUPED_TILE_M,
                 .tile_n = GROUPED_TILE_N,
                 .warp_n = GROUPED_WARP_N,
                 .wk = 1,
                 .pass_m = GROUPED_TILE_M,
                 .staging = ptx_shared_address(k, ptx_shared_declare(k, "sums", staging, 16))},
        .along = g->at.warp,
        .along_k = U32(0),
        .partials = {.threads = GROUPED_THREADS, .fragments = g->whole_tiles ? 0 : ROW_GROUPS},
        .acc = accumulator,
        .locate = locate_output,
        .user = p,
    };
    gemm_epilogue_begin(&p->output);
}

static void clear(struct gemm *g, const struct gemm_part *part)
{
    struct product *p = (struct product *)g;
    (void)part;
    for (uint32_t j = 0; j < ROW_GROUPS; j++)
        for (uint32_t r = 0; r < 4; r++)
            ptx_mov_f32_to(g->k, p->acc[j][r], F32(0));
}

static void multiply(struct gemm *g, const struct gemm_part *part)
{
    struct product *p = (struct product *)g;
    ptx_kernel *k = g->k;
    (void)part;
    gemm_pipeline_issue(k, &g->pipeline);
    ptx_u32 w_slot = ptx_add_u32(k, g->pipeline.read, U32(X_BYTES));
    ptx_u32 x_lane = gemm_operand_lane(k, &p->x, g->pipeline.read, U32(0));
    ptx_u32 w_lane = gemm_operand_lane(k, &p->w, w_slot, U32(0));
    for (uint32_t i = 0; i < STEPS; i++) {
        gemm_operand_load_to(k, gemm_operand_step(k, &p->x, x_lane, i), 0, p->x_step);
        gemm_operand_load_to(k, gemm_operand_step(k, &p->w, w_lane, i), 0, p->w_step);
        for (uint32_t j = 0; j < ROW_GROUPS; j++)
            ptx_mma_m16n8k16_f32_f16_to(k, p->acc[j], p->w_step, p->x_step + 2 * j, p->acc[j]);
    }
    gemm_pipeline_next(k, &g->pipeline);
}

void grouped_emit(const struct grouped *s, ptx_module *module)
{
    static const struct gemm_ops ops = {.begin = begin,
                                        .begin_consumer = begin_consumer,
                                        .clear = clear,
                                        .multiply = multiply,
                                        .epilogue = gemm_epilogue};
    struct product p = {.g = {.ops = &ops,
                              .name = "grouped",
                              .consumers = GROUPED_THREADS,
                              .threads = GROUPED_THREADS,
                              .ctas = 1,
                              .cluster = 1,
                              .whole_tiles = s->whole,
                              .division = {.stages = grouped_stages(s)},
                              .groups = {.count = s->groups,
                                         .tile_m = GROUPED_TILE_M,
                                         .tiles_n = grouped_tiles_n(s)}},
                        .s = s};
    gemm_emit_entry(&p.g, module);
}
