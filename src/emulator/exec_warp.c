/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ISA instructions across the lanes of a warp: shfl.sync, vote.sync, match.sync, redux.sync,
 * activemask, elect.sync, bar.warp.sync. The membermask is the last source of each.
 */
#include "src/emulator/arith.h"
#include "src/emulator/half.h"
#include "src/emulator/warp_sync.h"

enum { MEMBERS = EMU_SOURCES - 1 };

static void decode_members(struct emu_decoder *decoder, struct emu_insn *insn, uint32_t index)
{
    insn->flow = FLOW_COLLECT;
    insn->collect = COLLECT_MEMBERS;
    insn->s[MEMBERS] = emu_read_nth(decoder, index, T_u32);
}

static void need_sync(struct emu_decoder *decoder)
{
    if (!emu_mod(decoder, "sync"))
        emu_refuse(decoder, ".sync is missing; the form without it is gone since sm_70");
}

/* Takes one group of lanes that name the same members out of *left. */
static uint32_t next_group(struct emu_warp *warp, const struct emu_insn *insn, uint32_t *left)
{
    const uint32_t *members = EMU_ROW_OF(uint32_t, insn->s[MEMBERS]);
    uint32_t wanted = members[__builtin_ctz(*left)], group = 0;
    for (uint32_t rest = *left; rest; rest &= rest - 1)
        if (members[__builtin_ctz(rest)] == wanted)
            group |= rest & (0u - rest);
    *left &= ~group;
    return group;
}

/* ---- shfl ---- */

enum { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };

static bool shfl_source(uint8_t mode, int lane, uint32_t b, uint32_t c, int *source)
{
    int clamp = (int)(c & 31), segment = (int)(c >> 8 & 31), step = (int)(b & 31);
    int most = (lane & segment) | (clamp & ~segment), least = lane & segment, j;
    bool valid;
    switch (mode) {
    case SHFL_UP:
        j = lane - step;
        valid = j >= most;
        break;
    case SHFL_DOWN:
        j = lane + step;
        valid = j <= most;
        break;
    case SHFL_BFLY:
        j = lane ^ step;
        valid = j <= most;
        break;
    default: j = least | (step & ~segment); valid = j <= most;
    }
    *source = valid ? j : lane;
    return valid;
}

/* A value from a lane that does not take part is undefined: it counts as never written. */
static void shfl(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    const uint32_t *a = EMU_ROW_OF(uint32_t, insn->s[0]), *b = EMU_ROW_OF(uint32_t, insn->s[1]);
    const uint32_t *c = EMU_ROW_OF(uint32_t, insn->s[2]);
    uint32_t *d = EMU_ROW_OF(uint32_t, insn->d), out[32], valid = 0, defined = 0;
    for (int l = 0; l < 32; l++) {
        int source;
        valid |= (uint32_t)shfl_source(insn->mode, l, b[l], c[l], &source) << l;
        defined |= (mask >> source & 1) << l;
        out[l] = a[source];
    }
    EMU_LANES(mask, d[l] = out[l];)
    if (insn->has_value)
        emu_set_predicate(warp, insn->e, valid, mask);
    warp->written[insn->d.slot] = (warp->written[insn->d.slot] & ~mask) | (mask & defined);
}

/* The instruction that last wrote the register, in the order of the text. */
static const struct emu_insn *writer_of(const struct emu_program *program,
                                        const struct emu_insn *reader, uint32_t slot)
{
    for (const struct emu_insn *insn = reader; insn-- > program->code;) {
        if (insn->exec == shfl && insn->d.slot == slot)
            return insn;
        for (uint32_t i = 0; i < insn->write_count; i++)
            if (insn->writes[i] == slot)
                return insn;
    }
    return NULL;
}

void emu_shfl_without_source(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                             uint32_t slot)
{
    const struct emu_program *program = warp->cta->cluster->launch->program;
    const struct emu_insn *from = writer_of(program, insn, slot);
    if (!from || from->exec != shfl)
        return;
    int source;
    uint32_t b = (uint32_t)emu_lane_value(warp, from->s[1], lane);
    uint32_t c = (uint32_t)emu_lane_value(warp, from->s[2], lane);
    uint32_t members = (uint32_t)emu_lane_value(warp, from->s[MEMBERS], lane);
    shfl_source(from->mode, lane, b, c, &source);
    const char *why = !(warp->lanes >> source & 1)  ? "does not exist"
                      : !(warp->live >> source & 1) ? "has exited"
                      : !(members >> source & 1)    ? "the membermask does not name"
                                                    : NULL;
    struct emu_str name = program->slots[slot].name;
    if (why)
        emu_fault(warp, insn, lane, PTXGEN_CHECK_REGISTERS,
                  "register %.*s is read, but the shfl of line %u took it from lane %d, which %s",
                  (int)name.length, name.text, from->line, source, why);
}

