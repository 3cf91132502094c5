/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The classes of a family's launches: which tile, of which kind, how tiles are dealt out or divided
 * among CTAs, what is brought together first. A family describes problems by some names, one for
 * each aspect in which they differ; what interacts is named together. The classes are those of a
 * grid of small problems, on chips of few multiprocessors, and of a wide grid of problems as models
 * have them, on chips of all sizes. Each class has the smallest problem of the first grid that has
 * it, or where that is more than moderate, of a third grid, which prescribes the tile. These are
 * run, with random data, but for classes that a problem has which is run already. Builds that do a
 * part of long tests leave the wide grid out.
 *
 * Seeds shuffle the order of CTAs and of warps, anew for each launch. Each problem is checked in
 * full under one seed of the eight, which take turns: by a launch, and where CTAs hand anything
 * over to others by two more with the same workspace, each in an order of its own. Unless its
 * products are more than 2²¹, a launch with other data follows under a second seed, or where there
 * are at most 2¹⁸ of them, under each of the other seven.
 */
#ifndef PTXGEN_TESTS_CLASSES_H
#define PTXGEN_TESTS_CLASSES_H

#include "tests/checks.h"

#include "src/harness/problem.h"
#include "src/kernels/gemm/schedule.h"

#include <stdio.h>
#include <string.h>

enum { FEW = 1 << 18, MODERATE = 1 << 21 }; /* products */
enum { MOST_CLASSES = 2048, MOST_ASPECTS = 7, NAME = 160, SEEDS = 8 };

/* One for each aspect; those past the family's are empty. */
struct class_names {
    char of[MOST_ASPECTS][NAME];
};

enum grid { SMALL, WIDE, PRESCRIBED, GRIDS };

struct class
{
    char name[NAME];
    enum grid grid; /* WIDE: no problem that can be run is known */
    size_t problem; /* number in the grid */
    uint64_t work;
    bool run;
};

struct classes {
    struct class list[MOST_CLASSES];
    size_t count;
    uint16_t at[4 * MOST_CLASSES]; /* by name: numbers in the list and one more; 0: none */
};

/* A problem of a grid. */
struct point {
    const char *chip;
    uint32_t sms, m;
    bool plain;                          /* without what the chip's exact target has */
    _Alignas(8) unsigned char spec[256]; /* the family's */
    bool prescribes;                     /* this tile: */
    ptxgen_tile tile;
    struct layout layout;
};

struct class_family {
    const struct harness *harness;
    size_t problems[GRIDS];
    uint64_t most_work; /* multiplications of a problem that may be run */
    /* False where there is none of that number. */
    bool (*make_problem)(enum grid grid, size_t number, struct point *p);
    /* The classes of a problem; false where a tile that is prescribed takes no such launch. */
    bool (*name_classes)(const struct point *p, const void *plan, struct class_names *names);
    const char *const *wanted; /* words that some classes must have; NULL ends them */
};

/* How tiles of so many stages are dealt out. */
static inline const char *dealing_of(const struct gemm_schedule *t, uint32_t stages)
{
    if (!t->divides)
        return t->share + (t->extra > 0) > 1 ? "several whole tiles" : "a whole tile";
    if (!t->granule)
        return "divided, ending early";
    if (t->share >= stages)
        return "divided, several tiles";
    return 2 * t->share >= stages ? "divided between two" : "divided among many";
}

/* The most stages that a CTA goes through, of tiles of so many each. */
static inline uint32_t stages_of_cta(const struct gemm_schedule *t, uint32_t stages)
{
    return (t->share + (t->extra > 0)) * (t->divides ? 1 : stages);
}

/* The digit of a mixed-radix number, which it is divided by. */
static inline size_t take_digit(size_t *number, size_t radix)
{
    size_t digit = *number % radix;
    *number /= radix;
    return digit;
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
    enum { MOST_CHIPS = 4 };
    static struct {
        const char *name;
        ptxgen_target target;
    } known[MOST_CHIPS];
    size_t i = 0;
    while (i < MOST_CHIPS - 1 && known[i].name && strcmp(known[i].name, name) != 0)
        i++;
    if (!known[i].name || strcmp(known[i].name, name) != 0) {
        struct device device = open_device(name);
        known[i].name = name;
        known[i].target = ptxgen_device_target(&device.facts);
        device_close(&device);
    }
    ptxgen_target target = known[i].target;
    target.multiprocessors = multiprocessors;
    return target;
}

/* ---- a problem ---- */

static inline bool make_plan(const struct harness *h, const struct point *p, void *plan)
{
    ptxgen_target target = small_target(p->chip, p->sms);
    if (p->plain)
        target.ptx.suffix = 0;
    const struct kernel_request request = {.spec = p->spec,
                                           .tile = p->prescribes ? &p->tile : NULL};
    return harness_plan(h, &request, p->m, &target, plan, NULL, NULL) == PTXGEN_OK;
}

/* The classes of a problem and its multiplications; false where no plan takes it. */
static inline bool describe(const struct class_family *f, enum grid grid, size_t number,
                            struct class_names *names, uint64_t *work)
{
    static uint64_t plan[2048];
    struct point p;
    assert_true(f->harness->family()->plan_bytes <= sizeof plan);
    if (!f->make_problem(grid, number, &p))
        return false;
    const struct product product = f->harness->product(p.spec);
    *work = (uint64_t)p.m * product.n * product.k;
    return (grid == WIDE || *work <= f->most_work) && make_plan(f->harness, &p, plan) &&
           f->name_classes(&p, plan, names);
}

