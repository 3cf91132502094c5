/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may have written what is executed: every mode bit and another owner of the folders and files
 * that dispatch reads and writes, with the outcome that cache.h, dispatch.h and tune.h state.
 * Started by root, the mode bits are tried as user nobody, because root may do anything.
 */
#define _GNU_SOURCE
#include "cache_bench.h"

#include "src/runtime/tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOBODY = 65534, ALL_BITS = 07777, WRITABLE_BY_OTHERS = 0022 };

/* ---- a folder with one of everything ---- */

/* A family with memos and tiles, so that each kind of file comes to be. */
static ptxgen_family family;

static void store_tuning(struct bench *bench)
{
    static const struct toy_spec spec = {.a = 99, .b = 5};
    static const ptxgen_tuned_range range = {.to_m = 16, .tile = {7}};
    ptxgen_cache *cache;
    ptxgen_device_facts facts;
    ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL);
    assert_int_equal(ptxgen_device_read(&bench->device.driver, 0, &facts, NULL), 0);
    ptxgen_target target = ptxgen_device_target(&facts);
    assert_int_equal(ptxgen_tuning_store(cache, &facts, &family, &spec, &target, &range, 1, NULL),
                     0);
    ptxgen_cache_close(cache);
}

static int setup(void **state)
{
    int failed = bench_setup(state);
    struct bench *bench = *state;
    family = toy_memo;
    family.tiling = &toy_tiling;
    bench->family = &family;
    return failed;
}

/* Spec 1 in the cache with its memo, and a table of tiles. */
static void fill(struct bench *bench)
{
    store_tuning(bench);
    assert_assembled(bench, 1);
    assert_recalled(bench, 1);
}

static void set_mode(const char *path, unsigned mode)
{
    struct stat status;
    assert_int_equal(chmod(path, mode), 0);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, mode & 0777);
}

static unsigned mode_of(const char *path)
{
    struct stat status;
    if (lstat(path, &status) != 0)
        fail_msg("there is no %s", path);
    return status.st_mode & ALL_BITS;
}

static const char *complaint_of_tuning(struct bench *bench)
{
    static char words[200];
    ptxgen_cache *cache;
    ptxgen_device_facts facts;
    ptxgen_tuning *tuning;
    ptxgen_cache_open(&(ptxgen_cache_options){.folder = bench->folder}, &cache, NULL);
    ptxgen_device_read(&bench->device.driver, 0, &facts, NULL);
    assert_int_equal(ptxgen_tuning_load(cache, &facts, &tuning, NULL), 0);
    const char *complaint = ptxgen_tuning_complaint(tuning);
    snprintf(words, sizeof words, "%s", complaint ? complaint : "");
    ptxgen_tuning_free(tuning);
    ptxgen_cache_close(cache);
    return complaint ? words : NULL;
}

static void assert_words(const char *said, const char *wanted, unsigned mode)
{
    if (wanted ? !said || !strstr(said, wanted) : said != NULL)
        fail_msg("mode %05o: \"%s\" rather than \"%s\"", mode, said ? said : "nothing",
                 wanted ? wanted : "nothing");
}

/* ---- the cache's folder ---- */

/* The refusal of a folder of this mode; NULL where it is taken. */
static const char *refusal_of(const char *folder, ptxgen_error *err)
{
    ptxgen_cache *cache;
    ptxgen_status status =
        ptxgen_cache_open(&(ptxgen_cache_options){.folder = folder}, &cache, err);
    ptxgen_cache_close(cache);
    assert_true(status == PTXGEN_OK || status == PTXGEN_ERROR_FILE);
    return status == PTXGEN_OK ? NULL : err->message;
}

static void a_folder_is_refused_for_write_bits_of_others_alone(void **state)
{
    struct bench *bench = *state;
    for (unsigned mode = 0; mode <= ALL_BITS; mode++) {
        ptxgen_error err;
        char words[80] = "cannot be opened";
        set_mode(bench->folder, mode);
        if (mode & 0400)
            snprintf(words, sizeof words, "may be written by others (mode %03o)", mode & 0777);
        bool refused = !(mode & 0400) || mode & WRITABLE_BY_OTHERS;
        assert_words(refusal_of(bench->folder, &err), refused ? words : NULL, mode);
    }
    set_mode(bench->folder, 0700);
}

