/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ISA "Asynchronous Warpgroup Level Matrix Instructions". The four warps of a warpgroup meet at
 * wgmma.mma_async; the last one computes for all. Accumulators count as unwritten until
 * wgmma.wait_group, except for a following wgmma that accumulates into them. Registers of operand A
 * must then hold what they held when the wgmma began.
 */
#include "src/emulator/access.h"
#include "src/emulator/bulk.h"
#include "src/emulator/late_read.h"
#include "src/emulator/shared_buffer.h"
#include "src/emulator/tensor_decode.h"
#include "src/emulator/warp_sync.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_D = 128, MOST_A = 8, WG_SCALE_D = 2, WG_METADATA = 3 };

/* An accumulator tile that a wgmma under way will write. */
struct emu_pending_tile {
    const struct emu_src *registers;
    uint32_t count, group;
};

/* Operand A in registers of a wgmma under way. */
struct emu_pending_operand {
    const struct emu_src *registers;
    uint32_t count, group;
    emu_lanes rows[4 * MOST_A];
};

struct wgmma {
    emu_wgmma_op op;
    uint32_t d, a; /* registers in insn->list: D, then A */
};

/* ---- pending accumulators ---- */

static struct emu_pending_tile *find_tile(struct emu_warp *warp, uint32_t slot)
{
    for (uint32_t i = 0; i < warp->tile_count; i++)
        for (uint32_t r = 0; r < warp->tiles[i].count; r++)
            if (warp->tiles[i].registers[r].slot == slot)
                return &warp->tiles[i];
    return NULL;
}

static void check_accumulator(struct emu_warp *warp, const struct emu_insn *insn, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = insn->list[i].slot, missing = ~warp->written[slot];
        if (missing && !find_tile(warp, slot))
            emu_fault(warp, insn, __builtin_ctz(missing), PTXGEN_CHECK_REGISTERS,
                      "accumulator register %u of the tile is added to, but was never written", i);
    }
}

static bool hold_tile(struct emu_warp *warp, const struct emu_insn *insn, uint32_t count)
{
    struct emu_pending_tile *tile = find_tile(warp, insn->list[0].slot);
    if (!tile && warp->tile_count == warp->tile_capacity) {
        uint32_t wider = warp->tile_capacity ? warp->tile_capacity * 2 : 8;
        struct emu_pending_tile *list = realloc(warp->tiles, wider * sizeof *list);
        if (!list)
            return false;
        warp->tiles = list;
        warp->tile_capacity = wider;
    }
    if (!tile)
        tile = &warp->tiles[warp->tile_count++];
    *tile = (struct emu_pending_tile){insn->list, count, warp->tile_groups};
    for (uint32_t i = 0; i < count; i++)
        warp->written[insn->list[i].slot] = 0;
    return true;
}

static bool hold_operand(struct emu_warp *warp, const struct emu_src *registers, uint32_t count,
                         const emu_lanes *rows, uint32_t row_count)
{
    if (warp->operand_count == warp->operand_capacity) {
        uint32_t wider = warp->operand_capacity ? warp->operand_capacity * 2 : 4;
        struct emu_pending_operand *list = realloc(warp->operands, wider * sizeof *list);
        if (!list)
            return false;
        warp->operands = list;
        warp->operand_capacity = wider;
    }
    struct emu_pending_operand *operand = &warp->operands[warp->operand_count++];
    operand->registers = registers;
    operand->count = count;
    operand->group = warp->tile_groups;
    memcpy(operand->rows, rows, row_count * sizeof *rows);
    return true;
}

static bool is_under_way(const struct emu_warp *warp, uint32_t group, uint32_t keep)
{
    return group >= warp->tile_groups || warp->tile_groups - group <= keep;
}

static void check_operand(struct emu_warp *warp, const struct emu_insn *insn,
                          const struct emu_pending_operand *operand)
{
    emu_lanes rows[4 * MOST_A];
    uint32_t count = emu_gather_rows(warp, operand->registers, operand->count, rows);
    for (uint32_t i = 0; i < count; i++)
        for (int lane = 0; lane < 32; lane++)
            if (rows[i].lane[lane] != operand->rows[i].lane[lane])
                emu_fault(warp, insn, lane, PTXGEN_CHECK_REGISTERS,
                          "register %u of operand A of a wgmma was changed before this wait, while "
                          "it was under way",
                          i);
}

/* Those whose wgmma has ended. */
static void release_operands(struct emu_warp *warp, const struct emu_insn *insn, uint32_t keep)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < warp->operand_count; i++) {
        if (is_under_way(warp, warp->operands[i].group, keep))
            warp->operands[kept++] = warp->operands[i];
        else
            check_operand(warp, insn, &warp->operands[i]);
    }
    warp->operand_count = kept;
}

