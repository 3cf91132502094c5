/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's size limit to the byte: what is exactly full stays whole, one byte more costs one. */
#define _GNU_SOURCE
#include "cache_bench.h"

#include "src/runtime/manifest.h"
#include "src/runtime/tuning.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { KEPT = 6 };

/* What lies in the folder, in the order of the keys. */
struct kept {
    size_t count;
    struct item {
        char key[65];
        uint64_t bytes;
        int64_t used;
        bool is_memo;
    } items[3 * KEPT];
    uint64_t bytes;
};

static int add(void *user, const ptxgen_cache_entry *entry)
{
    struct kept *kept = user;
    assert_null(entry->damage);
    assert_true(kept->count < sizeof kept->items / sizeof *kept->items);
    struct item *item = &kept->items[kept->count++];
    snprintf(item->key, sizeof item->key, "%s", entry->key);
    item->bytes = entry->bytes;
    item->used = entry->used;
    item->is_memo = entry->is_memo;
    kept->bytes += entry->bytes;
    return 0;
}

static struct kept look(const ptxgen_cache *cache)
{
    struct kept kept = {.count = 0};
    assert_int_equal(ptxgen_cache_visit(cache, add, &kept, NULL, NULL), PTXGEN_OK);
    return kept;
}

static bool has(const struct kept *kept, const char *key)
{
    for (size_t i = 0; i < kept->count; i++)
        if (strcmp(kept->items[i].key, key) == 0)
            return true;
    return false;
}

static ptxgen_cache *open_cache(struct bench *bench)
{
    ptxgen_cache *cache;
    assert_int_equal(
        ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL), 0);
    return cache;
}

/* Says that an item was last used so long ago. */
static void set_age(struct bench *bench, const struct item *item, long seconds)
{
    char path[FOLDER_PATH + 80];
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - seconds}};
    snprintf(path, sizeof path, "%s/%s.%s", bench->folder, item->key,
             item->is_memo ? "memo" : "manifest");
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Entries of specs whose numbers differ in length, and so themselves. */
static struct kept fill(struct bench *bench, ptxgen_cache *cache)
{
    uint32_t a = 1;
    for (int i = 0; i < KEPT; i++, a = 10 * a + 1)
        assert_assembled(bench, a);
    struct kept kept = look(cache);
    for (size_t i = 0; i < kept.count; i++) /* the later its key, the older it is */
        set_age(bench, &kept.items[i], 10000 + 5000 * (long)i);
    return kept;
}

static void a_cache_exactly_full_is_left_alone_by_pruning(void **state)
{
    struct bench *bench = *state;
    ptxgen_cache *cache = open_cache(bench);
    struct kept kept = fill(bench, cache);
    const uint64_t limits[] = {kept.bytes, kept.bytes + 1, UINT64_MAX};
    ptxgen_cache_removed removed;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        assert_int_equal(ptxgen_cache_prune(cache, limits[i], &removed, NULL), 0);
        assert_int_equal(removed.entries + removed.bytes + removed.strays, 0);
        assert_int_equal(look(cache).count, kept.count);
    }
    ptxgen_cache_close(cache);
}

static void each_byte_too_many_costs_the_least_recently_used_and_no_more(void **state)
{
    struct bench *bench = *state;
    ptxgen_cache *cache = open_cache(bench);
    struct kept kept = fill(bench, cache);
    while (kept.count) {
        const struct item *oldest = &kept.items[kept.count - 1];
        ptxgen_cache_removed removed;
        assert_int_equal(ptxgen_cache_prune(cache, kept.bytes, &removed, NULL), 0);
        assert_int_equal(removed.bytes, 0);
        /* one byte too many, or as many as the oldest has */
        uint64_t limit = kept.count % 2 ? kept.bytes - 1 : kept.bytes - oldest->bytes;
        assert_int_equal(ptxgen_cache_prune(cache, limit, &removed, NULL), 0);
        assert_int_equal(removed.entries, !oldest->is_memo);
        assert_int_equal(removed.bytes, oldest->bytes);
        assert_int_equal(removed.strays, 0);
        struct kept left = look(cache);
        assert_int_equal(left.count, kept.count - 1);
        assert_false(has(&left, oldest->key));
        kept = left;
    }
    assert_int_equal(folder_count(bench->folder, ""), 1); /* the lock */
    ptxgen_cache_close(cache);
}

static void one_byte_more_than_the_oldest_costs_two(void **state)
{
    struct bench *bench = *state;
    ptxgen_cache *cache = open_cache(bench);
    struct kept kept = fill(bench, cache);
    ptxgen_cache_removed removed;
    uint64_t limit = kept.bytes - kept.items[kept.count - 1].bytes - 1;
    assert_int_equal(ptxgen_cache_prune(cache, limit, &removed, NULL), 0);
    struct kept left = look(cache);
    assert_int_equal(left.count, kept.count - 2);
    assert_false(has(&left, kept.items[kept.count - 1].key));
    assert_false(has(&left, kept.items[kept.count - 2].key));
    ptxgen_cache_close(cache);
}

