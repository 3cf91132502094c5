/* SPDX-License-Identifier: Apache-2.0 */
/** "1 layer", "2 layers". */
#ifndef PTXGEN_CLI_PLURAL_H
#define PTXGEN_CLI_PLURAL_H

#include <stdint.h>

/** What follows a noun that is counted so: "" for 1, else "s". */
static inline const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/** What follows "entr" or "tw": "y" for 1, else "ies". */
static inline const char *plural_y(uint64_t count)
{
    return count == 1 ? "y" : "ies";
}

#endif
