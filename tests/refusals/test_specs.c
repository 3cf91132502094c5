/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule of each family's spec, at both of its sides. */
#include "refusals.h"

#include <ptxgen/dense.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/marlin_repack.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/quantise.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#define INVALID PTXGEN_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED PTXGEN_ERROR_UNSUPPORTED
#define TARGET PTXGEN_ERROR_TARGET
#define ACCEPTED PTXGEN_OK, NULL

/* ---- dense ---- */

static ptxgen_status plan_dense(const void *spec, const void *target, ptxgen_error *err)
{
    ptxgen_dense_plan plan;
    return ptxgen_dense_make_plan(spec, target, &plan, err);
}

static void dense_refuses_each_wrong_number(void **state)
{
    (void)state;
    const ptxgen_dense_spec good = {.n = 64, .k = 64, .type = PTXGEN_F16};
    const ptxgen_target target = target_of("sm_80");
#define SET(member, number) CHANGE(ptxgen_dense_spec, member, number)
    static const struct refusal rows[] = {
        {{SET(type, 0)}, ACCEPTED},
        {{SET(type, 2)}, ACCEPTED},
        {{SET(type, 3)}, UNSUPPORTED, "dense: the type 3 is none of PTXGEN_F32, _F16 and _BF16"},
        {{SET(type, 4)}, INVALID, "dense: the type 4 is none of PTXGEN_F32, _F16 and _BF16"},
        {{SET(n, 0)}, ACCEPTED},
        {{SET(n, 1)}, ACCEPTED},
        {{SET(n, 2147483647)}, ACCEPTED},
        {{SET(n, 2147483648)}, UNSUPPORTED, "dense: N = 2147483648 is above 2147483647"},
        {{SET(k, 0)}, ACCEPTED},
        {{SET(k, 1)}, ACCEPTED},
        {{SET(k, 1073741808)}, ACCEPTED},
        {{SET(k, 1073741809)}, UNSUPPORTED, "dense: K = 1073741809 is above 1073741808"},
        {{SET(k, 536870896), SET(type, 0)}, ACCEPTED},
        {{SET(k, 536870897), SET(type, 0)}, UNSUPPORTED, "dense: K = 536870897 is above 536870896"},
        {{SET(activation, PTXGEN_ACTIVATION_RELU)}, ACCEPTED},
        {{SET(activation, 5)}, INVALID, "dense: 5 is not an activation"},
        {{SET(bias, 1), SET(residual, 1)}, ACCEPTED},
        {{SET(bias, 2)}, INVALID, "dense: bias is 2, not 0 or 1"},
        {{SET(residual, 3)}, INVALID, "dense: residual is 3, not 0 or 1"},
    };
#undef SET
    ASSERT_REFUSALS(rows, good, plan_dense, &target);
}

/* ---- marlin ---- */

static ptxgen_status plan_marlin(const void *spec, const void *target, ptxgen_error *err)
{
    ptxgen_marlin_plan plan;
    return ptxgen_marlin_make_plan(spec, target, &plan, err);
}

static void marlin_refuses_each_wrong_number(void **state)
{
    (void)state;
    const ptxgen_marlin_spec good = {.k = 128, .n = 64, .group_size = 64, .type = PTXGEN_F16};
    const ptxgen_target target = target_of("sm_80");
#define SET(member, number) CHANGE(ptxgen_marlin_spec, member, number)
    static const struct refusal rows[] = {
        {{SET(k, 0)}, ACCEPTED},
        {{SET(k, 2147483632), SET(group_size, -1)}, ACCEPTED},
        {{SET(k, 2147483648)}, UNSUPPORTED, "marlin: K = 2147483648 is above 2147483647"},
        {{SET(k, 16), SET(group_size, 16)}, ACCEPTED},
        {{SET(k, 120)}, UNSUPPORTED, "marlin: K = 120 is not a multiple of 16"},
        {{SET(n, 0)}, ACCEPTED},
        {{SET(n, 8)}, ACCEPTED},
        {{SET(n, 12)}, UNSUPPORTED, "marlin: N = 12 is not a multiple of 8"},
        {{SET(n, 2147483640)}, ACCEPTED},
        {{SET(n, 2147483648)}, UNSUPPORTED, "marlin: N = 2147483648 is above 2147483647"},
        {{SET(group_size, -1)}, ACCEPTED},
        {{SET(group_size, -2)},
         UNSUPPORTED,
         "marlin: the group size -2 is neither a multiple of 16 nor -1"},
        {{SET(group_size, 0)},
         UNSUPPORTED,
         "marlin: the group size 0 is neither a multiple of 16 nor -1"},
        {{SET(group_size, 8)},
         UNSUPPORTED,
         "marlin: the group size 8 is neither a multiple of 16 nor -1"},
        {{SET(group_size, 16)}, ACCEPTED},
        {{SET(group_size, 48)}, UNSUPPORTED, "marlin: the group size 48 does not divide K = 128"},
        {{SET(group_size, 128)}, ACCEPTED},
        {{SET(group_size, 256)}, UNSUPPORTED, "marlin: the group size 256 does not divide K = 128"},
        {{SET(type, 0)}, UNSUPPORTED, "marlin: the type 0 is neither PTXGEN_F16 nor PTXGEN_BF16"},
        {{SET(type, 2)}, ACCEPTED},
        {{SET(type, 3)}, UNSUPPORTED, "marlin: the type 3 is neither PTXGEN_F16 nor PTXGEN_BF16"},
        {{SET(type, 4)}, INVALID, "marlin: the type 4 is neither PTXGEN_F16 nor PTXGEN_BF16"},
        {{SET(epilogue, 1)}, ACCEPTED},
        {{SET(epilogue, 2)}, UNSUPPORTED, "marlin: 2 is not an epilogue of this family"},
        {{SET(epilogue, 3)}, INVALID, "marlin: 3 is not an epilogue of this family"},
        {{SET(activation, PTXGEN_ACTIVATION_GELU_TANH)}, ACCEPTED},
        {{SET(activation, 4)}, UNSUPPORTED, "marlin: 4 is not an activation of this family"},
        {{SET(activation, 5)}, INVALID, "marlin: 5 is not an activation of this family"},
        {{SET(epilogue, 1), SET(activation, 1)},
         UNSUPPORTED,
         "marlin: SwiGLU has its own activation, but activation is 1"},
        {{SET(zeros, 1), SET(act_order, 1), SET(bias, 1), SET(residual, 1)}, ACCEPTED},
        {{SET(zeros, 2)}, INVALID, "marlin: zeros is 2, not 0 or 1"},
        {{SET(act_order, 2)}, INVALID, "marlin: act_order is 2, not 0 or 1"},
        {{SET(bias, 2)}, INVALID, "marlin: bias is 2, not 0 or 1"},
        {{SET(residual, 2)}, INVALID, "marlin: residual is 2, not 0 or 1"},
        {{SET(reserved, 1)}, INVALID, "marlin: reserved is 1, not 0"},
    };
#undef SET
    ASSERT_REFUSALS(rows, good, plan_marlin, &target);
}

