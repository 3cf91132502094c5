/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/gguf_matvec.h>

#include <ptxgen/gguf_linear.h>

enum { MATRICES = PTXGEN_GGUF_MATVEC_MATRICES };

/* What is multiplied, as a spec of gguf_linear. */
static ptxgen_status make_spec(uint32_t count, const uint32_t *w_types, const uint32_t *n,
                               uint32_t epilogue, uint32_t k, uint32_t x_type, uint32_t y_type,
                               ptxgen_gguf_linear_spec *spec, ptxgen_error *err)
{
    if (!count || count > MATRICES || !w_types || !n)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_matvec: count = %u; w_types and n of 1 to %d matrices must be "
                           "given",
                           count, MATRICES);
    *spec = (ptxgen_gguf_linear_spec){.k = k,
                                      .max_m = PTXGEN_GGUF_MATVEC_MAX_M,
                                      .x_type = (uint8_t)x_type,
                                      .y_type = (uint8_t)y_type,
                                      .epilogue = (uint8_t)epilogue};
    uint32_t most = x_type > y_type ? x_type : y_type;
    most = most > epilogue ? most : epilogue;
    for (uint32_t i = 0; i < count; i++) {
        most = most > w_types[i] ? most : w_types[i];
        spec->n[i] = n[i];
        spec->w_type[i] = (uint8_t)w_types[i];
    }
    if (most > UINT8_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_matvec: %u is the number of no type and of no epilogue", most);
    return PTXGEN_OK;
}

/* The matrices one after the other, and their outputs side by side. */
static ptxgen_status place(const ptxgen_gguf_linear_spec *spec, const uint64_t *row_bytes,
                           ptxgen_gguf_linear_args *args, ptxgen_error *err)
{
    const uint64_t element = ptxgen_element_size((ptxgen_element)spec->y_type);
    const uint32_t outputs = spec->epilogue ? 1 : MATRICES;
    uint64_t w = args->w[0], y = args->y[0], columns = 0;
    for (uint32_t i = 0; i < MATRICES && spec->n[i]; i++) {
        size_t bytes = 0;
        ptxgen_gguf_row_bytes(spec->w_type[i], spec->k, &bytes, NULL);
        if (row_bytes && row_bytes[i] && row_bytes[i] != bytes)
            return ptxgen_fail(
                err, PTXGEN_ERROR_INVALID_ARGUMENT,
                "gguf_matvec: row_bytes[%u] = %llu; a row of %s with K = %u has %zu, "
                "and rows are without gaps",
                i, (unsigned long long)row_bytes[i], ptxgen_gguf_type_find(spec->w_type[i])->name,
                spec->k, bytes);
        args->w[i] = w;
        w += spec->n[i] * (uint64_t)bytes;
        args->y[i] = i < outputs ? y : 0;
        y += spec->n[i] * element;
        columns += i < outputs ? spec->n[i] : 0;
    }
    for (uint32_t i = 0; i < outputs; i++)
        args->y_stride[i] = args->y_stride[0] ? args->y_stride[0] : columns;
    return PTXGEN_OK;
}

ptxgen_status ptxgen_gguf_matvec_merged(
    ptxgen_dispatcher *dispatcher, uint32_t count, const uint32_t *w_types, const uint32_t *n,
    const uint64_t *row_bytes, uint32_t epilogue, uint64_t w, uint64_t x, uint64_t y, uint32_t k,
    uint32_t m, uint64_t x_stride, uint64_t y_stride, uint32_t x_type, uint32_t y_type,
    uint64_t workspace, uint64_t workspace_bytes, ptxgen_cu_stream stream, ptxgen_error *err)
{
    ptxgen_gguf_linear_spec spec;
    ptxgen_gguf_linear *kernel;
    ptxgen_gguf_linear_args args = {.m = m,
                                    .x = x,
                                    .w = {w},
                                    .y = {y},
                                    .workspace = workspace,
                                    .x_stride = x_stride,
                                    .y_stride = {y_stride},
                                    .workspace_bytes = workspace_bytes};
    ptxgen_status status = make_spec(count, w_types, n, epilogue, k, x_type, y_type, &spec, err);
    if (status == PTXGEN_OK)
        status = ptxgen_gguf_linear_dispatch(dispatcher, &spec, &kernel, err);
    if (status != PTXGEN_OK)
        return status;
    status = place(&spec, row_bytes, &args, err);
    if (status == PTXGEN_OK)
        status = ptxgen_gguf_linear_launch(kernel, &args, stream, err);
    ptxgen_gguf_linear_destroy(kernel);
    return status;
}

ptxgen_status ptxgen_gguf_matvec(ptxgen_dispatcher *dispatcher, uint32_t w_type, uint64_t w,
                                 uint64_t x, uint64_t y, uint32_t k, uint32_t n, uint32_t m,
                                 uint64_t x_stride, uint64_t y_stride, uint32_t x_type,
                                 uint32_t y_type, uint64_t workspace, uint64_t workspace_bytes,
                                 ptxgen_cu_stream stream, ptxgen_error *err)
{
    return ptxgen_gguf_matvec_merged(dispatcher, 1, &w_type, &n, NULL, PTXGEN_EPILOGUE_NONE, w, x,
                                     y, k, m, x_stride, y_stride, x_type, y_type, workspace,
                                     workspace_bytes, stream, err);
}

ptxgen_status ptxgen_gguf_matvec_workspace(ptxgen_dispatcher *dispatcher, uint32_t count,
                                           const uint32_t *w_types, const uint32_t *n,
                                           uint32_t epilogue, uint32_t k, uint32_t x_type,
                                           uint32_t y_type, uint64_t *bytes, ptxgen_error *err)
{
    ptxgen_gguf_linear_spec spec;
    ptxgen_gguf_linear *kernel;
    if (!bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "gguf_matvec: bytes is NULL");
    *bytes = 0;
    ptxgen_status status = make_spec(count, w_types, n, epilogue, k, x_type, y_type, &spec, err);
    if (status == PTXGEN_OK)
        status = ptxgen_gguf_linear_dispatch(dispatcher, &spec, &kernel, err);
    if (status != PTXGEN_OK)
        return status;
    for (uint64_t m = 1; status == PTXGEN_OK && m <= PTXGEN_GGUF_MATVEC_MAX_M; m++) {
        const ptxgen_gguf_linear_args args = {.m = m};
        uint64_t needed = 0;
        status = ptxgen_gguf_linear_workspace_bytes(kernel, &args, &needed, err);
        *bytes = *bytes > needed ? *bytes : needed;
    }
    ptxgen_gguf_linear_destroy(kernel);
    return status;
}
