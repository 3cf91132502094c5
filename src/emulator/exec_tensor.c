/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ISA "Warp Level Matrix Instructions": mma, mma.sp, ldmatrix, stmatrix, movmatrix. What they
 * compute is in tensor_core.h; here registers are gathered and scattered.
 */
#include "src/emulator/access.h"
#include "src/emulator/decode.h"
#include "src/emulator/shared_buffer.h"
#include "src/emulator/tensor_decode.h"

#include <string.h>

enum { MOST_ROWS = 160 };

emu_numerics emu_launch_numerics(const struct emu_launch *launch)
{
    return launch->options->numerics == PTXGEN_NUMERICS_EXACT
               ? EMU_NUMERICS_EXACT
               : emu_numerics_of_sm(launch->chip->sm);
}

uint32_t emu_gather_rows(struct emu_warp *warp, const struct emu_src *list, uint32_t count,
                         emu_lanes *rows)
{
    uint32_t row = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *from = emu_row(warp, list[i]);
        if (list[i].bytes == 4) {
            memcpy(rows[row++].lane, from, 128);
            continue;
        }
        for (int lane = 0; lane < 32; lane++) {
            memcpy(&rows[row].lane[lane], from + lane * 8, 4);
            memcpy(&rows[row + 1].lane[lane], from + lane * 8 + 4, 4);
        }
        row += 2;
    }
    return row;
}

void emu_scatter_rows(struct emu_warp *warp, const struct emu_src *list, uint32_t count,
                      const emu_lanes *rows)
{
    uint32_t row = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *to = emu_row(warp, list[i]);
        if (list[i].bytes == 4) {
            memcpy(to, rows[row++].lane, 128);
            continue;
        }
        for (int lane = 0; lane < 32; lane++) {
            memcpy(to + lane * 8, &rows[row].lane[lane], 4);
            memcpy(to + lane * 8 + 4, &rows[row + 1].lane[lane], 4);
        }
        row += 2;
    }
}

/* ---- mma ---- */

struct mma {
    emu_mma_op op;
    uint32_t d, a, b, c; /* registers of each operand, in insn->list one after the other */
};

static void mma(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    const struct mma *info = insn->extra;
    emu_lanes d[MOST_ROWS], a[MOST_ROWS], b[MOST_ROWS], c[MOST_ROWS];
    const struct emu_src *list = insn->list;
    emu_numerics numerics = emu_launch_numerics(warp->cta->cluster->launch);
    ptxgen_error err;
    (void)mask;
    emu_gather_rows(warp, list + info->d, info->a, a);
    emu_gather_rows(warp, list + info->d + info->a, info->b, b);
    emu_gather_rows(warp, list + info->d + info->a + info->b, info->c, c);
    if (!info->op.sparse) {
        emu_mma(&info->op, numerics, d, a, b, c);
    } else {
        emu_lanes metadata;
        uint32_t selector = (uint32_t)insn->imm;
        uint32_t used = emu_mma_sp_metadata_lanes(&info->op, selector);
        uint32_t missing = insn->s[0].bank ? 0 : used & ~warp->written[insn->s[0].slot];
        if (missing && (warp->cta->cluster->launch->checks & PTXGEN_CHECK_REGISTERS))
            emu_fault(warp, insn, __builtin_ctz(missing), PTXGEN_CHECK_REGISTERS,
                      "the metadata register is read, but was never written");
        memcpy(metadata.lane, emu_row(warp, insn->s[0]), sizeof metadata.lane);
        if (emu_mma_sp(&info->op, numerics, d, a, b, c, &metadata, selector, &err) != PTXGEN_OK)
            emu_fault(warp, insn, 0, PTXGEN_CHECK_OPERANDS, "%s", err.message);
    }
    emu_scatter_rows(warp, list, info->d, d);
}

static int shape_number(const char **at)
{
    int value = 0;
    while (**at >= '0' && **at <= '9' && value < 10000)
        value = value * 10 + *(*at)++ - '0';
    return value;
}

