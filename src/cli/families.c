/* SPDX-License-Identifier: Apache-2.0 */
#include "family.h"

#include <string.h>

extern const struct family dense_family, gguf_linear_family, gguf_rows_family, marlin_family,
    quantise_family, rmsnorm_q4k_family, sparse24_family, w8a8_family;

static const struct family *const families[] = {
    &dense_family,    &gguf_linear_family, &gguf_rows_family, &marlin_family,
    &quantise_family, &rmsnorm_q4k_family, &sparse24_family,  &w8a8_family,
};

const struct family *family_at(size_t index)
{
    return index < sizeof families / sizeof *families ? families[index] : NULL;
}

const struct family *family_find(const char *name)
{
    const struct family *family;
    for (size_t i = 0; (family = family_at(i)); i++)
        if (!strcmp(family->name, name))
            return family;
    return NULL;
}
