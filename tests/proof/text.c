/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL_PROBES = 40 };

static void *allocate(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p)
        abort();
    return p;
}

/* ---- registers: sources from a pool that the kernel's probes share, a new one for a result ----
 */

struct pool {
    struct register_source source;
    unsigned used[PTX_CLASSES];  /* sources taken by the current probe */
    unsigned most[PTX_CLASSES];  /* by any probe */
    unsigned names[PTX_CLASSES]; /* given so far */
};

static bool is_result(const struct ptx_term *t)
{
    return (t->flags & PTX_TERM_WRITTEN) && !(t->flags & PTX_TERM_READ) &&
           t->kind != PTX_TERM_LITERAL;
}

static ptx_operand take_pooled(struct register_source *from, const struct ptx_term *t)
{
    struct pool *pool = (struct pool *)from;
    ptx_operand o = ptx_register_new(from->kernel, t->type);
    enum ptx_class c = ptx_class_of(t->type);
    bool result = is_result(t);
    unsigned name = result ? pool->names[c]++ : pool->used[c]++;
    if (!result && pool->used[c] > pool->most[c])
        pool->most[c] = pool->used[c];
    from->kernel->registers[o.index].name = name;
    return o;
}

static void append(char **text, const char *format, ...) PTXGEN_PRINTF(2, 3);
static void append(char **text, const char *format, ...)
{
    char piece[192];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    size_t before = *text ? strlen(*text) : 0;
    *text = realloc(*text, before + (size_t)length + 1);
    if (!*text)
        abort();
    memcpy(*text + before, piece, (size_t)length + 1);
}

/* Code that loads the pool: %keep is the address of everything. */
static char *load_pool(const struct pool *pool)
{
    char *s = NULL;
    append(&s, "\t.reg .b64 %%keep, %%keep1, %%keep2; ld.param.u64 %%keep, [param]; ");
    for (unsigned i = 0; i < pool->most[PTX_CLASS_PRED]; i++)
        append(&s, "setp.eq.u64 %%p%u, %%keep, %u; ", i, i);
    for (unsigned i = 0; i < pool->most[PTX_CLASS_16]; i++)
        append(&s, "ld.volatile.global.u16 %%rs%u, [%%keep+%u]; ", i, 2 * i);
    for (unsigned i = 0; i < pool->most[PTX_CLASS_32]; i++)
        append(&s, "ld.volatile.global.u32 %%r%u, [%%keep+%u]; ", i, 4 * i);
    for (unsigned i = 0; i < pool->most[PTX_CLASS_64]; i++)
        append(&s, "ld.volatile.global.u64 %%rd%u, [%%keep+%u]; ", i, 8 * i);
    for (unsigned i = 0; i < pool->most[PTX_CLASS_128]; i++)
        append(&s, "mov.b128 %%rq%u, {%%keep, %%keep}; ", i);
    return s;
}

/* Code that stores the results of instruction `i`. */
static char *store_results(const ptx_kernel *k, const struct ptx_instruction *i)
{
    static const char *const store[PTX_CLASSES] = {
        "@%%p%u st.volatile.global.u64 [%%keep], %%keep; ",
        "st.volatile.global.u16 [%%keep], %%rs%u; ",
        "st.volatile.global.u32 [%%keep], %%r%u; ",
        "st.volatile.global.u64 [%%keep], %%rd%u; ",
        ("mov.b128 {%%keep1, %%keep2}, %%rq%u; "
         "st.volatile.global.v2.u64 [%%keep], {%%keep1, %%keep2}; "),
    };
    const struct ptx_op *op = &ptx_ops[i->op];
    const ptx_operand *o = &k->operands[i->first];
    char *s = NULL;
    for (unsigned t = 0; t < op->term_count; t++) {
        const struct ptx_term *term = ptx_op_term(op, t);
        unsigned count = ptx_term_operands(term, i->n);
        for (unsigned j = 0; j < count && is_result(term); j++) {
            char piece[160];
            snprintf(piece, sizeof piece, store[ptx_class_of(term->type)],
                     (unsigned)k->registers[o[j].index].name);
            append(&s, "%s", piece);
        }
        o += count;
    }
    return s;
}

/* ---- kernels ---- */

static bool uses_wide_registers(const struct probe *p)
{
    const struct ptx_op *op = &ptx_ops[p->op];
    for (unsigned i = 0; i < op->term_count; i++)
        if (ptx_op_term(op, i)->type == PTX_B128)
            return true;
    return false;
}

/* 128-bit registers have a need of their own, and wgmma many registers: kernels of their own. */
static bool kernel_ends_at(const struct probe_list *list, size_t first, size_t at)
{
    const struct probe *a = &list->probes[first], *b = &list->probes[at];
    return at == list->count || at - first == KERNEL_PROBES ||
           uses_wide_registers(a) != uses_wide_registers(b) ||
           (ptx_op_n(&ptx_ops[a->op])->hi != 0) != (ptx_op_n(&ptx_ops[b->op])->hi != 0);
}

