/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each option of each family sets the fields that it names and no other, with values that differ
 * from option to option; an option without a row here fails, and so does a family.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/cli/family.h"

#include <ptxgen/dense.h>
#include <ptxgen/marlin.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/quantise.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FIELDS = 12 };

/* A whole number in the options' struct; bytes 0: there is none. */
struct field {
    size_t offset, bytes;
    int64_t value;
};

static const struct row {
    const char *family, *option, *argument; /* NULL: it takes none */
    struct field fields[MOST_FIELDS];
} rows[] = {
/* A member of the family's spec or variant. */
#define OF(part, type, member, value)                                                              \
    {                                                                                              \
        offsetof(struct family_options, part) + offsetof(type, member),                            \
            sizeof(((type *)NULL)->member), value                                                  \
    }
#define SPEC(member, value) OF(spec, ptxgen_marlin_spec, member, value)
#define TILE(member, value) OF(tile, ptxgen_tile, member, value)
    {"marlin", "k", "320", {SPEC(k, 320)}},
    {"marlin", "n", "456", {SPEC(n, 456)}},
    {"marlin", "group-size", "48", {SPEC(group_size, 48)}},
    {"marlin", "group-size", "-1", {SPEC(group_size, PTXGEN_W4_PER_CHANNEL)}},
    {"marlin", "max-m", "71", {SPEC(max_m, 71)}},
    {"marlin", "type", "bf16", {SPEC(type, PTXGEN_BF16)}},
    {"marlin", "type", "f16", {SPEC(type, PTXGEN_F16)}},
    {"marlin", "zeros", NULL, {SPEC(zeros, 1)}},
    {"marlin", "act-order", NULL, {SPEC(act_order, 1)}},
    {"marlin", "swiglu", NULL, {SPEC(epilogue, PTXGEN_EPILOGUE_SWIGLU)}},
    {"marlin", "activation", "none", {SPEC(activation, PTXGEN_ACTIVATION_NONE)}},
    {"marlin", "activation", "silu", {SPEC(activation, PTXGEN_ACTIVATION_SILU)}},
    {"marlin", "activation", "gelu", {SPEC(activation, PTXGEN_ACTIVATION_GELU)}},
    {"marlin", "activation", "gelu-tanh", {SPEC(activation, PTXGEN_ACTIVATION_GELU_TANH)}},
    {"marlin", "bias", NULL, {SPEC(bias, 1)}},
    {"marlin", "residual", NULL, {SPEC(residual, 1)}},
    {"marlin",
     "tile",
     "tile_m=11,warp_n=12,wn=13,wk=14,stages=15,steps=16,ctas=17,pass_m=18,kind=19,cluster=20",
     {TILE(tile_m, 11), TILE(warp_n, 12), TILE(wn, 13), TILE(wk, 14), TILE(stages, 15),
      TILE(steps, 16), TILE(ctas, 17), TILE(pass_m, 18), TILE(kind, 19), TILE(cluster, 20)}},
#undef SPEC
#undef TILE
#define SPEC(member, value) OF(spec, ptxgen_rmsnorm_q4k_spec, member, value)
#define TILE(member, value) OF(tile, ptxgen_rmsnorm_q4k_variant, member, value)
    {"rmsnorm_q4k", "k", "320", {SPEC(k, 320)}},
    {"rmsnorm_q4k", "n", "456", {SPEC(n[0], 456)}},
    {"rmsnorm_q4k", "n", "31,32,33", {SPEC(n[0], 31), SPEC(n[1], 32), SPEC(n[2], 33)}},
    {"rmsnorm_q4k", "epsilon", "0.125", {SPEC(epsilon, 0x3E000000)}},
    {"rmsnorm_q4k", "x-type", "bf16", {SPEC(x_type, PTXGEN_BF16)}},
    {"rmsnorm_q4k", "x-type", "f32", {SPEC(x_type, PTXGEN_F32)}},
    {"rmsnorm_q4k", "y-type", "bf16", {SPEC(y_type, PTXGEN_BF16)}},
    {"rmsnorm_q4k", "y-type", "f32", {SPEC(y_type, PTXGEN_F32)}},
    {"rmsnorm_q4k", "residual", NULL, {SPEC(residual, 1)}},
    {"rmsnorm_q4k", "residual-out", NULL, {SPEC(residual, 1), SPEC(residual_out, 1)}},
    {"rmsnorm_q4k", "bias", NULL, {SPEC(bias, 1)}},
    {"rmsnorm_q4k", "swiglu", NULL, {SPEC(epilogue, PTXGEN_EPILOGUE_SWIGLU)}},
    {"rmsnorm_q4k", "max-m", "5", {SPEC(max_m, 5)}},
#undef SPEC
#undef TILE
#define SPEC(member, value) OF(spec, ptxgen_w8a8_spec, member, value)
#define TILE(member, value) OF(tile, ptxgen_tile, member, value)
    {"w8a8", "k", "320", {SPEC(k, 320)}},
    {"w8a8", "n", "456", {SPEC(n, 456)}},
    {"w8a8", "w-stride", "336", {SPEC(w_stride, 336)}},
    {"w8a8", "min-m", "3", {SPEC(min_m, 3)}},
    {"w8a8", "max-m", "71", {SPEC(max_m, 71)}},
    {"w8a8", "codes", "128,126", {SPEC(q_min, -128), SPEC(q_max, 126)}},
    {"w8a8", "codes", "e4m3", {SPEC(codes, PTXGEN_W8A8_E4M3)}},
    {"w8a8", "dtype", "bf16", {SPEC(x_type, PTXGEN_BF16), SPEC(y_type, PTXGEN_BF16)}},
    {"w8a8", "dtype", "f32", {SPEC(x_type, PTXGEN_F32), SPEC(y_type, PTXGEN_F32)}},
    {"w8a8", "dtype", "f64", {SPEC(x_type, PTXGEN_F64), SPEC(y_type, PTXGEN_F64)}},
    {"w8a8", "x-type", "bf16", {SPEC(x_type, PTXGEN_BF16)}},
    {"w8a8", "y-type", "f32", {SPEC(y_type, PTXGEN_F32)}},
    {"w8a8", "scales", "dynamic", {SPEC(scales, PTXGEN_W8A8_DYNAMIC)}},
    {"w8a8", "scales", "tensor", {SPEC(scales, PTXGEN_W8A8_TENSOR)}},
    {"w8a8", "scales", "token", {SPEC(scales, PTXGEN_W8A8_TOKEN)}},
    {"w8a8", "scales", "quantised", {SPEC(scales, PTXGEN_W8A8_QUANTISED)}},
    {"w8a8", "asymmetric", NULL, {SPEC(asymmetric, 1)}},
    {"w8a8", "e5m2", NULL, {SPEC(w_codes, PTXGEN_W8A8_E5M2)}},
    {"w8a8", "groups", NULL, {SPEC(group, PTXGEN_W8A8_GROUP)}},
    {"w8a8", "bias", NULL, {SPEC(bias, 1)}},
    {"w8a8", "residual", NULL, {SPEC(residual, 1)}},
    {"w8a8", "swiglu", NULL, {SPEC(epilogue, PTXGEN_EPILOGUE_SWIGLU)}},
    {"w8a8", "activation", "gelu-tanh", {SPEC(activation, PTXGEN_ACTIVATION_GELU_TANH)}},
    {"w8a8",
     "tile",
     "tile_m=11,tile_n=12,wm=13,wn=14,wk=15,stages=16,fused=17,cluster=18,kind=19",
     {TILE(tile_m, 11), TILE(tile_n, 12), TILE(wm, 13), TILE(wn, 14), TILE(wk, 15),
      TILE(stages, 16), TILE(fused, 17), TILE(cluster, 18), TILE(kind, 19)}},
#undef SPEC
#undef TILE
#define SPEC(member, value) OF(spec, ptxgen_sparse24_spec, member, value)
#define TILE(member, value) OF(tile, ptxgen_tile, member, value)
    {"sparse24", "n", "456", {SPEC(n, 456)}},
    {"sparse24", "k", "320", {SPEC(k, 320)}},
    {"sparse24", "max-m", "71", {SPEC(max_m, 71)}},
    {"sparse24", "dtype", "bf16", {SPEC(type, PTXGEN_SPARSE24_BF16), SPEC(y_type, PTXGEN_BF16)}},
    {"sparse24", "dtype", "s8", {SPEC(type, PTXGEN_SPARSE24_S8), SPEC(y_type, PTXGEN_F16)}},
    {"sparse24", "y-type", "bf16", {SPEC(y_type, PTXGEN_BF16)}},
    {"sparse24", "activation", "silu", {SPEC(activation, PTXGEN_ACTIVATION_SILU)}},
    {"sparse24", "activation", "gelu", {SPEC(activation, PTXGEN_ACTIVATION_GELU)}},
    {"sparse24", "activation", "gelu-tanh", {SPEC(activation, PTXGEN_ACTIVATION_GELU_TANH)}},
    {"sparse24", "activation", "relu", {SPEC(activation, PTXGEN_ACTIVATION_RELU)}},
    {"sparse24", "bias", NULL, {SPEC(bias, 1)}},
    {"sparse24", "residual", NULL, {SPEC(residual, 1)}},
    {"sparse24", "tier", "2", {SPEC(tier, 2)}},
    {"sparse24",
     "inflate",
     NULL,
     {SPEC(tier, 1), {offsetof(struct family_options, prologue), 1, 1}}},
    {"sparse24", "plain", NULL, {SPEC(plain, 1)}},
    {"sparse24",
     "repack",
     NULL,
     {SPEC(plain, 1), {offsetof(struct family_options, prologue), 1, 1}}},
    {"sparse24",
     "tile",
     "tile_m=11,wm=12,wn=13,wk=14,cluster=15,stages=16,pass_m=17,kind=18,warp_n=19",
     {TILE(tile_m, 11), TILE(wm, 12), TILE(wn, 13), TILE(wk, 14), TILE(cluster, 15),
      TILE(stages, 16), TILE(pass_m, 17), TILE(kind, 18), TILE(warp_n, 19)}},
#undef SPEC
#undef TILE
#define SPEC(member, value) OF(spec, ptxgen_dense_spec, member, value)
#define TILE(member, value) OF(tile, ptxgen_tile, member, value)
    {"dense", "n", "456", {SPEC(n, 456)}},
    {"dense", "k", "320", {SPEC(k, 320)}},
    {"dense", "max-m", "71", {SPEC(max_m, 71)}},
    {"dense", "dtype", "bf16", {SPEC(type, PTXGEN_BF16)}},
    {"dense", "dtype", "f32", {SPEC(type, PTXGEN_F32)}},
    {"dense", "activation", "silu", {SPEC(activation, PTXGEN_ACTIVATION_SILU)}},
    {"dense", "activation", "gelu", {SPEC(activation, PTXGEN_ACTIVATION_GELU)}},
    {"dense", "activation", "gelu-tanh", {SPEC(activation, PTXGEN_ACTIVATION_GELU_TANH)}},
    {"dense", "activation", "relu", {SPEC(activation, PTXGEN_ACTIVATION_RELU)}},
    {"dense", "bias", NULL, {SPEC(bias, 1)}},
    {"dense", "residual", NULL, {SPEC(residual, 1)}},
    {"dense",
     "tile",
     "warp_m=11,warp_n=12,wm=13,wn=14,wk=15,ctas=16,stages=17,pass_m=18,kind=19,cluster=20,split="
     "21",
     {TILE(warp_m, 11), TILE(warp_n, 12), TILE(wm, 13), TILE(wn, 14), TILE(wk, 15), TILE(ctas, 16),
      TILE(stages, 17), TILE(pass_m, 18), TILE(kind, 19), TILE(cluster, 20), TILE(split, 21)}},
#undef SPEC
#undef TILE
#define SPEC(member, value) OF(spec, ptxgen_gguf_linear_spec, member, value)
    {"gguf_linear", "k", "320", {SPEC(k, 320)}},
    {"gguf_linear", "n", "456", {SPEC(n[0], 456), SPEC(w_type[0], PTXGEN_GGUF_Q4_K)}},
    {"gguf_linear",
     "w-type",
     "f32,q6_k",
     {SPEC(w_type[1], PTXGEN_GGUF_Q6_K), SPEC(w_type[2], PTXGEN_GGUF_Q6_K)}},
    {"gguf_linear", "rmsnorm", NULL, {SPEC(norm, 1), SPEC(epsilon, 0x358637BD)}},
    {"gguf_linear", "epsilon", "0.125", {SPEC(epsilon, 0x3E000000)}},
    {"gguf_linear", "x-type", "bf16", {SPEC(x_type, PTXGEN_BF16)}},
    {"gguf_linear", "y-type", "f32", {SPEC(y_type, PTXGEN_F32)}},
    {"gguf_linear", "residual", "before", {SPEC(residual, PTXGEN_GGUF_LINEAR_BEFORE)}},
    {"gguf_linear",
     "residual",
     "after",
     {SPEC(residual, PTXGEN_GGUF_LINEAR_AFTER), SPEC(epsilon, 0x358637BD)}},
    {"gguf_linear", "residual-out", NULL, {SPEC(residual_out, 1)}},
    {"gguf_linear", "bias", NULL, {SPEC(bias, 1)}},
    {"gguf_linear", "swiglu", NULL, {SPEC(epilogue, PTXGEN_EPILOGUE_SWIGLU)}},
    {"gguf_linear", "geglu", NULL, {SPEC(epilogue, PTXGEN_EPILOGUE_GEGLU)}},
    {"gguf_linear", "compute", "f16", {SPEC(compute, PTXGEN_F16)}},
    {"gguf_linear", "compute", "bf16", {SPEC(compute, PTXGEN_BF16)}},
    {"gguf_linear", "max-m", "100", {SPEC(max_m, 100)}},
#undef SPEC

#define SPEC(member, value) OF(spec, ptxgen_gguf_rows_spec, member, value)
    {"gguf_rows", "k", "320", {SPEC(k, 320)}},
    {"gguf_rows", "w-type", "Q6_K", {SPEC(w_type, PTXGEN_GGUF_Q6_K)}},
    {"gguf_rows", "w-type", "mxfp4", {SPEC(w_type, PTXGEN_GGUF_MXFP4)}},
    {"gguf_rows", "y-type", "bf16", {SPEC(y_type, PTXGEN_BF16)}},
    {"gguf_rows", "y-type", "f32", {SPEC(y_type, PTXGEN_F32)}},
    {"gguf_rows", "scale", "0.125", {SPEC(scale, 0x3E000000)}},
    {"gguf_rows", "indexed", NULL, {SPEC(indexed, 1)}},
#undef SPEC

#define SPEC(member, value) OF(spec, ptxgen_quantise_spec, member, value)
    {"quantise", "k", "320", {SPEC(k, 320)}},
    {"quantise", "x-type", "bf16", {SPEC(x_type, PTXGEN_BF16)}},
    {"quantise", "x-type", "f32", {SPEC(x_type, PTXGEN_F32)}},
    {"quantise", "codes", "128,126", {SPEC(q_min, -128), SPEC(q_max, 126)}},
    {"quantise", "codes", "e4m3", {SPEC(codes, PTXGEN_W8A8_E4M3)}},
    {"quantise", "groups", NULL, {SPEC(group, 128)}},
    {"quantise", "asymmetric", NULL, {SPEC(asymmetric, 1)}},
    {"quantise", "producer", "none", {SPEC(producer, PTXGEN_QUANTISE_NONE)}},
    {"quantise",
     "producer",
     "rmsnorm",
     {SPEC(producer, PTXGEN_QUANTISE_RMSNORM), SPEC(epsilon, 0x358637BD)}},
    {"quantise", "producer", "silu-mul", {SPEC(producer, PTXGEN_QUANTISE_SILU_MUL)}},
    {"quantise", "epsilon", "0.125", {SPEC(epsilon, 0x3E000000)}},
    {"quantise", "residual", NULL, {SPEC(residual, 1)}},
    {"quantise", "gamma-type", "bf16", {SPEC(gamma_type, PTXGEN_BF16)}},
#undef SPEC
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- parsing ---- */

/* The family's options after one of them, or after none, to be freed. */
static unsigned char *parsed(const struct family *family, const char *option, const char *argument)
{
    char name[64], *argv[] = {(char *)"ptxgen", name, (char *)(uintptr_t)argument, NULL};
    unsigned char *options = (unsigned char *)family_new_options(family);
    struct made_argp made;
    assert_non_null(options);
    snprintf(name, sizeof name, "--%s", option ? option : "");
    int argc = !option ? 1 : argument ? 3 : 2;
    assert_int_equal(argp_parse(family_argp(family, false, &made), argc, argv, ARGP_NO_EXIT, NULL, options), 0);
    return options;
}

/* The fields have their values; what else the spec has is as without the option. */
static void check_row(const struct row *row)
{
    const struct family *family = family_find(row->family);
    assert_non_null(family);
    unsigned char *plain = parsed(family, NULL, NULL);
    unsigned char *options = parsed(family, row->option, row->argument);
    for (const struct field *f = row->fields; f->bytes; f++) {
        if (memcmp(options + f->offset, &f->value, f->bytes) != 0)
            fail_msg("%s --%s %s: the field at %zu is not %lld", row->family, row->option,
                     row->argument ? row->argument : "", f->offset, (long long)f->value);
        memcpy(plain + f->offset, &f->value, f->bytes);
    }
    if (memcmp(plain + offsetof(struct family_options, spec), options + offsetof(struct family_options, spec),
               family->harness->family()->spec_bytes) != 0)
        fail_msg("%s --%s sets another field too", row->family, row->option);
    free(plain);
    free(options);
}

static void each_option_sets_the_fields_that_it_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++)
        check_row(&rows[i]);
}

