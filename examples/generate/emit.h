/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the example's kernels share: short names of constants, values of f32, f16 and bf16 in memory
 * as f32 registers, and the overlap with the kernel ahead.
 */
#ifndef GENERATE_EMIT_H
#define GENERATE_EMIT_H

#include <ptxgen/instr.h>
#include <ptxgen/kernel.h>
#include <ptxgen/target.h>
#include <ptxgen/types.h>

#define U32(x) ptx_imm_u32(x)
#define F32(x) ptx_imm_f32(x)
#define ALL_LANES ptx_imm_u32(0xFFFFFFFF)
enum { EIGHT = 8 }; /* elements that a lane has of a row */

/* Bytes of an element of a type. */
static inline uint32_t emit_size_of(uint8_t type)
{
    return (uint32_t)ptxgen_element_size((ptxgen_element)type);
}

/* The element `offset` bytes after `at`. */
ptx_f32 emit_load(ptx_kernel *k, uint8_t type, ptx_u64 at, int offset);
/* A word of two elements of a 16-bit type. */
void emit_widen_pair(ptx_kernel *k, uint8_t type, ptx_u32 word, ptx_f32 to[2]);
/* To nearest, ties to even, as the stores below. */
ptx_f32 emit_round(ptx_kernel *k, uint8_t type, ptx_f32 value);
/* Two values as a word of f16 or bf16. */
ptx_u32 emit_narrow_pair(ptx_kernel *k, uint8_t type, ptx_f32 low, ptx_f32 high);
/* Rounds to nearest, ties to even; to global memory, and to shared. */
void emit_store(ptx_kernel *k, uint8_t type, ptx_u64 at, int offset, ptx_f32 value);
void emit_store_pair(ptx_kernel *k, uint8_t type, ptx_u64 at, const ptx_f32 pair[2]);
void emit_store_shared(ptx_kernel *k, uint8_t type, ptx_u32 at, int offset, ptx_f32 value);

/*
 * Cosine and sine of the angle of a pair: the upper half of position · turns, with `turns` the u64
 * `offset` bytes after `at`, is a signed fraction of a turn.
 */
void emit_angle(ptx_kernel *k, ptx_u64 position, ptx_u64 at, int offset, ptx_f32 *cosine,
                ptx_f32 *sine);
/* 1 / √(sum of squares / count + epsilon) */
ptx_f32 emit_norm_factor(ptx_kernel *k, ptx_f32 squares, uint32_t count, float epsilon);

/* The sum over groups of `lanes` neighbours of a warp; each lane gets it. */
ptx_f32 emit_sum_lanes(ptx_kernel *k, ptx_f32 value, uint32_t lanes);

/*
 * Kernels of a stream overlap from sm_90 on (programmatic dependent launch). The kernel ahead is
 * the one that was launched before this one on the stream. emit_let_next_begin lets the kernel
 * behind begin (griddepcontrol.launch_dependents). emit_wait_for_previous waits until the kernel
 * ahead has ended (griddepcontrol.wait), before which nothing may be read that it writes. Where
 * kernels do not overlap, both emit nothing.
 */
void emit_let_next_begin(ptx_kernel *k);
void emit_wait_for_previous(ptx_kernel *k);
/* The shape of a launch of CTAs of `threads`, which overlaps the kernel ahead where that can be. */
ptxgen_launch_shape launch_shape(const ptxgen_target *target, uint32_t threads, uint64_t x,
                                 uint64_t y, uint64_t z);

#endif
