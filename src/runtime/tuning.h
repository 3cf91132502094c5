/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of tuned choices, as text:
 *
 *     ptxgen-tuning: 1
 *
 *     family: marlin, plan version 3
 *     …                                             what was tuned and where
 *     m 1-16: tile_m=16 warp_n=64 wn=2 …
 *     m 17-4096: …
 *
 *     checksum: …
 *
 * Between the first line and the last are entries, the oldest first, each after an empty line; one
 * stands before the last line too.
 */
#ifndef PTXGEN_RUNTIME_TUNING_H
#define PTXGEN_RUNTIME_TUNING_H

#include "src/runtime/manifest.h"

#include <ptxgen/tune.h>

#define TUNING_SCHEMA "ptxgen-tuning: 1\n"
#define TUNING_CHECKSUM "checksum: "
#define TUNING_NAME "tuning"

enum { TUNING_MOST_BYTES = 64 << 10, TUNING_ENTRY_BYTES = 8 << 10, TUNING_DEVICE_BYTES = 320 };

/* Adds the line of a range that begins at `from`. */
void tuning_add_range(struct text *to, const char *const *names, uint32_t from,
                      const ptxgen_tuned_range *range);

#endif
