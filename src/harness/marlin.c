/* SPDX-License-Identifier: Apache-2.0 */
#include "marlin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARG(member) offsetof(ptxgen_marlin_args, member)

TILE_VERB(marlin)
KERNEL_VERBS(marlin, verb_use_tile);

unsigned marlin_matrices(const ptxgen_marlin_spec *s)
{
    return s->epilogue == PTXGEN_EPILOGUE_SWIGLU ? 2 : 1;
}

ptxgen_w4_info marlin_info(const ptxgen_marlin_spec *s)
{
    size_t rows = s->group_size == PTXGEN_W4_PER_CHANNEL ? s->k : (size_t)s->group_size;
    return (ptxgen_w4_info){.k = s->k,
                            .n = s->n,
                            .groups = s->k / rows,
                            .group_size = (ptrdiff_t)rows,
                            .scale_type = (ptxgen_element)s->type,
                            .symmetric = !s->zeros,
                            .act_order = s->act_order};
}

void marlin_list_tensors(ptxgen_w4_checkpoint *c, ptxgen_w4_tensor *to[MARLIN_TENSORS])
{
    ptxgen_w4_tensor *const all[] = {&c->weights, &c->scales, &c->zeros, &c->g_idx, &c->shape};
    memcpy(to, all, sizeof all);
}

static void name(const void *spec, uint64_t m, char *text, size_t size)
{
    const ptxgen_marlin_spec *s = spec;
    snprintf(text, size, "K=%u N=%u M=%llu group=%d %s%s%s%s%s%s%s%s", s->k, s->n,
             (unsigned long long)m, (int)s->group_size, element_type_names[s->type],
             s->zeros ? " zeros" : "", s->act_order ? " act-order" : "",
             marlin_matrices(s) == 2 ? " swiglu" : "", s->activation ? " " : "",
             s->activation ? activation_kind_names[s->activation] : "", s->bias ? " bias" : "",
             s->residual ? " residual" : "");
}

static struct product product(const void *spec)
{
    const ptxgen_marlin_spec *s = spec;
    return (struct product){.k = s->k,
                            .n = marlin_matrices(s) * s->n,
                            .type = (ptxgen_element)s->type,
                            .tensor_f16 = true};
}

static bool keep(void *plan, uint64_t m, struct chosen *chosen)
{
    ptxgen_marlin_plan *p = plan;
    const ptxgen_tile *v = ptxgen_marlin_choose(p, m);
    if (!v)
        return false;
    const ptxgen_tile kept = *v;
    memset(p->variants, 0, sizeof p->variants);
    p->variants[0] = kept;
    p->variant_count = 1;
    p->tuned_count = 0;
    memset(p->tuned, 0, sizeof p->tuned);
    *chosen = (struct chosen){ptxgen_marlin_entry(&kept), p->variants, kept.shared_bytes, true};
    return true;
}

/* ---- operands ---- */

static void permute(struct random *r, uint32_t count, uint32_t *order)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other = random_below(r, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
}

/* Any order of the rows. */
static ptxgen_status random_order(const struct operand *o, const void *plan, struct random *r,
                                  void *bytes, ptxgen_error *err)
{
    (void)o, (void)err;
    permute(r, ((const ptxgen_marlin_spec *)plan)->k, bytes);
    return PTXGEN_OK;
}

