/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scales that the header admits: every tile gives finite numbers within the reference's bound
 * at either end of their range, and what is past it is refused by its place and value.
 */
#include "problems.h"
#include "specs.h"

#include <math.h>
#include <string.h>

static const double largest_f16[] = {8188, -8188, 8184, -4096, 0, -0.0},
                    largest_f16_of_zeros[] = {4364, -4364, 4096, 0},
                    least_f16[] = {0x1p-24, -0x1p-24, 0x3p-24, 0x1p-14, 0x3FFp-24},
                    largest_bf16[] = {0x1.FEp24, -0x1.FEp24, 0x1p24, 0},
                    least_bf16[] = {0x1p-133, -0x1p-133, 0x3p-133, 0x1p-126, 0x1.82p-104, 0x1p-97};
enum { K = 256, N = 128 };
#define LIST(array) array, sizeof array / sizeof *array

/* Scales that columns have in turn, and what makes outputs of them that the type holds. */
static const struct ends {
    uint8_t type, zeros;
    const double *scales;
    size_t count;
    double x;
} ends[] = {
    {PTXGEN_F16, 0, LIST(largest_f16), 0x1p-13},
    {PTXGEN_F16, 1, LIST(largest_f16_of_zeros), 0x1p-13},
    {PTXGEN_F16, 0, LIST(least_f16), 0x1p5},
    {PTXGEN_F16, 1, LIST(least_f16), 0x1p5},
    {PTXGEN_BF16, 0, LIST(largest_bf16), 1},
    {PTXGEN_BF16, 1, LIST(largest_bf16), 1},
    {PTXGEN_BF16, 0, LIST(least_bf16), 1},
    {PTXGEN_BF16, 1, LIST(least_bf16), 0x1p90},
    {PTXGEN_BF16, 0, LIST(least_bf16), 0x1p90},
};

