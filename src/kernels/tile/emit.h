/* SPDX-License-Identifier: Apache-2.0 */
/* What every piece of a tile kernel's emitter uses: constants, and who a thread is. */
#ifndef PTXGEN_KERNELS_TILE_EMIT_H
#define PTXGEN_KERNELS_TILE_EMIT_H

#include <ptxgen/instr.h>

#include <stdbool.h>

#define U32(x) ptx_imm_u32(x)
#define S32(x) ptx_imm_s32(x)
#define U64(x) ptx_imm_u64(x)
#define F32(x) ptx_imm_f32(x)
#define ALL_LANES ptx_imm_u32(0xFFFFFFFF)

/*
 * A parameter of 64 bits, read where it is used: all are declared, so that all entries of a module
 * are launched alike.
 */
ptx_u64 tile_param_u64(ptx_kernel *k, const char *name, bool used);
/* Registers of their own, 0, for what is written over and over. */
void tile_new_registers(ptx_kernel *k, ptx_u32 *registers, uint32_t count);

/*
 * A warp's lanes hold fragments by group (lane / 4) and quad lane (lane % 4). Where a team of a
 * CTA's threads works by itself, `thread` and `warp` are numbers within it, and `team` is how many
 * they are.
 */
struct tile_threads {
    ptx_u32 cta, thread, warp, lane, group, quad;
    uint32_t team;   /* 0: the whole CTA */
    ptx_u32 barrier; /* a team's own */
};
struct tile_threads tile_find_threads(ptx_kernel *k);
/* Waits for the CTA's threads, or the team's. */
void tile_sync(ptx_kernel *k, const struct tile_threads *at);

/* floor(x / divisor), and what is left. */
ptx_u32 tile_divide(ptx_kernel *k, ptx_u32 x, uint32_t divisor);
ptx_u32 tile_remainder(ptx_kernel *k, ptx_u32 x, uint32_t divisor);

#endif
