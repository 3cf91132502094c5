/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guarantees hold in launches: rows of y have the same bits from from_m to to_m tokens, and in
 * every order of CTAs and warps; exact outputs are those of the reference; the bound is relative to
 * what its form says. Where a guarantee ends, bits differ in some of these problems, so that a
 * guarantee that promises too much is noticed. Names of entries are those that were promised.
 */
#include "tests/problems.h"

#include <ptxgen/dense.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/marlin.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <ctype.h>
#include <stdlib.h>

#define VERB(F)                                                                                    \
    static ptxgen_status guarantee_##F(const void *plan, uint64_t m, ptxgen_guarantee *g,          \
                                       ptxgen_error *err)                                          \
    {                                                                                              \
        return ptxgen_##F##_guarantee(plan, m, g, err);                                            \
    }
VERB(dense)
VERB(marlin)
VERB(rmsnorm_q4k)
VERB(gguf_linear)
VERB(sparse24)
VERB(w8a8)

static const struct family {
    const struct harness *harness;
    ptxgen_status (*guarantee)(const void *plan, uint64_t m, ptxgen_guarantee *g,
                               ptxgen_error *err);
} dense = {&dense_harness, guarantee_dense}, marlin = {&marlin_harness, guarantee_marlin},
  rmsnorm_q4k = {&rmsnorm_q4k_harness, guarantee_rmsnorm_q4k},
  gguf_linear = {&gguf_linear_harness, guarantee_gguf_linear},
  sparse24 = {&sparse24_harness, guarantee_sparse24}, w8a8 = {&w8a8_harness, guarantee_w8a8};

/* ---- bits ---- */

enum { MOST_M = 40, MANY = 10, PLAN_BYTES = 4096 };
static const uint32_t many[MANY] = {1, 2, 7, 8, 9, 16, 17, 24, 33, MOST_M};

/* A kernel of all variants, and the outputs of launches of `many` tokens. */
struct subject {
    const struct family *family;
    const char *device;
    const void *spec;
    const ptxgen_tile *tile;
    bool exact, invariant, ends; /* due: every M alike; bits that differ beyond some range */
    uint32_t most;               /* tokens; 0: MOST_M */
};

struct launched {
    uint32_t m;
    ptxgen_guarantee guarantee;
    unsigned char *outputs;
};

static size_t outputs_bytes(const struct problem *p)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < p->count; i++)
        if (p->operands[i].used && p->operands[i].role == OPERAND_OUTPUT)
            bytes += p->buffers[i].bytes;
    return bytes;
}

/* The outputs of a launch of m of the problem's tokens, in the emulator's order of this seed. */
static unsigned char *launch(struct problem *p, const void *kernel, struct device *device,
                             uint32_t m, uint64_t seed)
{
    const struct harness *h = p->harness;
    struct kernel_args args = problem_args(p);
    ptxgen_error err = {0};
    unsigned char *outputs = malloc(outputs_bytes(p)), *to = outputs;
    assert_non_null(outputs);
    order_by(device, seed);
    args_set(&args, h->m, m);
    assert_ok(h->verbs->launch(kernel, &args, device->stream, &err), &err);
    assert_ok(device_wait(device, &err), &err);
    for (unsigned i = 0; i < p->count; i++)
        if (p->operands[i].used && p->operands[i].role == OPERAND_OUTPUT) {
            assert_ok(buffer_download(&p->buffers[i], &err), &err);
            memcpy(to, p->buffers[i].host, p->buffers[i].bytes);
            to += p->buffers[i].bytes;
        }
    return outputs;
}

static void make_workspace(struct problem *p, const void *kernel, struct device *device)
{
    const struct harness *h = p->harness;
    uint64_t most = 0;
    ptxgen_error err = {0};
    for (int i = 0; h->workspace_bytes && i < MANY && many[i] <= p->m; i++) {
        struct kernel_args args = problem_args(p);
        uint64_t bytes;
        args_set(&args, h->m, many[i]);
        assert_ok(h->verbs->workspace_bytes(kernel, &args, &bytes, &err), &err);
        most = bytes > most ? bytes : most;
    }
    if (!h->workspace_bytes)
        return;
    assert_ok(buffer_create(device, "workspace", most, 0, &p->workspace, &err), &err);
    memset(p->workspace.host, 0, most);
    assert_ok(buffer_upload(&p->workspace, &err), &err);
}

