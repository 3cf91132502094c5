/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tuned choices: that they come back from the file and reach the launch, and that whatever is stale,
 * damaged or made up in the file leaves the plan as it would be without it.
 */
#include "src/harness/marlin.h"
#include "src/runtime/manifest.h"
#include "src/runtime/tuning.h"
#include "tests/dispatch/folder.h"
#include "tests/status.h"

#include <ptxgen/emulator.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct bench {
    struct device device;
    ptxgen_target target;
    ptxgen_marlin_spec spec;
    char folder[FOLDER_PATH], file[FOLDER_PATH + 16];
    ptxgen_cache *cache;
};

static int setup(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    ptxgen_error err;
    if (device_open("cpu:sm_90", &b->device, &err) != PTXGEN_OK)
        return -1;
    b->target = ptxgen_device_target(&b->device.facts);
    b->spec = (ptxgen_marlin_spec){.k = 512, .n = 256, .group_size = 128, .type = PTXGEN_F16};
    folder_make(b->folder);
    snprintf(b->file, sizeof b->file, "%s/%s", b->folder, TUNING_NAME);
    *state = b;
    return ptxgen_cache_open(&(ptxgen_cache_options){.folder = b->folder}, &b->cache, NULL);
}

static int teardown(void **state)
{
    struct bench *b = *state;
    ptxgen_cache_close(b->cache);
    folder_remove(b->folder);
    device_close(&b->device);
    free(b);
    return 0;
}

/* ---- choices ---- */

static const ptxgen_family *marlin(void)
{
    return ptxgen_marlin_family();
}

static ptxgen_marlin_plan own_plan(const struct bench *b)
{
    ptxgen_marlin_plan plan;
    assert_int_equal(ptxgen_marlin_make_plan(&b->spec, &b->target, &plan, NULL), PTXGEN_OK);
    return plan;
}

/* The numbers of a tile, by the names of the family's tiling. */
struct numbers {
    uint32_t of[PTXGEN_TILE_NUMBERS];
};
static struct numbers numbers_of(const ptxgen_tile *tile)
{
    ptxgen_tile own = *tile;
    struct numbers numbers = {{0}};
    for (size_t i = 0; marlin()->tiling->names[i]; i++)
        numbers.of[i] = *ptxgen_tile_member(&own, marlin()->tiling->names[i]);
    return numbers;
}

/* A range that is served by a tile of `tile_m` rows other than the plan's own. */
static ptxgen_tuned_range other_tile(const struct bench *b, uint32_t tile_m, uint32_t to_m)
{
    const ptxgen_marlin_plan plan = own_plan(b);
    ptxgen_tuned_range range = {.to_m = to_m};
    for (size_t i = 0; marlin()->tiling->candidate(&plan, i, range.tile); i++) {
        bool is_own = false;
        for (uint32_t j = 0; j < plan.variant_count; j++) {
            struct numbers numbers = numbers_of(&plan.variants[j]);
            is_own |= memcmp(numbers.of, range.tile, sizeof range.tile) == 0;
        }
        if (range.tile[0] == tile_m && !is_own)
            return range;
    }
    fail_msg("no other tile of %u rows", tile_m);
    return range;
}

static void store(const struct bench *b, const ptxgen_tuned_range *ranges, size_t count)
{
    ptxgen_error err = {0};
    assert_ok(ptxgen_tuning_store(b->cache, &b->device.facts, marlin(), &b->spec, &b->target,
                                  ranges, count, &err),
              &err);
}

/* Two ranges; both tiles differ from the plan's. */
static void store_two(const struct bench *b, ptxgen_tuned_range ranges[2])
{
    ranges[0] = other_tile(b, 8, 4);
    ranges[1] = other_tile(b, 16, 40);
    store(b, ranges, 2);
}

static ptxgen_tuning *load(const struct bench *b)
{
    ptxgen_tuning *tuning;
    assert_int_equal(ptxgen_tuning_load(b->cache, &b->device.facts, &tuning, NULL), PTXGEN_OK);
    return tuning;
}

