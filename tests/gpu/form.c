/* SPDX-License-Identifier: Apache-2.0 */
#include "form.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- groups ---- */

/* The first pattern that an instruction's name matches decides; with a reason it is left out here,
 * and has a protocol. */
static const struct rule {
    const char *pattern, *group, *reason;
} rules[] = {
    {"wgmma_*", NULL,
     "an asynchronous warpgroup operation on descriptors, not a function of registers"},
    {"setmaxnreg_*", NULL, "no result"},
    {"griddepcontrol_*", NULL, "no result"},
    {"cp_async_bulk_*", NULL,
     "a bulk or tensor copy with a protocol of its own, not a function of registers"},
    {"cp_reduce_async_bulk_*", NULL, "a bulk or tensor copy with a protocol of its own"},
    {"cp_async_mbarrier_*", NULL, "a step of the mbarrier protocol"},
    {"cp_async_c[ag]*", "cp.async", NULL},
    {"cp_async_*", NULL, "no result"},
    {"mbarrier_*", NULL, "a step of the mbarrier protocol, whose state is opaque"},
    {"st_async_*", NULL, "a step of the mbarrier protocol"},
    {"red_async_*", NULL, "a step of the mbarrier protocol"},
    {"bra*", NULL, "control flow"},
    {"ret", NULL, "control flow"},
    {"exit", NULL, "control flow"},
    {"trap", NULL, "control flow"},
    {"brkpt", NULL, "control flow"},
    {"nanosleep_*", NULL, "no result"},
    {"fence*", NULL, "no result"},
    {"membar_*", NULL, "no result"},
    {"bar_red_*", "barrier", NULL},
    {"barrier_cta_red_*", "barrier", NULL},
    {"bar_*", NULL, "no result"},
    {"barrier_*", NULL, "no result"},
    {"prefetch*", NULL, "no result"},
    {"applypriority_*", NULL, "no result"},
    {"discard_*", NULL, "leaves its memory undefined"},
    {"cvta_*", NULL, "addresses are the device's"},
    {"isspacep_*", NULL, "addresses are the device's"},
    {"mapa_*", NULL, "addresses are the device's"},
    {"getctarank_*", NULL, "addresses are the device's"},
    {"sreg_clock*", NULL, "time"},
    {"sreg_globaltimer*", NULL, "time"},
    {"sreg_*warpid", NULL, "placement is the device's"},
    {"sreg_*smid", NULL, "placement is the device's"},
    {"sreg_gridid", NULL, "numbering is the driver's"},
    {"sreg_total_smem_size", NULL, "includes what the driver reserves"},
    {"sreg_aggr_smem_size", NULL, "includes what the driver reserves"},
    {"sreg_*", "special registers", NULL},
    {"mma_spo_*", "mma.sp", NULL},
    {"mma_sp_*", "mma.sp", NULL},
    {"mma_*", "mma", NULL},
    {"ldmatrix_*", "matrix moves", NULL},
    {"stmatrix_*", "matrix moves", NULL},
    {"movmatrix_*", "matrix moves", NULL},
    {"shfl_*", "warp", NULL},
    {"vote_*", "warp", NULL},
    {"match_*", "warp", NULL},
    {"redux_*", "warp", NULL},
    {"activemask_*", "warp", NULL},
    {"elect_*", "warp", NULL},
    {"atom_*", "atomics", NULL},
    {"red_*", "atomics", NULL},
    {"ld_*", "loads", NULL},
    {"st_*", "stores", NULL},
    {"mov_*", "moves", NULL},
    {"pack_*", "moves", NULL},
    {"unpack_*", "moves", NULL},
    {"setp_*", "compare, select", NULL},
    {"selp_*", "compare, select", NULL},
    {"cvt_*", "conversion", NULL},
    {"*approx*", "approximations", NULL},
    {"div_full_f32", "approximations", NULL},
    {"and_*", "logic, shifts", NULL},
    {"or_*", "logic, shifts", NULL},
    {"xor_*", "logic, shifts", NULL},
    {"not_*", "logic, shifts", NULL},
    {"cnot_*", "logic, shifts", NULL},
    {"lop3_*", "logic, shifts", NULL},
    {"sh[frl]_*", "logic, shifts", NULL},
    {"prmt_*", "logic, shifts", NULL},
    {"*_f32*", "f32 arithmetic", NULL},
    {"*_f64", "f64 arithmetic", NULL},
    {"*f16*", "f16, bf16 arithmetic", NULL},
    {"*", "integer arithmetic", NULL},
};
enum { RULE_COUNT = sizeof rules / sizeof *rules };

