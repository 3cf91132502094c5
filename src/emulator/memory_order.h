/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory ordering as the race check sees it. A fence, and an access with acquire or release
 * semantics, exchanges everything known with all earlier ones of the CTA: more order than the
 * memory model promises, so never a false report.
 */
#ifndef PTXGEN_EMULATOR_MEMORY_ORDER_H
#define PTXGEN_EMULATOR_MEMORY_ORDER_H

#include "src/emulator/decode.h"
#include "src/emulator/machine.h"

enum { ORDER_ACQUIRE = 3, ORDER_RELEASE = 4, ORDER_BOTH = 5 }; /* emu_insn.op of ld, st, atom */

void emu_fence(struct emu_warp *warp);
void emu_after_strong_read(struct emu_warp *warp, const struct emu_insn *insn, uint64_t address);
void emu_before_strong_write(struct emu_warp *warp, const struct emu_insn *insn);

/* Takes the scope; `other` when there is none. */
enum emu_sync_scope emu_mod_scope(struct emu_decoder *decoder, enum emu_sync_scope other);
/* Takes modifiers that change no value: eviction and prefetch hints. */
void emu_skip_hints(struct emu_decoder *decoder);
/* Reads operand `index`, the last, a cache policy, if the modifiers say that there is one. */
void emu_read_policy(struct emu_decoder *decoder, uint32_t index);

#endif
