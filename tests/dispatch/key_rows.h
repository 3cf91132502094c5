/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every field of the structs that a kernel is found by, each with another value that it may have.
 * Bytes without a row fail the test of keys, so that a new field gets its row here.
 */
#ifndef PTXGEN_TESTS_DISPATCH_KEY_ROWS_H
#define PTXGEN_TESTS_DISPATCH_KEY_ROWS_H

#include <ptxgen/dense.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/marlin_repack.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/quantise.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <stddef.h>

enum row_kind {
    ROW_KEY,      /* another value is another kernel */
    ROW_RESERVED, /* any value but 0 is refused */
    ROW_PADDING   /* no field: what is there means nothing */
};

struct row {
    const char *field; /* NULL past the last */
    enum row_kind kind;
    size_t offset, bytes;
    uint64_t other;   /* the value, as an unsigned number of so many bytes */
    const void *spec; /* one that the value is good in; NULL: the family's */
};

#define KEY_IN(type, member, other, spec)                                                          \
    {                                                                                              \
#member, ROW_KEY, offsetof(type, member), sizeof(((type *)0)->member), (other), (spec)     \
    }
#define KEY(type, member, other) KEY_IN(type, member, other, NULL)
#define RESERVED(type, member)                                                                     \
    {                                                                                              \
#member, ROW_RESERVED, offsetof(type, member), sizeof(((type *)0)->member), 1, NULL        \
    }
/* From the end of one member to the next. */
#define PADDING(type, member, next)                                                                \
    {                                                                                              \
        "after " #member, ROW_PADDING, offsetof(type, member) + sizeof(((type *)0)->member),       \
            offsetof(type, next) - offsetof(type, member) - sizeof(((type *)0)->member), 0, NULL   \
    }
enum { ROWS = 26 };

/* A family, a spec that stays good with every row that has none of its own, and the rows. */
struct keyed {
    const ptxgen_family *(*family)(void);
    const void *spec;
    struct row rows[ROWS];
};

static const ptxgen_rmsnorm_q4k_spec key_rmsnorm_q4k = {.k = 256,
                                                        .n = {64, 64},
                                                        .epsilon = 1e-5f,
                                                        .x_type = PTXGEN_F16,
                                                        .y_type = PTXGEN_F16,
                                                        .residual = 1};
static const ptxgen_gguf_linear_spec key_gguf_linear = {.k = 256,
                                                        .n = {64, 64},
                                                        .epsilon = 1e-5f,
                                                        .w_type = {PTXGEN_GGUF_Q4_K,
                                                                   PTXGEN_GGUF_Q6_K,
                                                                   PTXGEN_GGUF_Q8_0},
                                                        .x_type = PTXGEN_F16,
                                                        .y_type = PTXGEN_F16,
                                                        .norm = PTXGEN_GGUF_LINEAR_RMSNORM,
                                                        .residual = PTXGEN_GGUF_LINEAR_BEFORE};
static const ptxgen_marlin_spec key_marlin = {
    .k = 256, .n = 256, .group_size = 128, .type = PTXGEN_F16};
static const ptxgen_marlin_repack_spec key_repack = {
    .k = 256, .n = 64, .group_size = 128, .type = PTXGEN_F16, .scale_type = PTXGEN_F16};
