/* SPDX-License-Identifier: Apache-2.0 */
/* The reference on tests/golden/w8a8.safetensors: a zero row, an outlier row, a denormal row. */
#include "support.h"
#include <ptxgen/files.h>

enum { M = 6, N = 40, K = 96 };

struct golden {
    float activation[M * K], amax[M], weight_scale[N];
    int8_t weight[N * K];
};

static void read_tensor(const ptxgen_files *store, const char *name, void *to, size_t bytes)
{
    const ptxgen_tensor *tensor;
    ptxgen_error err;
    assert_ok(ptxgen_files_require(store, name, &tensor, &err), &err);
    assert_int_equal(tensor->bytes, bytes);
    memcpy(to, tensor->data, bytes);
}

static void read_golden(struct golden *g)
{
    ptxgen_files *store;
    ptxgen_error err;
    assert_ok(ptxgen_files_open(GOLDEN_DIR "/w8a8.safetensors", &store, &err), &err);
    read_tensor(store, "activation", g->activation, sizeof g->activation);
    read_tensor(store, "amax", g->amax, sizeof g->amax);
    read_tensor(store, "weight_scale", g->weight_scale, sizeof g->weight_scale);
    read_tensor(store, "weight", g->weight, sizeof g->weight);
    ptxgen_files_close(store);
}

/* What the layer means, from the file's own amax, in long double. */
static long double exact_output(const struct golden *g, const int8_t *codes, int m, int n)
{
    long double sum = 0;
    for (int k = 0; k < K; k++)
        sum += (long double)codes[k] * g->weight[n * K + k];
    return sum * g->amax[m] / 127 * g->weight_scale[n];
}

static void tokens_are_scaled_by_the_files_amax_and_outputs_follow(void **state)
{
    (void)state;
    static struct golden g;
    read_golden(&g);
    ptxgen_w8a8_spec s = {.k = K, .n = N, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32};
    ptxgen_w8a8_operands o = {.x = g.activation, .w = g.weight, .w_scale = g.weight_scale, .m = M};
    ptxgen_error err;
    for (int m = 0; m < M; m++) {
        int8_t codes[K];
        ptxgen_w8a8_token token;
        float y[N];
        assert_ok(ptxgen_w8a8_reference_codes(&s, &o, (uint32_t)m, codes, &token, &err), &err);
        float scale = g.amax[m] / 127.0f;
        assert_true(token.scale == (m == 1 ? 1 : scale));
        for (int k = 0; k < K; k++) {
            double exact = (double)g.activation[m * K + k] / token.scale;
            assert_true(fabs(codes[k] - exact) <= 0.5 + 1e-5);
        }
        assert_ok(ptxgen_w8a8_reference(&s, &o, codes, &token, 0, N, y, NULL, &err), &err);
        for (int n = 0; n < N; n++) {
            long double exact = exact_output(&g, codes, m, n);
            assert_true(fabsl(y[n] - exact) <= fabsl(exact) * 4 * 0x1p-24L);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_scaled_by_the_files_amax_and_outputs_follow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
