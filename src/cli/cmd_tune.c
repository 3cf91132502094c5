/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptxgen tune: measures the tiles that a family's plan may have, M by M, and keeps the best for the
 * plans of later processes (ptxgen/tune.h).
 */
#include "../harness/bench_time.h"
#include "command.h"
#include "exit_code.h"
#include "options.h"
#include "plural.h"
#include "../harness/progress.h"
#include "tune_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_DEVICE = OPTION_COMMAND_KEYS,
    KEY_SHAPE,
    KEY_REPLAYS,
    KEY_FOLDER,
    KEY_DRY_RUN,
    MAX_SHAPES = 64
};

struct tune_options {
    const char *device, *folder;
    struct shape shapes[MAX_SHAPES];
    unsigned shape_count; /* 0: the family options' own */
    uint32_t ms[TUNE_MOST_MS];
    unsigned m_count;
    unsigned replays;
    bool dry_run;
};

/* ---- options ---- */

static const struct argp_option options_table[] = {
    {.name = "device",
     .key = KEY_DEVICE,
     .arg = "NAME",
     .doc = "gpu (default) or gpu:1; on cpu the times mean nothing"},
    {.name = "shape",
     .key = KEY_SHAPE,
     .arg = "KxN[,KxN...]",
     .doc = "Shapes to tune, K by output features, instead of the kernel's options"},
    {.name = "m",
     .key = OPTION_ROWS,
     .arg = "M[,M...]",
     .doc = "Tokens of a launch to measure, at most 32 (19 from 1 to 4096); M between two are "
            "served as the larger, M above the last as before"},
    {.name = "replays",
     .key = KEY_REPLAYS,
     .arg = "COUNT",
     .doc = "Measured replays of a graph (5)"},
    {.name = "folder",
     .key = KEY_FOLDER,
     .arg = "PATH",
     .doc = "Keep the choice there, instead of in the default cache folder"},
    {.name = "dry-run", .key = KEY_DRY_RUN, .doc = "Measure and print, but keep nothing"},
    {0},
};

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void parse_ms(struct argp_state *state, const char *text, struct tune_options *o)
{
    o->m_count = parse_rows(state, text, 1, o->ms, TUNE_MOST_MS);
    qsort(o->ms, o->m_count, sizeof *o->ms, by_size);
    for (unsigned i = 1; i < o->m_count; i++)
        if (o->ms[i] == o->ms[i - 1])
            argp_error(state, "%s: %u is there twice", text, o->ms[i]);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct tune_options *o = state->input;
    switch (key) {
    case KEY_DEVICE: o->device = arg; return 0;
    case KEY_SHAPE: o->shape_count = parse_shapes(state, arg, o->shapes, MAX_SHAPES); return 0;
    case OPTION_ROWS: parse_ms(state, arg, o); return 0;
    case KEY_REPLAYS:
        o->replays = (unsigned)parse_number(state, "--replays", arg, 1, 1000);
        return 0;
    case KEY_FOLDER: o->folder = arg; return 0;
    case KEY_DRY_RUN: o->dry_run = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- measuring ---- */

/* One spec being tuned. */
struct tuning {
    const struct tune_options *options;
    const ptxgen_family *kernels;
    struct device *device;
    struct bench_subject subject;
    struct tune_table table;
    struct progress progress;
};

/* Launches that take about 2 ms, at least one for each copy of the weights. */
static unsigned launches_of(const struct tuning *t, double expected)
{
    const unsigned copies = t->subject.copies;
    double wanted = expected > 0 ? 2e-3 / expected : 100;
    unsigned rounds = (unsigned)((wanted < 200 ? wanted : 200) / copies) + 1;
    return t->device->emulated ? 1 : rounds * copies;
}

static double least_at(const struct tune_table *table, unsigned m)
{
    double least = 0;
    for (unsigned i = 0; i < table->tile_count; i++) {
        double seconds = table->tiles[i].seconds[m];
        if (seconds > 0 && (least <= 0 || seconds < least))
            least = seconds;
    }
    return least;
}

/* Times the subject as it is. */
static ptxgen_status measure(struct tuning *t, unsigned m, struct tune_tile *tile,
                             ptxgen_error *err)
{
    struct bench_subject *s = &t->subject;
    struct timing timing;
    double expected = least_at(&t->table, m);
    if (expected <= 0 && m > 0)
        expected = least_at(&t->table, m - 1);
    ptxgen_status status = bench_time(t->device, s->launch, s->state, s->copies,
                                      launches_of(t, expected), t->options->replays, &timing, err);
    tile->seconds[m] = timing.median;
    tile->entry = s->entry;
    return status;
}

static unsigned find_tile(const struct tune_table *table, const uint32_t *numbers)
{
    unsigned i = 0;
    while (i < table->tile_count &&
           memcmp(table->tiles[i].numbers, numbers, sizeof table->tiles[i].numbers) != 0)
        i++;
    return i;
}

/* The plan as it is without tuning. */
static ptxgen_status measure_own(struct tuning *t, ptxgen_error *err)
{
    struct tune_table *table = &t->table;
    ptxgen_status status = PTXGEN_OK;
    for (unsigned m = 0; status == PTXGEN_OK && m < table->m_count; m++) {
        status = t->subject.set_m(&t->subject, table->ms[m], err);
        if (status != PTXGEN_OK)
            break;
        table->own[m] = find_tile(table, t->subject.tile);
        if (table->own[m] == table->tile_count)
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                               "%s: the plan's tile for M = %u is none of its candidates",
                               t->kernels->name, table->ms[m]);
        status = measure(t, m, &table->tiles[table->own[m]], err);
    }
    return status;
}

/* A tile that has fallen behind by half and falls further back has no chance at a larger M. */
static bool is_hopeless(const struct tune_table *table, const struct tune_tile *tile, unsigned m)
{
    if (m < 2 || tile->seconds[m - 1] <= 0 || tile->seconds[m - 2] <= 0)
        return false;
    double before = tile->seconds[m - 2] / least_at(table, m - 2);
    double last = tile->seconds[m - 1] / least_at(table, m - 1);
    return last > 1.5 && last > before;
}

static ptxgen_status measure_tile(struct tuning *t, struct tune_tile *tile, ptxgen_error *err)
{
    struct tune_table *table = &t->table;
    ptxgen_status status = PTXGEN_OK;
    t->subject.use_tile(t->subject.state, tile->numbers);
    for (unsigned m = 0; status == PTXGEN_OK && m < table->m_count; m++) {
        if (tile->seconds[m] > 0)
            continue;
        if (is_hopeless(table, tile, m))
            break;
        status = t->subject.set_m(&t->subject, table->ms[m], err);
        if (status == PTXGEN_OK)
            status = measure(t, m, tile, err);
    }
    return status;
}

static ptxgen_status measure_all(struct tuning *t, ptxgen_error *err)
{
    struct tune_table *table = &t->table;
    ptxgen_status status = measure_own(t, err);
    for (unsigned i = 0; status == PTXGEN_OK && i < table->tile_count; i++) {
        status = measure_tile(t, &table->tiles[i], err);
        progress_update(&t->progress, i + 1);
    }
    return status;
}

/* ---- the report ---- */

static void print_tile(const char *const *names, const struct tune_tile *tile)
{
    printf("%s", tile->entry);
    for (size_t i = 0; names[i]; i++)
        printf(" %s=%u", names[i], tile->numbers[i]);
    putchar('\n');
}

static void print_table(const struct tuning *t, const void *spec)
{
    const struct tune_table *table = &t->table;
    double ratios = 0;
    char words[160] = "";
    if (t->kernels->describe)
        t->kernels->describe(spec, words, sizeof words);
    printf("%s %s on %s: %u tile%s\n", t->kernels->name, words, t->device->facts.name,
           table->tile_count, plural(table->tile_count));
    printf("  %6s  %10s  %10s  %6s  tile\n", "M", "plan us", "tuned us", "gain");
    for (unsigned m = 0; m < table->m_count; m++) {
        const struct tune_tile *tile = &table->tiles[table->chosen[m]];
        double own = table->tiles[table->own[m]].seconds[m], tuned = tile->seconds[m];
        ratios += own / tuned;
        printf("  %6u  %10.2f  %10.2f  %4.1f %%  ", table->ms[m], 1e6 * own, 1e6 * tuned,
               100 * (own / tuned - 1));
        if (table->chosen[m] == table->own[m])
            printf("the plan's own: ");
        print_tile(t->kernels->tiling->names, tile);
    }
    printf("  on average %.1f %% faster\n", 100 * (ratios / table->m_count - 1));
    fflush(stdout);
}

/* ---- a shape ---- */

static ptxgen_status list_tiles(struct tuning *t, const void *spec, const ptxgen_target *target,
                                ptxgen_error *err)
{
    struct tune_table *table = &t->table;
    void *plan = malloc(t->kernels->plan_bytes);
    if (!plan)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a plan");
    ptxgen_status status = t->kernels->make_plan(spec, target, plan, err);
    while (status == PTXGEN_OK && table->tile_count < TUNE_MOST_TILES &&
           t->kernels->tiling->candidate(plan, table->tile_count,
                                         table->tiles[table->tile_count].numbers))
        table->tiles[table->tile_count++].entry = "";
    free(plan);
    return status;
}

/* Says before minutes of measuring that there is no folder to keep the choice in. */
static ptxgen_status check_folder(const struct tune_options *o, ptxgen_error *err)
{
    ptxgen_cache *cache = NULL;
    if (o->dry_run)
        return PTXGEN_OK;
    ptxgen_status status =
        ptxgen_cache_open(&(ptxgen_cache_options){.folder = o->folder}, &cache, err);
    ptxgen_cache_close(cache);
    return status;
}

static ptxgen_status keep(const struct tuning *t, const void *spec, const ptxgen_target *target,
                          ptxgen_error *err)
{
    ptxgen_tuned_range ranges[TUNE_MOST_MS];
    unsigned count = tune_ranges(&t->table, ranges);
    ptxgen_cache *cache;
    if (t->options->dry_run)
        return PTXGEN_OK;
    ptxgen_status status =
        ptxgen_cache_open(&(ptxgen_cache_options){.folder = t->options->folder}, &cache, err);
    if (status != PTXGEN_OK)
        return status;
    status =
        ptxgen_tuning_store(cache, &t->device->facts, t->kernels, spec, target, ranges, count, err);
    if (status == PTXGEN_OK)
        printf("  kept in %s/tuning\n", ptxgen_cache_folder(cache));
    ptxgen_cache_close(cache);
    return status;
}

static ptxgen_status tune_shape(const struct family *family,
                                const struct family_options *family_options,
                                const struct tune_options *o, struct device *device,
                                ptxgen_error *err)
{
    struct tuning t = {.options = o, .kernels = family->harness->family(), .device = device};
    const void *spec = family_options->spec;
    const ptxgen_target target = ptxgen_device_target(&device->facts);
    if (!t.kernels->tiling)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s has no tiles to choose",
                           family->name);
    t.table.m_count = o->m_count;
    memcpy(t.table.ms, o->ms, sizeof o->ms);
    ptxgen_status status = family_bench(family_options, o->ms[0], device, &t.subject, err);
    if (status != PTXGEN_OK)
        return status;
    if (!t.subject.set_m || !t.subject.use_tile)
        status = ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s cannot be timed tile by tile",
                             family->name);
    if (status == PTXGEN_OK)
        status = list_tiles(&t, spec, &target, err);
    t.progress = progress_start("tiles", t.table.tile_count);
    if (status == PTXGEN_OK)
        status = measure_all(&t, err);
    progress_end(&t.progress);
    if (status == PTXGEN_OK) {
        tune_choose(&t.table);
        print_table(&t, spec);
        status = keep(&t, spec, &target, err);
    }
    t.subject.destroy(t.subject.state);
    return status;
}

