/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/types.h"

#include <string.h>

const struct emu_type_info emu_types[EMU_TYPE_COUNT] = {
#define EMU_ROW(name, bits, kind) {#name, bits, kind},
    EMU_TYPES(EMU_ROW)
#undef EMU_ROW
};

bool emu_str_is(struct emu_str a, const char *b)
{
    return strlen(b) == a.length && memcmp(a.text, b, a.length) == 0;
}

bool emu_str_equal(struct emu_str a, struct emu_str b)
{
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

enum emu_type emu_type_of(struct emu_str name)
{
    for (int t = 1; t < EMU_TYPE_COUNT; t++)
        if (emu_str_is(name, emu_types[t].name))
            return (enum emu_type)t;
    return T_none;
}
