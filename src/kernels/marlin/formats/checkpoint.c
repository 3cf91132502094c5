/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint.h"

#include <limits.h>

/* Below this limit the product of two sizes and an element's size fits in a 64-bit size_t. */
static const size_t max_dimension = INT32_MAX;
_Static_assert(sizeof(size_t) >= 8, "sizes of weights need 64 bits");

static const struct dtype {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [PTXGEN_W4_F32] = {"float32", 4},   [PTXGEN_W4_F16] = {"float16", 2},
    [PTXGEN_W4_BF16] = {"bfloat16", 2}, [PTXGEN_W4_I32] = {"int32", 4},
    [PTXGEN_W4_I64] = {"int64", 8},     [PTXGEN_W4_I8] = {"int8", 1},
};

static bool is_dtype(ptxgen_w4_dtype dtype)
{
    return (unsigned)dtype < sizeof dtypes / sizeof *dtypes;
}

static const char *dtype_name(ptxgen_w4_dtype dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].name : "unknown";
}

const char *ptxgen_w4_format_name(ptxgen_w4_format format)
{
    const struct w4_format *f = w4_format_of(format);
    return f ? f->name : NULL;
}

ptxgen_status ptxgen_w4_detect_format(const char *metadata, const char *choice,
                                      ptxgen_w4_format *format, ptxgen_error *err)
{
    const char *name = choice ? choice : metadata ? metadata : "gptq";
    if (!format)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "format is NULL");
    for (int f = 0; ptxgen_w4_format_name((ptxgen_w4_format)f); f++)
        if (strcmp(name, ptxgen_w4_format_name((ptxgen_w4_format)f)) == 0) {
            *format = (ptxgen_w4_format)f;
            return PTXGEN_OK;
        }
    return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                       "the checkpoint format \"%s\" is none of gptq, gptq_v2, awq, "
                       "pack-quantized and marlin",
                       name);
}

size_t ptxgen_w4_tensor_bytes(const ptxgen_w4_tensor *tensor)
{
    size_t bytes;
    if (!tensor || !is_dtype(tensor->dtype) ||
        __builtin_mul_overflow(tensor->shape[0], tensor->shape[1], &bytes) ||
        __builtin_mul_overflow(bytes, dtypes[tensor->dtype].bytes, &bytes))
        return 0;
    return bytes;
}

static ptxgen_status check_size(const char *name, size_t size, size_t multiple, const char *format,
                                ptxgen_error *err)
{
    if (size == 0 || size > max_dimension)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s = %zu is not between 1 and %zu",
                           name, size, max_dimension);
    if (size % multiple != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s = %zu is not a multiple of %zu, as %s needs", name, size, multiple,
                           format);
    return PTXGEN_OK;
}

static ptxgen_status check_sizes(const struct w4_format *f, size_t k, size_t n, ptxgen_error *err)
{
    ptxgen_status status = check_size("K", k, f->k_multiple, f->name, err);
    return status == PTXGEN_OK ? check_size("N", n, f->n_multiple, f->name, err) : status;
}

/* Checks a tensor's dtype, and its shape for such weights. */
static ptxgen_status check_tensor(const char *name, const ptxgen_w4_tensor *tensor,
                                  ptxgen_w4_dtype dtype, const size_t shape[2],
                                  const struct w4_dims *d, ptxgen_error *err)
{
    if (tensor->dtype != dtype)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s is of dtype %s, not %s", name,
                           dtype_name(tensor->dtype), dtype_name(dtype));
    if (tensor->shape[0] != shape[0] || tensor->shape[1] != shape[1])
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "%s is [%zu, %zu], but K = %zu, N = %zu and %zu groups make it "
                           "[%zu, %zu]",
                           name, tensor->shape[0], tensor->shape[1], d->k, d->n, d->groups,
                           shape[0], shape[1]);
    return PTXGEN_OK;
}

/* Zero points that are not packed: int8 [N, G] of z − 8. */
static bool has_unpacked_zeros(const ptxgen_w4_checkpoint *c)
{
    return c->format == PTXGEN_W4_PACK_QUANTIZED && c->zeros.dtype == PTXGEN_W4_I8;
}

static int unpacked_zero(const ptxgen_w4_checkpoint *c, size_t index)
{
    return ((const int8_t *)c->zeros.data)[index];
}

