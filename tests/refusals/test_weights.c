/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule of weights in memory: 4-bit checkpoints and their packed form, 2:4 weights, codes. */
#include "tests/marlin/packing.h"

#include <ptxgen/marlin_repack.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <math.h>

#define INVALID PTXGEN_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED PTXGEN_ERROR_UNSUPPORTED
#define MALFORMED PTXGEN_ERROR_MALFORMED
#define REFUSED(status, call, sentence) assert_refusal(call, &err, status, sentence)
#define TAKEN(call) assert_ok(call, &err)

/* ---- 4-bit matrices ---- */

enum { K = 64, N = 64, GROUP = 32 };

static ptxgen_w4_matrix some_matrix(bool zeros, bool act_order)
{
    struct random r = {6};
    return matrix_random(&r, K, N, GROUP, PTXGEN_F16, zeros, act_order);
}

static void matrices_that_break_a_rule_are_refused(void **state)
{
    (void)state;
    ptxgen_w4_matrix m = some_matrix(true, true), bad;
    ptxgen_w4_info info;
    ptxgen_error err = {0};
#define CHANGED(change, status, sentence)                                                          \
    bad = m;                                                                                       \
    change;                                                                                        \
    REFUSED(status, ptxgen_w4_describe_matrix(&bad, &info, &err), sentence)
    TAKEN(ptxgen_w4_describe_matrix(&m, &info, &err));
    REFUSED(INVALID, ptxgen_w4_describe_matrix(NULL, &info, &err), "matrix is NULL");
    REFUSED(INVALID, ptxgen_w4_describe_matrix(&m, NULL, &err), "info is NULL");
    CHANGED(bad.codes = NULL, INVALID, "codes is NULL");
    CHANGED(bad.scales = NULL, INVALID, "scales is NULL");
    CHANGED(bad.k = 0, INVALID, "K = 0 is not between 1 and 2147483647");
    CHANGED(bad.k = 2147483648, INVALID, "K = 2147483648 is not between 1 and 2147483647");
    CHANGED(bad.n = 0, INVALID, "N = 0 is not between 1 and 2147483647");
    CHANGED(bad.group_size = 0, UNSUPPORTED,
            "the group size 0 is neither -1 nor a divisor of K = 64");
    CHANGED(bad.group_size = -2, UNSUPPORTED,
            "the group size -2 is neither -1 nor a divisor of K = 64");
    CHANGED(bad.group_size = 48, UNSUPPORTED,
            "the group size 48 is neither -1 nor a divisor of K = 64");
    CHANGED(bad.scale_type = PTXGEN_F64, INVALID, "3 is not a type of scales");
    m.codes[2 * N + 5] = 15;
    TAKEN(ptxgen_w4_describe_matrix(&m, &info, &err));
    m.codes[2 * N + 5] = 16;
    REFUSED(INVALID, ptxgen_w4_describe_matrix(&m, &info, &err), "codes[2, 5] is 16, not 0 to 15");
    m.codes[2 * N + 5] = 0;
    m.zeros[N + 7] = 16;
    REFUSED(INVALID, ptxgen_w4_describe_matrix(&m, &info, &err), "zeros[1, 7] is 16, not 0 to 15");
    m.zeros[N + 7] = 15;
    m.g_idx[9] = 2;
    REFUSED(MALFORMED, ptxgen_w4_describe_matrix(&m, &info, &err),
            "g_idx[9] is 2, but there are groups 0 to 1");
    matrix_free(&m);
#undef CHANGED
}

