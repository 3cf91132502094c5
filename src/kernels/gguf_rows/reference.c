/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by the decoder of the host. */
#include "layout.h"

#include <math.h>
#include <stdlib.h>

static ptxgen_status check(const ptxgen_gguf_rows_spec *s, const ptxgen_gguf_rows_operands *o,
                           uint64_t m, const void *y, ptxgen_error *err)
{
    if (!s || !o || !y || (o->n && !o->w) || (s->indexed && !o->ids))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_rows: spec, operands, y or an array that the spec needs is NULL");
    if (m >= o->m)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf_rows: there is no row %llu among %llu", (unsigned long long)m,
                           (unsigned long long)o->m);
    return gguf_rows_check_spec(s, err);
}

/* The row of w that row m of y is; n, if w has no such row. */
static uint64_t row_of(const ptxgen_gguf_rows_spec *s, const ptxgen_gguf_rows_operands *o,
                       uint64_t m)
{
    if (!s->indexed)
        return o->first_row < o->n && m < o->n - o->first_row ? o->first_row + m : o->n;
    return o->ids[m] >= 0 && (uint64_t)o->ids[m] < o->n ? (uint64_t)o->ids[m] : o->n;
}

ptxgen_status ptxgen_gguf_rows_reference(const ptxgen_gguf_rows_spec *s,
                                         const ptxgen_gguf_rows_operands *o, uint64_t m, void *y,
                                         ptxgen_error *err)
{
    ptxgen_status status = check(s, o, m, y, err);
    if (status != PTXGEN_OK)
        return status;
    const uint64_t row = row_of(s, o, m), bytes = gguf_rows_row_bytes(s);
    float *weights = malloc(s->k * sizeof *weights);
    if (!weights)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "gguf_rows: no memory for a row");
    if (row < o->n)
        status = ptxgen_gguf_decode_row(s->w_type, (const uint8_t *)o->w + row * bytes,
                                        (size_t)bytes, s->k, weights, err);
    for (uint32_t i = 0; status == PTXGEN_OK && i < s->k; i++) {
        float weight = row < o->n ? weights[i] : NAN;
        float scaled = s->scale == 0 ? weight : weight * s->scale;
        ptxgen_element_store((ptxgen_element)s->y_type, y, i, (double)scaled);
    }
    free(weights);
    return status;
}