/* Appends the probe without asking the validator. */
static void append_probe(struct pool *pool, const struct probe *p)
{
    ptx_kernel *k = pool->source.kernel;
    ptx_operand operands[PROBE_MAX_OPERANDS];
    memset(pool->used, 0, sizeof pool->used);
    unsigned count = probe_operands(p, &pool->source, operands);
    bool leaves = ptx_ops[p->op].flags & (PTX_FLAG_BRANCH | PTX_FLAG_EXIT);
    k->guarded = leaves ? '+' : 0;
    k->guard = 0;
    struct ptx_instruction *i = ptx_append(k, p->op, PTX_HERE, operands, count);
    k->guarded = 0;
    if (!i)
        abort();
    i->n = p->n;
    i->modifiers = p->modifiers;
}

/* One kernel of the probes [first, end); its register pool. */
static struct pool build_kernel(ptx_module *m, const struct probe_list *list, size_t first,
                                size_t end)
{
    char name[32];
    snprintf(name, sizeof name, "k%zu", first);
    ptx_kernel *k = ptx_kernel_begin(m, name);
    struct pool pool = {.source = {take_pooled, k, ptx_param_declare(k, "param", 64, 64).o,
                                   ptx_label_new(k, NULL).o}};
    ptx_operand operands[PROBE_MAX_OPERANDS];
    ptx_operand guard = ptx_register_new(k, PTX_PRED);
    k->registers[guard.index].name = 0;
    pool.most[PTX_CLASS_PRED] = 1;
    for (size_t i = first; i < end; i++) {
        memset(pool.used, 0, sizeof pool.used);
        probe_operands(&list->probes[i], &pool.source, operands);
    }
    memcpy(pool.names, pool.most, sizeof pool.names); /* results are named after the sources */
    for (size_t i = first; i < end; i++)
        append_probe(&pool, &list->probes[i]);
    memcpy(k->names, pool.names, sizeof k->names);
    ptx_label_bind(k, (ptx_label){pool.source.label});
    ptx_ret(k);
    k->ended = true;
    return pool;
}

/* Cuts a module's text of one kernel into lines. */
static void add_lines(struct proof_text *text, const char *s, const struct pool *pool, size_t first,
                      size_t end)
{
    const ptx_kernel *k = pool->source.kernel;
    size_t probe = first, first_line = text->line_count;
    bool inside = false;
    for (int skip = TEXT_HEADER_LINES; *s; s += strcspn(s, "\n") + 1) {
        if (skip-- > 0)
            continue;
        size_t length = strcspn(s, "\n");
        struct text_line *line = &text->lines[text->line_count++];
        *line = (struct text_line){.probe = -1, .kernel = text->kernel_count};
        line->text = allocate(length + 1);
        memcpy(line->text, s, length);
        inside = inside || *s == '{';
        if (inside && s[0] == '\t' && s[1] != '.' && probe < end) {
            if (probe == first)
                line->before = load_pool(pool);
            /* instruction numbers: the label's binding comes after all probes */
            line->after = store_results(k, &k->code[probe - first]);
            line->probe = (long)probe++;
        }
    }
    text->kernels[text->kernel_count++] =
        (struct text_part){first, end, first_line, text->line_count};
    if (probe != end)
        abort();
}

void proof_text_build(const struct probe_list *list, struct proof_text *text)
{
    static const ptx_target any = {.sm = 80};
    text->list = list;
    text->kernels = allocate(list->count * sizeof *text->kernels);
    text->lines = allocate(list->count * 20 * sizeof *text->lines);
    for (size_t first = 0, end; first < list->count; first = end) {
        end = first + 1;
        while (!kernel_ends_at(list, first, end))
            end++;
        ptx_module *m = ptx_module_create(&any, NULL);
        struct pool pool = build_kernel(m, list, first, end);
        const char *s;
        if (ptx_module_text(m, 0, &s, NULL, NULL) != PTXGEN_OK)
            abort();
        add_lines(text, s, &pool, first, end);
        ptx_module_destroy(m);
    }
}

static bool any_kept(const uint8_t *keep, const struct text_part *part)
{
    return memchr(keep + part->first_probe, 1, part->end_probe - part->first_probe) != NULL;
}

struct text_part proof_text_file(const struct proof_text *text, size_t file, size_t kernels)
{
    size_t end = (file + 1) * kernels;
    const struct text_part *first = &text->kernels[file * kernels];
    const struct text_part *last =
        &text->kernels[(end < text->kernel_count ? end : text->kernel_count) - 1];
    return (struct text_part){first->first_probe, last->end_probe, first->first_line,
                              last->end_line};
}

bool proof_text_write(const struct proof_text *text, const struct text_part *part, int version,
                      const char *target, const uint8_t *keep, bool alive, const char *path)
{
    if (!any_kept(keep, part))
        return false;
    FILE *out = fopen(path, "w");
    if (!out)
        abort();
    fprintf(out,
            ".version %d.%d\n.target %s\n.address_size 64 .visible .entry first%zu() { ret; }\n",
            version / 10, version % 10, target, part->first_probe);
    for (size_t i = part->first_line; i < part->end_line; i++) {
        const struct text_line *line = &text->lines[i];
        bool kept = any_kept(keep, &text->kernels[line->kernel]);
        bool shown = kept && (line->probe < 0 || keep[line->probe]);
        if (kept && alive && line->before)
            fputs(line->before, out);
        if (shown)
            fputs(line->text, out);
        if (shown && alive && line->after)
            fputs(line->after, out);
        fputc('\n', out);
    }
    fclose(out);
    return true;
}
