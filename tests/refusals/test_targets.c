/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets that no chip is, and what a plan is after make_plan: of its own spec and target it is the
 * same again, and after a refusal it is none.
 */
#include "refusals.h"

#include <ptxgen/dense.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/marlin_repack.h>
#include <ptxgen/quantise.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

/* A plan of each family, of a spec that it takes. */
union plan {
    ptxgen_dense_plan dense;
    ptxgen_gguf_linear_plan gguf_linear;
    ptxgen_gguf_rows_plan gguf_rows;
    ptxgen_marlin_plan marlin;
    ptxgen_marlin_repack_plan marlin_repack;
    ptxgen_quantise_plan quantise;
    ptxgen_rmsnorm_q4k_plan rmsnorm_q4k;
    ptxgen_sparse24_plan sparse24;
    ptxgen_w8a8_plan w8a8;
};

/*
 * make_NAME makes a plan in `to` of a spec that the family takes; again_NAME makes it of its own
 * spec and target; explain_NAME is asked for a text without room for one.
 */
#define FAMILY(name, ...)                                                                          \
    static ptxgen_status make_##name(const ptxgen_target *target, union plan *to,                  \
                                     ptxgen_error *err)                                            \
    {                                                                                              \
        const ptxgen_##name##_spec spec = {__VA_ARGS__};                                           \
        return ptxgen_##name##_make_plan(&spec, target, &to->name, err);                           \
    }                                                                                              \
    static ptxgen_status again_##name(union plan *p, ptxgen_error *err)                            \
    {                                                                                              \
        return ptxgen_##name##_make_plan(&p->name.spec, &p->name.target, &p->name, err);           \
    }
FAMILY(dense, .n = 256, .k = 256, .type = PTXGEN_F16)
FAMILY(gguf_linear, .n = {256}, .k = 256, .w_type = {PTXGEN_GGUF_Q4_K}, .x_type = PTXGEN_F16,
       .y_type = PTXGEN_F16)
FAMILY(gguf_rows, .k = 256, .w_type = PTXGEN_GGUF_Q4_K, .y_type = PTXGEN_F16)
FAMILY(marlin, .n = 256, .k = 256, .group_size = 128, .type = PTXGEN_F16)
FAMILY(marlin_repack, .n = 256, .k = 256, .group_size = 128, .type = PTXGEN_F16,
       .format = PTXGEN_W4_GPTQ_V1, .scale_type = PTXGEN_F16)
FAMILY(quantise, .k = 256, .x_type = PTXGEN_F16)
FAMILY(rmsnorm_q4k, .n = {256}, .k = 256, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16)
FAMILY(sparse24, .n = 256, .k = 256, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16, .tier = 2)
FAMILY(w8a8, .n = 256, .k = 256, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16)

#define EXPLAIN(name)                                                                              \
    static void explain_##name(const union plan *p)                                                \
    {                                                                                              \
        ptxgen_##name##_explain(p ? &p->name : NULL, 1, NULL, 100);                                \
        ptxgen_##name##_explain(p ? &p->name : NULL, UINT64_MAX, NULL, 100);                       \
    }
EXPLAIN(dense)
EXPLAIN(gguf_linear)
EXPLAIN(gguf_rows)
EXPLAIN(marlin)
EXPLAIN(quantise)
EXPLAIN(rmsnorm_q4k)
EXPLAIN(sparse24)
EXPLAIN(w8a8)

static const struct family {
    const char *name;
    ptxgen_status (*make)(const ptxgen_target *target, union plan *to, ptxgen_error *err);
    ptxgen_status (*again)(union plan *p, ptxgen_error *err);
    void (*explain)(const union plan *p);
} families[] = {
#define ROW(name, explains)                                                                        \
    {                                                                                              \
#name, make_##name, again_##name, explains                                                 \
    }
    ROW(dense, explain_dense),
    ROW(gguf_linear, explain_gguf_linear),
    ROW(gguf_rows, explain_gguf_rows),
    ROW(marlin, explain_marlin),
    ROW(marlin_repack, NULL),
    ROW(quantise, explain_quantise),
    ROW(rmsnorm_q4k, explain_rmsnorm_q4k),
    ROW(sparse24, explain_sparse24),
    ROW(w8a8, explain_w8a8),
};
enum { FAMILIES = sizeof families / sizeof *families };

