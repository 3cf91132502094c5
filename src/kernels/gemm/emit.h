/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every emitter of a matrix product uses: short names for immediates, the place of a thread in
 * its CTA, and division by constants.
 */
#ifndef PTXGEN_KERNELS_GEMM_EMIT_H
#define PTXGEN_KERNELS_GEMM_EMIT_H

#include <ptxgen/instr.h>

#include <stdbool.h>

#define U32(x) ptx_imm_u32(x)
#define S32(x) ptx_imm_s32(x)
#define U64(x) ptx_imm_u64(x)
#define F32(x) ptx_imm_f32(x)
#define ALL_LANES ptx_imm_u32(0xFFFFFFFF)

/*
 * Declares a 64-bit parameter, and reads it if `used`. Every entry of a module declares the same
 * parameters, so that one array of arguments launches any of them.
 */
ptx_u64 gemm_param_u64(ptx_kernel *k, const char *name, bool used);
/* The parameters of a family, which are all addresses and strides. */
struct gemm_param {
    const char *name;
    bool used; /* by the entries of this spec */
};
void gemm_params_u64(ptx_kernel *k, const struct gemm_param *params, uint32_t count, ptx_u64 *to);
/* Adds to a sum in an untyped register, which holds an s32 or an f32. */
void gemm_add_to(ptx_kernel *k, bool integer, ptx_u32 sum, ptx_u32 more);
/* Rounds two f32 to f16 or bf16, the lower half first. */
ptx_u32 gemm_narrow_pair(ptx_kernel *k, bool bf16, ptx_f32 low, ptx_f32 high);
/* Fills `registers` with `count` new registers that hold 0 and may be written repeatedly. */
void gemm_new_registers(ptx_kernel *k, ptx_u32 *registers, uint32_t count);

/*
 * The place of a thread in its CTA. `group` is lane / 4 and `quad` is lane % 4, by which mma's
 * fragments are spread over the lanes of a warp. Where a team of threads synchronises apart from
 * the rest of the CTA, `thread` and `warp` count within the team.
 */
struct gemm_threads {
    ptx_u32 cta, thread, warp, lane, group, quad;
    uint32_t team;   /* threads of the team; 0: the team is the whole CTA */
    ptx_u32 barrier; /* number of the barrier that only the team uses, where `team` is not 0 */
};
struct gemm_threads gemm_find_threads(ptx_kernel *k);
/* A barrier of all threads of the team, or of the CTA where there are no teams. */
void gemm_sync(ptx_kernel *k, const struct gemm_threads *at);

/* Quotient (rounded down) and remainder of x by a constant divisor above 0. */
ptx_u32 gemm_divide(ptx_kernel *k, ptx_u32 x, uint32_t divisor);
ptx_u32 gemm_remainder(ptx_kernel *k, ptx_u32 x, uint32_t divisor);
/* The quotient rounded up; x + divisor must be below 2³². */
ptx_u32 gemm_divide_up(ptx_kernel *k, ptx_u32 x, uint32_t divisor);

#endif