static bool has_row(const char *family, const char *option)
{
    for (size_t i = 0; i < ROWS; i++)
        if (!strcmp(rows[i].family, family) && !strcmp(rows[i].option, option))
            return true;
    return false;
}

static void every_option_of_a_kernel_has_its_row(void **state)
{
    (void)state;
    const struct family *family;
    struct made_argp made;
    for (size_t f = 0; (family = family_at(f)); f++)
        for (const struct argp_option *o = family_argp(family, false, &made)->options; o->name; o++)
            if (!has_row(family->name, o->name))
                fail_msg("no row has %s --%s", family->name, o->name);
}

/* ---- shapes ---- */

/* bench and tune --shape 320x456 are --k 320 and 456 output features. */
static void a_shape_is_k_by_output_features(void **state)
{
    (void)state;
    const struct family *family;
    for (size_t f = 0; (family = family_at(f)); f++) {
        unsigned char *options = parsed(family, NULL, NULL), *wanted = parsed(family, "k", "320");
        bool has_features = option_with(family, OPTION_IS_N);
        unsigned char *n = parsed(family, has_features ? "n" : NULL, "456");
        const unsigned char *plain = options;
        size_t bytes = family->harness->family()->spec_bytes, at = offsetof(struct family_options, spec);
        for (size_t i = at; i < at + bytes; i++)
            if (n[i] != plain[i])
                wanted[i] = n[i];
        family_set_shape((struct family_options *)(void *)options, 320, 456);
        if (memcmp(options + at, wanted + at, bytes) != 0)
            fail_msg("%s: --shape 320x456 is not --k 320 --n 456", family->name);
        free(options);
        free(wanted);
        free(n);
    }
}