static unsigned operands(const void *plan, uint64_t m, struct operand *to)
{
    const ptxgen_marlin_spec *s = plan;
    ptxgen_marlin_packed packed = {.codes_bytes = 0};
    ptxgen_marlin_packed_layout(s, &packed, NULL);
    bool gated = marlin_matrices(s) == 2;
    const struct operand all[MARLIN_OPERANDS] = {
        [MARLIN_AT_X] = OPERAND_ROWS(x, X, true, m, s->k, s->type),
        [MARLIN_AT_CODES] = OPERAND_ROW(codes, WEIGHTS, true, packed.codes_bytes, ELEMENT_BYTES),
        [MARLIN_AT_SCALES] = OPERAND_ROW(scales, WEIGHTS, true, packed.scales_bytes / 2, s->type),
        [MARLIN_AT_ZEROS] =
            OPERAND_ROW(zeros, WEIGHTS, s->zeros, packed.zeros_bytes, ELEMENT_BYTES),
        [MARLIN_AT_ORDER] = OPERAND_ROW(order, INPUT, s->act_order, packed.order_bytes / 4,
                                        ELEMENT_S32, .random = random_order),
        [MARLIN_AT_BIAS] = OPERAND_ROW(bias, INPUT, s->bias, s->n, s->type),
        [MARLIN_AT_UP_BIAS] = OPERAND_ROW(up_bias, INPUT, s->bias && gated, s->n, s->type),
        [MARLIN_AT_RESIDUAL] = OPERAND_ROWS(residual, RESIDUAL, s->residual, m, s->n, s->type),
        [MARLIN_AT_Y] = OPERAND_ROWS(y, OUTPUT, true, m, s->n, s->type),
    };
    memcpy(to, all, sizeof all);
    for (int i = 0; i < MARLIN_OPERANDS; i++) {
        bool packs = i >= MARLIN_AT_CODES && i <= MARLIN_AT_ORDER;
        to[i].shift = packs ? 0 : 2;
        to[i].outliers = !packs && i != MARLIN_AT_Y;
        to[i].deviation = to[i].outliers;
    }
    return MARLIN_OPERANDS;
}

/* ---- weights ---- */

void marlin_free_matrix(ptxgen_w4_matrix *m)
{
    free(m->codes);
    free(m->scales);
    free(m->zeros);
    free(m->g_idx);
}

static void release(struct problem *p)
{
    struct marlin_matrices *matrices = p->own;
    for (int i = 0; i < 2; i++)
        marlin_free_matrix(&matrices->of[i]);
    free(matrices);
    p->own = NULL;
}

ptxgen_status marlin_allocate_matrix(const ptxgen_w4_info *info, ptxgen_w4_matrix *m,
                                     ptxgen_error *err)
{
    m->codes = malloc(info->k * info->n);
    m->scales = malloc(info->groups * info->n * ptxgen_element_size(info->scale_type));
    m->zeros = malloc(info->groups * info->n);
    m->g_idx = malloc(info->k * sizeof *m->g_idx);
    return m->codes && m->scales && m->zeros && m->g_idx
               ? PTXGEN_OK
               : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %zu codes",
                             info->k * info->n);
}

static ptxgen_marlin_packed packed_of(const struct problem *p)
{
    ptxgen_marlin_packed packed;
    ptxgen_marlin_packed_layout(p->plan, &packed, NULL);
    packed.codes = p->buffers[MARLIN_AT_CODES].host;
    packed.scales = p->buffers[MARLIN_AT_SCALES].host;
    packed.zeros = p->buffers[MARLIN_AT_ZEROS].host;
    packed.order = (uint32_t *)(void *)p->buffers[MARLIN_AT_ORDER].host;
    return packed;
}

/* Memory for the problem's matrices, whose scales may have any type, instead of what there was. */
static ptxgen_status make_matrices(struct problem *p, struct marlin_matrices **matrices,
                                   ptxgen_error *err)
{
    ptxgen_w4_info info = marlin_info(p->plan);
    info.scale_type = PTXGEN_F32;
    if (p->own)
        release(p);
    *matrices = p->own = calloc(1, sizeof **matrices);
    ptxgen_status status =
        *matrices ? PTXGEN_OK
                  : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for two matrices");
    for (unsigned i = 0; status == PTXGEN_OK && i < marlin_matrices(p->plan); i++)
        status = marlin_allocate_matrix(&info, &(*matrices)->of[i], err);
    return status;
}

