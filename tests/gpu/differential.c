/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs every instruction of the builder's table that computes on registers or on a thread's memory,
 * with special and random operands, on a GPU and on the emulator, and compares the bits.
 *
 *     differential --gpu --jobs 12 --out table.txt
 *
 * Without --gpu the emulator is compared with itself under another schedule. --operands N is the
 * number of operand tuples a form (10240); --only and --skip PATTERN choose instructions; --jobs N
 * is the number of processes at a time (1); --emit DIR writes the modules' texts; --plant flips one
 * bit of one result of each form, to see the comparison fail. A form that ends its process, or
 * takes longer than a minute, is told of, and the forms after it run in another. Exit status: 0
 * when all agree, 1 when something does not, 2 when the run could not be made.
 *
 *     differential --gpu --jobs 12 --record truth/differential.txt
 *     differential --truth truth/differential.txt
 *
 * The first keeps what the card gave (of 1024 operand tuples), the second compares the emulator
 * with it where there is no card: every form must have its line there, and every line its form.
 */
#include "device.h"
#include "kept.h"
#include "operands.h"
#include "processes.h"
#include "report.h"
#include "tests/share.h"

#include <stdlib.h>
#include <string.h>

enum { MODULE_FORMS = 50, PROCESS_FORMS = 4 * MODULE_FORMS, SECONDS = 60, SIDES = 2 };

struct options {
    bool gpu, plant;
    uint32_t operands;
    unsigned jobs;
    const char *out, *only, *skip, *emit, *record, *truth;
};

struct run {
    struct options options;
    struct device devices[SIDES]; /* the GPU first */
    struct form_list list;
    struct outcome *outcomes;
    uint64_t *out[SIDES], *memory[SIDES];
    int first_side, end_side; /* those that run */
    struct truth truth;
    uint64_t *words; /* kept of each form in a bound; shared as outcomes are */
    ptx_target target;
    struct facts {
        char names[SIDES][64];
        int version; /* of the GPU's driver */
        bool known;
    } * facts; /* shared by the processes, as outcomes are */
    bool dead; /* a device can run no more */
};

static void *allocate(size_t bytes)
{
    void *p = calloc(1, bytes);
    if (!p)
        abort();
    return p;
}

/* ---- comparing ---- */

static void describe_mismatch(struct run *r, struct outcome *o, const struct plan *plan,
                              uint32_t tuple, const char *what, unsigned index, uint64_t a,
                              uint64_t b)
{
    size_t used = (size_t)snprintf(o->example, sizeof o->example, "tuple %u, operands", tuple);
    for (unsigned i = 0; i < plan->source_count && used < sizeof o->example; i++)
        used += (size_t)snprintf(o->example + used, sizeof o->example - used, " %llx",
                                 (unsigned long long)operand_bits(plan->sources[i], i, tuple));
    if (plan->space && used < sizeof o->example)
        used += (size_t)snprintf(o->example + used, sizeof o->example - used, " memory %llx",
                                 (unsigned long long)operand_bits(plan->memory, 0, tuple));
    if (used < sizeof o->example)
        snprintf(o->example + used, sizeof o->example - used, ": %s %u is %llx on %s, %llx on %s",
                 what, index, (unsigned long long)a, r->devices[0].name, (unsigned long long)b,
                 r->devices[1].name);
}

static void compare_word(struct run *r, size_t form, const struct plan *plan, uint32_t tuple,
                         const char *what, unsigned index, uint8_t type, uint64_t a, uint64_t b,
                         bool bounded)
{
    struct outcome *o = &r->outcomes[form];
    uint64_t operands[2] = {0};
    bool judged = a != b || bounded;
    for (unsigned i = 0; judged && i < 2 && i < plan->source_count; i++)
        operands[i] = operand_bits(plan->sources[i], i, tuple);
    enum verdict v = !judged ? EQUAL : judge(&r->list.forms[form], type, operands, a, b);
    o->results++;
    o->counts[v]++;
    if (v == DIFFERENT && !o->example[0])
        describe_mismatch(r, o, plan, tuple, what, index, a, b);
}

static void compare_form(struct run *r, size_t form, const struct plan *plan)
{
    enum { WORDS = FORM_LINE / 8 };
    struct outcome *o = &r->outcomes[form];
    unsigned bytes = operand_width(plan->memory.type) / 8;
    bool uniform = plan->source_count == 0 && (!plan->space || plan->space == 'p');
    bool bounded = judge_is_bounded(&r->list.forms[form]);
    bool memory = plan->space && plan->space != 'p';
    o->ran = true;
    o->operands = uniform ? 1 : r->options.operands;
    for (uint32_t t = 0; t < r->options.operands; t++) {
        for (unsigned i = 0; i < plan->result_count; i++)
            compare_word(r, form, plan, t, "result", i, plan->results[i], r->out[0][t * WORDS + i],
                         r->out[1][t * WORDS + i], bounded);
        for (unsigned i = 0; memory && i < FORM_LINE / bytes; i++) {
            uint64_t a = 0, b = 0;
            memcpy(&a, (char *)&r->memory[0][t * WORDS] + i * bytes, bytes);
            memcpy(&b, (char *)&r->memory[1][t * WORDS] + i * bytes, bytes);
            compare_word(r, form, plan, t, "memory", i, plan->memory.type, a, b, false);
        }
    }
}

