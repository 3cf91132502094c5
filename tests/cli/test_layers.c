/* SPDX-License-Identifier: Apache-2.0 */
/* What run takes from a checkpoint, what it refuses by name, and the output that a file expects. */
#include "tests/status.h"

#include "command.h"
#include "src/cli/safetensors_writer.h"
#include "src/files/tensor_list.h"
#include "tests/dispatch/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K = 64, N = 8, ROWS = 3, MOST = 16 };

static char folder[FOLDER_PATH], path[FOLDER_PATH + 16];

/* The tensors of a file that a test describes. */
static struct description {
    ptxgen_tensor items[MOST];
    unsigned count;
} file;

static int setup(void **state)
{
    (void)state;
    folder_make(folder);
    snprintf(path, sizeof path, "%s/layers", folder);
    file.count = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static void add(const char *name, ptxgen_dtype dtype, uint64_t rows, uint64_t columns,
                const void *data)
{
    ptxgen_tensor *t = &file.items[file.count++];
    *t = (ptxgen_tensor){.name = name,
                         .dtype = dtype,
                         .ndim = columns ? 2 : 1,
                         .shape = {rows, columns},
                         .data = data};
    assert_true(file.count <= MOST);
    assert_int_equal(tensor_measure(t, NULL), PTXGEN_OK);
}

static void write_file(void)
{
    struct safetensors_writer *w;
    ptxgen_error err = {0};
    assert_ok(safetensors_writer_open(path, true, &w, &err), &err);
    for (unsigned i = 0; i < file.count; i++)
        assert_ok(safetensors_writer_declare(w, &file.items[i], &err), &err);
    for (unsigned i = 0; i < file.count; i++)
        assert_ok(safetensors_writer_append(w, file.items[i].data, file.items[i].bytes, &err),
                  &err);
    assert_ok(safetensors_writer_finish(w, &err), &err);
}

/* ---- a layer of s8, 2:4 sparse too, whose outputs are whole numbers of f32 ---- */

static int8_t weight[N][K], x8[ROWS][K];
static float x32[ROWS][K], scale[N], bias[N], y[ROWS][N];

/* Of w8a8 each row of x has 127 in it, so that its own scale is 1. */
static void fill_layer(void)
{
    for (int n = 0; n < N; n++) {
        scale[n] = (float)(1 << n % 3);
        bias[n] = (float)(3 * n - 5);
        for (int k = 0; k < K; k++)
            weight[n][k] = (int8_t)(k % 4 < 2 ? (k * 5 + n * 3) % 7 - 3 : 0);
    }
    for (int m = 0; m < ROWS; m++)
        for (int k = 0; k < K; k++) {
            x8[m][k] = (int8_t)(k == m ? 127 : (k + 2 * m) % 5 - 2);
            x32[m][k] = x8[m][k];
        }
    for (int m = 0; m < ROWS; m++)
        for (int n = 0; n < N; n++) {
            int sum = 0;
            for (int k = 0; k < K; k++)
                sum += x8[m][k] * weight[n][k];
            y[m][n] = (float)sum * scale[n] + bias[n];
        }
}

static void describe_layer(const void *x, ptxgen_dtype x_type)
{
    fill_layer();
    add("l.weight", PTXGEN_DTYPE_I8, N, K, weight);
    add("l.weight_scale", PTXGEN_DTYPE_F32, N, 1, scale);
    add("l.bias", PTXGEN_DTYPE_F32, N, 0, bias);
    add("x", x_type, ROWS, K, x);
    add("y", PTXGEN_DTYPE_F32, ROWS, N, y);
}

/* The same layer in e4m3 or e5m2, which have its numbers; rows of x have 448 in place of 127. */
static uint8_t e4m3_of(int number)
{
    static const uint8_t codes[] = {0x00, 0x38, 0x40, 0x44};
    return (uint8_t)(codes[number < 0 ? -number : number] | (number < 0 ? 0x80 : 0));
}
static uint8_t e5m2_of(int number)
{
    static const uint8_t codes[] = {0x00, 0x3C, 0x40, 0x42};
    return (uint8_t)(codes[number < 0 ? -number : number] | (number < 0 ? 0x80 : 0));
}

static uint8_t fp8[N][K];
static void describe_fp8_layer(ptxgen_dtype type, uint64_t scale_count)
{
    describe_layer(x32, PTXGEN_DTYPE_F32);
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++)
            fp8[n][k] = type == PTXGEN_DTYPE_F8_E5M2 ? e5m2_of(weight[n][k])
                                                     : e4m3_of(weight[n][k]);
    for (int m = 0; m < ROWS; m++) {
        x32[m][m] = 448;
        for (int n = 0; n < N; n++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += x32[m][k] * (float)weight[n][k];
            y[m][n] = sum * scale[scale_count > 1 ? n : 0] + bias[n];
        }
    }
    file.count = 0;
    add("l.weight", type, N, K, fp8);
    add("l.weight_scale", PTXGEN_DTYPE_F32, scale_count, scale_count > 1, scale);
    add("l.bias", PTXGEN_DTYPE_F32, N, 0, bias);
    add("x", PTXGEN_DTYPE_F32, ROWS, K, x32);
    add("y", PTXGEN_DTYPE_F32, ROWS, N, y);
}

