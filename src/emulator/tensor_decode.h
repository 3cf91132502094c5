/* SPDX-License-Identifier: Apache-2.0 */
/* What mma and wgmma share: shapes, element types, and registers as rows of lanes. */
#ifndef PTXGEN_EMULATOR_TENSOR_DECODE_H
#define PTXGEN_EMULATOR_TENSOR_DECODE_H

#include "src/emulator/decode.h"
#include "src/emulator/machine.h"
#include "src/emulator/tensor_core.h"

emu_numerics emu_launch_numerics(const struct emu_launch *launch);
/* Registers to rows and back; a 64-bit register is two rows. Returns the number of rows. */
uint32_t emu_gather_rows(struct emu_warp *warp, const struct emu_src *list, uint32_t count,
                         emu_lanes *rows);
void emu_scatter_rows(struct emu_warp *warp, const struct emu_src *list, uint32_t count,
                      const emu_lanes *rows);
/* ".m16n8k16"; k is 0 when there is none. False when no modifier is a shape. */
bool emu_parse_shape(struct emu_decoder *decoder, uint16_t shape[3]);
emu_element emu_need_element(struct emu_decoder *decoder);
/* Appends the operand's registers to insn->list; returns their number. */
uint32_t emu_matrix_list(struct emu_decoder *decoder, struct emu_insn *insn,
                         const struct emu_arg *operand, uint32_t words, emu_element element,
                         bool write);
void emu_need_aligned(struct emu_decoder *decoder, struct emu_insn *insn);

#endif