static const ptxgen_w8a8_spec key_w8a8 = {
    .k = 64, .n = 64, .q_min = -127, .q_max = 127, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
/* e4m3 codes have no range. */
static const ptxgen_w8a8_spec key_w8a8_without_range = {
    .k = 64, .n = 64, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
static const ptxgen_w8a8_spec key_w8a8_of_e4m3 = {
    .k = 64, .n = 64, .x_type = PTXGEN_F16, .y_type = PTXGEN_F32, .codes = PTXGEN_W8A8_E4M3};
static const ptxgen_w8a8_spec key_w8a8_of_e4m3_and_bias = {.k = 64,
                                                           .n = 64,
                                                           .x_type = PTXGEN_F16,
                                                           .y_type = PTXGEN_F32,
                                                           .codes = PTXGEN_W8A8_E4M3,
                                                           .bias = 1};
static const ptxgen_quantise_spec key_quantise = {.k = 64,
                                                  .q_min = -127,
                                                  .q_max = 127,
                                                  .x_type = PTXGEN_F16,
                                                  .producer = PTXGEN_QUANTISE_RMSNORM};
static const ptxgen_quantise_spec key_quantise_without_range = {
    .k = 64, .x_type = PTXGEN_F16, .producer = PTXGEN_QUANTISE_RMSNORM};
static const ptxgen_gguf_rows_spec key_gguf_rows = {
    .k = 256, .scale = 1, .w_type = PTXGEN_GGUF_Q4_K, .y_type = PTXGEN_F16};
static const ptxgen_dense_spec key_dense = {.n = 64, .k = 64, .type = PTXGEN_F16};
static const ptxgen_sparse24_spec key_sparse24 = {
    .n = 64, .k = 64, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_F16};

#define ROW(member, other) KEY(ptxgen_rmsnorm_q4k_spec, member, other)
static const struct keyed keyed_rmsnorm_q4k = {
    ptxgen_rmsnorm_q4k_family,
    &key_rmsnorm_q4k,
    {ROW(k, 512), ROW(n[0], 128), ROW(n[1], 128), ROW(n[2], 64),
     ROW(epsilon, 0x3a83126f), /* 0.001 */
     ROW(max_m, 1), ROW(x_type, PTXGEN_BF16), ROW(y_type, PTXGEN_F32),
     ROW(epilogue, PTXGEN_EPILOGUE_SWIGLU), ROW(bias, 1), ROW(residual, 0), ROW(residual_out, 1),
     RESERVED(ptxgen_rmsnorm_q4k_spec, reserved)}};
#undef ROW

#define ROW(member, other) KEY(ptxgen_gguf_linear_spec, member, other)
static const struct keyed keyed_gguf_linear = {
    ptxgen_gguf_linear_family,
    &key_gguf_linear,
    {ROW(k, 512), ROW(n[0], 128), ROW(n[1], 128), ROW(n[2], 64),
     ROW(epsilon, 0x3a83126f), /* 0.001 */
     ROW(max_m, 1), ROW(w_type[0], PTXGEN_GGUF_Q5_K), ROW(w_type[1], PTXGEN_GGUF_Q2_K),
     ROW(w_type[2], PTXGEN_GGUF_Q5_0), ROW(x_type, PTXGEN_BF16), ROW(y_type, PTXGEN_F32),
     ROW(norm, 0), ROW(residual, PTXGEN_GGUF_LINEAR_AFTER), ROW(residual_out, 1),
     ROW(epilogue, PTXGEN_EPILOGUE_GEGLU), ROW(bias, 1), ROW(compute, PTXGEN_BF16),
     RESERVED(ptxgen_gguf_linear_spec, reserved)}};
#undef ROW

#define ROW(member, other) KEY(ptxgen_marlin_spec, member, other)
static const struct keyed keyed_marlin = {
    ptxgen_marlin_family,
    &key_marlin,
    {ROW(k, 512), ROW(n, 512), ROW(group_size, 64), ROW(max_m, 16), ROW(type, PTXGEN_BF16),
     ROW(zeros, 1), ROW(act_order, 1), ROW(epilogue, PTXGEN_EPILOGUE_SWIGLU),
     ROW(activation, PTXGEN_ACTIVATION_GELU), ROW(bias, 1), ROW(residual, 1),
     RESERVED(ptxgen_marlin_spec, reserved)}};
#undef ROW

#define ROW(member, other) KEY(ptxgen_marlin_repack_spec, member, other)
static const struct keyed keyed_repack = {
    ptxgen_marlin_repack_family,
    &key_repack,
    {ROW(k, 512), ROW(n, 128), ROW(group_size, 64), ROW(type, PTXGEN_BF16), ROW(zeros, 1),
     ROW(act_order, 1), ROW(epilogue, PTXGEN_EPILOGUE_SWIGLU), ROW(format, PTXGEN_W4_GPTQ_V2),
     ROW(scale_type, PTXGEN_F32), RESERVED(ptxgen_marlin_repack_spec, reserved)}};
#undef ROW

#define ROW(member, other) KEY(ptxgen_gguf_rows_spec, member, other)
static const struct keyed keyed_gguf_rows = {
    ptxgen_gguf_rows_family,
    &key_gguf_rows,
    {ROW(k, 512), ROW(scale, 0x40000000), /* 2 */
     ROW(w_type, PTXGEN_GGUF_Q6_K), ROW(y_type, PTXGEN_BF16), ROW(indexed, 1),
     RESERVED(ptxgen_gguf_rows_spec, reserved)}};
#undef ROW

#define ROW(member, other) KEY(ptxgen_quantise_spec, member, other)
static const struct keyed keyed_quantise = {
    ptxgen_quantise_family,
    &key_quantise,
    {ROW(k, 128), ROW(epsilon, 0x3a83126f), /* 0.001 */
     ROW(q_min, 0xFF80), ROW(q_max, 126), ROW(x_type, PTXGEN_BF16),
     KEY_IN(ptxgen_quantise_spec, codes, PTXGEN_W8A8_E4M3, &key_quantise_without_range),
     ROW(group, PTXGEN_QUANTISE_GROUP), ROW(asymmetric, 1),
     ROW(producer, PTXGEN_QUANTISE_SILU_MUL), ROW(residual, 1), ROW(gamma_type, PTXGEN_F16),
     RESERVED(ptxgen_quantise_spec, reserved)}};
#undef ROW

#define ROW(member, other) KEY(ptxgen_w8a8_spec, member, other)
static const struct keyed keyed_w8a8 = {
    ptxgen_w8a8_family,
    &key_w8a8,
    {ROW(k, 128), ROW(n, 128), ROW(w_stride, 80), ROW(min_m, 2), ROW(max_m, 16),
     ROW(q_min, (uint16_t)-128), ROW(q_max, 100), ROW(x_type, PTXGEN_BF16), ROW(y_type, PTXGEN_F32),
     ROW(scales, PTXGEN_W8A8_TENSOR), ROW(asymmetric, 1), ROW(bias, 1),
     KEY_IN(ptxgen_w8a8_spec, codes, PTXGEN_W8A8_E4M3, &key_w8a8_without_range),
     ROW(epilogue, PTXGEN_EPILOGUE_SWIGLU), ROW(activation, PTXGEN_ACTIVATION_GELU),
     ROW(residual, 1), KEY_IN(ptxgen_w8a8_spec, group, PTXGEN_W8A8_GROUP, &key_w8a8_of_e4m3),
     KEY_IN(ptxgen_w8a8_spec, w_codes, PTXGEN_W8A8_E5M2, &key_w8a8_of_e4m3_and_bias),
     RESERVED(ptxgen_w8a8_spec, reserved)}};
#undef ROW

#define ROW(member, other) KEY(ptxgen_dense_spec, member, other)
static const struct keyed keyed_dense = {
    ptxgen_dense_family,
    &key_dense,
    {ROW(n, 128), ROW(k, 128), ROW(max_m, 8), ROW(type, PTXGEN_BF16),
     ROW(activation, PTXGEN_ACTIVATION_RELU), ROW(bias, 1), ROW(residual, 1)}};
#undef ROW

#define ROW(member, other) KEY(ptxgen_sparse24_spec, member, other)
static const struct keyed keyed_sparse24 = {
    ptxgen_sparse24_family,
    &key_sparse24,
    {ROW(n, 128), ROW(k, 128), ROW(max_m, 8), ROW(type, PTXGEN_SPARSE24_F16),
     ROW(y_type, PTXGEN_BF16), ROW(activation, PTXGEN_ACTIVATION_RELU), ROW(bias, 1),
     ROW(residual, 1), ROW(tier, 2), ROW(plain, 1), RESERVED(ptxgen_sparse24_spec, reserved)}};
#undef ROW

/* The target, from sm_90 without a suffix, on a device of sm_90. */
#define ROW(member, other) KEY(ptxgen_target, member, other)
static const struct row target_rows[ROWS] = {
    ROW(ptx.sm, 80),
    ROW(ptx.suffix, 'a'),
    PADDING(ptxgen_target, ptx.suffix, ptx.max_ptx),
    ROW(ptx.max_ptx, 81),
    ROW(multiprocessors, 131), /* as MPS and MIG leave them */
    ROW(shared_per_cta, 163840)};
#undef ROW

#endif