static void each_bit_of_the_folder_has_its_outcome_in_dispatch(void **state)
{
    struct bench *bench = *state;
    fill(bench);
    for (unsigned bit = 1; bit <= ALL_BITS; bit <<= 1) {
        unsigned mode = 0700 ^ bit;
        set_mode(bench->folder, mode);
        bool serves = bit != 0400 && bit != 0100 && !(bit & WRITABLE_BY_OTHERS);
        assert_int_equal(bench_get(bench, 1),
                         serves ? PTXGEN_ORIGIN_DISK : PTXGEN_ORIGIN_ASSEMBLER);
        assert_words(bench->log[0] ? bench->log : NULL,
                     serves        ? NULL
                     : bit == 0400 ? "cannot be opened"
                     : bit == 0100 ? "cannot be locked"
                                   : "may be written by others",
                     mode);
        if (bit == 0200) { /* what is there is served, and nothing new kept */
            assert_assembled(bench, 2);
            assert_log(bench, "cannot be written to: Permission denied");
        }
    }
    set_mode(bench->folder, 0700);
}

/* ---- its files ---- */

static const char *damage_of_file(unsigned mode)
{
    return !(mode & 0400)              ? "it cannot be opened"
           : mode & WRITABLE_BY_OTHERS ? "others may write to it"
                                       : NULL;
}

static void each_bit_of_each_file_has_its_outcome(void **state)
{
    static const char *const suffixes[] = {".cubin", ".manifest", ".memo"};
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    fill(bench);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        bool is_memo = strcmp(suffixes[i], ".memo") == 0;
        for (unsigned bit = 1; bit <= ALL_BITS; bit <<= 1) {
            unsigned mode = 0600 ^ bit;
            const char *damage = damage_of_file(mode);
            unsigned before = toy_emissions();
            assert_true(folder_find(bench->folder, suffixes[i], path));
            set_mode(path, mode);
            bool reassembles = damage && !is_memo;
            assert_int_equal(bench_get(bench, 1),
                             reassembles ? PTXGEN_ORIGIN_ASSEMBLER : PTXGEN_ORIGIN_DISK);
            assert_int_equal(toy_emissions() - before, damage != NULL);
            assert_words(bench->log[0] ? bench->log : NULL, damage, mode);
            if (damage) /* it was replaced by one of this user alone */
                assert_int_equal(mode_of(path), 0600);
            assert_recalled(bench, 1);
        }
    }
}

static void each_bit_of_the_table_of_tiles_has_its_outcome(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    fill(bench);
    assert_true(folder_find(bench->folder, TUNING_NAME, path));
    for (unsigned bit = 1; bit <= ALL_BITS; bit <<= 1) {
        set_mode(path, 0600 ^ bit);
        assert_words(complaint_of_tuning(bench), damage_of_file(0600 ^ bit), 0600 ^ bit);
    }
    set_mode(path, 0600);
    assert_words(complaint_of_tuning(bench), NULL, 0600);
}

/* A lock says nothing, so whoever may write to it does no harm; to take it is to open it. */
static void each_bit_of_the_lock_has_its_outcome(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    uint32_t a = 10;
    fill(bench);
    assert_true(folder_find(bench->folder, ".lock", path));
    for (unsigned bit = 1; bit <= ALL_BITS; bit <<= 1) {
        bool locks = bit != 0400 && bit != 0200;
        set_mode(path, 0600 ^ bit);
        assert_assembled(bench, ++a);
        assert_words(bench->log[0] ? bench->log : NULL, locks ? NULL : "cannot be locked",
                     0600 ^ bit);
        assert_recalled(bench, 1);
    }
}

