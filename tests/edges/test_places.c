/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each function that looks at the elements of an array refuses a bad one wherever it stands, and
 * what follows it, which is admitted but only after a second look where there is one, leaves the
 * refusal as it is. Neither a refusal nor a success keeps memory.
 */
#include "leaks.h"

#include "tests/marlin/packing.h"

#include <ptxgen/marlin_repack.h>
#include <ptxgen/gguf_types.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <math.h>

static const size_t nowhere = SIZE_MAX;

/* What `call` says of an array of `places` elements of which that at `bad` is. */
struct checker {
    const char *name;
    size_t places;
    ptxgen_status (*call)(const void *how, size_t bad, ptxgen_error *err);
    const void *how;
};

struct call {
    const struct checker *checker;
    size_t bad;
};

static void call_once(void *user)
{
    const struct call *c = user;
    ptxgen_error err;
    (void)c->checker->call(c->checker->how, c->bad, &err);
}

static void check_places(const struct checker *c)
{
    const size_t places[] = {0,
                             1 % c->places,
                             c->places / 3,
                             c->places / 2,
                             c->places - 1 - 1 % c->places,
                             c->places - 1};
    ptxgen_error err = {0};
    if (c->call(c->how, nowhere, &err) != PTXGEN_OK)
        fail_msg("%s: sound arrays are refused: %s", c->name, err.message);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        err.message[0] = 0;
        if (c->call(c->how, places[i], &err) == PTXGEN_OK)
            fail_msg("%s: a bad element at place %zu of %zu passes", c->name, places[i], c->places);
        if (!err.message[0])
            fail_msg("%s: the refusal at place %zu says nothing", c->name, places[i]);
    }
    assert_keeps_nothing(c->name, call_once, &(struct call){c, nowhere});
    assert_keeps_nothing(c->name, call_once, &(struct call){c, c->places / 2});
}

/* ---- marlin ---- */

enum { K = 64, N = 72, GROUP = 16, GROUPS = K / GROUP };

struct marlin_how {
    uint8_t type, zeros, act_order, epilogue;
    ptxgen_element scale_type;
    ptxgen_w4_format format;
    bool up; /* the bad one is up's */
};

static ptxgen_marlin_spec marlin_spec(const struct marlin_how *h)
{
    return (ptxgen_marlin_spec){.k = K,
                                .n = N,
                                .group_size = GROUP,
                                .type = h->type,
                                .zeros = h->zeros,
                                .act_order = h->act_order,
                                .epilogue = h->epilogue};
}

/* Scales near the end of what is admitted; the zero points are 8. */
static struct weights marlin_weights(const struct marlin_how *h)
{
    const ptxgen_marlin_spec spec = marlin_spec(h);
    struct random r = {K};
    struct weights w = make_weights(&r, &spec, h->format, h->scale_type);
    for (unsigned i = 0; i < w.count; i++) {
        ptxgen_w4_matrix *m = &w.matrices[i];
        for (size_t j = 0; j < GROUPS * N; j++) {
            ptxgen_element_store(m->scale_type, m->scales, j, 6000 + (double)(j % 64) * 16);
            if (m->zeros)
                m->zeros[j] = 8;
        }
    }
    return w;
}

static void remake_checkpoints(struct weights *w, ptxgen_w4_format format)
{
    for (unsigned i = 0; i < w->count; i++) {
        checkpoint_free(&w->checkpoints[i]);
        w->checkpoints[i] = checkpoint_of(&w->matrices[i], format);
    }
}

static ptxgen_status pack_of(const struct marlin_how *h, struct weights *w,
                             ptxgen_marlin_packed *packed, ptxgen_error *err)
{
    remake_checkpoints(w, h->format);
    *packed = packed_allocate(&w->spec);
    return ptxgen_marlin_pack(&w->spec, &w->checkpoints[0], up_of(w), packed, NULL, err);
}

static ptxgen_status pack_scales(const void *how, size_t bad, ptxgen_error *err)
{
    const struct marlin_how *h = how;
    struct weights w = marlin_weights(h);
    ptxgen_marlin_packed packed;
    if (bad != nowhere)
        ptxgen_element_store(h->scale_type, w.matrices[h->up].scales, bad, INFINITY);
    ptxgen_status status = pack_of(h, &w, &packed, err);
    packed_free(&packed);
    free_weights(&w);
    return status;
}