static void plant(struct run *r, const struct plan *plan)
{
    uint64_t *const lines = (plan->result_count ? r->out : r->memory)[r->first_side];
    lines[(r->options.operands - 1) * (FORM_LINE / 8)] ^= 1;
}

/* ---- what is kept ---- */

static uint64_t *words_of(const struct run *r, size_t form)
{
    return r->words + form * kept_words(r->options.operands);
}

static void keep_form(struct run *r, size_t form, const struct plan *plan)
{
    const struct form *f = &r->list.forms[form];
    struct outcome *o = &r->outcomes[form];
    int side = r->first_side;
    o->inputs = device_inputs(&r->devices[side], plan);
    o->digest = kept_digest(f, plan, r->options.operands, r->out[side], r->memory[side]);
    if (r->options.record && judge_is_bounded(f))
        kept_take(words_of(r, form), r->options.operands, r->out[side]);
    o->recorded = true;
}

static void compare_with_truth(struct run *r, size_t form, const struct plan *plan)
{
    const struct form *f = &r->list.forms[form];
    struct outcome *o = &r->outcomes[form];
    char name[256];
    form_describe(f, name, sizeof name);
    const struct truth_line *line = truth_find(&r->truth, name);
    o->ran = true;
    o->operands = r->options.operands;
    if (!line || truth_differs(line, o->inputs, o->digest, o->example, sizeof o->example)) {
        o->results++;
        o->counts[DIFFERENT]++;
    } else if (judge_is_bounded(f)) {
        kept_compare(f, plan, r->options.operands, line->words ? line->words : "",
                     r->out[r->first_side], o);
    } else {
        o->results++;
        o->counts[EQUAL]++;
    }
}

/* ---- running ---- */

static void run_form(struct run *r, size_t form, ptxgen_module *const *modules)
{
    struct plan plan;
    char name[32];
    ptxgen_error err;
    plan_make(&r->list.forms[form], &plan);
    snprintf(name, sizeof name, "k%zu", form);
    for (int side = r->first_side; side < r->end_side; side++) {
        struct device *d = &r->devices[side];
        d->driver.ctx_set_current(d->context);
        if (device_run(d, modules[side], name, &plan, r->out[side], r->memory[side], &err)) {
            if (side == r->first_side && r->options.plant)
                plant(r, &plan);
            if (side == r->first_side)
                keep_form(r, form, &plan);
            continue;
        }
        snprintf(r->outcomes[form].why, sizeof r->outcomes[form].why, "%s: %.190s", d->name,
                 err.message);
        if (d->emulated)
            ptxgen_emulator_clear_fault(d->context);
        r->dead = r->dead || !d->emulated;
        return;
    }
    if (r->options.truth)
        compare_with_truth(r, form, &plan);
    else
        compare_form(r, form, &plan);
}

static ptx_module *build(struct run *r, size_t first, size_t end, const char **text,
                         ptxgen_error *err)
{
    ptx_module *m = ptx_module_create(&r->target, NULL);
    for (size_t i = first; m && i < end; i++) {
        char name[32];
        snprintf(name, sizeof name, "k%zu", i);
        program_emit(m, &r->list.forms[i], name);
    }
    if (m && ptx_module_text(m, 0, text, NULL, err) == PTXGEN_OK)
        return m;
    ptx_module_destroy(m);
    return NULL;
}

static void emit(const struct run *r, size_t first, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/forms%05zu.ptx", r->options.emit, first);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
        fprintf(stderr, "%s cannot be written\n", path);
        exit(2);
    }
}

static void run_module(struct run *r, size_t first, size_t end);

/* A module that does not load is taken apart, so that one form does not hide the others. */
static void fail_module(struct run *r, size_t first, size_t end, const char *message)
{
    size_t middle = first + (end - first) / 2;
    if (end - first == 1) {
        snprintf(r->outcomes[first].why, sizeof r->outcomes[first].why, "%.250s", message);
        return;
    }
    run_module(r, first, middle);
    run_module(r, middle, end);
}

