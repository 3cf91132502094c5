/* SPDX-License-Identifier: Apache-2.0 */
/* Memos: what they save, and that nothing wrong with one leads to wrong code. */
#define _GNU_SOURCE
#include "cache_bench.h"

#include "src/runtime/cache_store.h"

#include <ptxgen/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int setup(void **state)
{
    int result = bench_setup(state);
    struct bench *bench = *state;
    bench->family = &toy_memo;
    return result;
}

/* ---- what they are for ---- */

static void a_memo_saves_the_emission(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    struct stat status;
    assert_assembled(bench, 1);
    assert_assembled(bench, 2);
    assert_recalled(bench, 1);
    assert_recalled(bench, 2);
    assert_int_equal(folder_count(bench->folder, ""), 2 * 3 + 1);
    assert_true(folder_find(bench->folder, ".memo", path));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void what_is_reported_is_the_same_with_a_memo(void **state)
{
    struct bench *bench = *state;
    ptxgen_load_report reports[2];
    struct toy_spec spec = {.a = 1, .b = 5};
    for (int i = 0; i < 2; i++) {
        ptxgen_cache *cache;
        ptxgen_dispatcher *dispatcher;
        ptxgen_loaded *loaded;
        ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL);
        ptxgen_dispatch_options options = {.cache = cache};
        assert_int_equal(
            ptxgen_dispatcher_create(&bench->device.driver, &options, &dispatcher, NULL), 0);
        assert_int_equal(ptxgen_dispatch(dispatcher, &toy_memo, &spec, &loaded, NULL), 0);
        reports[i] = *ptxgen_loaded_report(loaded);
        assert_non_null(ptxgen_loaded_entry(loaded, 0));
        assert_null(ptxgen_loaded_entry(loaded, 1));
        ptxgen_release(loaded);
        ptxgen_dispatcher_destroy(dispatcher);
        ptxgen_cache_close(cache);
    }
    assert_int_equal(reports[1].origin, PTXGEN_ORIGIN_DISK);
    assert_int_equal(reports[0].text_bytes, reports[1].text_bytes);
    assert_int_equal(reports[0].cubin_bytes, reports[1].cubin_bytes);
    assert_int_equal(reports[1].compile_ns + reports[1].publish_ns, 0);
}

static void a_family_without_a_revision_is_always_emitted(void **state)
{
    struct bench *bench = *state;
    bench->family = &toy_plus;
    assert_assembled(bench, 1);
    assert_emitted(bench, 1);
    assert_emitted(bench, 1);
    assert_int_equal(folder_count(bench->folder, ""), 2 + 1);
}

/* The text is emitted once by each revision, and where it is the same so is the entry. */
static void another_revision_asks_anew_and_finds_the_entry(void **state)
{
    struct bench *bench = *state;
    ptxgen_family newer = toy_memo;
    newer.revision = "0123abce";
    assert_assembled(bench, 1);
    bench->family = &newer;
    assert_emitted(bench, 1);
    assert_recalled(bench, 1);
    assert_int_equal(folder_count(bench->folder, ""), 2 + 2 + 1);
    bench->family = &toy_memo;
    assert_recalled(bench, 1);
}

static void a_revision_that_is_no_hash_keeps_no_memo_or_stays_a_line(void **state)
{
    struct bench *bench = *state;
    char long_one[66];
    ptxgen_family odd = toy_memo;
    memset(long_one, 'a', 65);
    long_one[65] = '\0';
    odd.revision = long_one;
    bench->family = &odd;
    assert_assembled(bench, 1);
    assert_emitted(bench, 1);
    odd.revision = "a\nptx: b";
    assert_emitted(bench, 1);
    assert_recalled(bench, 1);
}

static void an_evicted_entry_is_made_again(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    assert_assembled(bench, 1);
    assert_true(folder_find(bench->folder, ".cubin", path));
    unlink(path);
    assert_true(folder_find(bench->folder, ".manifest", path));
    unlink(path);
    assert_assembled(bench, 1);
    assert_string_equal(bench->log, "");
    assert_recalled(bench, 1);
}

/* ---- tuned tiles ---- */

/* The only number of a tile takes the place of the spec's a. */

/* Tunes spec 1 to compute with `a`. */
static void tune(struct bench *bench, const ptxgen_family *family, uint32_t a)
{
    ptxgen_cache *cache;
    ptxgen_device_facts facts;
    const struct toy_spec spec = {.a = 1, .b = 5};
    const ptxgen_tuned_range range = {.to_m = 16, .tile = {a}};
    ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL);
    assert_int_equal(ptxgen_device_read(&bench->device.driver, 0, &facts, NULL), 0);
    ptxgen_target target = ptxgen_device_target(&facts);
    assert_int_equal(ptxgen_tuning_store(cache, &facts, family, &spec, &target, &range, 1, NULL),
                     0);
    ptxgen_cache_close(cache);
}

