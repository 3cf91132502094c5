/* SPDX-License-Identifier: Apache-2.0 */
/** What a bench times: a family's kernel over random operands, the weights several times over. */
#ifndef PTXGEN_HARNESS_BENCH_H
#define PTXGEN_HARNESS_BENCH_H

#include "device.h"
#include "harness.h"

struct bench_subject {
    void *state;
    char shape[160];       /**< "K=4096 N=14336 M=1 x=f16 …" */
    uint32_t k, n, m;      /**< sizes of the product that a general library would compute */
    ptxgen_element type;   /**< type in which a general library would compute: bf16 or f16 */
    bool e4m3;             /**< codes of 8 bits are e4m3, else s8 */
    uint32_t copies;       /**< of the weights; a launch uses one */
    uint64_t weight_bytes; /**< of one copy */
    uint64_t bytes;        /**< that a launch reads and writes, each once */
    double flops;
    bool tensor_f16; /**< that are f16's or bf16's on tensor cores */
    double plan_seconds, emit_seconds, jit_seconds;
    uint64_t text_bytes;
    int registers, local_bytes, shared_bytes;
    uint32_t grid;
    const char *entry;                  /**< that serves m, where the family says it */
    uint32_t tile[PTXGEN_TILE_NUMBERS]; /**< of that entry, by the family's tiling; zeros: none */
    /** Turns to launches of m tokens, with what is there already; NULL: prepare another subject. */
    ptxgen_status (*set_m)(struct bench_subject *subject, uint32_t m, ptxgen_error *err);
    /**
     * Has every M served by this tile from the next set_m on, and plan, emission and JIT not timed.
     * NULL for a family without tiling.
     */
    void (*use_tile)(void *state, const uint32_t tile[PTXGEN_TILE_NUMBERS]);
    /** Enqueues one launch on the device's stream, over weights `copy`. */
    ptxgen_status (*launch)(void *state, uint32_t copy, ptxgen_error *err);
    /** 1 lets a launch begin before the one ahead of it has ended; NULL when it cannot. */
    uint32_t *overlap;
    void (*destroy)(void *state);
};

/**
 * Prepares launches of m tokens. The spec and the tile of the request are copied. The subject is
 * released by its own `destroy`, but after an error.
 */
ptxgen_status bench_prepare(const struct harness *harness, const struct kernel_request *request,
                            uint32_t m, struct device *device, struct bench_subject *subject,
                            ptxgen_error *err);

/**
 * Fills the subject's emit_seconds, jit_seconds and text_bytes: medians of several emissions, and
 * of several loads of the text with nothing cached.
 */
ptxgen_status bench_emission(struct device *device, const ptxgen_target *target,
                             const ptxgen_family *family, const void *plan,
                             struct bench_subject *subject, ptxgen_error *err);

#endif
