/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of files in 8 bits: codes, their scales, and what x is quantised by. */
#include "src/runtime/linear_layer.h"

#include <stdlib.h>
#include <string.h>

/* ---- checks ---- */

static ptxgen_status check_w8(const ptxgen_layer *l, ptxgen_error *err)
{
    const ptxgen_tensor *w = l->parts[PTXGEN_LAYER_WEIGHT];
    const ptxgen_tensor *zero = l->parts[PTXGEN_LAYER_INPUT_ZERO];
    bool codes = w->dtype == PTXGEN_DTYPE_I8 || w->dtype == PTXGEN_DTYPE_F8_E4M3 ||
                 w->dtype == PTXGEN_DTYPE_F8_E5M2;
    if (!l->parts[PTXGEN_LAYER_SCALE])
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: %s has no scales",
                           w->name);
    if (zero && (!zero->bytes || zero->bytes > 8 ||
                 !(linear_read_number(zero) >= -128 && linear_read_number(zero) <= 127)))
        return linear_refuse_part(zero, "one number from -128 to 127", err);
    return linear_check_matrix(w, codes, "a matrix of I8, F8_E4M3 or F8_E5M2", err);
}

/* Gate and up are multiplied as one matrix, so that all but their numbers is the same. */
static ptxgen_status check_pair(const ptxgen_w8a8_spec *gate, const ptxgen_w8a8_spec *up,
                                ptxgen_error *err)
{
    if (gate->bias || gate->activation)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: gate and up take neither a bias nor an activation");
    if (gate->n != up->n || gate->k != up->k)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: gate is %u by %u and up is %u by %u", gate->n, gate->k, up->n,
                           up->k);
    return memcmp(gate, up, sizeof *gate) == 0
               ? PTXGEN_OK
               : ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                             "a layer: codes or kinds of scales of gate are not those of up");
}

static ptxgen_w8a8_spec w8_spec(const ptxgen_layer *l, const ptxgen_linear_options *o)
{
    const ptxgen_tensor *w = l->parts[PTXGEN_LAYER_WEIGHT];
    const ptxgen_tensor *zero = l->parts[PTXGEN_LAYER_INPUT_ZERO];
    const bool is_static = l->parts[PTXGEN_LAYER_INPUT_SCALE] != NULL;
    ptxgen_w8a8_spec spec;
    memset(&spec, 0, sizeof spec); /* padding too: pairs are compared as a whole */
    spec.k = (uint32_t)w->shape[1];
    spec.n = (uint32_t)w->shape[0];
    spec.w_stride = ptxgen_w8a8_stride(spec.k);
    spec.max_m = (uint32_t)o->max_m;
    spec.x_type = spec.y_type = o->type;
    spec.scales = is_static ? PTXGEN_W8A8_TENSOR : PTXGEN_W8A8_DYNAMIC;
    spec.asymmetric = is_static && zero && linear_read_number(zero) != 0;
    spec.bias = o->bias != NULL;
    spec.codes = w->dtype == PTXGEN_DTYPE_I8 ? PTXGEN_W8A8_S8 : PTXGEN_W8A8_E4M3;
    spec.w_codes = w->dtype == PTXGEN_DTYPE_F8_E5M2 ? PTXGEN_W8A8_E5M2 : 0;
    spec.activation = o->activation;
    spec.group = l->form == PTXGEN_LAYER_BLOCKS ? PTXGEN_W8A8_GROUP : 0;
    return spec;
}

/* ---- arrays, of one matrix or of gate and up in the order of SwiGLU ---- */

/* The codes with their stride, malloc'ed. */
static ptxgen_status pack_codes(const ptxgen_w8a8_spec *s, const ptxgen_layer *l, int8_t **codes,
                                ptxgen_error *err)
{
    *codes = malloc((size_t)s->n * s->w_stride + 1);
    return *codes ? ptxgen_w8a8_pack(s->n, s->k, l->parts[PTXGEN_LAYER_WEIGHT]->data, s->w_stride,
                                     *codes, err)
                  : linear_no_memory(err);
}

/* In the place of *of_gate both, `bytes` for each of n rows; *of_gate is freed with the caller. */
static ptxgen_status pair_rows(uint32_t n, size_t bytes, void **of_gate, const void *of_up,
                               ptxgen_error *err)
{
    void *both = malloc(2 * n * bytes + 1);
    ptxgen_status status =
        both ? ptxgen_w8a8_pair(n, bytes, *of_gate, of_up, both, err) : linear_no_memory(err);
    free(*of_gate);
    *of_gate = both;
    return status;
}

/* And their sums where x has zero points. */
static ptxgen_status upload_codes(const ptxgen_w8a8_spec *s, const struct linear_file *f,
                                  ptxgen_linear *linear, ptxgen_error *err)
{
    ptxgen_w8a8_args *args = &linear->args.w8a8;
    const uint32_t rows = s->n * (f->up ? 2 : 1);
    int8_t *codes, *up = NULL;
    void *all = NULL;
    int32_t *sums = malloc(rows * sizeof *sums + 1);
    ptxgen_status status = pack_codes(s, f->layer, &codes, err);
    all = codes;
    if (status == PTXGEN_OK && f->up)
        status = pack_codes(s, f->up, &up, err);
    if (status == PTXGEN_OK && f->up)
        status = pair_rows(s->n, s->w_stride, &all, up, err);
    if (status == PTXGEN_OK)
        status = linear_upload(linear, all, (size_t)rows * s->w_stride, &args->w, err);
    if (status == PTXGEN_OK && s->asymmetric)
        status = sums ? ptxgen_w8a8_row_sums(rows, s->k, all, s->w_stride, sums, err)
                      : linear_no_memory(err);
    if (status == PTXGEN_OK && s->asymmetric)
        status = linear_upload(linear, sums, rows * sizeof *sums, &args->w_sum, err);
    free(all);
    free(up);
    free(sums);
    return status;
}

