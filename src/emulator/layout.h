/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulated address space. Generic addresses carry their window in the high bits (ISA
 * "Generic Addressing"); everything from EMU_GLOBAL_BASE on is global memory.
 */
#ifndef PTXGEN_EMULATOR_LAYOUT_H
#define PTXGEN_EMULATOR_LAYOUT_H

#include <stdint.h>

#define EMU_WINDOW_SHIFT 44
#define EMU_SHARED_BASE ((uint64_t)1 << EMU_WINDOW_SHIFT)
#define EMU_LOCAL_BASE ((uint64_t)2 << EMU_WINDOW_SHIFT)
#define EMU_PARAM_BASE ((uint64_t)3 << EMU_WINDOW_SHIFT)
#define EMU_FUNCTION_BASE ((uint64_t)4 << EMU_WINDOW_SHIFT)
#define EMU_GLOBAL_BASE ((uint64_t)7 << EMU_WINDOW_SHIFT)

/*
 * A shared address is an offset into the CTA's own memory, or, in the shared::cluster window,
 * (rank + 1) << 24 | offset for the CTA of that rank in the cluster.
 */
enum { EMU_RANK_SHIFT = 24, EMU_SHARED_OFFSET_MASK = 0xffffff };

#endif
