/* SPDX-License-Identifier: Apache-2.0 */
/* Appending one instruction: the checks that need no control flow. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

#include "table.inc"

const size_t ptx_op_count = sizeof ptx_ops / sizeof *ptx_ops;
const size_t ptx_modifier_group_count = sizeof ptx_modifier_groups / sizeof *ptx_modifier_groups;

const struct ptx_modifier_group *ptx_find_group(const char *name, size_t length)
{
    for (size_t i = 0; i < ptx_modifier_group_count; i++)
        if (!strncmp(ptx_modifier_groups[i].name, name, length) &&
            !ptx_modifier_groups[i].name[length])
            return &ptx_modifier_groups[i];
    return NULL;
}

/* ---- constants ---- */

#define PTX_IMMEDIATE(name, ctype, constant)                                                       \
    ptx_##name ptx_imm_##name(ctype value)                                                         \
    {                                                                                              \
        ptx_##name x = {{.kind = PTX_OPERAND_IMMEDIATE, .type = constant}};                        \
        memcpy(&x.o.bits, &value, sizeof value);                                                   \
        return x;                                                                                  \
    }
PTX_IMMEDIATE(u16, uint16_t, PTX_U16)
PTX_IMMEDIATE(s16, int16_t, PTX_S16)
PTX_IMMEDIATE(u32, uint32_t, PTX_U32)
PTX_IMMEDIATE(s32, int32_t, PTX_S32)
PTX_IMMEDIATE(u64, uint64_t, PTX_U64)
PTX_IMMEDIATE(s64, int64_t, PTX_S64)
PTX_IMMEDIATE(f32, float, PTX_F32)
PTX_IMMEDIATE(f64, double, PTX_F64)

/* ---- registers ---- */

enum ptx_class ptx_class_of(ptx_type type)
{
    switch (type) {
    case PTX_PRED: return PTX_CLASS_PRED;
    case PTX_U16:
    case PTX_S16:
    case PTX_F16:
    case PTX_BF16: return PTX_CLASS_16;
    case PTX_U64:
    case PTX_S64:
    case PTX_F64: return PTX_CLASS_64;
    case PTX_B128: return PTX_CLASS_128;
    default: return PTX_CLASS_32;
    }
}

ptx_operand ptx_register_new(ptx_kernel *k, ptx_type type)
{
    ptx_operand o = {.kind = PTX_OPERAND_REGISTER, .type = (uint8_t)type};
    if (ptx_failed(k) || !ptx_reserve(k->module, &k->registers, &k->register_capacity,
                                      k->register_count + 1, sizeof *k->registers))
        return o;
    k->registers[k->register_count] = (struct ptx_register){.type = (uint8_t)type};
    o.index = k->register_count++;
    return o;
}

/* ---- the list ---- */

struct ptx_instruction *ptx_append(ptx_kernel *k, unsigned op, ptx_source source,
                                   const ptx_operand *operands, unsigned count)
{
    if (k->ended)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, "emitted into after its end (%s:%d)", source.file,
                        source.line);
    if (ptx_failed(k) ||
        !ptx_reserve(k->module, &k->code, &k->code_capacity, k->code_count + 1, sizeof *k->code) ||
        !ptx_reserve(k->module, &k->operands, &k->operand_capacity, k->operand_count + count,
                     sizeof *k->operands))
        return NULL;
    struct ptx_instruction *i = &k->code[k->code_count++];
    *i = (struct ptx_instruction){.op = (uint16_t)op,
                                  .guarded = k->guarded,
                                  .guard = k->guard,
                                  .first = k->operand_count,
                                  .count = count,
                                  .line = source.line,
                                  .file = source.file};
    if (count)
        memcpy(&k->operands[k->operand_count], operands, count * sizeof *operands);
    k->operand_count += count;
    return i;
}

void ptx_require_version(ptx_kernel *k, int version, const char *what)
{
    ptx_module *m = k->module;
    if (m->target.max_ptx && version > m->target.max_ptx)
        ptx_kernel_fail(k, PTXGEN_ERROR_TARGET, "%s needs PTX %d.%d, but the cap is PTX %d.%d", what,
                        version / 10, version % 10, m->target.max_ptx / 10, m->target.max_ptx % 10);
    if (version > m->ptx_version)
        m->ptx_version = version;
}