bool emu_parse_shape(struct emu_decoder *decoder, uint16_t shape[3])
{
    const struct emu_statement *statement = decoder->statement;
    for (uint32_t i = 0; i < statement->modifier_count; i++) {
        char text[24] = "";
        struct emu_str name = statement->modifiers[i];
        if ((decoder->used >> i & 1) || name.length >= sizeof text || name.text[0] != 'm')
            continue;
        memcpy(text, name.text, name.length);
        const char *at = text + 1;
        shape[0] = (uint16_t)shape_number(&at);
        if (*at++ != 'n')
            continue;
        shape[1] = (uint16_t)shape_number(&at);
        shape[2] = 0;
        if (*at == 'k') {
            at++;
            shape[2] = (uint16_t)shape_number(&at);
        }
        if (*at)
            continue;
        decoder->used |= 1u << i;
        return true;
    }
    return false;
}

emu_element emu_need_element(struct emu_decoder *decoder)
{
    static const struct {
        enum emu_type type;
        emu_element element;
    } elements[] = {{T_f16, EMU_F16}, {T_bf16, EMU_BF16}, {T_tf32, EMU_TF32}, {T_f32, EMU_F32},
                    {T_f64, EMU_F64}, {T_e4m3, EMU_E4M3}, {T_e5m2, EMU_E5M2}, {T_s8, EMU_S8},
                    {T_u8, EMU_U8},   {T_s4, EMU_S4},     {T_u4, EMU_U4},     {T_b1, EMU_B1},
                    {T_s32, EMU_S32}};
    enum emu_type type = emu_mod_type(decoder);
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (elements[i].type == type)
            return elements[i].element;
    emu_refuse(decoder, "a matrix element type is missing or unknown (.%s)", emu_types[type].name);
}

/* Registers of a matrix operand: 32-bit ones, or 64-bit ones for f64. */
uint32_t emu_matrix_list(struct emu_decoder *decoder, struct emu_insn *insn,
                         const struct emu_arg *operand, uint32_t words, emu_element element,
                         bool write)
{
    uint32_t count, width = element == EMU_F64 ? 2 : 1;
    const struct emu_arg *items = emu_items(decoder, operand, &count);
    if (count * width != words)
        emu_refuse(decoder, "%u registers stand in a matrix operand, %u are due", count,
                   words / width);
    for (uint32_t i = 0; i < count; i++) {
        enum emu_type type = width == 2 ? T_b64 : T_b32;
        insn->list[insn->list_count++] =
            write ? emu_write(decoder, &items[i], type) : emu_read(decoder, &items[i], type);
    }
    return count;
}

void emu_need_aligned(struct emu_decoder *decoder, struct emu_insn *insn)
{
    if (!emu_mod(decoder, "sync") || !emu_mod(decoder, "aligned"))
        emu_refuse(decoder, ".sync.aligned is missing");
    insn->flow = FLOW_COLLECT;
    insn->collect = COLLECT_ALIGNED;
}

/* The first layout is A's, the second B's. */
static void decode_layouts(struct emu_decoder *decoder, emu_mma_op *op)
{
    static const char *const layouts[] = {"row", "col", NULL};
    bool column[2];
    for (int i = 0; i < 2; i++) {
        const struct emu_statement *statement = decoder->statement;
        uint32_t at = 0;
        while (at < statement->modifier_count &&
               ((decoder->used >> at & 1) || (!emu_str_is(statement->modifiers[at], layouts[0]) &&
                                              !emu_str_is(statement->modifiers[at], layouts[1]))))
            at++;
        if (at == statement->modifier_count)
            emu_refuse(decoder, "the layouts (.row.col) are missing");
        column[i] = emu_str_is(statement->modifiers[at], layouts[1]);
        decoder->used |= 1u << at;
    }
    op->a_column = column[0];
    op->b_row = !column[1];
}

