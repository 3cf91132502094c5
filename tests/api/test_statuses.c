/* SPDX-License-Identifier: Apache-2.0 */
/* The same mistake has the same status in every family, by the rule in ptxgen/status.h. */
#include "tests/status.h"

#include <ptxgen/dense.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/marlin_repack.h>
#include <ptxgen/quantise.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <stdlib.h>

static const ptxgen_dense_spec dense = {.n = 64, .k = 256, .type = PTXGEN_F16};
static const ptxgen_marlin_spec marlin = {.k = 256, .n = 64, .group_size = 128, .type = PTXGEN_F16};
static const ptxgen_marlin_repack_spec repack = {
    .k = 256, .n = 64, .group_size = 128, .type = PTXGEN_F16, .scale_type = PTXGEN_F16};
static const ptxgen_sparse24_spec sparse24 = {
    .n = 64, .k = 256, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16};
static const ptxgen_w8a8_spec w8a8 = {
    .k = 256, .n = 64, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
static const ptxgen_rmsnorm_q4k_spec rmsnorm_q4k = {
    .k = 256, .n = {64}, .epsilon = 1e-5f, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};

static const ptxgen_gguf_linear_spec gguf_linear = {
    .k = 256, .n = {64}, .w_type = {PTXGEN_GGUF_Q6_K}, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};

/* A spec of each family, and where it keeps what a mistake may be made in. */
static const ptxgen_quantise_spec quantise = {.k = 64, .x_type = PTXGEN_F16};
static const ptxgen_gguf_rows_spec gguf_rows = {.k = 2048, .w_type = PTXGEN_GGUF_Q4_K};

static const struct family {
    const ptxgen_family *(*family)(void);
    const void *spec;
    size_t k, type, flag; /* offsets: of 32 bits, of a byte, of a byte */
} families[] = {
    {ptxgen_dense_family, &dense, offsetof(ptxgen_dense_spec, k), offsetof(ptxgen_dense_spec, type),
     offsetof(ptxgen_dense_spec, bias)},
    {ptxgen_marlin_family, &marlin, offsetof(ptxgen_marlin_spec, k),
     offsetof(ptxgen_marlin_spec, type), offsetof(ptxgen_marlin_spec, bias)},
    {ptxgen_marlin_repack_family, &repack, offsetof(ptxgen_marlin_repack_spec, k),
     offsetof(ptxgen_marlin_repack_spec, type), offsetof(ptxgen_marlin_repack_spec, zeros)},
    {ptxgen_sparse24_family, &sparse24, offsetof(ptxgen_sparse24_spec, k),
     offsetof(ptxgen_sparse24_spec, type), offsetof(ptxgen_sparse24_spec, bias)},
    {ptxgen_w8a8_family, &w8a8, offsetof(ptxgen_w8a8_spec, k), offsetof(ptxgen_w8a8_spec, x_type),
     offsetof(ptxgen_w8a8_spec, bias)},
    {ptxgen_rmsnorm_q4k_family, &rmsnorm_q4k, offsetof(ptxgen_rmsnorm_q4k_spec, k),
     offsetof(ptxgen_rmsnorm_q4k_spec, x_type), offsetof(ptxgen_rmsnorm_q4k_spec, bias)},
    {ptxgen_gguf_linear_family, &gguf_linear, offsetof(ptxgen_gguf_linear_spec, k),
     offsetof(ptxgen_gguf_linear_spec, x_type), offsetof(ptxgen_gguf_linear_spec, bias)},
    {ptxgen_quantise_family, &quantise, offsetof(ptxgen_quantise_spec, k),
     offsetof(ptxgen_quantise_spec, x_type), offsetof(ptxgen_quantise_spec, asymmetric)},
    {ptxgen_gguf_rows_family, &gguf_rows, offsetof(ptxgen_gguf_rows_spec, k),
     offsetof(ptxgen_gguf_rows_spec, y_type), offsetof(ptxgen_gguf_rows_spec, indexed)},
};

enum mistake { NO_MISTAKE, HUGE_K, NO_TYPE, NO_FLAG, MISTAKES };
static const ptxgen_status statuses[MISTAKES] = {PTXGEN_OK, PTXGEN_ERROR_UNSUPPORTED,
                                                 PTXGEN_ERROR_INVALID_ARGUMENT,
                                                 PTXGEN_ERROR_INVALID_ARGUMENT};

static void a_mistake_has_one_status_whatever_the_family(void **state)
{
    const ptxgen_target target = target_of("sm_90a");
    (void)state;
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (int mistake = NO_MISTAKE; mistake < MISTAKES; mistake++) {
            const ptxgen_family *family = families[f].family();
            unsigned char *spec = malloc(family->spec_bytes);
            void *plan = malloc(family->plan_bytes);
            ptxgen_error err = {0};
            memcpy(spec, families[f].spec, family->spec_bytes);
            if (mistake == HUGE_K)
                memset(spec + families[f].k, 0xFF, sizeof(uint32_t));
            if (mistake == NO_TYPE)
                spec[families[f].type] = 77;
            if (mistake == NO_FLAG)
                spec[families[f].flag] = 2;
            if (family->make_plan(spec, &target, plan, &err) != statuses[mistake])
                fail_msg("%s, mistake %d: status %d, '%s'", family->name, mistake, (int)err.status,
                         err.message);
            free(spec);
            free(plan);
        }
}

/* As many as no launch takes. */
static void too_many_rows_have_one_status_whatever_the_family(void **state)
{
    const ptxgen_target target = target_of("sm_90a");
    ptxgen_dense_plan d;
    ptxgen_marlin_plan m;
    ptxgen_sparse24_plan s;
    ptxgen_w8a8_plan w;
    ptxgen_quantise_plan q;
    ptxgen_gguf_rows_plan g;
    ptxgen_error err;
    uint32_t ctas;
    (void)state;
    assert_ok(ptxgen_dense_make_plan(&dense, &target, &d, &err), &err);
    assert_ok(ptxgen_marlin_make_plan(&marlin, &target, &m, &err), &err);
    assert_ok(ptxgen_sparse24_make_plan(&sparse24, &target, &s, &err), &err);
    assert_ok(ptxgen_w8a8_make_plan(&w8a8, &target, &w, &err), &err);
    assert_int_equal(ptxgen_dense_ctas(&d, UINT32_MAX, &ctas, &err), PTXGEN_ERROR_UNSUPPORTED);
    assert_int_equal(ptxgen_marlin_ctas(&m, UINT32_MAX, &ctas, &err), PTXGEN_ERROR_UNSUPPORTED);
    assert_int_equal(ptxgen_sparse24_ctas(&s, UINT32_MAX, &ctas, &err), PTXGEN_ERROR_UNSUPPORTED);
    assert_int_equal(ptxgen_w8a8_ctas(&w, UINT32_MAX, &ctas, &err), PTXGEN_ERROR_UNSUPPORTED);
    assert_ok(ptxgen_quantise_make_plan(&quantise, &target, &q, &err), &err);
    assert_refusal(ptxgen_quantise_ctas(&q, UINT32_MAX, &ctas, &err), &err,
                   PTXGEN_ERROR_UNSUPPORTED,
                   "quantise: m = 4294967295 is above 2147483647, the most CTAs of a grid");
    assert_ok(ptxgen_gguf_rows_make_plan(&gguf_rows, &target, &g, &err), &err);
    assert_refusal(ptxgen_gguf_rows_ctas(&g, 1073741824, &ctas, &err), &err,
                   PTXGEN_ERROR_UNSUPPORTED,
                   "gguf_rows: m = 1073741824 is above 1073741823, the most rows of K = 2048 in a "
                   "launch");
}

static void sentences_are_utf8_whatever_they_quote(void **state)
{
    static const struct {
        const char *name, *shown;
    } cases[] = {{"caf\xC3\xA9 \xE2\x80\xA6", "caf\xC3\xA9 \xE2\x80\xA6"},
                 {"a\xFFz", "a?z"},
                 {"\xC0\xAF", "??"},           /* overlong */
                 {"\xED\xA0\x80", "???"},      /* a surrogate */
                 {"\xF4\x90\x80\x80", "????"}, /* beyond U+10FFFF */
                 {"\xE2\x80", "??"},           /* cut */
                 {"\x1B[31mred\a", "?[31mred?"},
                 {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"}};
    ptxgen_error err;
    char name[2 * PTXGEN_MESSAGE_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_fail(&err, PTXGEN_ERROR_FILE, "%s", cases[i].name);
        assert_string_equal(err.message, cases[i].shown);
    }
    for (size_t ahead = 0; ahead < 4; ahead++) { /* a long one is cut between characters */
        size_t used = ahead;
        memset(name, 'x', sizeof name);
        for (; used + 4 < sizeof name; used += 3)
            memcpy(name + used, "\xE2\x80\xA6", 3);
        name[used] = '\0';
        ptxgen_fail(&err, PTXGEN_ERROR_FILE, "%s", name);
        assert_null(strchr(err.message, '?'));
        assert_int_equal((strlen(err.message) - ahead) % 3, 0);
        assert_true(strlen(err.message) > PTXGEN_MESSAGE_SIZE - 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mistake_has_one_status_whatever_the_family),
        cmocka_unit_test(too_many_rows_have_one_status_whatever_the_family),
        cmocka_unit_test(sentences_are_utf8_whatever_they_quote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
