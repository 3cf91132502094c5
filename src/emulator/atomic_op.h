/* SPDX-License-Identifier: Apache-2.0 */
/* The read-modify-write operations, shared by atom, red and the reducing bulk copies. */
#ifndef PTXGEN_EMULATOR_ATOMIC_OP_H
#define PTXGEN_EMULATOR_ATOMIC_OP_H

#include "src/emulator/types.h"

enum emu_atomic {
    ATOMIC_AND,
    ATOMIC_OR,
    ATOMIC_XOR,
    ATOMIC_EXCH,
    ATOMIC_CAS,
    ATOMIC_INC,
    ATOMIC_DEC,
    ATOMIC_ADD,
    ATOMIC_MIN,
    ATOMIC_MAX
};

extern const char *const emu_atomic_names[]; /* in that order, NULL-terminated */

bool emu_atomic_allows(enum emu_atomic op, enum emu_type type);

/* result = op(old, b) or, for CAS, old == b ? c : old. `flush`: f32 sums flush subnormals. */
void emu_atomic_apply(enum emu_atomic op, enum emu_type type, bool flush, const uint8_t old[16],
                      const uint8_t b[16], const uint8_t c[16], uint8_t result[16]);

#endif
