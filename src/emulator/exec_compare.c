/* SPDX-License-Identifier: Apache-2.0 */
/* ISA "Comparison and Selection Instructions": setp, set, selp, slct. */
#include "src/emulator/arith.h"
#include "src/emulator/half.h"

#include <stdio.h>

/* How the lanes of two operands compare: one bit a lane. */
struct order_masks {
    uint32_t less, equal, unordered;
};

enum comparison {
    CMP_EQ,
    CMP_NE,
    CMP_LT,
    CMP_LE,
    CMP_GT,
    CMP_GE,
    CMP_EQU,
    CMP_NEU,
    CMP_LTU,
    CMP_LEU,
    CMP_GTU,
    CMP_GEU,
    CMP_NUM,
    CMP_NAN
};

static const char *const comparison_names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                               "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
                                               "lo",  "ls",  "hi",  "hs",  NULL};
static const uint8_t comparison_of[] = {CMP_EQ,  CMP_NE,  CMP_LT,  CMP_LE,  CMP_GT,  CMP_GE,
                                        CMP_EQU, CMP_NEU, CMP_LTU, CMP_LEU, CMP_GTU, CMP_GEU,
                                        CMP_NUM, CMP_NAN, CMP_LT,  CMP_LE,  CMP_GT,  CMP_GE};

typedef struct order_masks (*compare_fn)(const void *a, const void *b, bool ftz);

/* A table, for a vector of different shifts is more than hosts of SSE2 have. */
static const uint32_t lane_bits[32] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

static inline uint32_t bit_if(int lane, bool truth)
{
    return lane_bits[lane] & (0u - truth);
}

#define COMPARE(name, T, load)                                                                     \
    static struct order_masks compare_##name(const void *left, const void *right, bool ftz)        \
    {                                                                                              \
        const T *a = left, *b = right;                                                             \
        struct order_masks masks = {0, 0, 0};                                                      \
        (void)ftz;                                                                                 \
        for (int l = 0; l < 32; l++) {                                                             \
            masks.less |= bit_if(l, load(a[l]) < load(b[l]));                                      \
            masks.equal |= bit_if(l, load(a[l]) == load(b[l]));                                    \
        }                                                                                          \
        return masks;                                                                              \
    }
#define AS_IS(x) (x)
COMPARE(u16, uint16_t, AS_IS)
COMPARE(s16, int16_t, AS_IS)
COMPARE(u32, uint32_t, AS_IS)
COMPARE(s32, int32_t, AS_IS)
COMPARE(u64, uint64_t, AS_IS)
COMPARE(s64, int64_t, AS_IS)

static inline float flushed(float x, bool ftz)
{
    uint32_t bits = emu_bits_of(x);
    return ftz && (bits & 0x7f800000u) == 0 ? emu_float_of(bits & 0x80000000u) : x;
}

#define COMPARE_REAL(name, T, R, load, step)                                                       \
    static struct order_masks compare_##name(const void *left, const void *right, bool ftz)        \
    {                                                                                              \
        const T *a = left, *b = right;                                                             \
        struct order_masks masks = {0, 0, 0};                                                      \
        (void)ftz;                                                                                 \
        for (int l = 0; l < 32; l++) {                                                             \
            R x = load(a[l * step]), y = load(b[l * step]);                                        \
            masks.less |= bit_if(l, x < y);                                                        \
            masks.equal |= bit_if(l, x == y);                                                      \
            masks.unordered |= bit_if(l, x != x || y != y);                                        \
        }                                                                                          \
        return masks;                                                                              \
    }
#define FLUSH_F32(x) flushed(x, ftz)
COMPARE_REAL(f32, float, float, FLUSH_F32, 1)
COMPARE_REAL(f64, double, double, AS_IS, 1)
#define FLUSH_F16(x) emu_f16_to_f32(ftz && !((x)&0x7c00) ? (x)&0x8000 : (x))
COMPARE_REAL(f16, uint16_t, float, FLUSH_F16, 1)
COMPARE_REAL(bf16, uint16_t, float, emu_bf16_to_f32, 1)
COMPARE_REAL(f16x2, uint16_t, float, FLUSH_F16, 2)
COMPARE_REAL(bf16x2, uint16_t, float, emu_bf16_to_f32, 2)

static const compare_fn compare_by_type[EMU_TYPE_COUNT] = {
    [T_u16] = compare_u16,   [T_b16] = compare_u16,     [T_s16] = compare_s16,
    [T_u32] = compare_u32,   [T_b32] = compare_u32,     [T_s32] = compare_s32,
    [T_u64] = compare_u64,   [T_b64] = compare_u64,     [T_s64] = compare_s64,
    [T_f32] = compare_f32,   [T_f64] = compare_f64,     [T_f16] = compare_f16,
    [T_bf16] = compare_bf16, [T_f16x2] = compare_f16x2, [T_bf16x2] = compare_bf16x2};

