/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of files of every form compute what their files say. */
#include "bed.h"

#include "src/cli/families/marlin_convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- 4 bits ---- */

static double largest(const double *numbers, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs(numbers[i]));
    return most;
}

static double *run_file(const struct bed *bed, const char *path, const char *name,
                        const ptxgen_linear_options *options, const double *x, uint64_t m)
{
    ptxgen_files *files = open_file(path);
    ptxgen_layer layer = find_layer(files, name, NULL);
    ptxgen_linear *linear = make_linear(bed, &layer, NULL, options);
    ptxgen_files_close(files); /* the layer has its own copy */
    assert_string_equal(ptxgen_linear_family(linear), "marlin");
    double *y = run_linear(bed, linear, (ptxgen_element)options->type, x, false, m);
    ptxgen_linear_destroy(linear);
    return y;
}

static void four_bit_layers_of_all_forms_compute_alike(void **state)
{
    struct bed *bed = *state;
    const ptxgen_linear_options options = {.type = PTXGEN_F16, .max_m = 8};
    const struct marlin_convert_options own = {.type = PTXGEN_F16};
    const char *name = "gptq";
    ptxgen_files *files = open_file(MARLIN_FILE);
    size_t x_count, count;
    double *x = numbers_of(files, "A", &x_count), *expected = numbers_of(files, "C", &count);
    ptxgen_files_close(files);
    double *y = run_file(bed, MARLIN_FILE, "gptq", &options, x, 5);
    assert_near(y, expected, NULL, count, 2e-3 * largest(expected, count));
    double *of_marlin = run_file(bed, MARLIN_FILE, "marlin", &options, x, 5);
    assert_memory_equal(of_marlin, y, count * sizeof *y);
    free(of_marlin);
    for (int form = 0; marlin_layers.forms[form]; form++) {
        const struct convert_request request = {.input = MARLIN_FILE,
                                                .output = bed->path,
                                                .to = form,
                                                .layers = &name,
                                                .layer_count = 1,
                                                .force = true,
                                                .options = &own};
        struct convert_outcome outcome;
        ptxgen_error err = {0};
        if (convert(&marlin_layers, &request, &outcome, &err) != PTXGEN_OK)
            fail_msg("%s", err.message);
        double *again = run_file(bed, bed->path, "gptq", &options, x, 5);
        assert_memory_equal(again, y, count * sizeof *y);
        free(again);
    }
    free(x);
    free(y);
    free(expected);
}

static void a_gated_pair_of_a_file_is_one_layer(void **state)
{
    struct bed *bed = *state;
    const ptxgen_linear_options options = {.type = PTXGEN_F16, .max_m = 8};
    ptxgen_files *files = open_file(MARLIN_FILE);
    ptxgen_layer layer = find_layer(files, "gptq", NULL);
    size_t x_count, count;
    double *x = numbers_of(files, "A", &x_count), *v = numbers_of(files, "C", &count);
    for (size_t i = 0; i < count; i++)
        v[i] = v[i] / (1 + exp(-v[i])) * v[i];
    ptxgen_linear *linear = make_linear(bed, &layer, &layer, &options);
    ptxgen_files_close(files);
    double *y = run_linear(bed, linear, PTXGEN_F16, x, false, 5);
    assert_near(y, v, NULL, count, 4e-3 * largest(v, count));
    ptxgen_linear_destroy(linear);
    free(x);
    free(y);
    free(v);
}

/* ---- whole numbers, of which sums are exact ---- */

enum { M = 3, N = 136, K = 260, BLOCK = 128 };

struct whole {
    int w[N][K];
    float x[M][K], scale[N], blocks[2][3], bias[N];
    int8_t s8[N][K];
    uint8_t fp8[N][K];
};
static struct whole whole;