/* Whether the first `rows` rows of all outputs are the same. */
static bool have_same_rows(const struct problem *p, const struct launched *a,
                           const struct launched *b, uint32_t rows)
{
    const unsigned char *x = a->outputs, *y = b->outputs;
    bool same = true;
    for (unsigned i = 0; i < p->count; i++)
        if (p->operands[i].used && p->operands[i].role == OPERAND_OUTPUT) {
            same = same && memcmp(x, y, p->buffers[i].bytes / p->m * rows) == 0;
            x += p->buffers[i].bytes;
            y += p->buffers[i].bytes;
        }
    return same;
}

static void expect_range(const struct problem *p, const struct launched *all, size_t count,
                         const struct launched *l, bool *differ)
{
    const ptxgen_guarantee *g = &l->guarantee;
    if (g->from_m > l->m || g->to_m < l->m)
        fail_msg("%s: m = %u is not from %u to %u", g->sku, l->m, g->from_m, g->to_m);
    for (size_t i = 0; i < count; i++) {
        const struct launched *o = &all[i];
        uint32_t rows = l->m < o->m ? l->m : o->m;
        bool same = have_same_rows(p, l, o, rows), promised = o->m >= g->from_m && o->m <= g->to_m;
        if (promised && !same)
            fail_msg("%s: rows of %u and of %u tokens differ, but have the same bits from %u to %u",
                     g->sku, l->m, o->m, g->from_m, g->to_m);
        *differ = *differ || !same;
    }
}

/* The reference of the whole problem says these bits, and no bound. */
static void expect_exact(struct problem *p)
{
    static struct block_reference r;
    ptxgen_error err = {0};
    for (unsigned i = 0; i < p->count; i++) {
        const struct operand *o = &p->operands[i];
        if (!o->used || o->role != OPERAND_OUTPUT)
            continue;
        assert_true(o->rows * o->columns <= BLOCK_OUTPUTS);
        const struct block all = {i, 0, o->rows, 0, (uint32_t)o->columns};
        memset(&r, 0, sizeof r);
        assert_ok(p->harness->reference(p, &all, &r, &err), &err);
        for (uint64_t at = 0; at < o->rows * o->columns; at++) {
            assert_true(r.bound[at] == 0);
            assert_true(typed_load(o->type, p->buffers[i].host, at) == r.value[at]);
        }
    }
}

static void expect_guarantees(const struct subject *s)
{
    static uint64_t plan[PLAN_BYTES / 8];
    static int number;
    struct launched all[MANY];
    size_t count = 0;
    bool differ = false;
    ptxgen_error err = {0};
    void *kernel = NULL;
    const struct harness *h = s->family->harness;
    const struct kernel_request request = {.spec = s->spec, .tile = s->tile};
    uint32_t most = s->most ? s->most : MOST_M;
    if (!test_in_share(number++))
        return;
    struct device device = open_device(s->device);
    device.facts.sm_count = 6;
    struct problem p = make_tiled(&device, h, s->spec, s->tile, most, NULL, most);
    ptxgen_target target = ptxgen_device_target(&device.facts);
    assert_true(h->family()->plan_bytes <= sizeof plan);
    assert_ok(harness_plan(h, &request, 0, &target, plan, NULL, &err), &err);
    assert_ok(h->verbs->load(&device.driver, plan, &kernel, &err), &err);
    for (unsigned i = 0; i < p.count; i++)
        if (p.operands[i].used)
            assert_ok(buffer_upload(&p.buffers[i], &err), &err);
    make_workspace(&p, kernel, &device);
    for (; count < MANY && many[count] <= most; count++) {
        struct launched *l = &all[count];
        l->m = many[count];
        l->outputs = launch(&p, kernel, &device, l->m, 1);
        assert_ok(s->family->guarantee(plan, l->m, &l->guarantee, &err), &err);
        struct launched again = {l->m, l->guarantee, launch(&p, kernel, &device, l->m, 2)};
        if (l->guarantee.same_bits && !have_same_rows(&p, l, &again, l->m))
            fail_msg("%s: two launches of %u tokens differ", l->guarantee.sku, l->m);
        free(again.outputs);
    }
    for (size_t i = 0; i < count; i++) {
        const ptxgen_guarantee *g = &all[i].guarantee;
        expect_range(&p, all, count, &all[i], &differ);
        assert_true(g->same_bits);
        assert_int_equal(g->exact, s->exact);
        assert_int_equal(g->exact, g->bound == PTXGEN_BOUND_ZERO);
        assert_int_equal(g->batch_invariant, s->invariant);
        assert_true(!g->batch_invariant || (g->from_m == 1 && g->to_m >= most));
    }
    if (s->exact)
        expect_exact(&p); /* of the last launch, which had all tokens */
    assert_true(!s->invariant || !differ);
    if (s->ends && !differ)
        fail_msg("%s to %s: all rows have the same bits, in ranges up to %u and up to %u tokens",
                 all[0].guarantee.sku, all[count - 1].guarantee.sku, all[0].guarantee.to_m,
                 all[count - 1].guarantee.to_m);
    for (size_t i = 0; i < count; i++)
        free(all[i].outputs);
    h->verbs->destroy(kernel);
    problem_release(&p);
    device_close(&device);
}