static void rows_are_sorted_into_equal_groups_elsewhere(void **state)
{
    (void)state;
    ptxgen_w4_matrix m = some_matrix(false, true), sorted = m;
    uint32_t order[K];
    ptxgen_error err = {0};
    REFUSED(INVALID, ptxgen_w4_sort_rows(&m, &sorted, order, &err),
            "the codes of sorted are those of matrix");
    sorted.codes = allocate(K * N);
    REFUSED(INVALID, ptxgen_w4_sort_rows(&m, &sorted, NULL, &err), "order is NULL");
    TAKEN(ptxgen_w4_sort_rows(&m, &sorted, order, &err));
    for (size_t k = 0; k < K; k++)
        m.g_idx[k] = k > 20;
    REFUSED(UNSUPPORTED, ptxgen_w4_sort_rows(&m, &sorted, order, &err),
            "g_idx gives group 1 more than its 32 rows (row 53 is one too many), so rows cannot be "
            "sorted into equal groups");
    free(sorted.codes);
    matrix_free(&m);
}

/* ---- 4-bit checkpoints ---- */

static void checkpoints_that_break_a_rule_are_refused(void **state)
{
    (void)state;
    ptxgen_w4_matrix m = some_matrix(true, true);
    ptxgen_w4_checkpoint good = checkpoint_of(&m, PTXGEN_W4_GPTQ_V1), c;
    ptxgen_w4_info info;
    ptxgen_error err = {0};
#define CHANGED(change, status, sentence)                                                          \
    c = good;                                                                                      \
    change;                                                                                        \
    REFUSED(status, ptxgen_w4_describe(&c, &info, &err), sentence)
    REFUSED(INVALID, ptxgen_w4_describe(&good, NULL, &err), "info is NULL");
    CHANGED(c.format = (ptxgen_w4_format)5, INVALID, "5 is not the number of a 4-bit format");
    CHANGED(c.scales.dtype = PTXGEN_W4_I32, MALFORMED,
            "scales is of dtype int32, not f16, bf16 or f32");
    CHANGED(c.scales.shape[0] = 0, MALFORMED, "scales is [0, 64], which is empty");
    CHANGED(c.scales.shape[1] = 0, MALFORMED, "scales is [2, 0], which is empty");
    CHANGED(c.weights.dtype = PTXGEN_W4_I64, MALFORMED, "qweight is of dtype int64, not int32");
    CHANGED(c.weights.shape[1] = 63, MALFORMED,
            "qweight is [8, 63], but K = 64, N = 64 and 2 groups make it [8, 64]");
    CHANGED(c.weights.shape[0] = 268435456, INVALID,
            "K = 2147483648 is not between 1 and 2147483647");
    CHANGED(c.scales.shape[1] = 60, UNSUPPORTED, "N = 60 is not a multiple of 8, as gptq needs");
    checkpoint_free(&good);

    good = checkpoint_of(&m, PTXGEN_W4_PACK_QUANTIZED);
    TAKEN(ptxgen_w4_describe(&good, &info, &err));
    CHANGED(c.shape.shape[0] = 3, MALFORMED, "weight_shape is not a vector of 2 int32 or int64");
    CHANGED(c.shape.dtype = PTXGEN_W4_F32, MALFORMED,
            "weight_shape is not a vector of 2 int32 or int64");
    int64_t shape[2] = {N, K + 1};
    memcpy(good.shape.data, shape, sizeof shape);
    REFUSED(MALFORMED, ptxgen_w4_describe(&good, &info, &err),
            "weight_shape is [64, 65], but weight_packed is [64, 8] and has 64 rows");
    checkpoint_free(&good);
    matrix_free(&m);
#undef CHANGED
}

static void unpacked_matrices_have_room_for_what_is_not_plain(void **state)
{
    (void)state;
    ptxgen_w4_matrix m = some_matrix(true, true), bad;
    ptxgen_w4_checkpoint c = checkpoint_of(&m, PTXGEN_W4_GPTQ_V2);
    ptxgen_error err = {0};
#define CHANGED(change, sentence)                                                                  \
    bad = m;                                                                                       \
    change;                                                                                        \
    REFUSED(INVALID, ptxgen_w4_unpack(&c, &bad, &err), sentence)
    TAKEN(ptxgen_w4_unpack(&c, &m, &err));
    CHANGED(bad.codes = NULL, "codes is NULL");
    CHANGED(bad.scales = NULL, "scales is NULL");
    CHANGED(bad.zeros = NULL, "zeros is NULL, but not every zero point is 8");
    CHANGED(bad.g_idx = NULL, "g_idx is NULL, but the rows are not in the order of their groups");
    checkpoint_free(&c);
    matrix_free(&m);
#undef CHANGED
}

