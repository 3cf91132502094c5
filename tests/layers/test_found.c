/* SPDX-License-Identifier: Apache-2.0 */
/* Which layer a name finds in a file, and what is said of names and tensors that are none. */
#include "bed.h"

#include <stdio.h>
#include <string.h>

static const uint8_t bytes[64 * 64 * 8];

static void assert_found(const ptxgen_files *files, const char *name, ptxgen_layer_kind kind,
                         ptxgen_layer_form form, const char *weight)
{
    ptxgen_layer layer = find_layer(files, name, NULL);
    assert_int_equal(layer.kind, kind);
    assert_int_equal(layer.form, form);
    assert_string_equal(layer.parts[PTXGEN_LAYER_WEIGHT]->name, weight);
}

static void refuses(const ptxgen_files *files, const char *name, const ptxgen_layer_choice *choice,
                    ptxgen_status status, const char *says)
{
    ptxgen_layer layer = {.kind = PTXGEN_LAYER_W4};
    const ptxgen_layer none = {.kind = PTXGEN_LAYER_ANY};
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_files_layer(files, name, choice, &layer, &err), status);
    assert_string_equal(err.message, says);
    assert_memory_equal(&layer, &none, sizeof layer);
}

/* ---- names ---- */

static void a_name_finds_the_layer_that_the_file_has(void **state)
{
    struct bed *bed = *state;
    ptxgen_files *files = open_file(MARLIN_FILE);
    assert_found(files, "gptq", PTXGEN_LAYER_W4, PTXGEN_LAYER_GPTQ, "gptq.qweight");
    assert_found(files, "marlin", PTXGEN_LAYER_W4, PTXGEN_LAYER_MARLIN, "marlin.B");
    ptxgen_layer gptq = find_layer(files, "gptq", NULL);
    assert_int_equal(gptq.group_size, 128);
    assert_string_equal(gptq.parts[PTXGEN_LAYER_ORDER]->name, "gptq.g_idx");
    assert_null(gptq.parts[PTXGEN_LAYER_BIAS]);
    ptxgen_files_close(files);
    files = open_file(W8A8_FILE);
    assert_found(files, "", PTXGEN_LAYER_W8, PTXGEN_LAYER_ROWS, "weight");
    ptxgen_files_close(files);
    files = open_file(GGUF_FILE);
    assert_found(files, "q4_k", PTXGEN_LAYER_GGUF, PTXGEN_LAYER_ONE_FORM, "q4_k.weight");
    assert_found(files, "q4_k.weight", PTXGEN_LAYER_GGUF, PTXGEN_LAYER_ONE_FORM, "q4_k.weight");
    assert_found(files, "q4_k.deq", PTXGEN_LAYER_FLOATS, PTXGEN_LAYER_ONE_FORM, "q4_k.deq");
    ptxgen_files_close(files);

    struct description d = {.count = 0};
    describe(&d, "a.weight", PTXGEN_DTYPE_BF16, 8, 16, bytes);
    describe(&d, "a.bias", PTXGEN_DTYPE_F16, 8, 0, bytes);
    describe(&d, "b.qweight", PTXGEN_DTYPE_I32, 16, 2, bytes);
    describe(&d, "b.scales", PTXGEN_DTYPE_F16, 1, 16, bytes);
    describe(&d, "c.weight", PTXGEN_DTYPE_F8_E5M2, 8, 16, bytes);
    describe(&d, "c.weight_scale", PTXGEN_DTYPE_BF16, 1, 0, bytes);
    describe(&d, "c.bias", PTXGEN_DTYPE_F16, 8, 0, bytes);
    describe(&d, "e.weight.compressed", PTXGEN_DTYPE_F16, 8, 8, bytes);
    describe(&d, "e.weight.bitmask", PTXGEN_DTYPE_U8, 8, 2, bytes);
    files = write_and_open(bed, &d);
    assert_found(files, "a", PTXGEN_LAYER_FLOATS, PTXGEN_LAYER_ONE_FORM, "a.weight");
    ptxgen_layer floats = find_layer(files, "a.weight", NULL);
    assert_string_equal(floats.parts[PTXGEN_LAYER_BIAS]->name, "a.bias");
    assert_found(files, "b", PTXGEN_LAYER_W4, PTXGEN_LAYER_AWQ, "b.qweight");
    assert_found(files, "c.weight", PTXGEN_LAYER_W8, PTXGEN_LAYER_ROWS, "c.weight");
    ptxgen_layer fp8 = find_layer(files, "c.weight", NULL);
    assert_string_equal(fp8.parts[PTXGEN_LAYER_BIAS]->name, "c.bias");
    assert_found(files, "e", PTXGEN_LAYER_SPARSE24, PTXGEN_LAYER_BITMASK, "e.weight.compressed");
    assert_found(files, "e.weight", PTXGEN_LAYER_SPARSE24, PTXGEN_LAYER_BITMASK,
                 "e.weight.compressed");
    ptxgen_files_close(files);
}