static void decode_mma(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const rounds[] = {"rn", "rz", "rm", "rp", NULL};
    struct mma *info = emu_alloc(&decoder->program->arena, 1, sizeof *info);
    emu_mma_op *op = &info->op;
    uint16_t shape[3];
    ptxgen_error err;
    op->sparse = emu_mod(decoder, "sp") || emu_mod(decoder, "sp::ordered_metadata");
    emu_need_aligned(decoder, insn);
    if (!emu_parse_shape(decoder, shape))
        emu_refuse(decoder, "a shape such as .m16n8k16 is missing");
    op->m = shape[0];
    op->n = shape[1];
    op->k = shape[2];
    decode_layouts(decoder, op);
    op->satfinite = emu_mod(decoder, "satfinite");
    int round = emu_mod_of(decoder, rounds);
    if (round >= 0 && emu_mod_count(decoder, "f64") == 0)
        emu_refuse(decoder, "a rounding is of .f64");
    op->rounding = round < 0 ? EMU_RN : (emu_rounding)round;
    op->d = emu_need_element(decoder);
    op->a = emu_need_element(decoder);
    op->b = emu_need_element(decoder);
    op->c = emu_need_element(decoder);
    if (emu_mod(decoder, "popc"))
        op->bit_op = emu_mod(decoder, "and") ? EMU_BIT_AND : EMU_BIT_XOR;
    emu_mod(decoder, "xor");
    if (emu_mma_check(op, &err) != PTXGEN_OK)
        emu_refuse(decoder, "%s", err.message);
    emu_need_operands(decoder, op->sparse ? 6 : 4, op->sparse ? 6 : 4);
    insn->exec = mma;
    insn->extra = info;
    insn->list = emu_alloc(&decoder->program->arena, 4 * MOST_ROWS, sizeof *insn->list);
    info->d = emu_matrix_list(decoder, insn, emu_operand_at(decoder, 0),
                              emu_mma_registers(op, EMU_OPERAND_D), op->d, true);
    info->a = emu_matrix_list(decoder, insn, emu_operand_at(decoder, 1),
                              emu_mma_registers(op, EMU_OPERAND_A), op->a, false);
    info->b = emu_matrix_list(decoder, insn, emu_operand_at(decoder, 2),
                              emu_mma_registers(op, EMU_OPERAND_B), op->b, false);
    info->c = emu_matrix_list(decoder, insn, emu_operand_at(decoder, 3),
                              emu_mma_registers(op, EMU_OPERAND_C), op->c, false);
    if (!op->sparse)
        return;
    uint16_t reads = insn->read_count;
    insn->s[0] = emu_read_nth(decoder, 4, T_b32);
    insn->read_count = reads; /* only the selected lanes' metadata is read */
    insn->imm = (int64_t)emu_immediate(decoder, emu_operand_at(decoder, 5));
}

/* ---- ldmatrix, stmatrix, movmatrix ---- */

static void locate_rows(struct emu_warp *warp, const struct emu_insn *insn, uint32_t flags,
                        struct emu_place places[32])
{
    uint64_t addresses[32];
    uint32_t rows = emu_matrix_rows(insn->extra);
    uint32_t mask = rows >= 32 ? 0xffffffffu : (1u << rows) - 1;
    uint32_t missing = insn->s[0].bank ? 0 : mask & ~warp->written[insn->s[0].slot];
    if (missing && (warp->cta->cluster->launch->checks & PTXGEN_CHECK_REGISTERS))
        emu_fault(warp, insn, __builtin_ctz(missing), PTXGEN_CHECK_REGISTERS,
                  "the address register is read, but was never written");
    emu_addresses(warp, insn->s[0], insn->imm, addresses);
    emu_locate_lanes(warp, insn, mask, insn->space, addresses, 16, 16,
                     flags | emu_home(warp, insn->s[0]), places);
}

static void ldmatrix(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    struct emu_place places[32];
    emu_matrix_row rows[32];
    emu_lanes d[8];
    (void)mask;
    locate_rows(warp, insn, ACCESS_READ, places);
    for (uint32_t i = 0; i < emu_matrix_rows(insn->extra); i++)
        memcpy(rows[i].byte, places[i].data, 16);
    emu_ldmatrix(insn->extra, d, rows);
    emu_scatter_rows(warp, insn->list, insn->list_count, d);
}

static void stmatrix(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    struct emu_place places[32];
    emu_matrix_row rows[32];
    emu_lanes s[8];
    (void)mask;
    emu_progress(warp->worker);
    locate_rows(warp, insn, ACCESS_WRITE, places);
    emu_gather_rows(warp, insn->list, insn->list_count, s);
    emu_stmatrix(insn->extra, rows, s);
    for (uint32_t i = 0; i < emu_matrix_rows(insn->extra); i++)
        memcpy(places[i].data, rows[i].byte, 16);
}