#define EXPECT(of, on, kernel, ...)                                                                \
    expect_guarantees(                                                                             \
        &(const struct subject){.family = of, .device = on, .spec = kernel, __VA_ARGS__})

static void guarantees_of_dense_hold(void **state)
{
    (void)state;
    const ptxgen_dense_spec f16 = {.n = 72, .k = 1024, .type = PTXGEN_F16};
    const ptxgen_dense_spec f32 = {.n = 72, .k = 512, .type = PTXGEN_F32, .max_m = MOST_M};
    EXPECT(&dense, "cpu:sm_80", &f16, .ends = true);
    EXPECT(&dense, "cpu:sm_90", &f16, .ends = false);
    EXPECT(&dense, "cpu:sm_80", &f32, .ends = true);
}

static void guarantees_of_marlin_hold(void **state)
{
    (void)state;
    const ptxgen_marlin_spec f16 = {.k = 2048, .n = 256, .group_size = 128, .type = PTXGEN_F16};
    const ptxgen_marlin_spec bf16 = {
        .k = 1024, .n = 128, .group_size = 32, .type = PTXGEN_BF16, .zeros = 1, .max_m = MOST_M};
    const ptxgen_tile whole = {.kind = PTXGEN_WGMMA,
                               .tile_m = 32,
                               .warp_n = 16,
                               .wn = 8,
                               .pass_m = 32,
                               .steps = 2,
                               .cluster = 2};
    EXPECT(&marlin, "cpu:sm_80", &f16, .ends = true);
    EXPECT(&marlin, "cpu:sm_90", &bf16, .ends = true);
    EXPECT(&marlin, "cpu:sm_90", &f16, .tile = &whole, .invariant = true);
}

static void guarantees_of_rmsnorm_q4k_hold(void **state)
{
    (void)state;
    const ptxgen_rmsnorm_q4k_spec spec = {
        .k = 2048, .n = {48}, .epsilon = 1e-6f, .x_type = PTXGEN_F16, .y_type = PTXGEN_F32};
    const ptxgen_rmsnorm_q4k_spec one = {.k = 512,
                                         .n = {48},
                                         .epsilon = 1e-6f,
                                         .max_m = 1,
                                         .x_type = PTXGEN_F16,
                                         .y_type = PTXGEN_F32};
    EXPECT(&rmsnorm_q4k, "cpu:sm_80", &spec, .most = 8, .ends = true);
    EXPECT(&rmsnorm_q4k, "cpu:sm_80", &one, .most = 1, .invariant = true);
}

static void guarantees_of_gguf_linear_hold(void **state)
{
    (void)state;
    const ptxgen_gguf_linear_spec spec = {.k = 2048,
                                          .n = {48},
                                          .max_m = 8,
                                          .w_type = {PTXGEN_GGUF_Q6_K},
                                          .x_type = PTXGEN_F16,
                                          .y_type = PTXGEN_F32};
    const ptxgen_gguf_linear_spec one = {.k = 672,
                                         .n = {48},
                                         .max_m = 1,
                                         .w_type = {PTXGEN_GGUF_Q8_0},
                                         .y_type = PTXGEN_F32};
    const ptxgen_gguf_linear_spec floats = {.k = 2056,
                                            .n = {48},
                                            .max_m = 8,
                                            .w_type = {PTXGEN_GGUF_BF16},
                                            .x_type = PTXGEN_F16,
                                            .y_type = PTXGEN_F32};
    EXPECT(&gguf_linear, "cpu:sm_80", &spec, .most = 8);
    EXPECT(&gguf_linear, "cpu:sm_80", &floats, .most = 8);
    EXPECT(&gguf_linear, "cpu:sm_80", &one, .most = 1, .invariant = true);
}

