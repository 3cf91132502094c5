/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To Marlin's layout, a 16×64 block at a time: 512 bytes in, 512 bytes out. A block is first
 * brought to GPTQ's words (eight rows of a column each), in two rows of 64, and then turned:
 *
 *     column c of tile j, and column c + 8:  a, c' = words of rows 0–7;  b, d' = of rows 8–15
 *     byte i of a word holds rows 2i and 2i+1, which are elements of lane 4c + i
 *     nibble of the lane's word     0      1      2       3       4     5     6      7
 *     is a nibble of byte i of      a low  b low  c' low  d' low  a hi  b hi  c' hi  d' hi
 *
 * So masks make four words whose bytes i are the four bytes of output word i, and a 4×4 byte
 * transpose finishes. The four tiles of a block are the four elements of a vector, in and out.
 *
 * Threads take strips of 128 rows. Within a strip, blocks go down before they go right, so that a
 * cache line of a layout along K is used whole while it is there.
 */
#include "act_order.h"

#include <pthread.h>
#include <stdlib.h>

enum { BLOCK_ROWS = 16, BLOCK_COLUMNS = 64, BLOCK_BYTES = 512, WORD_ROWS = 8, STRIP_BLOCKS = 8 };

struct job {
    const ptxgen_w4_checkpoint *from;
    const struct w4_format *format;
    struct w4_dims dims;
    const uint32_t *order; /* NULL: plain */
    unsigned char *out;
    ptxgen_w4_repack_options options;

    pthread_mutex_t lock; /* of what follows */
    size_t next_strip, done_rows;
};

/* GPTQ's words of a block: nibble i of words[h][c] is row 8h+i, column c. */
typedef uint32_t block_words[2][BLOCK_COLUMNS];

static size_t source_row(const struct job *job, size_t row)
{
    return job->order ? job->order[row] : row;
}

/* Loads the words of eight rows from `row` and 64 columns from `column`. */
typedef void load_rows(const struct job *job, size_t row, size_t column,
                       uint32_t words[BLOCK_COLUMNS]);

static void load_gptq(const struct job *job, size_t row, size_t column, uint32_t *words)
{
    const unsigned char *base = job->from->weights.data;
    memcpy(words, base + (row / WORD_ROWS * job->dims.n + column) * sizeof *words,
           BLOCK_COLUMNS * sizeof *words);
}

static void load_gptq_ordered(const struct job *job, size_t row, size_t column, uint32_t *words)
{
    uint32_t source[BLOCK_COLUMNS];
    memset(words, 0, sizeof source);
    for (unsigned i = 0; i < WORD_ROWS; i++) {
        size_t from = source_row(job, row + i);
        unsigned shift = from % WORD_ROWS * 4;
        load_gptq(job, from, column, source);
        for (size_t c = 0; c < BLOCK_COLUMNS; c++)
            words[c] |= (source[c] >> shift & 15) << 4 * i;
    }
}

static void load_awq(const struct job *job, size_t row, size_t column, uint32_t *words)
{
    memset(words, 0, BLOCK_COLUMNS * sizeof *words);
    for (unsigned i = 0; i < WORD_ROWS; i++) {
        size_t first = (source_row(job, row + i) * job->dims.n + column) / 8;
        for (size_t w = 0; w < BLOCK_COLUMNS / 8; w++) {
            uint32_t packed = w4_load_word(job->from->weights.data, first + w);
            for (size_t c = 0; c < 8; c++)
                words[w * 8 + c] |= (packed >> 4 * w4_interleaved(c) & 15) << 4 * i;
        }
    }
}

static void load_by_column(const struct job *job, size_t row, size_t column, uint32_t *words)
{
    size_t pitch = job->dims.k / WORD_ROWS;
    for (size_t c = 0; c < BLOCK_COLUMNS; c++)
        words[c] = w4_load_word(job->from->weights.data, (column + c) * pitch + row / WORD_ROWS);
}

static void load_any(const struct job *job, size_t row, size_t column, uint32_t *words)
{
    memset(words, 0, BLOCK_COLUMNS * sizeof *words);
    for (unsigned i = 0; i < WORD_ROWS; i++)
        for (size_t c = 0; c < BLOCK_COLUMNS; c++) {
            struct w4_place at =
                job->format->code(&job->dims, source_row(job, row + i), column + c);
            words[c] |= (uint32_t)w4_load_nibble(job->from->weights.data, at) << 4 * i;
        }
}

static load_rows *choose_loader(const struct job *job)
{
    switch (job->from->format) {
    case PTXGEN_W4_GPTQ_V1:
    case PTXGEN_W4_GPTQ_V2: return job->order ? load_gptq_ordered : load_gptq;
    case PTXGEN_W4_AWQ: return load_awq;
    case PTXGEN_W4_PACK_QUANTIZED: return job->order ? load_any : load_by_column;
    case PTXGEN_W4_MARLIN: break;
    }
    return load_any;
}

typedef uint32_t words4 __attribute__((vector_size(16)));

static void store_words4(unsigned char *out, words4 words)
{
    memcpy(out, &words, sizeof words);
}

static words4 column_of_tiles(const uint32_t words[BLOCK_COLUMNS], size_t c)
{
    return (words4){words[c], words[c + 16], words[c + 32], words[c + 48]};
}

