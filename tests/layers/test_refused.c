/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that others have filled in are not believed, nor are arguments. */
#include "bed.h"

#include <string.h>

static const uint8_t bytes[64 * 64 * 8];

static ptxgen_tensor tensor(const char *name, ptxgen_dtype dtype, uint64_t rows, uint64_t columns,
                            size_t size)
{
    return (ptxgen_tensor){.name = name,
                           .dtype = dtype,
                           .ndim = columns ? 2 : 1,
                           .shape = {rows, columns},
                           .data = bytes,
                           .bytes = size};
}

static ptxgen_layer layer_of(ptxgen_layer_kind kind, ptxgen_layer_form form,
                             const ptxgen_tensor *weight, const ptxgen_tensor *scale)
{
    return (ptxgen_layer){.kind = kind,
                          .form = form,
                          .parts = {[PTXGEN_LAYER_WEIGHT] = weight, [PTXGEN_LAYER_SCALE] = scale}};
}

static void refuses(const struct bed *bed, const ptxgen_layer *layer, const ptxgen_layer *up,
                    ptxgen_status status, const char *says)
{
    const ptxgen_linear_options options = {.type = PTXGEN_F16, .max_m = 4};
    ptxgen_linear *linear = (ptxgen_linear *)(uintptr_t)1;
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_linear_from_layer(bed->dispatcher, layer, up, &options, &linear, &err),
                     status);
    assert_string_equal(err.message, says);
    assert_null(linear);
}