#define W8A8 "run", "w8a8", "--device", "cpu:sm_80", "--safetensors", path, "--layer", "l"
#define E4M3 "run", "w8a8", "--device", "cpu:sm_90", "--safetensors", path, "--layer", "l"
#define SPARSE24 "run", "sparse24", "--device", "cpu:sm_80", "--safetensors", path, "--layer", "l"

#define succeeds_saying(part, ...)                                                                 \
    do {                                                                                           \
        struct outcome o_ = run(__VA_ARGS__);                                                      \
        assert_exit(&o_, 0);                                                                       \
        assert_contains(o_.out, part);                                                             \
        outcome_free(&o_);                                                                         \
    } while (0)

static void w8a8_and_sparse24_compare_with_the_output_of_the_file(void **state)
{
    (void)state;
    describe_layer(x32, PTXGEN_DTYPE_F32);
    write_file();
    succeeds_saying("the file's expected output: largest error 0,", W8A8, "--input", "x",
                    "--expect", "y", "--dtype", "f32");
    y[1][3] += 1;
    write_file();
    struct outcome o = run(W8A8, "--input", "x", "--expect", "y", "--dtype", "f32");
    assert_exit(&o, 1);
    assert_contains(o.out, "WRONG: expected[1, 3]");
    outcome_free(&o);

    file.count = 0;
    describe_layer(x8, PTXGEN_DTYPE_I8);
    write_file();
    succeeds_saying("the file's expected output: largest error", SPARSE24, "--input", "x",
                    "--expect", "y");
    y[2][7] += 4;
    write_file();
    o = run(SPARSE24, "--input", "x", "--expect", "y");
    assert_exit(&o, 1);
    assert_contains(o.out, "WRONG: expected[2, 7]");
    outcome_free(&o);
}

static void expected_outputs_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    describe_layer(x8, PTXGEN_DTYPE_I8);
    add("short", PTXGEN_DTYPE_F32, ROWS - 1, N, y);
    add("narrow", PTXGEN_DTYPE_F32, ROWS, N / 2, y);
    write_file();
    assert_refuses(2, "--expect needs --input", SPARSE24, "--expect", "y");
    assert_refuses(2, "--expect needs --input", W8A8, "--expect", "y");
    assert_refuses(2, "short has 2 rows and x has 3", SPARSE24, "--input", "x", "--expect",
                   "short");
    assert_refuses(2, "with 8 columns", SPARSE24, "--input", "x", "--expect", "narrow");
    assert_refuses(2, "does not go with --residual", SPARSE24, "--input", "x", "--expect", "y",
                   "--residual");
    assert_refuses(4, "has no tensor \"z\"", SPARSE24, "--input", "x", "--expect", "z");
}