static ptxgen_status refer_scales(const void *how, size_t bad, ptxgen_error *err)
{
    const struct marlin_how *h = how;
    static const uint16_t a[K];
    double c[N];
    struct weights w = marlin_weights(h);
    ptxgen_target target = target_of("sm_80");
    ptxgen_marlin_plan plan;
    if (bad != nowhere)
        ptxgen_element_store(h->scale_type, w.matrices[h->up].scales, bad, -INFINITY);
    const ptxgen_marlin_operands o = {
        .m = 1, .x = a, .weights = &w.matrices[0], .up = w.count == 2 ? &w.matrices[1] : NULL};
    assert_ok(ptxgen_marlin_make_plan(&w.spec, &target, &plan, err), err);
    ptxgen_status status = ptxgen_marlin_reference(&plan, &o, c, NULL, err);
    free_weights(&w);
    return status;
}

/* A scale's place in the packed array: those that are not padding, as they stand there. */
static ptxgen_status check_packed_scales(const void *how, size_t bad, ptxgen_error *err)
{
    const struct marlin_how *h = how;
    struct weights w = marlin_weights(h);
    ptxgen_marlin_packed packed;
    assert_ok(pack_of(h, &w, &packed, err), err);
    uint16_t *scales = packed.scales;
    size_t place = 0;
    for (size_t i = 0; i < packed.scales_bytes / 2; i++)
        if (scales[i] && place++ == bad)
            ptxgen_element_store((ptxgen_element)h->type, scales, i, NAN);
    assert_int_equal(place, w.count * GROUPS * N);
    ptxgen_status status = ptxgen_marlin_check_packed(&w.spec, &packed, err);
    packed_free(&packed);
    free_weights(&w);
    return status;
}

static ptxgen_status check_packed_order(const void *how, size_t bad, ptxgen_error *err)
{
    const struct marlin_how *h = how;
    struct weights w = marlin_weights(h);
    ptxgen_marlin_packed packed;
    assert_ok(pack_of(h, &w, &packed, err), err);
    if (bad != nowhere)
        packed.order[bad] = h->up ? packed.order[bad ? 0 : 1] : K;
    ptxgen_status status = ptxgen_marlin_check_packed(&w.spec, &packed, err);
    ptxgen_error again;
    assert_int_equal(ptxgen_marlin_unpack(&w.spec, &packed, &w.matrices[0], NULL, &again), status);
    packed_free(&packed);
    free_weights(&w);
    return status;
}

/* Zero points other than 8, for a spec that has none. */
static ptxgen_status pack_zeros(const void *how, size_t bad, ptxgen_error *err)
{
    const struct marlin_how *h = how;
    struct marlin_how with_zeros = *h;
    with_zeros.zeros = 1;
    struct weights w = marlin_weights(&with_zeros);
    ptxgen_marlin_packed packed;
    if (bad != nowhere)
        w.matrices[0].zeros[bad] = bad % 2 ? 7 : 9;
    w.spec.zeros = 0;
    ptxgen_status status = pack_of(h, &w, &packed, err);
    packed_free(&packed);
    free_weights(&w);
    return status;
}

enum matrix_array { CODES, ZEROS, G_IDX, G_IDX_BELOW };

static ptxgen_status describe_matrix(const void *how, size_t bad, ptxgen_error *err)
{
    enum matrix_array array = *(const enum matrix_array *)how;
    struct random r = {N};
    ptxgen_w4_matrix m = matrix_random(&r, K, N, GROUP, PTXGEN_F16, true, true);
    ptxgen_w4_info info;
    if (bad != nowhere && array == CODES)
        m.codes[bad] = 16;
    if (bad != nowhere && array == ZEROS)
        m.zeros[bad] = 255;
    if (bad != nowhere && array >= G_IDX)
        m.g_idx[bad] = array == G_IDX ? GROUPS : -1;
    ptxgen_status status = ptxgen_w4_describe_matrix(&m, &info, err);
    matrix_free(&m);
    return status;
}