static void what_no_finder_makes_is_refused(void **state)
{
    struct bed *bed = *state;
    const ptxgen_tensor w = tensor("w", PTXGEN_DTYPE_F16, 8, 16, 256);
    ptxgen_layer any = layer_of(PTXGEN_LAYER_ANY, 0, &w, NULL);
    ptxgen_layer beyond = layer_of((ptxgen_layer_kind)6, 0, &w, NULL);
    ptxgen_layer empty = layer_of(PTXGEN_LAYER_FLOATS, 0, NULL, NULL);
    ptxgen_layer floats = layer_of(PTXGEN_LAYER_FLOATS, 0, &w, NULL);
    ptxgen_layer sparse = layer_of(PTXGEN_LAYER_SPARSE24, PTXGEN_LAYER_DENSE, &w, NULL);
    refuses(bed, NULL, NULL, PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: layer is NULL");
    refuses(bed, &any, NULL, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: one of kind 0 that has its weights was not found by ptxgen_files_layer");
    refuses(bed, &beyond, NULL, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: one of kind 6 that has its weights was not found by ptxgen_files_layer");
    refuses(bed, &empty, NULL, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: one of kind 5 that has no weights was not found by ptxgen_files_layer");
    refuses(bed, &floats, &sparse, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: gate is of kind 5 and up of kind 3");
    refuses(bed, &floats, &floats, PTXGEN_ERROR_UNSUPPORTED,
            "a layer: gate and up go together in 4 bits, 8 bits and types of GGUF, not in kind 5");
}

static void arrays_of_another_size_or_type_are_refused(void **state)
{
    struct bed *bed = *state;
    const ptxgen_tensor s8 = tensor("w", PTXGEN_DTYPE_I8, 8, 16, 128);
    const ptxgen_tensor scale = tensor("s", PTXGEN_DTYPE_F32, 8, 0, 32);
    const struct {
        ptxgen_layer_kind kind;
        ptxgen_layer_form form;
        ptxgen_tensor weight;
        const ptxgen_tensor *scale;
        ptxgen_status status;
        const char *says;
    } rows[] = {
        {PTXGEN_LAYER_W4, PTXGEN_LAYER_GPTQ, tensor("w", PTXGEN_DTYPE_F64, 8, 16, 1024), &scale,
         PTXGEN_ERROR_INVALID_ARGUMENT,
         "w: 2 dimensions of dtype 3, in 1024 bytes, are no tensor of a 4-bit layer"},
        {PTXGEN_LAYER_W4, PTXGEN_LAYER_GPTQ, tensor("w", PTXGEN_DTYPE_I32, 8, 16, 511), &scale,
         PTXGEN_ERROR_INVALID_ARGUMENT,
         "w: 2 dimensions of dtype 6, in 511 bytes, are no tensor of a 4-bit layer"},
        {PTXGEN_LAYER_W4, PTXGEN_LAYER_BYTES, tensor("w", PTXGEN_DTYPE_I32, 8, 16, 512), &scale,
         PTXGEN_ERROR_INVALID_ARGUMENT,
         "a checkpoint in 4 bits: a layer of kind 1 and form 7 is none"},
        {PTXGEN_LAYER_W4, PTXGEN_LAYER_PACKED, tensor("w", PTXGEN_DTYPE_U8, 8, 16, 128), NULL,
         PTXGEN_ERROR_MALFORMED, "a packed layer has codes and scales"},
        {PTXGEN_LAYER_W4, PTXGEN_LAYER_PACKED, tensor("w", PTXGEN_DTYPE_U8, 8, 16, 128), &scale,
         PTXGEN_ERROR_MALFORMED, "a packed layer: its shape is not three numbers of I64"},
        {PTXGEN_LAYER_W8, PTXGEN_LAYER_ROWS, tensor("w", PTXGEN_DTYPE_I8, 8, 16, 127), &scale,
         PTXGEN_ERROR_INVALID_ARGUMENT,
         "a layer: w, of dtype 4 in 127 bytes, is not a matrix of I8, F8_E4M3 or F8_E5M2"},
        {PTXGEN_LAYER_W8, PTXGEN_LAYER_ROWS, tensor("w", PTXGEN_DTYPE_U8, 8, 16, 128), &scale,
         PTXGEN_ERROR_INVALID_ARGUMENT,
         "a layer: w, of dtype 8 in 128 bytes, is not a matrix of I8, F8_E4M3 or F8_E5M2"},
        {PTXGEN_LAYER_W8, PTXGEN_LAYER_ROWS, s8, NULL, PTXGEN_ERROR_INVALID_ARGUMENT,
         "a layer: w has no scales"},
        {PTXGEN_LAYER_W8, PTXGEN_LAYER_ROWS, tensor("w", PTXGEN_DTYPE_I8, 9, 16, 144), &scale,
         PTXGEN_ERROR_INVALID_ARGUMENT,
         "a layer: s, of dtype 0 in 32 bytes, is not 9 floats, or one"},
        {PTXGEN_LAYER_W8, PTXGEN_LAYER_ROWS, s8, &s8, PTXGEN_ERROR_INVALID_ARGUMENT,
         "a layer: w, of dtype 4 in 128 bytes, is not 8 floats, or one"},
        {PTXGEN_LAYER_SPARSE24, PTXGEN_LAYER_BYTES, s8, NULL, PTXGEN_ERROR_INVALID_ARGUMENT,
         "a 2:4 sparse weight: a layer of kind 3 and form 7 is none"},
        {PTXGEN_LAYER_SPARSE24, PTXGEN_LAYER_DENSE, tensor("w", PTXGEN_DTYPE_F16, 8, 16, 255), NULL,
         PTXGEN_ERROR_INVALID_ARGUMENT, "dense has 255 bytes; its shape takes exactly 256"},
        {PTXGEN_LAYER_GGUF, 0, tensor("w", PTXGEN_DTYPE_IQ2_XXS, 8, 256, 528), NULL,
         PTXGEN_ERROR_UNSUPPORTED,
         "a layer: w is of dtype 34, which gguf_linear does not multiply"},
        {PTXGEN_LAYER_GGUF, 0, tensor("w", PTXGEN_DTYPE_Q8_0, 8, 32, 8 * 34 - 1), NULL,
         PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: 8 rows of 34 bytes do not fit into 271"},
        {PTXGEN_LAYER_GGUF, 0, tensor("w", PTXGEN_DTYPE_Q8_0, 32, 0, 34), NULL,
         PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: w, of dtype 26 in 34 bytes, is not a matrix"},
        {PTXGEN_LAYER_FLOATS, 0, tensor("w", PTXGEN_DTYPE_F16, 8, 16, 255), NULL,
         PTXGEN_ERROR_INVALID_ARGUMENT,
         "a layer: w, of dtype 1 in 255 bytes, is not a matrix of F32, F16 or BF16"},
        {PTXGEN_LAYER_FLOATS, 0, s8, NULL, PTXGEN_ERROR_INVALID_ARGUMENT,
         "a layer: w, of dtype 4 in 128 bytes, is not a matrix of F32, F16 or BF16"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ptxgen_layer layer = layer_of(rows[i].kind, rows[i].form, &rows[i].weight, rows[i].scale);
        refuses(bed, &layer, NULL, rows[i].status, rows[i].says);
    }
}

static void zero_points_and_biases_are_checked(void **state)
{
    struct bed *bed = *state;
    static const int16_t numbers[2] = {128, 0};
    const ptxgen_tensor s8 = tensor("w", PTXGEN_DTYPE_I8, 8, 16, 128);
    const ptxgen_tensor scale = tensor("s", PTXGEN_DTYPE_F32, 8, 0, 32);
    const ptxgen_tensor half = tensor("w", PTXGEN_DTYPE_F16, 8, 16, 256);
    ptxgen_tensor zero = tensor("z", PTXGEN_DTYPE_I16, 1, 0, 2);
    ptxgen_layer l = layer_of(PTXGEN_LAYER_W8, PTXGEN_LAYER_ROWS, &s8, &scale);
    l.parts[PTXGEN_LAYER_INPUT_ZERO] = &zero;
    zero.data = numbers;
    refuses(bed, &l, NULL, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: z, of dtype 5 in 2 bytes, is not one number from -128 to 127");
    zero.bytes = 9;
    refuses(bed, &l, NULL, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: z, of dtype 5 in 9 bytes, is not one number from -128 to 127");
    ptxgen_layer floats = layer_of(PTXGEN_LAYER_FLOATS, 0, &half, NULL);
    floats.parts[PTXGEN_LAYER_BIAS] = &s8;
    refuses(bed, &floats, NULL, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: w, of dtype 4 in 128 bytes, is not 8 floats, or one");
}

/* ---- packed layers and pairs ---- */

static void packed_layers_have_their_own_type_and_sizes(void **state)
{
    struct bed *bed = *state;
    static int64_t numbers[3] = {64, 64, 64};
    ptxgen_tensor codes = tensor("c", PTXGEN_DTYPE_U8, 2048, 0, 2048);
    ptxgen_tensor scale = tensor("s", PTXGEN_DTYPE_BF16, 64, 0, 128);
    ptxgen_tensor shape = tensor("p", PTXGEN_DTYPE_I64, 3, 0, 24);
    ptxgen_layer l = layer_of(PTXGEN_LAYER_W4, PTXGEN_LAYER_PACKED, &codes, &scale);
    l.parts[PTXGEN_LAYER_SHAPE] = &shape;
    shape.data = numbers;
    refuses(bed, &l, NULL, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: type 1 of the options is not that of the packed weights, 2");
    refuses(bed, &l, &l, PTXGEN_ERROR_UNSUPPORTED,
            "a layer: gate and up are packed together, so neither is packed yet");
    codes.bytes--;
    refuses(bed, &l, NULL, PTXGEN_ERROR_MALFORMED, "c is of 2047 bytes, but its layer needs 2048");
    numbers[1] = 0;
    refuses(bed, &l, NULL, PTXGEN_ERROR_MALFORMED, "p has 0");
}

static void a_pair_of_two_shapes_is_refused(void **state)
{
    struct bed *bed = *state;
    const ptxgen_tensor gate = tensor("g", PTXGEN_DTYPE_Q8_0, 8, 32, 8 * 34);
    const ptxgen_tensor up = tensor("u", PTXGEN_DTYPE_Q8_0, 9, 32, 9 * 34);
    const ptxgen_tensor bias = tensor("b", PTXGEN_DTYPE_F32, 8, 0, 32);
    ptxgen_layer of_gate = layer_of(PTXGEN_LAYER_GGUF, 0, &gate, NULL);
    ptxgen_layer of_up = layer_of(PTXGEN_LAYER_GGUF, 0, &up, NULL);
    refuses(bed, &of_gate, &of_up, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: gate is 8 by 32 and up is 9 by 32");
    of_gate.parts[PTXGEN_LAYER_BIAS] = &bias;
    refuses(bed, &of_gate, &of_up, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: gate and up take neither a bias nor an activation");
}

static void a_pair_in_eight_bits_has_one_kind_of_codes_and_one_scale_of_x(void **state)
{
    struct bed *bed = *state;
    static const float half = 0.5f, one = 1;
    const ptxgen_tensor s8 = tensor("s", PTXGEN_DTYPE_I8, 8, 16, 128);
    const ptxgen_tensor fp8 = tensor("f", PTXGEN_DTYPE_F8_E4M3, 8, 16, 128);
    const ptxgen_tensor wide = tensor("w", PTXGEN_DTYPE_I8, 8, 32, 256);
    const ptxgen_tensor scale = tensor("c", PTXGEN_DTYPE_F32, 8, 0, 32);
    ptxgen_tensor of_gate = tensor("g", PTXGEN_DTYPE_F32, 1, 0, 4), of_up = of_gate;
    of_gate.data = &half;
    of_up.data = &one;
    ptxgen_layer gate = layer_of(PTXGEN_LAYER_W8, PTXGEN_LAYER_ROWS, &s8, &scale);
    ptxgen_layer up = layer_of(PTXGEN_LAYER_W8, PTXGEN_LAYER_ROWS, &fp8, &scale);
    refuses(bed, &gate, &up, PTXGEN_ERROR_UNSUPPORTED,
            "a layer: codes or kinds of scales of gate are not those of up");
    up.parts[PTXGEN_LAYER_WEIGHT] = &wide;
    refuses(bed, &gate, &up, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: gate is 8 by 16 and up is 8 by 32");
    up.parts[PTXGEN_LAYER_WEIGHT] = &s8;
    gate.parts[PTXGEN_LAYER_INPUT_SCALE] = &of_gate;
    up.parts[PTXGEN_LAYER_INPUT_SCALE] = &of_up;
    refuses(bed, &gate, &up, PTXGEN_ERROR_UNSUPPORTED,
            "a layer: gate quantises x by the scale 0.5 and up by 1, or by another zero point");
    gate.parts[PTXGEN_LAYER_BIAS] = &scale;
    refuses(bed, &gate, &up, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: gate and up take neither a bias nor an activation");
}

/* ---- views ---- */

static void views_want_a_layer_of_their_kind(void **state)
{
    (void)state;
    const ptxgen_tensor w = tensor("w", PTXGEN_DTYPE_F16, 8, 16, 256);
    const ptxgen_layer floats = layer_of(PTXGEN_LAYER_FLOATS, 0, &w, NULL);
    ptxgen_w4_checkpoint checkpoint;
    ptxgen_marlin_spec spec = {.k = 0};
    ptxgen_marlin_packed packed;
    ptxgen_sparse24_weights weights;
    ptxgen_error err;
#define REFUSES(call, says)                                                                        \
    do {                                                                                           \
        assert_int_equal(call, PTXGEN_ERROR_INVALID_ARGUMENT);                                     \
        assert_string_equal(err.message, says);                                                    \
    } while (0)
    REFUSES(ptxgen_w4_from_layer(&floats, &checkpoint, &err),
            "a checkpoint in 4 bits: a layer of kind 5 and form 0 is none");
    REFUSES(ptxgen_marlin_packed_from_layer(&floats, &spec, &packed, &err),
            "a packed layer: a layer of kind 5 and form 0 is none");
    REFUSES(ptxgen_sparse24_from_layer(&floats, &weights, &err),
            "a 2:4 sparse weight: a layer of kind 5 and form 0 is none");
    REFUSES(ptxgen_w4_from_layer(NULL, &checkpoint, &err),
            "ptxgen_w4_from_layer: layer and checkpoint must be given");
    REFUSES(ptxgen_marlin_packed_from_layer(NULL, &spec, &packed, &err),
            "ptxgen_marlin_packed_from_layer: layer, spec and packed must be given");
    REFUSES(ptxgen_sparse24_from_layer(NULL, &weights, &err),
            "ptxgen_sparse24_from_layer: layer and weights must be given");
#undef REFUSES
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_no_finder_makes_is_refused),
        cmocka_unit_test(arrays_of_another_size_or_type_are_refused),
        cmocka_unit_test(zero_points_and_biases_are_checked),
        cmocka_unit_test(packed_layers_have_their_own_type_and_sizes),
        cmocka_unit_test(a_pair_of_two_shapes_is_refused),
        cmocka_unit_test(a_pair_in_eight_bits_has_one_kind_of_codes_and_one_scale_of_x),
        cmocka_unit_test(views_want_a_layer_of_their_kind),
    };
    return cmocka_run_group_tests(tests, bed_setup, bed_teardown);
}