static void of_equal_ages_the_first_keys_go_first(void **state)
{
    struct bench *bench = *state;
    ptxgen_cache *cache = open_cache(bench);
    struct kept kept = fill(bench, cache);
    for (size_t i = 0; i < kept.count; i++)
        set_age(bench, &kept.items[i], 10000);
    assert_int_equal(ptxgen_cache_prune(cache, kept.bytes - 1, NULL, NULL), 0);
    struct kept left = look(cache);
    assert_int_equal(left.count, kept.count - 1);
    assert_false(has(&left, kept.items[0].key));
    ptxgen_cache_close(cache);
}

/* Bytes that spec `a` will take, by keeping it and then taking it away again. */
static uint64_t bytes_of(struct bench *bench, ptxgen_cache *cache, uint32_t a)
{
    struct kept before = look(cache);
    assert_assembled(bench, a);
    struct kept after = look(cache);
    for (size_t i = 0; i < after.count; i++)
        if (!has(&before, after.items[i].key)) {
            char path[FOLDER_PATH + 80];
            static const char *const suffixes[] = {"memo", "manifest", "cubin"};
            for (size_t j = 0; j < 3; j++) {
                snprintf(path, sizeof path, "%s/%s.%s", bench->folder, after.items[i].key,
                         suffixes[j]);
                unlink(path);
            }
        }
    assert_int_equal(look(cache).bytes, before.bytes);
    return after.bytes - before.bytes;
}

static void what_fits_exactly_is_kept_beside_all_there_is(void **state)
{
    struct bench *bench = *state;
    ptxgen_cache *cache = open_cache(bench);
    struct kept kept = fill(bench, cache);
    uint64_t needed = bytes_of(bench, cache, 5);
    bench->max_bytes = kept.bytes + needed;
    assert_assembled(bench, 5);
    assert_string_equal(bench->log, "");
    struct kept left = look(cache);
    assert_int_equal(left.bytes, bench->max_bytes);
    for (size_t i = 0; i < kept.count; i++)
        assert_true(has(&left, kept.items[i].key));
    assert_disk(bench, 5);
    ptxgen_cache_close(cache);
}

static void what_is_a_byte_too_long_takes_the_place_of_the_oldest(void **state)
{
    struct bench *bench = *state;
    ptxgen_cache *cache = open_cache(bench);
    struct kept kept = fill(bench, cache);
    uint64_t needed = bytes_of(bench, cache, 5);
    bench->max_bytes = kept.bytes + needed - 1;
    assert_assembled(bench, 5);
    struct kept left = look(cache);
    for (size_t i = 0; i + 1 < kept.count; i++)
        assert_true(has(&left, kept.items[i].key));
    assert_false(has(&left, kept.items[kept.count - 1].key));
    assert_disk(bench, 5);
    ptxgen_cache_close(cache);
}

static void what_takes_the_whole_limit_is_kept_alone_and_what_takes_more_not_at_all(void **state)
{
    struct bench *bench = *state;
    ptxgen_cache *cache = open_cache(bench);
    struct kept kept = fill(bench, cache);
    uint64_t needed = bytes_of(bench, cache, 5);
    bench->max_bytes = needed - 1;
    assert_assembled(bench, 5);
    assert_log(bench, "larger than the whole cache");
    assert_int_equal(look(cache).count, kept.count); /* for nothing that is not kept */
    bench->max_bytes = needed;
    assert_assembled(bench, 5);
    assert_string_equal(bench->log, "");
    assert_int_equal(look(cache).bytes, needed);
    assert_disk(bench, 5);
    bench->max_bytes = 1;
    assert_assembled(bench, 6);
    assert_log(bench, "larger than the whole cache may be, 1");
    assert_int_equal(look(cache).bytes, needed);
    ptxgen_cache_close(cache);
}

static void a_limit_of_nothing_leaves_nothing_and_an_empty_folder_is_fine(void **state)
{
    struct bench *bench = *state;
    ptxgen_cache *cache = open_cache(bench);
    ptxgen_cache_removed removed;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ptxgen_cache_prune(cache, (uint64_t)i, &removed, NULL), 0);
        assert_int_equal(removed.entries + removed.bytes + removed.strays, 0);
    }
    struct kept kept = fill(bench, cache);
    size_t memos = 0;
    for (size_t i = 0; i < kept.count; i++)
        memos += kept.items[i].is_memo;
    assert_int_equal(ptxgen_cache_prune(cache, 0, &removed, NULL), 0);
    assert_int_equal(removed.entries, kept.count - memos);
    assert_int_equal(removed.bytes, kept.bytes);
    assert_int_equal(look(cache).count, 0);
    ptxgen_cache_close(cache);
}

