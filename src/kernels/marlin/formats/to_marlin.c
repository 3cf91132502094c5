/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts to Marlin's layout, a 16×64 block at a time: 512 bytes in, 512 bytes out. The four tiles
 * of a block are the four elements of a vector in lane_words.h. Within a part, the inner loop goes
 * along K, so that a cache line of a layout along K is used completely.
 */
#include "gptq_words.h"
#include "group_order.h"
#include "lane_words.h"
#include "threaded_rows.h"

enum { BLOCK_ROWS = 16, BLOCK_COLUMNS = 64, BLOCK_BYTES = 512 };

struct job {
    struct w4_rows rows;
    w4_load_rows *load;
    unsigned char *out;
};

static w4_words column_of_tiles(const uint32_t words[BLOCK_COLUMNS], size_t c)
{
    return (w4_words){words[c], words[c + 16], words[c + 32], words[c + 48]};
}

static void repack_block(const struct job *job, size_t row, size_t column, unsigned char *out)
{
    uint32_t words[2][BLOCK_COLUMNS];
    for (size_t half = 0; half < 2; half++)
        job->load(&job->rows, row + half * W4_WORD_ROWS, column, BLOCK_COLUMNS, words[half]);
    for (size_t c = 0; c < 8; c++)
        w4_store_lane_words(column_of_tiles(words[0], c), column_of_tiles(words[1], c),
                            column_of_tiles(words[0], c + 8), column_of_tiles(words[1], c + 8),
                            out + c * 64);
}

static ptxgen_status repack_part(void *argument, size_t first, size_t end, ptxgen_error *err)
{
    (void)err;
    const struct job *job = argument;
    size_t n = job->rows.dims.n, across = n / BLOCK_COLUMNS;
    for (size_t column = 0; column < n; column += BLOCK_COLUMNS)
        for (size_t row = first; row < end; row += BLOCK_ROWS)
            repack_block(job, row, column,
                         job->out +
                             (row / BLOCK_ROWS * across + column / BLOCK_COLUMNS) * BLOCK_BYTES);
    return PTXGEN_OK;
}

static void repack_scales(const struct w4_rows *from, const ptxgen_w4_checkpoint *to)
{
    const struct w4_format *marlin = w4_format_of(PTXGEN_W4_MARLIN);
    size_t size = ptxgen_element_size(w4_scale_type(&to->scales));
    for (size_t g = 0; g < from->dims.groups; g++)
        for (size_t n = 0; n < from->dims.n; n++)
            memcpy((unsigned char *)to->scales.data +
                       w4_scale_index(marlin, &from->dims, g, n) * size,
                   (const unsigned char *)from->from->scales.data +
                       w4_scale_index(from->format, &from->dims, g, n) * size,
                   size);
}

static unsigned checkpoint_zero(const void *from, const struct w4_dims *dims, size_t g, size_t n)
{
    return w4_zero(from, dims, g, n);
}

static ptxgen_status check(const ptxgen_w4_checkpoint *from, const ptxgen_w4_checkpoint *to,
                           uint32_t *order, ptxgen_w4_info *info, ptxgen_error *err)
{
    ptxgen_status status;
    if ((status = ptxgen_w4_describe(from, info, err)) != PTXGEN_OK)
        return status;
    if (to && to->format != PTXGEN_W4_MARLIN)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "the output's format is %d, not PTXGEN_W4_MARLIN", (int)to->format);
    if ((status = w4_check_output(to, info, err)) != PTXGEN_OK)
        return status;
    if (info->act_order && !order)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "order is NULL, but the rows are not in the order of their groups");
    return order ? w4_group_order(info, w4_row_groups(from, info), order, err) : PTXGEN_OK;
}

/*
 * Codes alone: in copies of both checkpoints a tensor stands in for the scales, with the shape that
 * the codes and the stated group size give it. Its data is never read or written.
 */
static ptxgen_status stand_in(ptxgen_w4_checkpoint *from, ptxgen_w4_checkpoint *to,
                              ptxgen_error *err)
{
    const struct w4_format *f = w4_format_of(from->format);
    const char *stray = from->zeros.data  ? f->tensors[W4_ZEROS]
                        : to->scales.data ? "s of the output"
                        : to->zeros.data  ? "zeros of the output"
                                          : NULL;
    if (stray)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is given, but %s is absent",
                           stray, f->tensors[W4_SCALES]);
    size_t k = from->weights.shape[f->by_column] * f->k_per_unit, groups = 1;
    size_t n = f->by_column ? from->weights.shape[0] : from->weights.shape[1] * 8 / f->k_per_unit;
    if (from->group_size > 0) {
        groups = k / (size_t)from->group_size;
        if (!groups || k % groups || k / groups != (size_t)from->group_size)
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                               "the group size %td does not divide K = %zu", from->group_size, k);
    }
    const ptxgen_w4_tensor scales = {
        from->weights.data, PTXGEN_W4_F16, {f->by_column ? n : groups, f->by_column ? groups : n}};
    from->scales = scales;
    to->scales = (ptxgen_w4_tensor){from->weights.data, PTXGEN_W4_F16, {groups, n}};
    return PTXGEN_OK;
}

ptxgen_status ptxgen_w4_to_marlin(const ptxgen_w4_checkpoint *from, const ptxgen_w4_checkpoint *to,
                                  uint32_t *order, const ptxgen_w4_repack_options *options,
                                  ptxgen_error *err)
{
    ptxgen_w4_info info;
    ptxgen_w4_checkpoint codes, codes_to;
    ptxgen_status status = PTXGEN_OK;
    bool alone =
        from && to && from->weights.data && !from->scales.data && w4_format_of(from->format);
    if (alone) {
        codes = *from, codes_to = *to;
        status = stand_in(&codes, &codes_to, err);
        from = &codes, to = &codes_to;
    }
    if (status == PTXGEN_OK)
        status = check(from, to, order, &info, err);
    if (status != PTXGEN_OK)
        return status;
    struct job job = {.rows = {.from = from,
                               .format = w4_format_of(from->format),
                               .dims = w4_dims_of(&info),
                               .order = info.act_order ? order : NULL},
                      .out = to->weights.data};
    job.load = w4_choose_loader(&job.rows);
    status = w4_work_in_parts(info.k, repack_part, &job, options, err);
    if (status == PTXGEN_OK && !alone) {
        repack_scales(&job.rows, to);
        w4_write_zeros(to, &job.rows.dims, &(struct w4_zero_source){checkpoint_zero, from});
    }
    return status;
}