static void release_tiles(struct emu_warp *warp, uint32_t keep)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < warp->tile_count; i++) {
        struct emu_pending_tile tile = warp->tiles[i];
        if (is_under_way(warp, tile.group, keep)) {
            warp->tiles[kept++] = tile;
            continue;
        }
        for (uint32_t r = 0; r < tile.count; r++)
            warp->written[tile.registers[r].slot] = 0xffffffffu;
    }
    warp->tile_count = kept;
}

/* ---- the product ---- */

struct reader {
    struct emu_warp *warp;
    const struct emu_insn *insn;
};

static bool read16(void *user, emu_operand operand, uint32_t address, uint8_t out[16])
{
    struct reader *reader = user;
    struct emu_place place =
        emu_locate(reader->warp, reader->insn, 0, SPACE_SHARED, address, 16, 16,
                   ACCESS_READ | ACCESS_LATE | ACCESS_ASYNC_PROXY |
                       emu_home(reader->warp, reader->insn->s[operand == EMU_OPERAND_B]));
    memcpy(out, place.data, 16);
    return true;
}

static void multiply(struct emu_warp *first, const struct emu_insn *insn)
{
    const struct wgmma *info = insn->extra;
    uint32_t d_rows = emu_wgmma_registers(&info->op, EMU_OPERAND_D);
    uint32_t a_rows = info->op.a_shared ? 0 : emu_wgmma_registers(&info->op, EMU_OPERAND_A);
    emu_lanes d[4 * MOST_D], a[4 * MOST_A], metadata[4];
    struct reader reader = {first, insn};
    ptxgen_error err;
    emu_wgmma_args args = {.d = d,
                           .a = a,
                           .scale_d = emu_predicate(first, insn->s[WG_SCALE_D]) & 1,
                           .metadata = metadata,
                           .selector = (uint32_t)insn->imm,
                           .shared = {read16, &reader}};
    if (info->op.a_shared)
        args.a_descriptor = emu_lane_value(first, insn->s[0], 0);
    args.b_descriptor = emu_lane_value(first, insn->s[1], 0);
    for (uint32_t w = 0; w < 4; w++) {
        if (args.scale_d && (first->cta->cluster->launch->checks & PTXGEN_CHECK_REGISTERS))
            check_accumulator(first + w, insn, info->d);
        emu_gather_rows(first + w, insn->list, info->d, d + w * d_rows);
        emu_gather_rows(first + w, insn->list + info->d, info->a, a + w * a_rows);
        if (a_rows &&
            !hold_operand(first + w, insn->list + info->d, info->a, a + w * a_rows, a_rows))
            emu_out_of_memory(first);
        if (info->op.sparse)
            memcpy(metadata[w].lane, emu_row(first + w, insn->s[WG_METADATA]), 128);
    }
    if (!emu_late_begin(first))
        emu_out_of_memory(first);
    emu_numerics numerics = emu_launch_numerics(first->cta->cluster->launch);
    if (emu_wgmma(&info->op, numerics, &args, &err) != PTXGEN_OK)
        emu_fault(first, insn, 0, PTXGEN_CHECK_OPERANDS, "%s", err.message);
    for (uint32_t w = 0; w < 4; w++) {
        emu_scatter_rows(first + w, insn->list, info->d, d + w * d_rows);
        if (!hold_tile(first + w, insn, info->d))
            emu_out_of_memory(first);
    }
}

static bool waits_at(const struct emu_warp *warp, uint32_t pc)
{
    return warp->fragment_count == 1 && warp->fragments[0].state == FRAGMENT_GROUP &&
           warp->fragments[0].pc == pc;
}

static void mma_async(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    struct emu_fragment *fragment = warp->current;
    if (mask == 0) {
        fragment->pc++;
        return;
    }
    if (!emu_collect_lanes(warp, insn, mask))
        return;
    struct emu_warp *first = warp - warp->index % 4;
    if (first->index + 4 > warp->cta->warp_count)
        emu_fault(warp, insn, 0, PTXGEN_CHECK_OPERANDS, "a warpgroup is four warps; the CTA has %u",
                  warp->cta->warp_count);
    fragment->state = FRAGMENT_GROUP;
    for (uint32_t w = 0; w < 4; w++)
        if (!waits_at(first + w, fragment->pc))
            return;
    multiply(first, insn);
    emu_progress(warp->worker);
    for (uint32_t w = 0; w < 4; w++) {
        first[w].fragments[0].state = FRAGMENT_RUNS;
        first[w].fragments[0].pc++;
    }
}

static void commit_group(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    (void)insn;
    (void)mask;
    warp->tile_groups++;
    warp->clock[warp->number]++; /* what the group reads is told from what the next one does */
}

static void wait_group(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    (void)mask;
    release_operands(warp, insn, (uint32_t)insn->imm);
    release_tiles(warp, (uint32_t)insn->imm);
    emu_late_done(warp, (uint32_t)insn->imm);
}

