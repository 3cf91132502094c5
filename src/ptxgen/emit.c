/* SPDX-License-Identifier: Apache-2.0 */
/* Appending one instruction: the checks that need no control flow. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

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

ptx_operand ptx_register_new(ptx_kernel *k, ptx_type type)
{
    ptx_operand o = {.kind = PTX_OPERAND_REGISTER, .type = (uint8_t)type, .reserved = k->owner};
    if (ptx_failed(k) || !ptx_reserve(k->module, &k->registers, &k->register_capacity,
                                      (size_t)k->register_count + 1, sizeof *k->registers))
        return o;
    k->registers[k->register_count] = (struct ptx_register){.type = (uint8_t)type};
    o.index = k->register_count++;
    return o;
}

/* ---- the list ---- */

static bool is_of(const ptx_kernel *k, const ptx_operand *o)
{
    return o->kind <= PTX_OPERAND_IMMEDIATE
               ? o->kind != PTX_OPERAND_REGISTER || o->reserved == k->owner
               : o->kind <= PTX_OPERAND_PARAM && o->reserved == k->owner;
}

static void refuse_stranger(ptx_kernel *k, uint32_t index, const ptx_operand *o)
{
    static const char *const kinds[] = {"", "register", "", "label", "parameter"};
    if (!is_of(k, o))
        ptx_fail_at(k, index,
                    o->kind == PTX_OPERAND_LABEL ? PTXGEN_ERROR_LABEL : PTXGEN_ERROR_OPERAND,
                    "a %s of another kernel was used",
                    o->kind <= PTX_OPERAND_PARAM ? kinds[o->kind] : "value");
}

/* A new instruction whose operands are yet to be filled in; NULL after an error. */
static struct ptx_instruction *append(ptx_kernel *k, unsigned op, ptx_source source, unsigned count)
{
    if (k->ended)
        ptx_kernel_fail(k, PTXGEN_ERROR_STRUCTURE, "emitted into after its end (%s:%d)",
                        ptx_file_name(source.file), source.line);
    if (ptx_failed(k) ||
        !ptx_reserve(k->module, &k->code, &k->code_capacity, (size_t)k->code_count + 1,
                     sizeof *k->code) ||
        !ptx_reserve(k->module, &k->operands, &k->operand_capacity,
                     (size_t)k->operand_count + count + 1, /* never an empty list to point into */
                     sizeof *k->operands))
        return NULL;
    struct ptx_instruction *i = &k->code[k->code_count++];
    *i = (struct ptx_instruction){.op = (uint16_t)op,
                                  .flags = op < PTX_OP_COUNT ? ptx_ops[op].flags : 0,
                                  .guarded = k->guarded,
                                  .guard = k->guard,
                                  .first = k->operand_count,
                                  .count = count,
                                  .line = source.line,
                                  .file = source.file};
    k->operand_count += count;
    return i;
}

struct ptx_instruction *ptx_append(ptx_kernel *k, unsigned op, ptx_source source,
                                   const ptx_operand *operands, unsigned count)
{
    struct ptx_instruction *i = append(k, op, source, count);
    if (!i)
        return NULL;
    if (count)
        memcpy(&k->operands[i->first], operands, count * sizeof *operands);
    for (unsigned j = 0; j < count; j++)
        refuse_stranger(k, k->code_count - 1, &operands[j]);
    return ptx_failed(k) ? NULL : i;
}

void ptx_require_version(ptx_kernel *k, int version, const char *what)
{
    ptx_module *m = k->module;
    if (m->target.max_ptx && version > m->target.max_ptx)
        ptx_kernel_fail(k, PTXGEN_ERROR_TARGET, "%s needs PTX %d.%d, but the cap is PTX %d.%d",
                        what, version / 10, version % 10, m->target.max_ptx / 10,
                        m->target.max_ptx % 10);
    if (version > m->ptx_version)
        m->ptx_version = version;
}

/* ---- checks ---- */

