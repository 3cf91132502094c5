/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A problem of no rows is none: each public function of each family that is given the number of
 * rows takes 0, needs nothing for it, says nothing is needed, and writes nothing.
 */
#include "tests/launches.h"

#include "src/harness/harness.h"

#include <ptxgen/marlin.h>
#include <ptxgen/gguf_types.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/quantise.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

enum { TARGETS = 4, UNTOUCHED = 0x5A };
static const char *const targets[TARGETS] = {"sm_80", "sm_89", "sm_90a", "sm_120"};

/* What a reference of no rows must leave as it is. */
struct untouched {
    double y[4], bound[4];
    ptxgen_spread spread[4];
};

static struct untouched untouched(void)
{
    struct untouched u;
    memset(&u, UNTOUCHED, sizeof u);
    return u;
}

static void assert_untouched(const struct untouched *u)
{
    const unsigned char *bytes = (const unsigned char *)u;
    for (size_t i = 0; i < sizeof *u; i++)
        assert_int_equal(bytes[i], UNTOUCHED);
}

/* What the verbs of any family say of a launch of no tokens, and that it does nothing. */
static void check_verbs(const struct emulated *e, const struct harness *h, const void *plan,
                        bool loaded)
{
    const struct kernel_verbs *v = h->verbs;
    const struct kernel_args none = {{0}};
    ptxgen_error err = {0};
    uint32_t ctas = 7;
    uint64_t bytes = 7;
    char text[256];
    void *kernel;
    assert_ok(v->ctas(plan, 0, &ctas, &err), &err);
    assert_int_equal(ctas, 0);
    v->explain(plan, 0, text, sizeof text);
    assert_string_equal(text, "no launch: there are no tokens");
    if (!loaded)
        return;
    assert_ok(v->load(&e->driver, plan, &kernel, &err), &err);
    assert_null(v->attributes(kernel, 0));
    assert_non_null(v->attributes(kernel, 1));
    assert_ok(v->workspace_bytes(kernel, &none, &bytes, &err), &err);
    assert_int_equal(bytes, 0);
    assert_ok(v->launch(kernel, &none, NULL, &err), &err);
    assert_int_equal(e->driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
    v->destroy(kernel);
}

/* The plan's target is that of the emulator's device, which then takes its launches. */
static bool is_loaded(const char *target)
{
    return strcmp(target, "sm_90a") == 0;
}

static void check_dense(const struct emulated *e, const ptxgen_dense_plan *plan, bool loaded)
{
    static const uint32_t zeros[64];
    ptxgen_error err = {0};
    struct untouched u = untouched();
    const ptxgen_dense_operands none = {.m = 0, .w = zeros, .bias = zeros};
    assert_null(ptxgen_dense_choose(plan, 0));
    assert_ok(ptxgen_dense_reference(plan, &none, u.y, u.bound, &err), &err);
    assert_ok(ptxgen_dense_reference_spread(plan, &none, u.y, u.bound, u.spread, &err), &err);
    assert_ok(ptxgen_dense_reference(plan, &none, NULL, NULL, &err), &err);
    assert_ok(ptxgen_dense_reference_spread(plan, &none, NULL, NULL, NULL, &err), &err);
    assert_untouched(&u);
    check_verbs(e, &dense_harness, plan, loaded);
}

static void dense_takes_no_rows(void **state)
{
    for (int t = 0; t < TARGETS; t++)
        for (uint8_t i = 0; i < 12; i++) {
            const ptxgen_dense_spec spec = {.n = 3,
                                            .k = 5,
                                            .max_m = i % 2 ? 4 : 0,
                                            .type = i % 3,
                                            .activation = i % 5,
                                            .bias = i / 2 % 2,
                                            .residual = i / 4 % 2};
            ptxgen_target target = target_of(targets[t]);
            ptxgen_dense_plan plan;
            ptxgen_error err = {0};
            assert_ok(ptxgen_dense_make_plan(&spec, &target, &plan, &err), &err);
            check_dense(*state, &plan, is_loaded(targets[t]) && i < 3);
        }
}

static void check_sparse24(const struct emulated *e, const ptxgen_sparse24_plan *plan, bool loaded)
{
    const ptxgen_sparse24_spec *s = &plan->spec;
    ptxgen_error err = {0};
    struct untouched u = untouched();
    unsigned char values[256] = {0}, metadata[64];
    static const float scales[8];
    const ptxgen_sparse24_shape shape = {(ptxgen_sparse24_type)s->type, s->n, s->k};
    ptxgen_sparse24_operands none = {.m = 0, .w_scale = scales, .bias = scales};
    size_t dense_bytes;
    memset(metadata, 4, sizeof metadata);
    assert_ok(ptxgen_sparse24_dense_bytes(&shape, &dense_bytes, &err), &err);
    none.values = (ptxgen_const_span){values, dense_bytes / 2};
    none.metadata = (ptxgen_const_span){metadata, (size_t)s->n * s->k / 4};
    assert_null(ptxgen_sparse24_choose(plan, 0));
    assert_ok(ptxgen_sparse24_reference(plan, &none, u.y, u.bound, &err), &err);
    assert_ok(ptxgen_sparse24_reference_spread(plan, &none, u.y, u.bound, u.spread, &err), &err);
    assert_ok(ptxgen_sparse24_reference(plan, &none, NULL, NULL, &err), &err);
    assert_ok(ptxgen_sparse24_reference_spread(plan, &none, NULL, NULL, NULL, &err), &err);
    assert_untouched(&u);
    check_verbs(e, &sparse24_harness, plan, loaded);
}

static void sparse24_takes_no_rows(void **state)
{
    for (int t = 0; t < TARGETS; t++)
        for (uint8_t i = 0; i < 16; i++) {
            ptxgen_sparse24_spec spec = {.n = 3,
                                         .k = 8,
                                         .max_m = i % 3 ? 4 : 0,
                                         .type = i % 4,
                                         .y_type = i % 4,
                                         .activation = i % 5,
                                         .bias = i / 2 % 2,
                                         .residual = i / 4 % 2,
                                         .tier = i / 8 && i % 4 < 3};
            ptxgen_target target = target_of(targets[t]);
            ptxgen_sparse24_plan plan;
            ptxgen_error err = {0};
            if (spec.type == PTXGEN_SPARSE24_S8)
                spec.y_type = PTXGEN_F16;
            assert_ok(ptxgen_sparse24_make_plan(&spec, &target, &plan, &err), &err);
            check_sparse24(*state, &plan, is_loaded(targets[t]) && (i < 4 || i == 8));
        }
}

static void check_marlin(const struct emulated *e, const ptxgen_marlin_plan *plan, bool loaded)
{
    const ptxgen_marlin_spec *s = &plan->spec;
    ptxgen_error err = {0};
    struct untouched u = untouched();
    uint8_t codes[32 * 8] = {0}, zeros[2 * 8] = {0};
    int32_t g_idx[32];
    const uint16_t scales[2 * 8] = {0}, bias[8] = {0};
    for (int k = 0; k < 32; k++)
        g_idx[k] = k % 2;
    ptxgen_w4_matrix w = {.k = s->k,
                          .n = s->n,
                          .group_size = s->group_size,
                          .codes = codes,
                          .scale_type = (ptxgen_element)s->type,
                          .scales = (void *)(uintptr_t)scales,
                          .zeros = s->zeros ? zeros : NULL,
                          .g_idx = s->act_order ? g_idx : NULL};
    const ptxgen_marlin_operands none = {
        .m = 0, .weights = &w, .up = s->epilogue ? &w : NULL, .bias = bias, .up_bias = bias};
    assert_null(ptxgen_marlin_choose(plan, 0));
    assert_ok(ptxgen_marlin_reference(plan, &none, u.y, u.bound, &err), &err);
    assert_ok(ptxgen_marlin_reference_spread(plan, &none, u.y, u.bound, u.spread, &err), &err);
    assert_ok(ptxgen_marlin_reference(plan, &none, NULL, NULL, &err), &err);
    assert_ok(ptxgen_marlin_reference_spread(plan, &none, NULL, NULL, NULL, &err), &err);
    assert_untouched(&u);
    check_verbs(e, &marlin_harness, plan, loaded);
}

static void marlin_takes_no_rows(void **state)
{
    for (int t = 0; t < TARGETS; t++)
        for (uint8_t i = 0; i < 12; i++) {
            const ptxgen_marlin_spec spec = {.k = 32,
                                             .n = 8,
                                             .group_size = 16,
                                             .max_m = 8,
                                             .type = i % 2 ? PTXGEN_F16 : PTXGEN_BF16,
                                             .zeros = i / 2 % 2,
                                             .act_order = i / 4 % 2,
                                             .epilogue = i % 3 == 2,
                                             .bias = i / 3 % 2,
                                             .residual = i / 6};
            ptxgen_target target = target_of(targets[t]);
            ptxgen_marlin_plan plan;
            ptxgen_error err = {0};
            assert_ok(ptxgen_marlin_make_plan(&spec, &target, &plan, &err), &err);
            check_marlin(*state, &plan, is_loaded(targets[t]) && (i == 0 || i == 5));
        }
}

/* Neither tokens, nor rows of the matrix. */
static void check_rmsnorm_q4k(const struct emulated *e, const ptxgen_rmsnorm_q4k_plan *plan,
                              bool loaded)
{
    ptxgen_error err = {0};
    struct untouched u = untouched();
    static const unsigned char weights[2 * PTXGEN_RMSNORM_Q4K_MAX_M * 144];
    static const float values[256];
    const ptxgen_rmsnorm_q4k_operands none = {
        .gamma = values, .w = {weights, weights}, .bias = {values, values}};
    ptxgen_rmsnorm_q4k_operands one = none;
    one.m = 1;
    one.x = one.residual = values;
    assert_null(ptxgen_rmsnorm_q4k_choose(plan, 0));
    for (uint32_t rows = 0; rows <= 2; rows += 2) {
        assert_ok(ptxgen_rmsnorm_q4k_reference(plan, &none, 0, 0, rows, u.y, u.bound, NULL, &err),
                  &err);
        assert_ok(ptxgen_rmsnorm_q4k_reference(plan, &none, 0, 0, rows, NULL, NULL, NULL, &err),
                  &err);
        assert_ok(ptxgen_rmsnorm_q4k_reference_spread(plan, &none, 0, 0, rows, u.y, u.bound,
                                                      u.spread, NULL, &err),
                  &err);
    }
    assert_ok(ptxgen_rmsnorm_q4k_reference_spread(plan, &one, 0, 1, 0, u.y, u.bound, u.spread, NULL,
                                                  &err),
              &err);
    assert_untouched(&u);
    check_verbs(e, &rmsnorm_q4k_harness, plan, loaded);
}

static void rmsnorm_q4k_takes_no_rows(void **state)
{
    for (int t = 0; t < TARGETS; t++)
        for (uint8_t i = 0; i < 12; i++) {
            const ptxgen_rmsnorm_q4k_spec spec = {.k = 256,
                                                  .n = {2, 2},
                                                  .epsilon = 1e-6f,
                                                  .max_m = i % 2 ? 2 : 0,
                                                  .x_type = i % 3,
                                                  .y_type = i / 2 % 3,
                                                  .epilogue = i / 2 % 2,
                                                  .bias = i / 4 % 2,
                                                  .residual = i / 6};
            ptxgen_target target = target_of(targets[t]);
            ptxgen_rmsnorm_q4k_plan plan;
            ptxgen_error err = {0};
            assert_ok(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err), &err);
            check_rmsnorm_q4k(*state, &plan, is_loaded(targets[t]) && (i == 1 || i == 6));
        }
}

