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

#include <ptxgen/tune.h>

#define TUNING_SCHEMA "ptxgen-tuning: 1\n"
#define TUNING_CHECKSUM "checksum: "
#define TUNING_NAME "tuning"

enum { TUNING_MOST_BYTES = 64 << 10, TUNING_ENTRY_BYTES = 8 << 10, TUNING_DEVICE_BYTES = 320 };

/* "device: …", a line. */
void tuning_device(const ptxgen_device_facts *device, char line[TUNING_DEVICE_BYTES]);
/*
 * The lines of an entry before its ranges, with the empty one in front. Their length, 0 when they
 * do not fit.
 */
size_t tuning_head(const ptxgen_family *family, const void *spec, const ptxgen_target *target,
                   const char *device, char text[TUNING_ENTRY_BYTES]);
/* Appends the line of a range that begins at `from`; the new length, 0 when it does not fit. */
size_t tuning_append_range(char text[TUNING_ENTRY_BYTES], size_t used, const char *const *names,
                           uint32_t from, const ptxgen_tuned_range *range);

/*
 * The entries of a file, NUL-terminated within `text`, which is changed; "" when it is damaged,
 * with the reason in *why, else NULL.
 */
const char *tuning_entries(char *text, size_t length, const char **why);

#endif