/* Dispatches spec 1, which has to compute with `a`; how many emissions that took. */
static unsigned use_tuned(struct bench *bench, const ptxgen_family *family, uint32_t a,
                          bool no_tuning)
{
    ptxgen_cache *cache;
    ptxgen_dispatcher *dispatcher;
    ptxgen_loaded *loaded;
    const struct toy_spec spec = {.a = 1, .b = 5}, computed = {.a = a, .b = 5};
    unsigned before = toy_emissions();
    ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL);
    ptxgen_dispatch_options options = {.cache = cache, .no_tuning = no_tuning};
    assert_int_equal(ptxgen_dispatcher_create(&bench->device.driver, &options, &dispatcher, NULL),
                     0);
    assert_int_equal(ptxgen_dispatch(dispatcher, family, &spec, &loaded, NULL), 0);
    assert_true(toy_computes(&bench->device.driver, loaded, &computed));
    ptxgen_release(loaded);
    ptxgen_dispatcher_destroy(dispatcher);
    ptxgen_cache_close(cache);
    return toy_emissions() - before;
}

static void tuned_tiles_are_in_the_question(void **state)
{
    struct bench *bench = *state;
    ptxgen_family family = toy_memo;
    family.tiling = &toy_tiling;
    assert_int_equal(use_tuned(bench, &family, 1, false), 1);
    tune(bench, &family, 7);
    assert_int_equal(use_tuned(bench, &family, 7, false), 1);
    assert_int_equal(use_tuned(bench, &family, 7, false), 0);
    assert_int_equal(use_tuned(bench, &family, 1, true), 0);
    tune(bench, &family, 8);
    assert_int_equal(use_tuned(bench, &family, 8, false), 1);
    assert_int_equal(use_tuned(bench, &family, 8, false), 0);
    assert_int_equal(use_tuned(bench, &family, 1, true), 0);
}

/* ---- dump and override ---- */

static void dumping_and_overriding_go_before_a_memo(void **state)
{
    struct bench *bench = *state;
    char dump[FOLDER_PATH], path[FOLDER_PATH];
    size_t size;
    assert_assembled(bench, 6);
    assert_assembled(bench, 7);
    folder_make(dump);
    setenv("PTXGEN_DUMP", dump, 1);
    assert_assembled(bench, 6);
    unsetenv("PTXGEN_DUMP");
    assert_int_equal(folder_count(dump, "toy_memo-"), 3);
    assert_true(folder_find(dump, ".ptx", path));
    char *text = file_read(path, &size);
    file_write(path, "// edited\n", 10);
    FILE *edited = fopen(path, "ab");
    assert_int_equal(fwrite(text, 1, size, edited), size);
    fclose(edited);
    free(text);
    setenv("PTXGEN_OVERRIDE", dump, 1);
    assert_int_equal(bench_get(bench, 6), PTXGEN_ORIGIN_OVERRIDE);
    assert_log(bench, ".ptx is loaded INSTEAD of what ptxgen emits");
    assert_recalled(bench, 7);
    unsetenv("PTXGEN_OVERRIDE");
    assert_recalled(bench, 6);
    folder_remove(dump);
}

/* ---- faults ---- */

static void every_flipped_byte_and_every_cut_is_a_miss(void **state)
{
    static const char *const suffixes[] = {".cubin", ".manifest", ".memo"};
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    assert_assembled(bench, 1);
    for (int i = 0; i < 6; i++) {
        assert_true(folder_find(bench->folder, suffixes[i % 3], path));
        assert_damage_heals(bench, path, i < 3, i % 3 == 2 ? assert_emitted : assert_assembled);
    }
    assert_recalled(bench, 1);
    assert_int_equal(folder_count(bench->folder, ""), 3 + 1);
}

static void a_whole_memo_under_another_name_is_a_miss(void **state)
{
    struct bench *bench = *state;
    char first[FOLDER_PATH], second[FOLDER_PATH];
    size_t size;
    assert_assembled(bench, 1);
    assert_true(folder_find(bench->folder, ".memo", first));
    char *memo = file_read(first, &size);
    unlink(first);
    assert_assembled(bench, 2);
    assert_true(folder_find(bench->folder, ".memo", second));
    file_write(second, memo, size);
    free(memo);
    assert_emitted(bench, 2);
    assert_log(bench, ".memo is not used: it is of another question");
    assert_recalled(bench, 2);
}

