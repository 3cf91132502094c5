/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse24.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARG(member) offsetof(ptxgen_sparse24_args, member)

TILE_VERB(sparse24)
KERNEL_VERBS(sparse24, verb_use_tile);

/* The names of ptxgen_sparse24_type. */
static const char *const type_names[] = {"f32", "f16", "bf16", "s8"};

static int type_of(const ptxgen_sparse24_spec *s)
{
    return s->type == PTXGEN_SPARSE24_S8 ? ELEMENT_S8 : s->type;
}

static void name(const void *spec, uint64_t m, char *text, size_t size)
{
    const ptxgen_sparse24_spec *s = spec;
    snprintf(text, size, "K=%u N=%u M=%llu %s%s%s%s%s%s%s%s%s", s->k, s->n, (unsigned long long)m,
             type_names[s->type],
             s->type == s->y_type ? "" : " y=", s->type == s->y_type ? "" : type_names[s->y_type],
             s->activation ? " " : "", s->activation ? activation_kind_names[s->activation] : "",
             s->bias ? " bias" : "", s->residual ? " residual" : "",
             s->tier == 1 ? " inflated" : "", s->plain ? " plain" : "");
}

static struct product product(const void *spec)
{
    const ptxgen_sparse24_spec *s = spec;
    return (struct product){.k = s->k, .n = s->n, .type = (ptxgen_element)s->y_type};
}

/* Of tier 1 the variant is dense's. */
static bool keep(void *plan, uint64_t m, struct chosen *chosen)
{
    ptxgen_sparse24_plan *p = plan;
    const ptxgen_tile *v = ptxgen_sparse24_choose(p, m);
    const ptxgen_tile *dense = v ? NULL : ptxgen_dense_choose(&p->dense, m);
    if (!v && !dense)
        return false;
    if (v) {
        p->variants[0] = *v;
        *chosen =
            (struct chosen){ptxgen_sparse24_entry(v), p->variants, v->shared_bytes, !p->spec.plain};
    } else {
        p->dense.variants[0] = *dense;
        *chosen = (struct chosen){ptxgen_dense_entry(dense), p->dense.variants, dense->shared_bytes,
                                  false};
    }
    p->variant_count = v != NULL;
    p->dense.variant_count = v == NULL;
    return true;
}

/* ---- weights ---- */

/* Of two of each four that are kept, in any places: first those in rising order. */
static const unsigned char nibbles[] = {0x4, 0x8, 0xC, 0x9, 0xD, 0xE, 0x1, 0x2, 0x3, 0x6, 0x7, 0xB};
enum { NIBBLES = sizeof nibbles };

static size_t values_bytes(const ptxgen_sparse24_spec *s)
{
    return (size_t)s->n * s->k / 2 * typed_bytes(type_of(s));
}

static size_t metadata_bytes(const ptxgen_sparse24_spec *s)
{
    return (size_t)s->n * s->k / 4;
}

static ptxgen_status allocate(const ptxgen_sparse24_spec *s, struct sparse24_weights *w,
                              ptxgen_error *err)
{
    w->values = (ptxgen_span){malloc(values_bytes(s)), values_bytes(s)};
    w->metadata = (ptxgen_span){malloc(metadata_bytes(s)), metadata_bytes(s)};
    return w->values.data && w->metadata.data
               ? PTXGEN_OK
               : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the weight");
}

static ptxgen_status pack(const ptxgen_sparse24_spec *s, const struct sparse24_weights *w,
                          ptxgen_span to, ptxgen_error *err)
{
    return ptxgen_sparse24_pack(s, (ptxgen_const_span){w->values.data, w->values.bytes},
                                PTXGEN_SPARSE24_BYTES,
                                (ptxgen_const_span){w->metadata.data, w->metadata.bytes}, to, err);
}

/* Memory for them, where there is none yet. */
static ptxgen_status make_weights(struct problem *p, struct sparse24_weights **weights,
                                  ptxgen_error *err)
{
    if (!p->own) {
        p->own = calloc(1, sizeof **weights);
        if (!p->own)
            return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the weight");
    }
    *weights = p->own;
    return (*weights)->values.data ? PTXGEN_OK : allocate(p->plan, *weights, err);
}

