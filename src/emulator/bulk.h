/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PTXGEN_EMULATOR_BULK_H
#define PTXGEN_EMULATOR_BULK_H

#include "src/emulator/decode.h"
#include "src/emulator/machine.h"

/* cp.async.bulk.* and cp.reduce.async.bulk.*, all forms. */
void emu_decode_bulk(struct emu_decoder *decoder, struct emu_insn *insn);

/* st.async, and red.async which reduces; behind the modifier .async. */
void emu_decode_async_store(struct emu_decoder *decoder, struct emu_insn *insn, bool reduces);

#endif