/* ---- decoding ---- */

static bool scale_negates(struct emu_decoder *decoder, uint32_t index)
{
    int64_t scale = (int64_t)emu_immediate(decoder, emu_operand_at(decoder, index));
    if (scale != 1 && scale != -1)
        emu_refuse(decoder, "a scale of %lld; it is 1 or -1", (long long)scale);
    return scale < 0;
}

static bool transposes(struct emu_decoder *decoder, uint32_t index)
{
    uint64_t flag = emu_immediate(decoder, emu_operand_at(decoder, index));
    if (flag > 1)
        emu_refuse(decoder, "imm-trans is %llu; it is 0 or 1", (unsigned long long)flag);
    return flag;
}

/* scale-d, then imm-scale-a and -b for floats, then imm-trans-a and -b for 16-bit types. */
static void decode_scales(struct emu_decoder *decoder, struct emu_insn *insn, emu_wgmma_op *op,
                          uint32_t at)
{
    uint32_t count = emu_operand_count(decoder);
    insn->s[WG_SCALE_D] = emu_read_nth(decoder, at++, T_pred);
    if (at + 1 < count) {
        op->negate_a = scale_negates(decoder, at++);
        op->negate_b = scale_negates(decoder, at++);
    }
    bool has_transposes = at < count;
    if (has_transposes && op->a_shared)
        op->transpose_a = transposes(decoder, at++);
    if (has_transposes)
        op->transpose_b = transposes(decoder, at++);
    emu_need_operands(decoder, at, at);
}

static void decode_mma_async(struct emu_decoder *decoder, struct emu_insn *insn)
{
    struct wgmma *info = emu_alloc(&decoder->program->arena, 1, sizeof *info);
    emu_wgmma_op *op = &info->op;
    uint16_t shape[3];
    ptxgen_error err;
    op->sparse = emu_mod(decoder, "sp");
    emu_need_aligned(decoder, insn);
    if (!emu_parse_shape(decoder, shape) || shape[0] != 64)
        emu_refuse(decoder, "a shape such as .m64n128k16 is missing");
    op->n = shape[1];
    op->k = shape[2];
    op->satfinite = emu_mod(decoder, "satfinite");
    op->d = emu_need_element(decoder);
    op->a = emu_need_element(decoder);
    op->b = emu_need_element(decoder);
    emu_mod(decoder, "and");
    emu_mod(decoder, "popc");
    const struct emu_arg *a = emu_operand_at(decoder, 1);
    op->a_shared = a->kind != OPERAND_VECTOR;
    insn->flow = FLOW_CONTROL;
    insn->exec = mma_async;
    decoder->program->uses_proxies = true;
    insn->extra = info;
    insn->list = emu_alloc(&decoder->program->arena, MOST_D + MOST_A, sizeof *insn->list);
    uint32_t at = 3;
    insn->s[1] = emu_read_nth(decoder, 2, T_b64);
    if (op->sparse) {
        insn->s[WG_METADATA] = emu_read_nth(decoder, at++, T_b32);
        insn->imm = (int64_t)emu_immediate(decoder, emu_operand_at(decoder, at++));
    }
    decode_scales(decoder, insn, op, at);
    if (emu_wgmma_check(op, &err) != PTXGEN_OK)
        emu_refuse(decoder, "%s", err.message);
    info->d = emu_matrix_list(decoder, insn, emu_operand_at(decoder, 0),
                              emu_wgmma_registers(op, EMU_OPERAND_D), EMU_F32, true);
    insn->write_count = 0; /* the wait makes them written */
    if (op->a_shared)
        insn->s[0] = emu_read_nth(decoder, 1, T_b64);
    else
        info->a = emu_matrix_list(decoder, insn, a, emu_wgmma_registers(op, EMU_OPERAND_A), EMU_F32,
                                  false);
}

static void decode_wgmma(struct emu_decoder *decoder, struct emu_insn *insn)
{
    bool commit = emu_mod(decoder, "commit_group"), fences = !commit && emu_mod(decoder, "fence");
    if (emu_mod(decoder, "mma_async")) {
        decode_mma_async(decoder, insn);
        return;
    }
    bool waits = !commit && !fences && emu_mod(decoder, "wait_group");
    if (!commit && !fences && !waits)
        emu_refuse(decoder, ".mma_async, .fence, .commit_group or .wait_group is missing");
    emu_need_aligned(decoder, insn);
    emu_need_operands(decoder, waits, waits);
    insn->exec = commit ? commit_group : fences ? emu_exec_nothing : wait_group;
    if (waits)
        insn->imm = (int64_t)emu_immediate(decoder, emu_operand_at(decoder, 0));
}

const struct emu_opcode emu_wgmma_opcodes[] = {{"wgmma", decode_wgmma, CLASS_TENSOR},
                                               {NULL, NULL, CLASS_OTHER}};
