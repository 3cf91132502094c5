/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines of one processor, of many more than there is work for, and of a number that the system
 * does not know; and threads that cannot be started: all work is done, once.
 */
#include "tests/checks.h"

#include "src/cli/family.h"
#include "src/harness/problem.h"
#include "src/harness/slices.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long processors;
static atomic_int threads, most_threads;

long __real_sysconf(int name);
long __wrap_sysconf(int name);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);

long __wrap_sysconf(int name)
{
    return name == _SC_NPROCESSORS_ONLN ? processors : __real_sysconf(name);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument)
{
    if (atomic_fetch_add(&threads, 1) >= atomic_load(&most_threads))
        return EAGAIN;
    return __real_pthread_create(thread, attributes, start, argument);
}

static const struct machine {
    long processors;
    int most_threads; /* that can be started */
} machines[] = {{1, 1000}, {2, 1000}, {3, 0},     {64, 1000},  {65, 1000}, {66, 1000},
                {4, 2},    {0, 1000}, {-1, 1000}, {200, 1000}, {1000, 20}};
enum { MACHINES = sizeof machines / sizeof *machines, SLICES = 150 };

static void be(const struct machine *machine)
{
    processors = machine->processors;
    atomic_store(&threads, 0);
    atomic_store(&most_threads, machine->most_threads);
}

/* ---- comparisons ---- */

struct tally {
    atomic_int done[SLICES];
    uint32_t fails; /* slice of which the comparison fails; SLICES: none */
    atomic_bool has_failed;
};

static void sleep_ms(long ms)
{
    nanosleep(&(const struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Slices behind the one that fails end after it, and leave its thread the time to say so. */
static void wait_for_failure(struct tally *tally)
{
    enum { TIME_TO_SAY = 100 };
    while (!atomic_load(&tally->has_failed))
        sleep_ms(1);
    sleep_ms(TIME_TO_SAY);
}

static ptxgen_status compare(void *state, uint32_t index, struct comparison *part,
                             ptxgen_error *err)
{
    struct tally *tally = state;
    atomic_fetch_add(&tally->done[index], 1);
    part->reference.outputs = index;
    part->expected.wrong = 1;
    if (index > tally->fails)
        wait_for_failure(tally);
    if (index == tally->fails)
        atomic_store(&tally->has_failed, true);
    return index == tally->fails ? ptxgen_fail(err, PTXGEN_ERROR_FILE, "slice %u", index)
                                 : PTXGEN_OK;
}

static void every_slice_is_compared_once(void **state)
{
    (void)state;
    for (int m = 0; m < MACHINES; m++) {
        struct comparison total = {.reference = {.outputs = 0}};
        struct tally tally = {.fails = SLICES};
        ptxgen_error err;
        be(&machines[m]);
        assert_ok(compare_slices("slices", SLICES, compare, &tally, &total, &err), &err);
        for (int i = 0; i < SLICES; i++)
            assert_int_equal(tally.done[i], 1);
        assert_int_equal(total.reference.outputs, SLICES * (SLICES - 1) / 2);
        assert_int_equal(total.expected.wrong, SLICES);
        const long others = processors < 2 ? 0 : processors > 64 ? 63 : processors - 1;
        assert_true(atomic_load(&threads) <= others);
    }
}

static void a_slice_that_fails_ends_the_comparison(void **state)
{
    (void)state;
    for (int m = 0; m < MACHINES; m++) {
        struct comparison total = {.reference = {.outputs = 0}};
        struct tally tally = {.fails = 20};
        ptxgen_error err = {0};
        int done = 0;
        be(&machines[m]);
        assert_int_equal(compare_slices("slices", SLICES, compare, &tally, &total, &err),
                         PTXGEN_ERROR_FILE);
        assert_string_equal(err.message, "slice 20");
        for (int i = 0; i < SLICES; i++)
            done += tally.done[i];
        assert_in_range(done, 21, 20 + 64);
    }
}

/* ---- whole runs: packing, the emulator's workers, the comparison ---- */

static void runs_are_right_on_every_machine(void **state)
{
    const struct family *family;
    (void)state;
    for (int m = 0; m < MACHINES; m++) {
        be(&machines[m]);
        struct device device = open_device("cpu:sm_90");
        for (size_t f = m % 2; (family = family_at(f)); f += 2) {
            struct check check = {.outputs = 0};
            ptxgen_error err;
            assert_ok(problem_run_random(family->harness, 100 + f, &device, &check, &err), &err);
            assert_right(&check);
        }
        device_close(&device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_slice_is_compared_once),
        cmocka_unit_test(a_slice_that_fails_ends_the_comparison),
        cmocka_unit_test(runs_are_right_on_every_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