/* A checkpoint's groups: one that is not there, and one row too many in another. */
static ptxgen_status describe_g_idx(const void *how, size_t bad, ptxgen_error *err)
{
    struct random r = {N};
    ptxgen_w4_matrix m = matrix_random(&r, K, N, GROUP, PTXGEN_F16, true, true);
    ptxgen_w4_checkpoint c = checkpoint_of(&m, *(const ptxgen_w4_format *)how);
    ptxgen_w4_info info;
    if (bad != nowhere)
        set_word(&c.g_idx, bad, GROUPS);
    ptxgen_status status = ptxgen_w4_describe(&c, &info, err);
    checkpoint_free(&c);
    matrix_free(&m);
    return status;
}

static ptxgen_status order_of_rows(const void *how, size_t bad, ptxgen_error *err)
{
    const bool uneven = *(const bool *)how;
    const ptxgen_marlin_repack_spec spec = {.k = K,
                                            .n = N,
                                            .group_size = GROUP,
                                            .type = PTXGEN_F16,
                                            .act_order = 1,
                                            .scale_type = PTXGEN_F16};
    int32_t g_idx[K];
    uint32_t order[K];
    for (int k = 0; k < K; k++)
        g_idx[k] = k % GROUPS;
    if (bad != nowhere)
        g_idx[bad] = uneven ? (g_idx[bad] + 1) % GROUPS : GROUPS;
    return ptxgen_marlin_row_order(&spec, g_idx, order, err);
}

static ptxgen_status describe_int8_zeros(const void *how, size_t bad, ptxgen_error *err)
{
    int8_t zeros[N * GROUPS];
    struct random r = {N};
    ptxgen_w4_matrix m = matrix_random(&r, K, N, GROUP, PTXGEN_F16, false, false);
    ptxgen_w4_checkpoint c = checkpoint_of(&m, PTXGEN_W4_PACK_QUANTIZED);
    ptxgen_w4_info info;
    for (int i = 0; i < N * GROUPS; i++)
        zeros[i] = (int8_t)(i % 16 - 8);
    if (bad != nowhere)
        zeros[bad] = *(const int8_t *)how;
    tensor_free(&c.zeros);
    c.zeros = (ptxgen_w4_tensor){zeros, PTXGEN_W4_I8, {N, GROUPS}};
    ptxgen_status status = ptxgen_w4_describe(&c, &info, err);
    c.zeros.data = NULL;
    checkpoint_free(&c);
    matrix_free(&m);
    return status;
}

static void check_marlin(const struct marlin_how *h)
{
    const struct checker checkers[] = {
        {"ptxgen_marlin_pack, scales", GROUPS * N, pack_scales, h},
        {"ptxgen_marlin_reference, scales", GROUPS * N, refer_scales, h},
        {"ptxgen_marlin_check_packed, scales", (1 + h->epilogue) * GROUPS * N, check_packed_scales,
         h},
    };
    for (size_t i = 0; i < sizeof checkers / sizeof *checkers; i++)
        check_places(&checkers[i]);
}

static void marlin_refuses_a_bad_scale_wherever_it_stands(void **state)
{
    static const ptxgen_w4_format formats[] = {PTXGEN_W4_GPTQ_V1, PTXGEN_W4_GPTQ_V2, PTXGEN_W4_AWQ,
                                               PTXGEN_W4_PACK_QUANTIZED};
    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        const struct marlin_how how = {.type = i & 1 ? PTXGEN_BF16 : PTXGEN_F16,
                                       .zeros = i >> 1 & 1,
                                       .epilogue = i >> 2 & 1,
                                       .act_order = i >> 3 & 1 && formats[i % 4] != PTXGEN_W4_AWQ,
                                       .scale_type = i % 3 ? PTXGEN_F16 : PTXGEN_F32,
                                       .format = formats[i % 4],
                                       .up = i >> 2 & 1 && i % 4 > 1};
        check_marlin(&how);
    }
}

