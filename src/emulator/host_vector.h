/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over lanes and tiles, compiled twice where the toolchain can choose at load time: for the
 * wider vectors of AVX2 and for any host. Both give the same bits (no contraction, no reordering).
 * An EMU_WIDE function is static, for a choice at load time is not hidden from the library's users;
 * one that it calls has to be EMU_INLINE to be compiled along with it.
 */
#ifndef PTXGEN_EMULATOR_HOST_VECTOR_H
#define PTXGEN_EMULATOR_HOST_VECTOR_H

#include <stdint.h>

/*
 * The choice needs glibc's indirect functions, and runs before a sanitizer is ready. Clang's
 * choosers are symbols of the library; with it, all hosts get the plain loops.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) &&       \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define EMU_WIDE __attribute__((target_clones("avx2", "default")))
#endif
#ifndef EMU_WIDE
#define EMU_WIDE
#endif

#define EMU_INLINE static inline __attribute__((always_inline))

/* Eight columns side by side, for loops that compilers leave scalar. */
typedef int16_t emu_s16x8 __attribute__((vector_size(16)));
typedef int32_t emu_s32x8 __attribute__((vector_size(32)));
typedef float emu_f32x8 __attribute__((vector_size(32)));

#if defined(__SSE2__)
#include <emmintrin.h>
EMU_INLINE void emu_max_s16x8(emu_s16x8 *x, emu_s16x8 y)
{
    *x = (emu_s16x8)_mm_max_epi16((__m128i)*x, (__m128i)y);
}
#else
EMU_INLINE void emu_max_s16x8(emu_s16x8 *x, emu_s16x8 y)
{
    emu_s16x8 above = *x > y;
    *x = (*x & above) | (y & ~above);
}
#endif

#endif
