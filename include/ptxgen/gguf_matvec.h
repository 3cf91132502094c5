/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gguf_matvec: products of up to 8 tokens with GGUF weights by plain integers and addresses, for
 * engines that have tensors, streams and memory of their own.
 *
 *     y[m,n] = Σ_k w[n,k]·x[m,k]      x [M, K], w [N, K] in rows of a GGUF type, y [M, N]
 *
 * A call takes what an engine's kernel for quantised vectors takes: the weights, x and y, K, N, the
 * strides, M and a stream. It finds the kernel of gguf_linear (gguf_linear.h) for these types, K
 * and N in the dispatcher, which is the cache that the engine owns, one for each CUDA context, and
 * launches it. x is read in its own type: nothing is quantised ahead of the call.
 *
 *     uint64_t bytes;                                     // once for each shape, ahead of a
 * capture ptxgen_gguf_matvec_workspace(dispatcher, 1, &type, &n, 0, k, PTXGEN_F32, PTXGEN_F32,
 * &bytes, &err); ptxgen_gguf_matvec(dispatcher, type, w, x, y, k, n, m, 0, 0, PTXGEN_F32,
 * PTXGEN_F32, workspace, bytes, stream, &err);
 *
 * ptxgen_gguf_matvec_merged multiplies two or three matrices that share x and lie one after the
 * other in one buffer, as Q, K and V are merged, each of its own type and so with rows of its own
 * length; their outputs are neighbours in each row of y.
 *
 * Numbers of types are those of GGUF files (gguf_types.h), and of elements ptxgen_element.
 * Addresses are the device's; what they must be multiples of, the range of numbers and the bound
 * are those of gguf_linear. For norms, residuals, biases, more tokens, or launches that overlap the
 * one ahead use gguf_linear itself.
 *
 * Workspace. A launch writes to its workspace before it reads it. Launches that may run at the same
 * time need workspaces of their own; those of one stream share one that is as large as the largest.
 *
 * Threads: as for dispatch.h; any number of threads may call at the same time. The dispatcher's
 * context is current in the calling thread. A call that finds its kernel allocates nothing, waits
 * for nothing, and may be captured into a graph.
 */
#ifndef PTXGEN_GGUF_MATVEC_H
#define PTXGEN_GGUF_MATVEC_H

#include <ptxgen/dispatch.h>
#include <ptxgen/gguf_types.h>
#include <ptxgen/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The most tokens of a call, and the most matrices. */
enum { PTXGEN_GGUF_MATVEC_MAX_M = 8, PTXGEN_GGUF_MATVEC_MATRICES = 3 };

/**
 * Enqueues one product on `stream`. Strides are in elements, 0 for rows without gaps; m = 0
 * launches nothing. Errors, before anything runs: PTXGEN_ERROR_INVALID_ARGUMENT for an m above 8, a
 * null or misaligned address, a stride below its row, arrays that overlap or a workspace that is
 * too small; PTXGEN_ERROR_UNSUPPORTED for a shape that gguf_linear does not have; those of
 * ptxgen_dispatch and ptxgen_launch.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_matvec(ptxgen_dispatcher *dispatcher, uint32_t w_type,
                                            uint64_t w, uint64_t x, uint64_t y, uint32_t k,
                                            uint32_t n, uint32_t m, uint64_t x_stride,
                                            uint64_t y_stride, uint32_t x_type, uint32_t y_type,
                                            uint64_t workspace, uint64_t workspace_bytes,
                                            ptxgen_cu_stream stream, ptxgen_error *err);

/**
 * The same for `count` matrices, 1 to 3, of which matrix i has n[i] rows of w_types[i] at `w`,
 * behind those of the matrices before it. `row_bytes` may be NULL, or has the bytes of a row of
 * each matrix as the caller knows them, 0 for any: rows are without gaps, so another length is
 * refused. y is [m, Σ n], or with an `epilogue` (ptxgen_epilogue) over two matrices, gate and up,
 * y = f(gate)·up [m, n[0]].
 */
PTXGEN_API ptxgen_status ptxgen_gguf_matvec_merged(
    ptxgen_dispatcher *dispatcher, uint32_t count, const uint32_t *w_types, const uint32_t *n,
    const uint64_t *row_bytes, uint32_t epilogue, uint64_t w, uint64_t x, uint64_t y, uint32_t k,
    uint32_t m, uint64_t x_stride, uint64_t y_stride, uint32_t x_type, uint32_t y_type,
    uint64_t workspace, uint64_t workspace_bytes, ptxgen_cu_stream stream, ptxgen_error *err);

/**
 * Bytes of workspace that suffice for such calls with any m, a multiple of 16 in address. The
 * kernel is loaded then, so that later calls find it.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_matvec_workspace(ptxgen_dispatcher *dispatcher, uint32_t count,
                                                      const uint32_t *w_types, const uint32_t *n,
                                                      uint32_t epilogue, uint32_t k,
                                                      uint32_t x_type, uint32_t y_type,
                                                      uint64_t *bytes, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