static void a_choice_goes_before_what_the_file_says(void **state)
{
    (void)state;
    static const ptxgen_layer_choice second = {
        .kind = PTXGEN_LAYER_W4, .form = PTXGEN_LAYER_GPTQ_V2, .group_size = -1};
    ptxgen_files *files = open_file(MARLIN_FILE);
    ptxgen_layer layer = find_layer(files, "gptq", &second);
    assert_int_equal(layer.form, PTXGEN_LAYER_GPTQ_V2);
    assert_int_equal(layer.group_size, -1);
    ptxgen_files_close(files);
}

static void all_layers_of_a_file_are_listed(void **state)
{
    struct bed *bed = *state;
    struct description d = {.count = 0};
    describe(&d, "a.weight", PTXGEN_DTYPE_F32, 8, 16, bytes);
    describe(&d, "a.bias", PTXGEN_DTYPE_F32, 8, 0, bytes);
    describe(&d, "b.qweight", PTXGEN_DTYPE_I32, 2, 16, bytes);
    describe(&d, "b.scales", PTXGEN_DTYPE_F16, 1, 16, bytes);
    describe(&d, "c.weight", PTXGEN_DTYPE_I8, 8, 16, bytes);
    describe(&d, "c.weight_scale", PTXGEN_DTYPE_F32, 8, 1, bytes);
    describe(&d, "e.sparse", PTXGEN_DTYPE_F16, 8, 8, bytes);
    describe(&d, "e.meta_nibbles", PTXGEN_DTYPE_U8, 8, 2, bytes);
    describe(&d, "f.B", PTXGEN_DTYPE_I32, 2, 16, bytes);
    describe(&d, "norm.weight", PTXGEN_DTYPE_F32, 8, 0, bytes);
    ptxgen_files *files = write_and_open(bed, &d);
    const ptxgen_tensor_list *list = ptxgen_files_tensors(files);
    char found[200] = "", name[32];
    for (size_t i = 0; i < list->count; i++) {
        ptxgen_layer_kind kind = ptxgen_files_layer_of(files, &list->items[i], name, sizeof name);
        if (kind)
            snprintf(found + strlen(found), sizeof found - strlen(found), "%d %s, ", (int)kind,
                     name);
    }
    assert_string_equal(found, "5 a, 1 b, 2 c, 3 e, ");
    const ptxgen_tensor *weight = ptxgen_tensor_list_find(list, "a.weight");
    assert_int_equal(ptxgen_files_layer_of(files, weight, name, 2), PTXGEN_LAYER_FLOATS);
    assert_int_equal(ptxgen_files_layer_of(files, weight, name, 1), PTXGEN_LAYER_ANY);
    assert_int_equal(ptxgen_files_layer_of(NULL, weight, name, 2), PTXGEN_LAYER_ANY);
    assert_int_equal(ptxgen_files_layer_of(files, NULL, name, 2), PTXGEN_LAYER_ANY);
    assert_int_equal(ptxgen_files_layer_of(files, weight, NULL, 2), PTXGEN_LAYER_ANY);
    ptxgen_files_close(files);
    files = open_file(GGUF_FILE);
    list = ptxgen_files_tensors(files);
    weight = ptxgen_tensor_list_find(list, "q4_k.weight");
    assert_int_equal(ptxgen_files_layer_of(files, weight, name, sizeof name), PTXGEN_LAYER_GGUF);
    assert_string_equal(name, "q4_k");
    ptxgen_files_close(files);
}

