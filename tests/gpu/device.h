/* SPDX-License-Identifier: Apache-2.0 */
/* One side of the comparison: a GPU or the emulator, with the buffers that its runs use. */
#ifndef PTXGEN_TESTS_GPU_DEVICE_H
#define PTXGEN_TESTS_GPU_DEVICE_H

#include "program.h"

#include <ptxgen/driver.h>
#include <ptxgen/emulator.h>
#include <ptxgen/kernel.h>

struct cached {
    struct source source;
    unsigned slot;
    ptxgen_cu_deviceptr address;
    uint64_t digest; /* of what was copied there */
};

struct device {
    ptxgen_driver driver;
    ptxgen_cu_context context;
    uint32_t tuples;
    ptxgen_cu_deviceptr out, memory;
    struct cached *cache;
    size_t cached, capacity;
    void *staging;
    bool emulated;
    char name[64];
};

/* Opens GPU 0, or with options the emulator's sm_90; false with the sentence in *err. */
bool device_open(struct device *d, const ptxgen_emulator_options *options, uint32_t tuples,
                 ptxgen_error *err);
void device_close(struct device *d);

/* Runs a kernel of a loaded module; the lines of results and of memory come back. */
bool device_run(struct device *d, const ptxgen_module *m, const char *name, const struct plan *plan,
                uint64_t *out, uint64_t *memory, ptxgen_error *err);

/* The digest of all that the last run of this plan read. */
uint64_t device_inputs(const struct device *d, const struct plan *plan);

/* A tensor map over memory without gaps; the enumerations are CUtensorMap's. */
struct tensor {
    uint8_t type, bytes, rank; /* bytes of an element */
    uint8_t swizzle, fill;
    uint32_t sizes[5]; /* the innermost first; 0 stands for all that there is */
    uint32_t box[5], steps[5];
};

/* A block of memory for each CTA, a line for each of its threads. */
struct blocks {
    struct source in, out; /* what they hold before */
    bool maps;             /* two tensor maps follow the addresses: of in, and of out */
    struct tensor tensor;
};

/* Runs a kernel of (out, in[, map of in, map of out]); what is in out afterwards comes back. */
bool device_run_blocks(struct device *d, const ptxgen_module *m, const char *name,
                       const struct blocks *blocks, uint64_t *out, ptxgen_error *err);

/* The digest of all that the last run of these blocks read. */
uint64_t device_block_inputs(const struct device *d, const struct blocks *blocks);

#endif
