/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs weights into the kernel's layout, a step of a strip at a time: 64 of K of 64 features, 2 KB
 * in and 2 KB out. The four words of a lane, one for each 16 of K, are the four elements of a
 * vector in lane_words.h. Registers 0 to 3 of mma's operand A hold k 0–7 of feature g, k 0–7 of
 * feature g + 8, k 8–15 of feature g, and k 8–15 of feature g + 8. Rows and columns are those of
 * [K,N].
 *
 * A thread's part of the rows includes the groups that begin in these rows. Within a part, steps
 * along K are the inner loop and strips the outer one, so that a cache line of a layout along K is
 * used completely.
 */
#include "../layout.h"
#include "../spec.h"
#include "gptq_words.h"
#include "group_order.h"
#include "lane_words.h"
#include "packed.h"
#include "scale_range.h"
#include "threaded_rows.h"

enum {
    STEP_WORDS = MARLIN_STEP / W4_WORD_ROWS,
    TILES = MARLIN_STRIP / MARLIN_TILE,
    LANE_BYTES = 16
};

/* A checkpoint whose columns fill the strips, alone or as one of a pair. */
struct source {
    const char *name;
    struct w4_rows rows;
    w4_load_rows *load;
};

struct job {
    const ptxgen_marlin_spec *spec;
    struct source sources[2]; /* gate and up with SwiGLU */
    size_t source_count;
    const ptxgen_marlin_packed *out;
    size_t strips, steps, groups;
};

/* The columns of a strip that a source has. */
static size_t strip_features(const struct job *job, size_t strip)
{
    size_t columns = marlin_strip_features(job->spec), left = job->spec->n - strip * columns;
    return left < columns ? left : columns;
}

/* ---- codes ---- */

static void load_words(const struct job *job, size_t strip, size_t row, uint32_t *words)
{
    size_t width = marlin_strip_features(job->spec), count = strip_features(job, strip);
    if (row >= job->spec->k || count < width)
        memset(words, 0, MARLIN_STRIP * sizeof *words);
    for (size_t s = 0; row < job->spec->k && s < job->source_count; s++)
        job->sources[s].load(&job->sources[s].rows, row, strip * width, count, words + s * width);
}

static void pack_step(const struct job *job, size_t strip, size_t step)
{
    uint32_t words[STEP_WORDS][MARLIN_STRIP];
    unsigned char *out =
        (unsigned char *)job->out->codes + (strip * job->steps + step) * MARLIN_STEP_BYTES;
    for (size_t i = 0; i < STEP_WORDS; i++)
        load_words(job, strip, step * MARLIN_STEP + i * W4_WORD_ROWS, words[i]);
#define ROWS(first, c)                                                                             \
    ((w4_words){words[first][c], words[first + 2][c], words[first + 4][c], words[first + 6][c]})
    for (size_t tile = 0; tile < TILES; tile++)
        for (size_t g = 0; g < 8; g++) {
            size_t c = tile * MARLIN_TILE + g;
            w4_store_lane_words(ROWS(0, c), ROWS(0, c + 8), ROWS(1, c), ROWS(1, c + 8),
                                out + tile * MARLIN_TILE_BYTES + g * 4 * LANE_BYTES);
        }
#undef ROWS
}

/* ---- scales and zero points ---- */

/* The index of the scale of packed column `column` in a strip: [8 rows g][4 tiles][g, g + 8]. */
static size_t scale_place(size_t column)
{
    return column % 8 * 8 + column / 8;
}

static ptxgen_status pack_scale(const struct job *job, const struct source *source, size_t group,
                                size_t column, uint16_t *scale, ptxgen_error *err)
{
    const struct w4_rows *from = &source->rows;
    ptxgen_element type = (ptxgen_element)job->spec->type,
                   from_type = w4_scale_type(&from->from->scales);
    const void *scales = from->from->scales.data;
    size_t index = w4_scale_index(from->format, &from->dims, group, column);
    if (type == from_type)
        memcpy(scale, (const unsigned char *)scales + index * sizeof *scale, sizeof *scale);
    else
        ptxgen_element_store(type, scale, 0, ptxgen_element_load(from_type, scales, index));
    if (marlin_scale_is_ordinary(type, *scale, type == from_type))
        return PTXGEN_OK;
    const struct marlin_scale s = {.matrix = source->name,
                                   .group = group,
                                   .feature = column,
                                   .zero = w4_zero(from->from, &from->dims, group, column),
                                   .given = ptxgen_element_load(from_type, scales, index),
                                   .stored = ptxgen_element_load(type, scale, 0)};
    return marlin_check_scale(type, &s, err);
}

