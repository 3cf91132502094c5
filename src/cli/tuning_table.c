/* SPDX-License-Identifier: Apache-2.0 */
#include "tuning_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool caches_are_off(void)
{
    const char *value = getenv("PTXGEN_CACHE");
    return value && (!strcmp(value, "off") || !strcmp(value, "0"));
}

ptxgen_tuning *tuning_for(const struct family *family, struct family_options *family_options,
                          const struct device *device)
{
    ptxgen_tuning *tuning = NULL;
    ptxgen_cache *cache = NULL;
    if (!family->harness->family()->tiling || caches_are_off() ||
        ptxgen_cache_open(NULL, &cache, NULL) != PTXGEN_OK)
        return NULL;
    if (ptxgen_tuning_load(cache, &device->facts, &tuning, NULL) == PTXGEN_OK &&
        ptxgen_tuning_complaint(tuning))
        fprintf(stderr, "ptxgen: %s/tuning is not used: %s\n", ptxgen_cache_folder(cache),
                ptxgen_tuning_complaint(tuning));
    ptxgen_cache_close(cache);
    family_options->tuning = tuning;
    return tuning;
}
