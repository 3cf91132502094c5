/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every type of sparse24, on chips with mma and with wgmma, of outputs that are stored as
 * they are and of outputs with all that an epilogue adds: for few tokens, and for several tiles of
 * them.
 */
#include "tests/checks.h"

#include "src/harness/problem.h"
#include "src/harness/sparse24.h"

#include <stdio.h>

enum { K = 256, N = 256, TYPES = 3 };
static const char *const chips[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_100"};
static const uint32_t tokens[] = {8, 72, 200};

static ptxgen_status run_sparse24(struct device *device, uint32_t m, int type, bool plain,
                                  struct check *check, ptxgen_error *err)
{
    static const uint8_t types[TYPES] = {PTXGEN_SPARSE24_F16, PTXGEN_SPARSE24_BF16,
                                         PTXGEN_SPARSE24_S8},
                         y_types[TYPES] = {PTXGEN_F16, PTXGEN_BF16, PTXGEN_BF16};
    ptxgen_sparse24_spec spec = {.k = K, .n = N, .type = types[type], .y_type = y_types[type]};
    const struct kernel_request request = {.spec = &spec};
    spec.bias = spec.residual = !plain;
    spec.activation = plain ? PTXGEN_ACTIVATION_NONE : PTXGEN_ACTIVATION_RELU;
    struct problem p = {.harness = NULL};
    struct random r = random_start(1);
    ptxgen_status status = problem_allocate(&p, &sparse24_harness, &request, m, NULL, device, err);
    if (status == PTXGEN_OK)
        status = problem_fill(&p, &r, err);
    if (status == PTXGEN_OK)
        status = problem_check(&p, device, check, err);
    problem_release(&p);
    return status;
}

static void sparse24_is_right_in_every_type(void **state)
{
    int number = 0;
    (void)state;
    for (size_t c = 0; c < sizeof chips / sizeof *chips; c++) {
        struct device device = open_device(chips[c]);
        for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++)
            for (int type = 0; type < TYPES; type++)
                for (int plain = 0; plain < 2; plain++) {
                    struct check check = {.outputs = 0};
                    ptxgen_error err;
                    if (!test_in_share(number++))
                        continue;
                    assert_ok(run_sparse24(&device, tokens[t], type, plain, &check, &err), &err);
                    assert_right(&check);
                }
        device_close(&device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse24_is_right_in_every_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