/* Whole numbers to 3, as codes of fp8; x has `most` in each group of 128, so its own scale is 1. */
static void fill_whole(const uint8_t codes[4], float most)
{
    for (int n = 0; n < N; n++) {
        whole.scale[n] = (float)(1 << n % 3);
        whole.bias[n] = (float)(3 * n - 5);
        for (int k = 0; k < K; k++) {
            int number = (k * 5 + n * 3) % 7 - 3;
            whole.w[n][k] = number;
            whole.s8[n][k] = (int8_t)number;
            if (codes)
                whole.fp8[n][k] = (uint8_t)(codes[abs(number)] | (number < 0 ? 0x80 : 0));
        }
    }
    for (int i = 0; i < 6; i++)
        whole.blocks[i / 3][i % 3] = (float)(1 << i);
    for (int m = 0; m < M; m++)
        for (int k = 0; k < K; k++)
            whole.x[m][k] = k % BLOCK == m ? most : (float)((k + 2 * m) % 5 - 2);
}

/* Scales of rows, or of blocks, or the first for all. */
enum scales { ROWS, ONE, BLOCKS };

static void assert_whole(const struct bed *bed, const struct description *d, enum scales scales,
                         bool has_bias)
{
    ptxgen_files *files = write_and_open((struct bed *)(uintptr_t)bed, d);
    const ptxgen_linear_options options = {.type = PTXGEN_F32, .max_m = M};
    ptxgen_layer layer = find_layer(files, "l", NULL);
    assert_int_equal(layer.kind, PTXGEN_LAYER_W8);
    assert_int_equal(layer.form, scales == BLOCKS ? PTXGEN_LAYER_BLOCKS : PTXGEN_LAYER_ROWS);
    ptxgen_linear *linear = make_linear(bed, &layer, NULL, &options);
    ptxgen_files_close(files);
    assert_string_equal(ptxgen_linear_family(linear), "w8a8");
    static double x[M * K], expected[M * N], magnitude[M * N];
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            double sum = has_bias ? whole.bias[n] : 0, size = 0;
            for (int k = 0; k < K; k++) {
                double s = scales == BLOCKS ? whole.blocks[n / BLOCK][k / BLOCK]
                                            : whole.scale[scales == ROWS ? n : 0];
                x[m * K + k] = whole.x[m][k];
                sum += x[m * K + k] * whole.w[n][k] * s;
                size += fabs(x[m * K + k] * whole.w[n][k] * s);
            }
            expected[m * N + n] = sum;
            magnitude[m * N + n] = size;
        }
    double *y = run_linear(bed, linear, PTXGEN_F32, x, false, M);
    assert_near(y, expected, magnitude, M * N, 1e-6);
    ptxgen_linear_destroy(linear);
    free(y);
}

static const uint8_t e4m3[4] = {0x00, 0x38, 0x40, 0x44}, e5m2[4] = {0x00, 0x3C, 0x40, 0x42};

static void layers_of_s8_are_quantised_by_their_tokens(void **state)
{
    struct description d = {.count = 0};
    fill_whole(NULL, 127);
    describe(&d, "l.weight", PTXGEN_DTYPE_I8, N, K, whole.s8);
    describe(&d, "l.weight_scale", PTXGEN_DTYPE_F32, N, 1, whole.scale);
    describe(&d, "l.bias", PTXGEN_DTYPE_F32, N, 0, whole.bias);
    assert_whole(*state, &d, ROWS, true);
}

static void layers_of_s8_take_the_scale_and_zero_point_of_the_file(void **state)
{
    static const int8_t zero = -100; /* without which 100 / 0.5 would be clamped */
    static const int64_t wide = -100;
    static const float scale = 0.5f;
    for (int i = 0; i < 3; i++) {
        struct description d = {.count = 0};
        fill_whole(NULL, i ? 100 : 30);
        describe(&d, "l.weight", PTXGEN_DTYPE_I8, N, K, whole.s8);
        describe(&d, "l.weight_scale", PTXGEN_DTYPE_F32, 1, 0, whole.scale);
        describe(&d, "l.input_scale", PTXGEN_DTYPE_F32, 1, 0, &scale);
        if (i == 1)
            describe(&d, "l.input_zero_point", PTXGEN_DTYPE_I8, 1, 0, &zero);
        if (i == 2)
            describe(&d, "l.input_zero_point", PTXGEN_DTYPE_I64, 1, 0, &wide);
        assert_whole(*state, &d, ONE, false);
    }
}

