/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the spread notices of sparse products whose operands were rounded too far, or of which
 * something is left out: most of it stays within the bounds of sums of many terms.
 */
#include "tests/planted.h"
#include "tests/share.h"

#include <ptxgen/sparse24.h>

enum { N = 64 };

/* X, [m, k], and a pruned W, [N, k], as values, and compressed in `packed` and `metadata`. */
struct problem {
    ptxgen_sparse24_spec spec;
    uint32_t m;
    void *x_elements, *packed, *metadata;
    double *x, *w;
};

static void draw(struct problem *p)
{
    ptxgen_element type = (ptxgen_element)p->spec.type;
    const ptxgen_sparse24_shape shape = {(ptxgen_sparse24_type)type, N, p->spec.k};
    struct random r = {p->spec.k + p->m};
    size_t count = (size_t)N * p->spec.k, bytes = count * ptxgen_element_size(type);
    void *dense = allocate_some(count, 4);
    ptxgen_error err;
    p->x_elements = allocate_some((size_t)p->m * p->spec.k, 4);
    p->packed = allocate_some(bytes / 2, 1);
    p->metadata = allocate_some(count / 4, 1);
    p->x = draw_elements(&r, type, (size_t)p->m * p->spec.k, p->x_elements);
    p->w = draw_elements(&r, type, count, dense);
    assert_ok(ptxgen_sparse24_prune(&shape, (ptxgen_const_span){dense, bytes},
                                    (ptxgen_span){dense, bytes}, &err),
              &err);
    assert_ok(ptxgen_sparse24_compress(&shape, (ptxgen_const_span){dense, bytes},
                                       (ptxgen_span){p->packed, bytes / 2}, PTXGEN_SPARSE24_BYTES,
                                       (ptxgen_span){p->metadata, count / 4}, &err),
              &err);
    for (size_t i = 0; i < count; i++)
        p->w[i] = ptxgen_element_load(type, dense, i);
    free(dense);
}

static struct said ask(const char *target_name, const struct problem *p)
{
    ptxgen_target target = target_of(target_name);
    size_t count = (size_t)N * p->spec.k;
    size_t bytes = count / 2 * ptxgen_element_size((ptxgen_element)p->spec.type);
    const ptxgen_sparse24_operands operands = {.m = p->m,
                                               .x = p->x_elements,
                                               .values = {p->packed, bytes},
                                               .form = PTXGEN_SPARSE24_BYTES,
                                               .metadata = {p->metadata, count / 4}};
    ptxgen_sparse24_plan plan;
    ptxgen_error err;
    struct said s = said_allocate((size_t)p->m * N);
    assert_ok(ptxgen_sparse24_make_plan(&p->spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_sparse24_reference_spread(&plan, &operands, s.y, s.bound, s.spread, &err),
              &err);
    return s;
}

static void check_faults(struct problem *p, const char *target, const struct product_fault *faults,
                         size_t count)
{
    ptxgen_element type = (ptxgen_element)p->spec.type;
    draw(p);
    struct said s = ask(target, p);
    double *y = allocate_some(s.count, sizeof *y);
    for (size_t i = 0; i < count; i++) {
        multiply_with_fault(&faults[i], p->x, p->w, p->m, N, p->spec.k, y);
        assert_tells(&s, type, y, i > 0, faults[i].name, target, p->spec.k);
    }
    free(y);
    free(p->x_elements);
    free(p->packed);
    free(p->metadata);
    free(p->x);
    free(p->w);
    said_free(&s);
}

static void check_everywhere(ptxgen_element type, uint8_t tier, const struct product_fault *faults,
                             size_t count)
{
    static const uint32_t depths[] = {4096, 16384}, rows[] = {1, 3};
    static const char *const targets[] = {"sm_80", "sm_90a"};
    for (int i = 0; i < 8; i++)
        if (test_in_share(i + (int)type)) {
            struct problem p = {.m = rows[i >> 1 & 1],
                                .spec = {.n = N,
                                         .k = depths[i >> 2],
                                         .type = (uint8_t)type,
                                         .y_type = (uint8_t)type,
                                         .tier = tier}};
            check_faults(&p, targets[i & 1], faults, count);
        }
}

static void f32_products_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    static const struct product_fault faults[] = {
        {"none", same, same, 0, 0},
        {"one tf32 product for three", as_tf32, as_tf32, 0, 0},
        {"one tf32 product for three, cut off", cut_to_tf32, cut_to_tf32, 0, 0},
        {"two tf32 products for three, of X", same, as_tf32, 0, 0},
        {"two tf32 products for three, of W", as_tf32, same, 0, 0},
        {"bf16 operands", as_8_bits, as_8_bits, 0, 0},
        {"the last group of K left out", same, same, 4, 0},
        {"2^-9 too large", same, same, 0, 1 + 0x1p-9},
    };
    check_everywhere(PTXGEN_F32, 1, faults, sizeof faults / sizeof *faults);
}

static void f16_products_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    static const struct product_fault faults[] = {
        {"none", same, same, 0, 0},
        {"X in 8 bits", as_8_bits, same, 0, 0},
        {"W in 8 bits", same, as_8_bits, 0, 0},
        {"X in 7 bits", as_7_bits, same, 0, 0},
        {"the last group of K left out", same, same, 4, 0},
        {"2^-9 too large", same, same, 0, 1 + 0x1p-9},
    };
    check_everywhere(PTXGEN_F16, 2, faults, sizeof faults / sizeof *faults);
}

static void bf16_products_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    static const struct product_fault faults[] = {
        {"none", same, same, 0, 0},
        {"X in 7 bits", as_7_bits, same, 0, 0},
        {"W in 7 bits", same, as_7_bits, 0, 0},
        {"the last group of K left out", same, same, 4, 0},
        {"2^-9 too large", same, same, 0, 1 + 0x1p-9},
    };
    check_everywhere(PTXGEN_BF16, 2, faults, sizeof faults / sizeof *faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_products_with_a_fault_are_too_far_spread),
        cmocka_unit_test(f16_products_with_a_fault_are_too_far_spread),
        cmocka_unit_test(bf16_products_with_a_fault_are_too_far_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