static void layouts_are_of_equal_groups_and_formats_that_can_hold_them(void **state)
{
    (void)state;
    ptxgen_w4_info good = {.k = K, .n = N, .groups = 2, .scale_type = PTXGEN_F16}, info;
    ptxgen_w4_checkpoint c;
    ptxgen_error err = {0};
#define CHANGED(change, format, status, sentence)                                                  \
    info = good;                                                                                   \
    change;                                                                                        \
    REFUSED(status, ptxgen_w4_layout(&info, format, &c, &err), sentence)
    TAKEN(ptxgen_w4_layout(&good, PTXGEN_W4_AWQ, &c, &err));
    REFUSED(INVALID, ptxgen_w4_layout(&good, PTXGEN_W4_AWQ, NULL, &err), "checkpoint is NULL");
    CHANGED(info.groups = 0, PTXGEN_W4_AWQ, INVALID, "0 groups do not divide K = 64");
    CHANGED(info.groups = 3, PTXGEN_W4_AWQ, INVALID, "3 groups do not divide K = 64");
    CHANGED(info.act_order = true, PTXGEN_W4_AWQ, UNSUPPORTED,
            "awq has no g_idx, so it cannot hold a matrix with act-order");
    CHANGED(info.n = 72, PTXGEN_W4_MARLIN, UNSUPPORTED,
            "N = 72 is not a multiple of 64, as marlin needs");
    CHANGED(info.k = 60, PTXGEN_W4_GPTQ_V2, UNSUPPORTED,
            "K = 60 is not a multiple of 8, as gptq_v2 needs");
    info = good, info.act_order = true;
    TAKEN(ptxgen_w4_layout(&info, PTXGEN_W4_GPTQ_V1, &c, &err));
    TAKEN(ptxgen_w4_layout(&info, PTXGEN_W4_MARLIN, &c, &err));
#undef CHANGED
}

