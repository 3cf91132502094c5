/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What the command needs of a kernel family. A family is one entry of the table in families.c and
 * its files in families/; nothing else in the command knows it.
 *
 * `options` below is the family's own struct of `options_size` bytes, filled by its option parsers
 * and handed to every other function. M, the tokens of a launch, belongs to the commands.
 */
#ifndef PTXGEN_CLI_FAMILY_H
#define PTXGEN_CLI_FAMILY_H

#include "../harness/bench_subject.h"
#include "../harness/check.h"
#include "../harness/device.h"
#include "family_options.h"

#include <ptxgen/family.h>
#include <ptxgen/ptx.h>
#include <ptxgen/target.h>
#include <ptxgen/tune.h>

#include <argp.h>

/** One run that the user asked for. */
struct run_request {
    uint32_t m;
    bool m_given; /**< else m is 1, or what the input file holds */
    uint64_t seed;
};

struct problem;

struct family {
    const char *name;
    const char *summary; /**< one line */
    const struct harness *harness;
    const struct option_row *spec_rows, *data_rows; /**< of every command; of run alone */
    /** Completes the spec of options that were all read; or NULL. */
    void (*finish)(struct family_options *options);
    /** Makes the problem of the options' file. */
    ptxgen_status (*read)(const struct family_options *options, const struct run_request *request,
                          struct device *device, struct problem *p, ptxgen_error *err);

    const ptxgen_family *(*kernels)(void); /**< the library's family */
    size_t spec_offset;                    /**< of its spec in the options */
    size_t tuning_offset; /**< of a const ptxgen_tuning * in them, to plan by; 0: none */

    size_t options_size;
    void (*set_defaults)(void *options);
    const struct argp *spec_options; /**< of every command: their input is `options` */
    const struct argp *data_options; /**< of run alone: files; may be NULL */

    /** Fills the module for the options' spec on the target: what serves m tokens, 0 for all. */
    ptxgen_status (*emit)(const void *options, const ptxgen_target *target, uint32_t m,
                          ptx_module *module, ptxgen_error *err);
    /** What a launch of m > 0 tokens does. */
    ptxgen_status (*describe)(const void *options, const ptxgen_target *target, uint32_t m,
                              struct work *work, ptxgen_error *err);
    /** Runs once on random data or the options' files, and compares with the reference. */
    ptxgen_status (*run)(const void *options, const struct run_request *request,
                         struct device *device, struct check *check, ptxgen_error *err);
    /** The same on a spec, shape and layout drawn from the seed. */
    ptxgen_status (*run_random)(uint64_t seed, struct device *device, struct check *check,
                                ptxgen_error *err);
    /** Sets K and output features of the options, for bench --shape. */
    void (*set_shape)(void *options, uint32_t k, uint32_t n);
    bool int8_peer; /**< bench compares with a product of s8, else of f16 */
    /** Prepares to time m tokens; the subject is released by its own `destroy`. */
    ptxgen_status (*bench)(const void *options, uint32_t m, struct device *device,
                           struct bench_subject *subject, ptxgen_error *err);
};

/** The verbs of every family that has a harness. */
ptxgen_status family_emit(const void *options, const ptxgen_target *target, uint32_t m,
                          ptx_module *module, ptxgen_error *err);
ptxgen_status family_describe(const void *options, const ptxgen_target *target, uint32_t m,
                              struct work *work, ptxgen_error *err);
ptxgen_status family_run(const void *options, const struct run_request *request,
                         struct device *device, struct check *check, ptxgen_error *err);
ptxgen_status family_bench(const void *options, uint32_t m, struct device *device,
                           struct bench_subject *subject, ptxgen_error *err);
ptxgen_status family_run_random(const struct family *family, uint64_t seed, struct device *device,
                                struct check *check, ptxgen_error *err);
void family_set_shape(void *options, uint32_t k, uint32_t n);
/** The problem of m tokens by the options, all poison. */
ptxgen_status family_allocate(const struct family_options *options, uint32_t m,
                              struct device *device, struct problem *p, ptxgen_error *err);

/** The table; NULL past its end. */
const struct family *family_at(size_t index);
const struct family *family_find(const char *name);

#endif
