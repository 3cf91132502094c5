/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include "operands.h"
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool check(struct device *d, ptxgen_cu_result result, const char *what, ptxgen_error *err)
{
    ptxgen_emulator_fault fault = {0};
    if (result == PTXGEN_CUDA_SUCCESS)
        return true;
    if (d->emulated)
        ptxgen_emulator_last_fault(d->context, &fault);
    if (fault.check)
        snprintf(err->message, sizeof err->message, "%s", fault.message);
    else
        ptxgen_driver_fail(&d->driver, result, err, "%s", what);
    return false;
}

static bool open_driver(struct device *d, int *ordinal, ptxgen_error *err)
{
    if (!d->emulated)
        return ptxgen_driver_open(&d->driver, NULL, err) == PTXGEN_OK;
    ptxgen_emulator_driver(&d->driver);
    return ptxgen_emulator_ordinal("cpu:sm_90", ordinal, err) == PTXGEN_OK &&
           ptxgen_driver_start(&d->driver, err) == PTXGEN_OK;
}

bool device_open(struct device *d, const ptxgen_emulator_options *options, uint32_t tuples,
                 ptxgen_error *err)
{
    int ordinal = 0;
    size_t lines = (size_t)tuples * FORM_LINE;
    *d = (struct device){.tuples = tuples, .emulated = options != NULL};
    d->staging = malloc(lines);
    return d->staging && open_driver(d, &ordinal, err) &&
           check(d, d->driver.device_get_name(d->name, sizeof d->name, ordinal), "the name", err) &&
           check(d, d->driver.ctx_create(&d->context, 0, ordinal), "a context", err) &&
           (!options || ptxgen_emulator_set_options(d->context, options, err) == PTXGEN_OK) &&
           check(d, d->driver.mem_alloc(&d->out, lines), "results", err) &&
           check(d, d->driver.mem_alloc(&d->memory, lines), "memory", err);
}

void device_close(struct device *d)
{
    if (d->context) {
        d->driver.ctx_set_current(d->context);
        for (size_t i = 0; i < d->cached; i++)
            d->driver.mem_free(d->cache[i].address);
        d->driver.mem_free(d->out);
        d->driver.mem_free(d->memory);
        d->driver.ctx_destroy(d->context);
    }
    ptxgen_driver_close(&d->driver);
    free(d->cache);
    free(d->staging);
}

/* ---- operands: made when first asked for, and kept ---- */

enum { LINE_SLOT = 255 }; /* the buffer holds a line of memory a thread, not a word */

static size_t fill_words(struct device *d, struct source s, unsigned slot)
{
    uint64_t *words = d->staging;
    for (uint32_t t = 0; t < d->tuples; t++)
        words[t] = operand_bits(s, slot, t);
    return d->tuples * sizeof *words;
}

static size_t fill_lines(struct device *d, struct source s)
{
    unsigned bytes = operand_width(s.type) / 8, count = FORM_LINE / bytes;
    unsigned char *at = d->staging;
    for (uint32_t t = 0; t < d->tuples; t++)
        for (unsigned i = 0; i < count; i++, at += bytes) {
            uint64_t bits = operand_bits(s, i, t);
            memcpy(at, &bits, bytes);
        }
    return (size_t)d->tuples * FORM_LINE;
}

static struct cached *cache_slot(struct device *d)
{
    if (d->cached == d->capacity) {
        d->capacity = d->capacity ? 2 * d->capacity : 64;
        d->cache = realloc(d->cache, d->capacity * sizeof *d->cache);
        if (!d->cache)
            abort();
    }
    return &d->cache[d->cached++];
}

static const struct cached *find_cached(const struct device *d, struct source s, unsigned slot)
{
    for (size_t i = 0; i < d->cached; i++)
        if (memcmp(&d->cache[i].source, &s, sizeof s) == 0 && d->cache[i].slot == slot)
            return &d->cache[i];
    return NULL;
}

static uint64_t fold_staging(const struct device *d, size_t bytes)
{
    const uint64_t *words = d->staging;
    uint64_t digest = 0;
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        digest = truth_fold(digest, words[i]);
    return digest;
}

static bool find_buffer(struct device *d, struct source s, unsigned slot,
                        ptxgen_cu_deviceptr *address, ptxgen_error *err)
{
    const struct cached *found = find_cached(d, s, slot);
    if (found) {
        *address = found->address;
        return true;
    }
    size_t bytes = slot == LINE_SLOT ? fill_lines(d, s) : fill_words(d, s, slot);
    if (!check(d, d->driver.mem_alloc(address, bytes), "operands", err))
        return false;
    *cache_slot(d) = (struct cached){s, slot, *address, fold_staging(d, bytes)};
    return check(d, d->driver.memcpy_htod(*address, d->staging, bytes), "operands", err);
}

static bool fill_memory(struct device *d, struct source s, ptxgen_error *err)
{
    ptxgen_cu_deviceptr lines;
    return find_buffer(d, s, LINE_SLOT, &lines, err) &&
           check(d, d->driver.memcpy_dtod(d->memory, lines, (size_t)d->tuples * FORM_LINE),
                 "memory", err);
}