static void marlin_refuses_a_bad_order_or_zero_point_wherever_it_stands(void **state)
{
    static const ptxgen_w4_format with_g_idx[] = {PTXGEN_W4_GPTQ_V1, PTXGEN_W4_GPTQ_V2,
                                                  PTXGEN_W4_PACK_QUANTIZED};
    static const enum matrix_array arrays[] = {CODES, ZEROS, G_IDX, G_IDX_BELOW};
    static const size_t places[] = {(size_t)K * N, (size_t)GROUPS * N, K, K};
    static const int8_t past[] = {-9, 8};
    static const bool uneven[] = {false, true};
    (void)state;
    for (int i = 0; i < 4; i++)
        check_places(
            &(struct checker){"ptxgen_w4_describe_matrix", places[i], describe_matrix, &arrays[i]});
    for (int i = 0; i < 3; i++) {
        const struct marlin_how h = {.type = PTXGEN_F16,
                                     .act_order = 1,
                                     .scale_type = PTXGEN_F16,
                                     .format = with_g_idx[i],
                                     .up = i == 1};
        check_places(
            &(struct checker){"ptxgen_w4_describe, g_idx", K, describe_g_idx, &with_g_idx[i]});
        check_places(
            &(struct checker){"ptxgen_marlin_check_packed, order", K, check_packed_order, &h});
        check_places(
            &(struct checker){"ptxgen_marlin_pack, zeros", (size_t)GROUPS * N, pack_zeros, &h});
    }
    for (int i = 0; i < 2; i++) {
        check_places(&(struct checker){"ptxgen_marlin_row_order", K, order_of_rows, &uneven[i]});
        check_places(&(struct checker){"ptxgen_w4_describe, int8 zeros", (size_t)N * GROUPS,
                                       describe_int8_zeros, &past[i]});
    }
}

/* ---- sparse24 ---- */

enum { ROWS = 32, COLUMNS = 64, SPARSE_GROUPS = ROWS * COLUMNS / 4 };

struct sparse_how {
    ptxgen_sparse24_type type;
    ptxgen_sparse24_form form;
};

struct sparse_arrays {
    ptxgen_sparse24_shape shape;
    unsigned char dense[ROWS * COLUMNS * 4], values[ROWS * COLUMNS * 2];
    unsigned char metadata[SPARSE_GROUPS];
    size_t dense_bytes, metadata_bytes;
};

static struct sparse_arrays sparse_arrays(const struct sparse_how *h)
{
    struct sparse_arrays a = {.shape = {h->type, ROWS, COLUMNS}};
    ptxgen_error err;
    assert_ok(ptxgen_sparse24_dense_bytes(&a.shape, &a.dense_bytes, &err), &err);
    assert_ok(ptxgen_sparse24_metadata_bytes(&a.shape, h->form, &a.metadata_bytes, &err), &err);
    memset(a.metadata, 0x44, sizeof a.metadata); /* positions 0 and 1 in nibbles */
    if (h->form == PTXGEN_SPARSE24_BYTES)
        memset(a.metadata, 4, sizeof a.metadata);
    if (h->form == PTXGEN_SPARSE24_BITMASK)
        memset(a.metadata, 0x33, sizeof a.metadata);
    return a;
}

/* Group number `bad` of those that the form holds, as it counts them, names no two positions. */
static void spoil(struct sparse_arrays *a, ptxgen_sparse24_form form, size_t bad)
{
    unsigned char *at = &a->metadata[form == PTXGEN_SPARSE24_BYTES ? bad : bad / 2];
    unsigned shift = form == PTXGEN_SPARSE24_BYTES ? 0 : bad % 2 * 4;
    *at = (unsigned char)((*at & ~(15u << shift)) | (form == PTXGEN_SPARSE24_BITMASK ? 1u : 5u)
                                                        << shift);
}

enum { VALIDATE, DECOMPRESS, CONVERT, PACK, SPARSE_CALLS };

