/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen run: one problem or many, on a device, against the reference. */
#include "../harness/problem.h"
#include "command.h"
#include "exit_code.h"
#include "json_draft.h"
#include "options.h"
#include "plural.h"
#include "../harness/progress.h"
#include "tuning_table.h"

#include <ptxgen/pack.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    KEY_DEVICE = OPTION_COMMAND_KEYS,
    KEY_SEED,
    KEY_RANDOM_SPECS,
    KEY_PACK,
    KEY_JSON,
    MAX_MS = 64
};

struct run_options {
    const char *device, *pack;
    uint32_t ms[MAX_MS];
    unsigned m_count;
    bool m_given;
    uint64_t seed;
    uint32_t random_specs; /* 0: the problem of the options */
    bool json;
};

static const struct argp_option options_table[] = {
    {.name = "device",
     .key = KEY_DEVICE,
     .arg = "NAME",
     .doc = "auto (default), gpu, gpu:1, cpu, cpu:sm_80; `ptxgen devices` prints them"},
    {.name = "m",
     .key = OPTION_ROWS,
     .arg = "M[,M...]",
     .doc = "Tokens (1, or as many as the input file has); several are run one by one"},
    {.name = "seed", .key = KEY_SEED, .arg = "S", .doc = "Of the random data (1)"},
    {.name = "random-specs",
     .key = KEY_RANDOM_SPECS,
     .arg = "COUNT",
     .doc = "Run COUNT problems drawn at random, from seeds S, S+1 ..."},
    {.name = "pack",
     .key = KEY_PACK,
     .arg = "FILE",
     .doc = "Run the kernel that this pack has for the same options, and no other"},
    {.name = "json", .key = KEY_JSON, .doc = "Print JSON"},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct run_options *o = state->input;
    switch (key) {
    case KEY_DEVICE: o->device = arg; return 0;
    case OPTION_ROWS:
        o->m_count = parse_rows(state, arg, 0, o->ms, MAX_MS);
        o->m_given = true;
        return 0;
    case KEY_SEED: o->seed = parse_number(state, "--seed", arg, 0, UINT64_MAX); return 0;
    case KEY_RANDOM_SPECS:
        o->random_specs = (uint32_t)parse_number(state, "--random-specs", arg, 1, 1000000);
        return 0;
    case KEY_PACK: o->pack = arg; return 0;
    case KEY_JSON: o->json = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- printing ---- */

static void print_check(const char *family, const struct device *device, const struct check *c)
{
    printf("%s %s on %s\n", family, c->problem, device->facts.name);
    if (!c->outputs)
        printf("  0 outputs: there was nothing to compute\n");
    else
        printf("  %" PRIu64
               " output%s: largest error %.3g, %.3g of its bound; spread %.3g of its limit\n",
               c->outputs, plural(c->outputs), c->error, c->worst, ptxgen_tally_ratio(&c->tally));
    if (c->unbounded)
        printf("  %" PRIu64 " output%s beyond f32 on the way: not compared\n", c->unbounded,
               plural(c->unbounded));
    if (c->note[0])
        printf("  %s\n", c->note);
    if (c->source[0])
        printf("  of the pack: %s\n", c->source);
    if (c->microseconds > 0)
        printf("  %.1f us a launch (ten in a row, weights warm in L2 where they fit)\n",
               c->microseconds);
    if (!check_passed(c))
        printf("  WRONG: %s\n", c->where);
    fflush(stdout);
}

/* The document of --json; its problems are added one by one. */
struct run_report {
    struct json_draft draft;
    cJSON *problems;
};

static void report_start(struct run_report *report, const char *family, const struct device *device)
{
    json_start(&report->draft);
    json_add_string(&report->draft, report->draft.root, "family", family);
    json_add_string(&report->draft, report->draft.root, "device", device->facts.name);
    report->problems = json_add_array(&report->draft, report->draft.root, "problems");
}

static void add_check(struct run_report *report, uint64_t seed, const struct check *c)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"seed", (double)seed},
        {"outputs", (double)c->outputs},
        {"wrong", (double)c->wrong},
        {"unbounded", (double)c->unbounded},
        {"largest_error", c->error},
        {"error_of_bound", c->worst},
        {"spread_of_limit", ptxgen_tally_ratio(&c->tally)},
    };
    struct json_draft *draft = &report->draft;
    cJSON *object = json_append_object(draft, report->problems);
    json_add_string(draft, object, "problem", c->problem);
    json_add_bool(draft, object, "right", check_passed(c));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_add_number(draft, object, numbers[i].name, numbers[i].value);
    if (c->microseconds > 0)
        json_add_number(draft, object, "warm_us", c->microseconds);
    if (*c->note)
        json_add_string(draft, object, "note", c->note);
    if (*c->source)
        json_add_string(draft, object, "of_pack", c->source);
    if (!check_passed(c))
        json_add_string(draft, object, "where", c->where);
}

/* ---- running ---- */

static enum exit_code run_problems(const struct family *family,
                                   const struct family_options *family_options,
                                   const struct run_options *o, struct device *device,
                                   struct run_report *report)
{
    enum exit_code code = EXIT_OK;
    for (unsigned i = 0; i < o->m_count; i++) {
        struct run_request request = {.m = o->ms[i], .m_given = o->m_given, .seed = o->seed};
        struct check check = {0};
        ptxgen_error err = {0};
        if (family_run(family_options, &request, device, &check, &err) != PTXGEN_OK)
            return report_failure(&err);
        if (o->json)
            add_check(report, o->seed, &check);
        else
            print_check(family->name, device, &check);
        if (!check_passed(&check))
            code = EXIT_WRONG_NUMBERS;
    }
    return code;
}