static void layers_of_fp8_have_scales_of_rows_and_of_blocks(void **state)
{
    static const struct {
        const char *scale;
        ptxgen_dtype type;
        const uint8_t *codes;
        enum scales scales;
    } rows[] = {{"l.weight_scale", PTXGEN_DTYPE_F8_E4M3, e4m3, ROWS},
                {"l.weight_scale", PTXGEN_DTYPE_F8_E5M2, e5m2, ONE},
                {"l.weight_scale_inv", PTXGEN_DTYPE_F8_E4M3, e4m3, BLOCKS},
                {"l.weight_scale", PTXGEN_DTYPE_F8_E4M3, e4m3, BLOCKS}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct description d = {.count = 0};
        fill_whole(rows[i].codes, 448);
        describe(&d, "l.weight", rows[i].type, N, K, whole.fp8);
        if (rows[i].scales == BLOCKS)
            describe(&d, rows[i].scale, PTXGEN_DTYPE_F32, 2, 3, whole.blocks);
        else
            describe(&d, rows[i].scale, PTXGEN_DTYPE_F32, rows[i].scales == ROWS ? N : 1, 1,
                     whole.scale);
        assert_whole(*state, &d, rows[i].scales, false);
    }
}

/* ---- gate and up in 8 bits ---- */

/* A second matrix and its scales, which are small enough for SiLU to bend. */
static struct {
    int w[N][K];
    int8_t s8[N][K];
    uint8_t fp8[N][K];
    float scale[N], blocks[2][3];
} other;

static void fill_pair(const uint8_t codes[4], float most)
{
    fill_whole(codes, most);
    for (int n = 0; n < N; n++) {
        whole.scale[n] *= 0x1p-9f;
        other.scale[n] = (float)(1 + n % 5) * 0x1p-10f;
        for (int k = 0; k < K; k++) {
            other.w[n][k] = whole.w[(n + 7) % N][k];
            other.s8[n][k] = whole.s8[(n + 7) % N][k];
            other.fp8[n][k] = whole.fp8[(n + 7) % N][k];
        }
    }
    for (int i = 0; i < 6; i++) {
        whole.blocks[i / 3][i % 3] = (float)(1 + i) * 0x1p-9f;
        other.blocks[i / 3][i % 3] = (float)(7 - i) * 0x1p-10f;
    }
}

static double sum_of(int m, int n, int w[N][K], const float *scale, float blocks[2][3])
{
    double sum = 0;
    for (int k = 0; k < K; k++)
        sum += (double)whole.x[m][k] * w[n][k] * (blocks ? blocks[n / BLOCK][k / BLOCK] : scale[n]);
    return sum;
}

static void assert_pair(struct bed *bed, const struct description *d, bool blocks)
{
    static double x[M * K], expected[M * N];
    const ptxgen_linear_options options = {.type = PTXGEN_F32, .max_m = M};
    ptxgen_files *files = write_and_open(bed, d);
    ptxgen_layer gate = find_layer(files, "l", NULL), up = find_layer(files, "u", NULL);
    ptxgen_linear *linear = make_linear(bed, &gate, &up, &options);
    ptxgen_files_close(files);
    for (int m = 0; m < M; m++) {
        for (int k = 0; k < K; k++)
            x[m * K + k] = whole.x[m][k];
        for (int n = 0; n < N; n++) {
            double v = sum_of(m, n, whole.w, whole.scale, blocks ? whole.blocks : NULL);
            expected[m * N + n] = v / (1 + exp(-v)) *
                                  sum_of(m, n, other.w, other.scale, blocks ? other.blocks : NULL);
        }
    }
    double *y = run_linear(bed, linear, PTXGEN_F32, x, false, M);
    assert_near(y, expected, NULL, M * N, 1e-5 * largest(expected, M * N));
    ptxgen_linear_destroy(linear);
    free(y);
}