static void quantise_takes_no_rows(void **state)
{
    for (int t = 0; t < TARGETS; t++)
        for (uint8_t i = 0; i < 6; i++) {
            const ptxgen_quantise_spec spec = {.k = 130,
                                               .x_type = i % 3,
                                               .group = i % 2 ? PTXGEN_QUANTISE_GROUP : 0,
                                               .producer = i % 3};
            ptxgen_target target = target_of(targets[t]);
            ptxgen_quantise_plan plan;
            ptxgen_error err = {0};
            assert_ok(ptxgen_quantise_make_plan(&spec, &target, &plan, &err), &err);
            check_verbs(*state, &quantise_harness, &plan, is_loaded(targets[t]) && i < 2);
        }
}

static void gguf_rows_takes_no_rows(void **state)
{
    for (int t = 0; t < TARGETS; t++)
        for (uint8_t i = 0; i < 6; i++) {
            const ptxgen_gguf_rows_spec spec = {.k = 256,
                                                .w_type = i % 2 ? PTXGEN_GGUF_Q6_K
                                                                : PTXGEN_GGUF_BF16,
                                                .y_type = i % 3,
                                                .indexed = i / 3};
            ptxgen_target target = target_of(targets[t]);
            ptxgen_gguf_rows_plan plan;
            ptxgen_error err = {0};
            assert_ok(ptxgen_gguf_rows_make_plan(&spec, &target, &plan, &err), &err);
            check_verbs(*state, &gguf_rows_harness, &plan, is_loaded(targets[t]) && i < 2);
        }
}

