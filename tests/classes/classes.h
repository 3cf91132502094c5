/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The classes of a family's launches: which tile, of which kind, how tiles are dealt out or divided
 * among CTAs, what is brought together first. A family describes a grid of problems, on chips of few
 * multiprocessors so that all of these occur among small ones; of each class that plans over the
 * grid have, the smallest problem is run with random data, its warps in shuffled orders.
 */
#ifndef PTXGEN_TESTS_CLASSES_H
#define PTXGEN_TESTS_CLASSES_H

#include "tests/checks.h"

#include "src/kernels/tile/schedule.h"

#include <stdio.h>
#include <string.h>

enum { MOST_CLASSES = 1024, SEEDS = 8 };

struct class {
    char name[160];
    size_t problem; /* number in the family's grid, the smallest */
    uint64_t work;
};

struct classes {
    struct class list[MOST_CLASSES];
    size_t count;
};

struct class_family {
    size_t problems;
    /* The class of a problem and its multiplications; false where no plan takes it. */
    bool (*describe)(size_t problem, char *name, size_t size, uint64_t *work);
    /* Runs it with random data; says the class of what was launched. */
    void (*run)(size_t problem, uint64_t seed, char *name, size_t size);
    const char *const *wanted; /* words that some classes must have; NULL ends them */
};

/* How tiles of so many stages are dealt out. */
static inline const char *dealing_of(const struct tile_schedule *t, uint32_t stages)
{
    if (!t->divides)
        return t->share + (t->extra > 0) > 1 ? "several whole tiles" : "a whole tile";
    if (!t->granule)
        return "divided, ending early";
    if (t->share >= stages)
        return "divided, several tiles";
    return 2 * t->share >= stages ? "divided between two" : "divided among many";
}

/* The digit of a mixed-radix number, which it is divided by. */
static inline size_t take_digit(size_t *number, size_t radix)
{
    size_t digit = *number % radix;
    *number /= radix;
    return digit;
}

static inline void note_class(struct classes *c, const char *name, size_t problem, uint64_t work)
{
    size_t i = 0;
    while (i < c->count && strcmp(c->list[i].name, name) != 0)
        i++;
    if (i == c->count) {
        assert_true(c->count < MOST_CLASSES);
        snprintf(c->list[c->count++].name, sizeof c->list->name, "%s", name);
    } else if (c->list[i].work <= work) {
        return;
    }
    c->list[i].problem = problem;
    c->list[i].work = work;
}

static inline void assert_occurs(const struct classes *c, const char *words)
{
    for (size_t i = 0; i < c->count; i++)
        if (strstr(c->list[i].name, words))
            return;
    fail_msg("no problem of the grid has a class of \"%s\"", words);
}

/* One class in test_share is run, with one seed of the eight, all of which have their turn. */
static inline void run_classes(const struct class_family *f)
{
    static struct classes classes;
    char name[sizeof classes.list->name];
    uint64_t work;
    memset(&classes, 0, sizeof classes);
    for (size_t i = 0; i < f->problems; i++)
        if (f->describe(i, name, sizeof name, &work))
            note_class(&classes, name, i, work);
    for (size_t i = 0; f->wanted[i]; i++)
        assert_occurs(&classes, f->wanted[i]);
    for (size_t i = 0; i < classes.count; i++)
        if (test_in_share((int)i)) {
            f->run(classes.list[i].problem, 1 + i % SEEDS, name, sizeof name);
            assert_string_equal(name, classes.list[i].name);
        }
}

/* A device of fewer multiprocessors than the emulator's, for which plans are made. */
static inline struct device open_small(const char *name, int multiprocessors, uint64_t seed)
{
    struct device device = open_device(name);
    device.facts.sm_count = multiprocessors;
    order_by(&device, seed);
    return device;
}

static inline ptxgen_target small_target(const char *name, uint32_t multiprocessors)
{
    struct device device = open_device(name);
    ptxgen_target target = ptxgen_device_target(&device.facts);
    device_close(&device);
    target.multiprocessors = multiprocessors;
    return target;
}

#endif