static void gate_and_up_of_eight_bits_are_one_layer(void **state)
{
    static const float half = 0.5f;
    static const int8_t zero = -100;
    for (int i = 0; i < 2; i++) {
        struct description d = {.count = 0};
        fill_pair(NULL, i ? 100 : 127);
        describe(&d, "l.weight", PTXGEN_DTYPE_I8, N, K, whole.s8);
        describe(&d, "l.weight_scale", PTXGEN_DTYPE_F32, N, 1, whole.scale);
        describe(&d, "u.weight", PTXGEN_DTYPE_I8, N, K, other.s8);
        describe(&d, "u.weight_scale", PTXGEN_DTYPE_F32, N, 1, other.scale);
        if (i) {
            describe(&d, "l.input_scale", PTXGEN_DTYPE_F32, 1, 0, &half);
            describe(&d, "u.input_scale", PTXGEN_DTYPE_F32, 1, 0, &half);
            describe(&d, "l.input_zero_point", PTXGEN_DTYPE_I8, 1, 0, &zero);
            describe(&d, "u.input_zero_point", PTXGEN_DTYPE_I8, 1, 0, &zero);
        }
        assert_pair(*state, &d, false);
    }
    struct description d = {.count = 0};
    fill_pair(e4m3, 448);
    describe(&d, "l.weight", PTXGEN_DTYPE_F8_E4M3, N, K, whole.fp8);
    describe(&d, "l.weight_scale_inv", PTXGEN_DTYPE_F32, 2, 3, whole.blocks);
    describe(&d, "u.weight", PTXGEN_DTYPE_F8_E4M3, N, K, other.fp8);
    describe(&d, "u.weight_scale_inv", PTXGEN_DTYPE_F32, 2, 3, other.blocks);
    assert_pair(*state, &d, true);
}

/* ---- sums of a matrix of floats ---- */

static void assert_sums(const struct bed *bed, const ptxgen_linear *linear, ptxgen_element type,
                        bool codes, const double *w, const double *bias, double tolerance)
{
    enum { ROWS_OF_X = 4 };
    uint32_t k = ptxgen_linear_k(linear), n = ptxgen_linear_n(linear);
    double *x = malloc(ROWS_OF_X * k * sizeof *x);
    double *expected = malloc(ROWS_OF_X * n * sizeof *x), *magnitude = calloc(ROWS_OF_X * n, 8);
    for (size_t i = 0; i < ROWS_OF_X * k; i++)
        x[i] = (double)(i * 37 % 64) - 31;
    for (size_t m = 0; m < ROWS_OF_X; m++)
        for (size_t i = 0; i < n; i++) {
            expected[m * n + i] = bias ? bias[i] : 0;
            for (size_t j = 0; j < k; j++) {
                expected[m * n + i] += x[m * k + j] * w[i * k + j];
                magnitude[m * n + i] += fabs(x[m * k + j] * w[i * k + j]);
            }
        }
    double *y = run_linear(bed, linear, type, x, codes, ROWS_OF_X);
    assert_near(y, expected, magnitude, ROWS_OF_X * n, tolerance);
    free(x);
    free(y);
    free(expected);
    free(magnitude);
}

static void sparse_layers_are_found_compressed_or_by_choice_dense(void **state)
{
    struct bed *bed = *state;
    static const struct {
        const char *name, *dense;
        ptxgen_element type;
        double tolerance;
    } rows[] = {{"f16", "f16.dense", PTXGEN_F16, 2e-3}, {"bf16", "bf16.dense", PTXGEN_BF16, 8e-3}};
    static const ptxgen_layer_choice choices[] = {
        {.kind = PTXGEN_LAYER_ANY}, {.kind = PTXGEN_LAYER_SPARSE24, .form = PTXGEN_LAYER_DENSE}};
    ptxgen_files *files = open_file(SPARSE_FILE);
    for (int i = 0; i < 4; i++) {
        const ptxgen_linear_options options = {.type = (uint8_t)rows[i / 2].type, .max_m = 4};
        size_t count;
        double *w = numbers_of(files, rows[i / 2].dense, &count);
        ptxgen_layer layer = find_layer(files, rows[i / 2].name, &choices[i % 2]);
        assert_int_equal(layer.form, i % 2 ? PTXGEN_LAYER_DENSE : PTXGEN_LAYER_CUTLASS);
        ptxgen_linear *linear = make_linear(bed, &layer, NULL, &options);
        assert_string_equal(ptxgen_linear_family(linear), "sparse24");
        assert_sums(bed, linear, rows[i / 2].type, false, w, NULL, rows[i / 2].tolerance);
        ptxgen_linear_destroy(linear);
        free(w);
    }
    ptxgen_files_close(files);
}

