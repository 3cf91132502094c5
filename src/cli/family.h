/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What the command needs of a kernel family. A family is one entry of the table in families.c, its
 * harness (src/harness), and its options and file formats in families/; nothing else in the command
 * knows it. M, the tokens of a launch, belongs to the commands.
 */
#ifndef PTXGEN_CLI_FAMILY_H
#define PTXGEN_CLI_FAMILY_H

#include "../harness/bench.h"
#include "../harness/check.h"
#include "../harness/device.h"
#include "family_options.h"

#include <ptxgen/family.h>
#include <ptxgen/files.h>
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
struct family_file;

/** Where names that the options have not given are kept. */
struct recognised_names {
    char layer[1024], norm[80];
};

struct family {
    const char *name;
    const char *summary; /**< one line */
    const struct harness *harness;
    bool codes_peer; /**< bench compares with a product of s8 or e4m3, else of f16 */

    const struct option_row *spec_rows; /**< of every command */
    const struct option_row *data_rows; /**< of run alone: a file, and names in it; or NULL */
    const void *defaults;               /**< a spec of the family's */
    /** Completes the spec of options that were all read; or NULL. */
    void (*finish)(struct family_options *options);
    /** Sets K and output features, for --shape; NULL: the options of these, or of K alone. */
    void (*set_shape)(struct family_options *options, uint32_t k, uint32_t n);
    /** What else is wrong with the options of run; or NULL. */
    void (*check_data)(struct argp_state *state, struct family_options *options);
    const struct family_file *file; /**< NULL: it has no files */
    /**
     * Whether a tensor of a file has the weights of a layer of the family's, by names, type and
     * shape: sets in the options how run would name the layer, or, without `file`, the spec; or
     * NULL.
     */
    bool (*recognise)(const ptxgen_files *files, const ptxgen_tensor *weights,
                      struct family_options *options, struct recognised_names *names);
};

/** Fills the module for the options' spec on the target: what serves m tokens, 0 for all. */
ptxgen_status family_emit(const struct family_options *options, const ptxgen_target *target,
                          uint32_t m, ptx_module *module, ptxgen_error *err);
/** What a launch of m > 0 tokens does. */
ptxgen_status family_describe(const struct family_options *options, const ptxgen_target *target,
                              uint32_t m, struct work *work, ptxgen_error *err);
/** Runs once on random data or the options' file, and compares with the reference. */
ptxgen_status family_run(const struct family_options *options, const struct run_request *request,
                         struct device *device, struct check *check, ptxgen_error *err);
/** Prepares to time m tokens; the subject is released by its own `destroy`. */
ptxgen_status family_bench(const struct family_options *options, uint32_t m, struct device *device,
                           struct bench_subject *subject, ptxgen_error *err);
/** Sets K and output features of the options, for --shape. */
void family_set_shape(struct family_options *options, uint32_t k, uint32_t n);
/** The problem of m tokens by the options, all poison. */
ptxgen_status family_allocate(const struct family_options *options, uint32_t m,
                              struct device *device, struct problem *p, ptxgen_error *err);

/** The table; NULL past its end. */
const struct family *family_at(size_t index);
const struct family *family_find(const char *name);

#endif
