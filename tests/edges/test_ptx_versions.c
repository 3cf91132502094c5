/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drivers that take older PTX only, from PTX 7.1 on, on sm_90 from PTX 8.0: at each version where
 * some instruction begins, each family multiplies in the types of its spec, and the text that it
 * emits where it is not the newest's gives right outputs, of random data.
 */
#include "tests/problems.h"

#include <ptxgen/dense.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/marlin.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/quantise.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>


static const char *const devices[] = {"cpu:sm_80", "cpu:sm_89", "cpu:sm_90", "cpu:sm_120"};
static const int versions[] = {70, 71, 74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88};
static const uint32_t rows[] = {1, 12, 40, 100, 150};
enum {
    DEVICES = sizeof devices / sizeof *devices,
    VERSIONS = sizeof versions / sizeof *versions,
    ROWS = sizeof rows / sizeof *rows
};

/* A spec of a family, by a number; what products of it are of, as the text has it. */
struct subject {
    const ptxgen_family *family;
    union {
        ptxgen_dense_spec dense;
        ptxgen_sparse24_spec sparse24;
        ptxgen_marlin_spec marlin;
        ptxgen_rmsnorm_q4k_spec rmsnorm_q4k;
        ptxgen_w8a8_spec w8a8;
        ptxgen_quantise_spec quantise;
        ptxgen_gguf_rows_spec gguf_rows;
        ptxgen_gguf_linear_spec gguf_linear;
    } as;
    const void *spec;
    const struct harness *harness;
    const char *types; /* NULL: of several */
    bool ordered;      /* metadata is announced as ordered from PTX 8.5 on */
    uint32_t most_rows;
};

typedef bool make_subject(size_t number, struct subject *s);
/* Makes a problem of so many rows, runs it and compares. */
typedef void run_subject(const struct subject *s, uint32_t n, struct random *r,
                         struct device *device, struct check *check);

/* The text, to be freed; NULL where the family needs a newer version, with the sentence. */
static char *emit(const struct subject *s, const ptxgen_target *target, ptxgen_error *err)
{
    void *plan = calloc(1, s->family->plan_bytes);
    const char *text = NULL;
    char *copy = NULL;
    assert_non_null(plan);
    assert_ok(s->family->make_plan(s->spec, target, plan, err), err);
    ptx_module *module = ptx_module_create(&target->ptx, NULL);
    assert_non_null(module);
    if (s->family->emit(plan, module, err) == PTXGEN_OK) {
        assert_ok(ptx_module_text(module, 0, &text, NULL, err), err);
        copy = strdup(text);
    }
    ptx_module_destroy(module);
    free(plan);
    return copy;
}

/* What follows the line of the version. */
static const char *body_of(const char *text)
{
    const char *version = strstr(text, ".version ");
    assert_non_null(version);
    return strchr(version, '\n');
}

static int version_of(const char *text)
{
    const char *version = strstr(text, ".version ") + strlen(".version ");
    return atoi(version) * 10 + atoi(strchr(version, '.') + 1);
}

/* Each product of tensor cores is of the spec's types, and of the form that the version has. */
static void assert_multiplies(const struct subject *s, const char *text, int version)
{
    size_t products = 0;
    for (const char *at = text; (at = strstr(at, "mma")); at = strchr(at, '\n')) {
        char line[200] = "";
        size_t length = strcspn(at, "\n ");
        memcpy(line, at, length < sizeof line ? length : sizeof line - 1);
        bool is_product = !strncmp(line, "mma.sync", 8) || !strncmp(line, "mma.sp", 6) ||
                          !strncmp(line, "mma.mma_async", 13);
        if (!is_product)
            continue;
        products++;
        if (s->types && !strstr(line, s->types))
            fail_msg("%s at PTX %d multiplies by %s, not %s", s->family->name, version, line,
                     s->types);
        if (s->ordered && !strncmp(line, "mma.sp", 6))
            assert_int_equal(strstr(line, "ordered_metadata") != NULL, version >= 85);
    }
    assert_int_equal(products > 0, s->harness->product(s->spec).n > 0);
}