/* Gate and up have the features of the shape each. */
static void a_shape_with_swiglu_is_of_gate_and_up_each(void **state)
{
    (void)state;
    struct family_options *o = family_new_options(family_find("rmsnorm_q4k"));
    assert_non_null(o);
    ptxgen_rmsnorm_q4k_spec *spec = option_spec(o);
    *spec = (ptxgen_rmsnorm_q4k_spec){.k = 1, .n = {2, 3, 4}, .epilogue = PTXGEN_EPILOGUE_SWIGLU};
    family_set_shape(o, 512, 48);
    assert_int_equal(spec->k, 512);
    assert_int_equal(spec->n[0], 48);
    assert_int_equal(spec->n[1], 48);
    assert_int_equal(spec->n[2], 0);
    free(o);
}

/* ---- names in files ---- */

static const struct name {
    const char *family, *option;
    size_t offset;
} names[] = {
#define NAME(family, option, member) {#family, option, offsetof(struct family_options, names.member)}
    NAME(marlin, "safetensors", file), NAME(marlin, "layer", layer),
    NAME(marlin, "up-layer", up_layer),       NAME(marlin, "format", format),
    NAME(marlin, "input", input),             NAME(marlin, "expect", expect),
    NAME(gguf_linear, "gguf", file),          NAME(gguf_linear, "tensor", tensors),
    NAME(gguf_linear, "norm", norm),          NAME(gguf_linear, "bias-tensor", bias),
    NAME(gguf_linear, "input", input),        NAME(gguf_linear, "expect", expect),
    NAME(rmsnorm_q4k, "gguf", file),          NAME(rmsnorm_q4k, "tensor", tensors),
    NAME(rmsnorm_q4k, "norm", norm),          NAME(rmsnorm_q4k, "bias-tensor", bias),
    NAME(rmsnorm_q4k, "input", input),        NAME(rmsnorm_q4k, "expect", expect),
    NAME(w8a8, "safetensors", file),   NAME(w8a8, "layer", layer),
    NAME(w8a8, "input", input),               NAME(w8a8, "expect", expect),
    NAME(sparse24, "safetensors", file), NAME(sparse24, "layer", layer),
    NAME(sparse24, "input", input),           NAME(sparse24, "expect", expect),
};
enum { NAMES = sizeof names / sizeof *names, MOST_ARGUMENTS = 20 };