/* Rows of W, in the functions that are given their number: no rows, and of any length. */
static void check_w8a8_weights(void)
{
    ptxgen_error err = {0};
    int8_t codes[4] = {0}, packed[4] = {UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED};
    int32_t sums[1] = {UNTOUCHED};
    float w[4] = {0}, scales[1] = {7};
    const ptxgen_w8a8_weights none = {.n = 0, .k = 4, .type = PTXGEN_F32, .w = w};
    assert_ok(ptxgen_w8a8_quantise(&none, 4, packed, PTXGEN_F32, scales, &err), &err);
    assert_ok(ptxgen_w8a8_pack(0, 4, codes, 4, packed, &err), &err);
    assert_ok(ptxgen_w8a8_row_sums(0, 4, codes, 4, sums, &err), &err);
    for (int i = 0; i < 4; i++)
        assert_int_equal(packed[i], UNTOUCHED);
    assert_int_equal(sums[0], UNTOUCHED);
    assert_true(scales[0] == 7);
}

static void check_w8a8(const struct emulated *e, const ptxgen_w8a8_plan *plan, bool loaded)
{
    const ptxgen_w8a8_spec *s = &plan->spec;
    ptxgen_error err = {0};
    static const double values[4] = {1, 1, 1, 1};
    static const float floats[4] = {1, 1, 1, 1};
    const void *work = ptxgen_w8a8_work_type(s) == PTXGEN_F64 ? (const void *)values : floats;
    const int32_t zero = 0;
    const int8_t w[16] = {0};
    int8_t codes[4];
    ptxgen_w8a8_token token;
    struct untouched u = untouched();
    const ptxgen_w8a8_operands one = {.x = values,
                                      .w = w,
                                      .w_scale = work,
                                      .bias = work,
                                      .x_scale = work,
                                      .x_zero = &zero,
                                      .m = 1};
    assert_null(ptxgen_w8a8_choose(plan, 0));
    assert_ok(ptxgen_w8a8_reference_codes(s, &one, 0, codes, &token, &err), &err);
    assert_ok(ptxgen_w8a8_reference(s, &one, codes, &token, s->n, 0, u.y, NULL, &err), &err);
    assert_untouched(&u);
    check_verbs(e, &w8a8_harness, plan, loaded);
}

