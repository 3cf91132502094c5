/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A linear layer in one object: weights packed, uploaded and kept with their kernel and workspace.
 *
 *     y[m,n] = f(Σ_k x[m,k]·w[n,k] + bias[n])      x [M, K] and y [M, N] on the device
 *
 * What an application writes for each layer otherwise (choose a spec from the weights, dispatch,
 * pack on the host, allocate, upload, ask for the workspace, fill in arguments) is one call here,
 * and another frees it all. The parts stay public: for residuals, norms, products that share
 * activations, or memory of your own use the family itself.
 *
 *     const ptxgen_linear_options options = {.type = PTXGEN_F16, .max_m = 64};
 *     ptxgen_w4_checkpoint layer = {
 *         .format = PTXGEN_W4_GPTQ_V1, .weights = qweight, .scales = scales, .zeros = qzeros};
 *     ptxgen_linear *linear;
 *     if (ptxgen_linear_from_w4(dispatcher, &layer, NULL, &options, &linear, &err) != PTXGEN_OK)
 *         return report(&err);
 *     const ptxgen_linear_args args = {.m = m, .x = x, .y = y};
 *     ptxgen_linear_run(linear, &args, stream, &err);         // as often as you like
 *     ptxgen_linear_destroy(linear);
 *
 * layer.h has the same for a layer of a file.
 *
 * Lifetime. Weights on the host are copied, and may go when the function returns. A layer holds a
 * reference of its dispatcher, so destroy it before the dispatcher, and after the last run has
 * ended on the device: destroying frees the memory.
 *
 * Threads. A layer has one workspace: runs of it that may be in flight at the same time, on two
 * streams, need a workspace of their own in their arguments, or a layer each. Making and destroying
 * layers belongs to one thread at a time for each layer; different layers are independent.
 *
 * Errors: a status and a sentence; *linear is NULL after a failure. Making a layer allocates,
 * compiles and waits; running it does neither, and may be captured into a graph.
 */
#ifndef PTXGEN_LINEAR_H
#define PTXGEN_LINEAR_H

#include <ptxgen/dispatch.h>
#include <ptxgen/gguf_types.h>
#include <ptxgen/layer.h>
#include <ptxgen/marlin.h>
#include <ptxgen/marlin_formats.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/types.h>
#include <ptxgen/w8a8.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ptxgen_linear ptxgen_linear;

/** Zero it, then fill it. */
typedef struct ptxgen_linear_options {
    uint64_t max_m;     /**< the most tokens of a run, 1 to 65,536: the workspace is for these */
    uint8_t type;       /**< of x and y: PTXGEN_F16, _BF16 or _F32, as far as the family has it */
    uint8_t activation; /**< ptxgen_activation, as far as the family has it */
    uint8_t reserved[6];
    const float *bias; /**< [n], on the host, rounded to what the family takes; NULL: none */
} ptxgen_linear_options;

/**
 * A layer with 4-bit weights, by `marlin`: any format of ptxgen/marlin_formats.h. With `up`, which
 * may be NULL, y = silu(gate) · up, `weights` being gate; a bias or an activation is then refused.
 * Errors: those of ptxgen_w4_describe, the family's plan and its packing.
 */
PTXGEN_API ptxgen_status ptxgen_linear_from_w4(ptxgen_dispatcher *dispatcher,
                                               const ptxgen_w4_checkpoint *weights,
                                               const ptxgen_w4_checkpoint *up,
                                               const ptxgen_linear_options *options,
                                               ptxgen_linear **linear, ptxgen_error *err);
/**
 * A layer in 8 bits, by `w8a8`: float weights are quantised here, s8, e4m3 or e5m2 as `codes` says,
 * and x in each run, to e4m3 where weights are e5m2.
 */
PTXGEN_API ptxgen_status ptxgen_linear_from_w8a8(ptxgen_dispatcher *dispatcher,
                                                 const ptxgen_w8a8_weights *weights,
                                                 const ptxgen_linear_options *options,
                                                 ptxgen_linear **linear, ptxgen_error *err);
/** A layer of n rows of k weights in a GGUF type, by `gguf_linear`, of `bytes` bytes in all. */
PTXGEN_API ptxgen_status ptxgen_linear_from_gguf(ptxgen_dispatcher *dispatcher, uint32_t type,
                                                 const void *rows, size_t bytes, uint32_t n,
                                                 uint32_t k, const ptxgen_linear_options *options,
                                                 ptxgen_linear **linear, ptxgen_error *err);
/** A layer of weights w [n, k] of the options' type, by `dense`. */
PTXGEN_API ptxgen_status ptxgen_linear_from_floats(ptxgen_dispatcher *dispatcher, const void *w,
                                                   uint32_t n, uint32_t k,
                                                   const ptxgen_linear_options *options,
                                                   ptxgen_linear **linear, ptxgen_error *err);
/** A 2:4 sparse weight on the host, as ptxgen/sparse24_formats.h has it; zero it, then fill it. */
typedef struct ptxgen_sparse24_weights {
    ptxgen_sparse24_shape shape;
    ptxgen_const_span dense; /**< [n, k], of which each group of four has two zeros; or: */
    ptxgen_const_span values, metadata; /**< [n, k / 2], and which two of each four they are */
    ptxgen_sparse24_form form;          /**< of the metadata */
    const float *scales;                /**< s8: [n], finite; NULL: ones */
    float x_scale;                      /**< s8: of all of x where a run brings none; 0: 1 */
} ptxgen_sparse24_weights;

/**
 * A layer of 2:4 sparse weights, by `sparse24`: floats of the options' type, or s8, whose x is s8
 * codes [m, k] too, with a scale for each token, and whose y has the options' type, f16 or bf16.
 * Errors besides the family's: a dense weight with more than two non-zeros in a group, metadata
 * that describes no 2:4 weight, sizes that are not the shape's.
 */