static const struct name *name_of(const char *family, const char *option)
{
    for (size_t i = 0; i < NAMES; i++)
        if (!strcmp(names[i].family, family) && !strcmp(names[i].option, option))
            return &names[i];
    return NULL;
}

/* All at once, each with its own name as its value, but of a format, which is one of a list. */
static void each_name_in_a_file_goes_where_it_belongs(void **state)
{
    (void)state;
    const struct family *family;
    for (size_t f = 0; (family = family_at(f)); f++) {
        struct made_argp made;
        const struct argp *data = family_argp(family, true, &made);
        if (!data)
            continue;
        char given[MOST_ARGUMENTS][64], *argv[MOST_ARGUMENTS] = {(char *)"ptxgen"};
        int argc = 1;
        unsigned char *options = parsed(family, NULL, NULL);
        for (const struct argp_option *o = data->options; o->name; o++) {
            const char *value = strcmp(o->name, "format") ? o->name : "awq";
            if (!name_of(family->name, o->name))
                fail_msg("no row has %s --%s", family->name, o->name);
            snprintf(given[argc], sizeof given[argc], "--%s=%s", o->name, value);
            argv[argc] = given[argc];
            argc++;
        }
        assert_int_equal(
            argp_parse(data, argc, argv, ARGP_NO_EXIT, NULL, options), 0);
        for (const struct argp_option *o = data->options; o->name; o++) {
            const char *value;
            memcpy(&value, options + name_of(family->name, o->name)->offset, sizeof value);
            assert_string_equal(value, strcmp(o->name, "format") ? o->name : "awq");
        }
        free(options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_option_sets_the_fields_that_it_names),
        cmocka_unit_test(every_option_of_a_kernel_has_its_row),
        cmocka_unit_test(a_shape_is_k_by_output_features),
        cmocka_unit_test(a_shape_with_swiglu_is_of_gate_and_up_each),
        cmocka_unit_test(each_name_in_a_file_goes_where_it_belongs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