static void decode_shfl(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const modes[] = {"up", "down", "bfly", "idx", NULL};
    need_sync(decoder);
    int mode = emu_mod_of(decoder, modes);
    emu_need_type(decoder, "b32");
    emu_need_operands(decoder, 5, 5);
    if (mode < 0)
        emu_refuse(decoder, "a mode (.up .down .bfly .idx) is missing");
    insn->mode = (uint8_t)mode;
    insn->exec = shfl;
    for (uint32_t i = 0; i < 3; i++)
        insn->s[i] = emu_read_nth(decoder, i + 1, T_b32);
    decode_members(decoder, insn, 4);
    const struct emu_arg *target = emu_operand_at(decoder, 0);
    insn->d = emu_write(decoder, target, T_b32);
    insn->write_count = 0; /* shfl itself says which lanes it defines */
    insn->has_value = target->pair && target->pair->kind != OPERAND_SINK;
    if (insn->has_value)
        insn->e = emu_write(decoder, target->pair, T_pred);
}

/* ---- vote ---- */

enum { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };

static void vote(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint32_t p = emu_predicate(warp, insn->s[0]);
    for (uint32_t left = mask; left;) {
        uint32_t group = next_group(warp, insn, &left), ballot = p & group;
        bool truth = insn->mode == VOTE_ANY   ? ballot != 0
                     : insn->mode == VOTE_ALL ? ballot == group
                                              : ballot == 0 || ballot == group;
        if (insn->mode != VOTE_BALLOT) {
            emu_set_predicate(warp, insn->d, truth ? group : 0, group);
            continue;
        }
        uint32_t *d = EMU_ROW_OF(uint32_t, insn->d);
        EMU_LANES(group, d[l] = ballot;)
    }
}

static void decode_vote(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const modes[] = {"all", "any", "uni", "ballot", NULL};
    need_sync(decoder);
    int mode = emu_mod_of(decoder, modes);
    if (mode < 0)
        emu_refuse(decoder, "a mode (.all .any .uni .ballot) is missing");
    enum emu_type type = emu_need_type(decoder, mode == VOTE_BALLOT ? "b32" : "pred");
    emu_need_operands(decoder, 3, 3);
    insn->mode = (uint8_t)mode;
    insn->exec = vote;
    insn->s[0] = emu_read_nth(decoder, 1, T_pred);
    decode_members(decoder, insn, 2);
    insn->d = emu_write_nth(decoder, 0, type);
}

/* ---- match ---- */

static void match(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    for (uint32_t left = mask; left;) {
        uint32_t group = next_group(warp, insn, &left), agreed = 0;
        uint32_t results[32]; /* d may be the register that is compared */
        for (uint32_t each = group; each; each &= each - 1) {
            int lane = __builtin_ctz(each);
            uint64_t value = emu_lane_value(warp, insn->s[0], lane);
            uint32_t same = 0;
            for (uint32_t rest = group; rest; rest &= rest - 1)
                if (emu_lane_value(warp, insn->s[0], __builtin_ctz(rest)) == value)
                    same |= rest & (0u - rest);
            agreed |= same == group ? 1u << lane : 0;
            results[lane] = insn->mode && same != group ? 0 : same;
        }
        for (uint32_t each = group; each; each &= each - 1)
            emu_set_lane(warp, insn->d, __builtin_ctz(each), results[__builtin_ctz(each)]);
        if (insn->has_value)
            emu_set_predicate(warp, insn->e, agreed, group);
    }
}

static void decode_match(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const modes[] = {"any", "all", NULL};
    int mode = emu_mod_of(decoder, modes);
    need_sync(decoder);
    if (mode < 0)
        emu_refuse(decoder, "a mode (.any .all) is missing");
    enum emu_type type = emu_need_type(decoder, "b32 b64");
    emu_need_operands(decoder, 3, 3);
    insn->mode = (uint8_t)mode;
    insn->exec = match;
    insn->s[0] = emu_read_nth(decoder, 1, type);
    decode_members(decoder, insn, 2);
    const struct emu_arg *target = emu_operand_at(decoder, 0);
    insn->has_value = target->pair && target->pair->kind != OPERAND_SINK;
    insn->d = emu_write(decoder, target, T_b32);
    if (insn->has_value)
        insn->e = emu_write(decoder, target->pair, T_pred);
}

/* ---- redux ---- */

enum { REDUX_ADD, REDUX_MIN, REDUX_MAX, REDUX_AND, REDUX_OR, REDUX_XOR };

