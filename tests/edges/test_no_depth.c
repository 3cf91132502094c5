/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product without depth: where K is 0, outputs are what the epilogue makes of sums of 0, and
 * nothing else is written; where N is 0, a launch does nothing. What has no elements may be null.
 */
#include "tests/launches.h"

#include "src/harness/harness.h"

#include <ptxgen/dense.h>
#include <ptxgen/marlin.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 5, STRIDE = 51, UNTOUCHED = 0x5A, MOST_BYTES = M * STRIDE * 8 };

/* What an epilogue makes of sums of 0, in any family. */
struct epilogue {
    uint32_t n;
    ptxgen_activation activation;
    bool pairs;
    size_t in_turn; /* w8a8's pairs: so many biases of gate, then as many of up; 0: up_bias */
};

/* An operand with elements, on the host and on the device; null where it has none. */
struct array {
    unsigned char host[MOST_BYTES];
    int type;
    ptxgen_cu_deviceptr device;
};

struct arrays {
    struct array bias, up_bias, residual, y;
    struct array scales[4]; /* and zero points, which nothing reads */
    int scale_count;
};

static struct array *array_of(struct arrays *all, const char *name)
{
    return !strcmp(name, "bias")       ? &all->bias
           : !strcmp(name, "up_bias")  ? &all->up_bias
           : !strcmp(name, "residual") ? &all->residual
           : !strcmp(name, "y")        ? &all->y
                                       : &all->scales[all->scale_count++];
}

/* Values of both signs, some of them zeros of either sign. */
static double value_of(size_t i, size_t salt)
{
    size_t drawn = (i * 37 + salt * 11) % 29;
    return drawn ? ((double)drawn - 14) / 4 : i % 2 ? -0.0 : 0.0;
}

static void place(const struct emulated *e, const struct operand *o, struct arrays *all,
                  struct kernel_args *args)
{
    if (!o->used || !o->rows || !o->columns)
        return;
    struct array *a = array_of(all, o->name);
    a->type = o->type;
    memset(a->host, UNTOUCHED, sizeof a->host);
    for (size_t i = 0; i < (o->rows > 1 ? M * STRIDE : o->columns) && o->role != OPERAND_OUTPUT;
         i++)
        typed_store(o->type, a->host, i, value_of(i, o->address));
    assert_int_equal(e->driver.mem_alloc(&a->device, sizeof a->host), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(e->driver.memcpy_htod(a->device, a->host, sizeof a->host),
                     PTXGEN_CUDA_SUCCESS);
    args_set(args, o->address, a->device);
    args_set(args, o->bytes, sizeof a->host);
    if (o->stride)
        args_set(args, o->stride, STRIDE);
}

static double activated(ptxgen_activation f, double v)
{
    switch (f) {
    case PTXGEN_ACTIVATION_SILU: return v / (1 + exp(-v));
    case PTXGEN_ACTIVATION_GELU: return v / 2 * (1 + erf(v / sqrt(2)));
    case PTXGEN_ACTIVATION_GELU_TANH:
        return v / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v)));
    case PTXGEN_ACTIVATION_RELU: return v > 0 ? v : 0;
    default: return v;
    }
}

static double loaded(const struct array *a, size_t i)
{
    return a->device ? typed_load(a->type, a->host, i) : 0;
}

static double expected(const struct arrays *all, const struct epilogue *f, size_t m, size_t n)
{
    size_t gate = f->in_turn ? n + n / f->in_turn * f->in_turn : n;
    double v =
        activated(f->pairs ? PTXGEN_ACTIVATION_SILU : f->activation, loaded(&all->bias, gate));
    if (f->pairs)
        v *= f->in_turn ? loaded(&all->bias, gate + f->in_turn) : loaded(&all->up_bias, n);
    return v + loaded(&all->residual, m * STRIDE + n);
}

/* Of values up to 4. */
static const double activation_error = 0x1p-18;