ptxgen_status sparse24_pack_weights(struct problem *p, ptxgen_error *err)
{
    const struct buffer *to = &p->buffers[SPARSE24_AT_W];
    const struct sparse24_weights *w = p->own;
    if (!((const ptxgen_sparse24_spec *)p->plan)->plain)
        return pack(p->plan, w, (ptxgen_span){to->host, to->bytes}, err);
    memcpy(p->buffers[SPARSE24_AT_VALUES].host, w->values.data, w->values.bytes);
    memcpy(p->buffers[SPARSE24_AT_METADATA].host, w->metadata.data, w->metadata.bytes);
    return PTXGEN_OK;
}

static void free_weights(const struct sparse24_weights *w)
{
    free(w->values.data);
    free(w->metadata.data);
}

static void release(struct problem *p)
{
    free_weights(p->own);
    free(p->own);
    p->own = NULL;
}

/* Zeros are among what is kept. */
static ptxgen_status fill(struct problem *p, struct random *r, ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = p->plan;
    struct sparse24_weights *w = NULL;
    ptxgen_status status = make_weights(p, &w, err);
    if (status != PTXGEN_OK)
        return status;
    double scale = p->operands[SPARSE24_AT_X].deviation;
    for (size_t i = 0; i < (size_t)s->n * s->k / 2; i++)
        typed_store(type_of(s), w->values.data, i,
                    random_below(r, 16) ? scale * random_normal(r) : 0);
    for (size_t i = 0; i < w->metadata.bytes; i++)
        ((unsigned char *)w->metadata.data)[i] = nibbles[random_below(r, NIBBLES)];
    return sparse24_pack_weights(p, err);
}

/* Quickly: random numbers below 2 in magnitude. */
static ptxgen_status random_values(const struct operand *o, const void *plan, struct random *r,
                                   void *bytes, ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = plan;
    const size_t element = typed_bytes(type_of(s));
    (void)o, (void)err;
    random_fill(r, bytes, values_bytes(s));
    for (size_t i = element - 1; i < values_bytes(s) && element > 1; i += element)
        ((unsigned char *)bytes)[i] &= 0xBF; /* the exponent's top bit */
    return PTXGEN_OK;
}

static ptxgen_status random_metadata(const struct operand *o, const void *plan, struct random *r,
                                     void *bytes, ptxgen_error *err)
{
    unsigned char *metadata = bytes;
    (void)o, (void)err;
    random_fill(r, metadata, metadata_bytes(plan));
    for (size_t i = 0; i < metadata_bytes(plan); i++)
        metadata[i] = nibbles[metadata[i] % NIBBLES];
    return PTXGEN_OK;
}

static ptxgen_status random_weights(const struct operand *o, const void *plan, struct random *r,
                                    void *bytes, ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = plan;
    size_t packed = 0;
    struct sparse24_weights w = {.values = {NULL, 0}};
    ptxgen_status status = allocate(s, &w, err);
    if (status == PTXGEN_OK)
        status = ptxgen_sparse24_packed_bytes(s, &packed, err);
    if (status == PTXGEN_OK) {
        random_values(o, plan, r, w.values.data, err);
        random_metadata(o, plan, r, w.metadata.data, err);
        status = pack(s, &w, (ptxgen_span){bytes, packed}, err);
    }
    free_weights(&w);
    return status;
}

/* ---- operands ---- */

