/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte-pair coding (P. Gage, "A new algorithm for data compression", 1994): the pair of neighbours
 * that is most frequent becomes one of the byte values that the strings do not use, again and
 * again. The names and texts of two thousand instructions come down to a third.
 */
#include "strings.h"

#include "instruction.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 256, MOST = 8192, MOST_CHARACTERS = 160 /* PTX_STRING_SIZE */ };

static char *strings[MOST];
static size_t count;

/* All strings, each with its NUL, and what stands for what in them. */
static unsigned char *text;
static size_t length, places[MOST];
static unsigned char pairs[BYTES][2];

size_t place_string(const char *string)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(strings[i], string) == 0)
            return i;
    if (count == MOST || strlen(string) >= MOST_CHARACTERS)
        stop("a string too many or too long: '%s'", string);
    strings[count] = malloc(strlen(string) + 1);
    if (!strings[count])
        stop("no memory");
    strcpy(strings[count], string);
    return count++;
}

size_t packed_place(size_t number)
{
    return places[number];
}

/* How often the most frequent pair occurs, which it hands over. */
static size_t find_pair(unsigned char pair[2])
{
    static size_t seen[BYTES][BYTES];
    size_t most = 0;
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i + 1 < length; i++)
        if (text[i] && text[i + 1] && ++seen[text[i]][text[i + 1]] > most) {
            most = seen[text[i]][text[i + 1]];
            memcpy(pair, text + i, 2);
        }
    return most;
}

static void replace_pair(const unsigned char pair[2], unsigned char by)
{
    size_t to = 0;
    for (size_t i = 0; i < length; to++) {
        bool here = i + 1 < length && text[i] == pair[0] && text[i + 1] == pair[1];
        text[to] = here ? by : text[i];
        i += here ? 2 : 1;
    }
    length = to;
    memcpy(pairs[by], pair, 2);
}

static void join_strings(bool used[BYTES])
{
    for (size_t i = 0; i < count; i++)
        length += strlen(strings[i]) + 1;
    text = malloc(length);
    if (!text)
        stop("no memory");
    unsigned char *to = text;
    for (size_t i = 0; i < count; i++)
        for (const char *c = strings[i];; c++) {
            used[(unsigned char)*c] = true;
            *to++ = (unsigned char)*c;
            if (!*c)
                break;
        }
}

void pack_strings(void)
{
    bool used[BYTES] = {false};
    unsigned char pair[2];
    join_strings(used);
    for (int byte = 1; byte < BYTES; byte++)
        if (!used[byte] && find_pair(pair) > 2)
            replace_pair(pair, (unsigned char)byte);
    for (size_t i = 0, at = 0; i < count; i++) {
        places[i] = at;
        at += strlen((const char *)text + at) + 1;
    }
    if (length > UINT16_MAX)
        stop("%zu bytes of strings are more than 16 bits can point into", length);
}

static void print_bytes(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        printf("%d,%s", bytes[i], i % 24 == 23 ? "\n    " : " ");
}

void print_strings(void)
{
    printf("const unsigned char ptx_strings[] = {\n    ");
    print_bytes(text, length);
    printf("};\nconst unsigned char ptx_pairs[256][2] = {\n    ");
    for (int byte = 0; byte < BYTES; byte++)
        printf("{%d, %d},%s", pairs[byte][0], pairs[byte][1], byte % 8 == 7 ? "\n    " : " ");
    printf("};\n");
}
