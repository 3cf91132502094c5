/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of every product: they declare the threads and the shared memory of their plan, the
 * text is the same each time and not too long, and ptxas takes it for every target without spills.
 */
#include "tests/emitted.h"
#include "tests/share.h"
#include "tests/status.h"

#include "src/kernels/gemm/plan.h"

#include <ptxgen/dense.h>
#include <ptxgen/marlin.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <stdlib.h>

static const char *const targets[] = {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_120"};
enum { TARGETS = sizeof targets / sizeof *targets, SM_90 = 3, MOST_SPECS = 5 };

/* ---- the products ---- */

#define VERBS(F)                                                                                   \
    extern const struct gemm_planner F##_planner;                                                  \
    static ptxgen_status emit_##F(const void *plan, uint32_t variants, ptx_module *module,         \
                                  ptxgen_error *err)                                               \
    {                                                                                              \
        return ptxgen_##F##_emit(plan, variants, module, err);                                     \
    }
VERBS(dense)
VERBS(marlin)
VERBS(sparse24)
VERBS(w8a8)

/* Warps beside those that multiply. */
static uint32_t a_warpgroup_of_wgmma(const ptxgen_tile *v)
{
    return v->kind == PTXGEN_WGMMA ? 4 : 0;
}

static uint32_t producers_of_marlin(const ptxgen_tile *v)
{
    return v->kind == PTXGEN_WGMMA ? 4 : v->kind != PTXGEN_BULK ? 0 : v->wn >= 4 ? 2 : 1;
}

static const struct product {
    const struct gemm_planner *planner;
    const ptxgen_family *(*family)(void);
    ptxgen_status (*emit)(const void *plan, uint32_t variants, ptx_module *module,
                          ptxgen_error *err);
    const char *(*entry)(const ptxgen_tile *tile);
    uint32_t (*producers)(const ptxgen_tile *tile); /* NULL: other warps are not counted here */
    const char *first, *last;                       /* entries beside the variants'; NULL: none */
    size_t most_text;                               /* of a variant */
    enum {
        ELSEWHERE,
        USUAL, /* the first spec for each target, the others for one */
        ALL    /* each spec for each target */
    } assembled;
    const void *specs[MOST_SPECS];
} products[] = {
    {&dense_planner,
     ptxgen_dense_family,
     emit_dense,
     ptxgen_dense_entry,
     a_warpgroup_of_wgmma,
     NULL,
     "dense_align",
     130 * 1000,
     USUAL,
     {&(const ptxgen_dense_spec){.n = 4096, .k = 4096, .type = PTXGEN_F16},
      &(const ptxgen_dense_spec){.n = 333,
                                 .k = 1401,
                                 .type = PTXGEN_BF16,
                                 .bias = 1,
                                 .residual = 1,
                                 .activation = PTXGEN_ACTIVATION_GELU},
      &(const ptxgen_dense_spec){.n = 4096, .k = 4096, .type = PTXGEN_F32},
      &(const ptxgen_dense_spec){.n = 333,
                                 .k = 1401,
                                 .type = PTXGEN_F32,
                                 .bias = 1,
                                 .residual = 1,
                                 .activation = PTXGEN_ACTIVATION_SILU}}},
    {&sparse24_planner,
     ptxgen_sparse24_family,
     emit_sparse24,
     ptxgen_sparse24_entry,
     a_warpgroup_of_wgmma,
     NULL,
     "sparse24_align",
     100 * 1000,
     ALL,
     {&(const ptxgen_sparse24_spec){
          .n = 4096, .k = 4096, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16},
      &(const ptxgen_sparse24_spec){.n = 333,
                                    .k = 1400,
                                    .type = PTXGEN_SPARSE24_BF16,
                                    .y_type = PTXGEN_BF16,
                                    .bias = 1,
                                    .residual = 1,
                                    .activation = PTXGEN_ACTIVATION_GELU},
      &(const ptxgen_sparse24_spec){
          .n = 4096, .k = 4096, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_F16},
      &(const ptxgen_sparse24_spec){.n = 333,
                                    .k = 1400,
                                    .type = PTXGEN_SPARSE24_S8,
                                    .y_type = PTXGEN_BF16,
                                    .bias = 1,
                                    .residual = 1,
                                    .activation = PTXGEN_ACTIVATION_RELU}}},
    /* Every way of scaling, zero points, both ends of an epilogue; wgmma's widest tile. */
    {&marlin_planner,
     ptxgen_marlin_family,
     emit_marlin,
     ptxgen_marlin_entry,
     producers_of_marlin,
     NULL,
     "marlin_gather",
     150 * 1000,
     ALL,
     {&(const ptxgen_marlin_spec){.k = 4096, .n = 4096, .group_size = 128, .type = PTXGEN_F16},
      &(const ptxgen_marlin_spec){.k = 8192, .n = 28672, .group_size = 128, .type = PTXGEN_F16},
      &(const ptxgen_marlin_spec){
          .k = 4096, .n = 4096, .group_size = 32, .type = PTXGEN_BF16, .zeros = 1},
      &(const ptxgen_marlin_spec){.k = 1040,
                                  .n = 1032,
                                  .group_size = -1,
                                  .type = PTXGEN_F16,
                                  .bias = 1,
                                  .residual = 1,
                                  .act_order = 1,
                                  .epilogue = PTXGEN_EPILOGUE_SWIGLU},
      &(const ptxgen_marlin_spec){.k = 1072,
                                  .n = 72,
                                  .group_size = 16,
                                  .type = PTXGEN_BF16,
                                  .zeros = 1,
                                  .bias = 1,
                                  .residual = 1,
                                  .activation = PTXGEN_ACTIVATION_GELU}}},
    /* What is usual; everything at once: wide types, zero points, bias, bytes. */
    {&w8a8_planner,
     ptxgen_w8a8_family,
     emit_w8a8,
     ptxgen_w8a8_entry,
     NULL,
     "w8a8_quantise",
     NULL,
     400 * 1000,
     ELSEWHERE, /* tests/w8a8/test_text.c has other specs */
     {&(const ptxgen_w8a8_spec){.k = 8192, .n = 8192, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16},
      &(const ptxgen_w8a8_spec){.k = 4096,
                                .n = 1000,
                                .x_type = PTXGEN_F64,
                                .y_type = PTXGEN_F64,
                                .asymmetric = 1,
                                .bias = 1}}},
};
enum { PRODUCTS = sizeof products / sizeof *products };