static void an_input_is_not_repeated(void **state)
{
    (void)state;
    describe_layer(x32, PTXGEN_DTYPE_F32);
    add("empty", PTXGEN_DTYPE_F32, 0, K, x32);
    write_file();
    assert_refuses(2, "--m 4: x has 3 rows", W8A8, "--input", "x", "--m", "4");
    assert_refuses(2, "empty has no rows", W8A8, "--input", "empty");
    succeeds_saying("the file's expected output", W8A8, "--input", "x", "--expect", "y", "--dtype",
                    "f32", "--m", "2");
    succeeds_saying("0 outputs: there was nothing to compute", W8A8, "--input", "x", "--m", "0");
    assert_refuses(2, "--m 6: A has 5 rows", "run", "marlin", "--device", "cpu:sm_80",
                   "--safetensors", GOLDEN_DIR "/marlin_g128.safetensors", "--layer", "gptq",
                   "--input", "A", "--m", "6");
    assert_refuses(2, "--m 2: input has 1 row\n", "run", "rmsnorm_q4k", "--device", "cpu:sm_80",
                   "--gguf", GOLDEN_DIR "/q4k.gguf", "--tensor", "blk.0.attn_q.weight", "--norm",
                   "blk.0.attn_norm.weight", "--input", "input", "--m", "2");
    file.count = 0;
    describe_layer(x8, PTXGEN_DTYPE_I8);
    write_file();
    assert_refuses(2, "--m 4: x has 3 rows", SPARSE24, "--input", "x", "--m", "4");
}

static void m_zero_says_that_it_did_nothing(void **state)
{
    (void)state;
    static const char *const families[] = {"rmsnorm_q4k", "marlin", "w8a8", "dense", "sparse24"};
    for (int i = 0; i < 5; i++)
        succeeds_saying("0 outputs: there was nothing to compute", "run", families[i], "--device",
                        "cpu:sm_80", "--k", "256", "--n", "64", "--m", "0");
}

/* ---- scales and zero points ---- */

static void refuses_scale(const char *const *arguments, const char *name, float value,
                          const char *said)
{
    const float array[1] = {value};
    char sentence[160];
    fill_layer();
    snprintf(sentence, sizeof sentence, "\"%s\" is %s (number 0); a scale is finite%s\n", name,
             said, strcmp(name, "l.input_scale") ? "" : " and above 0");
    file.count = 0;
    add("l.weight", PTXGEN_DTYPE_I8, N, K, weight);
    if (strcmp(name, "l.weight_scale") != 0)
        add("l.weight_scale", PTXGEN_DTYPE_F32, N, 1, scale);
    add(name, PTXGEN_DTYPE_F32, 1, 0, array);
    write_file();
    assert_refused(arguments, 2, sentence);
}

/* As compressed-tensors and ModelOpt have them: a scale for each feature, or one for all. */
static void layers_of_e4m3_compare_with_the_output_of_the_file(void **state)
{
    (void)state;
    for (uint64_t scales = 1; scales <= N; scales += N - 1) {
        describe_fp8_layer(PTXGEN_DTYPE_F8_E4M3, scales);
        write_file();
        succeeds_saying("the file's expected output: largest error 0,", E4M3, "--input", "x",
                        "--expect", "y", "--dtype", "f32");
        succeeds_saying("codes=e4m3", E4M3, "--codes", "e4m3", "--m", "3");
    }
    assert_refuses(2, "l.weight is F8_E4M3; a range as of --codes is for I8", E4M3, "--codes",
                   "127,127");
    fp8[2][5] = 0xFF;
    write_file();
    assert_refuses(2, "l.weight[2, 5] is a NaN", E4M3);
}

static void layers_of_e5m2_compare_with_the_output_of_the_file(void **state)
{
    (void)state;
    static const struct {
        uint8_t code;
        const char *said;
    } specials[] = {{0x7C, "l.weight[2, 5] is infinite\n"},
                    {0xFC, "l.weight[2, 5] is infinite\n"},
                    {0x7D, "l.weight[2, 5] is a NaN\n"},
                    {0xFF, "l.weight[2, 5] is a NaN\n"}};
    for (uint64_t scales = 1; scales <= N; scales += N - 1) {
        describe_fp8_layer(PTXGEN_DTYPE_F8_E5M2, scales);
        write_file();
        succeeds_saying("the file's expected output: largest error 0,", E4M3, "--input", "x",
                        "--expect", "y", "--dtype", "f32");
        succeeds_saying("codes=e4m3 w=e5m2", E4M3, "--codes", "e4m3", "--m", "3");
    }
    assert_refuses(2, "l.weight is F8_E5M2; a range as of --codes is for I8", E4M3, "--codes",
                   "127,127");
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        fp8[2][5] = specials[i].code;
        write_file();
        assert_refuses(2, specials[i].said, E4M3);
    }
}