/* ---- the table of tiles ---- */

/* Long entries, so that few fill the file; `pad` makes one longer by so many bytes. */
struct wide_spec {
    uint32_t id, pad;
    unsigned char rest[1000];
};

static ptxgen_status plan_wide(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err)
{
    (void)target;
    (void)err;
    memcpy(plan, spec, sizeof(struct wide_spec));
    return PTXGEN_OK;
}

static void describe_wide(const void *spec, char *text, size_t size)
{
    const struct wide_spec *s = spec;
    snprintf(text, size, "%04u %0*d", s->id, 1 + (int)s->pad, 0);
}

static bool no_candidate(const void *plan, size_t index, uint32_t tile[PTXGEN_TILE_NUMBERS])
{
    (void)plan;
    (void)index;
    (void)tile;
    return false;
}

static ptxgen_status use_any(void *plan, const ptxgen_tuned_range *ranges, size_t count,
                             ptxgen_error *err)
{
    (void)plan;
    (void)ranges;
    (void)count;
    (void)err;
    return PTXGEN_OK;
}

static const char *const wide_names[] = {"a", NULL};
static const ptxgen_tiling wide_tiling = {
    .names = wide_names, .candidate = no_candidate, .use = use_any};
static const ptxgen_family wide = {.name = "wide",
                                   .plan_version = 1,
                                   .spec_bytes = sizeof(struct wide_spec),
                                   .plan_bytes = sizeof(struct wide_spec),
                                   .make_plan = plan_wide,
                                   .describe = describe_wide,
                                   .tiling = &wide_tiling};

static struct wide_spec wide_spec(uint32_t id, uint32_t pad)
{
    struct wide_spec spec = {.id = id, .pad = pad};
    return spec;
}

struct tiles {
    ptxgen_cache *cache;
    ptxgen_device_facts facts;
    ptxgen_target target;
};

static void store(const struct tiles *t, uint32_t id, uint32_t pad)
{
    static const ptxgen_tuned_range range = {.to_m = 16, .tile = {7}};
    const struct wide_spec spec = wide_spec(id, pad);
    assert_int_equal(
        ptxgen_tuning_store(t->cache, &t->facts, &wide, &spec, &t->target, &range, 1, NULL), 0);
}

static bool has_tiles(const struct tiles *t, uint32_t id, uint32_t pad)
{
    ptxgen_tuned_range ranges[PTXGEN_TUNED_RANGES];
    const struct wide_spec spec = wide_spec(id, pad);
    ptxgen_tuning *tuning;
    assert_int_equal(ptxgen_tuning_load(t->cache, &t->facts, &tuning, NULL), 0);
    assert_null(ptxgen_tuning_complaint(tuning));
    bool found = ptxgen_tuning_find(tuning, &wide, &spec, &t->target, ranges) == 1;
    ptxgen_tuning_free(tuning);
    return found;
}

/* Bytes of the file's entries. */
static size_t entries_of(struct bench *bench)
{
    char path[FOLDER_PATH];
    size_t size;
    assert_true(folder_find(bench->folder, TUNING_NAME, path));
    char *text = file_read(path, &size);
    const char *end = strstr(text, "\n" TUNING_CHECKSUM);
    assert_non_null(end);
    size_t bytes = (size_t)(end - text) - (sizeof TUNING_SCHEMA - 1);
    free(text);
    return bytes;
}

static void remove_tiles(struct bench *bench)
{
    char path[FOLDER_PATH];
    assert_true(folder_find(bench->folder, TUNING_NAME, path));
    unlink(path);
}

static void a_table_of_tiles_that_is_exactly_full_keeps_them_all(void **state)
{
    enum { ROOM = TUNING_MOST_BYTES - sizeof TUNING_SCHEMA - CHECKSUM_MOST_LENGTH - 1 };
    struct bench *bench = *state;
    for (uint32_t over = 0; over < 2; over++) {
        struct tiles t = {.cache = open_cache(bench)};
        assert_int_equal(ptxgen_device_read(&bench->device.driver, 0, &t.facts, NULL), 0);
        t.target = ptxgen_device_target(&t.facts);
        store(&t, 0, 0);
        const size_t bytes = entries_of(bench), count = ROOM / bytes, rest = ROOM % bytes;
        remove_tiles(bench);
        /* each takes its share of the rest, and the last what is left of it */
        const uint32_t pad = (uint32_t)(rest / count), last = (uint32_t)count - 1;
        const uint32_t last_pad = (uint32_t)(rest - last * pad) + over;
        assert_true(last_pad < 400); /* the line of a description holds 511 */
        for (uint32_t id = 0; id < last; id++)
            store(&t, id, pad);
        assert_int_equal(entries_of(bench), last * (bytes + pad));
        store(&t, last, last_pad);
        assert_int_equal(entries_of(bench), over ? ROOM + 1 - (bytes + pad) : ROOM);
        for (uint32_t id = 0; id < last; id++)
            assert_int_equal(has_tiles(&t, id, pad), id > 0 || !over);
        assert_true(has_tiles(&t, last, last_pad));
        remove_tiles(bench);
        ptxgen_cache_close(t.cache);
    }
}

