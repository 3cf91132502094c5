/* SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "tests/comma_locale.h"
#include "tests/emitted.h"
#include "tests/share.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The text of a plan, which the caller frees. */
static char *text_of(const ptxgen_rmsnorm_q4k_plan *plan)
{
    ptxgen_error err = {0};
    ptx_module *module = ptx_module_create(&plan->target.ptx, NULL);
    return text_of_module(module, ptxgen_rmsnorm_q4k_emit(plan, ~0u, module, &err), &err);
}

static bool random_plan(uint64_t *seed, ptxgen_rmsnorm_q4k_plan *plan)
{
    ptxgen_rmsnorm_q4k_spec spec = random_spec(seed);
    ptxgen_target target = target_of(target_names[draw(seed) % TARGETS]);
    return ptxgen_rmsnorm_q4k_make_plan(&spec, &target, plan, NULL) == PTXGEN_OK;
}

static void kernels_have_the_threads_and_shared_memory_of_their_plan(void **state)
{
    (void)state;
    uint64_t seed = 77;
    for (int i = 0; i < test_share(150); i++) {
        ptxgen_rmsnorm_q4k_plan plan;
        if (!random_plan(&seed, &plan))
            continue;
        ptxgen_error err;
        ptx_module *module = ptx_module_create(&plan.target.ptx, NULL);
        assert_ok(ptxgen_rmsnorm_q4k_emit(&plan, ~0u, module, &err), &err);
        assert_int_equal(ptx_module_kernels(module), plan.variant_count);
        for (uint32_t j = 0; j < plan.variant_count; j++) {
            const ptxgen_rmsnorm_q4k_variant *v = &plan.variants[j];
            assert_declares(module, j,
                            (struct declared){.name = ptxgen_rmsnorm_q4k_entry(v),
                                              .threads = 32 * v->wk * v->wn,
                                              .shared_bytes = v->shared_bytes,
                                              .dynamic_shared_bytes = v->dynamic_shared_bytes});
        }
        ptx_module_destroy(module);
    }
}

struct emission {
    const ptxgen_rmsnorm_q4k_plan *plan;
    const char *expected;
    int different;
};

static void *emit_often(void *argument)
{
    struct emission *e = argument;
    for (int i = 0; i < test_share(60); i++) {
        char *text = text_of(e->plan);
        e->different += strcmp(text, e->expected) != 0;
        free(text);
    }
    return NULL;
}

static int different_in_a_process(const ptxgen_rmsnorm_q4k_plan *plan, const char *expected)
{
    pid_t child = fork();
    if (!child) {
        char *text = text_of(plan);
        _exit(strcmp(text, expected) != 0);
    }
    int status = 0;
    return waitpid(child, &status, 0) != child || status != 0;
}

static void a_thousand_emissions_are_byte_identical(void **state)
{
    (void)state;
    enum { THREADS = 10, PROCESSES = 400 };
    ptxgen_target target = target_of("sm_90");
    ptxgen_rmsnorm_q4k_spec spec = plain_spec(4096, 14336);
    ptxgen_rmsnorm_q4k_plan plan;
    assert_int_equal(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, NULL), PTXGEN_OK);
    char *expected = text_of(&plan);
    char folder[COMMA_LOCALE_FOLDER];
    int different = 0;
    assert_true(comma_locale_make(folder));
    for (int i = 0; i < test_share(PROCESSES); i++) {
        assert_true(i % 2 ? comma_locale_enter() : setlocale(LC_ALL, "C") != NULL);
        different += different_in_a_process(&plan, expected);
    }
    pthread_t threads[THREADS];
    struct emission emissions[THREADS];
    for (int i = 0; i < THREADS; i++) {
        emissions[i] = (struct emission){&plan, expected, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, emit_often, &emissions[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        different += emissions[i].different;
    }
    assert_int_equal(different, 0);
    assert_true(comma_locale_remove(folder));
    free(expected);
}

static void specs_that_differ_only_in_epsilon_have_different_text(void **state)
{
    (void)state;
    ptxgen_target target = target_of("sm_80");
    ptxgen_rmsnorm_q4k_spec spec = plain_spec(1024, 64);
    char *texts[2];
    for (int i = 0; i < 2; i++) {
        ptxgen_rmsnorm_q4k_plan plan;
        spec.epsilon = i ? 1.0000001e-5f : 1e-5f; /* neighbours */
        assert_int_equal(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, NULL), PTXGEN_OK);
        texts[i] = text_of(&plan);
    }
    assert_string_not_equal(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
}

static void assert_text_assembles(const ptxgen_rmsnorm_q4k_spec *spec, const char *target_name)
{
    ptxgen_target target = target_of(target_name);
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_error err = {0};
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(spec, &target, &plan, &err), &err);
    char *text = text_of(&plan);
    struct assembled a = assert_assembles_without_spills(text, target_name);
    assert_int_equal(a.count, plan.variant_count);
    free(text);
}

/* Those whose texts differ; an ordinary shape, and by chance two of any (tests/spills has more). */
static const char *const assembled_targets[] = {"sm_80", "sm_86", "sm_87", "sm_89", "sm_90",
                                                "sm_90a", "sm_100", "sm_103", "sm_103a", "sm_110",
                                                "sm_120", "sm_121a"};

static void text_assembles_without_spills_for_every_target(void **state)
{
    (void)state;
    skip_without_ptxas();
    uint64_t seed = 20;
    for (size_t t = 0; t < sizeof assembled_targets / sizeof *assembled_targets; t++) {
        ptxgen_rmsnorm_q4k_spec spec = plain_spec(4096, 14336);
        assert_text_assembles(&spec, assembled_targets[t]);
        for (int i = 0; i < test_share(2); i++) {
            spec = random_spec(&seed);
            assert_text_assembles(&spec, assembled_targets[t]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_have_the_threads_and_shared_memory_of_their_plan),
        cmocka_unit_test(a_thousand_emissions_are_byte_identical),
        cmocka_unit_test(specs_that_differ_only_in_epsilon_have_different_text),
        cmocka_unit_test(text_assembles_without_spills_for_every_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