ptxgen_status marlin_pack_weights(struct problem *p, const ptxgen_w4_checkpoint *weights,
                                  const ptxgen_w4_checkpoint *up, ptxgen_error *err)
{
    const ptxgen_w4_repack_options options = {.threads = (unsigned)sysconf(_SC_NPROCESSORS_ONLN)};
    const ptxgen_marlin_packed packed = packed_of(p);
    struct marlin_matrices *matrices;
    ptxgen_status status = ptxgen_marlin_pack(p->plan, weights, up, &packed, &options, err);
    if (status == PTXGEN_OK)
        status = make_matrices(p, &matrices, err);
    if (status == PTXGEN_OK)
        status = ptxgen_w4_unpack(weights, &matrices->of[0], err);
    return status == PTXGEN_OK && up ? ptxgen_w4_unpack(up, &matrices->of[1], err) : status;
}

ptxgen_status marlin_copy_weights(struct problem *p, const ptxgen_marlin_packed *from,
                                  ptxgen_error *err)
{
    const ptxgen_marlin_spec *s = p->plan;
    const ptxgen_marlin_packed to = packed_of(p);
    struct marlin_matrices *matrices;
    memcpy(to.codes, from->codes, to.codes_bytes);
    memcpy(to.scales, from->scales, to.scales_bytes);
    if (to.zeros_bytes)
        memcpy(to.zeros, from->zeros, to.zeros_bytes);
    if (to.order_bytes)
        memcpy(to.order, from->order, to.order_bytes);
    ptxgen_status status = ptxgen_marlin_check_packed(s, &to, err);
    if (status == PTXGEN_OK)
        status = make_matrices(p, &matrices, err);
    return status == PTXGEN_OK ? ptxgen_marlin_unpack(s, &to, &matrices->of[0], NULL, err) : status;
}

/* ---- random weights ---- */

/* A marlin file has no place for the order of rows. */
static bool format_holds(ptxgen_w4_format format, const ptxgen_marlin_spec *s)
{
    const ptxgen_w4_info info = marlin_info(s);
    ptxgen_w4_checkpoint c;
    return ptxgen_w4_layout(&info, format, &c, NULL) == PTXGEN_OK &&
           (format != PTXGEN_W4_MARLIN || !s->act_order);
}

/* Memory for the tensors that have a shape. */
static ptxgen_status allocate_tensors(ptxgen_w4_checkpoint *c, void *memory[MARLIN_TENSORS],
                                      ptxgen_error *err)
{
    ptxgen_w4_tensor *tensors[MARLIN_TENSORS];
    marlin_list_tensors(c, tensors);
    for (int i = 0; i < MARLIN_TENSORS; i++) {
        size_t bytes = ptxgen_w4_tensor_bytes(tensors[i]);
        tensors[i]->data = memory[i] = bytes ? calloc(bytes, 1) : NULL;
        if (bytes && !memory[i])
            return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                               "no memory for %zu bytes of weights", bytes);
    }
    return PTXGEN_OK;
}

/* Equal groups of any rows with act_order, else of rows one after the other. */
static void fill_g_idx(const ptxgen_marlin_spec *s, struct random *r, uint32_t *g_idx)
{
    uint32_t rows = (uint32_t)marlin_info(s).group_size;
    for (uint32_t k = 0; k < s->k; k++)
        g_idx[k] = k;
    if (s->act_order)
        permute(r, s->k, g_idx);
    for (uint32_t k = 0; k < s->k; k++)
        g_idx[k] /= rows;
}