static ptxgen_status plan_repack(const void *spec, const void *target, ptxgen_error *err)
{
    ptxgen_marlin_repack_plan plan;
    return ptxgen_marlin_repack_make_plan(spec, target, &plan, err);
}

static void marlin_repack_refuses_each_wrong_number(void **state)
{
    (void)state;
    const ptxgen_marlin_repack_spec good = {.k = 128,
                                            .n = 64,
                                            .group_size = 64,
                                            .type = PTXGEN_F16,
                                            .format = PTXGEN_W4_GPTQ_V1,
                                            .scale_type = PTXGEN_F16};
    const ptxgen_target target = target_of("sm_80");
#define SET(member, number) CHANGE(ptxgen_marlin_repack_spec, member, number)
    static const struct refusal rows[] = {
        {{SET(k, 120)}, UNSUPPORTED, "marlin: K = 120 is not a multiple of 16"},
        {{SET(k, 0)}, UNSUPPORTED, "marlin_repack: K = 0 and N = 64; there is nothing to pack"},
        {{SET(n, 0)}, UNSUPPORTED, "marlin_repack: K = 128 and N = 0; there is nothing to pack"},
        {{SET(format, PTXGEN_W4_MARLIN)}, ACCEPTED},
        {{SET(format, 5)}, INVALID, "marlin_repack: 5 is not the number of a 4-bit format"},
        {{SET(n, 72)}, ACCEPTED},
        {{SET(n, 72), SET(format, PTXGEN_W4_MARLIN)},
         UNSUPPORTED,
         "marlin_repack: N = 72 is not a multiple of 64, which marlin needs"},
        {{SET(n, 268435456)}, ACCEPTED},
        {{SET(n, 268435464)}, UNSUPPORTED, "marlin_repack: N = 268435464 is above 268435456"},
        {{SET(act_order, 1)}, ACCEPTED},
        {{SET(act_order, 1), SET(format, PTXGEN_W4_PACK_QUANTIZED)}, ACCEPTED},
        {{SET(act_order, 1), SET(format, PTXGEN_W4_AWQ)},
         UNSUPPORTED,
         "marlin_repack: act_order is 1, but awq has no g_idx"},
        {{SET(act_order, 1), SET(format, PTXGEN_W4_MARLIN)},
         UNSUPPORTED,
         "marlin_repack: act_order is 1, but marlin has no g_idx"},
        {{SET(scale_type, 0)}, ACCEPTED},
        {{SET(scale_type, 2)}, ACCEPTED},
        {{SET(scale_type, 3)},
         UNSUPPORTED,
         "marlin_repack: the scales' type 3 is none of PTXGEN_F32, PTXGEN_F16 and PTXGEN_BF16"},
        {{SET(scale_type, 4)},
         INVALID,
         "marlin_repack: the scales' type 4 is none of PTXGEN_F32, PTXGEN_F16 and PTXGEN_BF16"},
        {{SET(reserved[0], 1)},
         INVALID,
         "marlin_repack: reserved is not 0; zero a spec before filling it in"},
        {{SET(reserved[1], 1)},
         INVALID,
         "marlin_repack: reserved is not 0; zero a spec before filling it in"},
    };
#undef SET
    ASSERT_REFUSALS(rows, good, plan_repack, &target);
}

/* ---- gguf_linear ---- */

static ptxgen_status plan_gguf_linear(const void *spec, const void *target, ptxgen_error *err)
{
    ptxgen_gguf_linear_plan plan;
    return ptxgen_gguf_linear_make_plan(spec, target, &plan, err);
}

