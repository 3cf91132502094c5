/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <string.h>

enum { SHOWN = 60 };

static void print_counts(FILE *out, const struct outcome *o)
{
    fprintf(out, "%9llu %10llu %9llu %9llu %9llu %9llu", (unsigned long long)o->operands,
            (unsigned long long)o->results, (unsigned long long)o->counts[WITHIN],
            (unsigned long long)o->counts[OPEN_NAN], (unsigned long long)o->counts[UNSPECIFIED],
            (unsigned long long)o->counts[DIFFERENT]);
}

static void print_heading(FILE *out, const char *first)
{
    fprintf(out, "%-26s %6s %9s %10s %9s %9s %9s %9s\n", first, "forms", "operands", "results",
            "in bound", "open NaN", "unstated", "mismatch");
}

static void report_omissions(FILE *out, const struct form_list *list)
{
    fprintf(out, "\nnot compared:\n");
    for (size_t i = 0, f = 0; i < ptx_op_count; i++) {
        const char *reason;
        bool compared = f < list->count && list->forms[f].op == i;
        form_group(&ptx_ops[i], &reason);
        while (f < list->count && list->forms[f].op == i)
            f++;
        if (!compared)
            fprintf(out, "%-44s %s\n", ptx_op_name(&ptx_ops[i]).s,
                    reason ? reason
                           : "the target or the driver's PTX version has it not, or the command "
                             "left it out");
    }
}

void report_table(FILE *out, const struct form_list *list, const struct outcome *outcomes)
{
    fprintf(out, "%9s %10s %9s %9s %9s %9s  form; held to\n", "operands", "results", "in bound",
            "open NaN", "unstated", "mismatch");
    for (size_t i = 0; i < list->count; i++) {
        char text[256];
        form_describe(&list->forms[i], text, sizeof text);
        print_counts(out, &outcomes[i]);
        fprintf(out, "  %s; %s\n", text, judge_rule(&list->forms[i]));
        if (outcomes[i].example[0])
            fprintf(out, "    first mismatch: %s\n", outcomes[i].example);
        if (!outcomes[i].ran)
            fprintf(out, "    not run: %s\n",
                    outcomes[i].why[0] ? outcomes[i].why : "the run ended before");
    }
    report_omissions(out, list);
}

static void report_group(FILE *out, const struct form_list *list, const struct outcome *outcomes,
                         const char *group, struct outcome *total)
{
    struct outcome sum = {0};
    size_t forms = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (group && strcmp(list->forms[i].group, group) != 0)
            continue;
        forms++;
        sum.operands += outcomes[i].operands;
        sum.results += outcomes[i].results;
        for (int v = EQUAL; v <= DIFFERENT; v++)
            sum.counts[v] += outcomes[i].counts[v];
    }
    if (!forms)
        return;
    fprintf(out, "%-26s %6zu ", group ? group : "all", forms);
    print_counts(out, &sum);
    fputc('\n', out);
    *total = sum;
}

/* One line an instruction: its first failing form. */
static size_t report_failures(FILE *out, const struct form_list *list,
                              const struct outcome *outcomes)
{
    size_t failed = 0, shown = 0;
    int last = -1;
    for (size_t i = 0; i < list->count; i++) {
        char text[256];
        if (outcomes[i].ran && !outcomes[i].counts[DIFFERENT])
            continue;
        failed++;
        if (list->forms[i].op == last)
            continue;
        last = list->forms[i].op;
        form_describe(&list->forms[i], text, sizeof text);
        if (shown++ < SHOWN)
            fprintf(out, "%s: %llu of %llu: %.300s\n", text,
                    (unsigned long long)outcomes[i].counts[DIFFERENT],
                    (unsigned long long)outcomes[i].results,
                    outcomes[i].ran      ? outcomes[i].example
                    : outcomes[i].why[0] ? outcomes[i].why
                                         : "not run");
    }
    if (shown > SHOWN)
        fprintf(out, "… and %zu more instructions\n", shown - SHOWN);
    return failed;
}

size_t report_summary(FILE *out, const struct form_list *list, const struct outcome *outcomes)
{
    struct outcome total = {0};
    print_heading(out, "group");
    for (size_t i = 0; form_group_name(i); i++)
        report_group(out, list, outcomes, form_group_name(i), &total);
    report_group(out, list, outcomes, NULL, &total);
    size_t failed = report_failures(out, list, outcomes);
    fprintf(out, "%zu forms, %zu of them with a mismatch or not run\n", list->count, failed);
    return failed;
}
