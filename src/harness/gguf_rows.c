/* SPDX-License-Identifier: Apache-2.0 */
#include "gguf_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARG(member) offsetof(ptxgen_gguf_rows_args, member)

KERNEL_VERBS(gguf_rows, NULL);

static void name(const void *spec, uint64_t m, char *text, size_t size)
{
    const ptxgen_gguf_rows_spec *s = spec;
    const ptxgen_gguf_type_info *type = ptxgen_gguf_type_find(s->w_type);
    char scale[32] = "";
    if (s->scale != 0 && s->scale != 1)
        snprintf(scale, sizeof scale, " scale=%g", (double)s->scale);
    snprintf(text, size, "K=%u M=%llu w=%s y=%s%s%s", s->k, (unsigned long long)m,
             type ? type->name : "?", element_type_names[s->y_type], scale,
             s->indexed ? " indexed" : "");
}

/* No product: N is 0. */
static struct product product(const void *spec)
{
    const ptxgen_gguf_rows_spec *s = spec;
    return (struct product){.k = s->k, .type = s->y_type == PTXGEN_BF16 ? PTXGEN_BF16 : PTXGEN_F16};
}

static bool keep(void *plan, uint64_t m, struct chosen *chosen)
{
    uint32_t ctas;
    *chosen = (struct chosen){.entry = "gguf_rows", .overlaps = true};
    return ptxgen_gguf_rows_ctas(plan, m, &ctas, NULL) == PTXGEN_OK;
}

/* ---- operands ---- */

static uint64_t rows_of_w(const ptxgen_gguf_rows_spec *s, uint64_t m)
{
    return s->indexed ? GGUF_ROWS_TABLE : m + GGUF_ROWS_BEFORE;
}

static void numbers(const void *plan, uint64_t m, struct kernel_args *args)
{
    const ptxgen_gguf_rows_spec *s = plan;
    args_set(args, ARG(n), rows_of_w(s, m));
    args_set(args, ARG(first_row), s->indexed ? 0 : GGUF_ROWS_BEFORE);
}

/* Any row of the table; one in 16 is none. */
static ptxgen_status random_ids(const struct operand *o, const void *plan, struct random *r,
                                void *bytes, ptxgen_error *err)
{
    static const int32_t others[] = {-1, INT32_MIN, GGUF_ROWS_TABLE, INT32_MAX};
    int32_t *ids = bytes;
    (void)plan, (void)err;
    for (uint64_t i = 0; i < o->columns; i++)
        ids[i] = random_below(r, 16) ? (int32_t)random_below(r, GGUF_ROWS_TABLE)
                                     : others[random_below(r, 4)];
    return PTXGEN_OK;
}

/* Any bytes are blocks, of which some are infinite or NaN. */
static ptxgen_status random_blocks(const struct operand *o, const void *plan, struct random *r,
                                   void *bytes, ptxgen_error *err)
{
    (void)plan, (void)err;
    random_fill(r, bytes, operand_net_bytes(o));
    return PTXGEN_OK;
}

static unsigned operands(const void *plan, uint64_t m, struct operand *to)
{
    const ptxgen_gguf_rows_spec *s = plan;
    const ptxgen_gguf_type_info *type = ptxgen_gguf_type_find(s->w_type);
    const uint32_t block = type->block_bytes;
    size_t row_bytes = 0;
    ptxgen_gguf_row_bytes(s->w_type, s->k, &row_bytes, NULL);
    /* Without ids, w is what a kernel ahead may write. */
    const struct operand all[GGUF_ROWS_OPERANDS] = {
        [GGUF_ROWS_AT_IDS] = OPERAND_ROW(ids, X, s->indexed, m, ELEMENT_S32, .random = random_ids,
                                         .shift = sizeof(int32_t)),
        [GGUF_ROWS_AT_W] =
            OPERAND("w", s->indexed ? OPERAND_WEIGHTS : OPERAND_X, true, rows_of_w(s, m), row_bytes,
                    ELEMENT_BYTES, ARG_AND_SIZE(w), .random = random_blocks,
                    .shift = block % 4 == 0 ? 4 : 2 - block % 2),
        [GGUF_ROWS_AT_Y] =
            OPERAND_ROWS(y, OUTPUT, true, m, s->k, s->y_type, .shift = typed_bytes(s->y_type)),
    };
    memcpy(to, all, sizeof all);
    return GGUF_ROWS_OPERANDS;
}

/* ---- the reference ---- */

static ptxgen_status reference(const struct problem *p, const struct block *b,
                               struct block_reference *r, ptxgen_error *err)
{
    const ptxgen_gguf_rows_spec *s = p->plan;
    const ptxgen_gguf_rows_operands operands = {
        .m = p->m,
        .n = rows_of_w(s, p->m),
        .ids = problem_at(p, GGUF_ROWS_AT_IDS, 0, 0),
        .first_row = s->indexed ? 0 : GGUF_ROWS_BEFORE,
        .w = problem_at(p, GGUF_ROWS_AT_W, 0, 0),
    };
    void *row = malloc((size_t)s->k * typed_bytes(s->y_type));
    ptxgen_status status = PTXGEN_OK;
    if (!row)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a row");
    r->exact = true;
    for (uint64_t m = 0; status == PTXGEN_OK && m < b->rows; m++) {
        status = ptxgen_gguf_rows_reference(s, &operands, b->row + m, row, err);
        for (uint32_t i = 0; status == PTXGEN_OK && i < b->columns; i++) {
            r->value[m * b->columns + i] = typed_load(s->y_type, row, b->column + i);
            r->bound[m * b->columns + i] = 0;
        }
    }
    free(row);
    return status;
}

/* ---- a random problem ---- */

static uint32_t draw(struct random *r, bool small, const ptxgen_target *target, void *spec)
{
    static const float scales[] = {0, 1, -0.125f, 25.298221f};
    ptxgen_gguf_rows_spec *s = spec;
    const ptxgen_gguf_type_info *type = ptxgen_gguf_type_at(random_below(r, 16));
    uint32_t most = small ? 3000 : 20000;
    (void)target;
    s->w_type = (uint8_t)type->type;
    s->y_type = (uint8_t)random_below(r, 3);
    s->indexed = (uint8_t)random_below(r, 2);
    s->scale = scales[random_below(r, 4)];
    uint32_t deep = random_deep_k(r, 256);
    s->k = deep ? deep : type->block_weights * (1 + random_below(r, most / type->block_weights));
    return random_launch_rows(r, small, (small ? 1u << 16 : 1u << 23) / s->k + 1);
}

const struct harness gguf_rows_harness = {
    HARNESS_MEMBERS(gguf_rows),
    .overlap = ARG(overlap_previous),
    .numbers = numbers,
    .block_rows = 1,
    .block_columns = BLOCK_OUTPUTS,
};
