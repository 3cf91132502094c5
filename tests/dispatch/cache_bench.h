/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk cache under dispatch, for the tests of it: each dispatch is by a new dispatcher, as in a
 * new process, and its kernel is run.
 */
#ifndef TESTS_DISPATCH_CACHE_BENCH_H
#define TESTS_DISPATCH_CACHE_BENCH_H

#include "folder.h"
#include "tests/runtime/check.h"
#include "toy.h"

#include <string.h>

enum { LOG_SIZE = 4096 };

struct bench {
    struct toy_device device;
    char folder[FOLDER_PATH];
    uint64_t max_bytes;
    const ptxgen_family *family; /* NULL: toy_plus */
    char log[LOG_SIZE];          /* of the last dispatch */
};

int bench_setup(void **state);
int bench_teardown(void **state);
/* A dispatcher's log callback; `user` is the bench. */
void bench_keep_log(void *user, const char *message);
/* Removes the variables that the cache reads from the environment. */
void bench_clear_environment(void);

/* Where the kernel came from; it computes the right thing, or this fails. */
ptxgen_origin bench_get(struct bench *bench, uint32_t a);
/* Where toy_plus of spec 6 comes from without a cache; folders are as in the options. */
ptxgen_origin bench_get_past_cache(struct bench *bench, const char *dump_folder,
                                   const char *override_folder);
/* It comes from disk, silently. */
void assert_disk(struct bench *bench, uint32_t a);
/* Without an emission, too. */
void assert_recalled(struct bench *bench, uint32_t a);
/* From disk, but by an emission. */
void assert_emitted(struct bench *bench, uint32_t a);
void assert_assembled(struct bench *bench, uint32_t a);
/*
 * Damages the file at `path` at each byte, or cuts it there, and wants spec 1 to be got as
 * `assert_got` says, a log that tells, and the file whole again.
 */
void assert_damage_heals(struct bench *bench, const char *path, bool cut,
                         void (*assert_got)(struct bench *bench, uint32_t a));

#define assert_log(bench, words)                                                                   \
    do {                                                                                           \
        if (!strstr((bench)->log, words))                                                          \
            fail_msg("the log lacks \"%s\": %s", words, (bench)->log);                             \
    } while (0)

#define claim(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

#endif