static void check_device(const char *name, const struct subject *s, run_subject *run, int index)
{
    struct device device = open_device(name);
    ptxgen_error err = {0};
    ptxgen_target newest = ptxgen_device_target(&device.facts);
    char *last = emit(s, &newest, &err);
    assert_non_null(last);
    assert_multiplies(s, last, newest.ptx.max_ptx);
    for (int v = VERSIONS; v-- > 0;) {
        device.facts.max_ptx_version = versions[v];
        ptxgen_target target = ptxgen_device_target(&device.facts);
        if (ptx_target_check(&target.ptx, NULL) != PTXGEN_OK || versions[v] > newest.ptx.max_ptx ||
            !test_in_share(index + v))
            continue;
        char *text = emit(s, &target, &err);
        if (!text) {
            assert_says(&err, "but the cap is PTX");
            if (versions[v] >= (target.ptx.sm == 90 ? 80 : 71))
                fail_msg("%s on %s: %s", s->family->name, name, err.message);
            continue;
        }
        assert_true(version_of(text) <= versions[v]);
        assert_multiplies(s, text, versions[v]);
        bool other = strcmp(body_of(text), body_of(last)) != 0;
        for (int i = 0; other && i < ROWS; i++) {
            struct random r = random_start((uint64_t)(versions[v] + i));
            struct check check = {.outputs = 0};
            if (rows[i] > s->most_rows)
                continue;
            run(s, rows[i], &r, &device, &check);
            assert_right(&check);
        }
        free(last);
        last = text;
    }
    free(last);
    device_close(&device);
}

static void check_family(size_t count, make_subject *make, run_subject *run)
{
    for (int d = 0; d < DEVICES; d++)
        for (size_t i = 0; i < count; i++) {
            struct subject s = {.most_rows = UINT32_MAX};
            if (make(i, &s))
                check_device(devices[d], &s, run, (int)i);
        }
}

/* ---- families ---- */

static void run_by_harness(const struct subject *s, uint32_t n, struct random *r,
                           struct device *device, struct check *check)
{
    const struct kernel_request request = {.spec = s->spec};
    struct problem p;
    ptxgen_error err;
    assert_ok(problem_allocate(&p, s->harness, &request, n, NULL, device, &err), &err);
    assert_ok(problem_fill(&p, r, &err), &err);
    assert_ok(problem_check(&p, device, check, &err), &err);
    problem_release(&p);
}

static bool make_dense(size_t number, struct subject *s)
{
    static const char *const types[] = {".tf32.tf32", ".f16.f16", ".bf16.bf16"};
    s->as.dense = (ptxgen_dense_spec){
        .n = 72, .k = 136, .type = (uint8_t)number, .bias = number == 1};
    s->family = ptxgen_dense_family();
    s->spec = &s->as.dense;
    s->harness = &dense_harness;
    s->types = types[number];
    return true;
}

static bool make_sparse24(size_t number, struct subject *s)
{
    static const char *const types[] = {".tf32.tf32", ".f16.f16", ".bf16.bf16", ".s8.s8"};
    uint8_t type = (uint8_t)(number % 4), tier = number < 4 ? 2 : 1;
    bool is_s8 = type == PTXGEN_SPARSE24_S8;
    s->as.sparse24 =
        (ptxgen_sparse24_spec){.n = 72,
                                           .k = 136,
                                           .type = type,
                                           .y_type = is_s8 ? (uint8_t)PTXGEN_BF16 : type,
                                           .tier = tier};
    s->family = ptxgen_sparse24_family();
    s->harness = &sparse24_harness;
    s->spec = &s->as.sparse24;
    s->types = types[type];
    s->ordered = true;
    return tier == 2 ? type != PTXGEN_SPARSE24_F32 : !is_s8;
}

static bool make_marlin(size_t number, struct subject *s)
{
    s->as.marlin =
        (ptxgen_marlin_spec){.k = 256,
                                         .n = 136,
                                         .group_size = number & 2 ? 64 : PTXGEN_W4_PER_CHANNEL,
                                         .type = number & 1 ? PTXGEN_BF16 : PTXGEN_F16,
                                         .zeros = number == 2};
    s->family = ptxgen_marlin_family();
    s->harness = &marlin_harness;
    s->spec = &s->as.marlin;
    s->types = number & 1 ? ".bf16.bf16" : ".f16.f16";
    return true;
}

static bool make_rmsnorm_q4k(size_t number, struct subject *s)
{
    s->as.rmsnorm_q4k = (ptxgen_rmsnorm_q4k_spec){.k = 512,
                                                  .n = {40, 40},
                                                  .epsilon = 1e-6f,
                                                  .x_type = (uint8_t)number,
                                                  .y_type = (uint8_t)number,
                                                  .epilogue = number == 1};
    s->family = ptxgen_rmsnorm_q4k_family();
    s->harness = &rmsnorm_q4k_harness;
    s->spec = &s->as.rmsnorm_q4k;
    s->most_rows = PTXGEN_RMSNORM_Q4K_MAX_M;
    return true;
}