static void check_target(ptx_kernel *k, uint32_t index, const struct ptx_op *op, uint64_t modifiers)
{
    const ptx_target *target = &k->module->target;
    char suffix[2] = {target->suffix, 0};
    int version = ptx_needs_met(ptx_op_needs(op), op->need_count, target);
    if (!version) {
        char needs[PTX_NEEDS_SIZE];
        ptx_needs_describe(op, needs);
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
            ptx_fail_at(k, index, PTXGEN_ERROR_TARGET, "%s needs sm_%d; the target is sm_%d%s",
                        m->text, m->sm, target->sm, suffix);
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

/* Whether the first of the needs is met by what the module asks for already. */
static inline bool asks_nothing_new(const ptx_module *m, const struct ptx_op *op)
{
    const struct ptx_need *need = ptx_op_needs(op);
    return !need->suffix && need->sm <= m->target.sm && need->ptx <= m->ptx_version;
}

/* Every modifier given must belong to a group that the instruction's text names. */
static void check_modifiers(ptx_kernel *k, uint32_t index, const struct ptx_op *op,
                            uint64_t modifiers)
{
    const struct ptx_string text = ptx_op_text(op);
    uint64_t known = 0;
    for (const char *s = text.s; (s = strchr(s, '{')); s++) {
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
    bool evicts = known && strstr(text.s, "cop}") && strstr(text.s, "{l1}");
    if (evicts) {
        const char *slot = strchr(text.s, '{');
        const struct ptx_modifier_group *cop = ptx_find_group(slot + 1, strcspn(slot + 1, "!}"));
        const struct ptx_modifier_group *l1 = ptx_find_group("l1", 2);
        if ((modifiers >> cop->shift & ((1u << cop->bits) - 1)) &&
            (modifiers >> l1->shift & ((1u << l1->bits) - 1)))
            ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND,
                        "a cache operator and an L1 eviction priority exclude each other");
    }
}

static void check_constant(ptx_kernel *k, uint32_t index, const struct ptx_term *t, ptx_operand o)
{
    int64_t value = (int64_t)o.bits;
    if (!ptx_constant_fits(t, value))
        ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "the constant %lld is outside %d … %d%s",
                    (long long)value, t->lo, t->hi,
                    t->flags & PTX_TERM_POW2 ? ", powers of two"
                    : t->step > 1            ? " in its steps"
                                             : "");
}

static void check_offset(ptx_kernel *k, uint32_t index, const struct ptx_op *op,
                         const struct ptx_term *t, const ptx_operand *o)
{
    bool param = t->space == 'p';
    if (o[0].kind != (param ? PTX_OPERAND_PARAM : PTX_OPERAND_REGISTER) ||
        o[0].index >= (param ? k->param_count : k->register_count))
        ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "an address needs a %s as its base",
                    param ? "parameter" : "register");
    int64_t offset = (int64_t)o[1].bits, bytes = op->align ? op->align : 1;
    if (param && !ptx_failed(k) &&
        (offset < 0 || offset + bytes > (int64_t)k->params[o[0].index].bytes))
        ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND,
                    "%lld bytes at offset %lld of the parameter '%s' are not all within its %zu",
                    (long long)bytes, (long long)offset,
                    ptx_note_text(k, k->params[o[0].index].note), k->params[o[0].index].bytes);
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

static void check_immediate(ptx_kernel *k, uint32_t index, const struct ptx_term *t,
                            const ptx_operand *o)
{
    if (t->flags & (PTX_TERM_REGISTER | PTX_TERM_WRITTEN))
        ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND,
                    "a constant stands where PTX takes a register only");
    else if (t->hi)
        check_constant(k, index, t, *o);
    else if ((t->flags & PTX_TERM_UPTO) && o->bits > o[-1].bits)
        ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "the constant %llu exceeds the %llu before it",
                    (unsigned long long)o->bits, (unsigned long long)o[-1].bits);
}

static void check_value(ptx_kernel *k, uint32_t index, const struct ptx_term *t,
                        const ptx_operand *o)
{
    if (o->kind == PTX_OPERAND_REGISTER)
        check_register(k, index, *o, t->type);
    else if (o->kind == PTX_OPERAND_NONE)
        ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "an operand that was never assigned is read");
    else if (o->kind == PTX_OPERAND_IMMEDIATE)
        check_immediate(k, index, t, o);
    else
        ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "a %s stands where PTX takes a value",
                    o->kind == PTX_OPERAND_LABEL ? "label" : "parameter");
}

static void check_tensor(ptx_kernel *k, uint32_t index, const ptx_operand *o, unsigned count)
{
    for (unsigned j = 0; j < count; j++)
        if (o[j].kind == PTX_OPERAND_REGISTER ? o[j].index >= k->register_count
                                              : !j || o[j].kind != PTX_OPERAND_IMMEDIATE)
            ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "a tensor's %s is not a register%s",
                        j ? "coordinate" : "map", j ? " or a constant" : "");
}