static void outputs_have_every_tensor_of_their_format(void **state)
{
    (void)state;
    ptxgen_w4_matrix m = some_matrix(true, true);
    ptxgen_w4_checkpoint gptq = checkpoint_of(&m, PTXGEN_W4_GPTQ_V1),
                         packed = checkpoint_of(&m, PTXGEN_W4_PACK_QUANTIZED), c;
    struct random r = {8};
    ptxgen_w4_matrix other = matrix_random(&r, 2 * K, N, GROUP, PTXGEN_BF16, true, true);
    ptxgen_w4_checkpoint of_other = checkpoint_of(&other, PTXGEN_W4_GPTQ_V1);
    ptxgen_error err = {0};
#define CHANGED(from, change, sentence)                                                            \
    c = from;                                                                                      \
    change;                                                                                        \
    REFUSED(INVALID, ptxgen_w4_pack(&m, &c, &err), sentence)
    REFUSED(INVALID, ptxgen_w4_pack(&m, NULL, &err), "the output checkpoint is NULL");
    CHANGED(gptq, c.zeros.data = NULL, "qzeros is needed, but its data is NULL");
    CHANGED(gptq, c.g_idx.data = NULL, "g_idx is needed, but its data is NULL");
    CHANGED(gptq, c.zeros.dtype = PTXGEN_W4_I8,
            "qzeros of the output is int8 [2, 8], not int32 [2, 8]");
    CHANGED(packed, c.zeros.data = NULL, "weight_zero_point is needed, but its data is NULL");
    CHANGED(packed, c.shape.data = NULL, "weight_shape is needed, but its data is NULL");
    CHANGED(packed, c.shape.dtype = PTXGEN_W4_I32,
            "weight_shape of the output is int32 [2, 1], not int64 [2, 1]");
    CHANGED(packed, c.shape.shape[0] = 1,
            "weight_shape of the output is int64 [1, 1], not int64 [2, 1]");
    CHANGED(of_other, (void)0, "qweight of the output is int32 [16, 64], not int32 [8, 64]");
    ptxgen_w4_info info;
    TAKEN(ptxgen_w4_describe_matrix(&m, &info, &err));
    ptxgen_w4_checkpoint marlin = checkpoint_allocate(&info, PTXGEN_W4_MARLIN);
    REFUSED(UNSUPPORTED, ptxgen_w4_pack(&m, &marlin, &err),
            "marlin has no g_idx; sort the rows of a matrix with act-order first");
    uint32_t order[K];
    REFUSED(INVALID, ptxgen_w4_to_marlin(&gptq, &packed, order, NULL, &err),
            "the output's format is 3, not PTXGEN_W4_MARLIN");
    REFUSED(INVALID, ptxgen_w4_to_marlin(&gptq, &marlin, NULL, NULL, &err),
            "order is NULL, but the rows are not in the order of their groups");
    TAKEN(ptxgen_w4_to_marlin(&gptq, &marlin, order, NULL, &err));
    checkpoint_free(&marlin);
    checkpoint_free(&of_other);
    checkpoint_free(&packed);
    checkpoint_free(&gptq);
    matrix_free(&other);
    matrix_free(&m);
#undef CHANGED
}

/* ---- what marlin's kernels read ---- */

static ptxgen_marlin_spec full_spec(void)
{
    return (ptxgen_marlin_spec){
        .k = K, .n = N, .group_size = GROUP, .type = PTXGEN_F16, .zeros = 1, .act_order = 1};
}

static void packing_takes_weights_that_the_spec_describes(void **state)
{
    (void)state;
    ptxgen_marlin_spec good = full_spec(), spec;
    ptxgen_w4_matrix m = some_matrix(true, true);
    ptxgen_w4_checkpoint c = checkpoint_of(&m, PTXGEN_W4_GPTQ_V1);
    ptxgen_marlin_packed p;
    ptxgen_error err = {0};
#define CHANGED(change, up, sentence)                                                              \
    spec = good;                                                                                   \
    change;                                                                                        \
    p = packed_allocate(&spec);                                                                    \
    REFUSED(INVALID, ptxgen_marlin_pack(&spec, &c, up, &p, NULL, &err), sentence);                 \
    packed_free(&p)
    CHANGED(spec.k = 128, NULL,
            "marlin: weights has K = 64, N = 64 and groups of 32, but the spec says K = 128, N = "
            "64 and groups of 32");
    CHANGED(spec.group_size = 64, NULL,
            "marlin: weights has K = 64, N = 64 and groups of 32, but the spec says K = 64, N = 64 "
            "and groups of 64");
    CHANGED((spec.n = 128, spec.epilogue = PTXGEN_EPILOGUE_SWIGLU), &c,
            "marlin: gate has K = 64, N = 64 and groups of 32, but the spec says K = 64, N = 128 "
            "and groups of 32");
    CHANGED(spec.zeros = 0, NULL,
            "marlin: weights has zero points other than 8, but the spec has no zeros");
    CHANGED(spec.act_order = 0, NULL,
            "marlin: weights has rows in another order than their groups', but the spec has no "
            "act_order");
    CHANGED(spec.epilogue = PTXGEN_EPILOGUE_SWIGLU, NULL, "marlin: up is NULL, but SwiGLU needs it");
    CHANGED((void)0, &c, "marlin: up is given, but the spec has no SwiGLU");
    p = packed_allocate(&good);
    TAKEN(ptxgen_marlin_pack(&good, &c, NULL, &p, NULL, &err));
    packed_free(&p);
    checkpoint_free(&c);
    matrix_free(&m);
#undef CHANGED
}