static void targets_that_no_chip_is_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t multiprocessors, shared;
        bool is_one;
    } rows[] = {
        {1, 99 * 1024, true},           {65536, 227 * 1024, true},
        {132, 48 * 1024, true},         {132, 1 << 24, true},
        {0, 99 * 1024, false},          {65537, 99 * 1024, false},
        {0x40000000, 99 * 1024, false}, {0x80000000, 99 * 1024, false},
        {UINT32_MAX, 99 * 1024, false}, {132, 48 * 1024 - 1, false},
        {132, (1 << 24) + 1, false},    {132, UINT32_MAX, false},
    };
    for (int f = 0; f < FAMILIES; f++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            union plan plan;
            ptxgen_error err = {0};
            ptxgen_target target = target_of("sm_90a");
            char due[160];
            target.multiprocessors = rows[i].multiprocessors;
            target.shared_per_cta = rows[i].shared;
            ptxgen_status status = families[f].make(&target, &plan, &err);
            snprintf(due, sizeof due,
                     "%s: a target of %u multiprocessors with %u bytes of shared memory per CTA is "
                     "none",
                     families[f].name, rows[i].multiprocessors, rows[i].shared);
            if (rows[i].is_one) /* a chip may have too little for a tile */
                assert_string_not_equal(err.message, due);
            else
                assert_refusal(status, &err, PTXGEN_ERROR_INVALID_ARGUMENT, due);
        }
}

static void a_plan_of_its_own_spec_is_the_same(void **state)
{
    (void)state;
    const ptxgen_target target = target_of("sm_90a");
    for (int f = 0; f < FAMILIES; f++) {
        union plan plan, before;
        ptxgen_error err = {0};
        memset(&plan, 0, sizeof plan);
        assert_ok(families[f].make(&target, &plan, &err), &err);
        before = plan;
        assert_ok(families[f].again(&plan, &err), &err);
        assert_memory_equal(&plan, &before, sizeof plan);
    }
}

/* Nothing is written, whatever the plan; none crashes. */
static void an_explanation_without_a_text_is_none(void **state)
{
    (void)state;
    const ptxgen_target target = target_of("sm_90a");
    for (int f = 0; f < FAMILIES; f++) {
        union plan plan;
        ptxgen_error err = {0};
        assert_ok(families[f].make(&target, &plan, &err), &err);
        if (families[f].explain) {
            families[f].explain(&plan);
            families[f].explain(NULL);
        }
    }
    ptxgen_error err = {0};
    assert_refusal(ptxgen_target_parse("sm_90a", NULL, &err), &err, PTXGEN_ERROR_INVALID_ARGUMENT,
                   "target name and result must be given");
}

/* K is more than fits into shared memory beside a tile. */
static void a_plan_that_was_refused_is_none(void **state)
{
    (void)state;
    const ptxgen_rmsnorm_q4k_spec spec = {.n = {64}, .k = 1 << 24};
    ptxgen_target target = target_of("sm_90a");
    ptxgen_rmsnorm_q4k_plan plan = {0};
    ptxgen_error err = {0};
    uint32_t ctas;
    target.shared_per_cta = 48 * 1024;
    assert_refusal(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err), &err,
                   PTXGEN_ERROR_UNSUPPORTED,
                   "rmsnorm_q4k: K = 16777216 with 1 tokens does not fit into the 49152 bytes of "
                   "shared memory of a CTA");
    assert_null(ptxgen_rmsnorm_q4k_choose(&plan, 1));
    assert_int_equal(ptxgen_rmsnorm_q4k_ctas(&plan, 1, &ctas, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    ptx_module *module = ptx_module_create(&target.ptx, NULL);
    assert_non_null(module);
    assert_int_equal(ptxgen_rmsnorm_q4k_emit(&plan, ~0u, module, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    ptx_module_destroy(module);
}

/* Gate and up have nearly 2^32 features together. */
static void the_most_features_have_ctas(void **state)
{
    (void)state;
    const ptxgen_target target = target_of("sm_90a");
    for (uint32_t n = 2147483520; n <= 2147483632; n += 16) {
        const ptxgen_marlin_spec spec = {.n = n,
                                         .k = 64,
                                         .group_size = -1,
                                         .type = PTXGEN_F16,
                                         .epilogue = PTXGEN_EPILOGUE_SWIGLU};
        ptxgen_marlin_plan plan;
        ptxgen_error err = {0};
        uint32_t ctas = 0;
        if (ptxgen_marlin_make_plan(&spec, &target, &plan, &err) == PTXGEN_OK) {
            assert_ok(ptxgen_marlin_ctas(&plan, 1, &ctas, &err), &err);
            assert_int_equal(ctas, 132);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_that_no_chip_is_are_refused),
        cmocka_unit_test(a_plan_of_its_own_spec_is_the_same),
        cmocka_unit_test(an_explanation_without_a_text_is_none),
        cmocka_unit_test(a_plan_that_was_refused_is_none),
        cmocka_unit_test(the_most_features_have_ctas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
