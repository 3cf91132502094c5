/* SPDX-License-Identifier: Apache-2.0 */
#include "input_rows.h"

#include "float_tensor.h"
#include "plural.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

ptxgen_status input_rows_choose(const struct run_request *request, const char *option,
                                const struct named_tensor *input, uint64_t rows, uint32_t most,
                                uint32_t *m, ptxgen_error *err)
{
    if (!rows)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s has no rows", input->name);
    if (request->m_given && request->m > rows)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "--%s %" PRIu32 ": %s has %" PRIu64 " row%s", option, request->m,
                           input->name, rows, plural(rows));
    if (!request->m_given && rows > most)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s has %" PRIu64 " rows, and a launch takes %" PRIu32
                           "; --%s says how many of the first to take",
                           input->name, rows, most, option);
    *m = request->m_given ? request->m : (uint32_t)rows;
    return PTXGEN_OK;
}

ptxgen_status expected_find(const struct tensor_store *store, const char *expect, const char *input,
                            uint64_t columns, uint64_t rows, const struct named_tensor **tensor,
                            ptxgen_error *err)
{
    uint64_t found;
    ptxgen_status status = tensor_store_require_floats(store, expect, columns, &found, tensor, err);
    if (status == PTXGEN_OK && found != rows)
        status =
            ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                        "%s has %" PRIu64 " rows and %s has %" PRIu64, expect, found, input, rows);
    return status;
}

ptxgen_status expected_copy(const struct named_tensor *tensor, uint64_t rows, uint64_t columns,
                            struct expected *expected, ptxgen_error *err)
{
    *expected = (struct expected){.columns = columns, .unit = 0x1p-24};
    if (!tensor)
        return PTXGEN_OK;
    if (tensor->dtype == TENSOR_F16) {
        expected->unit = 0x1p-11;
        expected->least = 0x1p-25;
    } else if (tensor->dtype == TENSOR_BF16)
        expected->unit = 0x1p-8;
    expected->values = calloc(rows * columns + 1, sizeof *expected->values);
    if (!expected->values)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the file's output");
    for (size_t i = 0; i < rows * columns; i++)
        expected->values[i] = tensor_float(tensor, i);
    return PTXGEN_OK;
}
