/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that convert writes: of every format, from every format, with and without zero points,
 * groups and act-order, they have the tensors that the format's loaders want, no others, and come
 * back to the same bits.
 */
#include "support.h"

#include "tests/dispatch/folder.h"

#include "src/cli/families/marlin_convert.h"
#include "src/cli/safetensors_writer.h"

enum { K = 64, N = 64, WANTED = 6, OTHER_BYTES = 3 };

struct mode {
    bool zeros, act_order;
    ptrdiff_t group_size;
    ptxgen_element scale_type;
};

/* A tensor's name behind the layer's and its shape; a vector's second dimension is 0. */
struct wanted_tensor {
    const char *suffix;
    ptxgen_dtype dtype;
    uint64_t shape[2];
};

/*
 * What loaders want: AutoGPTQ's qzeros and g_idx always, AutoAWQ's qzeros always,
 * compressed-tensors' weight_zero_point and weight_g_idx where there are any. Ends with a NULL.
 */
static void list_wanted(int format, const struct mode *m, struct wanted_tensor list[WANTED])
{
    const uint64_t g = m->group_size == PTXGEN_W4_PER_CHANNEL ? 1 : K / (uint64_t)m->group_size;
    const ptxgen_dtype type = m->scale_type == PTXGEN_BF16 ? PTXGEN_DTYPE_BF16 : PTXGEN_DTYPE_F16;
    const struct wanted_tensor gptq[] = {{"qweight", PTXGEN_DTYPE_I32, {K / 8, N}},
                                         {"scales", type, {g, N}},
                                         {"qzeros", PTXGEN_DTYPE_I32, {g, N / 8}},
                                         {"g_idx", PTXGEN_DTYPE_I32, {K, 0}}};
    const struct wanted_tensor awq[] = {{"qweight", PTXGEN_DTYPE_I32, {K, N / 8}},
                                        {"scales", type, {g, N}},
                                        {"qzeros", PTXGEN_DTYPE_I32, {g, N / 8}}};
    const struct wanted_tensor pack_quantized[] = {
        {"weight_packed", PTXGEN_DTYPE_I32, {N, K / 8}},
        {"weight_scale", type, {N, g}},
        {m->zeros ? "weight_zero_point" : NULL, PTXGEN_DTYPE_I32, {N / 8, g}},
        {m->act_order ? "weight_g_idx" : NULL, PTXGEN_DTYPE_I32, {K, 0}},
        {"weight_shape", PTXGEN_DTYPE_I64, {2, 0}}};
    const struct wanted_tensor marlin[] = {
        {"B", PTXGEN_DTYPE_I32, {K / 16, 2 * N}},
        {"s", type, {g, N}},
        {m->zeros ? "zeros" : NULL, PTXGEN_DTYPE_I32, {g, N / 8}}};
    const struct wanted_tensor packed[] = {
        {"marlin_codes", PTXGEN_DTYPE_U8, {K * N / 2, 0}},
        {"marlin_scales", type, {g * N, 0}},
        {m->zeros ? "marlin_zeros" : NULL, PTXGEN_DTYPE_U8, {g * N / 2, 0}},
        {m->act_order ? "marlin_order" : NULL, PTXGEN_DTYPE_I32, {K, 0}},
        {"marlin_shape", PTXGEN_DTYPE_I64, {3, 0}}};
    static const size_t counts[] = {4, 4, 3, 5, 3, 5};
    const struct wanted_tensor *const tables[] = {gptq, gptq, awq, pack_quantized, marlin, packed};
    size_t count = 0;
    memset(list, 0, WANTED * sizeof *list);
    for (size_t i = 0; i < counts[format]; i++)
        if (tables[format][i].suffix)
            list[count++] = tables[format][i];
}

static bool holds(int format, const struct mode *m)
{
    return !m->act_order || (format != PTXGEN_W4_AWQ && format != PTXGEN_W4_MARLIN);
}

/* ---- files ---- */