static void packed_weights_have_the_arrays_of_their_spec(void **state)
{
    (void)state;
    const ptxgen_marlin_spec spec = full_spec();
    ptxgen_w4_matrix m = some_matrix(true, true), bad;
    ptxgen_w4_checkpoint c = checkpoint_of(&m, PTXGEN_W4_GPTQ_V1);
    ptxgen_marlin_packed good = packed_allocate(&spec), p;
    ptxgen_error err = {0};
#define CHANGED(change, sentence)                                                                  \
    p = good;                                                                                      \
    change;                                                                                        \
    REFUSED(INVALID, ptxgen_marlin_check_packed(&spec, &p, &err), sentence)
    TAKEN(ptxgen_marlin_pack(&spec, &c, NULL, &good, NULL, &err));
    TAKEN(ptxgen_marlin_check_packed(&spec, &good, &err));
    REFUSED(INVALID, ptxgen_marlin_packed_layout(&spec, NULL, &err), "marlin: packed is NULL");
    REFUSED(INVALID, ptxgen_marlin_check_packed(&spec, NULL, &err), "marlin: packed is NULL");
    CHANGED(p.codes = NULL, "marlin: packed.codes is NULL");
    CHANGED(p.codes_bytes--, "marlin: packed.codes is of 2047 bytes, but the spec needs 2048");
    CHANGED(p.scales = NULL, "marlin: packed.scales is NULL");
    CHANGED(p.scales_bytes++, "marlin: packed.scales is of 257 bytes, but the spec needs 256");
    CHANGED(p.zeros = NULL, "marlin: packed.zeros is NULL");
    CHANGED(p.zeros_bytes = 0, "marlin: packed.zeros is of 0 bytes, but the spec needs 64");
    CHANGED(p.order = NULL, "marlin: packed.order is NULL");
    CHANGED(p.order_bytes = 255, "marlin: packed.order is of 255 bytes, but the spec needs 256");
    TAKEN(ptxgen_marlin_unpack(&spec, &good, &m, NULL, &err));
    REFUSED(INVALID, ptxgen_marlin_unpack(&spec, &good, NULL, NULL, &err),
            "marlin: weights is NULL");
    REFUSED(INVALID, ptxgen_marlin_unpack(&spec, &good, &m, &m, &err),
            "marlin: up is given, but the spec has no SwiGLU");
    bad = m, bad.codes = NULL;
    REFUSED(INVALID, ptxgen_marlin_unpack(&spec, &good, &bad, NULL, &err),
            "marlin: weights->codes is NULL");
    bad = m, bad.scales = NULL;
    REFUSED(INVALID, ptxgen_marlin_unpack(&spec, &good, &bad, NULL, &err),
            "marlin: weights->scales is NULL");
    bad = m, bad.zeros = NULL;
    REFUSED(INVALID, ptxgen_marlin_unpack(&spec, &good, &bad, NULL, &err),
            "marlin: weights->zeros is NULL");
    bad = m, bad.g_idx = NULL;
    REFUSED(INVALID, ptxgen_marlin_unpack(&spec, &good, &bad, NULL, &err),
            "marlin: weights->g_idx is NULL");
    good.order[3] = 64;
    CHANGED((void)0, "marlin: packed.order[3] is 64, which is no row");
    good.order[3] = good.order[2];
    char twice[80];
    snprintf(twice, sizeof twice, "marlin: packed.order[3] is %u, which is there twice",
             good.order[2]);
    CHANGED((void)0, twice);
    packed_free(&good);
    ptxgen_marlin_spec gated = spec;
    gated.epilogue = PTXGEN_EPILOGUE_SWIGLU;
    good = packed_allocate(&gated);
    TAKEN(ptxgen_marlin_pack(&gated, &c, &c, &good, NULL, &err));
    REFUSED(INVALID, ptxgen_marlin_unpack(&gated, &good, &m, NULL, &err),
            "marlin: up is NULL, but SwiGLU has it");
    bad = m, bad.scales = NULL;
    REFUSED(INVALID, ptxgen_marlin_unpack(&gated, &good, &m, &bad, &err),
            "marlin: up->scales is NULL");
    packed_free(&good);
    checkpoint_free(&c);
    matrix_free(&m);
#undef CHANGED
}

