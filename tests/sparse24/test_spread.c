/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the spread notices of sparse products whose operands were rounded too far, or of which
 * something is left out: most of it stays within the bounds of sums of many terms.
 */
#include "tests/planted_products.h"

#include <ptxgen/sparse24.h>

/* Of a pruned w, compressed. Tier 1 has f32 alone. */
static struct said ask(const char *target_name, ptxgen_element type, uint32_t m, uint32_t k,
                       double **x, double **w)
{
    const ptxgen_sparse24_spec spec = {.n = PRODUCT_N,
                                       .k = k,
                                       .type = (uint8_t)type,
                                       .y_type = (uint8_t)type,
                                       .tier = type == PTXGEN_F32 ? 1 : 2};
    const ptxgen_sparse24_shape shape = {(ptxgen_sparse24_type)type, PRODUCT_N, k};
    struct random r = {k + m};
    size_t x_count = (size_t)m * k, count = (size_t)PRODUCT_N * k;
    size_t bytes = count * ptxgen_element_size(type);
    void *x_elements = allocate_some(x_count, 4);
    const ptxgen_span dense = {allocate_some(count, 4), bytes};
    const ptxgen_span packed = {allocate_some(bytes / 2, 1), bytes / 2};
    const ptxgen_span metadata = {allocate_some(count / 4, 1), count / 4};
    const ptxgen_const_span pruned = {dense.data, bytes};
    ptxgen_target target = target_of(target_name);
    ptxgen_sparse24_plan plan;
    ptxgen_error err;
    *x = draw_elements(&r, type, x_count, x_elements);
    *w = draw_elements(&r, type, count, dense.data);
    assert_ok(ptxgen_sparse24_prune(&shape, pruned, dense, &err), &err);
    assert_ok(
        ptxgen_sparse24_compress(&shape, pruned, packed, PTXGEN_SPARSE24_BYTES, metadata, &err),
        &err);
    for (size_t i = 0; i < count; i++)
        (*w)[i] = ptxgen_element_load(type, dense.data, i);
    const ptxgen_sparse24_operands operands = {.m = m,
                                               .x = x_elements,
                                               .values = {packed.data, packed.bytes},
                                               .form = PTXGEN_SPARSE24_BYTES,
                                               .metadata = {metadata.data, metadata.bytes}};
    struct said s = said_allocate((size_t)m * PRODUCT_N);
    assert_ok(ptxgen_sparse24_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_sparse24_reference_spread(&plan, &operands, s.y, s.bound, s.spread, &err),
              &err);
    free(x_elements);
    free(dense.data);
    free(packed.data);
    free(metadata.data);
    return s;
}

/* What is left out of K is a group of four. */
static void f32_products_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    check_product_faults(PTXGEN_F32, 4, ask);
}

static void f16_products_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    check_product_faults(PTXGEN_F16, 4, ask);
}

static void bf16_products_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    check_product_faults(PTXGEN_BF16, 4, ask);
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
