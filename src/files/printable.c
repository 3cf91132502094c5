/* SPDX-License-Identifier: Apache-2.0 */
#include "printable.h"

#include <stdio.h>
#include <string.h>

/* The bytes of the well-formed UTF-8 sequence at s, or 0 (Unicode 15, table 3-7). */
static size_t utf8_sequence(const unsigned char *s, size_t left)
{
    static const struct {
        unsigned char first_low, first_high, second_low, second_high, length;
    } forms[] = {
        {0x00, 0x7F, 0x00, 0x00, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (s[0] < forms[i].first_low || s[0] > forms[i].first_high)
            continue;
        size_t length = forms[i].length;
        if (length > left)
            return 0;
        if (length > 1 && (s[1] < forms[i].second_low || s[1] > forms[i].second_high))
            return 0;
        for (size_t j = 2; j < length; j++)
            if ((s[j] & 0xC0) != 0x80)
                return 0;
        return length;
    }
    return 0;
}

bool utf8_is_valid(const char *bytes, size_t length)
{
    const unsigned char *s = (const unsigned char *)bytes;
    for (size_t at = 0; at < length;) {
        size_t step = utf8_sequence(s + at, length - at);
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

struct printable printable(const char *bytes, size_t length)
{
    static const char cut[] = "...";
    struct printable out;
    const unsigned char *s = (const unsigned char *)bytes;
    size_t room = sizeof out.text - sizeof cut - 1; /* for the cut mark, the quote and the NUL */
    size_t used = 0, at = 0;

    out.text[used++] = '"';
    while (at < length) {
        size_t step = utf8_sequence(s + at, length - at);
        bool plain = step > 1 ||
                     (step == 1 && s[at] >= 0x20 && s[at] != 0x7F && s[at] != '"' && s[at] != '\\');
        size_t need = plain ? step : 4;
        if (used + need > room)
            break;
        if (plain)
            memcpy(out.text + used, s + at, step);
        else
            snprintf(out.text + used, 5, "\\x%02X", s[at]);
        used += need;
        at += plain ? step : 1;
    }
    snprintf(out.text + used, sizeof out.text - used, "%s\"", at < length ? cut : "");
    return out;
}