static void check_label(ptx_kernel *k, uint32_t index, const ptx_operand *o)
{
    if (o->kind != PTX_OPERAND_LABEL || o->index >= k->label_count)
        ptx_fail_at(k, index, PTXGEN_ERROR_LABEL, "it needs a label of this kernel");
}

static void check_term(ptx_kernel *k, uint32_t index, const struct ptx_op *op,
                       const struct ptx_term *t, const ptx_operand *o, unsigned count)
{
    for (unsigned j = 0; j < count; j++)
        refuse_stranger(k, index, &o[j]);
    switch (t->kind) {
    case PTX_TERM_VALUE:
    case PTX_TERM_VECTOR:
        for (unsigned j = 0; j < count; j++)
            check_value(k, index, t, &o[j]);
        break;
    case PTX_TERM_ADDRESS: check_offset(k, index, op, t, o); break;
    case PTX_TERM_TENSOR: check_tensor(k, index, o, count); break;
    case PTX_TERM_CONST: check_constant(k, index, t, *o); break;
    case PTX_TERM_LABEL: check_label(k, index, o); break;
    default: break;
    }
}

/* The usual value, about which there is nothing to say. */
static inline bool is_plain(const ptx_kernel *k, const struct ptx_term *t, const ptx_operand *o)
{
    if (o->kind == PTX_OPERAND_REGISTER)
        return o->reserved == k->owner && o->index < k->register_count &&
               ptx_class_of(k->registers[o->index].type) == ptx_class_of(t->type);
    return o->kind == PTX_OPERAND_IMMEDIATE && !t->hi &&
           !(t->flags & (PTX_TERM_REGISTER | PTX_TERM_WRITTEN | PTX_TERM_UPTO));
}

/* Copies a term's operands to where they stay; destinations of kind NONE become new registers. */
static inline void take_term(ptx_kernel *k, uint32_t index, const struct ptx_op *op,
                             const struct ptx_term *t, ptx_operand *o, ptx_operand *to,
                             unsigned count)
{
    bool plain = t->kind == PTX_TERM_VALUE || t->kind == PTX_TERM_VECTOR;
    for (unsigned j = 0; j < count; j++) {
        if (o[j].kind == PTX_OPERAND_NONE && (t->flags & PTX_TERM_WRITTEN))
            o[j] = ptx_register_new(k, t->type);
        else
            plain = plain && is_plain(k, t, &o[j]);
        to[j] = o[j];
    }
    if (!plain)
        check_term(k, index, op, t, to, count);
}

static void take_operands(ptx_kernel *k, uint32_t index, const struct ptx_op *op, unsigned n,
                          ptx_operand *o)
{
    ptx_operand *to = &k->operands[k->code[index].first];
    for (unsigned i = 0; i < op->term_count; i++) {
        const struct ptx_term *t = ptx_op_term(op, i);
        if (t->kind == PTX_TERM_VALUE) {
            take_term(k, index, op, t, o++, to++, 1);
            continue;
        }
        unsigned count = ptx_term_operands(t, n);
        take_term(k, index, op, t, o, to, count);
        to += count;
        o += count;
    }
}

static unsigned operands_of(const struct ptx_op *op, unsigned n)
{
    if (op->operand_count != PTX_OPERANDS_VARY)
        return op->operand_count;
    unsigned count = 0;
    for (unsigned i = 0; i < op->term_count; i++)
        count += ptx_term_operands(ptx_op_term(op, i), n);
    return count;
}

/* What the typed emitters see to by themselves, and a direct call may break. */
static bool is_callable(ptx_kernel *k, unsigned number, unsigned n, unsigned count,
                        ptx_source source)
{
    if (number >= ptx_op_count) {
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND, "%s:%d: there is no instruction number %u",
                        ptx_file_name(source.file), source.line, number);
        return false;
    }
    const struct ptx_op *op = &ptx_ops[number];
    if (ptx_op_n(op)->hi && !ptx_n_is_legal(ptx_op_n(op), n))
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND, "%s at %s:%d: n = %u is not a shape that it has",
                        ptx_op_name(op).s, ptx_file_name(source.file), source.line, n);
    else if (count != operands_of(op, n))
        ptx_kernel_fail(k, PTXGEN_ERROR_OPERAND, "%s at %s:%d takes %u operands, not %u",
                        ptx_op_name(op).s,
                        ptx_file_name(source.file), source.line, operands_of(op, n), count);
    return !ptx_failed(k);
}

