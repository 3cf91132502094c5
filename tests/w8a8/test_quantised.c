/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch of quantise, and a product of what it writes, give the bits of a product that quantises
 * the same tokens for itself.
 */
#include "tests/problems.h"

#include "src/harness/quantise.h"
#include "src/harness/w8a8.h"

#include <string.h>

static void take(struct problem *to, unsigned operand, const struct problem *from, unsigned source)
{
    const struct buffer *b = &from->buffers[source];
    if (!to->operands[operand].used)
        return;
    assert_int_equal(to->buffers[operand].bytes, b->bytes);
    memcpy(to->buffers[operand].host, b->host, b->bytes);
}

/* K is a multiple of 16 or not, which has rows of codes copied first. */
static void check(struct device *device, uint64_t m, uint32_t k, bool asymmetric)
{
    static const unsigned same[] = {W8A8_AT_W, W8A8_AT_W_SCALE, W8A8_AT_W_SUM, W8A8_AT_BIAS};
    const ptxgen_quantise_spec quantise = {.k = k, .x_type = PTXGEN_F16, .asymmetric = asymmetric};
    ptxgen_w8a8_spec spec = {.k = k,
                             .n = 72,
                             .x_type = PTXGEN_F16,
                             .y_type = PTXGEN_F16,
                             .asymmetric = asymmetric,
                             .bias = 1};
    struct problem own = make_problem(device, &w8a8_harness, &spec, m, NULL);
    struct problem codes = make_problem(device, &quantise_harness, &quantise, m, NULL);
    spec.scales = PTXGEN_W8A8_QUANTISED;
    struct problem given = make_problem(device, &w8a8_harness, &spec, m, NULL);
    take(&codes, QUANTISE_AT_X, &own, W8A8_AT_X);
    check_problem(&own, device);
    check_problem(&codes, device);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        take(&given, same[i], &own, same[i]);
    take(&given, W8A8_AT_X, &codes, QUANTISE_AT_CODES);
    take(&given, W8A8_AT_X_SCALE, &codes, QUANTISE_AT_SCALES);
    take(&given, W8A8_AT_X_ZERO, &codes, QUANTISE_AT_ZEROS);
    check_problem(&given, device);
    assert_memory_equal(given.buffers[W8A8_AT_Y].host, own.buffers[W8A8_AT_Y].host,
                        own.buffers[W8A8_AT_Y].bytes);
    problem_release(&own);
    problem_release(&codes);
    problem_release(&given);
}

static void a_layer_that_quantises_once_has_the_same_bits(void **state)
{
    static const char *const devices[] = {"cpu:sm_80", "cpu:sm_90"};
    (void)state;
    for (int d = 0; d < 2; d++) {
        struct device device = open_device(devices[d]);
        for (int i = 0; i < 8; i++)
            check(&device, i % 2 ? 40 : 5, i / 2 % 2 ? 333 : 384, i / 4);
        device_close(&device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_that_quantises_once_has_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