/* The words of the four lanes of a column, in the four tiles: 64 bytes. */
static void turn_column(block_words words, size_t column, unsigned char *out)
{
    words4 a = column_of_tiles(words[0], column), b = column_of_tiles(words[1], column);
    words4 c = column_of_tiles(words[0], column + 8), d = column_of_tiles(words[1], column + 8);
    words4 byte0 = (a & 0x0F0F0F0F) | (b & 0x0F0F0F0F) << 4;
    words4 byte1 = (c & 0x0F0F0F0F) | (d & 0x0F0F0F0F) << 4;
    words4 byte2 = (a >> 4 & 0x0F0F0F0F) | (b & 0xF0F0F0F0);
    words4 byte3 = (c >> 4 & 0x0F0F0F0F) | (d & 0xF0F0F0F0);

    words4 low02 = (byte0 & 0x00FF00FF) | (byte1 & 0x00FF00FF) << 8;
    words4 low13 = (byte0 >> 8 & 0x00FF00FF) | (byte1 & 0xFF00FF00);
    words4 high02 = (byte2 & 0x00FF00FF) | (byte3 & 0x00FF00FF) << 8;
    words4 high13 = (byte2 >> 8 & 0x00FF00FF) | (byte3 & 0xFF00FF00);
    store_words4(out, (low02 & 0xFFFF) | high02 << 16);
    store_words4(out + 16, (low13 & 0xFFFF) | high13 << 16);
    store_words4(out + 32, low02 >> 16 | (high02 & 0xFFFF0000));
    store_words4(out + 48, low13 >> 16 | (high13 & 0xFFFF0000));
}

static void repack_strip(const struct job *job, load_rows *load, size_t first, size_t end)
{
    size_t across = job->dims.n / BLOCK_COLUMNS;
    for (size_t n = 0; n < across; n++)
        for (size_t k = first; k < end; k++) {
            block_words words;
            unsigned char *out = job->out + (k * across + n) * BLOCK_BYTES;
            load(job, k * BLOCK_ROWS, n * BLOCK_COLUMNS, words[0]);
            load(job, k * BLOCK_ROWS + WORD_ROWS, n * BLOCK_COLUMNS, words[1]);
            for (size_t c = 0; c < 8; c++)
                turn_column(words, c, out + c * 64);
        }
}

/* The next strip's first row of blocks. */
static size_t take_strip(struct job *job)
{
    pthread_mutex_lock(&job->lock);
    size_t first = job->next_strip++ * STRIP_BLOCKS;
    pthread_mutex_unlock(&job->lock);
    return first;
}

static void finish_strip(struct job *job, size_t rows)
{
    pthread_mutex_lock(&job->lock);
    job->done_rows += rows;
    if (job->options.progress)
        job->options.progress(job->options.user, job->done_rows, job->dims.k);
    pthread_mutex_unlock(&job->lock);
}

static void *work(void *argument)
{
    struct job *job = argument;
    load_rows *load = choose_loader(job);
    size_t down = job->dims.k / BLOCK_ROWS;
    for (size_t first; (first = take_strip(job)) < down;) {
        size_t end = first + STRIP_BLOCKS < down ? first + STRIP_BLOCKS : down;
        repack_strip(job, load, first, end);
        finish_strip(job, (end - first) * BLOCK_ROWS);
    }
    return NULL;
}

/* The calling thread works too, so a thread that the system refuses costs time, nothing else. */
static void repack_weights(struct job *job)
{
    size_t strips = (job->dims.k / BLOCK_ROWS + STRIP_BLOCKS - 1) / STRIP_BLOCKS;
    size_t wanted = job->options.threads < strips ? job->options.threads : strips;
    pthread_t *threads = wanted > 1 ? malloc((wanted - 1) * sizeof *threads) : NULL;
    size_t started = 0;
    while (threads && started < wanted - 1 &&
           pthread_create(&threads[started], NULL, work, job) == 0)
        started++;
    work(job);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    free(threads);
}

static void repack_scales(const struct job *job, const ptxgen_w4_checkpoint *to)
{
    const struct w4_format *marlin = w4_format_of(PTXGEN_W4_MARLIN);
    size_t size = ptxgen_element_size(w4_scale_type(&to->scales));
    for (size_t g = 0; g < job->dims.groups; g++)
        for (size_t n = 0; n < job->dims.n; n++)
            memcpy((unsigned char *)to->scales.data + marlin->scale(&job->dims, g, n) * size,
                   (const unsigned char *)job->from->scales.data +
                       job->format->scale(&job->dims, g, n) * size,
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
    return order ? w4_group_order(info, from->g_idx.data, order, err) : PTXGEN_OK;
}

ptxgen_status ptxgen_w4_to_marlin(const ptxgen_w4_checkpoint *from, const ptxgen_w4_checkpoint *to,
                                  uint32_t *order, const ptxgen_w4_repack_options *options,
                                  ptxgen_error *err)
{
    ptxgen_w4_info info;
    ptxgen_status status = check(from, to, order, &info, err);
    if (status != PTXGEN_OK)
        return status;
    struct job job = {.from = from,
                      .format = w4_format_of(from->format),
                      .dims = w4_dims_of(&info),
                      .order = info.act_order ? order : NULL,
                      .out = to->weights.data};
    if (options)
        job.options = *options;
    if (pthread_mutex_init(&job.lock, NULL) != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_SYSTEM, "the system has no mutex to give");
    repack_weights(&job);
    pthread_mutex_destroy(&job.lock);
    repack_scales(&job, to);
    w4_write_zeros(to, &job.dims, &(struct w4_zero_source){checkpoint_zero, from});
    return PTXGEN_OK;
}