static void run_module(struct run *r, size_t first, size_t end)
{
    const char *text;
    ptxgen_error err;
    ptxgen_module *modules[SIDES] = {NULL, NULL};
    bool loaded = true;
    ptx_module *m = build(r, first, end, &text, &err);
    if (!m) {
        fail_module(r, first, end, err.message);
        return;
    }
    if (r->options.emit)
        emit(r, first, text);
    for (int side = r->first_side; side < r->end_side && loaded; side++) {
        r->devices[side].driver.ctx_set_current(r->devices[side].context);
        loaded = ptxgen_module_load_ptx(&r->devices[side].driver, text, NULL, &modules[side],
                                        &err) == PTXGEN_OK;
    }
    for (size_t i = first; i < end && loaded && !r->dead; i++) {
        processes_at(i);
        run_form(r, i, modules);
    }
    for (int side = 0; side < SIDES; side++)
        ptxgen_module_destroy(modules[side]);
    ptx_module_destroy(m);
    if (!loaded)
        fail_module(r, first, end, err.message);
}

static bool open_devices(struct run *r)
{
    const ptxgen_emulator_options other = {.seed = 12345, .workers = 1},
                                  /* a thread keeps to its line */ plain = {
                                      .spread_always = true, .workers = r->options.jobs > 1};
    ptxgen_error err;
    for (int side = r->first_side; side < r->end_side; side++)
        if (!device_open(&r->devices[side],
                         side             ? &plain
                         : r->options.gpu ? NULL
                                          : &other,
                         r->options.operands, &err)) {
            fprintf(stderr, "%s\n", err.message);
            return false;
        }
    return true;
}

/* In a process of its own. */
static bool run_forms(void *context, size_t first, size_t end)
{
    struct run *r = context;
    if (!open_devices(r))
        exit(2);
    for (int side = r->first_side; side < r->end_side; side++) {
        r->out[side] = allocate((size_t)r->options.operands * FORM_LINE);
        r->memory[side] = allocate((size_t)r->options.operands * FORM_LINE);
    }
    for (size_t i = first; i < end && !r->dead; i += MODULE_FORMS) {
        processes_at(i);
        run_module(r, i, i + MODULE_FORMS < end ? i + MODULE_FORMS : end);
    }
    for (int side = r->first_side; side < r->end_side; side++) {
        if (!r->dead)
            device_close(&r->devices[side]);
        free(r->out[side]);
        free(r->memory[side]);
    }
    return !r->dead;
}

static bool learn_facts(void *context, size_t first, size_t end)
{
    struct run *r = context;
    (void)first;
    (void)end;
    if (!open_devices(r))
        return false;
    for (int side = r->first_side; side < r->end_side; side++)
        memcpy(r->facts->names[side], r->devices[side].name, sizeof r->devices[side].name);
    r->facts->version = r->devices[r->first_side].driver.version;
    r->facts->known = true;
    return true;
}

static void lose_facts(void *context, size_t item, const char *why)
{
    (void)context;
    (void)item;
    fprintf(stderr, "the devices cannot be opened: %s\n", why);
}

static void lose_form(void *context, size_t form, const char *why)
{
    struct run *r = context;
    struct outcome *o = &r->outcomes[form];
    o->ran = false;
    if (!o->why[0])
        snprintf(o->why, sizeof o->why, "%s", why);
}

/* ---- the program ---- */

static bool parse(int count, char **words, struct options *o)
{
    *o = (struct options){.jobs = 1};
    for (int i = 1; i < count; i++) {
        const char *value = i + 1 < count ? words[i + 1] : NULL;
        if (strcmp(words[i], "--gpu") == 0)
            o->gpu = true;
        else if (strcmp(words[i], "--plant") == 0)
            o->plant = true;
        else if (!value)
            return false;
        else if (strcmp(words[i], "--operands") == 0)
            o->operands = (uint32_t)strtoul(words[++i], NULL, 10);
        else if (strcmp(words[i], "--jobs") == 0)
            o->jobs = (unsigned)strtoul(words[++i], NULL, 10);
        else if (strcmp(words[i], "--out") == 0)
            o->out = words[++i];
        else if (strcmp(words[i], "--only") == 0)
            o->only = words[++i];
        else if (strcmp(words[i], "--skip") == 0)
            o->skip = words[++i];
        else if (strcmp(words[i], "--emit") == 0)
            o->emit = words[++i];
        else if (strcmp(words[i], "--record") == 0)
            o->record = words[++i];
        else if (strcmp(words[i], "--truth") == 0)
            o->truth = words[++i];
        else
            return false;
    }
    if (o->truth && (o->gpu || o->record || o->operands))
        return false;
    if (!o->operands)
        o->operands = o->record ? TRUTH_OPERANDS : 10240;
    o->operands = (o->operands + FORM_THREADS - 1) / FORM_THREADS * FORM_THREADS;
    return o->operands > 0 && o->operands <= 1u << 20 && o->jobs > 0;
}

static bool write_table(const struct run *r)
{
    FILE *f = r->options.out ? fopen(r->options.out, "w") : NULL;
    if (f)
        report_table(f, &r->list, r->outcomes);
    return !r->options.out || (f && fclose(f) == 0);
}

