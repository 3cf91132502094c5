/* SPDX-License-Identifier: Apache-2.0 */
/** The names that a wrong one may have been meant for: "did you mean …". */
#ifndef PTXGEN_FILES_NEAREST_H
#define PTXGEN_FILES_NEAREST_H

#include <stddef.h>

enum { NEAREST_NAMES = 3, NEAREST_LONGEST = 255 };

/**
 * Of the names that are offered, those that need the fewest bytes changed, added or left out to
 * become the wanted one. One that needs more than half of its bytes changed is not near, unless it
 * contains the wanted one.
 */
struct nearest {
    const char *wanted;
    struct {
        const char *name;
        size_t length;
        unsigned distance;
    } names[NEAREST_NAMES]; /**< the nearest first */
    unsigned count;
};

/** The name is borrowed and need not end with a NUL; longer ones than NEAREST_LONGEST are not near.
 */
void nearest_offer(struct nearest *nearest, const char *name, size_t length);

/** `; did you mean "a", "b" or "c"?`, or "" when there are none. */
struct nearest_text {
    char text[512];
};
struct nearest_text nearest_text(const struct nearest *nearest);

#endif