static void guarantees_of_sparse24_hold(void **state)
{
    (void)state;
    const ptxgen_sparse24_spec f16 = {
        .n = 72, .k = 1024, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16};
    const ptxgen_sparse24_spec s8 = {.n = 72,
                                     .k = 1024,
                                     .type = PTXGEN_SPARSE24_S8,
                                     .y_type = PTXGEN_F16,
                                     .activation = PTXGEN_ACTIVATION_RELU};
    const ptxgen_sparse24_spec gelu = {.n = 72,
                                       .k = 512,
                                       .type = PTXGEN_SPARSE24_S8,
                                       .y_type = PTXGEN_F16,
                                       .activation = PTXGEN_ACTIVATION_GELU};
    const ptxgen_sparse24_spec f32 = {
        .n = 72, .k = 512, .type = PTXGEN_SPARSE24_F32, .y_type = PTXGEN_F32};
    EXPECT(&sparse24, "cpu:sm_80", &f16, .ends = true);
    EXPECT(&sparse24, "cpu:sm_80", &s8, .exact = true, .invariant = true);
    EXPECT(&sparse24, "cpu:sm_90", &gelu, .invariant = true);
    EXPECT(&sparse24, "cpu:sm_80", &f32, .ends = false);
}

static void guarantees_of_w8a8_hold(void **state)
{
    (void)state;
    const ptxgen_w8a8_spec s8 = {.n = 72, .k = 1024, .x_type = PTXGEN_F16, .y_type = PTXGEN_F32};
    const ptxgen_w8a8_spec e4m3 = {
        .n = 200, .k = 4096, .x_type = PTXGEN_F16, .y_type = PTXGEN_F32, .codes = PTXGEN_W8A8_E4M3};
    const ptxgen_w8a8_spec gelu = {.n = 200,
                                   .k = 512,
                                   .x_type = PTXGEN_F16,
                                   .y_type = PTXGEN_F16,
                                   .activation = PTXGEN_ACTIVATION_GELU,
                                   .residual = 1};
    const ptxgen_w8a8_spec given = {.n = 72,
                                    .k = 512,
                                    .scales = PTXGEN_W8A8_QUANTISED,
                                    .x_type = PTXGEN_F16,
                                    .y_type = PTXGEN_F16};
    EXPECT(&w8a8, "cpu:sm_80", &given, .exact = true, .invariant = true);
    EXPECT(&w8a8, "cpu:sm_80", &s8, .exact = true, .invariant = true);
    EXPECT(&w8a8, "cpu:sm_90", &s8, .exact = true, .invariant = true);
    EXPECT(&w8a8, "cpu:sm_89", &e4m3, .ends = true);
    EXPECT(&w8a8, "cpu:sm_90", &gelu, .invariant = true);
}

/* ---- the bound's form ---- */

/* Weights of 0, as q − z with q = z: only masked codes and the zero points apart have an error. */
static void bounds_of_marlin_are_of_the_form_that_is_said(void **state)
{
    enum { K = 128, N = 8, M = 64 };
    static uint8_t codes[K * N];
    static uint16_t scales[N], x[M * K];
    static double y[M * N], bound[M * N];
    (void)state;
    const ptxgen_marlin_spec spec = {.k = K, .n = N, .group_size = -1, .type = PTXGEN_F16};
    const ptxgen_w4_matrix w = {.k = K,
                                .n = N,
                                .group_size = K,
                                .codes = codes,
                                .scale_type = PTXGEN_F16,
                                .scales = scales};
    const ptxgen_marlin_operands o = {.m = M, .x = x, .weights = &w};
    ptxgen_target target = target_of("sm_80");
    ptxgen_error err = {0};
    bool seen[PTXGEN_BOUND_PARTS + 1] = {false};
    memset(codes, PTXGEN_W4_SYMMETRIC_ZERO, sizeof codes);
    for (int i = 0; i < M * K; i++)
        ptxgen_element_store(PTXGEN_F16, x, (size_t)i, 1);
    for (int i = 0; i < N; i++)
        ptxgen_element_store(PTXGEN_F16, scales, (size_t)i, 1);
    for (uint32_t m = 8; m <= M; m *= 8) {
        const ptxgen_tile tile = {
            .kind = PTXGEN_MMA, .tile_m = m, .warp_n = 32, .wn = 1, .wk = 2, .pass_m = 8};
        ptxgen_marlin_plan plan;
        ptxgen_guarantee g;
        struct ptxgen_marlin_operands of = o;
        of.m = m;
        assert_ok(ptxgen_marlin_make_plan(&spec, &target, &plan, &err), &err);
        assert_ok(ptxgen_marlin_use_tile(&plan, &tile, &err), &err);
        assert_ok(ptxgen_marlin_guarantee(&plan, m, &g, &err), &err);
        assert_ok(ptxgen_marlin_reference(&plan, &of, y, bound, &err), &err);
        assert_true(g.bound == PTXGEN_BOUND_PARTS || g.bound == PTXGEN_BOUND_PRODUCTS);
        if (g.bound == PTXGEN_BOUND_PARTS ? bound[0] < 0x1p-24 * K : bound[0] > 0x1p-24)
            fail_msg("%s: the bound is %g", g.sku, bound[0]);
        seen[g.bound] = true;
        assert_int_equal(g.w_rounding != PTXGEN_ROUNDING_NONE,
                         ptxgen_marlin_rounds_weights(&plan, ptxgen_marlin_choose(&plan, m)));
    }
    assert_true(seen[PTXGEN_BOUND_PARTS] && seen[PTXGEN_BOUND_PRODUCTS]);
}