PTXGEN_API ptxgen_status ptxgen_linear_from_sparse24(ptxgen_dispatcher *dispatcher,
                                                     const ptxgen_sparse24_weights *weights,
                                                     const ptxgen_linear_options *options,
                                                     ptxgen_linear **linear, ptxgen_error *err);

/* ---- layers of files ---- */

/**
 * A layer of a file, which ptxgen_files_layer (layer.h, in libptxgen-files) has found, by the
 * family of its kind:
 *
 *     W4         marlin; a packed layer has the options' type
 *     W8         w8a8: x is quantised in each run, by the file's input_scale where there is one
 *     SPARSE24   sparse24, as ptxgen_linear_from_sparse24; dense weights must be 2:4 sparse
 *     GGUF       gguf_linear
 *     FLOATS     dense; weights are rounded to the options' type
 *
 * The layer's bias is added, unless the options have one. With `up`, which may be NULL and is of
 * the same kind, y = silu(gate) · up, `layer` being gate; of W4, W8 and GGUF, and without a bias
 * and an activation. The files may be closed when the function returns. Whoever fills a
 * ptxgen_layer by another reader gives it tensors that are whole: `bytes` of data, which shape and
 * dtype take.
 *
 * Errors: PTXGEN_ERROR_INVALID_ARGUMENT for parts that do not fit each other,
 * PTXGEN_ERROR_UNSUPPORTED for what the family does not do, and those of the family's makers above.
 */
PTXGEN_API ptxgen_status ptxgen_linear_from_layer(ptxgen_dispatcher *dispatcher,
                                                  const ptxgen_layer *layer, const ptxgen_layer *up,
                                                  const ptxgen_linear_options *options,
                                                  ptxgen_linear **linear, ptxgen_error *err);
/**
 * The tensors of a W4 layer, of any form but PACKED, as marlin_formats.h has them; they are
 * borrowed. ptxgen_w4_describe checks them. Errors: PTXGEN_ERROR_INVALID_ARGUMENT for another kind
 * or form, and for a tensor of a type that no checkpoint has.
 */
PTXGEN_API ptxgen_status ptxgen_w4_from_layer(const ptxgen_layer *layer,
                                              ptxgen_w4_checkpoint *checkpoint, ptxgen_error *err);
/**
 * The arrays of a PACKED layer, borrowed, of which `order` may start at any address, and the
 * members of the spec that the file says: k, n, group_size, type, zeros, act_order. Errors:
 * PTXGEN_ERROR_INVALID_ARGUMENT for another form, PTXGEN_ERROR_MALFORMED for an array of another
 * size. ptxgen_marlin_check_packed checks their values.
 */
PTXGEN_API ptxgen_status ptxgen_marlin_packed_from_layer(const ptxgen_layer *layer,
                                                         ptxgen_marlin_spec *spec,
                                                         ptxgen_marlin_packed *packed,
                                                         ptxgen_error *err);
/**
 * The weight of a SPARSE24 layer, borrowed: all members but scales and x_scale, which stay 0. Its
 * sizes and metadata are checked by the functions that take it. PTXGEN_ERROR_INVALID_ARGUMENT for
 * another kind.
 */
PTXGEN_API ptxgen_status ptxgen_sparse24_from_layer(const ptxgen_layer *layer,
                                                    ptxgen_sparse24_weights *weights,
                                                    ptxgen_error *err);

/** Frees the layer's memory and its reference. NULL does nothing. */
PTXGEN_API void ptxgen_linear_destroy(ptxgen_linear *linear);

/** Input and output features, and bytes on the device, workspace included; 0 for NULL. */
PTXGEN_API uint32_t ptxgen_linear_k(const ptxgen_linear *linear);
PTXGEN_API uint32_t ptxgen_linear_n(const ptxgen_linear *linear);
PTXGEN_API uint64_t ptxgen_linear_bytes(const ptxgen_linear *linear);
/** The family that computes it, as "marlin"; NULL for NULL. */
PTXGEN_API const char *ptxgen_linear_family(const ptxgen_linear *linear);

/** One run; zero it, then fill it. The family's rules for addresses and overlaps hold. */
typedef struct ptxgen_linear_args {
    uint64_t m;                  /**< tokens: 0 runs nothing, at most the options' max_m */
    uint64_t x, y;               /**< device addresses of [m, k] and [m, n] */
    uint64_t x_stride, y_stride; /**< elements from row to row; 0: the row itself */
    uint64_t x_bytes, y_bytes;   /**< of the buffers at x and y; 0: unchecked */
    /** f32 [m], of x that is codes (sparse24's s8), or 0: the weights' x_scale; otherwise unused */
    uint64_t x_scale;
    uint64_t x_scale_bytes; /**< of that buffer; 0: unchecked */
    /**
     * A workspace of the caller's in place of the layer's, or 0: workspace_bytes of memory, at
     * least ptxgen_linear_workspace_bytes, at a multiple of 256, which is zeroed once and then used
     * by runs of this layer in one stream.
     */
    uint64_t workspace, workspace_bytes;
} ptxgen_linear_args;

/** Bytes of workspace that this run needs, which may be 0; pure. */
PTXGEN_API ptxgen_status ptxgen_linear_workspace_bytes(const ptxgen_linear *linear,
                                                       const ptxgen_linear_args *args,
                                                       uint64_t *bytes, ptxgen_error *err);
/** Enqueues the layer on a stream of the dispatcher's context, which is current. */
PTXGEN_API ptxgen_status ptxgen_linear_run(const ptxgen_linear *linear,
                                           const ptxgen_linear_args *args, ptxgen_cu_stream stream,
                                           ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
