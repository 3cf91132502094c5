/* SPDX-License-Identifier: Apache-2.0 */
/* A device of the emulator with a dispatcher, on which the example's kernels are tried alone. */
#ifndef PTXGEN_TESTS_GENERATE_BED_H
#define PTXGEN_TESTS_GENERATE_BED_H

#include "tests/random.h"
#include "tests/status.h"

#include <ptxgen/dispatch.h>
#include <ptxgen/emulator.h>
#include <ptxgen/types.h>

#include <stdlib.h>

struct bed {
    ptxgen_driver driver;
    ptxgen_cu_context context;
    ptxgen_dispatcher *dispatcher;
};

static inline void bed_open(struct bed *bed, const char *device)
{
    int ordinal;
    ptxgen_error err;
    const ptxgen_dispatch_options options = {.no_cache = true};
    ptxgen_emulator_driver(&bed->driver);
    assert_ok(ptxgen_emulator_ordinal(device, &ordinal, &err), &err);
    assert_ok(ptxgen_driver_start(&bed->driver, &err), &err);
    assert_int_equal(bed->driver.ctx_create(&bed->context, 0, ordinal), 0);
    assert_ok(ptxgen_dispatcher_create(&bed->driver, &options, &bed->dispatcher, &err), &err);
}

/* The context takes its memory with it. */
static inline void bed_close(struct bed *bed)
{
    ptxgen_dispatcher_destroy(bed->dispatcher);
    assert_int_equal(bed->driver.ctx_destroy(bed->context), 0);
}

/* The kernels of a spec; the dispatcher keeps them. */
static inline ptxgen_loaded *bed_load(struct bed *bed, const ptxgen_family *family,
                                      const void *spec)
{
    ptxgen_loaded *loaded = NULL;
    ptxgen_error err;
    assert_ok(ptxgen_dispatch(bed->dispatcher, family, spec, &loaded, &err), &err);
    ptxgen_release(loaded);
    return loaded;
}

static inline void bed_synchronise(const struct bed *bed)
{
    ptxgen_emulator_fault fault;
    int result = bed->driver.ctx_synchronize();
    ptxgen_emulator_last_fault(bed->context, &fault);
    if (result)
        fail_msg("%s", fault.message);
}

static inline uint64_t bed_alloc(const struct bed *bed, size_t bytes)
{
    ptxgen_cu_deviceptr to = 0;
    assert_int_equal(bed->driver.mem_alloc(&to, bytes), 0);
    return to;
}

static inline uint64_t bed_upload(const struct bed *bed, const void *from, size_t bytes)
{
    uint64_t to = bed_alloc(bed, bytes);
    assert_int_equal(bed->driver.memcpy_htod(to, from, bytes), 0);
    return to;
}

/* An array of elements in host memory: what the device has of it, too. */
struct array {
    uint8_t type;
    size_t count;
    void *host;
    uint64_t device;
};

static inline double array_at(const struct array *a, size_t i)
{
    return ptxgen_element_load((ptxgen_element)a->type, a->host, i);
}

/* Normal numbers, times `scale`. */
static inline struct array array_random(const struct bed *bed, struct random *r, uint8_t type,
                                        size_t count, double scale)
{
    size_t bytes = count * ptxgen_element_size((ptxgen_element)type);
    struct array a = {type, count, malloc(bytes), 0};
    for (size_t i = 0; i < count; i++)
        ptxgen_element_store((ptxgen_element)type, a.host, i, scale * random_normal(r));
    a.device = bed_upload(bed, a.host, bytes);
    return a;
}

/* Memory of the device that holds nothing yet; the emulator reports reads of it. */
static inline struct array array_unwritten(const struct bed *bed, uint8_t type, size_t count)
{
    size_t bytes = count * ptxgen_element_size((ptxgen_element)type);
    return (struct array){type, count, calloc(1, bytes), bed_alloc(bed, bytes)};
}

/* Copies `count` elements from `first` on back from the device. */
static inline void array_fetch(const struct bed *bed, const struct array *a, size_t first,
                               size_t count)
{
    size_t size = ptxgen_element_size((ptxgen_element)a->type);
    assert_int_equal(bed->driver.memcpy_dtoh((char *)a->host + first * size,
                                             a->device + first * size, count * size),
                     0);
}

static inline void array_free(struct array *a)
{
    free(a->host);
}

/* Half a unit in the last place of 1, where values are rounded to `type`. */
static inline double rounding_of(uint8_t type)
{
    return type == PTXGEN_F32 ? 0x1p-24 : type == PTXGEN_F16 ? 0x1p-11 : 0x1p-8;
}

#endif