/* Products that cancel have an error, weights of 0 have none. */
static void bounds_of_dense_are_relative_to_products(void **state)
{
    enum { K = 64, N = 2 };
    float x[K], w[N * K] = {0};
    double y[N], bound[N];
    (void)state;
    const ptxgen_dense_spec spec = {.n = N, .k = K, .type = PTXGEN_F32};
    const ptxgen_dense_operands o = {.m = 1, .x = x, .w = w};
    ptxgen_target target = target_of("sm_80");
    ptxgen_dense_plan plan;
    ptxgen_guarantee g;
    ptxgen_error err = {0};
    for (int k = 0; k < K; k++) {
        x[k] = 1;
        w[k] = k % 2 ? 1 : -1;
    }
    assert_ok(ptxgen_dense_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_dense_guarantee(&plan, 1, &g, &err), &err);
    assert_ok(ptxgen_dense_reference(&plan, &o, y, bound, &err), &err);
    assert_int_equal(g.bound, PTXGEN_BOUND_PRODUCTS);
    assert_int_equal(g.w_rounding, PTXGEN_ROUNDING_TF32_PAIR);
    assert_true(y[0] == 0 && bound[0] > 0x1p-24 * K);
    assert_true(y[1] == 0 && bound[1] < 0x1p-100);
}

/* Weights of 0, as d·sc·q − dmin·m with both parts 5. */
static void bounds_of_rmsnorm_q4k_are_relative_to_both_parts(void **state)
{
    enum { K = 256, BLOCK = 144 };
    static uint16_t x[K];
    static float gamma[K];
    double y, bound;
    (void)state;
    unsigned char block[BLOCK] = {0, 0x3C, 0, 0x3C, 1, 1, 1, 1, 5, 5, 5, 5, 0x51, 0x51, 0x51, 0x51};
    memset(block + 16, 0x55, BLOCK - 16);
    const ptxgen_rmsnorm_q4k_spec spec = {
        .k = K, .n = {1}, .epsilon = 0, .x_type = PTXGEN_F16, .y_type = PTXGEN_F32};
    const ptxgen_rmsnorm_q4k_operands o = {.m = 1, .x = x, .gamma = gamma, .w = {block}};
    ptxgen_target target = target_of("sm_80");
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_guarantee g;
    ptxgen_error err = {0};
    for (size_t k = 0; k < K; k++) {
        ptxgen_element_store(PTXGEN_F16, x, k, 1);
        gamma[k] = 1;
    }
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_rmsnorm_q4k_guarantee(&plan, 1, &g, &err), &err);
    assert_ok(ptxgen_rmsnorm_q4k_reference(&plan, &o, 0, 0, 1, &y, &bound, NULL, &err), &err);
    assert_int_equal(g.bound, PTXGEN_BOUND_PARTS);
    assert_true(y == 0 && bound > 0x1p-24 * K);
}

/* ---- roundings ---- */

static void activations_that_are_codes_are_multiplied_as_they_are(void **state)
{
    (void)state;
    ptxgen_target target = target_of("sm_89");
    for (uint8_t codes = PTXGEN_W8A8_S8; codes <= PTXGEN_W8A8_E4M3; codes++)
        for (int given = 0; given < 2; given++) {
            const ptxgen_w8a8_spec spec = {.n = 64,
                                           .k = 512,
                                           .x_type = PTXGEN_F16,
                                           .y_type = PTXGEN_F16,
                                           .codes = codes,
                                           .scales =
                                               given ? PTXGEN_W8A8_QUANTISED : PTXGEN_W8A8_DYNAMIC};
            const ptxgen_rounding due = given                       ? PTXGEN_ROUNDING_NONE
                                        : codes == PTXGEN_W8A8_E4M3 ? PTXGEN_ROUNDING_E4M3
                                                                    : PTXGEN_ROUNDING_S8;
            ptxgen_w8a8_plan plan;
            ptxgen_guarantee g;
            ptxgen_error err = {0};
            assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
            assert_ok(ptxgen_w8a8_guarantee(&plan, 16, &g, &err), &err);
            assert_int_equal(g.x_rounding, due);
            assert_int_equal(g.w_rounding, PTXGEN_ROUNDING_NONE);
        }
}

