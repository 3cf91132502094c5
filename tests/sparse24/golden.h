/* SPDX-License-Identifier: Apache-2.0 */
/* tests/golden/sparse24_torch.safetensors: weights, values and metadata that PyTorch wrote. */
#ifndef PTXGEN_TESTS_SPARSE24_GOLDEN_H
#define PTXGEN_TESTS_SPARSE24_GOLDEN_H

#include <ptxgen/files.h>
#include "tests/status.h"

#include <ptxgen/sparse24_formats.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct golden_weight {
    const char *name;
    ptxgen_sparse24_shape shape;
    ptxgen_const_span dense, values, cutlass;
};

static const struct {
    const char *name;
    ptxgen_sparse24_type type;
} golden_types[] = {
    {"f16", PTXGEN_SPARSE24_F16}, {"bf16", PTXGEN_SPARSE24_BF16}, {"s8", PTXGEN_SPARSE24_S8}};

enum { GOLDEN_WEIGHTS = sizeof golden_types / sizeof *golden_types };

static inline ptxgen_files *golden_open(void)
{
    ptxgen_files *store;
    ptxgen_error err;
    assert_ok(ptxgen_files_open(GOLDEN_DIR "/sparse24_torch.safetensors", &store, &err), &err);
    return store;
}

static inline const ptxgen_tensor *golden_tensor(ptxgen_files *store, const char *type,
                                                 const char *part)
{
    char name[32];
    snprintf(name, sizeof name, "%s.%s", type, part);
    const ptxgen_tensor *tensor;
    ptxgen_error err;
    assert_ok(ptxgen_files_require(store, name, &tensor, &err), &err);
    return tensor;
}

static inline struct golden_weight golden_weight(ptxgen_files *store, int index)
{
    const char *name = golden_types[index].name;
    const ptxgen_tensor *dense = golden_tensor(store, name, "dense");
    const ptxgen_tensor *values = golden_tensor(store, name, "sparse");
    const ptxgen_tensor *cutlass = golden_tensor(store, name, "meta_cutlass");
    return (struct golden_weight){name,
                                  {golden_types[index].type, dense->shape[0], dense->shape[1]},
                                  {dense->data, dense->bytes},
                                  {values->data, values->bytes},
                                  {cutlass->data, cutlass->bytes}};
}

/* Memory of exactly `bytes`, so that a sanitizer sees one byte beyond. */
static inline ptxgen_span span_of(size_t bytes)
{
    ptxgen_span span = {malloc(bytes ? bytes : 1), bytes};
    assert_non_null(span.data);
    memset(span.data, 0xA5, bytes);
    return span;
}

static inline ptxgen_const_span read_only(ptxgen_span span)
{
    return (ptxgen_const_span){span.data, span.bytes};
}

static inline ptxgen_span metadata_span(const ptxgen_sparse24_shape *shape,
                                        ptxgen_sparse24_form form)
{
    size_t bytes;
    assert_int_equal(ptxgen_sparse24_metadata_bytes(shape, form, &bytes, NULL), PTXGEN_OK);
    return span_of(bytes);
}

static inline size_t element_bytes(ptxgen_sparse24_type type)
{
    return type == PTXGEN_SPARSE24_F32 ? 4 : type == PTXGEN_SPARSE24_S8 ? 1 : 2;
}

#endif