unsigned ptx_term_operands(const struct ptx_term *t, unsigned n)
{
    switch (t->kind) {
    case PTX_TERM_VECTOR: return t->divisor ? n / t->divisor : t->count;
    case PTX_TERM_ADDRESS: return 2;
    case PTX_TERM_TENSOR: return 1u + t->count;
    case PTX_TERM_LITERAL: return 0;
    default: return 1;
    }
}

uint32_t ptx_flags(const struct ptx_instruction *i)
{
    return i->op < PTX_OP_COUNT ? ptx_ops[i->op].flags : 0;
}

/* ---- checks ---- */

static void describe_needs(const struct ptx_op *op, char *out, size_t size)
{
    size_t used = 0;
    for (unsigned i = 0; i < op->need_count && used < size; i++) {
        const struct ptx_need *n = &op->needs[i];
        used += (size_t)snprintf(out + used, size - used, "%ssm_%d%.1s with PTX %d.%d",
                                 i ? " or " : "", n->sm, &n->suffix, n->ptx / 10, n->ptx % 10);
    }
}

static void check_target(ptx_kernel *k, uint32_t index, const struct ptx_op *op, uint64_t modifiers)
{
    const ptx_target *target = &k->module->target;
    char suffix[2] = {target->suffix, 0};
    int version = ptx_needs_met(op->needs, op->need_count, target);
    if (!version) {
        char needs[256];
        describe_needs(op, needs, sizeof needs);
        ptx_fail_at(k, index, PTXGEN_ERROR_TARGET, "it needs %s; the target is sm_%d%s", needs,
                    target->sm, suffix);
        return;
    }
    for (size_t g = 0; modifiers && g < ptx_modifier_group_count; g++) {
        const struct ptx_modifier_group *group = &ptx_modifier_groups[g];
        unsigned value = (modifiers >> group->shift) & ((1u << group->bits) - 1);
        if (!value || value > group->count)
            continue;
        const struct ptx_modifier *m = &group->alternatives[value - 1];
        if (m->sm > target->sm)
            ptx_fail_at(k, index, PTXGEN_ERROR_TARGET, "%s needs sm_%d; the target is sm_%d%s", m->text,
                        m->sm, target->sm, suffix);
        if (m->ptx > version)
            version = m->ptx;
    }
    if (version <= k->module->ptx_version)
        return;
    if (target->max_ptx && version > target->max_ptx)
        ptx_fail_at(k, index, PTXGEN_ERROR_TARGET, "it needs PTX %d.%d, but the cap is PTX %d.%d",
                    version / 10, version % 10, target->max_ptx / 10, target->max_ptx % 10);
    k->module->ptx_version = version;
}

/* Every modifier given must belong to a group that the instruction's text names. */
static void check_modifiers(ptx_kernel *k, uint32_t index, const struct ptx_op *op, uint64_t modifiers)
{
    uint64_t known = 0;
    for (const char *s = op->text; (s = strchr(s, '{')); s++) {
        size_t length = strcspn(s + 1, "!}");
        const struct ptx_modifier_group *group = ptx_find_group(s + 1, length);
        if (!group)
            continue;
        uint64_t mask = ((UINT64_C(1) << group->bits) - 1) << group->shift;
        known |= mask;
        if (((modifiers & mask) >> group->shift) > group->count)
            ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND,
                        "two alternatives of the modifier group '%s' were combined", group->name);
    }
    for (size_t g = 0; (modifiers & ~known) && g < ptx_modifier_group_count; g++) {
        const struct ptx_modifier_group *group = &ptx_modifier_groups[g];
        unsigned value = ((modifiers & ~known) >> group->shift) & ((1u << group->bits) - 1);
        if (value)
            ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "it does not take the modifier %s",
                        value <= group->count ? group->alternatives[value - 1].text : group->name);
    }
    bool evicts = known && strstr(op->text, "cop}") && strstr(op->text, "{l1}");
    if (evicts) {
        const char *slot = strchr(op->text, '{');
        const struct ptx_modifier_group *cop = ptx_find_group(slot + 1, strcspn(slot + 1, "!}"));
        const struct ptx_modifier_group *l1 = ptx_find_group("l1", 2);
        if ((modifiers >> cop->shift & ((1u << cop->bits) - 1)) &&
            (modifiers >> l1->shift & ((1u << l1->bits) - 1)))
            ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND,
                        "a cache operator and an L1 eviction priority exclude each other");
    }
}