/* Packs the scales of packed group `packed`, which is part of group `group` of the checkpoint. */
static ptxgen_status pack_scales(const struct job *job, size_t strip, size_t packed, size_t group,
                                 ptxgen_error *err)
{
    size_t width = marlin_strip_features(job->spec), count = strip_features(job, strip);
    uint16_t scales[MARLIN_STRIP] = {0};
    ptxgen_status status = PTXGEN_OK;
    for (size_t s = 0; s < job->source_count; s++)
        for (size_t c = 0; status == PTXGEN_OK && c < count; c++)
            status = pack_scale(job, &job->sources[s], group, strip * width + c,
                                &scales[scale_place(s * width + c)], err);
    memcpy((unsigned char *)job->out->scales + (strip * job->groups + packed) * sizeof scales,
           scales, sizeof scales);
    return status;
}

static void pack_zeros(const struct job *job, size_t strip, size_t packed, size_t group)
{
    size_t width = marlin_strip_features(job->spec), count = strip_features(job, strip);
    uint32_t zeros[8] = {0};
    for (size_t s = 0; s < job->source_count; s++)
        for (size_t c = 0; c < count; c++) {
            const struct w4_rows *from = &job->sources[s].rows;
            uint32_t z = w4_zero(from->from, &from->dims, group, strip * width + c);
            size_t column = s * width + c;
            zeros[column % 8] |= z << column / 8 * 4;
        }
    memcpy((unsigned char *)job->out->zeros + (strip * job->groups + packed) * sizeof zeros, zeros,
           sizeof zeros);
}

/* Clears a packed group past the end of K, which fills up the last step. */
static void clear_group(const struct job *job, size_t strip, size_t packed)
{
    size_t at = strip * job->groups + packed;
    memset((unsigned char *)job->out->scales + at * MARLIN_SCALES_BYTES, 0, MARLIN_SCALES_BYTES);
    if (job->spec->zeros)
        memset((unsigned char *)job->out->zeros + at * MARLIN_ZEROS_BYTES, 0, MARLIN_ZEROS_BYTES);
}

/* Packs the groups that begin in rows `first` to `end` − 1 of the padded K. */
static ptxgen_status pack_groups(const struct job *job, size_t strip, size_t first, size_t end,
                                 ptxgen_error *err)
{
    size_t rows = marlin_scale_rows(job->spec), group_rows = marlin_group_rows(job->spec);
    rows = rows ? rows : job->spec->k;
    ptxgen_status status = PTXGEN_OK;
    for (size_t packed = (first + rows - 1) / rows;
         status == PTXGEN_OK && packed < job->groups && packed * rows < end; packed++) {
        size_t group = packed * rows / group_rows;
        if (packed * rows >= job->spec->k)
            clear_group(job, strip, packed);
        else {
            status = pack_scales(job, strip, packed, group, err);
            if (job->spec->zeros)
                pack_zeros(job, strip, packed, group);
        }
    }
    return status;
}

/* ---- the whole ---- */

static ptxgen_status pack_part(void *argument, size_t first, size_t end, ptxgen_error *err)
{
    const struct job *job = argument;
    size_t first_step = first / MARLIN_STEP, end_step = (end + MARLIN_STEP - 1) / MARLIN_STEP;
    ptxgen_status status = PTXGEN_OK;
    for (size_t strip = 0; status == PTXGEN_OK && strip < job->strips; strip++) {
        for (size_t step = first_step; step < end_step; step++)
            pack_step(job, strip, step);
        status = pack_groups(job, strip, first, end_step * MARLIN_STEP, err);
    }
    return status;
}

