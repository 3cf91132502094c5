/* SPDX-License-Identifier: Apache-2.0 */
/* An array among a launch's arguments, and what is checked of it before anything runs. */
#ifndef PTXGEN_RUNTIME_ARRAY_H
#define PTXGEN_RUNTIME_ARRAY_H

#include <ptxgen/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct launch_array {
    const char *name;
    bool used;
    uint64_t address;
    unsigned align;
    uint64_t *stride; /* NULL for one that has no rows; 0 is made `columns` */
    uint64_t columns;
};

/* Refuses the first used array, with the family's name, that is null, misaligned or whose rows
 * overlap. */
ptxgen_status launch_check_arrays(const char *family, const struct launch_array *arrays,
                                  size_t count, ptxgen_error *err);

/*
 * Refuses a workspace that is null, misaligned or of fewer than the bytes that a launch of `count`
 * rows needs, if any are; `rows` is the family's letter for them.
 */
ptxgen_status launch_check_workspace(const char *family, uint64_t address, uint64_t bytes,
                                     uint64_t needed, const char *rows, uint64_t count,
                                     ptxgen_error *err);

#endif