static void repacking_on_the_device_says_what_it_met(void **state)
{
    (void)state;
    const ptxgen_marlin_repack_spec spec = {.k = K,
                                            .n = N,
                                            .group_size = GROUP,
                                            .type = PTXGEN_F16,
                                            .act_order = 1,
                                            .format = PTXGEN_W4_GPTQ_V1,
                                            .scale_type = PTXGEN_F32};
    ptxgen_marlin_repack_spec large = spec;
    ptxgen_error err = {0};
    int32_t g_idx[K];
    uint32_t order[K];
    for (int k = 0; k < K; k++)
        g_idx[k] = k % 2;
    TAKEN(ptxgen_marlin_row_order(&spec, g_idx, order, &err));
    g_idx[5] = 2;
    REFUSED(MALFORMED, ptxgen_marlin_row_order(&spec, g_idx, order, &err),
            "marlin_repack: g_idx[5] is 2, but there are 2 groups");
    g_idx[5] = -1;
    REFUSED(MALFORMED, ptxgen_marlin_row_order(&spec, g_idx, order, &err),
            "marlin_repack: g_idx[5] is -1, but there are 2 groups");
    g_idx[5] = 0;
    REFUSED(UNSUPPORTED, ptxgen_marlin_row_order(&spec, g_idx, order, &err),
            "g_idx gives group 0 more than its 32 rows (row 62 is one too many), so rows cannot be "
            "sorted into equal groups");

    TAKEN(ptxgen_marlin_repack_verdict(&spec, 0, &err));
    large.act_order = 0;
    large.k = 1 << 20, large.n = 1 << 17, large.group_size = 16;
    REFUSED(UNSUPPORTED, ptxgen_marlin_repack_verdict(&large, 0x47800000, &err),
            "marlin_repack: a scale, 65536, is past the ends that marlin admits");
    REFUSED(INVALID, ptxgen_marlin_repack_verdict(&spec, 0x47800000, &err),
            "marlin_repack: 0x47800000 is not what a launch of this spec leaves in refused");
}

/* ---- 2:4 weights ---- */