static size_t blocks_of(uint32_t size)
{
    return ((size_t)size + PTXGEN_W8A8_GROUP - 1) / PTXGEN_W8A8_GROUP;
}

/* Of blocks those of up follow those of gate; of rows they are in the order of the rows. */
static ptxgen_status upload_scales(const ptxgen_w8a8_spec *s, const struct linear_file *f,
                                   ptxgen_linear *linear, ptxgen_error *err)
{
    uint64_t *address = &linear->args.w8a8.w_scale;
    const size_t count = s->group ? blocks_of(s->n) * blocks_of(s->k) : s->n;
    float *scales, *up = NULL;
    ptxgen_status status =
        linear_read_floats(f->layer->parts[PTXGEN_LAYER_SCALE], count, &scales, err);
    void *all = scales;
    if (status == PTXGEN_OK && f->up)
        status = linear_read_floats(f->up->parts[PTXGEN_LAYER_SCALE], count, &up, err);
    if (status == PTXGEN_OK && f->up && s->group) {
        all = realloc(scales, 2 * count * sizeof *scales + 1);
        if (all)
            memcpy((float *)all + count, up, count * sizeof *up);
        status = all ? PTXGEN_OK : linear_no_memory(err);
        all = all ? all : scales;
    } else if (status == PTXGEN_OK && f->up) {
        status = pair_rows(s->n, sizeof *scales, &all, up, err);
    }
    if (status == PTXGEN_OK)
        status = linear_upload(linear, all, count * (f->up ? 2 : 1) * sizeof *scales, address, err);
    free(all);
    free(up);
    return status;
}

/* The scale and the zero point of all tokens; gate and up, which share x, have the same. */
static ptxgen_status upload_input(const ptxgen_w8a8_spec *s, const struct linear_file *f,
                                  ptxgen_linear *linear, ptxgen_error *err)
{
    ptxgen_w8a8_args *args = &linear->args.w8a8;
    const ptxgen_tensor *const *parts = f->layer->parts;
    float *scale, *up = NULL;
    ptxgen_status status = linear_read_floats(parts[PTXGEN_LAYER_INPUT_SCALE], 1, &scale, err);
    if (status == PTXGEN_OK && f->up)
        status = linear_read_floats(f->up->parts[PTXGEN_LAYER_INPUT_SCALE], 1, &up, err);
    const ptxgen_tensor *zero = s->asymmetric ? parts[PTXGEN_LAYER_INPUT_ZERO] : NULL;
    const ptxgen_tensor *other = zero && f->up ? f->up->parts[PTXGEN_LAYER_INPUT_ZERO] : zero;
    const int32_t point = zero ? (int32_t)linear_read_number(zero) : 0;
    if (status == PTXGEN_OK && f->up &&
        (*up != *scale || (zero && (int32_t)linear_read_number(other) != point)))
        status = ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                             "a layer: gate quantises x by the scale %.9g and up by %.9g, or by "
                             "another zero point",
                             (double)*scale, (double)*up);
    if (status == PTXGEN_OK)
        status = linear_upload(linear, scale, sizeof *scale, &args->x_scale, err);
    if (status == PTXGEN_OK && zero)
        status = linear_upload(linear, &point, sizeof point, &args->x_zero, err);
    free(scale);
    free(up);
    return status;
}

/* ---- the whole ---- */

ptxgen_status linear_fill_w8(const struct linear_making *m, const struct linear_file *f,
                             ptxgen_linear *linear, ptxgen_error *err)
{
    const ptxgen_linear_options *o = m->options;
    ptxgen_status status = check_w8(f->layer, err);
    if (status == PTXGEN_OK && f->up)
        status = check_w8(f->up, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_w8a8_spec s = w8_spec(f->layer, o);
    if (f->up) {
        const ptxgen_w8a8_spec up = w8_spec(f->up, o);
        status = check_pair(&s, &up, err);
        s.epilogue = PTXGEN_EPILOGUE_SWIGLU;
    }
    linear->k = s.k;
    linear->n = s.n;
    if (status == PTXGEN_OK)
        status = linear_dispatch(linear, m, &linear_w8a8, ptxgen_w8a8_family(), &s, err);
    if (status == PTXGEN_OK)
        status = upload_codes(&s, f, linear, err);
    if (status == PTXGEN_OK)
        status = upload_scales(&s, f, linear, err);
    if (status == PTXGEN_OK && s.scales == PTXGEN_W8A8_TENSOR)
        status = upload_input(&s, f, linear, err);
    return status == PTXGEN_OK
               ? linear_upload_bias(linear, o->bias, PTXGEN_F32, &linear->args.w8a8.bias, err)
               : status;
}
