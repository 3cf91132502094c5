/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/decode.h"
const struct emu_opcode emu_async_opcodes[] = {{NULL, NULL, CLASS_OTHER}};
const struct emu_opcode emu_mbarrier_opcodes[] = {{NULL, NULL, CLASS_OTHER}};
const struct emu_opcode emu_bulk_opcodes[] = {{NULL, NULL, CLASS_OTHER}};
const struct emu_opcode emu_tensor_opcodes[] = {{NULL, NULL, CLASS_OTHER}};
const struct emu_opcode emu_wgmma_opcodes[] = {{NULL, NULL, CLASS_OTHER}};