static bool launch(struct device *d, const ptxgen_module *m, const char *name, void **arguments,
                   ptxgen_error *err)
{
    ptxgen_kernel *kernel;
    ptxgen_launch_shape shape = {.grid = {d->tuples / FORM_THREADS, 1, 1},
                                 .block = {FORM_THREADS, 1, 1}};
    if (ptxgen_kernel_create(m, name, 0, &kernel, err) != PTXGEN_OK)
        return false;
    bool done = ptxgen_launch(kernel, &shape, NULL, arguments, err) == PTXGEN_OK;
    ptxgen_cu_result result = d->driver.ctx_synchronize();
    ptxgen_kernel_destroy(kernel);
    return check(d, result, "the launch", err) && done;
}

static uint64_t block_word(unsigned i)
{
    return operand_bits((struct source){.type = PTX_U64}, i, 1000);
}

bool device_run(struct device *d, const ptxgen_module *m, const char *name, const struct plan *plan,
                uint64_t *out, uint64_t *memory, ptxgen_error *err)
{
    ptxgen_cu_deviceptr buffers[FORM_SOURCES];
    void *arguments[FORM_SOURCES + 3] = {&d->out, &d->memory};
    uint64_t block[FORM_LINE / 8];
    size_t lines = (size_t)d->tuples * FORM_LINE;
    for (unsigned i = 0; i < plan->source_count; i++) {
        if (!find_buffer(d, plan->sources[i], i, &buffers[i], err))
            return false;
        arguments[2 + i] = &buffers[i];
    }
    for (unsigned i = 0; i < FORM_LINE / 8; i++)
        block[i] = block_word(i);
    arguments[2 + plan->source_count] = block;
    return (!plan->space || fill_memory(d, plan->memory, err)) &&
           check(d, d->driver.memset_d8(d->out, 0, lines), "results", err) &&
           launch(d, m, name, arguments, err) &&
           check(d, d->driver.memcpy_dtoh(out, d->out, lines), "results", err) &&
           (!plan->space ||
            check(d, d->driver.memcpy_dtoh(memory, d->memory, lines), "memory", err));
}

static uint64_t fold_buffer(const struct device *d, uint64_t digest, struct source s, unsigned slot)
{
    const struct cached *found = find_cached(d, s, slot);
    return truth_fold(digest, found ? found->digest : 0);
}

uint64_t device_inputs(const struct device *d, const struct plan *plan)
{
    uint64_t digest = d->tuples;
    for (unsigned i = 0; i < plan->source_count; i++)
        digest = fold_buffer(d, digest, plan->sources[i], i);
    for (unsigned i = 0; plan->space == 'p' && i < FORM_LINE / 8; i++)
        digest = truth_fold(digest, block_word(i));
    return plan->space ? fold_buffer(d, digest, plan->memory, LINE_SLOT) : digest;
}

static bool encode_map(struct device *d, const struct tensor *t, ptxgen_cu_deviceptr lines,
                       ptxgen_cu_tensor_map *map, ptxgen_error *err)
{
    uint64_t sizes[5], strides[5], bytes = t->bytes;
    for (unsigned i = 0; i < t->rank; i++) {
        sizes[i] = t->sizes[i] ? t->sizes[i] : d->tuples * (uint64_t)FORM_LINE / bytes;
        strides[i] = bytes *= sizes[i];
    }
    return check(d,
                 d->driver.tensor_map_encode_tiled(map, t->type, t->rank, (void *)(uintptr_t)lines,
                                                   sizes, strides, t->box, t->steps, 0, t->swizzle,
                                                   0, t->fill),
                 "a tensor map", err);
}

bool device_run_blocks(struct device *d, const ptxgen_module *m, const char *name,
                       const struct blocks *blocks, uint64_t *out, ptxgen_error *err)
{
    ptxgen_cu_deviceptr before;
    ptxgen_cu_tensor_map maps[2];
    void *arguments[] = {&d->out, &d->memory, &maps[0], &maps[1]};
    size_t lines = (size_t)d->tuples * FORM_LINE;
    return fill_memory(d, blocks->in, err) &&
           find_buffer(d, blocks->out, LINE_SLOT, &before, err) &&
           check(d, d->driver.memcpy_dtod(d->out, before, lines), "results", err) &&
           (!blocks->maps || (encode_map(d, &blocks->tensor, d->memory, &maps[0], err) &&
                              encode_map(d, &blocks->tensor, d->out, &maps[1], err))) &&
           launch(d, m, name, arguments, err) &&
           check(d, d->driver.memcpy_dtoh(out, d->out, lines), "results", err);
}

uint64_t device_block_inputs(const struct device *d, const struct blocks *blocks)
{
    const struct tensor *t = &blocks->tensor;
    const uint8_t facts[] = {blocks->maps, t->type, t->bytes, t->rank, t->swizzle, t->fill};
    uint64_t digest = d->tuples;
    digest = fold_buffer(d, digest, blocks->in, LINE_SLOT);
    digest = fold_buffer(d, digest, blocks->out, LINE_SLOT);
    for (size_t i = 0; i < sizeof facts; i++)
        digest = truth_fold(digest, facts[i]);
    for (unsigned i = 0; i < t->rank; i++) {
        digest = truth_fold(digest, t->sizes[i]);
        digest = truth_fold(digest, t->box[i]);
        digest = truth_fold(digest, t->steps[i]);
    }
    return digest;
}