static ptxgen_status check_unpacked_zeros(const char *name, const ptxgen_w4_checkpoint *c,
                                          const struct w4_dims *d, ptxgen_error *err)
{
    const size_t shape[2] = {d->n, d->groups};
    ptxgen_status status = check_tensor(name, &c->zeros, PTXGEN_W4_I8, shape, d, err);
    for (size_t i = 0; status == PTXGEN_OK && i < d->n * d->groups; i++)
        if (unpacked_zero(c, i) < -8 || unpacked_zero(c, i) > 7)
            status =
                ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s[%zu, %zu] is %d, not between -8 and 7",
                            name, i / d->groups, i % d->groups, unpacked_zero(c, i));
    return status;
}

static ptxgen_status check_scales(const char *name, const ptxgen_w4_tensor *scales,
                                  ptxgen_error *err)
{
    if (!scales->data)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is absent", name);
    if ((unsigned)scales->dtype > PTXGEN_W4_BF16)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s is of dtype %s, not f16, bf16 or f32",
                           name, dtype_name(scales->dtype));
    if (scales->shape[0] == 0 || scales->shape[1] == 0)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s is [%zu, %zu], which is empty", name,
                           scales->shape[0], scales->shape[1]);
    return PTXGEN_OK;
}

static uint64_t load_integer(const ptxgen_w4_tensor *tensor, size_t index)
{
    if (tensor->dtype == PTXGEN_W4_I32)
        return (uint64_t)(int32_t)w4_load_word(tensor->data, index);
    uint64_t value;
    memcpy(&value, (const unsigned char *)tensor->data + index * sizeof value, sizeof value);
    return value;
}

/* Reads K from the weights, or from weight_shape where the weights' shape rounds K up. */
static ptxgen_status read_k(const struct w4_format *f, const ptxgen_w4_checkpoint *c, size_t n,
                            size_t *k, ptxgen_error *err)
{
    size_t units = c->weights.shape[f->by_column];
    if (__builtin_mul_overflow(units, f->k_per_unit, k))
        *k = SIZE_MAX;
    if (!c->shape.data)
        return PTXGEN_OK;
    bool vector = (c->shape.shape[0] == 2 && c->shape.shape[1] == 1) ||
                  (c->shape.shape[0] == 1 && c->shape.shape[1] == 2);
    if (!vector || (c->shape.dtype != PTXGEN_W4_I32 && c->shape.dtype != PTXGEN_W4_I64))
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "weight_shape is not a vector of 2 int32 or int64");
    uint64_t rows = load_integer(&c->shape, 0), columns = load_integer(&c->shape, 1);
    if (rows != n || columns > *k || *k - columns >= f->k_per_unit)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "weight_shape is [%lld, %lld], but %s is [%zu, %zu] and has %zu rows",
                           (long long)rows, (long long)columns, f->tensors[W4_WEIGHTS],
                           c->weights.shape[0], c->weights.shape[1], n);
    *k = (size_t)columns;
    return PTXGEN_OK;
}

static ptxgen_status check_group_size(ptrdiff_t stated, const struct w4_dims *d, const char *scales,
                                      ptxgen_error *err)
{
    if (d->k % d->groups != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s has %zu groups, which do not divide K = %zu", scales, d->groups,
                           d->k);
    size_t size = d->k / d->groups;
    if (stated == 0 || (stated == PTXGEN_W4_PER_CHANNEL && d->groups == 1) ||
        (stated > 0 && (size_t)stated == size))
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                       "the group size is given as %td, but %s has %zu groups for K = %zu, so it "
                       "is %zu",
                       stated, scales, d->groups, d->k, size);
}

static void list_tensors(const ptxgen_w4_checkpoint *c, const ptxgen_w4_tensor *to[W4_TENSORS])
{
    const ptxgen_w4_tensor *const all[] = {&c->weights, &c->scales, &c->zeros, &c->g_idx,
                                           &c->shape};
    memcpy(to, all, sizeof all);
}

/* Refuses tensors that the format does not have. */
static ptxgen_status check_kinds(const struct w4_format *f, const ptxgen_w4_checkpoint *c,
                                 ptxgen_error *err)
{
    if (c->g_idx.data && !f->tensors[W4_G_IDX])
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s has no g_idx", f->name);
    if (c->shape.data && !f->tensors[W4_SHAPE])
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s has no weight_shape", f->name);
    return PTXGEN_OK;
}

