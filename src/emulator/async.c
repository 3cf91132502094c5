/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/async.h"

#include <stdlib.h>

struct emu_copy {
    struct emu_copy *next;
};

void emu_copies_free(struct emu_copy **list)
{
    while (*list) {
        struct emu_copy *next = (*list)->next;
        free(*list);
        *list = next;
    }
}