static ptxgen_status call_sparse24(int call, const struct sparse_how *h,
                                   const struct sparse_arrays *a, ptxgen_error *err)
{
    static unsigned char out[ROWS * COLUMNS * 4];
    const ptxgen_const_span values = {a->values, a->dense_bytes / 2},
                            metadata = {a->metadata, a->metadata_bytes};
    size_t bytes = a->dense_bytes;
    switch (call) {
    case VALIDATE: return ptxgen_sparse24_validate(&a->shape, values, h->form, metadata, err);
    case DECOMPRESS:
        return ptxgen_sparse24_decompress(&a->shape, values, h->form, metadata,
                                          (ptxgen_span){out, bytes}, err);
    case CONVERT:
        return ptxgen_sparse24_convert(&a->shape, h->form, metadata, PTXGEN_SPARSE24_BYTES,
                                       (ptxgen_span){out, SPARSE_GROUPS}, err);
    default: break;
    }
    const ptxgen_sparse24_spec spec = {.n = ROWS,
                                       .k = COLUMNS,
                                       .type = (uint8_t)h->type,
                                       .y_type = h->type == PTXGEN_SPARSE24_S8 ? PTXGEN_F16
                                                                               : (uint8_t)h->type};
    assert_ok(ptxgen_sparse24_packed_bytes(&spec, &bytes, err), err);
    void *packed = allocate(bytes);
    ptxgen_status status =
        ptxgen_sparse24_pack(&spec, values, h->form, metadata, (ptxgen_span){packed, bytes}, err);
    free(packed);
    return status;
}

static ptxgen_status check_metadata(const void *how, size_t bad, ptxgen_error *err)
{
    const struct sparse_how *h = how;
    ptxgen_status statuses[SPARSE_CALLS];
    struct sparse_arrays a = sparse_arrays(h);
    if (bad != nowhere)
        spoil(&a, h->form, bad);
    for (int i = 0; i < SPARSE_CALLS; i++) {
        statuses[i] = call_sparse24(i, h, &a, err);
        assert_int_equal(statuses[i], statuses[0]);
    }
    return statuses[0];
}

/* A group of three that are not zero, the others of two. */
static ptxgen_status compress(const void *how, size_t bad, ptxgen_error *err)
{
    const struct sparse_how *h = how;
    struct sparse_arrays a = sparse_arrays(h);
    size_t element = a.dense_bytes / (ROWS * COLUMNS);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        if (i % 4 > 1 || (i / 4 == bad && i % 4 > 0))
            memset(a.dense + i * element, 1, element);
    return ptxgen_sparse24_compress(&a.shape, (ptxgen_const_span){a.dense, a.dense_bytes},
                                    (ptxgen_span){a.values, a.dense_bytes / 2}, h->form,
                                    (ptxgen_span){a.metadata, a.metadata_bytes}, err);
}

static void sparse24_refuses_bad_groups_wherever_they_stand(void **state)
{
    (void)state;
    for (int type = PTXGEN_SPARSE24_F32; type <= PTXGEN_SPARSE24_S8; type++)
        for (int form = PTXGEN_SPARSE24_BYTES; form <= PTXGEN_SPARSE24_CUTLASS; form++) {
            const struct sparse_how how = {(ptxgen_sparse24_type)type, (ptxgen_sparse24_form)form};
            if (type == PTXGEN_SPARSE24_F32 && form == PTXGEN_SPARSE24_CUTLASS)
                continue;
            check_places(
                &(struct checker){"sparse24's metadata", SPARSE_GROUPS, check_metadata, &how});
            check_places(
                &(struct checker){"ptxgen_sparse24_compress", SPARSE_GROUPS, compress, &how});
        }
}

enum { TOKENS = 5 };

struct sparse_reference_how {
    enum { X_SCALE, W_SCALE, BIAS } array;
    uint8_t type;
};

static ptxgen_status refer_sparse24(const void *how, size_t bad, ptxgen_error *err)
{
    const struct sparse_reference_how *h = how;
    const struct sparse_how as_bytes = {(ptxgen_sparse24_type)h->type, PTXGEN_SPARSE24_BYTES};
    const struct sparse_arrays a = sparse_arrays(&as_bytes);
    static unsigned char x[TOKENS * COLUMNS * 4];
    float x_scale[TOKENS], w_scale[ROWS], bias[ROWS] = {0};
    double y[TOKENS * ROWS], bound[TOKENS * ROWS];
    const ptxgen_sparse24_spec spec = {
        .n = ROWS, .k = COLUMNS, .type = h->type, .y_type = PTXGEN_F16, .bias = 1};
    ptxgen_target target = target_of("sm_80");
    ptxgen_sparse24_plan plan;
    for (int i = 0; i < TOKENS; i++)
        x_scale[i] = 1;
    for (int i = 0; i < ROWS; i++)
        w_scale[i] = 1;
    if (bad != nowhere && h->array == BIAS)
        ptxgen_element_store(PTXGEN_F16, bias, bad, NAN);
    else if (bad != nowhere)
        (h->array == X_SCALE ? x_scale : w_scale)[bad] = INFINITY;
    const ptxgen_sparse24_operands o = {.m = TOKENS,
                                        .x = x,
                                        .values = {a.values, a.dense_bytes / 2},
                                        .metadata = {a.metadata, a.metadata_bytes},
                                        .x_scale = x_scale,
                                        .w_scale = w_scale,
                                        .bias = bias};
    assert_ok(ptxgen_sparse24_make_plan(&spec, &target, &plan, err), err);
    return ptxgen_sparse24_reference(&plan, &o, y, bound, err);
}