/* With random data, once or in full; says the classes of what was launched. */
static inline void run_problem(const struct class_family *f, enum grid grid, size_t number,
                               uint64_t seed, bool once, struct class_names *names)
{
    struct point at;
    assert_true(f->make_problem(grid, number, &at));
    struct device device = open_small(at.chip, (int)at.sms, seed);
    struct random r = random_start(seed);
    struct check check = {.once = once};
    const struct kernel_request request = {.spec = at.spec,
                                           .tile = at.prescribes ? &at.tile : NULL};
    struct problem p;
    ptxgen_error err;
    assert_ok(problem_allocate(&p, f->harness, &request, at.m, &at.layout, &device, &err), &err);
    assert_true(make_plan(f->harness, &at, p.plan));
    assert_ok(problem_fill(&p, &r, &err), &err);
    assert_ok(problem_check(&p, &device, &check, &err), &err);
    assert_right(&check);
    assert_true(f->name_classes(&at, p.plan, names));
    problem_release(&p);
    device_close(&device);
}

/* ---- all of them ---- */

/* Where the name stands in `at`, or would. */
static inline uint16_t *place_of(struct classes *c, const char *name)
{
    uint32_t hash = 2166136261u;
    for (const char *at = name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    size_t i = hash % (4 * MOST_CLASSES);
    while (c->at[i] && strcmp(c->list[c->at[i] - 1].name, name) != 0)
        i = (i + 1) % (4 * MOST_CLASSES);
    return &c->at[i];
}

static inline struct class *find_class(struct classes *c, const char *name)
{
    uint16_t at = *place_of(c, name);
    return at ? &c->list[at - 1] : NULL;
}

static inline struct class *add_class(struct classes *c, const char *name)
{
    assert_true(c->count < MOST_CLASSES);
    struct class *added = &c->list[c->count++];
    snprintf(added->name, sizeof added->name, "%s", name);
    *place_of(c, name) = (uint16_t)c->count;
    return added;
}

/* Problems of each grid come in turn; those of the last have no classes of their own. */
static inline void note_class(struct classes *c, const char *name, const struct class *problem)
{
    struct class *known = find_class(c, name);
    if (!known && problem->grid != PRESCRIBED)
        known = add_class(c, name);
    else if (!known || problem->grid == WIDE || known->work <= problem->work ||
             (known->grid == SMALL && problem->grid == PRESCRIBED && known->work <= MODERATE))
        return;
    known->grid = problem->grid;
    known->problem = problem->problem;
    known->work = problem->grid == WIDE ? UINT64_MAX : problem->work;
}

static inline void note_grid(struct classes *c, const struct class_family *f, enum grid grid)
{
    struct class_names names = {{{0}}};
    struct class problem = {.grid = grid};
    for (; problem.problem < f->problems[grid]; problem.problem++) {
        if (!describe(f, grid, problem.problem, &names, &problem.work))
            continue;
        for (size_t a = 0; a < MOST_ASPECTS; a++)
            if (*names.of[a])
                note_class(c, names.of[a], &problem);
    }
}

static inline void note_classes(struct classes *c, const struct class_family *f)
{
    memset(c, 0, sizeof *c);
    note_grid(c, f, SMALL);
    if (test_parts() == 1)
        note_grid(c, f, WIDE);
    note_grid(c, f, PRESCRIBED);
}

static inline void assert_occurs(const struct classes *c, const char *words)
{
    for (size_t i = 0; i < c->count; i++)
        if (strstr(c->list[i].name, words))
            return;
    fail_msg("no problem of the grid has a class of \"%s\"", words);
}

static inline void assert_all_can_be_run(const struct classes *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i].grid == WIDE)
            fail_msg("no small problem has the class \"%s\"", c->list[i].name);
}

static inline uint64_t seeds_of(uint64_t work)
{
    return work <= FEW ? SEEDS : work <= MODERATE ? 2 : 1;
}

static inline void run_class(struct classes *c, const struct class_family *f,
                             const struct class *class, uint64_t turn)
{
    struct class_names names = {{{0}}};
    for (uint64_t i = 0; i < seeds_of(class->work); i++) {
        run_problem(f, class->grid, class->problem, 1 + (turn + i) % SEEDS, i > 0, &names);
        for (size_t a = 0; a < MOST_ASPECTS; a++)
            if (*names.of[a]) {
                struct class *run = find_class(c, names.of[a]);
                if (run)
                    run->run = true;
            }
        assert_true(class->run);
    }
}

/* Of the problems that are to be run, one in test_share. */
static inline void run_classes(const struct class_family *f)
{
    static struct classes classes;
    int problems = 0;
    note_classes(&classes, f);
    for (size_t i = 0; f->wanted[i]; i++)
        assert_occurs(&classes, f->wanted[i]);
    assert_all_can_be_run(&classes);
    for (size_t i = 0; i < classes.count; i++)
        if (!classes.list[i].run && test_in_share(problems++))
            run_class(&classes, f, &classes.list[i], i);
}

/* A list of numbers that a grid goes through. */
struct axis {
    const uint32_t *values;
    size_t count;
};
#define AXIS(...)                                                                                  \
    {                                                                                              \
        (const uint32_t[]){__VA_ARGS__},                                                           \
            sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)                             \
    }

/* The sizes of a grid's problems: multiprocessors, both sizes of the weights, rows. */
enum { AXES = 4 };
struct axes {
    struct axis axis[AXES];
};

static inline size_t count_of(const struct axes *axes)
{
    size_t count = 1;
    for (int i = 0; i < AXES; i++)
        count *= axes->axis[i].count;
    return count;
}

/* The sizes that the number's digits say, which it is divided by. */
static inline void take_sizes(size_t *number, const struct axes *axes, uint32_t *const sizes[AXES])
{
    for (int i = 0; i < AXES; i++)
        *sizes[i] = axes->axis[i].values[take_digit(number, axes->axis[i].count)];
}

#endif