static ptxgen_status check_checkpoint(const ptxgen_marlin_spec *s, const char *name,
                                      const ptxgen_w4_checkpoint *from, ptxgen_w4_info *info,
                                      ptxgen_error *err)
{
    ptxgen_status status = ptxgen_w4_describe(from, info, err);
    if (status != PTXGEN_OK)
        return status;
    if (info->k != s->k || info->n != s->n || (size_t)info->group_size != marlin_group_rows(s))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: %s has K = %zu, N = %zu and groups of %td, but the spec says "
                           "K = %u, N = %u and groups of %zu",
                           name, info->k, info->n, info->group_size, s->k, s->n,
                           marlin_group_rows(s));
    if (!s->zeros && !info->symmetric)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: %s has zero points other than 8, but the spec has no zeros",
                           name);
    if (!s->act_order && info->act_order)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: %s has rows in another order than their groups', but the spec "
                           "has no act_order",
                           name);
    return PTXGEN_OK;
}

static ptxgen_status check_source(struct job *job, const char *name,
                                  const ptxgen_w4_checkpoint *from, ptxgen_w4_info *info,
                                  ptxgen_error *err)
{
    ptxgen_status status = check_checkpoint(job->spec, name, from, info, err);
    if (status == PTXGEN_OK)
        job->sources[job->source_count++] =
            (struct source){.name = name,
                            .rows = {.from = from,
                                     .format = w4_format_of(from->format),
                                     .dims = w4_dims_of(info),
                                     .order = info->act_order ? job->out->order : NULL}};
    return status;
}

/* Gate and up share activations, so that each row must be of the same group in both. */
static ptxgen_status compare_groups(const ptxgen_w4_info *info, const void *gate, const void *up,
                                    ptxgen_error *err)
{
    for (size_t k = 0; k < info->k; k++) {
        size_t plain = w4_plain_group(info, k);
        size_t of_gate = gate ? w4_load_word(gate, k) : plain;
        size_t of_up = up ? w4_load_word(up, k) : plain;
        if (of_gate != of_up)
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                               "marlin: gate and up, which share activations, order their rows "
                               "differently: row %zu is of group %zu of gate and %zu of up",
                               k, of_gate, of_up);
    }
    return PTXGEN_OK;
}

static ptxgen_status prepare(struct job *job, const ptxgen_w4_checkpoint *weights,
                             const ptxgen_w4_checkpoint *up, ptxgen_error *err)
{
    bool gated = marlin_gated(job->spec);
    ptxgen_w4_info info[2];
    ptxgen_status status;
    if (gated != (up != NULL))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "marlin: up is %s",
                           gated ? "NULL, but SwiGLU needs it"
                                 : "given, but the spec has no SwiGLU");
    if ((status = check_source(job, gated ? "gate" : "weights", weights, &info[0], err)) !=
            PTXGEN_OK ||
        (up && (status = check_source(job, "up", up, &info[1], err)) != PTXGEN_OK))
        return status;
    const void *groups = w4_row_groups(weights, &info[0]);
    if (job->spec->act_order)
        status = w4_group_order(&info[0], groups, job->out->order, err);
    if (status == PTXGEN_OK && up && job->spec->act_order)
        status = compare_groups(&info[0], groups, w4_row_groups(up, &info[1]), err);
    for (size_t s = 0; s < job->source_count; s++)
        job->sources[s].load = w4_choose_loader(&job->sources[s].rows);
    return status;
}

ptxgen_status ptxgen_marlin_pack(const ptxgen_marlin_spec *spec,
                                 const ptxgen_w4_checkpoint *weights,
                                 const ptxgen_w4_checkpoint *up, const ptxgen_marlin_packed *packed,
                                 const ptxgen_w4_repack_options *options, ptxgen_error *err)
{
    ptxgen_status status;
    if ((status = marlin_check_packed(spec, packed, err)) != PTXGEN_OK)
        return status;
    struct job job = {.spec = spec,
                      .out = packed,
                      .strips = marlin_strips(spec),
                      .steps = marlin_steps(spec),
                      .groups = marlin_groups(spec)};
    if ((status = prepare(&job, weights, up, err)) != PTXGEN_OK)
        return status;
    return w4_work_in_parts(spec->k, pack_part, &job, options, err);
}