/* Weights of a product about as large as its activations, whatever K. */
static void fill_checkpoint(const ptxgen_marlin_spec *s, struct random *r,
                            const ptxgen_w4_checkpoint *c)
{
    double size = 0.25 / sqrt((double)s->k);
    random_fill(r, c->weights.data, ptxgen_w4_tensor_bytes(&c->weights));
    for (size_t i = 0; i < c->scales.shape[0] * c->scales.shape[1]; i++)
        ptxgen_element_store((ptxgen_element)s->type, c->scales.data, i,
                             size * (0.25 + fabs(random_normal(r))));
    size_t zero_bytes = ptxgen_w4_tensor_bytes(&c->zeros);
    if (s->zeros)
        random_fill(r, c->zeros.data, zero_bytes);
    else if (zero_bytes)
        memset(c->zeros.data, c->format == PTXGEN_W4_GPTQ_V1 ? 0x77 : 0x88, zero_bytes);
    if (c->g_idx.data)
        fill_g_idx(s, r, c->g_idx.data);
    if (c->shape.data)
        memcpy(c->shape.data, (int64_t[]){s->n, s->k}, 2 * sizeof(int64_t));
}

ptxgen_status marlin_random_weights(const ptxgen_marlin_spec *s, ptxgen_w4_format format,
                                    struct random *r, struct marlin_weights *w, ptxgen_error *err)
{
    const ptxgen_w4_info info = marlin_info(s);
    ptxgen_w4_checkpoint *c = w->checkpoints;
    ptxgen_status status = PTXGEN_OK;
    memset(w, 0, sizeof *w);
    for (; status == PTXGEN_OK && w->count < marlin_matrices(s); w->count++) {
        status = ptxgen_w4_layout(&info, format, &c[w->count], err);
        if (status == PTXGEN_OK)
            status = allocate_tensors(&c[w->count], w->memory[w->count], err);
        if (status == PTXGEN_OK)
            fill_checkpoint(s, r, &c[w->count]);
    }
    if (status == PTXGEN_OK && w->count == 2 && s->act_order) /* they share activations */
        memcpy(c[1].g_idx.data, c[0].g_idx.data, ptxgen_w4_tensor_bytes(&c[0].g_idx));
    return status;
}

void marlin_release_weights(struct marlin_weights *w)
{
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < MARLIN_TENSORS; j++)
            free(w->memory[i][j]);
    memset(w, 0, sizeof *w);
}

static ptxgen_status fill(struct problem *p, struct random *r, ptxgen_error *err)
{
    struct marlin_weights w;
    ptxgen_w4_format format;
    do
        format = (ptxgen_w4_format)random_below(r, PTXGEN_W4_MARLIN + 1);
    while (!format_holds(format, p->plan));
    ptxgen_status status = marlin_random_weights(p->plan, format, r, &w, err);
    if (status == PTXGEN_OK)
        status =
            marlin_pack_weights(p, &w.checkpoints[0], w.count == 2 ? &w.checkpoints[1] : NULL, err);
    marlin_release_weights(&w);
    return status;
}

/* ---- the reference ---- */

/* Columns of a row-major array of `element` bytes; the caller frees it. */
static void *copy_columns(const void *array, size_t rows, size_t n, const struct block *b,
                          size_t element)
{
    unsigned char *copy = malloc(rows * b->columns * element);
    for (size_t row = 0; copy && row < rows; row++)
        memcpy(copy + row * b->columns * element,
               (const unsigned char *)array + (row * n + b->column) * element,
               b->columns * element);
    return copy;
}

static bool slice_matrix(const ptxgen_w4_matrix *m, const struct block *b, ptxgen_w4_matrix *to)
{
    size_t groups = m->k / (size_t)m->group_size;
    *to = *m;
    to->n = b->columns;
    to->codes = copy_columns(m->codes, m->k, m->n, b, 1);
    to->scales = copy_columns(m->scales, groups, m->n, b, ptxgen_element_size(m->scale_type));
    to->zeros = copy_columns(m->zeros, groups, m->n, b, 1);
    return to->codes && to->scales && to->zeros;
}