static bool make_gguf_linear(size_t number, struct subject *s)
{
    static const uint8_t types[] = {PTXGEN_GGUF_Q4_K, PTXGEN_GGUF_Q6_K, PTXGEN_GGUF_Q8_0};
    s->as.gguf_linear = (ptxgen_gguf_linear_spec){.k = 512,
                                                  .n = {40, 40},
                                                  .epsilon = 1e-6f,
                                                  .max_m = PTXGEN_GGUF_LINEAR_MAX_M,
                                                  .w_type = {types[number], types[number / 2]},
                                                  .x_type = (uint8_t)number,
                                                  .y_type = (uint8_t)number,
                                                  .norm = number == 2,
                                                  .epilogue = (uint8_t)number};
    s->family = ptxgen_gguf_linear_family();
    s->harness = &gguf_linear_harness;
    s->spec = &s->as.gguf_linear;
    s->most_rows = PTXGEN_GGUF_LINEAR_MAX_M;
    return true;
}

static bool make_w8a8(size_t number, struct subject *s)
{
    s->as.w8a8 = (ptxgen_w8a8_spec){.k = 264,
                                                .n = 72,
                                                .x_type = (uint8_t)number,
                                                .y_type = (uint8_t)number,
                                                .asymmetric = number & 1};
    s->family = ptxgen_w8a8_family();
    s->harness = &w8a8_harness;
    s->spec = &s->as.w8a8;
    s->types = ".s8.s8";
    return true;
}

static bool make_quantise(size_t number, struct subject *s)
{
    s->as.quantise = (ptxgen_quantise_spec){.k = 264,
                                            .x_type = (uint8_t)number,
                                            .group = number == 1 ? PTXGEN_QUANTISE_GROUP : 0,
                                            .asymmetric = number & 1,
                                            .producer = (uint8_t)(2 - number)};
    s->family = ptxgen_quantise_family();
    s->harness = &quantise_harness;
    s->spec = &s->as.quantise;
    return true;
}

static bool make_gguf_rows(size_t number, struct subject *s)
{
    static const uint8_t types[] = {PTXGEN_GGUF_Q6_K, PTXGEN_GGUF_MXFP4, PTXGEN_GGUF_BF16};
    s->as.gguf_rows = (ptxgen_gguf_rows_spec){.k = 512,
                                              .scale = number == 1 ? 0.5f : 0,
                                              .w_type = types[number],
                                              .y_type = (uint8_t)(2 - number),
                                              .indexed = number & 1};
    s->family = ptxgen_gguf_rows_family();
    s->harness = &gguf_rows_harness;
    s->spec = &s->as.gguf_rows;
    return true;
}

static void dense_is_right_at_every_ptx_version(void **state)
{
    (void)state;
    check_family(3, make_dense, run_by_harness);
}

static void sparse24_is_right_at_every_ptx_version(void **state)
{
    (void)state;
    check_family(8, make_sparse24, run_by_harness);
}

static void marlin_is_right_at_every_ptx_version(void **state)
{
    (void)state;
    check_family(4, make_marlin, run_by_harness);
}

static void rmsnorm_q4k_is_right_at_every_ptx_version(void **state)
{
    (void)state;
    check_family(3, make_rmsnorm_q4k, run_by_harness);
}

static void gguf_linear_is_right_at_every_ptx_version(void **state)
{
    (void)state;
    check_family(3, make_gguf_linear, run_by_harness);
}

static void quantise_is_right_at_every_ptx_version(void **state)
{
    (void)state;
    check_family(3, make_quantise, run_by_harness);
}

static void gguf_rows_is_right_at_every_ptx_version(void **state)
{
    (void)state;
    check_family(3, make_gguf_rows, run_by_harness);
}

static void w8a8_is_right_at_every_ptx_version(void **state)
{
    (void)state;
    check_family(4, make_w8a8, run_by_harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_is_right_at_every_ptx_version),
        cmocka_unit_test(sparse24_is_right_at_every_ptx_version),
        cmocka_unit_test(marlin_is_right_at_every_ptx_version),
        cmocka_unit_test(rmsnorm_q4k_is_right_at_every_ptx_version),
        cmocka_unit_test(gguf_linear_is_right_at_every_ptx_version),
        cmocka_unit_test(w8a8_is_right_at_every_ptx_version),
        cmocka_unit_test(quantise_is_right_at_every_ptx_version),
        cmocka_unit_test(gguf_rows_is_right_at_every_ptx_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