void ptx_emit(ptx_kernel *k, unsigned number, uint64_t modifiers, unsigned n, ptx_operand *operands,
              unsigned count, ptx_source source)
{
    if (ptx_failed(k) || !is_callable(k, number, n, count, source))
        return;
    struct ptx_instruction *i = append(k, number, source, count);
    if (!i)
        return;
    const struct ptx_op *op = &ptx_ops[number];
    uint32_t index = k->code_count - 1;
    i->n = (uint16_t)n;
    i->modifiers = modifiers;
    take_operands(k, index, op, n, operands);
    struct ptx_known *known = &k->module->known[number % PTX_KNOWN];
    if (modifiers ? known->op == number && known->modifiers == modifiers
                  : asks_nothing_new(k->module, op))
        return;
    if (!ptx_failed(k))
        check_modifiers(k, index, op, modifiers);
    if (!ptx_failed(k))
        check_target(k, index, op, modifiers);
    if (!ptx_failed(k))
        *known = (struct ptx_known){modifiers, number};
}

/* ---- raw text ---- */

long ptx_raw_slot(const char **template)
{
    const char *s = *template;
    long slot = 0;
    if (s[0] != '%' || s[1] < '0' || s[1] > '9')
        return -1;
    for (s++; *s >= '0' && *s <= '9'; s++)
        slot = slot < 1000 ? slot * 10 + (*s - '0') : slot;
    *template = s;
    return slot;
}

/* The builder gives %p0, %rs0, %r0, %rd0, %rq0 … out itself. */
static bool names_a_register(const char *s)
{
    static const char *const prefixes[] = {"%p", "%rs", "%rd", "%rq", "%r"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t length = strlen(prefixes[i]);
        if (!strncmp(s, prefixes[i], length) && s[length] >= '0' && s[length] <= '9')
            return true;
    }
    return false;
}

static void check_raw_text(ptx_kernel *k, uint32_t index, const char *text, unsigned count)
{
    for (const char *s = text; *s;) {
        long slot = ptx_raw_slot(&s);
        if (slot >= (long)count)
            ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND,
                        "the raw text names %%%ld, but %u operands were given", slot, count);
        if (names_a_register(s))
            ptx_fail_at(
                k, index, PTXGEN_ERROR_OPERAND,
                "the raw text names a register itself at '%.8s'; it must take it as an operand", s);
        s += slot < 0;
    }
}

static void check_raw_operands(ptx_kernel *k, uint32_t index, const ptx_operand *o, unsigned count,
                               unsigned written)
{
    for (unsigned j = 0; j < count; j++) {
        if (o[j].kind == PTX_OPERAND_LABEL)
            ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND,
                        "a raw instruction cannot branch: %%%u is a label", j);
        else if (o[j].kind == PTX_OPERAND_NONE)
            ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "the operand %%%u was never assigned", j);
        else if (j < written && o[j].kind != PTX_OPERAND_REGISTER)
            ptx_fail_at(k, index, PTXGEN_ERROR_OPERAND, "the result %%%u is not a register", j);
    }
}

void ptx_raw_at(ptx_kernel *k, ptx_source source, const char *text, int min_ptx,
                ptx_operand *operands, unsigned count, unsigned written)
{
    enum { MOST_OPERANDS = 256 };
    if (ptx_failed(k))
        return;
    if (!text || written > count || count > MOST_OPERANDS || (count && !operands)) {
        ptx_kernel_fail(
            k, PTXGEN_ERROR_OPERAND,
            "raw instruction at %s:%d: it needs a text, at most %d operands, and no more "
            "results than operands",
            ptx_file_name(source.file), source.line, MOST_OPERANDS);
        return;
    }
    for (unsigned i = 0; i < written; i++)
        if (operands[i].kind == PTX_OPERAND_NONE && operands[i].type < PTX_TYPE_COUNT)
            operands[i] = ptx_register_new(k, operands[i].type);
    uint32_t note = ptx_note_string(k, text);
    struct ptx_instruction *i = ptx_append(k, PTX_PSEUDO_RAW, source, operands, count);
    if (!i)
        return;
    i->n = (uint16_t)written;
    i->note = note;
    uint32_t index = k->code_count - 1;
    check_raw_text(k, index, text, count);
    check_raw_operands(k, index, operands, count, written);
    if (min_ptx)
        ptx_require_version(k, min_ptx, "a raw instruction");
}
