/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of the chips that can be emulated (CUDA programming guide, "Compute Capabilities"). */
#ifndef PTXGEN_EMULATOR_CHIP_H
#define PTXGEN_EMULATOR_CHIP_H

#include <stddef.h>
#include <stdint.h>

struct emu_chip {
    const char *target; /* "sm_90" */
    const char *name;
    uint32_t sm; /* 90 */
    uint32_t multiprocessors;
    uint32_t shared_per_sm, shared_per_cta; /* bytes; the second by opt-in */
    uint32_t threads_per_sm, ctas_per_sm;
    uint32_t l2_bytes, clock_khz, memory_clock_khz, bus_bits;
    uint64_t memory_bytes;
    uint32_t driver_version; /* the one that introduced it, at least */
};

/* In order of device ordinal. */
extern const struct emu_chip emu_chips[];
extern const size_t emu_chip_count;

enum {
    EMU_REGISTERS_PER_SM = 65536,
    EMU_SHARED_STATIC_LIMIT = 48 << 10,
    EMU_SHARED_RESERVED = 1024
};

#endif
