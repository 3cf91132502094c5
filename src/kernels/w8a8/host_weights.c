/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of w8a8 on the host: quantising by feature, packing and sums. */
#include "code_type.h"
#include "layout.h"

#include <stdlib.h>
#include <string.h>

uint32_t ptxgen_w8a8_stride(uint32_t k)
{
    return (uint32_t)(((uint64_t)k + 15) / 16 * 16);
}

/* ---- quantising ---- */

static int compare_magnitudes(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The magnitude that becomes the largest code; `sorted` has room for the weights of a feature. */
static double clip_of(const ptxgen_w8a8_weights *w, const double *row, double *sorted)
{
    double most = 0;
    for (uint32_t i = 0; i < w->k; i++)
        most = fmax(most, fabs(row[i]));
    if (w->percentile == 0 || w->percentile == 100)
        return most;
    for (uint32_t i = 0; i < w->k; i++)
        sorted[i] = fabs(row[i]);
    qsort(sorted, w->k, sizeof *sorted, compare_magnitudes);
    double rank = ceil(w->percentile / 100 * w->k);
    return sorted[rank < 1 ? 0 : (uint32_t)rank - 1];
}

static ptxgen_status quantise_row(const ptxgen_w8a8_weights *w, uint32_t n, double *row,
                                  double *sorted, int8_t *codes, ptxgen_element scale_type,
                                  double *scale, ptxgen_error *err)
{
    for (uint32_t i = 0; i < w->k; i++) {
        double value = ptxgen_element_load(w->type, w->w, (size_t)n * w->k + i);
        row[i] = scale_type == PTXGEN_F32 ? (float)value : value;
        if (!isfinite(row[i]))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "w8a8: w[%u, %u] is %g, not finite in %s", n, i, value,
                               scale_type == PTXGEN_F32 ? "f32" : "f64");
    }
    int most = w8a8_code_type(w->codes)->largest;
    *scale = w8a8_divide(scale_type, clip_of(w, row, sorted), most);
    if (*scale == 0)
        *scale = 1;
    for (uint32_t i = 0; i < w->k; i++)
        codes[i] = w8a8_code(w->codes, scale_type, row[i], *scale, 0, -most, most);
    return PTXGEN_OK;
}

static ptxgen_status check_weights(const ptxgen_w8a8_weights *w, uint32_t stride,
                                   const int8_t *codes, ptxgen_element scale_type,
                                   const void *scales, ptxgen_error *err)
{
    if (!w || !w->w || !codes || !scales)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: weights, codes and scales must be given");
    if (!w->k || stride < w->k)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: a stride of %u bytes for rows of %u codes", stride, w->k);
    if ((unsigned)w->type > PTXGEN_F64 || (scale_type != PTXGEN_F32 && scale_type != PTXGEN_F64))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: weights of type %d with scales of type %d; scales are f32 or f64",
                           (int)w->type, (int)scale_type);
    if (!(w->percentile >= 0 && w->percentile <= 100))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: percentile = %g is outside 0 ... 100", w->percentile);
    return w8a8_check_weight_codes((unsigned)w->codes, err);
}

ptxgen_status ptxgen_w8a8_quantise(const ptxgen_w8a8_weights *w, uint32_t stride, int8_t *codes,
                                   ptxgen_element scale_type, void *scales, ptxgen_error *err)
{
    ptxgen_status status = check_weights(w, stride, codes, scale_type, scales, err);
    if (status != PTXGEN_OK)
        return status;
    double *row = calloc(w->k, 2 * sizeof *row);
    if (!row)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                           "w8a8: no memory for a row of %u weights", w->k);
    for (uint32_t n = 0; status == PTXGEN_OK && n < w->n; n++) {
        int8_t *to = codes + (size_t)n * stride;
        double scale = 0;
        status = quantise_row(w, n, row, row + w->k, to, scale_type, &scale, err);
        memset(to + w->k, 0, stride - w->k);
        ptxgen_element_store(scale_type, scales, n, scale);
    }
    free(row);
    return status;
}

/* ---- packing and sums ---- */

static ptxgen_status check_codes(uint32_t k, const void *from, uint32_t stride, const void *to,
                                 ptxgen_error *err)
{
    if (!from || !to)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "w8a8: an array of codes is NULL");
    if (stride < k)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: a stride of %u bytes for rows of %u codes", stride, k);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_w8a8_pack(uint32_t n, uint32_t k, const int8_t *codes, uint32_t stride,
                               int8_t *packed, ptxgen_error *err)
{
    ptxgen_status status = check_codes(k, codes, stride, packed, err);
    for (size_t i = 0; status == PTXGEN_OK && i < n; i++) {
        memcpy(packed + i * stride, codes + i * k, k);
        memset(packed + i * stride + k, 0, stride - k);
    }
    return status;
}

ptxgen_status ptxgen_w8a8_row_sums(uint32_t n, uint32_t k, const int8_t *codes, uint32_t stride,
                                   int32_t *sums, ptxgen_error *err)
{
    ptxgen_status status = check_codes(k, codes, stride, sums, err);
    for (size_t i = 0; status == PTXGEN_OK && i < n; i++) {
        uint32_t sum = 0;
        for (uint32_t j = 0; j < k; j++)
            sum += (uint32_t)codes[i * stride + j];
        sums[i] = (int32_t)sum;
    }
    return status;
}

ptxgen_status ptxgen_w8a8_pair(uint32_t n, size_t bytes, const void *gate, const void *up, void *to,
                               ptxgen_error *err)
{
    const size_t block = W8A8_PAIR_ROWS * bytes;
    if (!gate || !up || !to)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: rows of gate, of up, and room for both must be given");
    if (n % W8A8_PAIR_ROWS)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: %u rows to pair; it must be a multiple of 8", n);
    if (n && bytes > SIZE_MAX / 2 / n)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: %u rows of %zu bytes are more than memory has", n, bytes);
    for (size_t i = 0; i < n / W8A8_PAIR_ROWS; i++) {
        memcpy((char *)to + 2 * i * block, (const char *)gate + i * block, block);
        memcpy((char *)to + (2 * i + 1) * block, (const char *)up + i * block, block);
    }
    return PTXGEN_OK;
}