/* ---- refusals ---- */

static void guarantees_are_of_plans_and_tokens_that_they_serve(void **state)
{
    (void)state;
    const ptxgen_dense_spec spec = {.n = 64, .k = 64, .type = PTXGEN_F16, .max_m = 4};
    const ptxgen_rmsnorm_q4k_spec norm = {
        .k = 256, .n = {16}, .epsilon = 1e-6f, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
    const ptxgen_sparse24_spec sparse = {
        .n = 64, .k = 64, .type = PTXGEN_SPARSE24_F32, .y_type = PTXGEN_F32, .max_m = 4};
    ptxgen_target target = target_of("sm_80");
    ptxgen_dense_plan plan = {.variant_count = 0};
    ptxgen_rmsnorm_q4k_plan norm_plan;
    ptxgen_sparse24_plan sparse_plan;
    ptxgen_guarantee g;
    ptxgen_error err = {0};
    const char *const rule = "dense: a plan that was made, m above 0 and a guarantee must be given";
    assert_refusal(ptxgen_dense_guarantee(&plan, 1, &g, &err), &err, PTXGEN_ERROR_INVALID_ARGUMENT,
                   rule);
    assert_ok(ptxgen_dense_make_plan(&spec, &target, &plan, &err), &err);
    assert_refusal(ptxgen_dense_guarantee(&plan, 0, &g, &err), &err, PTXGEN_ERROR_INVALID_ARGUMENT,
                   rule);
    assert_refusal(ptxgen_dense_guarantee(&plan, 1, NULL, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT, rule);
    assert_refusal(ptxgen_dense_guarantee(&plan, 5, &g, &err), &err, PTXGEN_ERROR_INVALID_ARGUMENT,
                   "dense: m = 5 is above the 4 tokens that the plan serves");
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(&norm, &target, &norm_plan, &err), &err);
    assert_refusal(ptxgen_rmsnorm_q4k_guarantee(&norm_plan, 0, &g, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT,
                   "rmsnorm_q4k: a plan that was made, m above 0 and a guarantee must be given");
    assert_int_equal(ptxgen_rmsnorm_q4k_guarantee(&norm_plan, 9, &g, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_ok(ptxgen_sparse24_make_plan(&sparse, &target, &sparse_plan, &err), &err);
    assert_refusal(ptxgen_sparse24_guarantee(&sparse_plan, 5, &g, &err), &err,
                   PTXGEN_ERROR_INVALID_ARGUMENT,
                   "sparse24: m = 5 is above the 4 tokens that the plan serves");
}

static void plans_without_products_guarantee_the_same_bits_for_any_m(void **state)
{
    (void)state;
    const ptxgen_dense_spec spec = {.n = 8, .k = 0, .type = PTXGEN_F16, .bias = 1, .max_m = 9};
    const ptxgen_rmsnorm_q4k_spec norm = {
        .k = 256, .epsilon = 1e-6f, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
    ptxgen_target target = target_of("sm_80");
    ptxgen_dense_plan plan;
    ptxgen_rmsnorm_q4k_plan norm_plan;
    ptxgen_guarantee g;
    ptxgen_error err = {0};
    assert_ok(ptxgen_dense_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_dense_guarantee(&plan, 3, &g, &err), &err);
    assert_string_equal(g.sku, "dense_empty");
    assert_true(g.batch_invariant && g.from_m == 1 && g.to_m == 9 && g.bound == PTXGEN_BOUND_SUM);
    assert_int_equal(ptxgen_dense_guarantee(&plan, 10, &g, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(&norm, &target, &norm_plan, &err), &err);
    assert_ok(ptxgen_rmsnorm_q4k_guarantee(&norm_plan, 8, &g, &err), &err);
    assert_string_equal(g.sku, "rmsnorm_q4k_empty");
    assert_int_equal(ptxgen_rmsnorm_q4k_guarantee(&norm_plan, 9, &g, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
}

/* ---- names ---- */

/* Every name that an entry may have. A name may be added to this list, and none is ever changed. */
static const char *const promised[] = {"dense_m16",
                                       "dense_m32",
                                       "dense_m64",
                                       "dense_m128",
                                       "dense_wgmma_m16",
                                       "dense_wgmma_m32",
                                       "dense_wgmma_m64",
                                       "dense_wgmma_m128",
                                       "dense_wgmma_m256",
                                       "dense_wgmma_pair_m16",
                                       "dense_wgmma_pair_m32",
                                       "dense_wgmma_pair_m64",
                                       "dense_wgmma_pair_m128",
                                       "dense_wgmma_pair_m256",
                                       "dense_wgmma_split_m16",
                                       "dense_wgmma_split_m32",
                                       "dense_wgmma_split_m64",
                                       "dense_wgmma_split_m128",
                                       "dense_wgmma_split_m256",
                                       "dense_bulk_m16",
                                       "dense_bulk_m32",
                                       "dense_bulk_m64",
                                       "dense_bulk_m128",
                                       "dense_bulk_m256",
                                       "dense_bulk_pair_m16",
                                       "dense_bulk_pair_m32",
                                       "dense_bulk_pair_m64",
                                       "dense_bulk_pair_m128",
                                       "dense_bulk_pair_m256",
                                       "marlin_m8",
                                       "marlin_m16",
                                       "marlin_m32",
                                       "marlin_m64",
                                       "marlin_m128",
                                       "marlin_bulk_m8",
                                       "marlin_bulk_m16",
                                       "marlin_bulk",
                                       "marlin_wgmma_m32_n64_c2",
                                       "marlin_wgmma_m64_n64_c2",
                                       "marlin_wgmma_m32_n128",
                                       "marlin_wgmma_m32_n128_c2",
                                       "marlin_wgmma_m32_n128_c2x2",
                                       "marlin_wgmma_m32_n192",
                                       "marlin_wgmma_m48_n256",
                                       "marlin_wgmma_m64_n128",
                                       "marlin_wgmma_m64_n128_c2",
                                       "marlin_wgmma_m64_n256",
                                       "marlin_wgmma_m96_n256",
                                       "marlin_wgmma_m96_n128_c2",
                                       "marlin_wgmma_m128_n128",
                                       "marlin_wgmma_m128_n128_c2",
                                       "marlin_wgmma_m128_n256",
                                       "marlin_wgmma_m160_n192",
                                       "marlin_wgmma_m160_n128_c2",
                                       "marlin_wgmma_m192_n128_c2",
                                       "marlin_wgmma",
                                       "rmsnorm_q4k_m1",
                                       "rmsnorm_q4k_m2",
                                       "rmsnorm_q4k_m4",
                                       "rmsnorm_q4k_m8",
                                       "sparse24_m8",
                                       "sparse24_m16",
                                       "sparse24_m32",
                                       "sparse24_m64",
                                       "sparse24_m128",
                                       "sparse24_wgmma_m8",
                                       "sparse24_wgmma_m16",
                                       "sparse24_wgmma_m32",
                                       "sparse24_wgmma_m64",
                                       "sparse24_wgmma_m128",
                                       "sparse24_wgmma",
                                       "dense_empty",
                                       "marlin_empty",
                                       "rmsnorm_q4k_empty",
                                       "sparse24_empty",
                                       "w8a8_empty",
                                       "w8a8_fused",
                                       "w8a8_m16",
                                       "w8a8_m32",
                                       "w8a8_m64",
                                       "w8a8_m128",
                                       "w8a8_m128_n64",
                                       "w8a8_m128_n128",
                                       "w8a8_m256"};
enum { PROMISED = sizeof promised / sizeof *promised };

/* The number after the last "_m" and so on of a name; 0: there is none. */
static uint32_t number_in(const char *name, const char *letter)
{
    const char *at = strstr(name, letter);
    return at && isdigit((unsigned char)at[2]) ? (uint32_t)strtoul(at + 2, NULL, 10) : 0;
}

static void expect_name(const char *name, const ptxgen_tile *v, bool *seen)
{
    size_t i = 0;
    while (i < PROMISED && strcmp(name, promised[i]) != 0)
        i++;
    if (i == PROMISED)
        fail_msg("%s is no name that was promised", name);
    seen[i] = true;
    assert_true(strlen(name) < PTXGEN_SKU_BYTES);
    uint32_t m = number_in(name, "_m"), n = number_in(name, "_n"), c = number_in(name, "_c");
    bool wgmma = strstr(name, "wgmma"), bulk = strstr(name, "bulk");
    if ((m && (v->tile_m > m || 2 * v->tile_m <= m)) || (n && v->tile_n != n) ||
        (c && v->cluster != c) || (wgmma && v->kind != PTXGEN_WGMMA) ||
        (bulk && v->kind != PTXGEN_BULK))
        fail_msg("%s has a tile of %u tokens by %u features, of kind %u, in a cluster of %u", name,
                 v->tile_m, v->tile_n, v->kind, v->cluster);
}

#define EXPECT_NAMES(F, ...)                                                                       \
    for (size_t s = 0;                                                                             \
         s < sizeof((const ptxgen_##F##_spec[]){__VA_ARGS__}) / sizeof(ptxgen_##F##_spec); s++) {  \
        const ptxgen_##F##_spec specs[] = {__VA_ARGS__};                                           \
        ptxgen_##F##_plan plan;                                                                    \
        if (ptxgen_##F##_make_plan(&specs[s], &target, &plan, &err) == PTXGEN_OK)                  \
            for (uint32_t i = 0; i < plan.variant_count; i++)                                      \
                expect_name(ptxgen_##F##_entry(&plan.variants[i]), &plan.variants[i], seen);       \
    }

static void names_of_entries_are_those_that_were_promised(void **state)
{
    static const char *const targets[] = {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_120"};
    bool seen[PROMISED] = {false};
    uint32_t count = 0;
    ptxgen_error err = {0};
    (void)state;
    for (int t = 0; t < 6; t++) {
        ptxgen_target target = target_of(targets[t]);
        for (uint32_t n = 512; n <= 32768; n *= 8) {
            EXPECT_NAMES(dense, {.n = n, .k = 4096, .type = PTXGEN_F16},
                         {.n = n, .k = 1400, .type = PTXGEN_F32})
            EXPECT_NAMES(marlin, {.n = n, .k = 4096, .group_size = 128, .type = PTXGEN_F16},
                         {.n = n, .k = 8192, .group_size = 32, .type = PTXGEN_BF16, .zeros = 1},
                         {.n = n, .k = 1040, .group_size = -1, .type = PTXGEN_F16})
            EXPECT_NAMES(sparse24,
                         {.n = n, .k = 4096, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16},
                         {.n = n, .k = 4096, .type = PTXGEN_SPARSE24_S8, .y_type = PTXGEN_F16})
            EXPECT_NAMES(w8a8, {.n = n, .k = 4096, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16},
                         {.n = n,
                          .k = 4096,
                          .x_type = PTXGEN_F16,
                          .y_type = PTXGEN_F16,
                          .codes = PTXGEN_W8A8_E4M3})
        }
    }
    for (size_t i = 0; i < PROMISED; i++)
        count += seen[i];
    assert_true(count >= 40);
}

static void names_of_guarantees_are_those_of_entries(void **state)
{
    static const char zeros[PTXGEN_SKU_BYTES];
    ptxgen_target target = target_of("sm_90a");
    const ptxgen_marlin_spec spec = {.k = 4096, .n = 4096, .group_size = 128, .type = PTXGEN_F16};
    const ptxgen_rmsnorm_q4k_spec norm = {
        .k = 256, .n = {16}, .epsilon = 1e-6f, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
    ptxgen_marlin_plan plan;
    ptxgen_rmsnorm_q4k_plan norm_plan;
    ptxgen_guarantee g;
    ptxgen_error err = {0};
    (void)state;
    assert_ok(ptxgen_marlin_make_plan(&spec, &target, &plan, &err), &err);
    for (uint64_t m = 1; m <= 512; m *= 2) {
        const char *name = ptxgen_marlin_entry(ptxgen_marlin_choose(&plan, m));
        assert_ok(ptxgen_marlin_guarantee(&plan, m, &g, &err), &err);
        assert_string_equal(g.sku, name);
        assert_memory_equal(g.sku + strlen(name), zeros, sizeof g.sku - strlen(name));
    }
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(&norm, &target, &norm_plan, &err), &err);
    assert_ok(ptxgen_rmsnorm_q4k_guarantee(&norm_plan, 3, &g, &err), &err);
    assert_string_equal(g.sku, "rmsnorm_q4k_m4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guarantees_of_dense_hold),
        cmocka_unit_test(guarantees_of_marlin_hold),
        cmocka_unit_test(guarantees_of_rmsnorm_q4k_hold),
        cmocka_unit_test(guarantees_of_gguf_linear_hold),
        cmocka_unit_test(guarantees_of_sparse24_hold),
        cmocka_unit_test(guarantees_of_w8a8_hold),
        cmocka_unit_test(bounds_of_marlin_are_of_the_form_that_is_said),
        cmocka_unit_test(bounds_of_dense_are_relative_to_products),
        cmocka_unit_test(bounds_of_rmsnorm_q4k_are_relative_to_both_parts),
        cmocka_unit_test(activations_that_are_codes_are_multiplied_as_they_are),
        cmocka_unit_test(guarantees_are_of_plans_and_tokens_that_they_serve),
        cmocka_unit_test(plans_without_products_guarantee_the_same_bits_for_any_m),
        cmocka_unit_test(names_of_entries_are_those_that_were_promised),
        cmocka_unit_test(names_of_guarantees_are_those_of_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