static const struct rule *rule_of(const struct ptx_op *op)
{
    size_t i = 0;
    while (fnmatch(rules[i].pattern, ptx_op_name(op).s, 0) != 0)
        i++;
    return &rules[i];
}

const char *form_group(const struct ptx_op *op, const char **reason)
{
    if (reason)
        *reason = rule_of(op)->reason;
    return rule_of(op)->group;
}

/* Differ from run to run, or leave nothing to be compared. */
static const char *const incomparable[] = {
    "trap",         "brkpt",      "discard_*",   "sreg_clock*",          "sreg_globaltimer*",
    "sreg_*warpid", "sreg_*smid", "sreg_gridid", "sreg_total_smem_size", "sreg_aggr_smem_size"};

bool form_needs_protocol(const struct ptx_op *op)
{
    bool needs = !form_group(op, NULL);
    for (size_t i = 0; i < sizeof incomparable / sizeof *incomparable; i++)
        needs = needs && fnmatch(incomparable[i], ptx_op_name(op).s, 0) != 0;
    return needs;
}

const char *form_group_name(size_t index)
{
    for (size_t i = 0; i < RULE_COUNT; i++) {
        bool first = rules[i].group != NULL;
        for (size_t j = 0; j < i && first; j++)
            first = !rules[j].group || strcmp(rules[i].group, rules[j].group) != 0;
        if (first && index-- == 0)
            return rules[i].group;
    }
    return NULL;
}

bool form_starts(const struct ptx_op *op, const char *prefix)
{
    return strncmp(ptx_op_name(op).s, prefix, strlen(prefix)) == 0;
}

/* ---- the list ---- */

static void add(struct form_list *list, struct form f)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 1024;
        list->forms = realloc(list->forms, list->capacity * sizeof *list->forms);
        if (!list->forms)
            abort();
    }
    list->forms[list->count++] = f;
}

static int constant_values(const struct ptx_op *op, const struct ptx_term *t, int *values)
{
    static const int tables[] = {0x00, 0xff, 0x80, 0xfe, 0x96, 0xe8, 0xca, 0xf8, 0x6a, 0x1b};
    int count = 0;
    if (form_starts(op, "lop3_")) {
        memcpy(values, tables, sizeof tables);
        return sizeof tables / sizeof *tables;
    }
    if (t->flags & PTX_TERM_POW2) {
        for (int v = t->lo; v <= t->hi; v *= 2)
            values[count++] = v;
        return count;
    }
    if (t->hi - t->lo < 4 * t->step) {
        for (int v = t->lo; v <= t->hi; v += t->step)
            values[count++] = v;
        return count;
    }
    values[0] = t->lo;
    values[1] = t->hi;
    return 2;
}

static void add_constants(struct form_list *list, struct form f, unsigned term, unsigned constant)
{
    const struct ptx_op *op = &ptx_ops[f.op];
    while (term < op->term_count && ptx_op_term(op, term)->kind != PTX_TERM_CONST)
        term++;
    if (term == op->term_count) {
        add(list, f);
        return;
    }
    int values[16], count = constant_values(op, ptx_op_term(op, term), values);
    for (int i = 0; i < count; i++) {
        f.constants[constant] = values[i];
        add_constants(list, f, term + 1, constant + 1);
    }
}

static bool modifier_is_legal(const struct ptx_modifier *m, const ptx_target *target)
{
    return m->sm <= target->sm && (!target->max_ptx || m->ptx <= target->max_ptx);
}

static void add_modifiers(struct form_list *list, struct form f, const ptx_target *target,
                          const char *text, bool combined);