/* ---- e4m3 with scales of blocks of 128 by 128, of which the last are shorter ---- */

enum { BLOCK_K = 260, BLOCK_N = 136, BLOCKS_K = 3, BLOCKS_N = 2 };
static uint8_t block_weight[BLOCK_N][BLOCK_K];
static float block_x[ROWS][BLOCK_K], block_scale[BLOCKS_N][BLOCKS_K], block_y[ROWS][BLOCK_N];
static uint16_t block_scale16[BLOCKS_N][BLOCKS_K];

/* Each group of x has 448 in it, so that its own scale is 1, and scales of w are powers of two. */
static void describe_block_layer(const char *scale_name, ptxgen_dtype scale_type)
{
    for (int i = 0; i < BLOCKS_N; i++)
        for (int b = 0; b < BLOCKS_K; b++) {
            block_scale[i][b] = (float)(1 << (i * BLOCKS_K + b));
            block_scale16[i][b] = (uint16_t)(0x3F80 + 0x80 * (i * BLOCKS_K + b));
        }
    memset(block_y, 0, sizeof block_y);
    for (int n = 0; n < BLOCK_N; n++)
        for (int k = 0; k < BLOCK_K; k++) {
            int number = (k * 5 + n * 3) % 7 - 3;
            block_weight[n][k] = e4m3_of(number);
            for (int m = 0; m < ROWS; m++) {
                block_x[m][k] = (float)(k % 128 == m ? 448 : (k + 2 * m) % 5 - 2);
                block_y[m][n] += block_x[m][k] * (float)number * block_scale[n / 128][k / 128];
            }
        }
    bool bf16 = scale_type == PTXGEN_DTYPE_BF16;
    file.count = 0;
    add("l.weight", PTXGEN_DTYPE_F8_E4M3, BLOCK_N, BLOCK_K, block_weight);
    add(scale_name, scale_type, BLOCKS_N, BLOCKS_K, bf16 ? block_scale16 : (void *)block_scale);
    add("x", PTXGEN_DTYPE_F32, ROWS, BLOCK_K, block_x);
    add("y", PTXGEN_DTYPE_F32, ROWS, BLOCK_N, block_y);
    write_file();
}

/* As DeepSeek's checkpoints have them, and compressed-tensors by the name of other scales. */
static void layers_with_scales_of_blocks_compare_with_the_output_of_the_file(void **state)
{
    (void)state;
    static const char *const names[] = {"l.weight_scale_inv", "l.weight_scale"};
    for (int i = 0; i < 4; i++) {
        describe_block_layer(names[i % 2], i / 2 ? PTXGEN_DTYPE_BF16 : PTXGEN_DTYPE_F32);
        succeeds_saying("the file's expected output: largest error 0,", E4M3, "--input", "x",
                        "--expect", "y", "--dtype", "f32");
        succeeds_saying("dynamic groups codes=e4m3", E4M3, "--m", "3");
    }
    file.items[1].shape[0] = BLOCKS_K;
    file.items[1].shape[1] = BLOCKS_N;
    file.items[1].name = "l.weight_scale_inv";
    write_file();
    assert_refuses(2,
                   "l.weight_scale_inv is [3, 2]; expected [2, 3], a scale for each 128 by 128 of "
                   "l.weight\n",
                   E4M3);
    file.items[0].dtype = PTXGEN_DTYPE_I8;
    write_file();
    assert_refuses(2,
                   "l.weight has scales of blocks, l.weight_scale_inv, but is I8; such weights are "
                   "F8_E4M3 or F8_E5M2\n",
                   E4M3);
}