static void w8a8_takes_no_rows(void **state)
{
    check_w8a8_weights();
    for (int t = 0; t < TARGETS; t++)
        for (uint8_t i = 0; i < 12; i++) {
            const ptxgen_w8a8_spec spec = {.k = 4,
                                           .n = 3,
                                           .max_m = i % 2 ? 4 : 0,
                                           .x_type = i % 4,
                                           .y_type = i / 2 % 4,
                                           .scales = i % 3,
                                           .asymmetric = i / 3 % 2,
                                           .bias = i / 2 % 2};
            ptxgen_target target = target_of(targets[t]);
            ptxgen_w8a8_plan plan;
            ptxgen_error err = {0};
            assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
            check_w8a8(*state, &plan, is_loaded(targets[t]) && i < 2);
        }
}

/* Formats of weights, of no rows and of no columns. */
static void host_formats_take_nothing(void **state)
{
    (void)state;
    ptxgen_error err = {0};
    size_t bytes = 7;
    assert_ok(ptxgen_gguf_row_bytes(PTXGEN_GGUF_Q4_K, 0, &bytes, &err), &err);
    assert_int_equal(bytes, 0);
    for (int type = PTXGEN_SPARSE24_F32; type <= PTXGEN_SPARSE24_S8; type++)
        for (int i = 0; i < 3; i++) {
            const ptxgen_sparse24_shape shape = {(ptxgen_sparse24_type)type, i == 1 ? 64 : 0,
                                                 i == 2 ? 64 : 0};
            const ptxgen_const_span from = {NULL, 0};
            const ptxgen_span to = {NULL, 0};
            bytes = 7;
            assert_ok(ptxgen_sparse24_dense_bytes(&shape, &bytes, &err), &err);
            assert_int_equal(bytes, 0);
            assert_ok(ptxgen_sparse24_prune(&shape, from, to, &err), &err);
            for (int form = PTXGEN_SPARSE24_BYTES; form <= PTXGEN_SPARSE24_CUTLASS; form++) {
                const ptxgen_sparse24_form f = (ptxgen_sparse24_form)form;
                if (form == PTXGEN_SPARSE24_CUTLASS && type == PTXGEN_SPARSE24_F32)
                    continue;
                bytes = 7;
                assert_ok(ptxgen_sparse24_metadata_bytes(&shape, f, &bytes, &err), &err);
                assert_int_equal(bytes, 0);
                assert_ok(ptxgen_sparse24_compress(&shape, from, to, f, to, &err), &err);
                assert_ok(ptxgen_sparse24_decompress(&shape, from, f, from, to, &err), &err);
                assert_ok(ptxgen_sparse24_validate(&shape, from, f, from, &err), &err);
                assert_ok(ptxgen_sparse24_convert(&shape, PTXGEN_SPARSE24_BYTES, from, f, to, &err),
                          &err);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_takes_no_rows),       cmocka_unit_test(sparse24_takes_no_rows),
        cmocka_unit_test(marlin_takes_no_rows),      cmocka_unit_test(rmsnorm_q4k_takes_no_rows),
        cmocka_unit_test(quantise_takes_no_rows), cmocka_unit_test(gguf_rows_takes_no_rows),    cmocka_unit_test(w8a8_takes_no_rows),
        cmocka_unit_test(host_formats_take_nothing),
    };
    return cmocka_run_group_tests(tests, setup_emulated, teardown_emulated);
}