/* The largest of a figure so far, and the problem that had it. */
struct extreme {
    double value;
    char problem[sizeof((struct check *)NULL)->problem];
};

static void note_extreme(struct extreme *e, double value, const struct check *check)
{
    if (!(value > e->value))
        return;
    e->value = value;
    snprintf(e->problem, sizeof e->problem, "%s", check->problem);
}

static enum exit_code run_random(const struct family *family, const struct run_options *o,
                                 struct device *device, struct run_report *report)
{
    struct check total = {0};
    uint32_t failed = 0;
    struct extreme error = {.value = -1}, spread = {.value = -1};
    struct progress progress = progress_start("random problems", o->random_specs);
    for (uint32_t i = 0; i < o->random_specs; i++) {
        struct check check = {0};
        ptxgen_error err = {0};
        if (problem_run_random(family->harness, o->seed + i, device, &check, &err) != PTXGEN_OK) {
            fprintf(stderr, "ptxgen: the problem of --random-specs 1 --seed %" PRIu64 " (%s):\n",
                    o->seed + i, check.problem);
            return report_failure(&err);
        }
        note_extreme(&error, check.worst, &check);
        note_extreme(&spread, ptxgen_tally_ratio(&check.tally), &check);
        failed += !check_passed(&check);
        if (o->json)
            add_check(report, o->seed + i, &check);
        else if (!check_passed(&check))
            printf("WRONG with --random-specs 1 --seed %" PRIu64 ": %s\n  %s\n", o->seed + i,
                   check.problem, check.where);
        check_add(&total, &check);
        progress_update(&progress, i + 1);
    }
    progress_end(&progress);
    if (o->json)
        return failed ? EXIT_WRONG_NUMBERS : EXIT_OK;
    printf("%s: %u random problem%s on %s, %u wrong\n", family->name, o->random_specs,
           plural(o->random_specs), device->facts.name, failed);
    printf("  %" PRIu64 " output%s (%" PRIu64
           " without a bound): largest error over its bound %.3g\n",
           total.outputs, plural(total.outputs), total.unbounded, total.worst);
    printf("  at %s\n", error.problem);
    printf("  widest spread %.3g of its limit\n", spread.value);
    printf("  at %s\n", spread.problem);
    return failed ? EXIT_WRONG_NUMBERS : EXIT_OK;
}

static void refuse_given_problem(const struct run_options *o, bool given)
{
    if (!o->random_specs || (!given && !o->pack))
        return;
    fputs("ptxgen: --random-specs draws problems of its own; no other option of one goes with it\n",
          stderr);
    exit(EXIT_USAGE);
}

static enum exit_code run_on(const struct family *family, struct family_options *family_options,
                             const struct run_options *o, struct device *device)
{
    struct run_report report = {.problems = NULL};
    ptxgen_error err = {0};
    ptxgen_tuning *tuning = NULL;
    enum exit_code code;
    report_start(&report, family->name, device);
    if (o->random_specs)
        code = run_random(family, o, device, &report);
    else {
        tuning = tuning_for(family, family_options, device);
        code = run_problems(family, family_options, o, device, &report);
    }
    ptxgen_tuning_free(tuning);
    if (o->json && (code == EXIT_OK || code == EXIT_WRONG_NUMBERS) &&
        json_print(&report.draft, &err) != PTXGEN_OK)
        code = report_failure(&err);
    json_free(&report.draft);
    return code;
}

/* Why a kernel of the pack is not used. */
static void print_log(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "ptxgen: %s\n", line);
}

/* With the pack, where one is named, in the place of an assembler. */
static enum exit_code run_packed(const struct family *family, struct family_options *family_options,
                                 const struct run_options *o, struct device *device)
{
    ptxgen_pack *pack = NULL;
    ptxgen_error err = {0};
    if (!o->pack)
        return run_on(family, family_options, o, device);
    ptxgen_status status = ptxgen_pack_open(o->pack, &pack, &err);
    const ptxgen_dispatch_options options = {
        .packs = &pack, .pack_count = 1, .no_cache = true, .log = print_log};
    if (status == PTXGEN_OK)
        status = ptxgen_dispatcher_create(&device->driver, &options, &device->packs, &err);
    enum exit_code code = status == PTXGEN_OK ? run_on(family, family_options, o, device)
                                              : report_undone(family->name, "run", &err);
    ptxgen_dispatcher_destroy(device->packs);
    device->packs = NULL;
    ptxgen_pack_close(pack);
    return code;
}

static int run(int argc, char **argv)
{
    static const struct argp argp = {.options = options_table, .parser = parse};
    struct run_options o = {.device = "auto", .ms = {1}, .m_count = 1, .seed = 1};
    struct given_options given;
    const struct family_arguments arguments = {
        .command = &argp, .input = &o, .with_data = true, .given = &given};
    struct family_options *family_options;
    const struct family *family = parse_family(argc, argv, &arguments, &family_options);
    refuse_given_problem(&o, given.any || o.m_given);
    struct device device;
    ptxgen_error err = {0};
    enum exit_code code;
    if (device_open(o.device, &device, &err) != PTXGEN_OK)
        code = report_undone(family->name, "run", &err);
    else
        code = run_packed(family, family_options, &o, &device);
    device_close(&device);
    free(family_options);
    return code;
}

const struct command run_command = {"run", "FAMILY [OPTION...]",
                                    "run a kernel and compare it with the reference", run};
