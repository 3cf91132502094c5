/* SPDX-License-Identifier: Apache-2.0 */
/* From a tile and M to a launch of w8a8: its prefetch, and the parts of its workspace. */
#include "layout.h"

/* The exponent of the largest power of two that is at most n. */
static uint32_t whole_bits(uint32_t n)
{
    return 31 - (uint32_t)__builtin_clz(n);
}

/* Nothing is prefetched where a CTA has several tiles, or tiles are divided unevenly. */
static struct w8a8_prefetch prefetch_for(const ptxgen_w8a8_plan *p, const ptxgen_tile *v,
                                         const struct gemm_schedule *t)
{
    enum { ALL_BYTES = 8 << 20, MOST_LINES = 8 };
    uint32_t row_lines = w8a8_w_stride(&p->spec) / W8A8_LINE_BYTES;
    uint64_t lines = ALL_BYTES / W8A8_LINE_BYTES / w8a8_rows(&p->spec);
    uint32_t parts = t->grid / v->blocks_n * v->cluster;
    struct w8a8_prefetch f = {0};
    lines = (lines > MOST_LINES ? MOST_LINES : lines) / (parts ? parts : 1);
    if (!w8a8_prefetches(p, v) || t->grid % v->blocks_n || !lines)
        return f;
    f.part_bits = whole_bits(parts);
    f.part_bytes = t->share * t->granule * w8a8_depth(v);
    f.line_bits = whole_bits((uint32_t)lines);
    f.blocks = v->blocks_n;
    f.stages = w8a8_rotates(p, v) ? w8a8_own_steps(&p->spec, v) : 0;
    f.stage_bytes = w8a8_depth(v);
    if (1u << (f.line_bits + f.part_bits) <= row_lines / 2)
        f.lines = w8a8_rows(&p->spec) << (f.part_bits + f.line_bits);
    uint64_t threads = w8a8_quantise_threads(&p->spec), ctas = (f.lines + threads - 1) / threads;
    f.ctas = ctas < p->target.multiprocessors ? (uint32_t)ctas : p->target.multiprocessors;
    return f;
}

static uint64_t take(uint64_t *end, uint64_t bytes)
{
    uint64_t at = *end;
    *end += (bytes + 255) / 256 * 256;
    return at;
}

ptxgen_status w8a8_schedule(const ptxgen_w8a8_plan *p, const ptxgen_tile *v, uint64_t m,
                            struct w8a8_schedule *schedule, ptxgen_error *err)
{
    const struct gemm_planner *planner = &w8a8_planner;
    struct gemm_launch launch;
    ptxgen_status status = gemm_make_launch(planner, p, v, m, &launch, err);
    if (status != PTXGEN_OK)
        return status;
    struct w8a8_schedule s = {.tiles = launch.tiles, .grid = launch.grid};
    if (!v->fused) {
        s.prefetch = prefetch_for(p, v, &s.tiles);
        uint64_t most = p->target.multiprocessors;
        bool given = w8a8_takes_codes(&p->spec), aligns = w8a8_aligns(p, v);
        const uint64_t scales = w8a8_token_scales(&p->spec);
        uint64_t tiles = (m + v->tile_m - 1) / v->tile_m * v->blocks_n;
        bool whole = planner->is_whole(p, v, tiles, p->target.multiprocessors / v->cluster);
        s.flags = take(&s.workspace_bytes, 4 * most);
        s.partials = take(&s.workspace_bytes, whole ? 0 : s.grid * planner->work(p, v).partials);
        s.codes = take(&s.workspace_bytes, given ? 0 : m * w8a8_code_stride(&p->spec));
        s.scales = take(&s.workspace_bytes, given ? 0 : m * scales * w8a8_work_bytes(&p->spec));
        s.zeros = take(&s.workspace_bytes, p->spec.asymmetric && !given ? 4 * m : 0);
        uint64_t w_bytes = (uint64_t)w8a8_rows(&p->spec) * w8a8_read_stride(p, v);
        s.weights = take(&s.workspace_bytes, aligns ? w_bytes : 0);
        s.copies = s.workspace_bytes;
        if (given && whole && !aligns)
            s.workspace_bytes = 0;
    }
    *schedule = s;
    return PTXGEN_OK;
}
