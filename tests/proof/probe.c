/* SPDX-License-Identifier: Apache-2.0 */
/* The list of probes, and the validator's verdict on one. */
#include "probe.h"

#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

static void add(struct probe_list *list, struct probe p)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 4096;
        list->probes = realloc(list->probes, list->capacity * sizeof *list->probes);
        if (!list->probes)
            abort();
    }
    list->probes[list->count++] = p;
}

enum { MAX_GROUPS = 8, MAX_PRODUCT = 64 };

/* Every combination of modifiers where they are few; else every pair. */
static void add_modifiers(struct probe_list *list, struct probe p)
{
    const struct ptx_modifier_group *groups[MAX_GROUPS];
    unsigned value[MAX_GROUPS] = {0}, count = 0, product = 1;
    const struct ptx_string text = ptx_op_text(&ptx_ops[p.op]);
    for (const char *s = text.s; (s = strchr(s, '{')); s++) {
        const struct ptx_modifier_group *g = ptx_find_group(s + 1, strcspn(s + 1, "!}"));
        if (g && count < MAX_GROUPS) {
            groups[count++] = g;
            product *= g->count + 1u;
        }
    }
    for (;;) {
        unsigned i = 0;
        while (i < count && ++value[i] > groups[i]->count)
            value[i++] = 0;
        if (i == count)
            return;
        unsigned chosen = 0;
        p.modifiers = 0;
        for (i = 0; i < count; i++) {
            chosen += value[i] != 0;
            p.modifiers |= (uint64_t)value[i] << groups[i]->shift;
        }
        if (chosen <= 2 || product <= MAX_PRODUCT)
            add(list, p);
    }
}

static void add_constants(struct probe_list *list, struct probe p, const struct ptx_term *t)
{
    const int values[] = {t->lo - 1, t->lo, t->lo + 1, t->lo + t->step,    t->hi - 1,
                          t->hi + 1, t->hi, 2 * t->lo, (t->lo + t->hi) / 2};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        size_t before = 0;
        while (before < i && values[before] != values[i])
            before++;
        p.value = values[i];
        if (before == i)
            add(list, p);
    }
}

/* Typical and extreme constants of each type that has a constructor: ptx_imm_<type>. */
static const struct immediates {
    ptx_type type;
    unsigned count;
    int64_t values[4];
} immediates[] = {
    {PTX_U16, 2, {1, UINT16_MAX}},
    {PTX_S16, 3, {1, -1, INT16_MIN}},
    {PTX_U32, 3, {1, 64, UINT32_MAX}},
    {PTX_S32, 3, {1, -1, INT32_MIN}},
    {PTX_U64, 3, {1, 64, -1}},
    {PTX_S64, 3, {1, -1, INT64_MIN}},
    {PTX_F32, 2, {0x3F800000, 0x7FC00000}},
    {PTX_F64, 2, {0x3FF0000000000000, 0x7FF8000000000000}},
};

static const struct immediates *immediates_of(const struct ptx_term *t)
{
    if (!(t->kind == PTX_TERM_VALUE || t->kind == PTX_TERM_VECTOR) || (t->flags & PTX_TERM_WRITTEN))
        return NULL;
    for (size_t i = 0; i < sizeof immediates / sizeof *immediates; i++)
        if (immediates[i].type == (ptx_type)t->type)
            return &immediates[i];
    return NULL;
}

static void add_terms(struct probe_list *list, struct probe p)
{
    const struct ptx_op *op = &ptx_ops[p.op];
    unsigned allowed = 0;
    for (p.term = 0; p.term < op->term_count; p.term++) {
        const struct ptx_term *t = ptx_op_term(op, p.term);
        const struct immediates *list_of = immediates_of(t);
        if (t->kind == PTX_TERM_CONST)
            add_constants(list, p, t);
        for (unsigned i = 0; list_of && i < list_of->count; i++) {
            p.value = list_of->values[i];
            add(list, p);
        }
        allowed += list_of && !(t->flags & PTX_TERM_REGISTER);
    }
    p.term = PROBE_ALL_TERMS;
    if (allowed > 1)
        add(list, p);
}

static void add_shapes(struct probe_list *list, struct probe p)
{
    const struct ptx_term *range = ptx_op_n(&ptx_ops[p.op]);
    static const uint16_t odd[] = {4, 12, 20, 252};
    for (int n = range->step; n <= range->hi + range->step; n += range->step) {
        p.n = (uint16_t)n;
        if (n != range->lo)
            add(list, p);
    }
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        p.n = odd[i];
        add(list, p);
    }
}

