/* SPDX-License-Identifier: Apache-2.0 */
/* The text: emitted for every target, the same each time; ptxas where there is one takes it. */
#include "support.h"
#include "tests/emitted.h"
#include "tests/random.h"
#include "tests/share.h"

static char *text_of(const ptxgen_w8a8_spec *spec, const char *target_name, unsigned *pressure)
{
    ptxgen_target target = target_of(target_name);
    ptxgen_w8a8_plan plan;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_make_plan(spec, &target, &plan, &err), &err);
    ptx_module *module = ptx_module_create(&target.ptx, NULL);
    assert_ok(ptxgen_w8a8_emit(&plan, ~0u, module, &err), &err);
    unsigned first = ptx_module_kernels(module) - plan.variant_count;
    *pressure = 0;
    for (unsigned i = 0; i < ptx_module_kernels(module); i++) {
        ptx_kernel_info info;
        assert_int_equal(ptx_module_kernel_info(module, i, &info), PTXGEN_OK);
        *pressure = info.pressure > *pressure ? info.pressure : *pressure;
        if (i >= first) /* the plan says what the text needs */
            assert_int_equal(info.static_shared_bytes + info.dynamic_shared_bytes,
                             plan.variants[i - first].shared_bytes);
    }
    return text_of_module(module, PTXGEN_OK, &err);
}

static ptxgen_w8a8_spec random_spec(struct random *r)
{
    ptxgen_w8a8_spec s = {.k = 1 + random_bits(r) % 9000, .n = 1 + random_bits(r) % 9000};
    if (random_bits(r) % 2)
        s.k = (s.k + 15) / 16 * 16;
    s.x_type = random_bits(r) % 4;
    s.y_type = random_bits(r) % 4;
    s.scales = random_bits(r) % 3;
    s.asymmetric = random_bits(r) % 2;
    s.bias = random_bits(r) % 2;
    return s;
}

static void random_specs_emit_the_same_text_twice_within_the_registers(void **state)
{
    (void)state;
    struct random r = {2};
    for (int i = 0; i < test_share(24); i++) {
        ptxgen_w8a8_spec s = random_spec(&r);
        unsigned pressure;
        char *a = text_of(&s, target_names[i % TARGETS], &pressure);
        char *b = text_of(&s, target_names[i % TARGETS], &pressure);
        assert_string_equal(a, b);
        assert_true(pressure < 255);
        free(a);
        free(b);
    }
}

/*
 * What is usual, for every target; everything at once (wide types, zero points, bias, bytes), and
 * long wide rows, for the first and for one with dependent launches; e4m3 codes where there are.
 */
static void ptxas_takes_it_for_every_target_without_spills(void **state)
{
    (void)state;
    skip_without_ptxas();
    static const ptxgen_w8a8_spec specs[] = {
        {.k = 8192, .n = 8192, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16},
        {.k = 4547,
         .n = 1000,
         .x_type = PTXGEN_F64,
         .y_type = PTXGEN_F64,
         .asymmetric = 1,
         .bias = 1,
         .min_m = 200},
        {.k = 28672,
         .n = 8192,
         .x_type = PTXGEN_F64,
         .y_type = PTXGEN_F64,
         .asymmetric = 1,
         .bias = 1},
        {.k = 8192,
         .n = 8192,
         .x_type = PTXGEN_F16,
         .y_type = PTXGEN_F16,
         .codes = PTXGEN_W8A8_E4M3},
        {.k = 4091,
         .n = 1000,
         .x_type = PTXGEN_F32,
         .y_type = PTXGEN_F32,
         .bias = 1,
         .codes = PTXGEN_W8A8_E4M3}};
    enum { SPECS = sizeof specs / sizeof *specs, E4M3 = 3, SM_89 = 2, DEPENDENT = 3 };
    for (size_t i = 0; i < SPECS * TARGETS; i++) {
        size_t spec = i / TARGETS, t = i % TARGETS;
        bool has = spec < E4M3 ? !spec || !t || t == DEPENDENT : t >= SM_89;
        if (!has || !test_in_share((int)i))
            continue;
        const char *target = target_names[t];
        unsigned pressure;
        char *text = text_of(&specs[spec], target, &pressure);
        assert_true(assert_assembles_without_spills(text, target).count >= 2);
        free(text);
    }
}

/* Behind that wait the loads would queue behind the copies of the whole ring. */
static void first_scales_of_groups_are_loaded_before_the_wait_for_a_stage(void **state)
{
    (void)state;
    static const char *const entries[] = {".entry w8a8_m64(", ".entry w8a8_m128_n128("};
    const ptxgen_w8a8_spec spec = {
        .k = 2048, .n = 7168, .codes = PTXGEN_W8A8_E4M3, .group = PTXGEN_W8A8_GROUP};
    unsigned pressure;
    char *text = text_of(&spec, "sm_90a", &pressure);
    for (int i = 0; i < 2; i++) {
        const char *entry = strstr(text, entries[i]);
        assert_non_null(entry);
        const char *codes = strstr(entry, "griddepcontrol.wait");
        const char *load = strstr(entry, "ld.global.f32"),
                   *wait = strstr(entry, "mbarrier.try_wait");
        assert_true(codes && load && wait && codes < load && load < wait);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_specs_emit_the_same_text_twice_within_the_registers),
        cmocka_unit_test(ptxas_takes_it_for_every_target_without_spills),
        cmocka_unit_test(first_scales_of_groups_are_loaded_before_the_wait_for_a_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
