/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the original packer wrote: codes, GPTQ's tensors, Marlin's, an input, a product. */
#include "support.h"
#include <ptxgen/files.h>
#include "src/kernels/marlin/reference.h"

static ptxgen_files *open_golden(void **state)
{
    ptxgen_error err;
    ptxgen_files *store;
    assert_ok(ptxgen_files_open(*state, &store, &err), &err);
    return store;
}

static const ptxgen_tensor *named(ptxgen_files *store, const char *name)
{
    ptxgen_error err;
    const ptxgen_tensor *tensor;
    assert_ok(ptxgen_files_require(store, name, &tensor, &err), &err);
    return tensor;
}

/* A copy that a checkpoint's tensor may own. */
static ptxgen_w4_tensor copied(ptxgen_files *store, const char *name, ptxgen_w4_dtype dtype)
{
    const ptxgen_tensor *from = named(store, name);
    ptxgen_w4_tensor t = {.dtype = dtype,
                          .shape = {from->shape[0], from->ndim > 1 ? from->shape[1] : 1}};
    assert_int_equal(ptxgen_w4_tensor_bytes(&t), from->bytes);
    tensor_allocate(&t);
    memcpy(t.data, from->data, from->bytes);
    return t;
}

static ptxgen_w4_checkpoint golden_gptq(ptxgen_files *store)
{
    return (ptxgen_w4_checkpoint){
        .format = PTXGEN_W4_GPTQ_V1,
        .weights = copied(store, "gptq.qweight", PTXGEN_W4_I32),
        .scales = copied(store, "gptq.scales", PTXGEN_W4_F16),
        .zeros = copied(store, "gptq.qzeros", PTXGEN_W4_I32),
        .g_idx = copied(store, "gptq.g_idx", PTXGEN_W4_I32),
    };
}

static ptxgen_w4_checkpoint golden_marlin(ptxgen_files *store)
{
    return (ptxgen_w4_checkpoint){
        .format = PTXGEN_W4_MARLIN,
        .weights = copied(store, "marlin.B", PTXGEN_W4_I32),
        .scales = copied(store, "marlin.s", PTXGEN_W4_F16),
    };
}

/* The file's codes and scales. */
static ptxgen_w4_matrix golden_matrix(ptxgen_files *store)
{
    const ptxgen_tensor *codes = named(store, "codes"), *scales = named(store, "scales");
    ptrdiff_t group_size = (ptrdiff_t)(codes->shape[0] / scales->shape[0]);
    ptxgen_w4_matrix m =
        matrix_allocate(codes->shape[0], codes->shape[1], group_size, PTXGEN_F16, false, false);
    memcpy(m.codes, codes->data, codes->bytes);
    memcpy(m.scales, scales->data, scales->bytes);
    return m;
}

static void marlin_packs_codes_to_the_original_packers_bits(void **state)
{
    ptxgen_files *store = open_golden(state);
    ptxgen_w4_matrix m = golden_matrix(store);
    ptxgen_w4_checkpoint expected = golden_marlin(store), c = checkpoint_of(&m, PTXGEN_W4_MARLIN);
    assert_same_tensor(&c.weights, &expected.weights);
    assert_same_tensor(&c.scales, &expected.scales);
    checkpoint_free(&c);
    checkpoint_free(&expected);
    matrix_free(&m);
    ptxgen_files_close(store);
}

static void marlin_repacks_gptq_to_the_original_packers_bits(void **state)
{
    ptxgen_error err;
    ptxgen_files *store = open_golden(state);
    ptxgen_w4_checkpoint gptq = golden_gptq(store), expected = golden_marlin(store);
    ptxgen_w4_info info;
    assert_ok(ptxgen_w4_describe(&gptq, &info, &err), &err);
    assert_true(info.symmetric);
    assert_false(info.act_order);
    ptxgen_w4_checkpoint c = checkpoint_allocate(&info, PTXGEN_W4_MARLIN);
    assert_ok(ptxgen_w4_to_marlin(&gptq, &c, NULL, NULL, &err), &err);
    assert_same_tensor(&c.weights, &expected.weights);
    assert_same_tensor(&c.scales, &expected.scales);
    checkpoint_free(&c);
    checkpoint_free(&expected);
    checkpoint_free(&gptq);
    ptxgen_files_close(store);
}