static void a_memo_that_is_no_plain_file_of_this_user_is_a_miss(void **state)
{
    struct bench *bench = *state;
    char memo[FOLDER_PATH], away[FOLDER_PATH + 8];
    assert_assembled(bench, 1);
    assert_true(folder_find(bench->folder, ".memo", memo));
    snprintf(away, sizeof away, "%s/away", bench->folder);

    rename(memo, away);
    assert_int_equal(symlink(away, memo), 0);
    assert_emitted(bench, 1);
    assert_log(bench, "it is a symbolic link");
    assert_recalled(bench, 1);

    unlink(memo);
    assert_int_equal(mkfifo(memo, 0600), 0);
    assert_emitted(bench, 1);
    assert_log(bench, "it is not a plain file");
    assert_recalled(bench, 1);

    chmod(memo, 0622);
    assert_emitted(bench, 1);
    assert_log(bench, "others may write to it");
    assert_recalled(bench, 1);

    unlink(memo);
    assert_int_equal(mkdir(memo, 0700), 0);
    assert_emitted(bench, 1);
    assert_log(bench, "a kernel's memo is not kept on disk");
    assert_emitted(bench, 1);
    rmdir(memo);
    assert_emitted(bench, 1);
    assert_recalled(bench, 1);

    char *long_one = calloc(1, MANIFEST_MOST_BYTES + 1);
    file_write(memo, long_one, MANIFEST_MOST_BYTES + 1);
    free(long_one);
    assert_emitted(bench, 1);
    assert_log(bench, "it is too long");
    assert_recalled(bench, 1);
}

/* The memo in the folder, read; the caller frees its text and its entries. */
static char *read_memo(struct bench *bench, char path[FOLDER_PATH], size_t *length,
                       struct memo_answer *answer)
{
    size_t size;
    char key[DIGEST_HEX + 1] = {0};
    assert_true(folder_find(bench->folder, ".memo", path));
    memcpy(key, strrchr(path, '/') + 1, DIGEST_HEX);
    char *text = file_read(path, &size);
    const char *why;
    assert_int_equal(memo_read(key, text, size, answer, &why), READING_WHOLE);
    assert_null(why);
    *length = (size_t)(strstr(text, "\nptx: ") + 1 - text);
    return text;
}

static void write_memo(const char *path, const char *text, size_t length,
                       const struct memo_answer *answer)
{
    char *memo = memo_make(text, length, answer);
    file_write(path, memo, strlen(memo));
    free(memo);
}

/* Well formed, with the right checksum, and wrong. */
static void a_memo_that_lies_leads_to_no_code(void **state)
{
    struct bench *bench = *state;
    char path[2][FOLDER_PATH];
    size_t length[2];
    struct memo_answer answer[2];
    char *text[2];
    for (uint32_t i = 0; i < 2; i++) {
        assert_assembled(bench, 1 + i);
        text[i] = read_memo(bench, path[i], &length[i], &answer[i]);
        unlink(path[i]);
    }
    assert_emitted(bench, 1);
    write_memo(path[0], text[0], length[0], &answer[1]); /* spec 2's text for spec 1 */
    assert_emitted(bench, 1);
    assert_string_equal(bench->log, "");
    assert_recalled(bench, 1);

    answer[0].entries.points[0].name = "yot";
    write_memo(path[0], text[0], length[0], &answer[0]);
    assert_assembled(bench, 1);
    assert_log(bench, "no kernel named 'yot'");
    assert_recalled(bench, 1);

    answer[0].entries.points[0].name = "toy";
    answer[0].entries.points[0].dynamic_shared_bytes = (size_t)1 << 40;
    write_memo(path[0], text[0], length[0], &answer[0]);
    assert_assembled(bench, 1);
    assert_log(bench, "of dynamic shared memory");
    assert_recalled(bench, 1);
    for (int i = 0; i < 2; i++) {
        entry_points_free(&answer[i].entries);
        free(text[i]);
    }
}

/* Each byte of the answer replaced by each of a few, the checksum made right again. */
static void a_memo_in_other_words_is_damaged(void **state)
{
    static const char others[] = {'\0', '\n', ' ', ',', '+', '-', '0', '9', 'f', 'z', '%', '\x7f'};
    struct bench *bench = *state;
    char path[FOLDER_PATH], spoilt[4096];
    size_t length, accepted = 0;
    struct memo_answer answer, again;
    const char *why;
    assert_assembled(bench, 1);
    char *text = read_memo(bench, path, &length, &answer);
    struct digest key = digest_of(text, length);
    size_t end = strlen(text) - (sizeof "memo: " + DIGEST_HEX);
    for (size_t i = length; i < end; i++) {
        for (size_t j = 0; j < sizeof others; j++) {
            memcpy(spoilt, text, end);
            spoilt[i] = others[j];
            size_t size = checksum_append(spoilt, end, "memo: ");
            spoilt[size] = '\0';
            if (memo_read(key.hex, spoilt, size, &again, &why) != READING_WHOLE)
                continue;
            char *written = memo_make(spoilt, length, &again);
            assert_int_equal(strlen(written), size);
            assert_memory_equal(written, spoilt, size);
            free(written);
            entry_points_free(&again.entries);
            accepted++;
        }
    }
    assert_true(accepted > 0); /* other hashes, numbers and names */
    entry_points_free(&answer.entries);
    free(text);
}