static void check_outputs(const struct emulated *e, const struct arrays *all,
                          const struct epilogue *f)
{
    unsigned char y[MOST_BYTES];
    size_t size = typed_bytes(all->y.type);
    assert_int_equal(e->driver.memcpy_dtoh(y, all->y.device, sizeof y), PTXGEN_CUDA_SUCCESS);
    for (size_t i = 0; i < sizeof y / size; i++) {
        size_t m = i / STRIDE, n = i % STRIDE;
        double due = m < M && n < f->n ? expected(all, f, m, n) : 0;
        double unit = all->y.type == PTXGEN_BF16 ? 0x1p-8 : all->y.type == PTXGEN_F16 ? 0x1p-11 : 0;
        if (m >= M || n >= f->n) {
            for (size_t b = 0; b < size; b++)
                assert_int_equal(y[i * size + b], UNTOUCHED);
        } else if (!(fabs(typed_load(all->y.type, y, i) - due) <=
                     unit * fabs(due) + activation_error))
            fail_msg("y[%zu, %zu] is %g, not %g", m, n, typed_load(all->y.type, y, i), due);
    }
}

static void launch(const struct emulated *e, const struct harness *h, const void *plan,
                   const struct epilogue *f, bool is_nothing)
{
    static struct operand operands[MOST_OPERANDS];
    struct arrays *all = calloc(1, sizeof *all);
    assert_non_null(all);
    struct kernel_args args = {{0}};
    ptxgen_error err = {0};
    uint32_t ctas = 7;
    uint64_t bytes = 7;
    void *kernel;
    memset(operands, 0, sizeof operands);
    unsigned count = h->operands(plan, M, operands);
    for (unsigned i = 0; i < count && !is_nothing; i++)
        place(e, &operands[i], all, &args);
    args_set(&args, h->m, M);
    assert_ok(h->verbs->ctas(plan, M, &ctas, &err), &err);
    assert_int_equal(ctas, is_nothing ? 0 : M);
    assert_ok(h->verbs->load(&e->driver, plan, &kernel, &err), &err);
    if (h->workspace) {
        assert_ok(h->verbs->workspace_bytes(kernel, &args, &bytes, &err), &err);
        assert_int_equal(bytes, 0);
    }
    for (unsigned m = 0; m <= 2 * M; m += M) /* of which the plan serves up to 8 */
        assert_true((h->verbs->attributes(kernel, m) != NULL) == (m == M && !is_nothing));
    assert_ok(h->verbs->launch(kernel, &args, NULL, &err), &err);
    assert_int_equal(e->driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
    if (!is_nothing)
        check_outputs(e, all, f);
    h->verbs->destroy(kernel);
    struct array *const owned[] = {&all->bias,      &all->up_bias,   &all->residual,
                                   &all->y,         &all->scales[0], &all->scales[1],
                                   &all->scales[2], &all->scales[3]};
    for (int i = 0; i < 8; i++)
        if (owned[i]->device)
            e->driver.mem_free(owned[i]->device);
    free(all);
}

/* What a plan without products says of itself, and refuses. */
static void check_plan(const struct harness *h, const void *plan, const struct epilogue *f,
                       bool is_nothing)
{
    static const ptxgen_tile tile = {.tile_m = 16};
    char text[256];
    ptxgen_error err = {0};
    uint32_t ctas;
    h->verbs->explain(plan, M, text, sizeof text);
    assert_string_equal(text, is_nothing ? "no launch: N is 0"
                                         : "one launch: K is 0, so outputs are made of bias and "
                                           "residual alone");
    assert_refused(h->verbs->ctas(plan, 9, &ctas, &err), &err, "9");
    if (h->verbs->use_tile) {
        void *changed = malloc(h->family()->plan_bytes);
        assert_non_null(changed);
        memcpy(changed, plan, h->family()->plan_bytes);
        char due[128];
        const struct product product = h->product(plan);
        snprintf(due, sizeof due, "%s: K = %u and N = %u; a plan without products has no tiles",
                 h->family()->name, product.k, f->pairs ? product.n / 2 : product.n);
        assert_refusal(h->verbs->use_tile(changed, &tile, &err), &err,
                       PTXGEN_ERROR_INVALID_ARGUMENT, due);
        free(changed);
    }
}

static void run(void **state, const struct harness *h, const void *spec, const struct epilogue *f,
                bool is_nothing)
{
    const ptxgen_target target = target_of("sm_90a");
    ptxgen_error err = {0};
    void *plan = malloc(h->family()->plan_bytes);
    assert_non_null(plan);
    assert_ok(h->family()->make_plan(spec, &target, plan, &err), &err);
    check_plan(h, plan, f, is_nothing);
    launch(*state, h, plan, f, is_nothing);
    free(plan);
}

/* Each kind of output, with K, with N, and with both of 0. */
enum { NO_K, NO_N, NEITHER, KINDS };

static void dense_without_depth(void **state)
{
    for (int i = 0; i < 5 * KINDS; i++) {
        const ptxgen_dense_spec spec = {.n = i % KINDS ? 0 : 41,
                                        .k = i % KINDS == NO_N ? 40 : 0,
                                        .max_m = 8,
                                        .type = (uint8_t)(i / KINDS % 3),
                                        .activation = (uint8_t)(i / KINDS),
                                        .bias = i / KINDS != 1,
                                        .residual = i / KINDS % 2};
        const struct epilogue f = {spec.n, (ptxgen_activation)spec.activation, false, 0};
        run(state, &dense_harness, &spec, &f, i % KINDS != NO_K);
    }
}

static void sparse24_without_depth(void **state)
{
    for (int i = 0; i < 5 * KINDS; i++) {
        uint8_t type = (uint8_t)(i / KINDS % 4);
        const ptxgen_sparse24_spec spec = {.n = i % KINDS ? 0 : 41,
                                           .k = i % KINDS == NO_N ? 40 : 0,
                                           .max_m = 8,
                                           .type = type,
                                           .y_type = type == PTXGEN_SPARSE24_S8 ? PTXGEN_F16 : type,
                                           .activation = (uint8_t)(i / KINDS),
                                           .bias = i / KINDS != 2,
                                           .residual = i / KINDS % 2,
                                           .tier = i / KINDS == 1};
        const struct epilogue f = {spec.n, (ptxgen_activation)spec.activation, false, 0};
        run(state, &sparse24_harness, &spec, &f, i % KINDS != NO_K);
    }
}

/* What makes a weight of other forms does nothing where there is none. */
static void sparse24_without_a_weight(void **state)
{
    const struct emulated *e = *state;
    const ptxgen_target target = target_of("sm_90a");
    for (int i = 0; i < 2 * KINDS; i++) {
        const ptxgen_sparse24_spec spec = {.n = i % KINDS ? 0 : 41,
                                           .k = i % KINDS == NO_N ? 40 : 0,
                                           .type = PTXGEN_SPARSE24_F16,
                                           .y_type = PTXGEN_F16,
                                           .plain = i < KINDS,
                                           .tier = i >= KINDS};
        const ptxgen_sparse24_repack_args repack = {.values = 0};
        const ptxgen_sparse24_inflate_args inflate = {.packed = 0};
        ptxgen_sparse24_plan plan;
        ptxgen_sparse24 *kernel;
        ptxgen_error err = {0};
        assert_ok(ptxgen_sparse24_make_plan(&spec, &target, &plan, &err), &err);
        assert_ok(ptxgen_sparse24_load(&e->driver, &plan, NULL, &kernel, &err), &err);
        if (i < KINDS)
            assert_ok(ptxgen_sparse24_repack(kernel, &repack, NULL, &err), &err);
        else
            assert_ok(ptxgen_sparse24_inflate(kernel, &inflate, NULL, &err), &err);
        assert_int_equal(e->driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
        ptxgen_sparse24_destroy(kernel);
    }
}

static void marlin_without_depth(void **state)
{
    for (int i = 0; i < 4 * KINDS; i++) {
        const ptxgen_marlin_spec spec = {.n = i % KINDS ? 0 : 48,
                                         .k = i % KINDS == NO_N ? 64 : 0,
                                         .group_size = i / KINDS % 2 ? 32 : PTXGEN_W4_PER_CHANNEL,
                                         .max_m = 8,
                                         .type = i / KINDS % 2 ? PTXGEN_F16 : PTXGEN_BF16,
                                         .zeros = i / KINDS % 2,
                                         .act_order = i / KINDS == 1,
                                         .epilogue = i / KINDS > 1,
                                         .activation = i / KINDS == 1,
                                         .bias = 1,
                                         .residual = i / KINDS % 2};
        const struct epilogue f = {spec.n, (ptxgen_activation)spec.activation, spec.epilogue, 0};
        run(state, &marlin_harness, &spec, &f, i % KINDS != NO_K);
    }
}

static void w8a8_without_depth(void **state)
{
    for (int i = 0; i < 8 * KINDS; i++) {
        const ptxgen_w8a8_spec spec = {.n = i % KINDS ? 0 : 41,
                                       .k = i % KINDS == NO_N ? 40 : 0,
                                       .max_m = 8,
                                       .x_type = (uint8_t)(i / KINDS % 4),
                                       .y_type = (uint8_t)(i / KINDS / 2),
                                       .scales = (uint8_t)(i / KINDS % 3),
                                       .asymmetric = i / KINDS % 5 == 4,
                                       .bias = i / KINDS != 3,
                                       .codes = i / KINDS == 1};
        const struct epilogue f = {spec.n, PTXGEN_ACTIVATION_NONE, false, 0};
        run(state, &w8a8_harness, &spec, &f, i % KINDS != NO_K);
    }
    for (int i = 0; i < 6; i++) {
        const ptxgen_w8a8_spec spec = {.n = 40,
                                       .max_m = 8,
                                       .y_type = (uint8_t)(i % 3),
                                       .scales = i == 2 ? PTXGEN_W8A8_QUANTISED : 0,
                                       .epilogue = i % 2,
                                       .activation = (uint8_t)(i % 2 ? 0 : i),
                                       .bias = i != 3,
                                       .codes = i > 3,
                                       .group = i > 3 ? PTXGEN_W8A8_GROUP : 0,
                                       .residual = i > 1};
        const struct epilogue f = {40, (ptxgen_activation)spec.activation, i % 2, i % 2 ? 8 : 0};
        run(state, &w8a8_harness, &spec, &f, false);
    }
}

/* The reference of outputs that are not exact takes such a plan, too. */
static void w8a8_without_depth_has_a_bound(void **state)
{
    (void)state;
    static const float ones[4] = {1, 1, 1, 1}, bias[4] = {-1, 0, 0.5f, 3};
    const int8_t none[1] = {0};
    const ptxgen_target target = target_of("sm_90a");
    for (uint8_t f = PTXGEN_ACTIVATION_SILU; f <= PTXGEN_ACTIVATION_RELU; f++) {
        const ptxgen_w8a8_spec spec = {.n = 4, .activation = f, .bias = 1};
        const ptxgen_w8a8_operands o = {
            .m = 1, .x = ones, .w = none, .w_scale = ones, .bias = bias};
        const ptxgen_w8a8_token token = {.scale = 1};
        ptxgen_w8a8_plan plan;
        ptxgen_error err = {0};
        double y[4], bound[4];
        assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
        assert_ok(ptxgen_w8a8_reference_bound(&plan, &o, none, &token, 0, 4, y, bound, NULL, &err),
                  &err);
        for (int n = 0; n < 4; n++)
            assert_true(fabs(y[n] - activated((ptxgen_activation)f, bias[n])) < 1e-6 &&
                        bound[n] < 1e-5);
    }
}

/* A norm without matrices. */
static void rmsnorm_q4k_without_features(void **state)
{
    for (int i = 0; i < 3; i++) {
        const ptxgen_rmsnorm_q4k_spec spec = {.k = 256,
                                              .max_m = 8,
                                              .x_type = (uint8_t)i,
                                              .y_type = (uint8_t)i,
                                              .epilogue = i == 1,
                                              .bias = i == 2,
                                              .residual = i % 2};
        const struct epilogue f = {0, PTXGEN_ACTIVATION_NONE, false, 0};
        run(state, &rmsnorm_q4k_harness, &spec, &f, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_without_depth),
        cmocka_unit_test(sparse24_without_depth),
        cmocka_unit_test(sparse24_without_a_weight),
        cmocka_unit_test(marlin_without_depth),
        cmocka_unit_test(w8a8_without_depth),
        cmocka_unit_test(w8a8_without_depth_has_a_bound),
        cmocka_unit_test(rmsnorm_q4k_without_features),
    };
    return cmocka_run_group_tests(tests, setup_emulated, teardown_emulated);
}