/* The forms of conversions: those of ptxgen_w4_format, then packed. */
enum { LAYER_PACKED = PTXGEN_W4_MARLIN + 1, LAYER_TENSORS = PTXGEN_LAYER_SHAPE + 1 };

static const char *suffix_of(int form, int part)
{
    return layer_suffix((ptxgen_layer_form)(PTXGEN_LAYER_GPTQ + form), (ptxgen_layer_part)part);
}

static const ptxgen_w4_tensor *tensor_of(const ptxgen_w4_checkpoint *c, const char *suffix)
{
    const ptxgen_w4_tensor *const tensors[LAYER_TENSORS] = {&c->weights, &c->scales, &c->zeros,
                                                            &c->g_idx, &c->shape};
    for (int i = 0; i < LAYER_TENSORS; i++)
        if (suffix_of((int)c->format, i) && !strcmp(suffix, suffix_of((int)c->format, i)))
            return tensors[i];
    fail_msg("no tensor of the format is called %s", suffix);
    return NULL;
}

/* A file of the layer "up", and of a tensor that belongs to none. */
static void write_layer(const char *path, const ptxgen_w4_checkpoint *c, const struct mode *m)
{
    struct wanted_tensor list[WANTED];
    struct safetensors_writer *writer;
    ptxgen_error err;
    char name[64];
    ptxgen_tensor other = {.name = "other",
                           .dtype = PTXGEN_DTYPE_U8,
                           .ndim = 1,
                           .shape = {OTHER_BYTES},
                           .bytes = OTHER_BYTES};
    list_wanted(c->format, m, list);
    assert_ok(safetensors_writer_open(path, true, &writer, &err), &err);
    for (int i = 0; list[i].suffix; i++) {
        ptxgen_tensor t = {.name = name,
                           .dtype = list[i].dtype,
                           .ndim = list[i].shape[1] ? 2 : 1,
                           .shape = {list[i].shape[0], list[i].shape[1]}};
        t.bytes = ptxgen_w4_tensor_bytes(tensor_of(c, list[i].suffix));
        snprintf(name, sizeof name, "up.%s", list[i].suffix);
        assert_ok(safetensors_writer_declare(writer, &t, &err), &err);
    }
    assert_ok(safetensors_writer_declare(writer, &other, &err), &err);
    for (int i = 0; list[i].suffix; i++) {
        const ptxgen_w4_tensor *t = tensor_of(c, list[i].suffix);
        assert_ok(safetensors_writer_append(writer, t->data, ptxgen_w4_tensor_bytes(t), &err),
                  &err);
    }
    assert_ok(safetensors_writer_append(writer, "abc", OTHER_BYTES, &err), &err);
    assert_ok(safetensors_writer_finish(writer, &err), &err);
}

/* Of the layer's tensors, those that are wanted and no more, in their order. */
static void assert_has(const char *path, int format, const struct mode *m)
{
    struct wanted_tensor list[WANTED];
    ptxgen_files *store;
    ptxgen_error err;
    size_t count = 0;
    list_wanted(format, m, list);
    assert_ok(ptxgen_files_open_as(PTXGEN_FILES_SAFETENSORS, path, &store, &err), &err);
    const ptxgen_tensor_list *tensors = ptxgen_files_tensors(store);
    for (; list[count].suffix; count++) {
        char name[64];
        snprintf(name, sizeof name, "up.%s", list[count].suffix);
        const ptxgen_tensor *t = ptxgen_tensor_list_find(tensors, name);
        if (!t)
            fail_msg("%s as %s has no %s", m->zeros ? "asymmetric" : "symmetric",
                     marlin_layers.forms[format], name);
        assert_string_equal(tensors->items[count].name, name);
        assert_int_equal(t->dtype, list[count].dtype);
        assert_int_equal(t->ndim, list[count].shape[1] ? 2 : 1);
        assert_int_equal(t->shape[0], list[count].shape[0]);
        if (t->ndim == 2)
            assert_int_equal(t->shape[1], list[count].shape[1]);
    }
    assert_int_equal(tensors->count, count + 1);
    const ptxgen_tensor *other = ptxgen_tensor_list_find(tensors, "other");
    assert_non_null(other);
    assert_memory_equal(other->data, "abc", OTHER_BYTES);
    ptxgen_files_close(store);
}