static void what_is_made_is_for_this_user_alone_whatever_the_umask(void **state)
{
    static const char *const suffixes[] = {".cubin", ".manifest", ".memo", ".lock", TUNING_NAME};
    struct bench *bench = *state;
    char outer[FOLDER_PATH], path[FOLDER_PATH];
    strcpy(outer, bench->folder);
    const mode_t umasks[] = {0, 022, 077};
    for (size_t i = 0; i < sizeof umasks / sizeof *umasks; i++) {
        mode_t old = umask(umasks[i]);
        snprintf(bench->folder, sizeof bench->folder, "%.*s/new/inner", FOLDER_PATH - 20, outer);
        fill(bench);
        umask(old);
        assert_int_equal(mode_of(bench->folder), 0700);
        for (size_t j = 0; j < sizeof suffixes / sizeof *suffixes; j++) {
            assert_true(folder_find(bench->folder, suffixes[j], path));
            assert_int_equal(mode_of(path), 0600);
        }
        *strrchr(bench->folder, '/') = '\0';
        assert_int_equal(mode_of(bench->folder), 0700);
        folder_remove(bench->folder);
        strcpy(bench->folder, outer);
    }
}

/* ---- dumping and overriding ---- */

/* What is dumped is not executed, so others may write there; this user has to be able to. */
static void each_bit_of_the_dump_folder_has_its_outcome(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    for (unsigned bit = 1; bit <= ALL_BITS; bit <<= 1) {
        bool dumps = !(bit & 0700);
        set_mode(bench->folder, 0700 ^ bit);
        bench_get_past_cache(bench, bench->folder, "");
        assert_words(bench->log[0] ? bench->log : NULL,
                     dumps         ? NULL
                     : bit == 0400 ? "cannot be opened"
                                   : "cannot be written",
                     0700 ^ bit);
        set_mode(bench->folder, 0700);
        assert_int_equal(folder_count(bench->folder, "toy_plus-"), dumps ? 3 : 0);
        for (const char *const *suffix = (const char *const[]){".ptx", ".cubin", ".log", NULL};
             dumps && *suffix; suffix++) {
            assert_true(folder_find(bench->folder, *suffix, path));
            assert_int_equal(mode_of(path), 0600);
            unlink(path);
        }
    }
}

static void a_dump_folder_is_made_for_this_user_alone(void **state)
{
    struct bench *bench = *state;
    char folder[FOLDER_PATH + 8];
    snprintf(folder, sizeof folder, "%s/dump", bench->folder);
    mode_t old = umask(0);
    bench_get_past_cache(bench, folder, "");
    umask(old);
    assert_int_equal(mode_of(folder), 0700);
    assert_int_equal(folder_count(folder, "toy_plus-"), 3);
}

static void each_bit_of_an_override_has_its_outcome(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    bench_get_past_cache(bench, bench->folder, "");
    assert_true(folder_find(bench->folder, ".ptx", path));
    for (unsigned bit = 1; bit <= ALL_BITS; bit <<= 1) {
        set_mode(path, 0600 ^ bit);
        const char *damage = damage_of_file(0600 ^ bit);
        assert_int_equal(bench_get_past_cache(bench, "", bench->folder),
                         damage ? PTXGEN_ORIGIN_ASSEMBLER : PTXGEN_ORIGIN_OVERRIDE);
        assert_words(bench->log, damage ? damage : "is loaded INSTEAD", 0600 ^ bit);
        set_mode(path, 0600);

        set_mode(bench->folder, 0700 ^ bit);
        const char *why = bit == 0400                ? "is ignored: the folder"
                          : bit == 0100              ? ".ptx is not used: it cannot be opened"
                          : bit & WRITABLE_BY_OTHERS ? "may be written by others"
                                                     : NULL;
        assert_int_equal(bench_get_past_cache(bench, "", bench->folder),
                         why ? PTXGEN_ORIGIN_ASSEMBLER : PTXGEN_ORIGIN_OVERRIDE);
        assert_words(bench->log, why ? why : "is loaded INSTEAD", 0700 ^ bit);
        set_mode(bench->folder, 0700);
    }
}

/* ---- another owner ---- */

static void own(const char *path, uid_t user)
{
    assert_int_equal(lchown(path, user, (gid_t)-1), 0);
}

static void skip_unless_root(void)
{
    if (geteuid() == 0)
        return;
    print_message("SKIP: only root can give files to another user\n");
    skip();
}