/* A tile of each way to multiply; those in bulk and of wgmma are sm_90a's. */
static const ptxgen_tile variants[] = {
    {.tile_m = 8, .warp_n = 32, .wn = 2, .kind = PTXGEN_MMA},
    {.tile_m = 16, .warp_n = 32, .wn = 2, .kind = PTXGEN_MMA},
    {.tile_m = 32, .warp_n = 32, .wn = 2, .kind = PTXGEN_MMA},
    {.tile_m = 128, .warp_n = 32, .wn = 4, .kind = PTXGEN_MMA},
    {.tile_m = 8, .warp_n = 32, .wn = 4, .kind = PTXGEN_BULK},
    {.tile_m = 16, .warp_n = 64, .wn = 1, .kind = PTXGEN_BULK},
    {.tile_m = 32, .warp_n = 16, .wn = 8, .kind = PTXGEN_WGMMA},
    {.tile_m = 64, .warp_n = 16, .wn = 4, .kind = PTXGEN_WGMMA},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static struct kernel_options options_of(const struct ends *e, int32_t group_size,
                                        const ptxgen_tile *variant)
{
    struct kernel_options options = {.spec = f16(K, N, group_size), .tile = *variant};
    options.spec.type = e->type;
    options.spec.zeros = e->zeros;
    options.tile.wk = options.tile.steps = options.tile.ctas = 1;
    options.tile.stages = 3;
    options.tile.pass_m = 8;
    return options;
}

static struct problem make_end(struct device *device, const struct ends *e,
                                      const struct kernel_options *options)
{
    struct marlin_weights weights;
    struct problem p;
    struct random r = random_start(options->tile.tile_m);
    ptxgen_error err;
    ptxgen_element type = (ptxgen_element)e->type;
    assert_ok(marlin_random_weights(&options->spec, PTXGEN_W4_GPTQ_V2, &r, &weights, &err), &err);
    const ptxgen_w4_tensor *scales = &weights.checkpoints[0].scales;
    for (size_t i = 0; i < ptxgen_w4_tensor_bytes(scales) / 2; i++)
        ptxgen_element_store(type, scales->data, i, e->scales[i % N % e->count]);
    p = make_with(device, options, 5, &weights, NULL);
    for (size_t i = 0; i < p.m * p.strides[MARLIN_AT_X]; i++)
        ptxgen_element_store(type, p.buffers[MARLIN_AT_X].host, i, e->x * ptxgen_element_load(type, p.buffers[MARLIN_AT_X].host, i));
    return p;
}

static void expect_right_and_finite(struct device *device, const struct ends *e,
                                    const struct kernel_options *options)
{
    struct problem p = make_end(device, e, options);
    struct check check = {.outputs = 0};
    ptxgen_error err;
    assert_ok(problem_check(&p, device, &check, &err), &err);
    assert_right(&check);
    assert_int_equal(check.unbounded, 0);
    for (uint64_t i = 0; i < p.m * p.strides[MARLIN_AT_Y]; i++)
        assert_true(isfinite(ptxgen_element_load((ptxgen_element)e->type, p.buffers[MARLIN_AT_Y].host, i)));
    problem_release(&p);
}

static void both_ends_of_the_range_are_finite_and_right_in_every_kind_of_tile(void **state)
{
    static const int32_t groups[] = {32, 64, PTXGEN_W4_PER_CHANNEL};
    struct device device = open_device(*state);
    size_t tiles = device.facts.compute_capability == 90 ? VARIANTS : 4;
    int index = 0;
    for (size_t e = 0; e < sizeof ends / sizeof *ends; e++)
        for (size_t i = 0; i < tiles; i++)
            for (int g = 0; g < 3; g++) {
                const struct kernel_options options = options_of(&ends[e], groups[g], &variants[i]);
                if (test_in_share(index++))
                    expect_right_and_finite(&device, &ends[e], &options);
            }
    device_close(&device);
}

/* ---- where weights are rounded ---- */

static void a_plan_says_which_of_its_tiles_round_weights(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        int32_t group_size;
        uint32_t m;
        uint8_t type;
        bool rounds;
    } cases[] = {
        {"sm_80", 128, 1, PTXGEN_F16, false},   {"sm_80", 128, 16, PTXGEN_F16, false},
        {"sm_80", 128, 64, PTXGEN_F16, true},   {"sm_80", -1, 64, PTXGEN_F16, false},
        {"sm_120", 64, 256, PTXGEN_BF16, true}, {"sm_90a", 128, 1, PTXGEN_BF16, false},
        {"sm_90a", 32, 32, PTXGEN_F16, true},   {"sm_90a", 128, 32, PTXGEN_F16, false},
        {"sm_90a", 128, 256, PTXGEN_F16, true}, {"sm_90a", -1, 256, PTXGEN_BF16, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_marlin_spec spec = f16(4096, 4096, cases[i].group_size);
        spec.type = cases[i].type;
        const ptxgen_marlin_plan plan = plan_of(&spec, cases[i].target);
        char text[160];
        ptxgen_marlin_explain(&plan, cases[i].m, text, sizeof text);
        const char *words = !cases[i].rounds ? "multiplied into sums, in f32"
                            : cases[i].type == PTXGEN_F16
                                ? "weights are scaled and rounded to f16"
                                : "weights are scaled and rounded to bf16";
        if (!strstr(text, words))
            fail_msg("%s, group %d, M = %u: %s", cases[i].target, (int)spec.group_size, cases[i].m,
                     text);
        assert_int_equal(
            ptxgen_marlin_rounds_weights(&plan, ptxgen_marlin_choose(&plan, cases[i].m)),
            cases[i].rounds);
    }
    char text[80];
    ptxgen_marlin_spec few = f16(256, 64, 64);
    few.max_m = 4;
    const ptxgen_marlin_plan plan = plan_of(&few, "sm_80");
    ptxgen_marlin_explain(&plan, 0, text, sizeof text);
    assert_string_equal(text, "no launch: there are no tokens");
    ptxgen_marlin_explain(&plan, 5, text, sizeof text);
    assert_string_equal(text, "no launch: 5 tokens are above the plan's 4");
    ptxgen_marlin_explain(NULL, 1, text, sizeof text);
    assert_string_equal(text, "no launch: there is no plan");
}

/* Σ x·(ŵ − w) of the first token and a feature, ŵ being the weight that a tile rounds. */
static double moved_by_rounding(const struct problem *p, size_t n)
{
    const ptxgen_w4_matrix *m = &((const struct marlin_matrices *)p->own)->of[0];
    ptxgen_element type = (ptxgen_element)((const ptxgen_marlin_spec *)p->plan)->type;
    double sum = 0;
    for (size_t k = 0; k < m->k; k++) {
        size_t group = k / (size_t)m->group_size * m->n + n;
        double scale = ptxgen_element_load(m->scale_type, m->scales, group), rounded;
        double weight = scale * (m->codes[k * m->n + n] - m->zeros[group]);
        uint16_t bits;
        ptxgen_element_store(type, &bits, 0, weight);
        rounded = ptxgen_element_load(type, &bits, 0);
        sum += ptxgen_element_load(type, p->buffers[MARLIN_AT_X].host, k) * (rounded - weight);
    }
    return sum;
}

static void the_bound_has_what_a_tiles_rounding_moves_a_sum_by(void **state)
{
    (void)state;
    enum { COLUMNS = 64 };
    struct device device = open_device("cpu:sm_80");
    for (int type = PTXGEN_F16; type <= PTXGEN_BF16; type++) {
        ptxgen_marlin_spec spec = f16(512, COLUMNS, 64);
        spec.type = (uint8_t)type;
        spec.zeros = 1;
        struct problem p = make(&device, &spec, 1, PTXGEN_W4_GPTQ_V2, NULL);
        const ptxgen_marlin_operands o = {.m = 1, .x = p.buffers[MARLIN_AT_X].host, .weights = &((struct marlin_matrices *)p.own)->of[0]};
        double c[2][COLUMNS], bound[2][COLUMNS];
        ptxgen_error err;
        for (int i = 0; i < 2; i++) { /* tiles of 8 tokens, and of 32 */
            ptxgen_marlin_plan plan = plan_of(&spec, "sm_80");
            const struct kernel_options options = options_of(&ends[0], 64, &variants[2 * i]);
            assert_ok(ptxgen_marlin_use_tile(&plan, &options.tile, &err), &err);
            assert_int_equal(ptxgen_marlin_rounds_weights(&plan, &plan.variants[0]), i);
            assert_ok(ptxgen_marlin_reference(&plan, &o, c[i], bound[i], &err), &err);
        }
        for (size_t n = 0; n < COLUMNS; n++) {
            double moved = fabs(moved_by_rounding(&p, n));
            assert_true(c[0][n] == c[1][n]);
            assert_true(moved > 0 && bound[1][n] >= moved);
            assert_true(bound[1][n] < moved + 2 * bound[0][n]);
        }
        problem_release(&p);
    }
    device_close(&device);
}

int main(void)
{
    static char sm_80[] = "cpu:sm_80", sm_90[] = "cpu:sm_90", sm_120[] = "cpu:sm_120";
#define ON(device)                                                                                 \
    {                                                                                              \
        "both_ends_of_the_range_are_finite_and_right_in_every_kind_of_tile (" #device ")",         \
            both_ends_of_the_range_are_finite_and_right_in_every_kind_of_tile, NULL, NULL, device  \
    }
    const struct CMUnitTest tests[] = {
        ON(sm_80),
        ON(sm_90),
        ON(sm_120),
        cmocka_unit_test(a_plan_says_which_of_its_tiles_round_weights),
        cmocka_unit_test(the_bound_has_what_a_tiles_rounding_moves_a_sum_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