static void assert_same_tensors(const char *x, const char *y)
{
    ptxgen_files *stores[2];
    ptxgen_error err;
    assert_ok(ptxgen_files_open(x, &stores[0], &err), &err);
    assert_ok(ptxgen_files_open(y, &stores[1], &err), &err);
    const ptxgen_tensor_list *a = ptxgen_files_tensors(stores[0]);
    const ptxgen_tensor_list *b = ptxgen_files_tensors(stores[1]);
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_string_equal(a->items[i].name, b->items[i].name);
        assert_int_equal(a->items[i].bytes, b->items[i].bytes);
        if (memcmp(a->items[i].data, b->items[i].data, a->items[i].bytes) != 0)
            fail_msg("%s has not come back to the same bits", a->items[i].name);
    }
    ptxgen_files_close(stores[0]);
    ptxgen_files_close(stores[1]);
}

static ptxgen_status convert_as(const char *from, int from_format, const char *to, int format,
                                ptxgen_error *err)
{
    const struct marlin_convert_options options = {
        .choice.format = from_format == LAYER_PACKED ? NULL : marlin_layers.forms[from_format],
        .threads = 1};
    const struct convert_request request = {
        .input = from, .output = to, .to = format, .force = true, .options = &options};
    struct convert_outcome outcome;
    ptxgen_status status = convert(&marlin_layers, &request, &outcome, err);
    if (status == PTXGEN_OK) {
        assert_int_equal(outcome.converted, 1);
        assert_int_equal(outcome.copied, 1);
    }
    return status;
}

/* ---- the table ---- */

/* From one format to each of the others and back. */
static void check_format(const char *folder, ptxgen_w4_format from, const struct mode *m)
{
    char first[FOLDER_PATH + 8], there[FOLDER_PATH + 8], back[FOLDER_PATH + 8];
    struct random r = {7};
    ptxgen_w4_matrix matrix =
        matrix_random(&r, K, N, m->group_size, m->scale_type, m->zeros, m->act_order);
    ptxgen_w4_checkpoint c = checkpoint_of(&matrix, from);
    ptxgen_error err;
    snprintf(first, sizeof first, "%s/first", folder);
    snprintf(there, sizeof there, "%s/there", folder);
    snprintf(back, sizeof back, "%s/back", folder);
    write_layer(first, &c, m);
    for (int to = 0; to <= LAYER_PACKED; to++) {
        ptxgen_status status = convert_as(first, (int)from, there, to, &err);
        if (!holds(to, m)) {
            assert_int_equal(status, PTXGEN_ERROR_UNSUPPORTED);
            continue;
        }
        assert_ok(status, &err);
        assert_has(there, to, m);
        assert_ok(convert_as(there, to, back, (int)from, &err), &err);
        assert_has(back, (int)from, m);
        assert_same_tensors(back, first);
    }
    checkpoint_free(&c);
    matrix_free(&matrix);
}

static void converted_files_have_what_loaders_want_and_come_back(void **state)
{
    char folder[FOLDER_PATH];
    (void)state;
    folder_make(folder);
    for (unsigned i = 0; i < 8; i++) {
        const struct mode m = {.zeros = i & 1,
                               .act_order = i >> 1 & 1 && i < 4,
                               .group_size = i < 4 ? 16 : PTXGEN_W4_PER_CHANNEL,
                               .scale_type = i >> 1 & 1 ? PTXGEN_BF16 : PTXGEN_F16};
        for (ptxgen_w4_format f = PTXGEN_W4_GPTQ_V1; f <= PTXGEN_W4_MARLIN; f++)
            if (holds((int)f, &m))
                check_format(folder, f, &m);
    }
    folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(converted_files_have_what_loaders_want_and_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