/* Each alternative but the default of the group that `text` begins with. */
static void add_alternatives(struct form_list *list, struct form f, const ptx_target *target,
                             const char *text, bool combined)
{
    size_t length = strcspn(text, "!}");
    const struct ptx_modifier_group *g = ptx_find_group(text, length);
    const uint64_t before = f.modifiers;
    bool given = text[length] == '!'; /* its first alternative is the default */
    for (unsigned v = given ? 2 : 1; g && v <= g->count; v++)
        if (modifier_is_legal(&g->alternatives[v - 1], target)) {
            f.modifiers = before | (uint64_t)v << g->shift;
            if (combined)
                add_modifiers(list, f, target, text, true);
            else
                add_constants(list, f, 0, 0);
        }
}

/* What the modifiers are so far, then each alternative of each group that follows in `text`: by
 * itself, or with all others. */
static void add_modifiers(struct form_list *list, struct form f, const ptx_target *target,
                          const char *text, bool combined)
{
    add_constants(list, f, 0, 0);
    for (const char *s = text; (s = strchr(s, '{')); s++)
        add_alternatives(list, f, target, s + 1, combined);
}

void form_list_add(struct form_list *list, size_t index, const ptx_target *target)
{
    const struct ptx_op *op = &ptx_ops[index];
    struct form f = {.op = (uint16_t)index, .group = form_group(op, NULL)};
    int version = ptx_needs_met(ptx_op_needs(op), op->need_count, target);
    if (version && (!target->max_ptx || version <= target->max_ptx))
        add_modifiers(list, f, target, ptx_op_text(op).s, form_starts(op, "cvt_"));
}

void form_list_build(struct form_list *list, const ptx_target *target, const char *only,
                     const char *skip)
{
    for (size_t i = 0; i < ptx_op_count; i++) {
        const char *name = ptx_op_name(&ptx_ops[i]).s;
        if (form_group(&ptx_ops[i], NULL) && (!only || fnmatch(only, name, 0) == 0) &&
            !(skip && fnmatch(skip, name, 0) == 0))
            form_list_add(list, i, target);
    }
}

void form_describe(const struct form *f, char *text, size_t size)
{
    const struct ptx_op *op = &ptx_ops[f->op];
    struct ptx_instruction i = {.op = f->op, .modifiers = f->modifiers};
    char mnemonic[PTX_MNEMONIC_SIZE];
    ptx_mnemonic(&i, mnemonic);
    size_t used = (size_t)snprintf(text, size, "%s [%s]", ptx_op_name(op).s, mnemonic);
    for (unsigned t = 0, c = 0; t < op->term_count && used < size; t++)
        if (ptx_op_term(op, t)->kind == PTX_TERM_CONST)
            used += (size_t)snprintf(text + used, size - used, " %d", f->constants[c++]);
}

/* ---- operands ---- */

bool form_is_mask(const struct ptx_op *op, unsigned term)
{
    bool takes = form_starts(op, "shfl_") || form_starts(op, "vote_") ||
                 form_starts(op, "match_") || form_starts(op, "redux_") ||
                 form_starts(op, "elect_");
    return takes && term + 1u == op->term_count;
}

char form_space(const struct ptx_op *op)
{
    for (unsigned i = 0; i < op->term_count; i++)
        if (ptx_op_term(op, i)->kind == PTX_TERM_ADDRESS)
            return ptx_op_term(op, i)->space;
    return 0;
}

static enum role role_of_text(const char *type)
{
    static const struct {
        const char *text;
        enum role role;
    } roles[] = {
        {".f16", ROLE_F16},        {".bf16", ROLE_BF16}, {".tf32", ROLE_TF32},
        {".e4m3", ROLE_E4M3},      {".e5m2", ROLE_E5M2}, {".f32", ROLE_F32_MATRIX},
        {".f64", ROLE_F64_MATRIX},
    };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        size_t length = strlen(roles[i].text);
        if (strncmp(type, roles[i].text, length) == 0 && (type[length] == '.' || !type[length]))
            return roles[i].role;
    }
    return ROLE_INTEGER;
}

/* "….row.col{satf}.D.A.B.C": the role of term D, A, B or C; a fourth source is the metadata. */
static enum role matrix_role(const struct ptx_op *op, unsigned term)
{
    const struct ptx_string text = ptx_op_text(op);
    const char *s = strstr(text.s, ".col") + 4;
    if (*s == '{')
        s = strchr(s, '}') + 1;
    if (term > 3)
        return ROLE_METADATA;
    for (unsigned i = 0; i < term; i++)
        s = strchr(s + 1, '.');
    return role_of_text(s);
}