/* ---- a plan ---- */

static void *plan_of(const struct product *p, const void *spec, const char *target_name)
{
    ptxgen_target target = target_of(target_name);
    ptxgen_error err = {0};
    void *plan = calloc(1, p->planner->plan_bytes);
    assert_non_null(plan);
    assert_ok(p->family()->make_plan(spec, &target, plan, &err), &err);
    return plan;
}

static uint32_t count_of(const struct product *p, const void *plan)
{
    uint32_t count;
    memcpy(&count, (const char *)plan + p->planner->variant_count, sizeof count);
    return count;
}

static const ptxgen_tile *variant_of(const struct product *p, const void *plan, uint32_t i)
{
    return (const ptxgen_tile *)(const void *)((const char *)plan + p->planner->variants) + i;
}

static const ptxgen_target *target_in(const struct product *p, const void *plan)
{
    return (const ptxgen_target *)(const void *)((const char *)plan + p->planner->target);
}

static char *text_of(const struct product *p, const void *plan, uint32_t variants)
{
    ptxgen_error err = {0};
    ptx_module *module = ptx_module_create(&target_in(p, plan)->ptx, NULL);
    return text_of_module(module, p->emit(plan, variants, module, &err), &err);
}

/* Those that multiply; families that know no warps along M leave wm at 0. */
static uint32_t warps_of(const ptxgen_tile *v)
{
    return (v->wm ? v->wm : 1) * v->wn * v->wk;
}

/* Calls `check` with the plans of all specs: for each target, or for the `only` one. */
static void with_plans(int only, void (*check)(const struct product *p, const void *plan))
{
    for (const struct product *p = products; p < products + PRODUCTS; p++)
        for (int s = 0; s < MOST_SPECS && p->specs[s]; s++)
            for (int t = 0; t < TARGETS; t++) {
                if (only >= 0 && t != only)
                    continue;
                void *plan = plan_of(p, p->specs[s], targets[t]);
                check(p, plan);
                free(plan);
            }
}

/* ---- claims ---- */