static void gguf_linear_refuses_each_wrong_number(void **state)
{
    (void)state;
    const ptxgen_gguf_linear_spec good = {.k = 512,
                                          .n = {64},
                                          .epsilon = 1e-5f,
                                          .w_type = {PTXGEN_GGUF_Q4_K, PTXGEN_GGUF_Q8_0},
                                          .x_type = PTXGEN_F16,
                                          .y_type = PTXGEN_F16,
                                          .norm = 1};
    const ptxgen_target target = target_of("sm_80");
#define SET(member, number) CHANGE(ptxgen_gguf_linear_spec, member, number)
    static const struct refusal rows[] = {
        {{SET(k, 256)}, ACCEPTED},
        {{SET(k, 4194304), SET(max_m, 1)}, ACCEPTED},
        {{SET(k, 4194560)}, UNSUPPORTED, "gguf_linear: K = 4194560 is not within 1 and 4194304"},
        {{SET(k, 0)}, UNSUPPORTED, "gguf_linear: K = 0 is not within 1 and 4194304"},
        {{SET(k, 640)},
         UNSUPPORTED,
         "gguf_linear: K = 640 is not a multiple of 256: a row of Q4_K is whole blocks"},
        {{SET(k, 640), SET(w_type[0], PTXGEN_GGUF_Q5_0)}, ACCEPTED},
        {{SET(k, 48), SET(w_type[0], PTXGEN_GGUF_Q5_0)},
         UNSUPPORTED,
         "gguf_linear: K = 48 is not a multiple of 32: a row of Q5_0 is whole blocks"},
        {{SET(w_type[0], 5)},
         UNSUPPORTED,
         "gguf_linear: w_type[0] = 5 is the number of no type that this library decodes"},
        {{SET(k, 648), SET(w_type[0], PTXGEN_GGUF_BF16)}, ACCEPTED},
        {{SET(k, 644), SET(w_type[0], PTXGEN_GGUF_BF16)},
         UNSUPPORTED,
         "gguf_linear: K = 644 is not a multiple of 8, as weights in BF16 need it"},
        {{SET(n[1], 5), SET(w_type[1], PTXGEN_GGUF_F32)}, ACCEPTED},
        {{SET(k, 264), SET(n[1], 5), SET(w_type[1], PTXGEN_GGUF_F32)},
         UNSUPPORTED,
         "gguf_linear: K = 264 is not a multiple of 256: a row of Q4_K is whole blocks"},
        {{SET(n[0], 0)}, ACCEPTED},
        {{SET(n[0], 0), SET(n[1], 5)},
         UNSUPPORTED,
         "gguf_linear: N = 0, 5, 0; the matrices must be given in order"},
        {{SET(n[2], 5)},
         UNSUPPORTED,
         "gguf_linear: N = 64, 0, 5; the matrices must be given in order"},
        {{SET(n[0], 536870912)}, ACCEPTED},
        {{SET(n[0], 536870913)}, UNSUPPORTED, "gguf_linear: N[0] = 536870913 is above 536870912"},
        {{SET(max_m, 8)}, ACCEPTED},
        {{SET(max_m, 9)}, ACCEPTED},
        {{SET(max_m, 2147483648)},
         UNSUPPORTED,
         "gguf_linear: max_m = 2147483648 is above 2147483647"},
        {{SET(compute, 2)}, ACCEPTED},
        {{SET(compute, 3)},
         UNSUPPORTED,
         "gguf_linear: compute = 3; x's type, f16 and bf16 are 0, 1 and 2"},
        {{SET(compute, 4)},
         INVALID,
         "gguf_linear: compute = 4; x's type, f16 and bf16 are 0, 1 and 2"},
        {{SET(x_type, 3)},
         UNSUPPORTED,
         "gguf_linear: x_type = 3, y_type = 1; f32, f16 and bf16 are 0, 1, 2"},
        {{SET(y_type, 4)},
         INVALID,
         "gguf_linear: x_type = 1, y_type = 4; f32, f16 and bf16 are 0, 1, 2"},
        {{SET(norm, 2)}, INVALID, "gguf_linear: norm = 2; none and RMSNorm are 0 and 1"},
        {{SET(residual, 2)}, ACCEPTED},
        {{SET(residual, 3)},
         INVALID,
         "gguf_linear: residual = 3; none, before and after the norm are 0, 1 and 2"},
        {{SET(epilogue, 2), SET(n[1], 64)}, ACCEPTED},
        {{SET(epilogue, 3), SET(n[1], 64)},
         INVALID,
         "gguf_linear: epilogue = 3; none, SwiGLU and GeGLU are 0, 1 and 2"},
        {{SET(epilogue, 1), SET(n[1], 65)},
         UNSUPPORTED,
         "gguf_linear: a gate needs two matrices of equal N, not N = 64, 65, 0"},
        {{SET(epsilon, 0x7f800000)},
         UNSUPPORTED,
         "gguf_linear: epsilon = inf must be at least 0 and finite"},
        {{SET(epsilon, 0)}, ACCEPTED},
        {{SET(norm, 0)}, ACCEPTED},
        {{SET(residual_out, 1)},
         UNSUPPORTED,
         "gguf_linear: residual_out without residual would only copy x"},
        {{SET(residual_out, 1), SET(residual, 1)}, ACCEPTED},
        {{SET(residual_out, 1), SET(residual, 1), SET(n[0], 0)},
         UNSUPPORTED,
         "gguf_linear: N = 0 launches nothing, and residual_out would not be written"},
        {{SET(residual_out, 2)}, INVALID, "gguf_linear: residual_out is 2, not 0 or 1"},
        {{SET(bias, 2)}, INVALID, "gguf_linear: bias is 2, not 0 or 1"},
        {{SET(reserved[0], 1)}, INVALID, "gguf_linear: reserved[0] is 1, not 0"},
    };
#undef SET
    ASSERT_REFUSALS(rows, good, plan_gguf_linear, &target);
}

/* ---- rmsnorm_q4k ---- */

static ptxgen_status plan_rmsnorm(const void *spec, const void *target, ptxgen_error *err)
{
    ptxgen_rmsnorm_q4k_plan plan;
    return ptxgen_rmsnorm_q4k_make_plan(spec, target, &plan, err);
}