/* ---- refusals ---- */

static void a_name_that_finds_nothing_is_answered_with_the_nearest(void **state)
{
    (void)state;
    static const ptxgen_layer_choice gguf = {.kind = PTXGEN_LAYER_GGUF};
    ptxgen_files *files = open_file(MARLIN_FILE);
    refuses(files, "gtpq", NULL, PTXGEN_ERROR_NOT_FOUND,
            "the file has no layer gtpq: neither gtpq.weight nor weights by another name; did you "
            "mean \"gptq\"?");
    ptxgen_files_close(files);
    files = open_file(GGUF_FILE);
    refuses(files, "q4_x", NULL, PTXGEN_ERROR_NOT_FOUND,
            "the file has no layer q4_x: neither q4_x.weight nor weights by another name; did you "
            "mean \"q4_0\", \"q4_1\" or \"q4_k\"?");
    refuses(files, "q6_kk", &gguf, PTXGEN_ERROR_NOT_FOUND,
            "the file has no matrix q6_kk.weight or q6_kk; did you mean \"q6_k\", \"q2_k\" or "
            "\"q3_k\"?");
    refuses(files, "q4_0.deq", &gguf, PTXGEN_ERROR_INVALID_ARGUMENT,
            "q4_0.deq is F32 [3, 512]; expected a matrix in a type of blocks of GGUF");
    ptxgen_files_close(files);
}

static void tensors_that_no_family_multiplies_are_named(void **state)
{
    struct bed *bed = *state;
    static const ptxgen_layer_choice floats = {.kind = PTXGEN_LAYER_FLOATS};
    struct description d = {.count = 0};
    describe(&d, "a.weight", PTXGEN_DTYPE_F64, 8, 16, bytes);
    describe(&d, "norm.weight", PTXGEN_DTYPE_F32, 8, 0, bytes);
    describe(&d, "b.weight", PTXGEN_DTYPE_F32, 8, 16, bytes);
    describe(&d, "b.bias", PTXGEN_DTYPE_F32, 7, 0, bytes);
    describe(&d, "c.qweight", PTXGEN_DTYPE_I32, 2, 16, bytes);
    describe(&d, "e.weight", PTXGEN_DTYPE_I8, 8, 16, bytes);
    ptxgen_files *files = write_and_open(bed, &d);
    refuses(files, "a", NULL, PTXGEN_ERROR_UNSUPPORTED,
            "a.weight is F64 [8, 16]; weights are a matrix of F32, F16, BF16, I8 or F8, or in a "
            "type of blocks of GGUF");
    refuses(files, "norm", NULL, PTXGEN_ERROR_UNSUPPORTED,
            "norm.weight is F32 [8]; weights are a matrix of F32, F16, BF16, I8 or F8, or in a "
            "type of blocks of GGUF");
    refuses(files, "norm", &floats, PTXGEN_ERROR_INVALID_ARGUMENT,
            "norm.weight is F32 [8]; expected a matrix of F32, F16 or BF16");
    refuses(files, "b", NULL, PTXGEN_ERROR_INVALID_ARGUMENT,
            "b.bias is F32 [7]; expected 8 floats");
    refuses(files, "c", NULL, PTXGEN_ERROR_NOT_FOUND, "the file has no c.scales");
    char says[600];
    snprintf(says, sizeof says,
             "%s has no tensor \"e.weight_scale\"; did you mean \"e.weight\", \"a.weight\" or "
             "\"b.weight\"?",
             bed->path);
    refuses(files, "e", NULL, PTXGEN_ERROR_NOT_FOUND, says);
    ptxgen_files_close(files);
}