static uint32_t judge(struct order_masks m, uint8_t op)
{
    switch (op) {
    case CMP_EQ: return m.equal;
    case CMP_NE: return ~(m.equal | m.unordered);
    case CMP_LT: return m.less;
    case CMP_LE: return m.less | m.equal;
    case CMP_GT: return ~(m.less | m.equal | m.unordered);
    case CMP_GE: return ~(m.less | m.unordered);
    case CMP_EQU: return m.equal | m.unordered;
    case CMP_NEU: return ~m.equal;
    case CMP_LTU: return m.less | m.unordered;
    case CMP_LEU: return m.less | m.equal | m.unordered;
    case CMP_GTU: return ~(m.less | m.equal);
    case CMP_GEU: return ~m.less;
    case CMP_NUM: return ~m.unordered;
    default: return m.unordered;
    }
}

enum { BOOL_NONE, BOOL_AND, BOOL_OR, BOOL_XOR };

static uint32_t combine(struct emu_warp *warp, const struct emu_insn *insn, uint32_t truth)
{
    uint32_t c = insn->mode == BOOL_NONE ? 0 : emu_predicate(warp, insn->s[2]);
    switch (insn->mode) {
    case BOOL_AND: return truth & c;
    case BOOL_OR: return truth | c;
    case BOOL_XOR: return truth ^ c;
    default: return truth;
    }
}

static uint32_t compared(struct emu_warp *warp, const struct emu_insn *insn, uint32_t half)
{
    return judge(compare_by_type[insn->type](emu_row(warp, insn->s[0]) + 2 * half,
                                             emu_row(warp, insn->s[1]) + 2 * half, insn->ftz),
                 insn->op);
}

static void setp(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint32_t truth = compared(warp, insn, 0);
    bool packed = insn->type == T_f16x2 || insn->type == T_bf16x2;
    uint32_t second = packed ? compared(warp, insn, 1) : ~truth;
    uint32_t p = combine(warp, insn, truth), q = combine(warp, insn, second);
    if (!insn->d.absent)
        emu_set_predicate(warp, insn->d, p, mask);
    if (!insn->e.absent)
        emu_set_predicate(warp, insn->e, q, mask);
}

/* d is all ones (1.0 for a float type) where the comparison holds. */
static void set(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint32_t truth = combine(warp, insn, compared(warp, insn, 0));
    bool packed = insn->type == T_f16x2 || insn->type == T_bf16x2;
    uint32_t second = packed ? combine(warp, insn, compared(warp, insn, 1)) : 0;
    uint32_t one = insn->type2 == T_f32                               ? 0x3f800000u
                   : insn->type2 == T_f16 || insn->type2 == T_f16x2   ? 0x3c00u
                   : insn->type2 == T_bf16 || insn->type2 == T_bf16x2 ? 0x3f80u
                   : packed && emu_types[insn->type2].bits == 32      ? 0xffffu
                                                                      : 0xffffffffu;
    for (int l = 0; l < 32; l++) {
        if (!(mask >> l & 1))
            continue;
        uint32_t value = truth >> l & 1 ? one : 0;
        if (packed && emu_types[insn->type2].bits == 32)
            value |= (second >> l & 1 ? one : 0) << 16;
        emu_set_lane(warp, insn->d, l, value);
    }
}

static void decode_comparison(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const bools[] = {"and", "or", "xor", NULL};
    int op = emu_mod_of(decoder, comparison_names);
    if (op < 0)
        emu_refuse(decoder, "a comparison such as .eq or .lt is missing");
    insn->op = comparison_of[op];
    insn->mode = (uint8_t)(emu_mod_of(decoder, bools) + 1);
    insn->ftz = emu_mod(decoder, "ftz");
}

/* Bits are equal or not; .lo to .hs are of unsigned integers, what may be unordered of floats. */
static void check_comparison(struct emu_decoder *decoder, enum emu_type type)
{
    static const struct {
        const char *kinds, *names;
    } ranges[] = {{"USBF", " eq ne "},
                  {"USF", " lt le gt ge "},
                  {"U", " lo ls hi hs "},
                  {"F", " equ neu ltu leu gtu geu num nan "}};
    const struct emu_statement *statement = decoder->statement;
    for (uint32_t m = 0; m < statement->modifier_count; m++)
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
            char name[8];
            snprintf(name, sizeof name, " %.*s ",
                     statement->modifiers[m].length < 5 ? (int)statement->modifiers[m].length : 0,
                     statement->modifiers[m].text);
            if (name[1] != ' ' && strstr(ranges[i].names, name) &&
                !strchr(ranges[i].kinds, emu_types[type].kind))
                emu_refuse(decoder, "type .%s has no comparison%s", emu_types[type].name, name);
        }
}

