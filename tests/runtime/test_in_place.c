/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output that is the residual itself has the same bits as one apart, whatever the kernel: few
 * rows and many, one CTA a tile and several, clusters; on the emulator, which reports races.
 */
#include "tests/checks.h"

#include "src/harness/problem.h"

#include <ptxgen/dense.h>
#include <ptxgen/marlin.h>
#include <ptxgen/sparse24.h>

#include <stdlib.h>

enum { K = 512, N = 136 };

static const char *const devices[] = {"cpu:sm_80", "cpu:sm_90"};
static const uint64_t row_counts[] = {1, 7, 96};

/* The output of a launch, for free(), of random operands that are the same each time. */
static void *launch(struct device *device, const struct harness *h, const void *spec, uint64_t m,
                    bool in_place, size_t *bytes)
{
    const struct kernel_request request = {.spec = spec};
    const struct layout layout = {.in_place = in_place};
    struct random r = random_start(7);
    struct check check = {.once = true};
    struct problem p;
    ptxgen_error err = {0};
    assert_ok(problem_allocate(&p, h, &request, m, &layout, device, &err), &err);
    assert_ok(problem_fill(&p, &r, &err), &err);
    assert_ok(problem_check(&p, device, &check, &err), &err);
    assert_right(&check);
    unsigned y = 0;
    while (p.operands[y].role != OPERAND_OUTPUT)
        y++;
    void *copy = malloc(p.buffers[y].bytes);
    assert_non_null(copy);
    *bytes = p.buffers[y].bytes;
    memcpy(copy, p.buffers[y].host, *bytes);
    problem_release(&p);
    return copy;
}

static void expect_same(const struct harness *h, const void *spec)
{
    for (int i = 0; i < 2 * 3; i++) {
        struct device device = open_device(devices[i / 3]);
        size_t bytes, other_bytes;
        void *apart = launch(&device, h, spec, row_counts[i % 3], false, &bytes);
        void *in_place = launch(&device, h, spec, row_counts[i % 3], true, &other_bytes);
        assert_int_equal(bytes, other_bytes);
        assert_memory_equal(apart, in_place, bytes);
        free(apart);
        free(in_place);
        device_close(&device);
    }
}

static void dense_adds_a_residual_in_place(void **state)
{
    const ptxgen_dense_spec spec = {.n = N, .k = K, .type = PTXGEN_F16, .residual = 1};
    (void)state;
    expect_same(&dense_harness, &spec);
}

static void marlin_adds_a_residual_in_place(void **state)
{
    const ptxgen_marlin_spec spec = {
        .k = K, .n = N, .group_size = 128, .type = PTXGEN_F16, .residual = 1};
    (void)state;
    expect_same(&marlin_harness, &spec);
}

static void sparse24_adds_a_residual_in_place(void **state)
{
    (void)state;
    for (uint8_t tier = 1; tier <= 2; tier++) {
        const ptxgen_sparse24_spec spec = {.n = N,
                                           .k = K,
                                           .type = PTXGEN_SPARSE24_F16,
                                           .y_type = PTXGEN_F16,
                                           .residual = 1,
                                           .tier = tier};
        expect_same(&sparse24_harness, &spec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_adds_a_residual_in_place),
        cmocka_unit_test(marlin_adds_a_residual_in_place),
        cmocka_unit_test(sparse24_adds_a_residual_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
