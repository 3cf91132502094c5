/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which texts an assembler takes: targets and PTX versions, modifiers that must stand, ranges of
 * constants, operands that must be registers. What an instruction needs is read from the columns
 * of src/ptxgen/instr.def, which a test puts to real assemblers; what it does is in exec_*.c. An
 * instruction that the table does not have passes.
 */
#ifndef PTXGEN_EMULATOR_LEGALITY_H
#define PTXGEN_EMULATOR_LEGALITY_H

#include "src/emulator/arena.h"
#include "src/emulator/module.h"

struct emu_decoder;
struct emu_legality; /* what is known of the texts seen so far */

/* The table by mnemonic, for the target and the version of a module. */
struct emu_legality *emu_legality_new(struct emu_arena *arena, const struct emu_module *module);

/* Refuses decoder->statement if an assembler would. */
void emu_legality_check(struct emu_decoder *decoder);

/* The module's target exists, and from its .version on; false with a sentence. */
bool emu_legality_of_target(const struct emu_module *module, ptxgen_error *err);

#endif