static void rmsnorm_q4k_refuses_each_wrong_number(void **state)
{
    (void)state;
    const ptxgen_rmsnorm_q4k_spec good = {
        .k = 256, .n = {64}, .epsilon = 1e-5f, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
    const ptxgen_target target = target_of("sm_80");
#define SET(member, number) CHANGE(ptxgen_rmsnorm_q4k_spec, member, number)
#define FLAG "rmsnorm_q4k: a flag is neither 0 nor 1, or a reserved byte is not 0"
    static const struct refusal rows[] = {
        {{SET(k, 0)},
         UNSUPPORTED,
         "rmsnorm_q4k: K = 0 must be a positive multiple of 256 (Q4_K's super-block) up to "
         "16777216"},
        {{SET(k, 512)}, ACCEPTED},
        {{SET(k, 255)},
         UNSUPPORTED,
         "rmsnorm_q4k: K = 255 must be a positive multiple of 256 (Q4_K's super-block) up to "
         "16777216"},
        {{SET(k, 16777216)},
         UNSUPPORTED,
         "rmsnorm_q4k: K = 16777216 with 1 tokens does not fit into the 166912 bytes of shared "
         "memory of a CTA"},
        {{SET(k, 16777472)},
         UNSUPPORTED,
         "rmsnorm_q4k: K = 16777472 must be a positive multiple of 256 (Q4_K's super-block) up to "
         "16777216"},
        {{SET(n[0], 0)}, ACCEPTED},
        {{SET(n[0], 0), SET(n[1], 5)},
         UNSUPPORTED,
         "rmsnorm_q4k: N = 0, 5, 0; the matrices must be given in order"},
        {{SET(n[0], 0), SET(residual, 1), SET(residual_out, 1)},
         UNSUPPORTED,
         "rmsnorm_q4k: N = 0 launches nothing, and residual_out would not be written"},
        {{SET(n[2], 5)},
         UNSUPPORTED,
         "rmsnorm_q4k: N = 64, 0, 5; the matrices must be given in order"},
        {{SET(n[1], 1), SET(n[2], 1)}, ACCEPTED},
        {{SET(n[0], 536870912)}, ACCEPTED},
        {{SET(n[0], 536870913)}, UNSUPPORTED, "rmsnorm_q4k: N[0] = 536870913 is above 536870912"},
        {{SET(n[1], 1), SET(n[2], 536870913)},
         UNSUPPORTED,
         "rmsnorm_q4k: N[2] = 536870913 is above 536870912"},
        {{SET(max_m, 8)}, ACCEPTED},
        {{SET(max_m, 9)}, UNSUPPORTED, "rmsnorm_q4k: max_m = 9 is above 8"},
        {{SET(epsilon, 0)}, ACCEPTED},
        {{SET(epsilon, 0x7f7fffff)}, ACCEPTED},
        {{SET(epsilon, 0x7f800000)},
         UNSUPPORTED,
         "rmsnorm_q4k: epsilon = inf must be at least 0 and finite"},
        {{SET(epsilon, 0x7fc00000)},
         UNSUPPORTED,
         "rmsnorm_q4k: epsilon = nan must be at least 0 and finite"},
        {{SET(epsilon, 0x80000001)},
         UNSUPPORTED,
         "rmsnorm_q4k: epsilon = -1.4013e-45 must be at least 0 and finite"},
        {{SET(x_type, 0), SET(y_type, 2)}, ACCEPTED},
        {{SET(x_type, 3)},
         UNSUPPORTED,
         "rmsnorm_q4k: x_type = 3, y_type = 1; f32, f16 and bf16 are 0, 1, 2"},
        {{SET(y_type, 3)},
         UNSUPPORTED,
         "rmsnorm_q4k: x_type = 1, y_type = 3; f32, f16 and bf16 are 0, 1, 2"},
        {{SET(y_type, 4)},
         INVALID,
         "rmsnorm_q4k: x_type = 1, y_type = 4; f32, f16 and bf16 are 0, 1, 2"},
        {{SET(bias, 1), SET(residual, 1), SET(residual_out, 1)}, ACCEPTED},
        {{SET(epilogue, 2)}, UNSUPPORTED, "rmsnorm_q4k: epilogue = 2, GeGLU, which gguf_linear has"},
        {{SET(epilogue, 3)}, INVALID, FLAG},
        {{SET(bias, 2)}, INVALID, FLAG},
        {{SET(residual, 2)}, INVALID, FLAG},
        {{SET(residual_out, 2)}, INVALID, FLAG},
        {{SET(reserved[0], 1)}, INVALID, FLAG},
        {{SET(reserved[1], 1)}, INVALID, FLAG},
        {{SET(residual_out, 1)},
         UNSUPPORTED,
         "rmsnorm_q4k: residual_out without residual would only copy x"},
        {{SET(epilogue, 1), SET(n[1], 64)}, ACCEPTED},
        {{SET(epilogue, 1)},
         UNSUPPORTED,
         "rmsnorm_q4k: SwiGLU needs two matrices of equal N, not N = 64, 0, 0"},
        {{SET(epilogue, 1), SET(n[1], 65)},
         UNSUPPORTED,
         "rmsnorm_q4k: SwiGLU needs two matrices of equal N, not N = 64, 65, 0"},
        {{SET(epilogue, 1), SET(n[1], 64), SET(n[2], 64)},
         UNSUPPORTED,
         "rmsnorm_q4k: SwiGLU needs two matrices of equal N, not N = 64, 64, 64"},
    };
#undef SET
    ASSERT_REFUSALS(rows, good, plan_rmsnorm, &target);
}

/* ---- sparse24 ---- */

static ptxgen_status plan_sparse24(const void *spec, const void *target, ptxgen_error *err)
{
    ptxgen_sparse24_plan plan;
    return ptxgen_sparse24_make_plan(spec, target, &plan, err);
}

static void sparse24_refuses_each_wrong_number(void **state)
{
    (void)state;
    const ptxgen_sparse24_spec good = {
        .n = 64, .k = 64, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16};
    const ptxgen_target target = target_of("sm_80");
#define SET(member, number) CHANGE(ptxgen_sparse24_spec, member, number)
#define S8 SET(type, PTXGEN_SPARSE24_S8)
    static const struct refusal rows[] = {
        {{SET(n, 0)}, ACCEPTED},
        {{SET(n, 1)}, ACCEPTED},
        {{SET(n, 2147483647)}, ACCEPTED},
        {{SET(n, 2147483648)}, UNSUPPORTED, "sparse24: N = 2147483648 is above 2147483647"},
        {{SET(k, 0)}, ACCEPTED},
        {{SET(k, 8)}, ACCEPTED},
        {{SET(k, 12)},
         UNSUPPORTED,
         "sparse24: K = 12 is not a multiple of 8, as 2:4 metadata needs"},
        {{SET(k, 2147483640)}, ACCEPTED},
        {{SET(k, 2147483648)}, UNSUPPORTED, "sparse24: K = 2147483648 is above 2147483647"},
        {{S8, SET(k, 262136)}, ACCEPTED},
        {{S8, SET(k, 262144)},
         UNSUPPORTED,
         "sparse24: K = 262144 is above 262142, where sums of s8 products can overflow s32"},
        {{SET(type, 4)}, INVALID, "sparse24: the type 4 is no ptxgen_sparse24_type"},
        {{SET(tier, 1)}, ACCEPTED},
        {{SET(tier, 2)}, ACCEPTED},
        {{SET(tier, 3)}, INVALID, "sparse24: the tier 3 is not 0, 1 or 2"},
        {{S8, SET(tier, 1)}, UNSUPPORTED, "sparse24: tier 1 does not have the type s8"},
        {{S8, SET(tier, 2)}, ACCEPTED},
        {{SET(type, 0), SET(y_type, 0), SET(tier, 2)},
         UNSUPPORTED,
         "sparse24: tier 2 does not have the type f32"},
        {{SET(type, 0), SET(y_type, 0), SET(tier, 1)}, ACCEPTED},
        {{S8, SET(y_type, 2)}, ACCEPTED},
        {{S8, SET(y_type, 0)},
         UNSUPPORTED,
         "sparse24: the output type 0 is neither PTXGEN_F16 nor PTXGEN_BF16"},
        {{S8, SET(y_type, 3)},
         UNSUPPORTED,
         "sparse24: the output type 3 is neither PTXGEN_F16 nor PTXGEN_BF16"},
        {{S8, SET(y_type, 4)},
         INVALID,
         "sparse24: the output type 4 is neither PTXGEN_F16 nor PTXGEN_BF16"},
        {{SET(y_type, 2)}, UNSUPPORTED, "sparse24: the output type 2 is not that of x, 1"},
        {{SET(y_type, 4)}, INVALID, "sparse24: the output type 4 is not that of x, 1"},
        {{SET(activation, PTXGEN_ACTIVATION_RELU)}, ACCEPTED},
        {{SET(activation, 5)}, INVALID, "sparse24: 5 is not an activation"},
        {{SET(bias, 1), SET(residual, 1)}, ACCEPTED},
        {{SET(bias, 2)}, INVALID, "sparse24: bias is 2, not 0 or 1"},
        {{SET(residual, 2)}, INVALID, "sparse24: residual is 2, not 0 or 1"},
        {{SET(plain, 1)}, ACCEPTED},
        {{SET(plain, 2)}, INVALID, "sparse24: plain is 2, not 0 or 1"},
        {{SET(reserved[0], 9)}, INVALID, "sparse24: reserved[0] is 9, not 0"},
    };
#undef SET
#undef S8
    ASSERT_REFUSALS(rows, good, plan_sparse24, &target);
}

/* ---- w8a8 ---- */

static ptxgen_status plan_w8a8(const void *spec, const void *target, ptxgen_error *err)
{
    ptxgen_w8a8_plan plan;
    return ptxgen_w8a8_make_plan(spec, target, &plan, err);
}

static void w8a8_refuses_each_wrong_number(void **state)
{
    (void)state;
    const ptxgen_w8a8_spec good = {.k = 64, .n = 64, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
    const ptxgen_target target = target_of("sm_80");
#define SET(member, number) CHANGE(ptxgen_w8a8_spec, member, number)
#define FLAGS "w8a8: a flag is neither 0 nor 1, or a reserved byte is not 0"
    static const struct refusal rows[] = {
        {{SET(k, 0)}, ACCEPTED},
        {{SET(k, 1)}, ACCEPTED},
        {{SET(n, 0)}, ACCEPTED},
        {{SET(n, 1)}, ACCEPTED},
        {{SET(n, 2147483647)}, ACCEPTED},
        {{SET(n, 2147483648)}, UNSUPPORTED, "w8a8: N = 2147483648 is above 2147483647"},
        {{SET(min_m, 7), SET(max_m, 7)}, ACCEPTED},
        {{SET(min_m, 7), SET(max_m, 0)}, ACCEPTED},
        {{SET(min_m, 8), SET(max_m, 7)}, INVALID, "w8a8: min_m = 8 is above max_m = 7"},
        {{SET(w_stride, 64)}, ACCEPTED},
        {{SET(w_stride, 63)}, INVALID, "w8a8: w_stride = 63 is below K = 64"},
        {{SET(x_type, 3), SET(y_type, 3)}, ACCEPTED},
        {{SET(x_type, 4)},
         INVALID,
         "w8a8: x_type = 4, y_type = 1; f32, f16, bf16 and f64 are 0, 1, 2, 3"},
        {{SET(y_type, 4)},
         INVALID,
         "w8a8: x_type = 1, y_type = 4; f32, f16, bf16 and f64 are 0, 1, 2, 3"},
        {{SET(scales, 2)}, ACCEPTED},
        {{SET(scales, 3), SET(x_type, 3)}, ACCEPTED}, /* whose type is not used */
        {{SET(scales, 4)},
         INVALID,
         "w8a8: scales = 4; dynamic, tensor, token and quantised are 0, 1, 2, 3"},
        {{SET(scales, 3), SET(y_type, 3)},
         UNSUPPORTED,
         "w8a8: x_type = 1, y_type = 3; a function, SwiGLU, a residual or the caller's codes are "
         "not supported with f64 (3)"},
        {{SET(asymmetric, 1), SET(bias, 1)}, ACCEPTED},
        {{SET(asymmetric, 2)}, INVALID, FLAGS},
        {{SET(bias, 2)}, INVALID, FLAGS},
        {{SET(residual, 2)}, INVALID, FLAGS},
        {{SET(reserved, 1)}, INVALID, FLAGS},
        {{SET(epilogue, 1), SET(residual, 1)}, ACCEPTED},
        {{SET(activation, 4), SET(residual, 1)}, ACCEPTED},
        {{SET(epilogue, 2)}, UNSUPPORTED, "w8a8: 2 is not an epilogue of this family"},
        {{SET(epilogue, 3)}, INVALID, "w8a8: 3 is not an epilogue of this family"},
        {{SET(activation, 5)}, INVALID, "w8a8: 5 is not an activation"},
        {{SET(epilogue, 1), SET(activation, 1)},
         INVALID,
         "w8a8: SwiGLU has its own activation, but activation is 1"},
        {{SET(epilogue, 1), SET(n, 60)},
         UNSUPPORTED,
         "w8a8: N = 60; with SwiGLU it must be a multiple of 8 below 2^30"},
        {{SET(epilogue, 1), SET(n, 0x40000000)},
         UNSUPPORTED,
         "w8a8: N = 1073741824; with SwiGLU it must be a multiple of 8 below 2^30"},
        {{SET(residual, 1), SET(y_type, 3)},
         UNSUPPORTED,
         "w8a8: x_type = 1, y_type = 3; a function, SwiGLU, a residual or the caller's codes are "
         "not supported with f64 (3)"},
        {{SET(activation, 2), SET(x_type, 3)},
         UNSUPPORTED,
         "w8a8: x_type = 3, y_type = 1; a function, SwiGLU, a residual or the caller's codes are "
         "not supported with f64 (3)"},
        {{SET(codes, 2)}, INVALID, "w8a8: codes = 2; s8 and e4m3 are 0 and 1"},
        {{SET(codes, 1)},
         TARGET,
         "w8a8: products of e4m3 codes need sm_89 and PTX 8.4; the target is sm_80 with PTX 0.0 "
         "(0.0: any)"},
        {{SET(q_min, -128), SET(q_max, 127)}, ACCEPTED},
        {{SET(q_min, 0), SET(q_max, 1)}, ACCEPTED},
        {{SET(q_min, -129), SET(q_max, 127)},
         UNSUPPORTED,
         "w8a8: codes of -129 ... 127; the rule is -128 <= q_min <= 0 < q_max <= 127"},
        {{SET(q_min, 1), SET(q_max, 127)},
         UNSUPPORTED,
         "w8a8: codes of 1 ... 127; the rule is -128 <= q_min <= 0 < q_max <= 127"},
        {{SET(q_min, -1)},
         UNSUPPORTED,
         "w8a8: codes of -1 ... 0; the rule is -128 <= q_min <= 0 < q_max <= 127"},
        {{SET(q_min, -128), SET(q_max, 128)},
         UNSUPPORTED,
         "w8a8: codes of -128 ... 128; the rule is -128 <= q_min <= 0 < q_max <= 127"},
        {{SET(k, 132104)}, ACCEPTED},
        {{SET(k, 132105)},
         UNSUPPORTED,
         "w8a8: K = 132105 is above 132104, from where sums of products of codes -127 ... 127 with "
         "weights down to -128 can leave 32 bits"},
        {{SET(k, 131071), SET(q_min, -128), SET(q_max, 127)}, ACCEPTED},
        {{SET(k, 131072), SET(q_min, -128), SET(q_max, 127)},
         UNSUPPORTED,
         "w8a8: K = 131072 is above 131071, from where sums of products of codes -128 ... 127 with "
         "weights down to -128 can leave 32 bits"},
        {{SET(k, 65793), SET(q_min, -128), SET(q_max, 127), SET(asymmetric, 1)}, ACCEPTED},
        {{SET(k, 65794), SET(q_min, -128), SET(q_max, 127), SET(asymmetric, 1)},
         UNSUPPORTED,
         "w8a8: K = 65794 is above 65793, from where sums of products of asymmetric codes -128 ... "
         "127 with weights down to -128 can leave 32 bits"},
    };
#undef SET
    ASSERT_REFUSALS(rows, good, plan_w8a8, &target);
}

static void w8a8_refuses_each_wrong_number_of_e4m3_codes(void **state)
{
    (void)state;
    const ptxgen_w8a8_spec good = {
        .k = 64, .n = 64, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16, .codes = PTXGEN_W8A8_E4M3};
    ptxgen_target target = target_of("sm_89");
#define SET(member, number) CHANGE(ptxgen_w8a8_spec, member, number)
    static const struct refusal rows[] = {
        {{SET(k, 131072)}, ACCEPTED},
        {{SET(k, 131073)},
         UNSUPPORTED,
         "w8a8: K = 131073 is above 131072, the most for e4m3 codes"},
        {{SET(x_type, 0), SET(y_type, 2)}, ACCEPTED},
        {{SET(x_type, 3)},
         UNSUPPORTED,
         "w8a8: x_type = 3, y_type = 1; with e4m3 codes f64 (3) is not supported"},
        {{SET(y_type, 3)},
         UNSUPPORTED,
         "w8a8: x_type = 1, y_type = 3; with e4m3 codes f64 (3) is not supported"},
        {{SET(asymmetric, 1)},
         UNSUPPORTED,
         "w8a8: asymmetric = 1, but e4m3 codes have no zero points"},
        {{SET(w_codes, 2)}, ACCEPTED},
        {{SET(w_codes, 1)},
         INVALID,
         "w8a8: w_codes = 1 is neither 0, the type of codes, nor e5m2 (2)"},
        {{SET(w_codes, 2), SET(codes, 0)},
         UNSUPPORTED,
         "w8a8: w_codes = 2 with codes = 0; weights of e5m2 need e4m3 codes (1)"},
        {{SET(q_min, -448), SET(q_max, 448)}, ACCEPTED}, /* as in a plan */
        {{SET(q_min, -127), SET(q_max, 127)},
         UNSUPPORTED,
         "w8a8: q_min = -127 and q_max = 127, but e4m3 codes have no range: both must be 0"},
        {{SET(q_min, -448), SET(q_max, 127)},
         UNSUPPORTED,
         "w8a8: q_min = -448 and q_max = 127, but e4m3 codes have no range: both must be 0"},
        {{SET(group, 128)}, ACCEPTED},
        {{SET(group, 128), SET(scales, 3)}, ACCEPTED},
        {{SET(group, 64)},
         UNSUPPORTED,
         "w8a8: group = 64 is neither 0, scales of tokens and features, nor 128"},
        {{SET(group, 128), SET(codes, 0)},
         UNSUPPORTED,
         "w8a8: group = 128 with codes = 0; scales of groups need e4m3 codes (1)"},
        {{SET(group, 128), SET(scales, 1)},
         UNSUPPORTED,
         "w8a8: group = 128 with scales = 1; scales of groups are dynamic (0), or x is quantised "
         "(3)"},
        {{SET(group, 128), SET(scales, 2)},
         UNSUPPORTED,
         "w8a8: group = 128 with scales = 2; scales of groups are dynamic (0), or x is quantised "
         "(3)"},
    };
#undef SET
    ASSERT_REFUSALS(rows, good, plan_w8a8, &target);
    target.ptx.max_ptx = 84;
    ptxgen_error err = {0};
    assert_ok(plan_w8a8(&good, &target, &err), &err);
    target.ptx.max_ptx = 83;
    assert_int_equal(plan_w8a8(&good, &target, &err), TARGET);
    assert_string_equal(
        err.message,
        "w8a8: products of e4m3 codes need sm_89 and PTX 8.4; the target is sm_89 with "
        "PTX 8.3 (0.0: any)");
}

/* ---- gguf_rows ---- */

static ptxgen_status plan_gguf_rows(const void *spec, const void *target, ptxgen_error *err)
{
    ptxgen_gguf_rows_plan plan;
    return ptxgen_gguf_rows_make_plan(spec, target, &plan, err);
}

static void gguf_rows_refuses_each_wrong_number(void **state)
{
    (void)state;
    const ptxgen_gguf_rows_spec good = {.k = 256, .w_type = PTXGEN_GGUF_Q6_K};
    const ptxgen_target target = target_of("sm_80");
#define SET(member, number) CHANGE(ptxgen_gguf_rows_spec, member, number)
    static const struct refusal rows[] = {
        {{SET(k, 0)}, UNSUPPORTED, "gguf_rows: K = 0 is not within 1 and 16777216"},
        {{SET(k, 16777216)}, ACCEPTED},
        {{SET(k, 16777472)},
         UNSUPPORTED,
         "gguf_rows: K = 16777472 is not within 1 and 16777216"},
        {{SET(k, 640)},
         UNSUPPORTED,
         "K = 640 is not a multiple of 256: a row of Q6_K is whole blocks"},
        {{SET(k, 640), SET(w_type, PTXGEN_GGUF_MXFP4)}, ACCEPTED},
        {{SET(k, 641), SET(w_type, PTXGEN_GGUF_BF16)}, ACCEPTED},
        {{SET(w_type, 9)},
         UNSUPPORTED,
         "gguf_rows: w_type = 9 is the number of no type that this library decodes"},
        {{SET(y_type, 2)}, ACCEPTED},
        {{SET(y_type, 3)}, UNSUPPORTED, "gguf_rows: y_type = 3; f32, f16 and bf16 are 0, 1, 2"},
        {{SET(y_type, 4)}, INVALID, "gguf_rows: y_type = 4; f32, f16 and bf16 are 0, 1, 2"},
        {{SET(indexed, 1)}, ACCEPTED},
        {{SET(indexed, 2)}, INVALID, "gguf_rows: indexed is 2, not 0 or 1"},
        {{SET(reserved[0], 1)}, INVALID, "gguf_rows: reserved[0] is 1, not 0"},
        {{SET(scale, 0xff7fffff)}, ACCEPTED},
        {{SET(scale, 0x7f800000)}, INVALID, "gguf_rows: scale = inf is not finite"},
    };
#undef SET
    ASSERT_REFUSALS(rows, good, plan_gguf_rows, &target);
}

/* ---- quantise ---- */

static ptxgen_status plan_quantise(const void *spec, const void *target, ptxgen_error *err)
{
    ptxgen_quantise_plan plan;
    return ptxgen_quantise_make_plan(spec, target, &plan, err);
}

#define SET(member, number) CHANGE(ptxgen_quantise_spec, member, number)
#define NORM SET(producer, PTXGEN_QUANTISE_RMSNORM)
#define E4M3 SET(codes, PTXGEN_W8A8_E4M3)
static void quantise_refuses_each_wrong_number(void **state)
{
    (void)state;
    const ptxgen_quantise_spec good = {.k = 64, .x_type = PTXGEN_F16};
    const ptxgen_target target = target_of("sm_89");
    static const struct refusal rows[] = {
        {{SET(k, 0)}, UNSUPPORTED, "quantise: K = 0 is not within 1 and 16777216"},
        {{SET(k, 1)}, ACCEPTED},
        {{SET(k, 16777216)}, ACCEPTED},
        {{SET(k, 16777217)}, UNSUPPORTED, "quantise: K = 16777217 is not within 1 and 16777216"},
        {{SET(x_type, 0)}, ACCEPTED},
        {{SET(x_type, 2)}, ACCEPTED},
        {{SET(x_type, 3)},
         UNSUPPORTED,
         "quantise: x_type = 3, gamma_type = 0; f32, f16 and bf16 are 0, 1, 2"},
        {{SET(x_type, 4)},
         INVALID,
         "quantise: x_type = 4, gamma_type = 0; f32, f16 and bf16 are 0, 1, 2"},
        {{NORM, SET(gamma_type, 2)}, ACCEPTED},
        {{NORM, SET(gamma_type, 3)},
         UNSUPPORTED,
         "quantise: x_type = 1, gamma_type = 3; f32, f16 and bf16 are 0, 1, 2"},
        {{NORM, SET(gamma_type, 4)},
         INVALID,
         "quantise: x_type = 1, gamma_type = 4; f32, f16 and bf16 are 0, 1, 2"},
        {{SET(group, 128)}, ACCEPTED},
        {{SET(group, 64)},
         UNSUPPORTED,
         "quantise: group = 64 is neither 0, a scale for each token, nor 128"},
        {{SET(asymmetric, 1)}, ACCEPTED},
        {{SET(asymmetric, 2)}, INVALID, "quantise: asymmetric is 2, not 0 or 1"},
        {{NORM, SET(residual, 2)}, INVALID, "quantise: residual is 2, not 0 or 1"},
        {{SET(reserved[0], 1)}, INVALID, "quantise: reserved[0] is 1, not 0"},
        {{SET(codes, 2)}, INVALID, "quantise: codes = 2; s8 and e4m3 are 0 and 1"},
        {{SET(q_min, -128), SET(q_max, 127)}, ACCEPTED},
        {{SET(q_min, 0), SET(q_max, 1)}, ACCEPTED},
        {{SET(q_min, -129), SET(q_max, 127)},
         UNSUPPORTED,
         "quantise: codes of -129 ... 127; the rule is -128 <= q_min <= 0 < q_max <= 127"},
        {{SET(q_min, 1), SET(q_max, 127)},
         UNSUPPORTED,
         "quantise: codes of 1 ... 127; the rule is -128 <= q_min <= 0 < q_max <= 127"},
        {{SET(q_min, -5)},
         UNSUPPORTED,
         "quantise: codes of -5 ... 0; the rule is -128 <= q_min <= 0 < q_max <= 127"},
        {{SET(q_max, 128)},
         UNSUPPORTED,
         "quantise: codes of 0 ... 128; the rule is -128 <= q_min <= 0 < q_max <= 127"},
        {{E4M3}, ACCEPTED},
        {{E4M3, SET(q_min, -448), SET(q_max, 448)}, ACCEPTED}, /* as in a plan */
        {{E4M3, SET(asymmetric, 1)},
         UNSUPPORTED,
         "quantise: asymmetric = 1, q_min = 0, q_max = 0; e4m3 codes have neither zero points nor a "
         "range: all must be 0"},
        {{E4M3, SET(q_min, -127), SET(q_max, 448)},
         UNSUPPORTED,
         "quantise: asymmetric = 0, q_min = -127, q_max = 448; e4m3 codes have neither zero points "
         "nor a range: all must be 0"},
        {{NORM, SET(residual, 1), SET(epsilon, 0x3727c5ac)}, ACCEPTED},
        {{SET(producer, 2)}, ACCEPTED},
        {{SET(producer, 3)},
         INVALID,
         "quantise: producer = 3; none, RMSNorm and SiLU times up are 0, 1 and 2"},
        {{SET(producer, 2), SET(residual, 1)},
         UNSUPPORTED,
         "quantise: residual = 1, gamma_type = 0, epsilon = 0, which only the producer RMSNorm has"},
        {{SET(gamma_type, 1)},
         UNSUPPORTED,
         "quantise: residual = 0, gamma_type = 1, epsilon = 0, which only the producer RMSNorm has"},
        {{SET(epsilon, 0x3f800000)},
         UNSUPPORTED,
         "quantise: residual = 0, gamma_type = 0, epsilon = 1, which only the producer RMSNorm has"},
        {{NORM, SET(epsilon, 0x7f7fffff)}, ACCEPTED},
        {{NORM, SET(epsilon, 0x7f800000)},
         INVALID,
         "quantise: epsilon = inf is not a finite number from 0 on"},
        {{NORM, SET(epsilon, 0xbf800000)},
         INVALID,
         "quantise: epsilon = -1 is not a finite number from 0 on"},
    };
    ASSERT_REFUSALS(rows, good, plan_quantise, &target);
}

static void quantise_refuses_targets_without_e4m3(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        int ptx; /* 0: any */
        const char *says;
    } rows[] = {
        {"sm_80", 0,
         "quantise: e4m3 codes need sm_89 and PTX 8.1, or sm_90 and PTX 7.8; the target is sm_80 "
         "with PTX 0.0 (0.0: any)"},
        {"sm_89", 81, NULL},
        {"sm_89", 80,
         "quantise: e4m3 codes need sm_89 and PTX 8.1, or sm_90 and PTX 7.8; the target is sm_89 "
         "with PTX 8.0 (0.0: any)"},
        {"sm_90", 78, NULL},
    };
    const ptxgen_quantise_spec spec = {.k = 64, .codes = PTXGEN_W8A8_E4M3};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ptxgen_target target = target_of(rows[i].target);
        ptxgen_error err = {0};
        target.ptx.max_ptx = rows[i].ptx;
        if (rows[i].says)
            assert_refusal(plan_quantise(&spec, &target, &err), &err, TARGET, rows[i].says);
        else
            assert_ok(plan_quantise(&spec, &target, &err), &err);
    }
}
#undef SET
#undef NORM
#undef E4M3

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_refuses_each_wrong_number),
        cmocka_unit_test(marlin_refuses_each_wrong_number),
        cmocka_unit_test(marlin_repack_refuses_each_wrong_number),
        cmocka_unit_test(gguf_linear_refuses_each_wrong_number),
        cmocka_unit_test(rmsnorm_q4k_refuses_each_wrong_number),
        cmocka_unit_test(sparse24_refuses_each_wrong_number),
        cmocka_unit_test(w8a8_refuses_each_wrong_number),
        cmocka_unit_test(w8a8_refuses_each_wrong_number_of_e4m3_codes),
        cmocka_unit_test(quantise_refuses_each_wrong_number),
        cmocka_unit_test(gguf_rows_refuses_each_wrong_number),
        cmocka_unit_test(quantise_refuses_targets_without_e4m3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