/* Operands that the ISA gives a meaning only in a range, or that are dull outside one. */
static const struct restriction {
    const char *pattern;
    unsigned term;
    struct source source;
} restrictions[] = {
    {"div_[us]*", 2, {0, ROLE_NONZERO, 0, 0}},
    {"rem_*", 2, {0, ROLE_NONZERO, 0, 0}},
    {"fns_b32", 2, {0, ROLE_RANGE, 0, 31}},
    {"fns_b32", 3, {0, ROLE_RANGE, -33, 33}},
    {"sh[lr]_*", 2, {0, ROLE_SHIFT, 0, 0}},
    {"shf_*", 3, {0, ROLE_SHIFT, 0, 0}},
    {"bfe_*", 2, {0, ROLE_FIELD, 0, 0}},
    {"bfe_*", 3, {0, ROLE_FIELD, 0, 0}},
    {"bfi_*", 3, {0, ROLE_FIELD, 0, 0}},
    {"bfi_*", 4, {0, ROLE_FIELD, 0, 0}},
    {"szext_*", 2, {0, ROLE_SHIFT, 0, 0}},
    {"bmsk_*", 1, {0, ROLE_SHIFT, 0, 0}},
    {"bmsk_*", 2, {0, ROLE_SHIFT, 0, 0}},
    {"match_*", 1, {0, ROLE_FEW, 0, 0}},
    {"cvt_pack_*", 1, {0, ROLE_SHIFT, 0, 0}},
    {"*_hint_*", 2, {0, ROLE_POLICY, 0, 0}},
    {"cp_async_ca_zfill", 3, {0, ROLE_RANGE, 0, 4}}, /* the least that is copied */
    {"cp_async_cg_zfill", 3, {0, ROLE_RANGE, 0, 16}},
    {"bar_red_*_n", 1, {0, ROLE_RANGE, 5, 5}},
    {"bar_red_*_n", 2, {0, ROLE_RANGE, 128, 128}},
    {"barrier_cta_red_*_n", 1, {0, ROLE_RANGE, 5, 5}},
    {"barrier_cta_red_*_n", 2, {0, ROLE_RANGE, 128, 128}},
};

static bool is_float(uint8_t type)
{
    return type == PTX_F16 || type == PTX_BF16 || type == PTX_F32 || type == PTX_F64 ||
           type == PTX_F16X2 || type == PTX_BF16X2;
}

struct source form_source(const struct ptx_op *op, unsigned term, unsigned j)
{
    struct source s = {.type = ptx_op_term(op, term)->type};
    if (form_starts(op, "mma_")) {
        s.role = (uint8_t)matrix_role(op, term);
        s.lo = s.role == ROLE_METADATA && strstr(ptx_op_text(op).s, ".tf32");
    }
    for (size_t i = 0; i < sizeof restrictions / sizeof *restrictions; i++) {
        const struct restriction *r = &restrictions[i];
        if (r->term == term && fnmatch(r->pattern, ptx_op_name(op).s, 0) == 0) {
            uint8_t type = s.type;
            s = r->source;
            s.type = type;
        }
    }
    if (form_starts(op, "cvt_") && is_float(s.type))
        s.role = ROLE_CONVERTED;
    if (strstr(ptx_op_name(op).s, "_cas_") && term == 2) {
        s.role = ROLE_COMPARED;
        s.lo = (int16_t)j;
    }
    return s;
}

struct source form_memory(const struct ptx_op *op)
{
    struct source s = {.type = PTX_U64};
    for (unsigned i = 0; i < op->term_count; i++)
        if (ptx_op_term(op, i)->kind == PTX_TERM_VALUE ||
            ptx_op_term(op, i)->kind == PTX_TERM_VECTOR)
            s.type = ptx_op_term(op, i)->type == PTX_B128 || ptx_op_term(op, i)->type == PTX_PRED
                         ? PTX_U64
                         : ptx_op_term(op, i)->type;
    if (form_starts(op, "ldmatrix") || form_starts(op, "stmatrix") || form_starts(op, "cp_async"))
        s.type = PTX_U64;
    return s;
}
