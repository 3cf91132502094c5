/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every type of sparse24, on chips with mma and with wgmma, of outputs that are stored as
 * they are and of outputs with all that an epilogue adds: for few tokens, and for several tiles of
 * them.
 */
#include "tests/checks.h"

#include "src/cli/families/sparse24.h"

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
    struct sparse24_options options = {
        .spec = {.k = K, .n = N, .type = types[type], .y_type = y_types[type]}};
    const struct run_request request = {.m = m, .m_given = true, .seed = 1};
    options.spec.bias = options.spec.residual = !plain;
    options.spec.activation = plain ? PTXGEN_ACTIVATION_NONE : PTXGEN_ACTIVATION_RELU;
    return sparse24_run(&options, &request, device, check, err);
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
