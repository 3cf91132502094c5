/* SPDX-License-Identifier: Apache-2.0 */
/* Scales at the ends of the work type, on the emulator: every bit is the reference's. */
#include "tests/problems.h"

#include "src/harness/w8a8.h"

#include <math.h>

/* Of weights any, also not finite; given ones of x are positive and finite. */
static const double of_w[] = {1,     0,         -0.0,     -3,  0x1p-149, -0x1p-126,
                              1e-20, 0x1.8p127, -0x1p127, NAN, INFINITY, -INFINITY},
                    of_x[] = {1, 0x1p-149, 0x1p-126, 1e-30, 1e30, 0x1.FFFFFEp127};
enum { OF_W = sizeof of_w / sizeof *of_w, OF_X = sizeof of_x / sizeof *of_x };

static void expect_right(struct device *device, const ptxgen_w8a8_spec *spec, uint32_t m)
{
    struct problem p = make_tiled(device, &w8a8_harness, spec, NULL, m, NULL, m + spec->scales);
    ptxgen_element work = ptxgen_w8a8_work_type(spec);
    for (uint32_t n = 0; n < spec->n; n++)
        ptxgen_element_store(work, p.buffers[W8A8_AT_W_SCALE].host, n, of_w[n % OF_W]);
    for (size_t i = 0; i < p.buffers[W8A8_AT_X_SCALE].bytes / ptxgen_element_size(work); i++)
        ptxgen_element_store(work, p.buffers[W8A8_AT_X_SCALE].host, i, of_x[i % OF_X]);
    for (uint32_t row = 0; row < m; row += 3) /* rows whose own scales are as small and as large */
        for (uint32_t k = 0; k < spec->k; k++) {
            size_t at = (size_t)row * p.strides[W8A8_AT_X] + k;
            double x =
                ptxgen_element_load((ptxgen_element)spec->x_type, p.buffers[W8A8_AT_X].host, at);
            ptxgen_element_store((ptxgen_element)spec->x_type, p.buffers[W8A8_AT_X].host, at,
                                 ldexp(x, row % 2 ? 115 : -145));
        }
    run_and_release(&p, device);
}

static void scales_at_the_ends_of_the_work_type_give_the_references_bits(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu:sm_80", "cpu:sm_90"};
    static const uint32_t ms[] = {1, 7, 40, 150};
    static const ptxgen_element types[] = {PTXGEN_F32, PTXGEN_BF16, PTXGEN_F64};
    int index = 0;
    for (int d = 0; d < 2; d++) {
        struct device device = open_device(devices[d]);
        for (int i = 0; i < 4 * 3; i++)
            for (uint8_t scales = 0; scales < 3; scales++) {
                const ptxgen_w8a8_spec spec = {.k = 160,
                                               .n = 48,
                                               .x_type = (uint8_t)types[i % 3],
                                               .y_type = (uint8_t)types[i % 3],
                                               .scales = scales,
                                               .asymmetric = (uint8_t)(i / 3 % 2),
                                               .bias = i % 2};
                if (test_in_share(index++))
                    expect_right(&device, &spec, ms[i / 3]);
            }
        device_close(&device);
    }
}

/* Elements a hair off a tie of the codes, which f32 does not have, of the spec's scale of 1. */
static void expect_right_at_ties(struct device *device, const ptxgen_w8a8_spec *spec, uint32_t m)
{
    struct problem p = make_tiled(device, &w8a8_harness, spec, NULL, m, NULL, m);
    for (size_t i = 0; i < p.buffers[W8A8_AT_X_SCALE].bytes / sizeof(double); i++)
        ptxgen_element_store(PTXGEN_F64, p.buffers[W8A8_AT_X_SCALE].host, i, 1);
    for (size_t i = 0; i < (size_t)m * spec->k; i++) {
        double tie = (double)(i % 127) + 0.5, hair = ldexp(i % 2 ? 1 : -1, -30 - (int)(i % 11));
        size_t at = i / spec->k * p.strides[W8A8_AT_X] + i % spec->k;
        ptxgen_element_store(PTXGEN_F64, p.buffers[W8A8_AT_X].host, at,
                             i % spec->k ? (i % 3 ? tie + hair : -tie - hair) : 127);
    }
    run_and_release(&p, device);
}

static void activations_of_f64_are_quantised_in_f64(void **state)
{
    (void)state;
    static const uint32_t ms[] = {1, 40, 150};
    struct device device = open_device("cpu:sm_90");
    for (int i = 0; i < 3 * 3; i++) {
        const ptxgen_w8a8_spec spec = {.k = 160,
                                       .n = 24,
                                       .x_type = PTXGEN_F64,
                                       .y_type = PTXGEN_F64,
                                       .scales = (uint8_t)(i % 3)};
        expect_right_at_ties(&device, &spec, ms[i / 3]);
    }
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_at_the_ends_of_the_work_type_give_the_references_bits),
        cmocka_unit_test(activations_of_f64_are_quantised_in_f64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