static unsigned operands(const void *plan, uint64_t m, struct operand *to)
{
    const ptxgen_sparse24_spec *s = plan;
    bool scaled = s->type == PTXGEN_SPARSE24_S8, plain = s->plain;
    size_t packed = 0;
    ptxgen_sparse24_packed_bytes(s, &packed, NULL);
    const struct operand all[SPARSE24_OPERANDS] = {
        [SPARSE24_AT_X] =
            OPERAND_ROWS(x, X, true, m, s->k, type_of(s), .deviation = scaled ? 48 : 1),
        [SPARSE24_AT_W] =
            OPERAND_ROW(w, WEIGHTS, !plain, packed, ELEMENT_BYTES, .random = random_weights),
        [SPARSE24_AT_VALUES] = OPERAND_ROW(values, WEIGHTS, plain, values_bytes(s), ELEMENT_BYTES,
                                           .random = random_values),
        [SPARSE24_AT_METADATA] = OPERAND_ROW(metadata, WEIGHTS, plain, metadata_bytes(s),
                                             ELEMENT_BYTES, .random = random_metadata),
        [SPARSE24_AT_X_SCALE] = OPERAND_ROW(x_scale, INPUT, scaled, m, PTXGEN_F32, .mean = 0.01,
                                            .deviation = 0.01, .positive = true),
        [SPARSE24_AT_W_SCALE] = OPERAND_ROW(w_scale, INPUT, scaled, s->n, PTXGEN_F32, .mean = 0.01,
                                            .deviation = 0.01, .positive = true),
        [SPARSE24_AT_BIAS] = OPERAND_ROW(bias, INPUT, s->bias, s->n, s->y_type, .deviation = 1),
        [SPARSE24_AT_RESIDUAL] =
            OPERAND_ROWS(residual, RESIDUAL, s->residual, m, s->n, s->y_type, .deviation = 1),
        [SPARSE24_AT_Y] = OPERAND_ROWS(y, OUTPUT, true, m, s->n, s->y_type),
    };
    memcpy(to, all, sizeof all);
    for (int i = 0; i < SPARSE24_OPERANDS; i++)
        to[i].shift = to[i].role == OPERAND_WEIGHTS ? 0 : typed_bytes(to[i].type);
    to[SPARSE24_AT_METADATA].shift = 2;
    return SPARSE24_OPERANDS;
}

/* Of tier 1 the workspace is dense's, of which there may be none, and then W. */
static ptxgen_status flags(const struct problem *p, uint32_t *count, ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = p->plan;
    bool inflates = !ptxgen_sparse24_choose(p->plan, p->m);
    ptxgen_status status = ptxgen_sparse24_ctas(p->plan, p->m, count, err);
    if (inflates && p->workspace.bytes == 2 * values_bytes(s))
        *count = 0;
    return status;
}

/* Tier 1 inflates the weight; tier 2 packs one that comes as values and metadata. */
static ptxgen_status prepare(const void *kernel, const void *args, ptxgen_cu_stream stream,
                             ptxgen_error *err)
{
    const ptxgen_sparse24_args *a = args;
    const ptxgen_sparse24_plan *plan = ptxgen_loaded_plan(kernel);
    const ptxgen_sparse24_inflate_args inflation = {.packed = a->w,
                                                    .dense = a->workspace,
                                                    .packed_bytes = a->w_bytes,
                                                    .dense_bytes = a->workspace_bytes,
                                                    .values = a->values,
                                                    .metadata = a->metadata,
                                                    .values_bytes = a->values_bytes,
                                                    .metadata_bytes = a->metadata_bytes};
    const ptxgen_sparse24_repack_args packing = {.values = a->values,
                                                 .metadata = a->metadata,
                                                 .packed = a->workspace,
                                                 .values_bytes = a->values_bytes,
                                                 .metadata_bytes = a->metadata_bytes,
                                                 .packed_bytes = a->workspace_bytes};
    return plan->dense.variant_count ? ptxgen_sparse24_inflate(kernel, &inflation, stream, err)
                                     : ptxgen_sparse24_repack(kernel, &packing, stream, err);
}

static uint64_t prepared_bytes(const void *plan)
{
    const ptxgen_sparse24_plan *p = plan;
    const ptxgen_sparse24_spec *s = &p->spec;
    size_t packed = 0;
    if (p->dense.variant_count)
        return 3 * values_bytes(s) + metadata_bytes(s);
    ptxgen_sparse24_packed_bytes(plan, &packed, NULL);
    return values_bytes(s) + metadata_bytes(s) + packed;
}

/* ---- the reference ---- */

/* `rows` rows of a matrix of `count` rows, from `first` on. */
static ptxgen_const_span part_of(const ptxgen_span *matrix, size_t count, size_t first, size_t rows)
{
    size_t row_bytes = matrix->bytes / count;
    return (ptxgen_const_span){(const unsigned char *)matrix->data + first * row_bytes,
                               rows * row_bytes};
}