static void weights_of_2_4_are_checked(void **state)
{
    (void)state;
    enum { N = 16, COLUMNS = 16 };
    ptxgen_sparse24_shape shape = {PTXGEN_SPARSE24_S8, N, COLUMNS};
    int8_t dense[N * COLUMNS] = {0}, values[N * COLUMNS / 2];
    unsigned char metadata[N * COLUMNS / 4];
    ptxgen_error err = {0};
    size_t bytes;
#define COMPRESS()                                                                                 \
    ptxgen_sparse24_compress(&shape, (ptxgen_const_span){dense, sizeof dense},                     \
                             (ptxgen_span){values, sizeof values}, PTXGEN_SPARSE24_BYTES,          \
                             (ptxgen_span){metadata, sizeof metadata}, &err)
    dense[3 * COLUMNS + 8] = dense[3 * COLUMNS + 11] = 1;
    TAKEN(COMPRESS());
    dense[3 * COLUMNS + 9] = 1;
    REFUSED(INVALID, COMPRESS(),
            "row 3, group 2 (columns 8 to 11) has 3 non-zeros; a 2:4 weight has at most two of "
            "every four");
    dense[3 * COLUMNS + 10] = 1;
    REFUSED(INVALID, COMPRESS(),
            "row 3, group 2 (columns 8 to 11) has 4 non-zeros; a 2:4 weight has at most two of "
            "every four");
#define BYTES(form) ptxgen_sparse24_metadata_bytes(&shape, (ptxgen_sparse24_form)form, &bytes, &err)
    TAKEN(BYTES(2));
    REFUSED(INVALID, BYTES(4), "4 is no form of 2:4 metadata");
    REFUSED(INVALID,
            ptxgen_sparse24_metadata_bytes(&shape, PTXGEN_SPARSE24_NIBBLES, NULL, &err),
            "bytes is NULL (form 1)");
    shape.type = PTXGEN_SPARSE24_F32;
    REFUSED(UNSUPPORTED, BYTES(PTXGEN_SPARSE24_CUTLASS),
            "f32 has no CUTLASS metadata: the hardware has no 2:4 product of f32");
    shape = (ptxgen_sparse24_shape){PTXGEN_SPARSE24_F16, 32, 32};
    TAKEN(BYTES(PTXGEN_SPARSE24_CUTLASS));
    shape.n = 48;
    REFUSED(UNSUPPORTED, BYTES(PTXGEN_SPARSE24_CUTLASS),
            "N = 48, K = 32 have no CUTLASS metadata: N must be a multiple of 32 and K of 32");
    shape.n = 32, shape.k = 48;
    REFUSED(UNSUPPORTED, BYTES(PTXGEN_SPARSE24_CUTLASS),
            "N = 32, K = 48 have no CUTLASS metadata: N must be a multiple of 32 and K of 32");
    shape.type = (ptxgen_sparse24_type)4;
    REFUSED(INVALID, ptxgen_sparse24_dense_bytes(&shape, &bytes, &err),
            "4 is no element type of a 2:4 weight");
    shape = (ptxgen_sparse24_shape){PTXGEN_SPARSE24_F16, 1, 12};
    REFUSED(UNSUPPORTED, ptxgen_sparse24_dense_bytes(&shape, &bytes, &err),
            "K = 12 is not a multiple of 8, as 2:4 metadata needs");
    shape.n = (size_t)1 << 31, shape.k = (size_t)1 << 31;
    TAKEN(ptxgen_sparse24_dense_bytes(&shape, &bytes, &err));
    shape.k *= 4;
    REFUSED(INVALID, ptxgen_sparse24_dense_bytes(&shape, &bytes, &err),
            "a weight of N = 2147483648 features of K = 8589934592 elements is too large for memory");
    const ptxgen_sparse24_spec spec = {
        .n = N, .k = COLUMNS, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_F16};
    REFUSED(INVALID, ptxgen_sparse24_packed_bytes(&spec, NULL, &err), "sparse24: bytes is NULL");
}

/* ---- codes of 8 bits ---- */