static ptxgen_status reference(const struct problem *p, const struct block *b,
                               struct block_reference *r, ptxgen_error *err)
{
    const struct marlin_matrices *matrices = p->own;
    ptxgen_marlin_plan plan = *(const ptxgen_marlin_plan *)p->plan;
    ptxgen_w4_matrix slices[2] = {{.codes = NULL}, {.codes = NULL}};
    bool have = true;
    for (unsigned i = 0; have && i < marlin_matrices(&plan.spec); i++)
        have = slice_matrix(&matrices->of[i], b, &slices[i]);
    plan.spec.n = b->columns;
    const ptxgen_marlin_operands operands = {
        .m = b->rows,
        .x = problem_at(p, MARLIN_AT_X, b->row, 0),
        .weights = &slices[0],
        .up = &slices[1],
        .bias = problem_at(p, MARLIN_AT_BIAS, 0, b->column),
        .up_bias = problem_at(p, MARLIN_AT_UP_BIAS, 0, b->column),
        .residual = problem_at(p, MARLIN_AT_RESIDUAL, b->row, b->column),
        .x_stride = p->strides[MARLIN_AT_X],
        .residual_stride = p->strides[MARLIN_AT_RESIDUAL],
    };
    ptxgen_status status =
        have ? ptxgen_marlin_reference_spread(&plan, &operands, r->value, r->bound, r->spread, err)
             : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for columns of the weights");
    for (int i = 0; i < 2; i++) {
        slices[i].g_idx = NULL; /* the whole matrix's */
        marlin_free_matrix(&slices[i]);
    }
    return status;
}

/* ---- a random problem ---- */

/* Group sizes and K: powers of two, odd multiples of 16, and a single group. */
static void draw_shape(struct random *r, bool small, ptxgen_marlin_spec *s)
{
    static const int32_t groups[] = {16, 32, 48, 64, 80, 96, 128, 192, 256, PTXGEN_W4_PER_CHANNEL};
    uint32_t most = small ? 512 : random_below(r, 3) ? 2048 : 8192;
    s->group_size = groups[random_below(r, sizeof groups / sizeof *groups)];
    uint32_t unit = s->group_size > 0 ? (uint32_t)s->group_size : 16;
    uint32_t deep = random_deep_k(r, unit);
    s->k = deep ? deep : unit * (1 + random_below(r, most / unit));
    if (s->group_size > 0 && random_below(r, 8) == 0)
        s->group_size = (int32_t)s->k;
    s->n = 8 * (1 + random_below(r, (small ? 256 : most) / 8));
    if (deep)
        s->n = 8 * (1 + random_below(r, RANDOM_DEEP_FEATURES / 8));
    if (random_below(r, 3) == 0)
        s->n = (s->n + 63) / 64 * 64;
}

/* Of a size that the reference does in a second. */
static uint32_t draw(struct random *r, bool small, const ptxgen_target *target, void *spec)
{
    (void)target;
    ptxgen_marlin_spec *s = spec;
    s->type = random_below(r, 2) ? PTXGEN_BF16 : PTXGEN_F16;
    draw_shape(r, small, s);
    s->zeros = (uint8_t)random_below(r, 2);
    s->act_order = random_below(r, 4) == 0;
    s->bias = (uint8_t)random_below(r, 2);
    s->residual = (uint8_t)random_below(r, 2);
    if (random_below(r, 4) == 0)
        s->epilogue = PTXGEN_EPILOGUE_SWIGLU;
    else
        s->activation = (uint8_t)random_below(r, 4);
    uint64_t products = (uint64_t)s->k * s->n * marlin_matrices(s);
    uint32_t m = random_launch_rows(r, small, (small ? 1u << 21 : 1u << 31) / products);
    if (random_below(r, 4) == 0)
        s->max_m = m + random_below(r, 3);
    return m;
}

static const double factors[] = {0, 0x1p-22};

const struct harness marlin_harness = {
    HARNESS_MEMBERS(marlin),
    HARNESS_WORKSPACE,
    .overlap = ARG(overlap_previous),
    .fill = fill,
    .release = release,
    HARNESS_FACTORS,
    .huge = 60000,
    .block_rows = 64,
    .block_columns = 64,
};