/* All forms that ran on the first side, whether or not the other agrees. */
static bool write_record(const struct run *r)
{
    FILE *f = fopen(r->options.record, "w");
    if (!f)
        return false;
    truth_write_header(f, "differential", r->facts->names[0], r->facts->version,
                       r->options.operands);
    for (size_t i = 0; i < r->list.count; i++) {
        const struct outcome *o = &r->outcomes[i];
        char name[256];
        form_describe(&r->list.forms[i], name, sizeof name);
        if (o->recorded && judge_is_bounded(&r->list.forms[i])) {
            truth_write_bounded(f, name, o->inputs);
            size_t beyond = kept_write(f, &r->list.forms[i], r->options.operands, words_of(r, i));
            if (beyond)
                printf("%s: %zu results of the card are beyond the bound\n", name, beyond);
        } else if (o->recorded) {
            truth_write(f, name, o->inputs, o->digest);
        } else {
            printf("%s: not recorded\n", name);
        }
    }
    bool written = !ferror(f);
    return fclose(f) == 0 && written;
}

/* Leaves the forms of this share that have a line; how many have none, and how many lines stand for
 * nothing. */
static size_t choose_kept(struct run *r)
{
    size_t kept = 0, without = 0;
    for (size_t i = 0; i < r->list.count; i++) {
        char name[256];
        form_describe(&r->list.forms[i], name, sizeof name);
        if (truth_find(&r->truth, name)) {
            if (test_in_share((int)i))
                r->list.forms[kept++] = r->list.forms[i];
        } else if (without++ < 60) {
            printf("%s: no truth for this form: record it on a card\n", name);
        }
    }
    r->list.count = kept;
    if (!r->options.only && !r->options.skip)
        without += truth_report_unasked(&r->truth, stdout);
    if (without)
        printf("%zu forms without a line in %s, or lines without a form\n", without,
               r->options.truth);
    return without;
}

static bool read_truth(struct run *r)
{
    char why[TRUTH_SENTENCE];
    if (!truth_read(&r->truth, r->options.truth, "differential", why)) {
        fprintf(stderr, "%s: %s\n", r->options.truth, why);
        return false;
    }
    r->first_side = 1;
    r->options.operands = r->truth.operands;
    return true;
}

static void print_sides(const struct run *r)
{
    printf("%s (driver %d, PTX up to %d) against %s; %u operand tuples a form\n",
           r->options.truth ? r->truth.card : r->facts->names[0],
           r->options.truth ? r->truth.driver : r->facts->version, r->target.max_ptx,
           r->facts->names[1], r->options.operands);
}

int main(int count, char **words)
{
    struct run r = {.target = {.sm = 90}, .end_side = SIDES};
    size_t failed = 0;
    if (!parse(count, words, &r.options)) {
        fprintf(stderr,
                "usage: differential [--gpu] [--operands N] [--only PATTERN] [--skip PATTERN]\n"
                "                    [--jobs N] [--out FILE] [--emit DIR] [--plant]\n"
                "                    [--record FILE]\n"
                "       differential --truth FILE [--only PATTERN] [--skip PATTERN] [--jobs N]\n"
                "                    [--out FILE] [--plant]\n");
        return 2;
    }
    if (r.options.truth && !read_truth(&r))
        return 2;
    r.facts = processes_memory(sizeof *r.facts);
    struct processes first = {1, 1, 1, SECONDS, &r, learn_facts, lose_facts};
    if (!processes_run(&first) || !r.facts->known)
        return 2;
    r.target.max_ptx =
        ptxgen_driver_max_ptx_version(r.options.truth ? r.truth.driver : r.facts->version);
    form_list_build(&r.list, &r.target, r.options.only, r.options.skip);
    if (r.options.truth)
        failed = choose_kept(&r);
    r.outcomes = processes_memory((r.list.count + 1) * sizeof *r.outcomes);
    if (r.options.record)
        r.words =
            processes_memory((r.list.count + 1) * kept_words(r.options.operands) * sizeof *r.words);
    print_sides(&r);
    struct processes all = {r.list.count, PROCESS_FORMS, r.options.jobs, SECONDS,
                            &r,           run_forms,     lose_form};
    if (!processes_run(&all)) {
        fprintf(stderr, "no process can be made\n");
        return 2;
    }
    failed += report_summary(stdout, &r.list, r.outcomes);
    if (!write_table(&r)) {
        fprintf(stderr, "%s cannot be written\n", r.options.out);
        return 2;
    }
    if (r.options.record && !write_record(&r)) {
        fprintf(stderr, "%s cannot be written\n", r.options.record);
        return 2;
    }
    free(r.list.forms);
    truth_free(&r.truth);
    return failed || !r.list.count;
}
