/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous copies under way: their bytes are held back until the wait that makes them visible. */
#ifndef PTXGEN_EMULATOR_ASYNC_H
#define PTXGEN_EMULATOR_ASYNC_H

#include "src/emulator/machine.h"

void emu_copies_free(struct emu_copy **list);

#endif