static void scales_that_are_none_are_refused_by_name_and_value(void **state)
{
    (void)state;
    const char *const commands[][9] = {{W8A8, NULL}, {SPARSE24, NULL}};
    static const struct {
        float value;
        const char *said;
    } bad[] = {{0, "0"}, {-0.25f, "-0.25"}, {__builtin_nanf(""), "nan"}, {__builtin_inff(), "inf"}};
    for (int c = 0; c < 2; c++) {
        for (int i = 0; i < 4; i++)
            refuses_scale(commands[c], "l.input_scale", bad[i].value, bad[i].said);
        for (int i = 2; i < 4; i++)
            refuses_scale(commands[c], "l.weight_scale", bad[i].value, bad[i].said);
    }
}

static void zero_points_are_read_in_every_type_of_numbers(void **state)
{
    (void)state;
    static const ptxgen_dtype types[] = {PTXGEN_DTYPE_I8,   PTXGEN_DTYPE_U8,  PTXGEN_DTYPE_I16,
                                         PTXGEN_DTYPE_U16,  PTXGEN_DTYPE_I32, PTXGEN_DTYPE_U32,
                                         PTXGEN_DTYPE_I64,  PTXGEN_DTYPE_U64, PTXGEN_DTYPE_F16,
                                         PTXGEN_DTYPE_BF16, PTXGEN_DTYPE_F32, PTXGEN_DTYPE_F64};
    static const unsigned char zeros[8 * N];
    unsigned char one[8 * N] = {0};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        file.count = 0;
        describe_layer(x32, PTXGEN_DTYPE_F32);
        add("l.weight_zero_point", types[i], N, 1, zeros);
        add("l.input_zero_point", types[i], 1, 0, zeros);
        write_file();
        succeeds_saying("24 outputs", W8A8, "--input", "x");
        succeeds_saying("8 outputs", SPARSE24);
        unsigned size = ptxgen_dtype_find(types[i])->block_bytes;
        memset(one, 0, sizeof one);
        one[3 * size + size - 1] = 0x40; /* of the highest byte: another number in any type */
        file.items[file.count - 2].data = one;
        write_file();
        assert_refuses(2, "(number 3), not 0; w8a8's weights are symmetric", W8A8);
        assert_refuses(2, "(number 3), not 0; sparse24's weights are symmetric", SPARSE24);
    }
    file.count = 0;
    describe_layer(x32, PTXGEN_DTYPE_F32);
    add("l.weight_zero_point", PTXGEN_DTYPE_BOOL, N, 1, zeros);
    write_file();
    assert_refuses(2, "\"l.weight_zero_point\" is BOOL, a type in which", W8A8);
}

static void a_zero_point_of_the_input_goes_with_a_scale_and_a_sign(void **state)
{
    (void)state;
    static const unsigned char five[8] = {5};
    static const float input_scale[1] = {0.5f};
    describe_layer(x32, PTXGEN_DTYPE_F32);
    add("l.input_zero_point", PTXGEN_DTYPE_I8, 1, 0, five);
    write_file();
    assert_refuses(2, "\"l.input_zero_point\" is 5 (number 0), not 0; without an input_scale",
                   W8A8);
    add("l.input_scale", PTXGEN_DTYPE_F32, 1, 0, input_scale);
    write_file();
    succeeds_saying("tensor asymmetric bias", W8A8, "--input", "x");
    file.items[file.count - 2].dtype = PTXGEN_DTYPE_U8;
    write_file();
    assert_refuses(2, "l.input_zero_point is U8 [1], 5; expected one signed integer", W8A8);
}

/* ---- what options and a file say ---- */

static void options_that_the_file_does_not_bear_out_are_refused(void **state)
{
    (void)state;
    static const float input_scale[1] = {0.5f};
    fill_layer();
    add("l.weight", PTXGEN_DTYPE_I8, N, K, weight);
    add("l.weight_scale", PTXGEN_DTYPE_F32, N, 1, scale);
    add("l.input_scale", PTXGEN_DTYPE_F32, 1, 0, input_scale);
    write_file();
    assert_refuses(4, "has no tensor \"l.bias\"", W8A8, "--bias");
    assert_refuses(4, "has no tensor \"l.bias\"", SPARSE24, "--bias");
    assert_refuses(4, "has no tensor \"l.input_zero_point\"", W8A8, "--asymmetric");
    assert_refuses(2, "--scales, --e5m2 and --groups come from the tensors", W8A8, "--scales", "token");
    assert_refuses(2, "--dtype come from the tensors", SPARSE24, "--dtype", "f16");
    assert_refuses(2, "--y-type goes with weights of I8", "run", "sparse24", "--device", "cpu",
                   "--safetensors", GOLDEN_DIR "/sparse24_torch.safetensors", "--layer", "f16",
                   "--y-type", "bf16");
    succeeds_saying("s8 y=bf16", SPARSE24, "--y-type", "bf16");
}