static ptxgen_status tune_shapes(const struct family *family, struct family_options *family_options,
                                 const struct tune_options *o, struct device *device,
                                 ptxgen_error *err)
{
    ptxgen_status status = check_folder(o, err);
    for (unsigned i = 0; status == PTXGEN_OK && i < (o->shape_count ? o->shape_count : 1); i++) {
        if (o->shape_count)
            family_set_shape(family_options, o->shapes[i].k, o->shapes[i].n);
        status = tune_shape(family, family_options, o, device, err);
    }
    return status;
}

static int tune(int argc, char **argv)
{
    static const struct argp argp = {.options = options_table, .parser = parse};
    struct tune_options o = {
        .device = "gpu",
        .ms = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096},
        .m_count = 19,
        .replays = 5};
    struct given_options given;
    const struct family_arguments arguments = {.command = &argp, .input = &o, .given = &given};
    struct family_options *family_options;
    const struct family *family = parse_family(argc, argv, &arguments, &family_options);
    refuse_two_shapes(o.shape_count && given.shape);
    struct device device;
    ptxgen_error err = {0};
    enum exit_code code = EXIT_OK;
    if (device_open(o.device, &device, &err) != PTXGEN_OK ||
        tune_shapes(family, family_options, &o, &device, &err) != PTXGEN_OK)
        code = report_undone(family->name, "tuned", &err);
    device_close(&device);
    free(family_options);
    return code;
}

const struct command tune_command = {"tune", "FAMILY [OPTION...]",
                                     "measure tiles on this device, and keep the best", tune};
