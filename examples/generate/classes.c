/* SPDX-License-Identifier: Apache-2.0 */
#include "classes.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct range {
    uint32_t first, last;
};

#include "classes_table.h"

static const struct range spaces[] = {
    {0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};

static int by_place(const void *key, const void *element)
{
    const uint32_t character = *(const uint32_t *)key;
    const struct range *r = element;
    return character < r->first ? -1 : character > r->last;
}

static bool is_in(uint32_t character, const struct range *ranges, size_t count)
{
    return bsearch(&character, ranges, count, sizeof *ranges, by_place) != NULL;
}
#define IS_IN(character, ranges) is_in(character, ranges, sizeof(ranges) / sizeof *(ranges))

/* The character at the text's begin; UINT32_MAX, and one byte, for what is not UTF-8. */
static uint32_t decode(const char *text, size_t length, size_t *bytes)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)text;
    const size_t wanted = at[0] < 0x80   ? 1
                          : at[0] < 0xC0 ? 0
                          : at[0] < 0xE0 ? 2
                          : at[0] < 0xF0 ? 3
                          : at[0] < 0xF8 ? 4
                                         : 0;
    uint32_t character = wanted == 1 ? at[0] : at[0] & (0x7Fu >> wanted);
    *bytes = 1;
    if (!wanted || wanted > length)
        return UINT32_MAX;
    for (size_t i = 1; i < wanted; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return UINT32_MAX;
        character = character << 6 | (at[i] & 0x3F);
    }
    if (character < least[wanted] || character > 0x10FFFF || character >> 11 == 0x1B)
        return UINT32_MAX; /* longer than need be, beyond Unicode, or half of a pair of UTF-16 */
    *bytes = wanted;
    return character;
}

enum class class_of(const char *text, size_t length, size_t *bytes) {
        *bytes = 0; if (!length) return CLASS_END; uint32_t character = decode(text, length, bytes);
        if (character == '\r' || character == '\n') return CLASS_NEWLINE;
        if (IS_IN(character, spaces)) return CLASS_SPACE;
        if (IS_IN(character, letters)) return CLASS_LETTER;
        return IS_IN(character, numbers) ? CLASS_NUMBER : CLASS_OTHER;
}
