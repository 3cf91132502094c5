/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

struct comparing {
    const struct blocks *blocks;
    uint32_t across, every; /* blocks in a row of them; one in `every` is compared */
};

static struct block find_block(const struct comparing *c, uint64_t index)
{
    struct block b = {.row = index / c->across * BLOCK_SIDE,
                      .column = (uint32_t)(index % c->across) * BLOCK_SIDE};
    uint64_t rows = c->blocks->rows - b.row;
    uint32_t columns = c->blocks->columns - b.column;
    b.rows = rows < BLOCK_SIDE ? rows : BLOCK_SIDE;
    b.columns = columns < BLOCK_SIDE ? columns : BLOCK_SIDE;
    return b;
}

static ptxgen_status compare(void *state, uint32_t index, struct comparison *part,
                             ptxgen_error *err)
{
    const struct comparing *c = state;
    const struct block block = find_block(c, (uint64_t)index * c->every);
    return c->blocks->compare(c->blocks->problem, &block, part, err);
}

static uint32_t count(uint64_t outputs)
{
    return (uint32_t)(outputs / BLOCK_SIDE + (outputs % BLOCK_SIDE != 0));
}

ptxgen_status compare_blocks(const struct blocks *b, struct check *check, struct check *expected,
                             ptxgen_error *err)
{
    struct comparing c = {.blocks = b, .across = count(b->columns), .every = 1};
    struct comparison total = {.reference = {.outputs = 0}};
    if (b->work > b->most_work)
        c.every = (uint32_t)ceil(b->work / b->most_work);
    while (c.every > 1 && c.across % c.every == 0) /* so that every column has its turn */
        c.every++;
    uint64_t all = (uint64_t)c.across * count(b->rows);
    uint32_t compared = (uint32_t)((all + c.every - 1) / c.every);
    ptxgen_status status = compare_slices("comparing with the reference, slices of 64 by 64",
                                          compared, compare, &c, &total, err);
    if (status != PTXGEN_OK)
        return status;
    check_add(check, &total.reference);
    if (compared < all)
        snprintf(check->note, sizeof check->note,
                 "%u of %" PRIu64 " slices of 64 by 64 outputs were compared", compared, all);
    if (expected)
        *expected = total.expected;
    return PTXGEN_OK;
}

void check_side_block(struct check *check, const char *name, const struct block *b, ptxgen_element type,
                 const void *outputs, uint64_t stride, const struct block_reference *reference)
{
    for (size_t i = 0; i < b->rows * b->columns; i++) {
        size_t row = b->row + i / b->columns, column = b->column + i % b->columns;
        const struct expected_output expected = {reference->value[i], reference->bound[i],
                                                 &reference->spread[i]};
        check_output(check, name, row, column, type,
                     ptxgen_element_load(type, outputs, row * stride + column), &expected);
    }
}