/* Checks the shapes of the tensors that are present, and fills the sizes of `info`. */
static ptxgen_status check_shapes(const struct w4_format *f, const ptxgen_w4_checkpoint *c,
                                  ptxgen_w4_info *info, ptxgen_error *err)
{
    ptxgen_status status;
    const char *scales = f->tensors[W4_SCALES];
    if (!c->weights.data)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is absent",
                           f->tensors[W4_WEIGHTS]);
    if ((status = check_kinds(f, c, err)) != PTXGEN_OK ||
        (status = check_scales(scales, &c->scales, err)) != PTXGEN_OK)
        return status;
    struct w4_dims d = {.groups = c->scales.shape[f->by_column],
                        .n = c->scales.shape[!f->by_column]};
    if ((status = read_k(f, c, d.n, &d.k, err)) != PTXGEN_OK ||
        (status = check_sizes(f, d.k, d.n, err)) != PTXGEN_OK ||
        (status = check_group_size(c->group_size, &d, scales, err)) != PTXGEN_OK)
        return status;

    const ptxgen_w4_tensor *tensors[W4_TENSORS];
    size_t shapes[W4_TENSORS][2];
    list_tensors(c, tensors);
    w4_shapes(f, &d, shapes);
    for (int i = W4_WEIGHTS; status == PTXGEN_OK && i <= W4_G_IDX; i++)
        if (i == W4_ZEROS && tensors[i]->data && has_unpacked_zeros(c))
            status = check_unpacked_zeros(f->tensors[i], c, &d, err);
        else if (i != W4_SCALES && tensors[i]->data)
            status = check_tensor(f->tensors[i], tensors[i], PTXGEN_W4_I32, shapes[i], &d, err);
    *info = (ptxgen_w4_info){.k = d.k,
                             .n = d.n,
                             .groups = d.groups,
                             .group_size = (ptrdiff_t)(d.k / d.groups),
                             .scale_type = w4_scale_type(&c->scales)};
    return status;
}

/* Checks group numbers, which may lie at any address, and says whether they are in plain order. */
static ptxgen_status check_g_idx(const char *name, const void *g_idx, ptxgen_w4_info *info,
                                 ptxgen_error *err)
{
    for (size_t k = 0; g_idx && k < info->k; k++) {
        int32_t group = (int32_t)w4_load_word(g_idx, k);
        if (group < 0 || (size_t)group >= info->groups)
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "%s[%zu] is %d, but there are groups 0 to %zu", name, k, (int)group,
                               info->groups - 1);
        info->act_order = info->act_order || (size_t)group != w4_plain_group(info, k);
    }
    return PTXGEN_OK;
}

bool w4_groups_are_unset(ptxgen_w4_format format, const void *g_idx, size_t k)
{
    bool unset = format == PTXGEN_W4_PACK_QUANTIZED && g_idx;
    for (size_t i = 0; unset && i < k; i++)
        unset = w4_load_word(g_idx, i) == UINT32_MAX;
    return unset;
}

unsigned w4_zero(const ptxgen_w4_checkpoint *c, const struct w4_dims *dims, size_t group, size_t n)
{
    const struct w4_format *f = w4_format_of(c->format);
    if (!c->zeros.data)
        return PTXGEN_W4_SYMMETRIC_ZERO;
    if (has_unpacked_zeros(c))
        return (unsigned)(unpacked_zero(c, n * dims->groups + group) + PTXGEN_W4_SYMMETRIC_ZERO);
    return (w4_load_nibble(c->zeros.data, w4_zero_place(f, dims, group, n)) - f->stored_zero_bias) &
           15;
}

/* Whether every stored nibble, including padding, has the value for z = 8. */
static bool all_symmetric_words(const ptxgen_w4_checkpoint *c)
{
    unsigned stored = (PTXGEN_W4_SYMMETRIC_ZERO + w4_format_of(c->format)->stored_zero_bias) & 15;
    uint32_t different = 0, word = stored * 0x11111111u;
    for (size_t i = 0; i < c->zeros.shape[0] * c->zeros.shape[1]; i++)
        different |= w4_load_word(c->zeros.data, i) ^ word;
    return different == 0;
}

