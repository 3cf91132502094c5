/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/dense.h>
#include <ptxgen/marlin_repack.h>
#include <ptxgen/gguf_types.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <stdio.h>

static int wrong;

static void expect(const char *what, int status, int wanted)
{
    if (status != wanted)
        printf("%s: %d, not %d\n", what, status, wanted);
    wrong |= status != wanted;
}
#define EXPECT(call, wanted) expect(#call, (int)(call), wanted)
enum { INVALID = PTXGEN_ERROR_INVALID_ARGUMENT, UNSUPPORTED = PTXGEN_ERROR_UNSUPPORTED };

int main(void)
{
    static ptxgen_w8a8_plan w8a8, none;
    static ptxgen_tile tile;
    static ptxgen_rmsnorm_q4k_plan rmsnorm_q4k;
    static ptxgen_marlin_repack_plan repack;
    ptxgen_target target;
    ptxgen_error err;
    uint32_t ctas;
    uint64_t bytes;
    EXPECT(ptxgen_gguf_row_bytes(PTXGEN_GGUF_Q4_K, 256, NULL, NULL), INVALID);
    EXPECT(ptxgen_gguf_quantise_row(PTXGEN_GGUF_Q4_K, NULL, 256, NULL, 0, NULL), INVALID);
    EXPECT(ptxgen_gguf_decode_row(PTXGEN_GGUF_Q4_K, NULL, 0, 256, NULL, NULL), INVALID);
    EXPECT(ptxgen_w8a8_ctas(NULL, 1, NULL, NULL), INVALID);
    EXPECT(ptxgen_w8a8_choose(NULL, 1) != NULL, 0);
    EXPECT(ptxgen_dense_choose(NULL, 1) != NULL, 0);
    EXPECT(ptxgen_rmsnorm_q4k_choose(NULL, 1) != NULL, 0);
    EXPECT(ptxgen_rmsnorm_q4k_attributes(NULL, 1) != NULL, 0);
    EXPECT(ptxgen_sparse24_attributes(NULL, 1) != NULL, 0);
    EXPECT(ptxgen_marlin_attributes(NULL, 1) != NULL, 0);
    EXPECT(ptxgen_w8a8_work_type(NULL), PTXGEN_F32);
    EXPECT(ptxgen_w8a8_use_tile(&none, &tile, &err), INVALID);

    const ptxgen_w8a8_spec spec = {.k = 256, .n = 64, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
    EXPECT(ptxgen_target_parse("sm_90a", &target, &err), PTXGEN_OK);
    EXPECT(ptxgen_w8a8_make_plan(&spec, &target, &w8a8, &err), PTXGEN_OK);
    EXPECT(ptxgen_w8a8_ctas(&w8a8, UINT32_MAX, &ctas, &err), UNSUPPORTED);
    EXPECT(ptxgen_w8a8_workspace_bytes(NULL, NULL, &bytes, &err), INVALID);
    EXPECT(ptxgen_w8a8_use_tile(&w8a8, &tile, &err), INVALID);

    ptx_module *module = ptx_module_create(&target.ptx, NULL);
    EXPECT(ptxgen_w8a8_emit(&none, ~0u, module, &err), INVALID);
    EXPECT(ptxgen_rmsnorm_q4k_emit(&rmsnorm_q4k, ~0u, module, &err), INVALID);
    EXPECT(ptxgen_marlin_repack_emit(&repack, module, &err), INVALID);
    EXPECT(ptx_module_kernels(module), 0);
    ptx_module_destroy(module);
    return wrong;
}