static void a_folder_of_another_user_is_refused_by_name(void **state)
{
    struct bench *bench = *state;
    ptxgen_error err;
    skip_unless_root();
    fill(bench);
    own(bench->folder, NOBODY);
    assert_words(refusal_of(bench->folder, &err),
                 "belongs to user 65534, not to user 0 who would run its contents", 0700);
    assert_assembled(bench, 1);
    assert_log(bench, "belongs to user 65534");
    own(bench->folder, 0);
    assert_recalled(bench, 1);
    assert_int_equal(chown(bench->folder, (uid_t)-1, NOBODY), 0); /* a group may do nothing */
    assert_recalled(bench, 1);
}

static void each_file_of_another_user_is_a_miss(void **state)
{
    static const char *const suffixes[] = {".cubin", ".manifest", ".memo"};
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    skip_unless_root();
    fill(bench);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        unsigned before = toy_emissions();
        assert_true(folder_find(bench->folder, suffixes[i], path));
        own(path, NOBODY);
        assert_int_equal(bench_get(bench, 1), i < 2 ? PTXGEN_ORIGIN_ASSEMBLER : PTXGEN_ORIGIN_DISK);
        assert_log(bench, "it belongs to another user");
        assert_int_equal(toy_emissions(), before + 1);
        assert_recalled(bench, 1);
    }
    assert_true(folder_find(bench->folder, TUNING_NAME, path));
    own(path, NOBODY);
    assert_words(complaint_of_tuning(bench), "it belongs to another user", 0600);
    assert_int_equal(bench_get(bench, 1), PTXGEN_ORIGIN_DISK);
    assert_log(bench, "/tuning is not used: it belongs to another user");
    own(path, 0);
    assert_true(folder_find(bench->folder, ".lock", path));
    own(path, NOBODY);
    assert_assembled(bench, 2);
    assert_recalled(bench, 2);
}

static void an_override_of_another_user_is_ignored(void **state)
{
    struct bench *bench = *state;
    char path[FOLDER_PATH];
    skip_unless_root();
    own(bench->folder, NOBODY); /* which is nothing to a dump */
    bench_get_past_cache(bench, bench->folder, "");
    assert_string_equal(bench->log, "");
    assert_int_equal(bench_get_past_cache(bench, "", bench->folder), PTXGEN_ORIGIN_ASSEMBLER);
    assert_log(bench, "PTXGEN_OVERRIDE is ignored: the folder ");
    assert_log(bench, "belongs to user 65534");
    own(bench->folder, 0);
    assert_int_equal(bench_get_past_cache(bench, "", bench->folder), PTXGEN_ORIGIN_OVERRIDE);
    assert_true(folder_find(bench->folder, ".ptx", path));
    own(path, NOBODY);
    assert_int_equal(bench_get_past_cache(bench, "", bench->folder), PTXGEN_ORIGIN_ASSEMBLER);
    assert_log(bench, ".ptx is not used: it belongs to another user");
}

/* From here on this process has no more rights than any; sanitizers still look for leaks at its
 * end. */
static void become_nobody(void)
{
    if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        abort();
    prctl(PR_SET_DUMPABLE, 1);
}

#define with_tiles(name) cmocka_unit_test_setup_teardown(name, setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest owners[] = {
        with_tiles(a_folder_of_another_user_is_refused_by_name),
        with_tiles(each_file_of_another_user_is_a_miss),
        with_tiles(an_override_of_another_user_is_ignored),
    };
    const struct CMUnitTest bits[] = {
        with_tiles(a_folder_is_refused_for_write_bits_of_others_alone),
        with_tiles(each_bit_of_the_folder_has_its_outcome_in_dispatch),
        with_tiles(each_bit_of_each_file_has_its_outcome),
        with_tiles(each_bit_of_the_table_of_tiles_has_its_outcome),
        with_tiles(each_bit_of_the_lock_has_its_outcome),
        with_tiles(what_is_made_is_for_this_user_alone_whatever_the_umask),
        with_tiles(each_bit_of_the_dump_folder_has_its_outcome),
        with_tiles(a_dump_folder_is_made_for_this_user_alone),
        with_tiles(each_bit_of_an_override_has_its_outcome),
    };
    bench_clear_environment();
    int failed = cmocka_run_group_tests(owners, NULL, NULL);
    become_nobody();
    return failed + cmocka_run_group_tests(bits, NULL, NULL);
}
