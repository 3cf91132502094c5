/* SPDX-License-Identifier: Apache-2.0 */
#include "instruction.h"

void for_each_group(void (*visit)(const struct modifier *m, int count, int shift, int bits))
{
    static const struct modifier all[] = {
#define G(group) {#group, NULL, NULL, 0, 0},
#define M(name, text, ptx, target) {NULL, #name, text, ptx, target},
#include "modifiers.def"
#undef G
#undef M
    };
    int shift = 0;
    int total = (int)(sizeof all / sizeof *all);
    for (int i = 0; i < total;) {
        int count = 1;
        while (i + count < total && all[i + count].name)
            count++;
        int bits = 0;
        while ((1 << bits) < count)
            bits++;
        visit(&all[i], count - 1, shift, bits);
        shift += bits;
        i += count;
    }
    if (shift > 64)
        stop("modifiers need %d bits", shift);
}