static void sparse_layers_of_s8_take_codes(void **state)
{
    struct bed *bed = *state;
    static const float scales[64] = {0.25f}, input_scale = 2, bias[64] = {1, 2, 3};
    ptxgen_files *golden = open_file(SPARSE_FILE);
    ptxgen_layer found = find_layer(golden, "s8", NULL);
    const ptxgen_tensor *values = found.parts[PTXGEN_LAYER_WEIGHT],
                        *metadata = found.parts[PTXGEN_LAYER_METADATA];
    struct description d = {.count = 0};
    describe(&d, "l.weight.sparse", values->dtype, values->shape[0], values->shape[1],
             values->data);
    describe(&d, "l.weight.meta_cutlass", metadata->dtype, metadata->shape[0], metadata->shape[1],
             metadata->data);
    describe(&d, "l.weight_scale", PTXGEN_DTYPE_F32, 1, 0, scales);
    describe(&d, "l.input_scale", PTXGEN_DTYPE_F32, 1, 0, &input_scale);
    describe(&d, "l.bias", PTXGEN_DTYPE_F32, 64, 0, bias);
    ptxgen_files *files = write_and_open(bed, &d);
    const ptxgen_linear_options options = {.type = PTXGEN_F16, .max_m = 4};
    double biases[64];
    size_t count;
    double *w = numbers_of(golden, "s8.dense", &count);
    for (size_t i = 0; i < count; i++)
        w[i] *= 0.25 * 2;
    for (int i = 0; i < 64; i++)
        biases[i] = bias[i];
    static const char *const names[] = {"l", "l.weight"};
    for (int i = 0; i < 2; i++) {
        ptxgen_layer layer = find_layer(files, names[i], NULL);
        ptxgen_linear *linear = make_linear(bed, &layer, NULL, &options);
        assert_sums(bed, linear, PTXGEN_F16, true, w, biases, 2e-3);
        ptxgen_linear_destroy(linear);
    }
    ptxgen_files_close(files);
    ptxgen_files_close(golden);
    free(w);
}

/* ---- GGUF and floats ---- */

static void matrices_of_gguf_files_run_in_all_types(void **state)
{
    struct bed *bed = *state;
    static const char *const names[] = {"q4_0",   "q4_1",   "q5_0", "q5_1",        "q8_0",
                                        "q2_k",   "q3_k",   "q4_k", "q5_k.weight", "q6_k",
                                        "iq4_nl", "iq4_xs", "mxfp4"};
    const ptxgen_linear_options options = {.type = PTXGEN_F32, .max_m = 5};
    ptxgen_files *files = open_file(GGUF_FILE);
    size_t x_count;
    double *x = numbers_of(files, "input", &x_count);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char of_y[32];
        size_t count;
        strcpy(of_y, names[i]);
        strcpy(of_y + strcspn(of_y, "."), ".y");
        double *expected = numbers_of(files, of_y, &count);
        ptxgen_layer layer = find_layer(files, names[i], NULL);
        assert_int_equal(layer.kind, PTXGEN_LAYER_GGUF);
        ptxgen_linear *linear = make_linear(bed, &layer, NULL, &options);
        assert_string_equal(ptxgen_linear_family(linear), "gguf_linear");
        double *y = run_linear(bed, linear, PTXGEN_F32, x, false, 5);
        assert_near(y, expected, NULL, count, 1e-3 * largest(expected, count));
        ptxgen_linear_destroy(linear);
        free(y);
        free(expected);
    }
    free(x);
    ptxgen_files_close(files);
}