/* ---- several processes ---- */

static void processes_that_publish_at_once_leave_one_of_each(void **state)
{
    enum { PROCESSES = 4, ROUNDS = 20 };
    struct bench *bench = *state;
    for (int round = 0; round < ROUNDS; round++) {
        int status;
        fflush(NULL);
        for (int i = 0; i < PROCESSES; i++)
            if (fork() == 0) {
                bench_get(bench, 1);
                _exit(0);
            }
        for (int i = 0; i < PROCESSES; i++) {
            assert_true(wait(&status) > 0);
            assert_int_equal(status, 0);
        }
        assert_recalled(bench, 1);
        assert_int_equal(folder_count(bench->folder, ""), 3 + 1);
        folder_remove(bench->folder);
    }
}

/* ---- keeping them few ---- */

static int count_kinds(void *user, const ptxgen_cache_entry *entry)
{
    size_t *counts = user;
    counts[2 * entry->is_memo + (entry->damage != NULL)]++;
    return 0;
}

static void memos_are_visited_pruned_and_cleared(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    ptxgen_cache *cache;
    ptxgen_cache_removed removed;
    size_t counts[4] = {0};
    for (uint32_t a = 1; a <= 4; a++)
        assert_assembled(bench, a);
    assert_true(folder_find(bench->folder, ".memo", path));
    assert_int_equal(truncate(path, 300), 0);
    ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL);
    assert_int_equal(ptxgen_cache_visit(cache, count_kinds, counts, NULL, NULL), 0);
    assert_int_equal(counts[0], 4);
    assert_int_equal(counts[2], 3);
    assert_int_equal(counts[3], 1);
    assert_int_equal(ptxgen_cache_prune(cache, 1 << 20, &removed, NULL), 0);
    assert_int_equal(removed.entries, 0);
    assert_int_equal(removed.strays, 1);
    assert_int_equal(removed.bytes, 300);
    assert_int_equal(folder_count(bench->folder, ""), 4 * 3 - 1 + 1);
    assert_int_equal(ptxgen_cache_clear(cache, &removed, NULL), 0);
    assert_int_equal(removed.entries, 4);
    assert_int_equal(removed.strays, 0);
    assert_int_equal(folder_count(bench->folder, ""), 1);
    ptxgen_cache_close(cache);
}

static int add_bytes(void *user, const ptxgen_cache_entry *entry)
{
    *(uint64_t *)user += entry->bytes;
    return 0;
}

static void the_size_limit_counts_memos(void **state)
{
    struct bench *bench = *state;
    ptxgen_cache *cache;
    bench->max_bytes = 9000;
    ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL);
    for (uint32_t a = 1; a <= 20; a++) {
        uint64_t bytes = 0;
        assert_assembled(bench, a);
        assert_recalled(bench, a);
        assert_int_equal(ptxgen_cache_visit(cache, add_bytes, &bytes, NULL, NULL), 0);
        assert_true(bytes <= bench->max_bytes);
    }
    ptxgen_cache_close(cache);
}

#define claim_of_memos(name) cmocka_unit_test_setup_teardown(name, setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim_of_memos(a_memo_saves_the_emission),
        claim_of_memos(what_is_reported_is_the_same_with_a_memo),
        claim_of_memos(a_family_without_a_revision_is_always_emitted),
        claim_of_memos(another_revision_asks_anew_and_finds_the_entry),
        claim_of_memos(a_revision_that_is_no_hash_keeps_no_memo_or_stays_a_line),
        claim_of_memos(an_evicted_entry_is_made_again),
        claim_of_memos(tuned_tiles_are_in_the_question),
        claim_of_memos(dumping_and_overriding_go_before_a_memo),
        claim_of_memos(every_flipped_byte_and_every_cut_is_a_miss),
        claim_of_memos(a_whole_memo_under_another_name_is_a_miss),
        claim_of_memos(a_memo_that_is_no_plain_file_of_this_user_is_a_miss),
        claim_of_memos(a_memo_that_lies_leads_to_no_code),
        claim_of_memos(a_memo_in_other_words_is_damaged),
        claim_of_memos(processes_that_publish_at_once_leave_one_of_each),
        claim_of_memos(memos_are_visited_pruned_and_cleared),
        claim_of_memos(the_size_limit_counts_memos),
    };
    bench_clear_environment();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