static void weights_of_8_bits_are_checked(void **state)
{
    (void)state;
    float w[2 * 3] = {1, 2, 3, 4, 5, 6}, scales[2];
    int8_t codes[2 * 4], packed[2 * 4];
    int32_t sums[2];
    ptxgen_w8a8_weights good = {.n = 2, .k = 3, .type = PTXGEN_F32, .w = w}, bad;
    ptxgen_error err = {0};
#define QUANTISE(weights, stride, type)                                                            \
    ptxgen_w8a8_quantise(&weights, stride, codes, (ptxgen_element)type, scales, &err)
    TAKEN(QUANTISE(good, 3, PTXGEN_F32));
    REFUSED(INVALID, QUANTISE(good, 2, PTXGEN_F32),
            "w8a8: a stride of 2 bytes for rows of 3 codes");
    bad = good, bad.k = 0;
    REFUSED(INVALID, QUANTISE(bad, 3, PTXGEN_F32),
            "w8a8: a stride of 3 bytes for rows of 0 codes");
    REFUSED(INVALID, QUANTISE(good, 3, PTXGEN_F16),
            "w8a8: weights of type 0 with scales of type 1; scales are f32 or f64");
    bad = good, bad.type = (ptxgen_element)4;
    REFUSED(INVALID, QUANTISE(bad, 3, PTXGEN_F64),
            "w8a8: weights of type 4 with scales of type 3; scales are f32 or f64");
    bad = good, bad.percentile = 100;
    TAKEN(QUANTISE(bad, 3, PTXGEN_F32));
    bad.percentile = 100.5;
    REFUSED(INVALID, QUANTISE(bad, 3, PTXGEN_F32), "w8a8: percentile = 100.5 is outside 0 ... 100");
    bad.percentile = -0.5;
    REFUSED(INVALID, QUANTISE(bad, 3, PTXGEN_F32), "w8a8: percentile = -0.5 is outside 0 ... 100");
    w[4] = INFINITY;
    REFUSED(INVALID, QUANTISE(good, 3, PTXGEN_F32), "w8a8: w[1, 1] is inf, not finite in f32");
    double wide[3] = {1, 2, 1e300};
    bad = (ptxgen_w8a8_weights){.n = 1, .k = 3, .type = PTXGEN_F64, .w = wide};
    REFUSED(INVALID, QUANTISE(bad, 3, PTXGEN_F32), "w8a8: w[0, 2] is 1e+300, not finite in f32");
    double scale;
    TAKEN(ptxgen_w8a8_quantise(&bad, 3, codes, PTXGEN_F64, &scale, &err));
    wide[2] = NAN;
    REFUSED(INVALID, ptxgen_w8a8_quantise(&bad, 3, codes, PTXGEN_F64, &scale, &err),
            "w8a8: w[0, 2] is nan, not finite in f64");
    TAKEN(ptxgen_w8a8_pack(2, 3, codes, 3, packed, &err));
    REFUSED(INVALID, ptxgen_w8a8_pack(2, 3, codes, 2, packed, &err),
            "w8a8: a stride of 2 bytes for rows of 3 codes");
    TAKEN(ptxgen_w8a8_row_sums(2, 3, codes, 4, sums, &err));
    REFUSED(INVALID, ptxgen_w8a8_row_sums(2, 3, codes, 2, sums, &err),
            "w8a8: a stride of 2 bytes for rows of 3 codes");
    char paired[16];
    TAKEN(ptxgen_w8a8_pair(8, 1, codes, packed, paired, &err));
    REFUSED(UNSUPPORTED, ptxgen_w8a8_pair(7, 1, codes, packed, paired, &err),
            "w8a8: 7 rows to pair; it must be a multiple of 8");
    REFUSED(INVALID, ptxgen_w8a8_pair(8, (size_t)1 << 61, codes, packed, paired, &err),
            "w8a8: 8 rows of 2305843009213693952 bytes are more than memory has");
    REFUSED(INVALID, ptxgen_w8a8_pair(8, 1, NULL, packed, paired, &err),
            "w8a8: rows of gate, of up, and room for both must be given");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_that_break_a_rule_are_refused),
        cmocka_unit_test(rows_are_sorted_into_equal_groups_elsewhere),
        cmocka_unit_test(checkpoints_that_break_a_rule_are_refused),
        cmocka_unit_test(unpacked_matrices_have_room_for_what_is_not_plain),
        cmocka_unit_test(layouts_are_of_equal_groups_and_formats_that_can_hold_them),
        cmocka_unit_test(outputs_have_every_tensor_of_their_format),
        cmocka_unit_test(packing_takes_weights_that_the_spec_describes),
        cmocka_unit_test(packed_weights_have_the_arrays_of_their_spec),
        cmocka_unit_test(repacking_on_the_device_says_what_it_met),
        cmocka_unit_test(weights_of_2_4_are_checked),
        cmocka_unit_test(weights_of_8_bits_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