static ptxgen_status reference(const struct problem *p, const struct block *b,
                               struct block_reference *r, ptxgen_error *err)
{
    const struct sparse24_weights *w = p->own;
    ptxgen_sparse24_plan plan = *(const ptxgen_sparse24_plan *)p->plan;
    const ptxgen_sparse24_operands operands = {
        .m = b->rows,
        .x = problem_at(p, SPARSE24_AT_X, b->row, 0),
        .values = part_of(&w->values, plan.spec.n, b->column, b->columns),
        .form = PTXGEN_SPARSE24_BYTES,
        .metadata = part_of(&w->metadata, plan.spec.n, b->column, b->columns),
        .x_scale = problem_at(p, SPARSE24_AT_X_SCALE, 0, b->row),
        .w_scale = problem_at(p, SPARSE24_AT_W_SCALE, 0, b->column),
        .bias = problem_at(p, SPARSE24_AT_BIAS, 0, b->column),
        .residual = problem_at(p, SPARSE24_AT_RESIDUAL, b->row, b->column),
        .x_stride = p->strides[SPARSE24_AT_X],
        .residual_stride = p->strides[SPARSE24_AT_RESIDUAL],
    };
    plan.spec.n = b->columns;
    return ptxgen_sparse24_reference_spread(&plan, &operands, r->value, r->bound, r->spread, err);
}

/*
 * The reference's bound is for an exact sum that is rounded at last. Of s8 the reference is the
 * kernel's own roundings instead; the file's output may have others, of the sum, two scales, the
 * bias and y's type.
 */
static ptxgen_status widen(const struct problem *p, const struct block *b,
                           struct block_reference *r, ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = p->plan;
    ptxgen_element type = (ptxgen_element)s->y_type;
    double unit = type == PTXGEN_BF16 ? 0x1p-8 : 0x1p-11;
    (void)err;
    r->exact = s->type == PTXGEN_SPARSE24_S8;
    for (size_t i = 0; i < b->rows * b->columns; i++) {
        double y = fabs(r->value[i]), bias = 0;
        if (s->bias)
            bias = fabs(ptxgen_element_load(type, p->buffers[SPARSE24_AT_BIAS].host,
                                            b->column + i % b->columns));
        if (!isfinite(y))
            r->bound[i] = 0;
        else if (r->exact)
            r->bound[i] += unit * y + 0x1p-25 + 0x1p-21 * (y + 2 * bias);
    }
    return PTXGEN_OK;
}

/* ---- a random problem ---- */

/* Of a size that the reference does in a part of a second. */
static uint32_t draw(struct random *r, bool small, const ptxgen_target *target, void *spec)
{
    (void)target;
    static const uint32_t sizes[] = {512, 1024, 2048, 8192};
    ptxgen_sparse24_spec *s = spec;
    uint32_t most = small ? 600 : sizes[random_below(r, sizeof sizes / sizeof *sizes)];
    s->type = (uint8_t)random_below(r, 4);
    if (s->type != PTXGEN_SPARSE24_S8)
        s->tier = (uint8_t)random_below(r, s->type == PTXGEN_SPARSE24_F32 ? 2 : 3);
    s->y_type = s->type;
    if (s->type == PTXGEN_SPARSE24_S8)
        s->y_type = random_below(r, 2) ? PTXGEN_BF16 : PTXGEN_F16;
    s->k = 8 * (1 + random_below(r, 2 * most / 8));
    if (random_below(r, 3) == 0)
        s->k = (s->k + 127) / 128 * 128;
    random_features(r, small ? 300 : most, 128, 8, &s->k, &s->n);
    s->activation = (uint8_t)random_below(r, PTXGEN_ACTIVATION_RELU + 1);
    s->bias = (uint8_t)random_below(r, 2);
    s->residual = (uint8_t)random_below(r, 2);
    s->plain = random_below(r, 3) == 0;
    uint64_t products = (small ? 1u << 21 : 1u << 26) / ((uint64_t)s->k * s->n);
    uint32_t m = random_launch_rows(r, small, products);
    s->max_m = random_max_m(r, m);
    return m;
}

const struct harness sparse24_harness = {
    HARNESS_MEMBERS(sparse24),
    HARNESS_WORKSPACE,
    .overlap = ARG(overlap_previous),
    .fill = fill,
    .release = release,
    .flags = flags,
    .block_rows = 64,
    .block_columns = 64,
    .widen = widen,
    .launch_prologue = prepare,
    .prologue_bytes = prepared_bytes,
};