static void gate_and_up_may_be_of_two_gguf_types(void **state)
{
    struct bed *bed = *state;
    const ptxgen_linear_options options = {.type = PTXGEN_F32, .max_m = 5};
    ptxgen_files *files = open_file(GGUF_FILE);
    size_t x_count, count;
    double *x = numbers_of(files, "input", &x_count), *gate = numbers_of(files, "q4_k.y", &count);
    double *up = numbers_of(files, "q8_0.y", &count);
    for (size_t i = 0; i < count; i++)
        gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
    ptxgen_layer of_gate = find_layer(files, "q4_k", NULL), of_up = find_layer(files, "q8_0", NULL);
    ptxgen_linear *linear = make_linear(bed, &of_gate, &of_up, &options);
    ptxgen_files_close(files);
    double *y = run_linear(bed, linear, PTXGEN_F32, x, false, 5);
    assert_near(y, gate, NULL, count, 2e-3 * largest(gate, count));
    ptxgen_linear_destroy(linear);
    free(x);
    free(y);
    free(gate);
    free(up);
}

static void matrices_of_floats_are_rounded_to_the_type_of_x(void **state)
{
    struct bed *bed = *state;
    static const float bias[3] = {100, -100, 50}, own[3] = {-7, 0, 7};
    static const double given[3] = {100, -100, 50}, others[3] = {-7, 0, 7};
    ptxgen_files *golden = open_file(GGUF_FILE);
    size_t count;
    double *w = numbers_of(golden, "q4_0.deq", &count);
    const ptxgen_tensor *matrix;
    assert_int_equal(ptxgen_files_require(golden, "q4_0.deq", &matrix, NULL), PTXGEN_OK);
    struct description d = {.count = 0};
    describe(&d, "l.weight", PTXGEN_DTYPE_F32, matrix->shape[0], matrix->shape[1], matrix->data);
    describe(&d, "l.bias", PTXGEN_DTYPE_F32, 3, 0, bias);
    ptxgen_files *files = write_and_open(bed, &d);
    static const struct {
        ptxgen_element type;
        double tolerance;
    } rows[] = {{PTXGEN_F32, 2e-3}, {PTXGEN_F16, 3e-3}, {PTXGEN_BF16, 1.2e-2}};
    for (int i = 0; i < 9; i++) {
        ptxgen_linear_options options = {.type = (uint8_t)rows[i / 3].type, .max_m = 4};
        bool of_gguf = i % 3 == 0;
        options.bias = i % 3 == 2 ? own : NULL;
        ptxgen_layer layer = find_layer(of_gguf ? golden : files, of_gguf ? "q4_0.deq" : "l", NULL);
        assert_int_equal(layer.kind, PTXGEN_LAYER_FLOATS);
        ptxgen_linear *linear = make_linear(bed, &layer, NULL, &options);
        assert_string_equal(ptxgen_linear_family(linear), "dense");
        assert_sums(bed, linear, rows[i / 3].type, false, w,
                    of_gguf        ? NULL
                    : options.bias ? others
                                   : given,
                    rows[i / 3].tolerance);
        ptxgen_linear_destroy(linear);
    }
    ptxgen_files_close(files);
    ptxgen_files_close(golden);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_bit_layers_of_all_forms_compute_alike),
        cmocka_unit_test(a_gated_pair_of_a_file_is_one_layer),
        cmocka_unit_test(layers_of_s8_are_quantised_by_their_tokens),
        cmocka_unit_test(layers_of_s8_take_the_scale_and_zero_point_of_the_file),
        cmocka_unit_test(layers_of_fp8_have_scales_of_rows_and_of_blocks),
        cmocka_unit_test(gate_and_up_of_eight_bits_are_one_layer),
        cmocka_unit_test(sparse_layers_are_found_compressed_or_by_choice_dense),
        cmocka_unit_test(sparse_layers_of_s8_take_codes),
        cmocka_unit_test(matrices_of_gguf_files_run_in_all_types),
        cmocka_unit_test(gate_and_up_may_be_of_two_gguf_types),
        cmocka_unit_test(matrices_of_floats_are_rounded_to_the_type_of_x),
    };
    return cmocka_run_group_tests(tests, bed_setup, bed_teardown);
}