static bool n_is_legal(const struct ptx_term *range, unsigned n)
{
    if (n < (unsigned)range->lo || n > (unsigned)range->hi || n % (unsigned)range->step)
        return false;
    return !(range->flags & PTX_TERM_WGMMA_INT_N) || n <= 32 || n % 16 == 0;
}

static void check_constant(ptx_kernel *k, uint32_t index, const struct ptx_term *t, ptx_operand o)
{
    int64_t value = (int64_t)o.bits;
    bool fits = value >= t->lo && value <= t->hi && (value - t->lo) % t->step == 0;
    if ((t->flags & PTX_TERM_POW2) && (value & (value - 1)))
        fits = false;
    if (!fits)
        ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "the constant %lld is outside %d … %d%s",
                    (long long)value, t->lo, t->hi,
                    t->flags & PTX_TERM_POW2 ? ", powers of two" : t->step > 1 ? " in its steps" : "");
}

static void check_offset(ptx_kernel *k, uint32_t index, const struct ptx_op *op,
                         const struct ptx_term *t, const ptx_operand *o)
{
    bool param = t->space == 'p';
    if (o[0].kind != (param ? PTX_OPERAND_PARAM : PTX_OPERAND_REGISTER))
        ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "an address needs a %s as its base",
                    param ? "parameter" : "register");
    int64_t offset = (int64_t)o[1].bits;
    if (op->align && offset % op->align)
        ptx_fail_at(k, index, PTXGEN_ERROR_ALIGNMENT,
                    "the constant offset %lld is not a multiple of the access's %d bytes",
                    (long long)offset, op->align);
}

static void check_register(ptx_kernel *k, uint32_t index, ptx_operand o, ptx_type type)
{
    if (o.index >= k->register_count)
        ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "a register of another kernel was used");
    else if (ptx_class_of(k->registers[o.index].type) != ptx_class_of(type))
        ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "a register of another width was used");
}

static void check_value(ptx_kernel *k, uint32_t index, const struct ptx_term *t, ptx_operand o)
{
    if (o.kind == PTX_OPERAND_REGISTER)
        check_register(k, index, o, t->type);
    else if (o.kind == PTX_OPERAND_NONE)
        ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "an operand that was never assigned is read");
    else if (t->flags & (PTX_TERM_REGISTER | PTX_TERM_WRITTEN))
        ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "a constant stands where PTX takes a register only");
}

static void check_operands(ptx_kernel *k, uint32_t index, const struct ptx_op *op, unsigned n)
{
    const ptx_operand *o = &k->operands[k->code[index].first];
    for (unsigned i = 0; i < op->term_count && !ptx_failed(k); i++) {
        const struct ptx_term *t = &op->terms[i];
        unsigned count = ptx_term_operands(t, n);
        switch (t->kind) {
        case PTX_TERM_VALUE:
        case PTX_TERM_VECTOR:
            for (unsigned j = 0; j < count; j++)
                check_value(k, index, t, o[j]);
            break;
        case PTX_TERM_ADDRESS:
            check_offset(k, index, op, t, o);
            break;
        case PTX_TERM_CONST:
            check_constant(k, index, t, *o);
            break;
        case PTX_TERM_LABEL:
            if (o->kind != PTX_OPERAND_LABEL || o->index >= k->label_count)
                ptx_fail_at(k, index, PTXGEN_ERROR_LABEL, "it needs a label of this kernel");
            break;
        default:
            break;
        }
        o += count;
    }
}