/* ---- names ---- */

static void a_sparse_layer_is_found_with_and_without_the_suffix_weight(void **state)
{
    (void)state;
    describe_layer(x8, PTXGEN_DTYPE_I8);
    write_file();
    succeeds_saying("s8 y=f16 bias", SPARSE24, "--input", "x", "--expect", "y");
    succeeds_saying("s8 y=f16 bias", "run", "sparse24", "--device", "cpu:sm_80", "--safetensors",
                    path, "--layer", "l.weight", "--input", "x", "--expect", "y");
    add("l.weight.bias", PTXGEN_DTYPE_F32, N, 0, bias);
    write_file();
    assert_refuses(2, "both l.bias and l.weight.bias", SPARSE24);
    assert_refuses(4, "no weight m", "run", "sparse24", "--device", "cpu:sm_80", "--safetensors",
                   path, "--layer", "m");
}

static void scales_beside_sparse_weights_of_floats_are_refused(void **state)
{
    (void)state;
    static float dense[N][K];
    fill_layer();
    add("l.weight", PTXGEN_DTYPE_F32, N, K, dense);
    add("l.weight_scale", PTXGEN_DTYPE_F32, N, 1, scale);
    write_file();
    assert_refuses(2, "l.weight_scale: scales go with weights of I8", SPARSE24);
}

static void tensors_of_a_layer_that_are_not_used_are_named(void **state)
{
    (void)state;
    static const int32_t order[K];
    describe_layer(x8, PTXGEN_DTYPE_I8);
    add("l.weight_g_idx", PTXGEN_DTYPE_I32, K, 0, order);
    add("l.lora.weight", PTXGEN_DTYPE_F32, N, 1, scale);
    add("lm_head.weight", PTXGEN_DTYPE_F32, N, 1, scale);
    write_file();
    static const char sentence[] =
        "not used of the layer: \"l.weight_g_idx\" I32, \"l.lora.weight\" F32\n";
    struct outcome o = run(SPARSE24, "--input", "x");
    assert_exit(&o, 0);
    assert_contains(o.err, sentence);
    outcome_free(&o);
    o = run(W8A8);
    assert_exit(&o, 0);
    assert_contains(o.err, sentence);
    outcome_free(&o);
    o = run("run", "marlin", "--device", "cpu:sm_80", "--safetensors",
            GOLDEN_DIR "/marlin_g128.safetensors", "--layer", "gptq");
    assert_exit(&o, 0);
    assert_null(strstr(o.err, "not used"));
    outcome_free(&o);
}

/* What is in the place of a layer is a whole layer; tensors of another format go, and are named. */
static void convert_names_the_tensors_that_it_leaves_out(void **state)
{
    (void)state;
    static const int64_t shape[2] = {256, 512};
    static const int32_t order[4];
    ptxgen_files *store;
    char other[FOLDER_PATH + 16];
    assert_int_equal(ptxgen_files_open(GOLDEN_DIR "/marlin_g128.safetensors", &store, NULL),
                     PTXGEN_OK);
    for (size_t i = 0; i < ptxgen_files_tensors(store)->count; i++)
        file.items[file.count++] = ptxgen_files_tensors(store)->items[i];
    add("gptq.weight_shape", PTXGEN_DTYPE_I64, 2, 0, shape);
    add("gptq.codebook", PTXGEN_DTYPE_I32, 4, 0, order);
    write_file();
    ptxgen_files_close(store);
    snprintf(other, sizeof other, "%s/other", folder);
    struct outcome o = run("convert", path, other, "--to", "awq", "--layer", "gptq");
    assert_exit(&o, 0);
    assert_contains(o.err, "left out, as its layer's format has no such tensor: "
                           "\"gptq.weight_shape\"\n");
    assert_null(strstr(o.err, "codebook"));
    outcome_free(&o);
    assert_int_equal(ptxgen_files_open(other, &store, NULL), PTXGEN_OK);
    assert_non_null(ptxgen_tensor_list_find(ptxgen_files_tensors(store), "gptq.codebook"));
    assert_null(ptxgen_tensor_list_find(ptxgen_files_tensors(store), "gptq.weight_shape"));
    ptxgen_files_close(store);
}