static void scales_and_zero_points_of_eight_bits_are_checked(void **state)
{
    struct bed *bed = *state;
    static const uint8_t three = 3;
    static const float one = 1;
    struct description d = {.count = 0};
    describe(&d, "a.weight", PTXGEN_DTYPE_I8, 8, 16, bytes);
    describe(&d, "a.weight_scale", PTXGEN_DTYPE_F32, 7, 0, bytes);
    describe(&d, "b.weight", PTXGEN_DTYPE_I8, 8, 16, bytes);
    describe(&d, "b.weight_scale", PTXGEN_DTYPE_F32, 8, 0, bytes);
    describe(&d, "b.input_scale", PTXGEN_DTYPE_F32, 1, 0, &one);
    describe(&d, "b.input_zero_point", PTXGEN_DTYPE_U8, 1, 0, &three);
    ptxgen_files *files = write_and_open(bed, &d);
    refuses(files, "a", NULL, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a.weight_scale is F32 [7]; expected 8 floats, or one");
    refuses(files, "b", NULL, PTXGEN_ERROR_INVALID_ARGUMENT,
            "b.input_zero_point is U8 [1], 3; expected one signed integer in -128 ... 127");
    ptxgen_files_close(files);
}

static void choices_and_arguments_are_checked(void **state)
{
    (void)state;
    ptxgen_files *files = open_file(MARLIN_FILE);
    static const struct {
        ptxgen_layer_choice choice;
        const char *says;
    } rows[] = {
        {{.kind = (ptxgen_layer_kind)6}, "ptxgen_files_layer: 6 is no kind of layer"},
        {{.kind = PTXGEN_LAYER_W4, .form = PTXGEN_LAYER_BYTES},
         "ptxgen_files_layer: the form 7 is none that may be chosen of kind 1"},
        {{.kind = PTXGEN_LAYER_ANY, .form = PTXGEN_LAYER_GPTQ},
         "ptxgen_files_layer: the form 1 is none that may be chosen of kind 0"},
        {{.kind = PTXGEN_LAYER_W8, .form = PTXGEN_LAYER_BLOCKS},
         "ptxgen_files_layer: the form 13 is none that may be chosen of kind 2"},
        {{.kind = PTXGEN_LAYER_SPARSE24, .form = PTXGEN_LAYER_PACKED},
         "ptxgen_files_layer: the form 6 is none that may be chosen of kind 3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuses(files, "gptq", &rows[i].choice, PTXGEN_ERROR_INVALID_ARGUMENT, rows[i].says);
    static const char needed[] = "ptxgen_files_layer: files, name and layer must be given";
    ptxgen_error err;
    refuses(NULL, "gptq", NULL, PTXGEN_ERROR_INVALID_ARGUMENT, needed);
    refuses(files, NULL, NULL, PTXGEN_ERROR_INVALID_ARGUMENT, needed);
    assert_int_equal(ptxgen_files_layer(files, "gptq", NULL, NULL, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(err.message, needed);
    char name[2000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    static const ptxgen_layer_choice sparse = {.kind = PTXGEN_LAYER_SPARSE24};
    refuses(files, name, &sparse, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer's name of 1999 bytes, of which there may be 1016");
    ptxgen_layer layer;
    assert_int_equal(ptxgen_files_layer(files, name, NULL, &layer, &err), PTXGEN_ERROR_NOT_FOUND);
    ptxgen_files_close(files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_finds_the_layer_that_the_file_has),
        cmocka_unit_test(a_choice_goes_before_what_the_file_says),
        cmocka_unit_test(all_layers_of_a_file_are_listed),
        cmocka_unit_test(a_name_that_finds_nothing_is_answered_with_the_nearest),
        cmocka_unit_test(tensors_that_no_family_multiplies_are_named),
        cmocka_unit_test(scales_and_zero_points_of_eight_bits_are_checked),
        cmocka_unit_test(choices_and_arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, bed_setup, bed_teardown);
}