static bool is_symmetric(const ptxgen_w4_checkpoint *c, const struct w4_dims *dims)
{
    if (!c->zeros.data || (!has_unpacked_zeros(c) && all_symmetric_words(c)))
        return true;
    for (size_t g = 0; g < dims->groups; g++)
        for (size_t n = 0; n < dims->n; n++)
            if (w4_zero(c, dims, g, n) != PTXGEN_W4_SYMMETRIC_ZERO)
                return false;
    return true;
}

static ptxgen_status require_format(ptxgen_w4_format format, const struct w4_format **f,
                                    ptxgen_error *err)
{
    *f = w4_format_of(format);
    return *f ? PTXGEN_OK
              : ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                            "%d is not the number of a 4-bit format", (int)format);
}

ptxgen_status ptxgen_w4_describe(const ptxgen_w4_checkpoint *c, ptxgen_w4_info *info,
                                 ptxgen_error *err)
{
    const struct w4_format *f;
    ptxgen_status status;
    if (!c || !info)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is NULL",
                           c ? "info" : "checkpoint");
    if ((status = require_format(c->format, &f, err)) != PTXGEN_OK ||
        (status = check_shapes(f, c, info, err)) != PTXGEN_OK)
        return status;
    bool ordered = !w4_groups_are_unset(c->format, c->g_idx.data, info->k);
    if (ordered &&
        (status = check_g_idx(f->tensors[W4_G_IDX], c->g_idx.data, info, err)) != PTXGEN_OK)
        return status;
    struct w4_dims dims = w4_dims_of(info);
    info->symmetric = is_symmetric(c, &dims);
    return PTXGEN_OK;
}

static ptxgen_status check_nibbles(const char *name, const uint8_t *values, size_t rows,
                                   size_t columns, ptxgen_error *err)
{
    for (size_t i = 0; i < rows * columns; i++)
        if (values[i] > 15)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "%s[%zu, %zu] is %u, not 0 to 15", name, i / columns, i % columns,
                               values[i]);
    return PTXGEN_OK;
}

/* Fills the sizes of `info` without reading an array. */
static ptxgen_status measure_matrix(const ptxgen_w4_matrix *m, ptxgen_w4_info *info,
                                    ptxgen_error *err)
{
    ptxgen_status status;
    if ((status = check_size("K", m->k, 1, "a matrix", err)) != PTXGEN_OK ||
        (status = check_size("N", m->n, 1, "a matrix", err)) != PTXGEN_OK)
        return status;
    size_t size = m->group_size == PTXGEN_W4_PER_CHANNEL ? m->k : (size_t)m->group_size;
    if (size == 0 || m->k % size != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "the group size %td is neither -1 nor a divisor of K = %zu",
                           m->group_size, m->k);
    if ((unsigned)m->scale_type > PTXGEN_BF16)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%d is not a type of scales",
                           (int)m->scale_type);
    *info = (ptxgen_w4_info){.k = m->k,
                             .n = m->n,
                             .groups = m->k / size,
                             .group_size = (ptrdiff_t)size,
                             .scale_type = m->scale_type};
    return PTXGEN_OK;
}

ptxgen_status ptxgen_w4_describe_matrix(const ptxgen_w4_matrix *m, ptxgen_w4_info *info,
                                        ptxgen_error *err)
{
    ptxgen_status status;
    if (!m || !info || !m->codes || !m->scales)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is NULL",
                           !m      ? "matrix"
                           : !info ? "info"
                                   : (m->codes ? "scales" : "codes"));
    if ((status = measure_matrix(m, info, err)) != PTXGEN_OK ||
        (status = check_nibbles("codes", m->codes, m->k, m->n, err)) != PTXGEN_OK ||
        (m->zeros &&
         (status = check_nibbles("zeros", m->zeros, info->groups, m->n, err)) != PTXGEN_OK) ||
        (status = check_g_idx("g_idx", m->g_idx, info, err)) != PTXGEN_OK)
        return status;
    info->symmetric = true;
    for (size_t i = 0; m->zeros && i < info->groups * m->n; i++)
        info->symmetric = info->symmetric && m->zeros[i] == PTXGEN_W4_SYMMETRIC_ZERO;
    return PTXGEN_OK;
}