static void expect_unpacks(const ptxgen_w4_checkpoint *c, const ptxgen_w4_matrix *expected)
{
    ptxgen_error err;
    ptxgen_w4_matrix m =
        matrix_allocate(expected->k, expected->n, expected->group_size, PTXGEN_F16, true, true);
    assert_ok(ptxgen_w4_unpack(c, &m, &err), &err);
    assert_same_matrix(&m, expected);
    matrix_free(&m);
}

static void gptq_and_marlin_unpack_to_the_original_codes(void **state)
{
    ptxgen_files *store = open_golden(state);
    ptxgen_w4_matrix expected = golden_matrix(store);
    ptxgen_w4_checkpoint gptq = golden_gptq(store), marlin = golden_marlin(store);
    expect_unpacks(&gptq, &expected);
    expect_unpacks(&marlin, &expected);
    checkpoint_free(&gptq);
    checkpoint_free(&marlin);
    matrix_free(&expected);
    ptxgen_files_close(store);
}

static void gptq_v1_packs_codes_to_the_original_tensors(void **state)
{
    ptxgen_files *store = open_golden(state);
    ptxgen_w4_matrix m = golden_matrix(store);
    ptxgen_w4_checkpoint expected = golden_gptq(store), c = checkpoint_of(&m, PTXGEN_W4_GPTQ_V1);
    assert_same_tensor(&c.weights, &expected.weights);
    assert_same_tensor(&c.scales, &expected.scales);
    assert_same_tensor(&c.zeros, &expected.zeros);
    assert_same_tensor(&c.g_idx, &expected.g_idx);
    checkpoint_free(&c);
    checkpoint_free(&expected);
    matrix_free(&m);
    ptxgen_files_close(store);
}

/* The file's product was computed in f64 and stored as f32. */
static void marlin_reference_gives_the_original_product(void **state)
{
    ptxgen_error err;
    ptxgen_files *store = open_golden(state);
    const ptxgen_tensor *x = named(store, "A"), *golden = named(store, "C");
    ptxgen_w4_matrix w = golden_matrix(store);
    struct marlin_problem p = {.m = x->shape[0],
                               .w = &w,
                               .x_type = PTXGEN_F16,
                               .y_type = PTXGEN_F32,
                               .x = x->data,
                               .x_stride = w.k,
                               .weight_type = PTXGEN_F32};
    double *y = allocate(p.m * w.n * sizeof *y), *bound = allocate(p.m * w.n * sizeof *bound);
    assert_ok(marlin_reference(&p, y, bound, NULL, &err), &err);
    for (size_t i = 0; i < p.m * w.n; i++) {
        double right = ptxgen_element_load(PTXGEN_F32, golden->data, i);
        if (!(fabs(right - y[i]) <= 0x1p-24 * fabs(y[i]) * (1 + 1e-6) && bound[i] > 0))
            fail_msg("y[%zu] is %.9g, not %.17g; bound %g", i, right, y[i], bound[i]);
    }
    free(y);
    free(bound);
    matrix_free(&w);
    ptxgen_files_close(store);
}

int main(void)
{
    static char grouped[] = GOLDEN_DIR "/marlin_g128.safetensors";
    static char channel[] = GOLDEN_DIR "/marlin_channel.safetensors";
#define BOTH(test)                                                                                 \
    {#test " (group 128)", test, NULL, NULL, grouped},                                             \
    {                                                                                              \
#test " (per channel)", test, NULL, NULL, channel                                          \
    }
    const struct CMUnitTest tests[] = {
        BOTH(marlin_packs_codes_to_the_original_packers_bits),
        BOTH(marlin_repacks_gptq_to_the_original_packers_bits),
        BOTH(gptq_and_marlin_unpack_to_the_original_codes),
        BOTH(gptq_v1_packs_codes_to_the_original_tensors),
        BOTH(marlin_reference_gives_the_original_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