static bool plans_by(const struct bench *b, const ptxgen_tuning *tuning, ptxgen_marlin_plan *plan)
{
    bool tuned;
    assert_int_equal(
        ptxgen_tuned_plan(tuning, marlin(), &b->spec, &b->target, plan, &tuned, NULL), PTXGEN_OK);
    return tuned;
}

/* By what the folder has, the plan is the family's own. */
static void assert_ignored(const struct bench *b, const char *complaint)
{
    ptxgen_tuning *tuning = load(b);
    ptxgen_marlin_plan plan, own = own_plan(b);
    assert_false(plans_by(b, tuning, &plan));
    assert_memory_equal(&plan, &own, sizeof own);
    if (complaint)
        assert_string_equal(ptxgen_tuning_complaint(tuning), complaint);
    else
        assert_null(ptxgen_tuning_complaint(tuning));
    ptxgen_tuning_free(tuning);
}

/* ---- what it is for ---- */

static void a_stored_choice_plans_what_it_says_and_the_rest_as_before(void **state)
{
    const struct bench *b = *state;
    ptxgen_tuned_range ranges[2], found[PTXGEN_TUNED_RANGES];
    store_two(b, ranges);
    ptxgen_tuning *tuning = load(b);
    assert_int_equal(ptxgen_tuning_find(tuning, marlin(), &b->spec, &b->target, found), 2);
    assert_memory_equal(found, ranges, sizeof ranges);
    ptxgen_marlin_plan plan, own = own_plan(b);
    assert_true(plans_by(b, tuning, &plan));
    ptxgen_tuning_free(tuning);
    for (uint32_t m = 1; m <= 40; m++) {
        struct numbers numbers = numbers_of(ptxgen_marlin_choose(&plan, m));
        assert_memory_equal(numbers.of, ranges[m > 4].tile, sizeof numbers.of);
    }
    for (uint32_t m = 4000; m < 4010; m++)
        assert_memory_equal(ptxgen_marlin_choose(&plan, m), ptxgen_marlin_choose(&own, m),
                            sizeof(ptxgen_tile));
    for (uint32_t i = 1; i < plan.variant_count; i++)
        assert_true(plan.variants[i - 1].tile_m <= plan.variants[i].tile_m);
}