ptxgen_status ptxgen_w4_layout(const ptxgen_w4_info *info, ptxgen_w4_format format,
                               ptxgen_w4_checkpoint *c, ptxgen_error *err)
{
    const struct w4_format *f;
    ptxgen_status status;
    if (!info || !c)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is NULL",
                           info ? "checkpoint" : "info");
    struct w4_dims d = w4_dims_of(info);
    if ((status = require_format(format, &f, err)) != PTXGEN_OK ||
        (status = check_sizes(f, d.k, d.n, err)) != PTXGEN_OK)
        return status;
    if (d.groups == 0 || d.k % d.groups != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%zu groups do not divide K = %zu",
                           d.groups, d.k);
    /* the rows of a Marlin matrix are sorted; their order is a separate array */
    if (info->act_order && !f->tensors[W4_G_IDX] && format != PTXGEN_W4_MARLIN)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s has no g_idx, so it cannot hold a matrix with act-order", f->name);

    size_t shapes[W4_TENSORS][2];
    const bool needed[W4_TENSORS] = {
        [W4_WEIGHTS] = true,
        [W4_SCALES] = true,
        [W4_ZEROS] = f->always_zeros || !info->symmetric,
        [W4_G_IDX] = f->tensors[W4_G_IDX] && (f->always_g_idx || info->act_order),
        [W4_SHAPE] = f->tensors[W4_SHAPE],
    };
    *c = (ptxgen_w4_checkpoint){.format = format, .group_size = info->group_size};
    c->weights.dtype = c->zeros.dtype = c->g_idx.dtype = PTXGEN_W4_I32;
    c->scales.dtype = (ptxgen_w4_dtype)info->scale_type;
    c->shape.dtype = PTXGEN_W4_I64;
    ptxgen_w4_tensor *const tensors[] = {&c->weights, &c->scales, &c->zeros, &c->g_idx, &c->shape};
    w4_shapes(f, &d, shapes);
    for (int i = 0; i < W4_TENSORS; i++)
        if (needed[i])
            memcpy(tensors[i]->shape, shapes[i], sizeof shapes[i]);
    return PTXGEN_OK;
}

ptxgen_status w4_check_output(const ptxgen_w4_checkpoint *to, const ptxgen_w4_info *info,
                              ptxgen_error *err)
{
    ptxgen_w4_checkpoint needed;
    ptxgen_status status;
    if (!to)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "the output checkpoint is NULL");
    if ((status = ptxgen_w4_layout(info, to->format, &needed, err)) != PTXGEN_OK)
        return status;
    const struct w4_format *f = w4_format_of(to->format);
    const struct w4_dims d = w4_dims_of(info);
    const ptxgen_w4_tensor *need[W4_TENSORS], *given[W4_TENSORS];
    size_t shapes[W4_TENSORS][2];
    list_tensors(&needed, need);
    list_tensors(to, given);
    w4_shapes(f, &d, shapes);
    for (int i = 0; i < W4_TENSORS; i++) {
        if (need[i]->shape[0] && !given[i]->data)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "%s is needed, but its data is NULL", f->tensors[i]);
        bool same = given[i]->dtype == need[i]->dtype && given[i]->shape[0] == shapes[i][0] &&
                    given[i]->shape[1] == shapes[i][1];
        if (f->tensors[i] && given[i]->data && !same)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "%s of the output is %s [%zu, %zu], not %s [%zu, %zu]",
                               f->tensors[i], dtype_name(given[i]->dtype), given[i]->shape[0],
                               given[i]->shape[1], dtype_name(need[i]->dtype), shapes[i][0],
                               shapes[i][1]);
    }
    return check_kinds(f, to, err);
}

void w4_write_zeros(const ptxgen_w4_checkpoint *to, const struct w4_dims *dims,
                    const struct w4_zero_source *source)
{
    const struct w4_format *f = w4_format_of(to->format);
    if (!to->zeros.data)
        return;
    memset(to->zeros.data, 0, ptxgen_w4_tensor_bytes(&to->zeros));
    for (size_t g = 0; g < dims->groups; g++)
        for (size_t n = 0; n < dims->n; n++) {
            unsigned stored = (source->zero(source->from, dims, g, n) + f->stored_zero_bias) & 15;
            w4_add_nibble(to->zeros.data, w4_zero_place(f, dims, g, n), stored);
        }
}
