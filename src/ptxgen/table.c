/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the instruction table. */
#include "table.h"

#include <stdio.h>
#include <string.h>

#include "table.inc"

const size_t ptx_op_count = sizeof ptx_ops / sizeof *ptx_ops;
const size_t ptx_modifier_group_count = sizeof ptx_modifier_groups / sizeof *ptx_modifier_groups;

static char *unpack_byte(unsigned char byte, char *to)
{
    if (ptx_pairs[byte][0])
        return unpack_byte(ptx_pairs[byte][1], unpack_byte(ptx_pairs[byte][0], to));
    *to = (char)byte;
    return to + 1;
}

struct ptx_string ptx_unpack(uint16_t place)
{
    struct ptx_string string;
    char *to = string.s;
    for (const unsigned char *from = ptx_strings + place; *from; from++)
        to = unpack_byte(*from, to);
    *to = 0;
    return string;
}

const struct ptx_modifier_group *ptx_find_group(const char *name, size_t length)
{
    for (size_t i = 0; i < ptx_modifier_group_count; i++)
        if (!strncmp(ptx_modifier_groups[i].name, name, length) &&
            !ptx_modifier_groups[i].name[length])
            return &ptx_modifier_groups[i];
    return NULL;
}

bool ptx_n_is_legal(const struct ptx_term *range, unsigned n)
{
    if (n < (unsigned)range->lo || n > (unsigned)range->hi || n % (unsigned)range->step)
        return false;
    return !(range->flags & PTX_TERM_WGMMA_INT_N) || n <= 32 || n % 16 == 0;
}

bool ptx_constant_fits(const struct ptx_term *term, int64_t value)
{
    if (value < term->lo || value > term->hi || (value - term->lo) % term->step)
        return false;
    return !(term->flags & PTX_TERM_POW2) || !(value & (value - 1));
}

void ptx_needs_describe(const struct ptx_op *op, char out[PTX_NEEDS_SIZE])
{
    size_t used = 0;
    for (unsigned i = 0; i < op->need_count && used < PTX_NEEDS_SIZE; i++) {
        const struct ptx_need *n = &ptx_op_needs(op)[i];
        used += (size_t)snprintf(out + used, PTX_NEEDS_SIZE - used, "%ssm_%d%.1s with PTX %d.%d",
                                 i ? " or " : "", n->sm, &n->suffix, n->ptx / 10, n->ptx % 10);
    }
}
