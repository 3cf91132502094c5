/* SPDX-License-Identifier: Apache-2.0 */
#include "family_file.h"

#include "plural.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- rows ---- */

/* As many as the run asks for, the first ones, or all. */
static ptxgen_status choose_m(const struct run_request *request, const struct file_rows *rows,
                              uint32_t *m, ptxgen_error *err)
{
    *m = request->m;
    if (!rows->input)
        return PTXGEN_OK;
    const char *name = rows->input->name;
    if (!rows->count)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s has no rows", name);
    if (request->m_given && request->m > rows->count)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "--m %" PRIu32 ": %s has %" PRIu64 " row%s", request->m, name,
                           rows->count, plural(rows->count));
    if (!request->m_given && rows->count > rows->most)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s has %" PRIu64 " rows, and a launch takes %" PRIu32
                           "; --m says how many of the first to take",
                           name, rows->count, rows->most);
    if (!request->m_given)
        *m = (uint32_t)rows->count;
    return PTXGEN_OK;
}

ptxgen_status file_expect_find(const ptxgen_files *store, const struct family_options *o,
                               uint32_t n, bool residual, struct file_rows *rows, ptxgen_error *err)
{
    const char *expect = o->names.expect;
    uint64_t found;
    if (!expect)
        return PTXGEN_OK;
    ptxgen_status status = require_floats(store, expect, n, &found, &rows->expect, err);
    if (status == PTXGEN_OK && found != rows->count)
        status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                             "%s has %" PRIu64 " rows and %s has %" PRIu64, expect, found,
                             o->names.input, rows->count);
    if (status == PTXGEN_OK && residual)
        status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                             "--expect does not go with --residual, which is random");
    return status;
}

ptxgen_status file_rows_find(const ptxgen_files *store, const struct family_options *o, uint32_t k,
                             uint32_t n, bool residual, struct file_rows *rows, ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    if (o->names.input)
        status = require_floats(store, o->names.input, k, &rows->count, &rows->input, err);
    return status == PTXGEN_OK ? file_expect_find(store, o, n, residual, rows, err) : status;
}

/* ---- the problem ---- */

void take_tensor(struct problem *p, unsigned operand, const ptxgen_tensor *tensor)
{
    const struct operand *o = &p->operands[operand];
    if (!tensor || !o->used)
        return;
    bool one = tensor_count(tensor) == 1;
    for (uint64_t row = 0; row < o->rows; row++)
        for (uint64_t i = 0; i < o->columns; i++)
            typed_store(o->type, p->buffers[operand].host, row * p->strides[operand] + i,
                        tensor_number(tensor, one ? 0 : row * o->columns + i));
}

static ptxgen_status copy_expected(const ptxgen_tensor *tensor, struct problem *p, unsigned output,
                                   ptxgen_error *err)
{
    struct expected *e = &p->expected;
    uint64_t rows = p->m, columns = p->operands[output].columns;
    *e = (struct expected){.columns = columns, .unit = 0x1p-24};
    if (tensor->dtype == PTXGEN_DTYPE_F16) {
        e->unit = 0x1p-11;
        e->least = 0x1p-25;
    } else if (tensor->dtype == PTXGEN_DTYPE_BF16)
        e->unit = 0x1p-8;
    e->values = calloc(rows * columns + 1, sizeof *e->values);
    if (!e->values)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the file's output");
    for (size_t i = 0; i < rows * columns; i++)
        e->values[i] = tensor_float(tensor, i);
    return PTXGEN_OK;
}

static ptxgen_status fill(struct problem *p, const struct family_file *file, uint64_t seed,
                          const void *sources, const struct file_rows *rows, ptxgen_error *err)
{
    struct random r = random_start(seed);
    ptxgen_status status = problem_fill(p, &r, err);
    if (status == PTXGEN_OK)
        status = file->take(p, sources, rows, err);
    for (unsigned i = 0; status == PTXGEN_OK && i < p->count; i++)
        if (p->operands[i].role == OPERAND_X)
            take_tensor(p, i, rows->input);
        else if (p->operands[i].used && p->operands[i].role == OPERAND_OUTPUT && rows->expect &&
                 !p->expected.values)
            status = copy_expected(rows->expect, p, i, err);
    return status;
}

static ptxgen_status read_from(const ptxgen_files *store, const struct family_options *given,
                               void *sources, const struct run_request *request,
                               struct device *device, struct problem *p, ptxgen_error *err)
{
    const struct family_file *file = given->family->file;
    struct family_options o = *given;
    struct file_rows rows = {.most = UINT32_MAX};
    uint32_t m = 0;
    ptxgen_status status = file->find(store, &o, sources, &rows, err);
    if (status == PTXGEN_OK)
        status = choose_m(request, &rows, &m, err);
    if (status != PTXGEN_OK)
        return status;
    file->warn(store, &o, sources, &rows);
    status = family_allocate(&o, m, device, p, err);
    return status == PTXGEN_OK ? fill(p, file, request->seed, sources, &rows, err) : status;
}

ptxgen_status family_read(const struct family_options *o, const struct run_request *request,
                          struct device *device, struct problem *p, ptxgen_error *err)
{
    ptxgen_files *store;
    ptxgen_status status =
        ptxgen_files_open_as(o->family->file->format, o->names.file, &store, err);
    if (status != PTXGEN_OK)
        return status;
    void *sources = calloc(1, o->family->file->sources_bytes);
    status = sources ? read_from(store, o, sources, request, device, p, err)
                     : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a file's layer");
    free(sources);
    ptxgen_files_close(store);
    return status;
}