static uint32_t redux_f32(uint32_t x, uint32_t y, const struct emu_insn *insn)
{
    float a = emu_float_of(x), b = emu_float_of(y);
    if (a != a || b != b) {
        float number = a != a ? b : a;
        return (insn->op & OP_NAN) || number != number ? EMU_NAN_F32 : emu_bits_of(number);
    }
    bool x_less = a == b ? x >> 31 : a < b;
    return x_less == (insn->mode == REDUX_MIN) ? x : y;
}

static uint32_t redux_step(uint32_t x, uint32_t y, const struct emu_insn *insn)
{
    bool is_signed = insn->type == T_s32;
    if (insn->type == T_f32)
        return redux_f32(x, y, insn);
    bool less = is_signed ? (int32_t)x < (int32_t)y : x < y;
    switch (insn->mode) {
    case REDUX_ADD: return x + y;
    case REDUX_MIN: return less ? x : y;
    case REDUX_MAX: return less ? y : x;
    case REDUX_AND: return x & y;
    case REDUX_OR: return x | y;
    default: return x ^ y;
    }
}

static void redux(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    const uint32_t *a = EMU_ROW_OF(uint32_t, insn->s[0]);
    uint32_t *d = EMU_ROW_OF(uint32_t, insn->d);
    uint32_t keep = insn->type == T_f32 && (insn->op & OP_XORSIGN) ? 0x7fffffffu : 0xffffffffu;
    for (uint32_t left = mask; left;) {
        uint32_t group = next_group(warp, insn, &left);
        uint32_t sum = a[__builtin_ctz(group)] & keep;
        if (insn->type == T_f32)
            sum = redux_f32(sum, sum, insn);
        for (uint32_t rest = group & (group - 1); rest; rest &= rest - 1)
            sum = redux_step(sum, a[__builtin_ctz(rest)] & keep, insn);
        EMU_LANES(group, d[l] = sum;)
    }
}

static void decode_redux(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const ops[] = {"add", "min", "max", "and", "or", "xor", NULL};
    need_sync(decoder);
    int op = emu_mod_of(decoder, ops);
    if (op < 0)
        emu_refuse(decoder, "an operation is missing");
    if (emu_mod(decoder, "abs"))
        insn->op |= OP_XORSIGN;
    if (emu_mod(decoder, "NaN"))
        insn->op |= OP_NAN;
    insn->type = (uint8_t)emu_need_type(decoder, op >= REDUX_AND   ? "b32"
                                                 : op == REDUX_ADD ? "u32 s32"
                                                                   : "u32 s32 f32");
    emu_need_operands(decoder, 3, 3);
    insn->mode = (uint8_t)op;
    insn->exec = redux;
    insn->s[0] = emu_read_nth(decoder, 1, insn->type);
    decode_members(decoder, insn, 2);
    insn->d = emu_write_nth(decoder, 0, T_b32);
}

/* ---- activemask, elect, bar.warp.sync ---- */

static void activemask(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint32_t *d = EMU_ROW_OF(uint32_t, insn->d);
    EMU_LANES(mask, d[l] = mask;)
}

static void decode_activemask(struct emu_decoder *decoder, struct emu_insn *insn)
{
    emu_need_type(decoder, "b32");
    emu_need_operands(decoder, 1, 1);
    insn->exec = activemask;
    insn->d = emu_write_nth(decoder, 0, T_b32);
}

/* The elected lane is the lowest of the members. */
static void elect(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    for (uint32_t left = mask; left;) {
        uint32_t group = next_group(warp, insn, &left), leader = group & (0u - group);
        if (insn->d.bytes) {
            uint32_t *d = EMU_ROW_OF(uint32_t, insn->d);
            EMU_LANES(group, d[l] = (uint32_t)__builtin_ctz(leader);)
        }
        emu_set_predicate(warp, insn->e, leader, group);
    }
}

static void decode_elect(struct emu_decoder *decoder, struct emu_insn *insn)
{
    need_sync(decoder);
    emu_need_operands(decoder, 2, 2);
    const struct emu_arg *target = emu_operand_at(decoder, 0);
    if (!target->pair)
        emu_refuse(decoder, "the predicate destination d|p is missing");
    insn->exec = elect;
    decode_members(decoder, insn, 1);
    insn->d = emu_write(decoder, target, T_b32);
    insn->e = emu_write(decoder, target->pair, T_pred);
}

const struct emu_opcode emu_warp_opcodes[] = {{"shfl", decode_shfl, CLASS_WARP},
                                              {"vote", decode_vote, CLASS_WARP},
                                              {"match", decode_match, CLASS_WARP},
                                              {"redux", decode_redux, CLASS_WARP},
                                              {"activemask", decode_activemask, CLASS_WARP},
                                              {"elect", decode_elect, CLASS_WARP},
                                              {NULL, NULL, CLASS_OTHER}};