static emu_matrix_form matrix_form(struct emu_decoder *decoder, bool store)
{
    uint16_t shape[3];
    if (!emu_parse_shape(decoder, shape))
        emu_refuse(decoder, "a shape such as .m8n8 is missing");
    bool b6 = emu_mod(decoder, "b6x16_p32"), b4 = emu_mod(decoder, "b4x16_p64");
    if (b6 || b4)
        emu_need_type(decoder, "b8x16");
    enum emu_type type = b6 || b4 ? T_b8 : emu_need_type(decoder, "b16 b8");
    if (store && shape[0] == 16 && shape[1] == 8)
        return EMU_M16N8_B8;
    if (shape[0] == 16)
        return b6 ? EMU_M16N16_B6X16_P32 : b4 ? EMU_M16N16_B4X16_P64 : EMU_M16N16_B8;
    if (shape[1] == 16)
        return b6 ? EMU_M8N16_B6X16_P32 : EMU_M8N16_B4X16_P64;
    if (shape[0] != 8 || shape[1] != 8 || type != T_b16)
        emu_refuse(decoder, "no matrix of that shape and type is moved");
    return EMU_M8N8_B16;
}

static void decode_matrix(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const counts[] = {"x1", "x2", "x4", NULL};
    bool store = decoder->statement->mnemonic.text[0] == 's';
    emu_matrix_op *op = emu_alloc(&decoder->program->arena, 1, sizeof *op);
    ptxgen_error err;
    emu_need_aligned(decoder, insn);
    int count = emu_mod_of(decoder, counts);
    if (count < 0)
        emu_refuse(decoder, "the number of matrices (.x1 .x2 .x4) is missing");
    op->count = (uint8_t)(1 << count);
    op->transpose = emu_mod(decoder, "trans");
    op->store = store;
    op->form = matrix_form(decoder, store);
    insn->space = (uint8_t)emu_mod_space(decoder);
    if (emu_matrix_check(op, &err) != PTXGEN_OK)
        emu_refuse(decoder, "%s", err.message);
    emu_need_operands(decoder, 2, 2);
    insn->exec = store ? stmatrix : ldmatrix;
    insn->extra = op;
    insn->class_id = CLASS_MEMORY_SHARED;
    insn->list = emu_alloc(&decoder->program->arena, 8, sizeof *insn->list);
    uint16_t reads = insn->read_count;
    emu_address(decoder, emu_operand_at(decoder, store ? 0 : 1), &insn->s[0], &insn->imm);
    insn->read_count = reads; /* only the lanes that give rows: locate_rows looks */
    emu_matrix_list(decoder, insn, emu_operand_at(decoder, store ? 1 : 0), emu_matrix_registers(op),
                    EMU_F16, !store);
}

static void movmatrix(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    emu_lanes a, d;
    (void)mask;
    memcpy(a.lane, emu_row(warp, insn->s[0]), sizeof a.lane);
    emu_movmatrix(&d, &a);
    memcpy(emu_row(warp, insn->d), d.lane, sizeof d.lane);
}

static void decode_movmatrix(struct emu_decoder *decoder, struct emu_insn *insn)
{
    uint16_t shape[3];
    emu_need_aligned(decoder, insn);
    if (!emu_parse_shape(decoder, shape) || shape[0] != 8 || shape[1] != 8 ||
        !emu_mod(decoder, "trans"))
        emu_refuse(decoder, ".m8n8.trans is missing");
    emu_need_type(decoder, "b16");
    emu_need_operands(decoder, 2, 2);
    insn->exec = movmatrix;
    insn->s[0] = emu_read_nth(decoder, 1, T_b32);
    insn->d = emu_write_nth(decoder, 0, T_b32);
}

const struct emu_opcode emu_tensor_opcodes[] = {{"mma", decode_mma, CLASS_TENSOR},
                                                {"ldmatrix", decode_matrix, CLASS_MEMORY_SHARED},
                                                {"stmatrix", decode_matrix, CLASS_MEMORY_SHARED},
                                                {"movmatrix", decode_movmatrix, CLASS_WARP},
                                                {NULL, NULL, CLASS_OTHER}};