static void assert_named(const ptx_module *module, uint32_t index, const char *name)
{
    ptx_kernel_info info;
    assert_int_equal(ptx_module_kernel_info(module, index, &info), PTXGEN_OK);
    assert_string_equal(info.name, name);
}

static void check_declarations(const struct product *p, const void *plan)
{
    const uint32_t count = count_of(p, plan), behind = p->last != NULL;
    const ptxgen_target *target = target_in(p, plan);
    ptx_module *module = ptx_module_create(&target->ptx, NULL);
    ptxgen_error err = {0};
    assert_ok(p->emit(plan, ~0u, module, &err), &err);
    const uint32_t first = ptx_module_kernels(module) - count - behind;
    assert_in_range(first, 0, p->first ? 2 : 0);
    if (first)
        assert_named(module, 0, p->first);
    if (behind)
        assert_named(module, first + count, p->last);
    for (uint32_t i = 0; i < count; i++) {
        const ptxgen_tile *v = variant_of(p, plan, i);
        struct declared wanted = {.name = p->entry(v),
                                  .threads =
                                      32 * (warps_of(v) + (p->producers ? p->producers(v) : 0)),
                                  .shared_bytes = v->shared_bytes,
                                  .dynamic_shared_bytes = v->dynamic_shared_bytes};
        ptx_kernel_info info;
        assert_int_equal(ptx_module_kernel_info(module, first + i, &info), PTXGEN_OK);
        if (!p->producers)
            wanted.threads = info.threads;
        assert_declares(module, first + i, wanted);
        assert_true(v->shared_bytes <= target->shared_per_cta);
    }
    ptx_module_destroy(module);
}

static void entries_have_the_threads_and_shared_memory_of_their_plan(void **state)
{
    (void)state;
    with_plans(-1, check_declarations);
}

static void check_text(const struct product *p, const void *plan)
{
    for (uint32_t i = 0; i < count_of(p, plan); i++) {
        char *first = text_of(p, plan, 1u << i), *again = text_of(p, plan, 1u << i);
        assert_string_equal(first, again);
        assert_true(strlen(first) < p->most_text);
        free(first);
        free(again);
    }
}

static void equal_plans_give_equal_text_of_a_bounded_length(void **state)
{
    (void)state;
    with_plans(SM_90, check_text);
}

/* No more registers than a CTA has, and no other shared memory than the plan says. */
static void check_report(const ptxgen_tile *v, const struct assembled_entry *r)
{
    enum { REGISTERS = 65536, GRANULE = 8 };
    unsigned each = (r->registers + GRANULE - 1) / GRANULE * GRANULE;
    uint32_t threads = 32 * warps_of(v) * (v->ctas ? v->ctas : 1);
    if (each * threads > REGISTERS)
        fail_msg("%s: %u registers of %u threads", r->name, r->registers, threads);
    assert_int_equal(r->static_shared_bytes + v->dynamic_shared_bytes, v->shared_bytes);
}

static void assemble(const struct product *p, const void *spec, const char *target_name)
{
    void *plan = plan_of(p, spec, target_name);
    char *text = text_of(p, plan, ~0u);
    struct assembled a = assert_assembles_without_spills(text, target_name);
    uint32_t count = count_of(p, plan);
    assert_true(a.count >= count + (p->last != NULL));
    for (uint32_t i = 0; i < count; i++) {
        const ptxgen_tile *v = variant_of(p, plan, i);
        size_t at = 0;
        while (at < a.count && strcmp(a.entries[at].name, p->entry(v)) != 0)
            at++;
        assert_true(at < a.count);
        check_report(v, &a.entries[at]);
    }
    free(text);
    free(plan);
}

static void text_assembles_without_spills_for_every_target(void **state)
{
    int number = 0;
    (void)state;
    skip_without_ptxas();
    for (const struct product *p = products; p < products + PRODUCTS; p++)
        for (int s = 0; s < MOST_SPECS && p->specs[s]; s++)
            for (int t = 0; t < TARGETS; t++)
                if (p->assembled != ELSEWHERE && (s == 0 || p->assembled == ALL || t == SM_90) &&
                    test_in_share(number++))
                    assemble(p, p->specs[s], targets[t]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_have_the_threads_and_shared_memory_of_their_plan),
        cmocka_unit_test(equal_plans_give_equal_text_of_a_bounded_length),
        cmocka_unit_test(text_assembles_without_spills_for_every_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