#define with_folder(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Files that gguf-py has quantised, with products of the decoded weights in double. */
static void products_of_gguf_types_are_as_files_expect(void **state)
{
    static const char *const files[] = {GOLDEN_DIR "/gguf_products.gguf",
                                        GOLDEN_DIR "/gguf_edge.gguf"};
    static const char *const types[] = {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl", "mxfp4",
                                        "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs"};
    enum { TYPES = sizeof types / sizeof *types, OF_32 = 7 };
    (void)state;
    for (int i = 0; i < TYPES + OF_32; i++) {
        const char *type = types[i % TYPES], *at = files[i / TYPES];
        char tensor[24], expected[24];
        snprintf(tensor, sizeof tensor, "%s.weight", type);
        snprintf(expected, sizeof expected, "%s.y", type);
        struct outcome o = run("run", "gguf_linear", "--gguf", at, "--tensor", tensor, "--input",
                               "input", "--expect", expected, "--x-type", i % 2 ? "f16" : "f32",
                               "--y-type", "f32", "--device", "cpu:sm_90");
        assert_exit(&o, 0);
        assert_contains(o.out, "the file's expected output: largest error");
        outcome_free(&o);
    }
}

/* The file's decoded rows are multiplied as the quantised ones that they were decoded from. */
static void products_of_floats_are_as_files_expect(void **state)
{
    (void)state;
    struct outcome o = run("run", "gguf_linear", "--gguf", GOLDEN_DIR "/q4k.gguf", "--tensor",
                           "expected.dequantized", "--norm", "blk.0.attn_norm.weight", "--input",
                           "input", "--expect", "expected.output", "--x-type", "f32", "--y-type",
                           "f32", "--device", "cpu:sm_90");
    assert_exit(&o, 0);
    assert_contains(o.out, "the file's expected output: largest error");
    outcome_free(&o);
    o = run("run", "gguf_linear", "--gguf", GOLDEN_DIR "/gguf_types.gguf", "--tensor",
            "Q4_K.quantised,F16.quantised,Q6_K.quantised", "--m", "3,40", "--device", "cpu:sm_80");
    assert_exit(&o, 0);
    assert_contains(o.out, "N=12:Q4_K,12:F16,12:Q6_K M=40");
    outcome_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_gguf_types_are_as_files_expect),
        cmocka_unit_test(products_of_floats_are_as_files_expect),
        with_folder(w8a8_and_sparse24_compare_with_the_output_of_the_file),
        with_folder(expected_outputs_that_do_not_fit_are_refused),
        with_folder(an_input_is_not_repeated),
        cmocka_unit_test(m_zero_says_that_it_did_nothing),
        with_folder(layers_of_e4m3_compare_with_the_output_of_the_file),
        with_folder(layers_of_e5m2_compare_with_the_output_of_the_file),
        with_folder(layers_with_scales_of_blocks_compare_with_the_output_of_the_file),
        with_folder(scales_that_are_none_are_refused_by_name_and_value),
        with_folder(zero_points_are_read_in_every_type_of_numbers),
        with_folder(a_zero_point_of_the_input_goes_with_a_scale_and_a_sign),
        with_folder(options_that_the_file_does_not_bear_out_are_refused),
        with_folder(a_sparse_layer_is_found_with_and_without_the_suffix_weight),
        with_folder(scales_beside_sparse_weights_of_floats_are_refused),
        with_folder(tensors_of_a_layer_that_are_not_used_are_named),
        with_folder(convert_names_the_tensors_that_it_leaves_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
