/* SPDX-License-Identifier: Apache-2.0 */
/* Fundamental and packed types of PTX (ISA "Types"), with their width and kind. */
#ifndef PTXGEN_EMULATOR_TYPES_H
#define PTXGEN_EMULATOR_TYPES_H

#include <stdbool.h>
#include <stdint.h>

struct emu_str {
    const char *text;
    uint32_t length;
};

bool emu_str_is(struct emu_str a, const char *b);
bool emu_str_equal(struct emu_str a, struct emu_str b);

/* name, bits, kind: U unsigned, S signed, B untyped, F float, P predicate, O opaque */
#define EMU_TYPES(X)                                                                               \
    X(none, 0, 'O')                                                                                \
    X(u8, 8, 'U') X(u16, 16, 'U') X(u32, 32, 'U') X(u64, 64, 'U') X(s8, 8, 'S') X(s16, 16, 'S')    \
        X(s32, 32, 'S') X(s64, 64, 'S') X(b8, 8, 'B') X(b16, 16, 'B') X(b32, 32, 'B')              \
            X(b64, 64, 'B') X(b128, 128, 'B') X(f16, 16, 'F') X(f16x2, 32, 'F') X(bf16, 16, 'F')   \
                X(bf16x2, 32, 'F') X(tf32, 32, 'F') X(f32, 32, 'F') X(f64, 64, 'F')                \
                    X(f32x2, 64, 'F') X(pred, 1, 'P') X(u16x2, 32, 'U') X(s16x2, 32, 'S')          \
                        X(e4m3, 8, 'F') X(e5m2, 8, 'F') X(e4m3x2, 16, 'F') X(e5m2x2, 16, 'F')      \
                            X(e2m1x2, 8, 'F') X(e2m3x2, 16, 'F') X(e3m2x2, 16, 'F')                \
                                X(ue8m0x2, 16, 'F') X(b1, 1, 'B') X(u4, 4, 'U') X(s4, 4, 'S')      \
                                    X(u2, 2, 'U') X(s2, 2, 'S') X(b8x16, 128, 'B')                 \
                                        X(texref, 64, 'O') X(samplerref, 64, 'O')                  \
                                            X(surfref, 64, 'O')

enum emu_type {
#define EMU_ENUM(name, bits, kind) T_##name,
    EMU_TYPES(EMU_ENUM)
#undef EMU_ENUM
        EMU_TYPE_COUNT
};

struct emu_type_info {
    const char *name;
    uint8_t bits;
    char kind;
};

extern const struct emu_type_info emu_types[EMU_TYPE_COUNT];

/* The type of that name without its dot, T_none when there is none. */
enum emu_type emu_type_of(struct emu_str name);

enum emu_space {
    SPACE_GENERIC,
    SPACE_GLOBAL,
    SPACE_SHARED,
    SPACE_SHARED_CLUSTER,
    SPACE_LOCAL,
    SPACE_CONST,
    SPACE_PARAM,
    SPACE_REG
};

#endif