static void read_comparands(struct emu_decoder *decoder, struct emu_insn *insn)
{
    if (!compare_by_type[insn->type])
        emu_refuse(decoder, "type .%s cannot be compared", emu_types[insn->type].name);
    check_comparison(decoder, (enum emu_type)insn->type);
    emu_need_operands(decoder, insn->mode ? 4 : 3, insn->mode ? 4 : 3);
    if (insn->ftz && insn->type != T_f32 && insn->type != T_f16 && insn->type != T_f16x2)
        emu_refuse(decoder, ".ftz is of .f32, .f16 and .f16x2");
    insn->s[0] = emu_read_nth(decoder, 1, insn->type);
    insn->s[1] = emu_read_nth(decoder, 2, insn->type);
    if (insn->mode)
        insn->s[2] = emu_read_nth(decoder, 3, T_pred);
}

static void decode_setp(struct emu_decoder *decoder, struct emu_insn *insn)
{
    decode_comparison(decoder, insn);
    insn->type = (uint8_t)emu_mod_type(decoder);
    read_comparands(decoder, insn);
    const struct emu_arg *target = emu_operand_at(decoder, 0);
    insn->exec = setp;
    insn->d.absent = target->kind == OPERAND_SINK;
    insn->e.absent = !target->pair || target->pair->kind == OPERAND_SINK;
    if (!insn->d.absent)
        insn->d = emu_write(decoder, target, T_pred);
    if (!insn->e.absent)
        insn->e = emu_write(decoder, target->pair, T_pred);
}

static void decode_set(struct emu_decoder *decoder, struct emu_insn *insn)
{
    decode_comparison(decoder, insn);
    insn->type2 = (uint8_t)emu_need_type(decoder, "u16 s16 u32 s32 f16 f16x2 bf16 bf16x2 f32");
    insn->type = (uint8_t)emu_mod_type(decoder);
    read_comparands(decoder, insn);
    insn->exec = set;
    insn->d = emu_write_nth(decoder, 0, insn->type2);
}

/* ---- selp, slct ---- */

#define SELECT(T, name)                                                                            \
    static void name(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)            \
    {                                                                                              \
        T *d = EMU_ROW_OF(T, insn->d);                                                             \
        const T *a = EMU_ROW_OF(T, insn->s[0]), *b = EMU_ROW_OF(T, insn->s[1]);                    \
        uint32_t c = emu_predicate(warp, insn->s[2]);                                              \
        EMU_LANES(mask, d[l] = c >> l & 1 ? a[l] : b[l];)                                          \
    }
SELECT(uint16_t, selp_16)
SELECT(uint32_t, selp_32)
SELECT(uint64_t, selp_64)

static void decode_selp(struct emu_decoder *decoder, struct emu_insn *insn)
{
    enum emu_type type = emu_need_type(decoder, "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64");
    emu_need_operands(decoder, 4, 4);
    insn->type = (uint8_t)type;
    insn->exec = emu_types[type].bits == 16   ? selp_16
                 : emu_types[type].bits == 32 ? selp_32
                                              : selp_64;
    insn->s[0] = emu_read_nth(decoder, 1, type);
    insn->s[1] = emu_read_nth(decoder, 2, type);
    insn->s[2] = emu_read_nth(decoder, 3, T_pred);
    insn->d = emu_write_nth(decoder, 0, type);
}

/* "d = (c >= 0) ? a : b"; a NaN or (with .ftz) a negative subnormal c counts accordingly. */
static void slct(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    for (int l = 0; l < 32; l++) {
        if (!(mask >> l & 1))
            continue;
        uint32_t c = (uint32_t)emu_lane_value(warp, insn->s[2], l);
        bool first =
            insn->type2 == T_s32 ? (int32_t)c >= 0 : flushed(emu_float_of(c), insn->ftz) >= 0;
        emu_set_lane(warp, insn->d, l, emu_lane_value(warp, insn->s[first ? 0 : 1], l));
    }
}

static void decode_slct(struct emu_decoder *decoder, struct emu_insn *insn)
{
    insn->ftz = emu_mod(decoder, "ftz");
    enum emu_type type = emu_need_type(decoder, "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64");
    insn->type2 = (uint8_t)emu_need_type(decoder, "s32 f32");
    emu_need_operands(decoder, 4, 4);
    insn->exec = slct;
    insn->s[0] = emu_read_nth(decoder, 1, type);
    insn->s[1] = emu_read_nth(decoder, 2, type);
    insn->s[2] = emu_read_nth(decoder, 3, insn->type2);
    insn->d = emu_write_nth(decoder, 0, type);
}

const struct emu_opcode emu_compare_opcodes[] = {{"setp", decode_setp, CLASS_COMPARE},
                                                 {"set", decode_set, CLASS_COMPARE},
                                                 {"selp", decode_selp, CLASS_COMPARE},
                                                 {"slct", decode_slct, CLASS_COMPARE},
                                                 {NULL, NULL, CLASS_OTHER}};
