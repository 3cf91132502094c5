/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer as one object. A maker fills in a spec and arguments from the weights, and uploads them;
 * what families differ in besides is a table of functions and of places in their arguments.
 */
#ifndef PTXGEN_RUNTIME_LINEAR_H
#define PTXGEN_RUNTIME_LINEAR_H

#include <ptxgen/dense.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/linear.h>
#include <ptxgen/marlin.h>

#include "src/runtime/dispatcher.h"

union linear_family_args {
    ptxgen_marlin_args marlin;
    ptxgen_w8a8_args w8a8;
    ptxgen_sparse24_args sparse24;
    ptxgen_gguf_linear_args gguf;
    ptxgen_dense_args dense;
};

/* A family's calls, and where its arguments have what a run sets. */
struct linear_kind {
    ptxgen_status (*launch)(const void *kernel, const void *args, ptxgen_cu_stream stream,
                            ptxgen_error *err);
    ptxgen_status (*workspace)(const void *kernel, const void *args, uint64_t *bytes,
                               ptxgen_error *err);
    size_t m, x, y, x_stride, y_stride, x_bytes, y_bytes, workspace_at, workspace_bytes;
    size_t x_scale, x_scale_bytes; /* of codes that are the caller's; 0: x is never codes */
};
extern const struct linear_kind linear_marlin, linear_w8a8, linear_sparse24, linear_gguf,
    linear_dense;

enum { LINEAR_MOST_BUFFERS = 8 };

struct ptxgen_linear {
    const struct linear_kind *kind;
    const ptxgen_dispatcher *dispatcher;
    ptxgen_loaded *loaded;
    uint64_t max_m;
    uint32_t k, n;
    uint64_t bytes;
    unsigned buffer_count;
    ptxgen_cu_deviceptr buffers[LINEAR_MOST_BUFFERS];
    union linear_family_args args; /* all but what a run sets */
};

/* What a maker has besides its weights. */
struct linear_making {
    ptxgen_dispatcher *dispatcher;
    const ptxgen_linear_options *options;
};
typedef ptxgen_status linear_maker(const struct linear_making *m, const void *weights,
                                   ptxgen_linear *linear, ptxgen_error *err);
/* Checks the options and makes a layer by `fill`; *linear is NULL after a failure. */
ptxgen_status linear_make(const struct linear_making *m, linear_maker *fill, const void *weights,
                          ptxgen_linear **linear, ptxgen_error *err);

/* ---- for makers ---- */

/* The kernel of a spec, and the kind whose arguments are filled from then on. */
ptxgen_status linear_dispatch(ptxgen_linear *linear, const struct linear_making *m,
                              const struct linear_kind *kind, const ptxgen_family *family,
                              const void *spec, ptxgen_error *err);
/* Copies an array to memory of the layer's own; an empty one has the address 0. */
ptxgen_status linear_upload(ptxgen_linear *linear, const void *host, size_t bytes,
                            uint64_t *address, ptxgen_error *err);
/* The bias, n floats, in the type that the family takes; NULL: none. */
ptxgen_status linear_upload_bias(ptxgen_linear *linear, const float *bias, ptxgen_element type,
                                 uint64_t *address, ptxgen_error *err);
ptxgen_status linear_no_memory(ptxgen_error *err);

/* ---- makers ---- */

struct linear_w4 {
    const ptxgen_w4_checkpoint *weights, *up; /* up may be NULL */
};
/* n rows of k weights, of `bytes` in a GGUF type, or floats of the options' type. */
struct linear_rows {
    const void *rows;
    size_t bytes;
    uint32_t type, n, k;
    const struct linear_rows *up; /* of GGUF: with SwiGLU, of which these are gate; or NULL */
};
/* Of a struct linear_w4, a ptxgen_sparse24_weights, and for the others a struct linear_rows. */
linear_maker linear_fill_w4, linear_fill_sparse24, linear_fill_gguf, linear_fill_floats;

#endif