void probe_list_build(struct probe_list *list)
{
    for (size_t op = 0; op < ptx_op_count; op++) {
        struct probe p = {.op = (uint16_t)op, .term = PROBE_NO_TERM};
        if (ptx_op_n(&ptx_ops[op])->hi)
            p.n = (uint16_t)ptx_op_n(&ptx_ops[op])->lo;
        add(list, p);
        add_modifiers(list, p);
        add_terms(list, p);
        if (ptx_op_n(&ptx_ops[op])->hi)
            add_shapes(list, p);
    }
}

/* ---- operands ---- */

static ptx_operand immediate(ptx_type type, int64_t value)
{
    uint64_t bits = (uint64_t)value;
    if (type == PTX_U16 || type == PTX_S16)
        bits &= UINT16_MAX;
    else if (ptx_class_of(type) == PTX_CLASS_32)
        bits &= UINT32_MAX;
    return (ptx_operand){.kind = PTX_OPERAND_IMMEDIATE, .type = (uint8_t)type, .bits = bits};
}

static ptx_operand value_operand(const struct probe *p, int term, struct register_source *from)
{
    const struct ptx_term *t = ptx_op_term(&ptx_ops[p->op], term);
    const struct immediates *list = immediates_of(t);
    if (list && p->term == term)
        return immediate(t->type, p->value);
    if (list && p->term == PROBE_ALL_TERMS && !(t->flags & PTX_TERM_REGISTER))
        return immediate(t->type, list->values[0]);
    return from->take(from, t);
}

static ptx_operand constant_operand(int64_t value)
{
    return (ptx_operand){.kind = PTX_OPERAND_IMMEDIATE, .type = PTX_S32, .bits = (uint64_t)value};
}

unsigned probe_operands(const struct probe *p, struct register_source *from, ptx_operand *o)
{
    static const struct ptx_term wide = {.type = PTX_U64, .flags = PTX_TERM_READ},
                                 narrow = {.type = PTX_U32, .flags = PTX_TERM_READ},
                                 coordinate = {.type = PTX_S32, .flags = PTX_TERM_READ};
    const struct ptx_op *op = &ptx_ops[p->op];
    unsigned used = 0;
    for (int i = 0; i < op->term_count; i++) {
        const struct ptx_term *t = ptx_op_term(op, i);
        unsigned count = ptx_term_operands(t, p->n);
        switch (t->kind) {
        case PTX_TERM_VALUE:
        case PTX_TERM_VECTOR:
            for (unsigned j = 0; j < count; j++)
                o[used++] = value_operand(p, i, from);
            break;
        case PTX_TERM_ADDRESS:
            o[used++] =
                t->space == 'p' ? from->param : from->take(from, t->space == 's' ? &narrow : &wide);
            o[used++] = constant_operand(0);
            break;
        case PTX_TERM_TENSOR:
            o[used++] = from->take(from, &wide);
            for (unsigned j = 1; j < count; j++)
                o[used++] = from->take(from, &coordinate);
            break;
        case PTX_TERM_CONST: o[used++] = constant_operand(p->term == i ? p->value : t->lo); break;
        case PTX_TERM_LABEL: o[used++] = from->label; break;
        default: break;
        }
    }
    return used;
}

/* ---- the validator ---- */

static ptx_operand take_virtual(struct register_source *from, const struct ptx_term *t)
{
    if ((t->flags & PTX_TERM_WRITTEN) && !(t->flags & PTX_TERM_READ))
        return (ptx_operand){.kind = PTX_OPERAND_NONE, .type = t->type};
    return ptx_register_new(from->kernel, t->type);
}

bool probe_is_valid(const struct probe *p, const ptx_target *target, int *version,
                    ptxgen_error *why)
{
    ptx_module *m = ptx_module_create(target, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "k");
    struct register_source from = {.take = take_virtual, .kernel = k};
    const struct ptx_op *op = &ptx_ops[p->op];
    for (unsigned i = 0; i < op->term_count; i++) {
        if (ptx_op_term(op, i)->kind == PTX_TERM_LABEL)
            from.label = ptx_label_new(k, NULL).o;
        if (ptx_op_term(op, i)->kind == PTX_TERM_ADDRESS && ptx_op_term(op, i)->space == 'p')
            from.param = ptx_param_declare(k, "param", 64, 64).o;
    }
    ptx_operand operands[PROBE_MAX_OPERANDS];
    unsigned count = probe_operands(p, &from, operands);
    ptx_emit(k, p->op, p->modifiers, p->n, operands, count, PTX_HERE);
    bool valid = ptx_module_status(m, why) == PTXGEN_OK;
    *version = ptx_module_ptx_version(m);
    ptx_module_destroy(m);
    return valid;
}
