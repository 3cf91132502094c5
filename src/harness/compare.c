/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that are back on the host against the reference, in blocks that threads take in turn. */
#include "problem.h"
#include "slices.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Products of the reference beyond which not every block is compared. */
static const double most_products = 0x1p37;

/* One output of a problem. */
struct comparing {
    const struct problem *p;
    unsigned output;
    uint32_t across, every; /* blocks in a row of them; one in `every` is compared */
};

/* ---- a block ---- */

/*
 * Checks an output against the file's. `own` has the bound and the spread of the output about what
 * is right; how the file rounded comes on top, and a file that rounds to 16 bits says nothing about
 * a spread.
 */
static void check_expected(const struct expected *e, size_t row, size_t column, ptxgen_element type,
                           double output, const struct expected_output *own, struct check *check)
{
    double value = e->values[row * e->columns + column];
    const struct expected_output wanted = {
        .value = value,
        .bound = own->bound + e->unit * fabs(value) + e->least,
        .spread = e->unit > 0x1p-24 ? NULL : own->spread,
    };
    check_output(check, "expected", row, column, type, output, &wanted);
}

static struct block find_block(const struct comparing *c, uint64_t index)
{
    const struct harness *h = c->p->harness;
    const struct operand *o = &c->p->operands[c->output];
    struct block b = {.output = c->output,
                      .row = index / c->across * h->block_rows,
                      .column = (uint32_t)(index % c->across) * h->block_columns};
    uint64_t rows = o->rows - b.row, columns = o->columns - b.column;
    b.rows = rows < h->block_rows ? rows : h->block_rows;
    b.columns = columns < h->block_columns ? (uint32_t)columns : h->block_columns;
    return b;
}

/* The block's outputs against the reference, or against the file's own. */
static void check_block(const struct problem *p, const struct block *b,
                        const struct block_reference *r, bool of_file, struct check *check)
{
    const struct operand *o = &p->operands[b->output];
    ptxgen_element type = (ptxgen_element)o->type;
    for (size_t i = 0; i < b->rows * b->columns; i++) {
        size_t row = b->row + i / b->columns, column = b->column + i % b->columns;
        double output = typed_load(type, problem_at(p, b->output, row, column), 0);
        const struct expected_output expected = {r->value[i], r->bound[i],
                                                 r->exact ? NULL : &r->spread[i]};
        if (of_file)
            check_expected(&p->expected, row, column, type, output, &expected, check);
        else
            check_output(check, o->name, row, column, type, output, &expected);
    }
}

static ptxgen_status compare_one(void *state, uint32_t index, struct comparison *part,
                                 ptxgen_error *err)
{
    const struct comparing *c = state;
    const struct problem *p = c->p;
    const struct block block = find_block(c, (uint64_t)index * c->every);
    struct block_reference r;
    r.exact = false;
    ptxgen_status status = p->harness->reference(p, &block, &r, err);
    if (status != PTXGEN_OK)
        return status;
    check_block(p, &block, &r, false, &part->reference);
    if (!p->expected.values)
        return PTXGEN_OK;
    if (p->harness->widen)
        status = p->harness->widen(p, &block, &r, err);
    if (status == PTXGEN_OK)
        check_block(p, &block, &r, true, &part->expected);
    return status;
}

/* ---- all blocks ---- */

static uint64_t parts_of(uint64_t whole, uint32_t part)
{
    return whole / part + (whole % part != 0);
}

static ptxgen_status compare_output(const struct problem *p, unsigned output,
                                    struct comparison *total, struct check *check,
                                    ptxgen_error *err)
{
    const struct harness *h = p->harness;
    const struct operand *o = &p->operands[output];
    double products = (double)o->rows * o->columns * h->product(p->plan).k;
    struct comparing c = {.p = p,
                          .output = output,
                          .across = (uint32_t)parts_of(o->columns, h->block_columns),
                          .every = 1};
    if (products > most_products)
        c.every = (uint32_t)ceil(products / most_products);
    while (c.every > 1 && c.across % c.every == 0) /* or some columns would never be compared */
        c.every++;
    uint64_t all = c.across * parts_of(o->rows, h->block_rows);
    uint32_t compared = (uint32_t)parts_of(all, c.every);
    if (compared < all)
        snprintf(check->note, sizeof check->note,
                 "%u of %" PRIu64 " slices of %u by %u outputs were compared", compared, all,
                 h->block_rows, h->block_columns);
    return compare_slices("comparing with the reference, slice by slice", compared, compare_one, &c,
                          total, err);
}

ptxgen_status problem_compare(const struct problem *p, struct check *check, ptxgen_error *err)
{
    struct comparison total = {.reference = {.outputs = 0}};
    ptxgen_status status = PTXGEN_OK;
    for (unsigned i = 0; status == PTXGEN_OK && i < p->count; i++) {
        const struct operand *o = &p->operands[i];
        if (!o->used || o->role != OPERAND_OUTPUT)
            continue;
        buffer_check_gaps(&p->buffers[i], o->rows, o->columns, p->strides[i], typed_bytes(o->type),
                          check);
        status = compare_output(p, i, &total, check, err);
    }
    if (status != PTXGEN_OK)
        return status;
    check_add(check, &total.reference);
    if (p->expected.values)
        check_note_expected(check, &total.expected);
    return PTXGEN_OK;
}