/* Destinations of kind NONE become new registers. */
static void name_destinations(ptx_kernel *k, const struct ptx_op *op, unsigned n, ptx_operand *o)
{
    for (unsigned i = 0; i < op->term_count; i++) {
        const struct ptx_term *t = &op->terms[i];
        unsigned count = ptx_term_operands(t, n);
        for (unsigned j = 0; (t->flags & PTX_TERM_WRITTEN) && j < count; j++)
            if (o[j].kind == PTX_OPERAND_NONE)
                o[j] = ptx_register_new(k, t->type);
        o += count;
    }
}

void ptx_emit(ptx_kernel *k, unsigned number, uint64_t modifiers, unsigned n, ptx_operand *operands,
              unsigned count, ptx_source source)
{
    if (ptx_failed(k))
        return;
    const struct ptx_op *op = &ptx_ops[number];
    if (op->n.hi && !n_is_legal(&op->n, n)) {
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND, "%s at %s:%d: n = %u is not a shape that it has",
                        op->name, source.file, source.line, n);
        return;
    }
    name_destinations(k, op, n, operands);
    struct ptx_instruction *i = ptx_append(k, number, source, operands, count);
    if (!i)
        return;
    i->n = (uint16_t)n;
    i->modifiers = modifiers;
    uint32_t index = k->code_count - 1;
    check_modifiers(k, index, op, modifiers);
    if (!ptx_failed(k))
        check_target(k, index, op, modifiers);
    check_operands(k, index, op, n);
}

void ptx_raw_at(ptx_kernel *k, ptx_source source, const char *text, int min_ptx,
                ptx_operand *operands, unsigned count, unsigned written)
{
    for (unsigned i = 0; i < written && i < count; i++)
        if (operands[i].kind == PTX_OPERAND_NONE)
            operands[i] = ptx_register_new(k, operands[i].type);
    uint32_t note = ptx_note(k, "%s", text);
    struct ptx_instruction *i = ptx_append(k, PTX_PSEUDO_RAW, source, operands, count);
    if (!i)
        return;
    i->n = (uint16_t)written;
    i->note = note;
    for (const char *s = text; (s = strchr(s, '%')); s++)
        if (s[1] >= '0' && s[1] <= '9' && (unsigned)(s[1] - '0') >= count)
            ptx_fail_at(k, k->code_count - 1, PTXGEN_ERROR_OPERAND,
                        "the raw text names %%%c, but %u operands were given", s[1], count);
    if (min_ptx)
        ptx_require_version(k, min_ptx, "a raw instruction");
}

/* ---- what an instruction reads and writes ---- */

static unsigned add(struct ptx_reference *out, unsigned used, ptx_operand o, unsigned flags)
{
    if (o.kind != PTX_OPERAND_REGISTER || used == PTX_MAX_REFERENCES)
        return used;
    out[used] = (struct ptx_reference){o.index, (flags & PTX_TERM_WRITTEN) != 0,
                                       (flags & PTX_TERM_READ) != 0,
                                       (flags & PTX_TERM_UNDEF_OK) != 0};
    return used + 1;
}

unsigned ptx_references(const ptx_kernel *k, const struct ptx_instruction *i, struct ptx_reference *out)
{
    const ptx_operand *o = &k->operands[i->first];
    unsigned used = 0;
    if (i->guarded)
        out[used++] = (struct ptx_reference){i->guard, false, true, false};
    if (i->op >= PTX_OP_COUNT) {
        for (unsigned j = 0; j < i->count; j++) {
            bool written = i->op != PTX_PSEUDO_RAW || j < i->n;
            used = add(out, used, o[j], written ? PTX_TERM_WRITTEN : PTX_TERM_READ);
        }
        return used;
    }
    const struct ptx_op *op = &ptx_ops[i->op];
    for (unsigned t = 0; t < op->term_count; t++) {
        unsigned count = ptx_term_operands(&op->terms[t], i->n);
        bool address = op->terms[t].kind == PTX_TERM_ADDRESS || op->terms[t].kind == PTX_TERM_TENSOR;
        for (unsigned j = 0; j < count; j++)
            used = add(out, used, o[j], address ? PTX_TERM_READ : op->terms[t].flags);
        o += count;
    }
    return used;
}