static void sparse24_refuses_bad_scales_and_biases_wherever_they_stand(void **state)
{
    static const struct sparse_reference_how hows[] = {{X_SCALE, PTXGEN_SPARSE24_S8},
                                                       {W_SCALE, PTXGEN_SPARSE24_S8},
                                                       {BIAS, PTXGEN_SPARSE24_S8},
                                                       {BIAS, PTXGEN_SPARSE24_F16}};
    (void)state;
    for (int i = 0; i < 4; i++)
        check_places(&(struct checker){"ptxgen_sparse24_reference", i ? ROWS : TOKENS,
                                       refer_sparse24, &hows[i]});
}

/* ---- rmsnorm_q4k and Q4_K ---- */

enum { Q4K_ROWS = 3, Q4K_COLUMNS = 512, BLOCKS = Q4K_COLUMNS / 256, BLOCK_BYTES = 144 };

enum rmsnorm_array { GAMMA, BIASES, STEPS, LEASTS };

static ptxgen_status refer_rmsnorm_q4k(const void *how, size_t bad, ptxgen_error *err)
{
    enum rmsnorm_array array = *(const enum rmsnorm_array *)how;
    static const float x[Q4K_COLUMNS] = {1};
    static unsigned char weights[Q4K_ROWS * BLOCKS * BLOCK_BYTES];
    float gamma[Q4K_COLUMNS] = {0}, bias[Q4K_ROWS] = {0};
    double y[Q4K_ROWS], bound[Q4K_ROWS];
    const ptxgen_rmsnorm_q4k_spec spec = {
        .k = Q4K_COLUMNS, .n = {Q4K_ROWS, Q4K_ROWS}, .epsilon = 1, .bias = 1};
    ptxgen_target target = target_of("sm_80");
    ptxgen_rmsnorm_q4k_plan plan;
    memset(weights, 0, sizeof weights);
    if (bad != nowhere && array == GAMMA)
        gamma[bad] = NAN;
    if (bad != nowhere && array == BIASES)
        bias[bad] = -INFINITY;
    if (bad != nowhere && array >= STEPS)
        ptxgen_element_store(PTXGEN_F16, weights + bad * BLOCK_BYTES, array == LEASTS,
                             array == LEASTS ? NAN : INFINITY);
    const ptxgen_rmsnorm_q4k_operands o = {
        .x = x, .gamma = gamma, .w = {weights, weights}, .bias = {bias, bias}, .m = 1};
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, err), err);
    return ptxgen_rmsnorm_q4k_reference(&plan, &o, 0, 0, Q4K_ROWS, y, bound, NULL, err);
}

static ptxgen_status quantise_q4k(const void *how, size_t bad, ptxgen_error *err)
{
    float weights[Q4K_COLUMNS];
    unsigned char row[BLOCKS * BLOCK_BYTES];
    for (int i = 0; i < Q4K_COLUMNS; i++)
        weights[i] = (float)i;
    if (bad != nowhere)
        weights[bad] = *(const float *)how;
    return ptxgen_gguf_quantise_row(PTXGEN_GGUF_Q4_K, weights, Q4K_COLUMNS, row, sizeof row, err);
}

static void q4k_refuses_what_is_not_finite_wherever_it_stands(void **state)
{
    static const enum rmsnorm_array arrays[] = {GAMMA, BIASES, STEPS, LEASTS};
    static const size_t places[] = {Q4K_COLUMNS, Q4K_ROWS, Q4K_ROWS * BLOCKS, Q4K_ROWS * BLOCKS};
    static const float bad[] = {NAN, INFINITY, -INFINITY, -65536};
    (void)state;
    for (int i = 0; i < 4; i++) {
        check_places(&(struct checker){"ptxgen_rmsnorm_q4k_reference", places[i], refer_rmsnorm_q4k,
                                       &arrays[i]});
        check_places(
            &(struct checker){"ptxgen_gguf_quantise_row", Q4K_COLUMNS, quantise_q4k, &bad[i]});
    }
}

