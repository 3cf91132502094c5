/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every form of the instruction table that an H100 has must be compared by differential or stand
 * in the text of a protocol. What the texts hold is read from them, by mnemonic and the kinds of
 * the operands. Told of are forms that are in neither; then the exit status is 1.
 *
 *     covered [--without PATTERN]
 *
 * --without leaves protocols out, to see it fail.
 */
#include "form.h"
#include "protocol.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIGNATURE = PTX_MNEMONIC_SIZE + 32 };

/* "mnemonic operands": [ an address, { a vector, v anything else. */
struct signatures {
    char (*list)[SIGNATURE];
    size_t count, capacity;
};

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void take(struct signatures *all, const char *signature)
{
    if (all->count == all->capacity) {
        all->capacity = all->capacity ? 2 * all->capacity : 4096;
        all->list = realloc(all->list, all->capacity * sizeof *all->list);
        if (!all->list)
            abort();
    }
    snprintf(all->list[all->count++], SIGNATURE, "%s", signature);
}

static void sort(struct signatures *all)
{
    size_t kept = 0;
    qsort(all->list, all->count, sizeof *all->list, compare);
    for (size_t i = 0; i < all->count; i++)
        if (i == 0 || strcmp(all->list[i], all->list[kept - 1]) != 0)
            memmove(all->list[kept++], all->list[i], SIGNATURE);
    all->count = kept;
}

/* ---- what the texts hold ---- */

/* The statement's kinds of operands, behind the mnemonic; it ends at ';'. */
static void operand_kinds(const char *s, char *kinds, size_t size)
{
    size_t count = 0;
    int depth = 0;
    bool due = true;
    for (; *s && (*s != ';'); s++) {
        if (*s == ' ')
            continue;
        if (due && count + 1 < size)
            kinds[count++] = *s == '[' || *s == '{' ? *s : 'v';
        due = depth == 0 && *s == ',';
        depth += (*s == '[' || *s == '{') - (*s == ']' || *s == '}');
    }
    kinds[count] = 0;
}

static void take_statement(struct signatures *all, const char *s)
{
    char signature[SIGNATURE], kinds[32];
    const char *label = strstr(s, ": ");
    if (label && label < strchr(s, ';'))
        s = label + 2;
    if (*s == '@')
        s = strchr(s, ' ') + 1;
    size_t length = strcspn(s, " ;\n");
    operand_kinds(s + length, kinds, sizeof kinds);
    snprintf(signature, sizeof signature, "%.*s %s", (int)length, s, kinds);
    take(all, signature);
}

static void take_text(struct signatures *all, char *text)
{
    for (char *rest = text, *line; (line = strtok_r(rest, "\n", &rest));)
        if (strchr(line, ';'))
            take_statement(all, line);
}

static void read_protocols(struct signatures *all, const char *without)
{
    struct protocol_list list = {0};
    protocol_list_all(&list);
    for (size_t i = 0; i < list.count; i++) {
        char text[PROTOCOL_TEXT];
        protocol_text(&list.items[i], text);
        if (!without || fnmatch(without, list.items[i].name, 0) != 0)
            take_text(all, text);
    }
    free(list.items);
    sort(all);
}

/* ---- what the table has ---- */

static void form_signature(const struct form *f, unsigned n, char signature[SIGNATURE])
{
    const struct ptx_op *op = &ptx_ops[f->op];
    struct ptx_instruction i = {.op = f->op, .modifiers = f->modifiers, .n = (uint16_t)n};
    ptx_mnemonic(&i, signature);
    size_t used = strlen(signature);
    signature[used++] = ' ';
    for (unsigned t = 0; t < op->term_count; t++) {
        const struct ptx_term *term = ptx_op_term(op, t);
        bool address = term->kind == PTX_TERM_ADDRESS || term->kind == PTX_TERM_TENSOR;
        if (!(term->flags & PTX_TERM_BAR))
            signature[used++] = address ? '[' : term->kind == PTX_TERM_VECTOR ? '{' : 'v';
    }
    signature[used] = 0;
}

/* In any of the widths that the protocols of wgmma have. */
static bool has_protocol(const struct signatures *all, const struct form *f, char text[SIGNATURE])
{
    static const unsigned widths[] = {64, 16};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        form_signature(f, widths[i], text);
        if (bsearch(text, all->list, all->count, SIGNATURE, compare))
            return true;
    }
    return false;
}

/* Forms of one instruction that nothing compares. */
static size_t count_missing(const struct signatures *all, size_t op, size_t *forms)
{
    static const ptx_target compared = {.sm = 90}, chip = {.sm = 90, .suffix = 'a'};
    bool computes = form_group(&ptx_ops[op], NULL) != NULL;
    struct form_list has = {0}, run = {0};
    size_t missing = 0;
    form_list_add(&has, op, &chip);
    if (computes)
        form_list_add(&run, op, &compared);
    for (size_t i = 0; i < has.count; i++) {
        char text[SIGNATURE];
        if (run.count || (!computes && !form_needs_protocol(&ptx_ops[op])) ||
            has_protocol(all, &has.forms[i], text))
            continue;
        missing++;
        printf("%s [%s]: neither compared nor in a protocol\n", ptx_op_name(&ptx_ops[op]).s, text);
    }
    *forms += has.count;
    free(has.forms);
    free(run.forms);
    return missing;
}

int main(int count, char **words)
{
    struct signatures all = {0};
    size_t missing = 0, forms = 0;
    if (count != 1 && (count != 3 || strcmp(words[1], "--without") != 0)) {
        fprintf(stderr, "usage: covered [--without PATTERN]\n");
        return 2;
    }
    read_protocols(&all, count == 3 ? words[2] : NULL);
    for (size_t i = 0; i < ptx_op_count; i++)
        missing += count_missing(&all, i, &forms);
    printf("%zu forms, %zu of them neither compared nor in a protocol\n", forms, missing);
    free(all.list);
    return missing != 0;
}