static void equal_tables_give_equal_text(void **state)
{
    const struct bench *b = *state;
    ptxgen_tuned_range ranges[2];
    store_two(b, ranges);
    char *texts[2];
    for (int i = 0; i < 2; i++) {
        ptxgen_tuning *tuning = load(b);
        ptxgen_marlin_plan plan;
        ptx_module *module = ptx_module_create(&b->target.ptx, NULL);
        const char *text;
        assert_true(plans_by(b, tuning, &plan));
        assert_int_equal(ptxgen_marlin_emit(&plan, 3, module, NULL), PTXGEN_OK);
        assert_int_equal(ptx_module_text(module, 0, &text, NULL, NULL), PTXGEN_OK);
        texts[i] = strdup(text);
        ptx_module_destroy(module);
        ptxgen_tuning_free(tuning);
    }
    assert_string_equal(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
}

static struct check run_tuned(struct bench *b, const ptxgen_tuning *tuning, uint32_t m,
                              uint64_t seed)
{
    const struct kernel_request request = {.spec = &b->spec, .tuning = tuning};
    struct random r = random_start(seed);
    struct check check = {.outputs = 0};
    struct problem p;
    ptxgen_error err;
    assert_ok(problem_allocate(&p, &marlin_harness, &request, m, NULL, &b->device, &err), &err);
    assert_ok(problem_fill(&p, &r, &err), &err);
    assert_ok(problem_check(&p, &b->device, &check, &err), &err);
    problem_release(&p);
    return check;
}

static void a_tuned_plan_computes_the_right_numbers(void **state)
{
    struct bench *b = *state;
    ptxgen_tuned_range ranges[2];
    store_two(b, ranges);
    ptxgen_tuning *tuning = load(b);
    for (uint32_t m = 3; m <= 48; m += 15) {
        struct check check = run_tuned(b, tuning, m, m);
        if (!check_passed(&check))
            fail_msg("M = %u: %s", m, check.where);
        assert_int_equal(check.outputs, (uint64_t)m * b->spec.n);
    }
    ptxgen_tuning_free(tuning);
}

/* Those that the model leaves out of the plan too. */
static void every_candidate_can_be_tuned_and_computes_the_right_numbers(void **state)
{
    struct bench *b = *state;
    const ptxgen_marlin_plan own = own_plan(b);
    ptxgen_tuned_range range = {.to_m = 40};
    size_t count = 0;
    for (; marlin()->tiling->candidate(&own, count, range.tile); count++) {
        store(b, &range, 1);
        ptxgen_tuning *tuning = load(b);
        ptxgen_marlin_plan plan;
        assert_true(plans_by(b, tuning, &plan));
        struct numbers numbers = numbers_of(ptxgen_marlin_choose(&plan, 33));
        assert_memory_equal(numbers.of, range.tile, sizeof range.tile);
            struct check check = run_tuned(b, tuning, 33, count);
        if (!check_passed(&check))
            fail_msg("candidate %zu: %s", count, check.where);
        ptxgen_tuning_free(tuning);
    }
    assert_true(count > own.variant_count);
}

static void candidates_are_no_larger_than_what_will_be_launched_asks_for(void **state)
{
    struct bench *b = *state;
    b->spec.max_m = 16;
    const ptxgen_marlin_plan own = own_plan(b);
    uint32_t tile[PTXGEN_TILE_NUMBERS];
    for (size_t i = 0; marlin()->tiling->candidate(&own, i, tile); i++)
        assert_true(tile[0] <= 16);
}

static void a_dispatcher_launches_what_was_tuned_unless_told_not_to(void **state)
{
    struct bench *b = *state;
    ptxgen_tuned_range ranges[2];
    store_two(b, ranges);
    ptxgen_tuning *tuning = load(b);
    ptxgen_marlin_plan own = own_plan(b), tuned;
    assert_true(plans_by(b, tuning, &tuned));
    const struct {
        ptxgen_dispatch_options options;
        const ptxgen_marlin_plan *plan;
        ptxgen_origin origin;
    } cases[] = {
        {{.cache = b->cache}, &tuned, PTXGEN_ORIGIN_ASSEMBLER},
        {{.cache = b->cache, .no_tuning = true}, &own, PTXGEN_ORIGIN_ASSEMBLER},
        {{.no_cache = true, .tuning = tuning}, &tuned, PTXGEN_ORIGIN_ASSEMBLER},
        {{.no_cache = true}, &own, PTXGEN_ORIGIN_ASSEMBLER},
        {{.cache = b->cache, .tuning = tuning}, &tuned, PTXGEN_ORIGIN_DISK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_dispatcher *dispatcher;
        ptxgen_loaded *loaded;
        assert_int_equal(ptxgen_dispatcher_create(&b->device.driver, &cases[i].options, &dispatcher,
                                                  NULL), PTXGEN_OK);
        assert_int_equal(ptxgen_dispatch(dispatcher, marlin(), &b->spec, &loaded, NULL), PTXGEN_OK);
        const ptxgen_marlin_plan *plan = ptxgen_loaded_plan(loaded);
        assert_memory_equal(&plan->variant_count, &cases[i].plan->variant_count,
                            sizeof own - offsetof(ptxgen_marlin_plan, variant_count));
        assert_int_equal(ptxgen_loaded_report(loaded)->origin, cases[i].origin);
        ptxgen_release(loaded);
        ptxgen_dispatcher_destroy(dispatcher);
    }
    ptxgen_tuning_free(tuning);
}

/* ---- storing ---- */

static void a_new_choice_replaces_the_old_one_and_no_other(void **state)
{
    struct bench *b = *state;
    ptxgen_tuned_range first = other_tile(b, 8, 8), ranges[2], found[PTXGEN_TUNED_RANGES];
    store(b, &first, 1);
    b->spec.bias = 1;
    store(b, &first, 1);
    b->spec.bias = 0;
    store_two(b, ranges);
    ptxgen_tuning *tuning = load(b);
    assert_int_equal(ptxgen_tuning_find(tuning, marlin(), &b->spec, &b->target, found), 2);
    b->spec.bias = 1;
    assert_int_equal(ptxgen_tuning_find(tuning, marlin(), &b->spec, &b->target, found), 1);
    ptxgen_tuning_free(tuning);
    size_t size;
    char *text = file_read(b->file, &size), *at = text;
    int entries = 0;
    while ((at = strstr(at, "family: ")) != NULL)
        entries++, at++;
    assert_int_equal(entries, 2);
    free(text);
}

static void the_file_stays_below_its_limit_and_keeps_the_newest(void **state)
{
    struct bench *b = *state;
    struct stat status;
    ptxgen_tuned_range range = other_tile(b, 8, 8), found[PTXGEN_TUNED_RANGES];
    enum { SPECS = 300 };
    for (uint32_t i = 0; i < SPECS; i++) {
        b->spec.max_m = 10 + i;
        store(b, &range, 1);
    }
    assert_int_equal(stat(b->file, &status), 0);
    assert_in_range(status.st_size, TUNING_MOST_BYTES - 1024, TUNING_MOST_BYTES);
    assert_int_equal(status.st_mode & 0777, 0600);
    ptxgen_tuning *tuning = load(b);
    assert_null(ptxgen_tuning_complaint(tuning));
    assert_int_equal(ptxgen_tuning_find(tuning, marlin(), &b->spec, &b->target, found), 1);
    b->spec.max_m = 10;
    assert_int_equal(ptxgen_tuning_find(tuning, marlin(), &b->spec, &b->target, found), 0);
    ptxgen_tuning_free(tuning);
}

static void what_cannot_be_written_is_not_stored(void **state)
{
    struct bench *b = *state;
    const ptxgen_tuned_range right = other_tile(b, 8, 8);
    static char name[TUNING_ENTRY_BYTES];
    memset(name, 'x', sizeof name - 1);
    const char *const names[] = {name, NULL};
    ptxgen_tiling tiling = *marlin()->tiling;
    ptxgen_family wordy = *marlin();
    char says[FOLDER_PATH + 100];
    ptxgen_error err = {0};
    tiling.names = names;
    wordy.tiling = &tiling;
    assert_refusal(ptxgen_tuning_store(b->cache, &b->device.facts, &wordy, &b->spec, &b->target,
                                       &right, 1, &err),
                   &err, PTXGEN_ERROR_UNSUPPORTED,
                   "marlin: the spec and its ranges are too long to be kept");
    assert_int_not_equal(access(b->file, F_OK), 0);
    assert_int_equal(mknod(b->file, S_IFSOCK | 0600, 0), 0);
    snprintf(says, sizeof says, "%s, to which the choice would be added: it cannot be opened",
             b->file);
    assert_refusal(ptxgen_tuning_store(b->cache, &b->device.facts, marlin(), &b->spec, &b->target,
                                       &right, 1, &err),
                   &err, PTXGEN_ERROR_FILE, says);
    unlink(b->file);
}

static void what_no_plan_can_use_is_not_stored(void **state)
{
    struct bench *b = *state;
    const ptxgen_tuned_range right = other_tile(b, 8, 8);
    ptxgen_marlin_plan plan = own_plan(b);
    ptxgen_tuned_range own = {.to_m = 20}, odd = right, falling[2] = {right, right},
                       past_all[2] = {right, right};
    struct numbers numbers = numbers_of(&plan.variants[0]);
    memcpy(own.tile, numbers.of, sizeof own.tile);
    odd.tile[1]++;
    falling[1].to_m = 8;
    past_all[0].to_m = UINT32_MAX;
    const ptxgen_tuned_range two_of_one_entry[2] = {right, own};
    const struct {
        const ptxgen_tuned_range *ranges;
        size_t count;
        const char *words;
    } cases[] = {{&odd, 1, "marlin: the tile for M up to 8 is none that this plan may have"},
                 {two_of_one_entry, 2, "marlin: two different tiles are both marlin_m8"},
                 {falling, 2, "marlin: a range of M up to 8 follows one up to 8"},
                 {past_all, 2, "marlin: a range of M up to 8 follows one up to 4294967295"},
                 {&right, 0, "marlin: 0 ranges of M are not 1 to 32"},
                 {&right, PTXGEN_TUNED_RANGES + 1, "marlin: 33 ranges of M are not 1 to 32"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_error err = {0};
        assert_int_not_equal(ptxgen_tuning_store(b->cache, &b->device.facts, marlin(), &b->spec,
                                                 &b->target, cases[i].ranges, cases[i].count, &err),
                             PTXGEN_OK);
        assert_says(&err, cases[i].words);
    }
    assert_int_not_equal(access(b->file, F_OK), 0);
}

/* ---- stale ---- */

static void what_was_measured_elsewhere_or_for_something_else_is_ignored(void **state)
{
    struct bench *b = *state;
    ptxgen_tuned_range ranges[2], found[PTXGEN_TUNED_RANGES];
    ptxgen_family newer = *marlin();
    newer.plan_version++;
    store_two(b, ranges);
    enum { SAME, PLAN_VERSION, NAME, CAPABILITY, DRIVER, MULTIPROCESSORS, MAX_PTX, SPEC, CASES };
    for (int i = SAME; i < CASES; i++) {
        ptxgen_device_facts facts = b->device.facts;
        ptxgen_target target = b->target;
        ptxgen_marlin_spec spec = b->spec;
        facts.name[0] ^= i == NAME;
        facts.compute_capability += i == CAPABILITY;
        facts.driver_version += 10 * (i == DRIVER);
        target.multiprocessors += i == MULTIPROCESSORS;
        target.ptx.max_ptx += i == MAX_PTX;
        spec.n += 8 * (i == SPEC);
        ptxgen_tuning *tuning;
        assert_int_equal(ptxgen_tuning_load(b->cache, &facts, &tuning, NULL), PTXGEN_OK);
        assert_int_equal(ptxgen_tuning_find(tuning, i == PLAN_VERSION ? &newer : marlin(), &spec,
                                            &target, found),
                         i == SAME ? 2 : 0);
        ptxgen_tuning_free(tuning);
    }
}

/* ---- damaged ---- */

static void assert_malformed(const struct bench *b, const char *text, size_t length)
{
    ptxgen_tuning *tuning;
    ptxgen_error err;
    assert_int_equal(ptxgen_tuning_parse(text, length, &b->device.facts, &tuning, &err),
                     PTXGEN_ERROR_MALFORMED);
    assert_null(tuning);
}

static void a_file_cut_anywhere_or_with_any_bit_flipped_is_ignored(void **state)
{
    const struct bench *b = *state;
    ptxgen_tuned_range ranges[2];
    size_t size;
    store_two(b, ranges);
    char *text = file_read(b->file, &size);
    ptxgen_tuning *tuning;
    assert_int_equal(ptxgen_tuning_parse(text, size, &b->device.facts, &tuning, NULL), PTXGEN_OK);
    ptxgen_tuning_free(tuning);
    for (size_t length = 0; length < size; length++)
        assert_malformed(b, text, length);
    for (size_t i = 0; i < 8 * size; i++) {
        text[i / 8] ^= (char)(1 << i % 8);
        assert_malformed(b, text, size);
        text[i / 8] ^= (char)(1 << i % 8);
    }
    text[size / 2] = '\0';
    file_write(b->file, text, size);
    assert_ignored(b, "its checksum is wrong");
    text[0] = 'q';
    file_write(b->file, text, size);
    assert_ignored(b, "its first line is another");
    free(text);
}

static void a_file_that_others_could_have_written_is_ignored(void **state)
{
    const struct bench *b = *state;
    ptxgen_tuned_range ranges[2];
    char elsewhere[sizeof b->file + 8];
    store_two(b, ranges);
    assert_int_equal(chmod(b->file, 0622), 0);
    assert_ignored(b, "others may write to it");
    assert_int_equal(chmod(b->file, 0600), 0);
    snprintf(elsewhere, sizeof elsewhere, "%s.other", b->file);
    assert_int_equal(rename(b->file, elsewhere), 0);
    assert_ignored(b, NULL); /* there is none */
    assert_int_equal(symlink(elsewhere, b->file), 0);
    assert_ignored(b, "it is a symbolic link");
    assert_int_equal(unlink(b->file), 0);
    assert_int_equal(mkdir(b->file, 0700), 0);
    assert_ignored(b, "it is not a plain file");
    assert_int_equal(rmdir(b->file), 0);
    assert_int_equal(rename(elsewhere, b->file), 0);
    assert_int_equal(truncate(b->file, TUNING_MOST_BYTES + 1), 0);
    assert_ignored(b, "it is too long");
    store_two(b, ranges); /* takes its place */
    assert_int_equal(chmod(b->folder, 0722), 0);
    assert_ignored(b, "the cache folder cannot be opened, or is refused");
}

/* ---- made up, with the checksum right ---- */

/* The file with `body` between its first and its last line. */
static void forge(const struct bench *b, const char *body)
{
    size_t size = strlen(body) + 256;
    char *text = malloc(size);
    size_t used = (size_t)snprintf(text, size, TUNING_SCHEMA "%s", body);
    file_write(b->file, text, checksum_append(text, used, TUNING_CHECKSUM));
    free(text);
}

static void lines_that_we_would_not_write_are_ignored(void **state)
{
    const struct bench *b = *state;
    static const char *const lines[] = {
        "",
        "m 1-8:\n",
        "m 1-8: tile_m=8\n",
        "m 1-8: tile_m=8 warp_n=64 wn=2 wk=4 stages=8 steps=1 ctas=1\n",
        "m 1-8: tile_m=24 warp_n=64 wn=2 wk=4 stages=8 steps=1 ctas=1 pass_m=8\n",
        "m 1-8: tile_m=8 warp_n=64 wn=2 wk=4 stages=8 steps=1 ctas=1 pass_m=4294967304\n",
        "m 1-8: tile_m=8 warp_n=64 wn=2 wk=4 stages=8 steps=1 ctas=1 pass_m=-8\n",
        "m 1-0: ", "m 2-8: ", "m 1-4294967297: ", "m +1-8: ", "m 01-8: ", "m 1-8 : ", "n 1-8: ",
        "m 99999999999999999999999-8: ", "m ", "m", "\n", "\n\n\n",
    };
    ptxgen_tuned_range range = other_tile(b, 8, 8);
    size_t size;
    store(b, &range, 1);
    char *text = file_read(b->file, &size), *line = strstr(text, "m 1-8: ");
    char good[256], body[4096];
    assert_non_null(line);
    snprintf(good, sizeof good, "%.*s", (int)strcspn(line, "\n") + 1, line);
    *line = '\0';
    const char *head = text + sizeof TUNING_SCHEMA - 1;
    snprintf(body, sizeof body, "%s%s\n", head, good);
    forge(b, body);
    ptxgen_tuning *tuning = load(b);
    ptxgen_marlin_plan plan;
    assert_true(plans_by(b, tuning, &plan)); /* or the forgeries below prove nothing */
    ptxgen_tuning_free(tuning);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        bool cut = *lines[i] && !strchr(lines[i], '\n');
        snprintf(body, sizeof body, "%s%s%s\n", head, lines[i], cut ? good + 7 : "");
        forge(b, body);
        assert_ignored(b, NULL);
        if (*lines[i] == '\n')
            continue; /* ends an entry */
        snprintf(body, sizeof body, "%s%s%s%s\n", head, good, *lines[i] ? lines[i] : "x\n",
                 cut ? good + 7 : "");
        forge(b, body);
        assert_ignored(b, NULL);
    }
    size_t used = (size_t)snprintf(body, sizeof body, "%s", head);
    for (unsigned i = 1; i <= PTXGEN_TUNED_RANGES + 1; i++)
        used += (size_t)snprintf(body + used, sizeof body - used, "m %u-%u: %s", i, i, good + 7);
    snprintf(body + used, sizeof body - used, "\n");
    forge(b, body);
    assert_ignored(b, NULL);
    snprintf(body, sizeof body, "%sm 1-4294967295: %sm 0-8: %s\n", head, good + 7, good + 7);
    forge(b, body);
    assert_ignored(b, NULL);
    free(text);
}

/* Whatever stands in the file, a plan has the family's own tiles or candidates. */
static void random_forgeries_give_plans_of_candidates_only(void **state)
{
    const struct bench *b = *state;
    ptxgen_tuned_range ranges[2];
    size_t size, tuned_plans = 0;
    struct random r = random_start(11);
    const ptxgen_marlin_plan own = own_plan(b);
    store_two(b, ranges);
    char *text = file_read(b->file, &size);
    text[size - sizeof TUNING_CHECKSUM + 1 - DIGEST_HEX - 1] = '\0';
    for (int i = 0; i < 3000; i++) {
        char *body = strdup(text + sizeof TUNING_SCHEMA - 1);
        size_t length = strlen(body);
        for (uint32_t edits = 1 + random_below(&r, 3); edits; edits--)
            body[random_below(&r, (uint32_t)length)] = "\n 0123456789-:=m"[random_below(&r, 16)];
        forge(b, body);
        free(body);
        ptxgen_tuning *tuning = load(b);
        ptxgen_marlin_plan plan;
        assert_null(ptxgen_tuning_complaint(tuning));
        tuned_plans += plans_by(b, tuning, &plan);
        ptxgen_tuning_free(tuning);
        for (uint32_t v = 0; v < plan.variant_count; v++) {
            ptxgen_tuned_range any = {.to_m = 0};
            struct numbers numbers = numbers_of(&plan.variants[v]);
            bool known = false;
            for (size_t c = 0; !known && marlin()->tiling->candidate(&own, c, any.tile); c++)
                known = memcmp(any.tile, numbers.of, sizeof any.tile) == 0;
            assert_true(known);
        }
        for (uint32_t m = 1; m < 100; m++)
            assert_non_null(ptxgen_marlin_choose(&plan, m));
    }
    assert_in_range(tuned_plans, 1, 2999); /* some edits are harmless, most are not */
    free(text);
}

static void a_damaged_file_is_replaced_by_the_next_choice(void **state)
{
    const struct bench *b = *state;
    ptxgen_tuned_range ranges[2];
    ptxgen_marlin_plan plan;
    file_write(b->file, "ptxgen-tuning: 2\n\nfamily", 24);
    assert_int_equal(chmod(b->file, 0600), 0);
    assert_ignored(b, "its first line is another");
    store_two(b, ranges);
    ptxgen_tuning *tuning = load(b);
    assert_true(plans_by(b, tuning, &plan));
    ptxgen_tuning_free(tuning);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(a_stored_choice_plans_what_it_says_and_the_rest_as_before),
        claim(equal_tables_give_equal_text),
        claim(a_tuned_plan_computes_the_right_numbers),
        claim(every_candidate_can_be_tuned_and_computes_the_right_numbers),
        claim(candidates_are_no_larger_than_what_will_be_launched_asks_for),
        claim(a_dispatcher_launches_what_was_tuned_unless_told_not_to),
        claim(a_new_choice_replaces_the_old_one_and_no_other),
        claim(the_file_stays_below_its_limit_and_keeps_the_newest),
        claim(what_cannot_be_written_is_not_stored),
        claim(what_no_plan_can_use_is_not_stored),
        claim(what_was_measured_elsewhere_or_for_something_else_is_ignored),
        claim(a_file_cut_anywhere_or_with_any_bit_flipped_is_ignored),
        claim(a_file_that_others_could_have_written_is_ignored),
        claim(lines_that_we_would_not_write_are_ignored),
        claim(random_forgeries_give_plans_of_candidates_only),
        claim(a_damaged_file_is_replaced_by_the_next_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