/* ---- w8a8 ---- */

enum { W8A8_ROWS = 3, W8A8_COLUMNS = 20 };

static ptxgen_status quantise_w8a8(const void *how, size_t bad, ptxgen_error *err)
{
    ptxgen_element type = *(const ptxgen_element *)how;
    double w[W8A8_ROWS * W8A8_COLUMNS] = {0}, scales[W8A8_ROWS];
    int8_t codes[W8A8_ROWS * W8A8_COLUMNS];
    const ptxgen_w8a8_weights weights = {
        .n = W8A8_ROWS, .k = W8A8_COLUMNS, .type = type, .w = w, .percentile = 50};
    for (size_t i = 0; i < W8A8_ROWS * W8A8_COLUMNS; i++)
        ptxgen_element_store(type, w, i, i == bad ? INFINITY : (double)i);
    return ptxgen_w8a8_quantise(&weights, W8A8_COLUMNS, codes, PTXGEN_F32, scales, err);
}

static ptxgen_status quantise_tokens(const void *how, size_t bad, ptxgen_error *err)
{
    const bool zero_points = *(const bool *)how;
    static const float x[TOKENS * W8A8_COLUMNS];
    static const float w_scale[W8A8_ROWS];
    static const int8_t w[W8A8_ROWS * W8A8_COLUMNS];
    float x_scale[TOKENS] = {1, 1, 1, 1, 1};
    int32_t x_zero[TOKENS] = {0};
    int8_t codes[W8A8_COLUMNS];
    ptxgen_w8a8_token token;
    const ptxgen_w8a8_spec spec = {.k = W8A8_COLUMNS,
                                   .n = W8A8_ROWS,
                                   .q_min = -128,
                                   .q_max = 127,
                                   .scales = PTXGEN_W8A8_TOKEN,
                                   .asymmetric = 1};
    if (bad != nowhere && zero_points)
        x_zero[bad] = bad % 2 ? -129 : 128;
    else if (bad != nowhere)
        x_scale[bad] = bad % 2 ? 0 : INFINITY;
    const ptxgen_w8a8_operands o = {
        .x = x, .w = w, .w_scale = w_scale, .x_scale = x_scale, .x_zero = x_zero, .m = TOKENS};
    ptxgen_status refused = PTXGEN_OK;
    for (uint32_t m = 0; m < TOKENS; m++) {
        ptxgen_status status = ptxgen_w8a8_reference_codes(&spec, &o, m, codes, &token, err);
        assert_int_equal(status != PTXGEN_OK, m == bad);
        refused = status ? status : refused;
    }
    return refused;
}

static void w8a8_refuses_what_is_not_finite_wherever_it_stands(void **state)
{
    static const ptxgen_element types[] = {PTXGEN_F32, PTXGEN_F16, PTXGEN_BF16, PTXGEN_F64};
    static const bool zero_points[] = {false, true};
    (void)state;
    for (int i = 0; i < 4; i++)
        check_places(&(struct checker){"ptxgen_w8a8_quantise", W8A8_ROWS * W8A8_COLUMNS,
                                       quantise_w8a8, &types[i]});
    for (int i = 0; i < 2; i++)
        check_places(&(struct checker){"ptxgen_w8a8_reference_codes", TOKENS, quantise_tokens,
                                       &zero_points[i]});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marlin_refuses_a_bad_scale_wherever_it_stands),
        cmocka_unit_test(marlin_refuses_a_bad_order_or_zero_point_wherever_it_stands),
        cmocka_unit_test(sparse24_refuses_bad_groups_wherever_they_stand),
        cmocka_unit_test(sparse24_refuses_bad_scales_and_biases_wherever_they_stand),
        cmocka_unit_test(q4k_refuses_what_is_not_finite_wherever_it_stands),
        cmocka_unit_test(w8a8_refuses_what_is_not_finite_wherever_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