/* ---- the clock and the environment ---- */

/* cache.h: when an entry was last used is known to the hour. */
static void a_use_is_noted_once_an_hour(void **state)
{
    enum { HOUR = 3600, SLACK = 60 };
    static const long ages[] = {HOUR - SLACK, HOUR + SLACK, 2 * HOUR, 30 * HOUR};
    struct bench *bench = *state;
    ptxgen_cache *cache = open_cache(bench);
    assert_assembled(bench, 1);
    struct kept kept = look(cache);
    for (size_t i = 0; i < sizeof ages / sizeof *ages; i++)
        for (size_t j = 0; j < kept.count; j++) {
            bool is_noted = ages[i] > HOUR;
            set_age(bench, &kept.items[j], ages[i]);
            assert_disk(bench, 1);
            struct kept now = look(cache);
            long age = (long)(time(NULL) - now.items[j].used);
            if (is_noted ? age > SLACK : age < ages[i])
                fail_msg("used %ld seconds ago, it is now said to be %ld", ages[i], age);
        }
    ptxgen_cache_close(cache);
}

static void sizes_of_the_environment_are_taken_to_the_largest(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes; /* 0: refused */
    } cases[] = {
        {"1", 1},
        {"1K", 1024},
        {"1M", 1 << 20},
        {"1G", 1 << 30},
        {"18446744073709551615", UINT64_MAX},
        {"18446744073709551616", 0},
        {"18014398509481983K", UINT64_MAX - 1023},
        {"18014398509481984K", 0},
        {"17592186044415M", UINT64_MAX - ((1 << 20) - 1)},
        {"17592186044416M", 0},
        {"17179869183G", UINT64_MAX - ((1 << 30) - 1)},
        {"17179869184G", 0},
        {"0K", 0},
        {"1k", 0},
        {"1GG", 0},
        {"K", 0},
        {" -1", 0},
        {" 1", 0},
        {"+1", 0},
        {"1 ", 0},
    };
    struct bench *bench = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_cache *cache;
        ptxgen_error err;
        setenv("PTXGEN_CACHE_SIZE", cases[i].text, 1);
        ptxgen_status status =
            ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, &err);
        if (status != (cases[i].bytes ? PTXGEN_OK : PTXGEN_ERROR_INVALID_ARGUMENT) ||
            ptxgen_cache_max_bytes(cache) != cases[i].bytes)
            fail_msg("PTXGEN_CACHE_SIZE=%s: status %d, %llu bytes", cases[i].text, (int)status,
                     (unsigned long long)ptxgen_cache_max_bytes(cache));
        ptxgen_cache_close(cache);
    }
    unsetenv("PTXGEN_CACHE_SIZE");
}

/* Each with entries alone, and with memos beside them. */
static int with_memos(void **state)
{
    int failed = bench_setup(state);
    struct bench *bench = *state;
    bench->family = &toy_memo;
    return failed;
}

#define claims(name)                                                                               \
    claim(name),                                                                                   \
    {                                                                                              \
#name " of memos", name, with_memos, bench_teardown, NULL                                  \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        claims(a_cache_exactly_full_is_left_alone_by_pruning),
        claims(each_byte_too_many_costs_the_least_recently_used_and_no_more),
        claims(one_byte_more_than_the_oldest_costs_two),
        claims(of_equal_ages_the_first_keys_go_first),
        claims(what_fits_exactly_is_kept_beside_all_there_is),
        claims(what_is_a_byte_too_long_takes_the_place_of_the_oldest),
        claims(what_takes_the_whole_limit_is_kept_alone_and_what_takes_more_not_at_all),
        claims(a_limit_of_nothing_leaves_nothing_and_an_empty_folder_is_fine),
        claim(a_table_of_tiles_that_is_exactly_full_keeps_them_all),
        claims(a_use_is_noted_once_an_hour),
        claim(sizes_of_the_environment_are_taken_to_the_largest),
    };
    bench_clear_environment();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
