/* SPDX-License-Identifier: Apache-2.0 */
#include "nearest.h"

#include "printable.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Levenshtein's distance, by one row of its table. */
static unsigned edits(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned row[NEAREST_LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 0; i < a_length; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i + 1;
        for (size_t j = 0; j < b_length; j++) {
            unsigned changed = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = least(changed, 1 + least(row[j], diagonal));
        }
    }
    return row[b_length];
}

static bool contains(const char *name, size_t length, const char *part, size_t part_length)
{
    for (size_t i = 0; i + part_length <= length; i++)
        if (!memcmp(name + i, part, part_length))
            return true;
    return false;
}

static bool is_there(const struct nearest *n, const char *name, size_t length)
{
    for (unsigned i = 0; i < n->count; i++)
        if (n->names[i].length == length && !memcmp(n->names[i].name, name, length))
            return true;
    return false;
}

void nearest_offer(struct nearest *n, const char *name, size_t length)
{
    size_t wanted = strlen(n->wanted);
    if (!wanted || !length || wanted > NEAREST_LONGEST || length > NEAREST_LONGEST ||
        is_there(n, name, length))
        return;
    size_t longer = wanted > length ? wanted : length;
    bool is_part = contains(name, length, n->wanted, wanted);
    if (!is_part && 2 * (wanted < length ? wanted : length) < longer)
        return;
    unsigned distance = edits(n->wanted, wanted, name, length);
    if (distance > longer / 2 && !is_part)
        return;
    unsigned place = n->count;
    while (place && n->names[place - 1].distance > distance)
        place--;
    if (place == NEAREST_NAMES)
        return;
    n->count += n->count < NEAREST_NAMES;
    memmove(&n->names[place + 1], &n->names[place], (n->count - 1 - place) * sizeof n->names[0]);
    n->names[place].name = name;
    n->names[place].length = length;
    n->names[place].distance = distance;
}

struct nearest_text nearest_text(const struct nearest *n)
{
    struct nearest_text out = {.text = ""};
    size_t size = sizeof out.text, used = 0;
    for (unsigned i = 0; i < n->count && used < size; i++)
        used += (size_t)snprintf(out.text + used, size - used, "%s%s",
                                 !i                 ? "; did you mean "
                                 : i + 1 < n->count ? ", "
                                                    : " or ",
                                 printable(n->names[i].name, n->names[i].length).text);
    if (n->count && used < size)
        snprintf(out.text + used, size - used, "?");
    return out;
}
