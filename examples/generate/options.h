/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of generate. */
#ifndef GENERATE_OPTIONS_H
#define GENERATE_OPTIONS_H

#include "forward.h"

enum { MOST_PROMPTS = 8 };

struct prompt {
    const char *text; /* or NULL: ids were given */
    int32_t *ids;
    uint32_t count;
};

struct options {
    const char *model, *device, *logits;
    struct prompt prompts[MOST_PROMPTS];
    uint32_t prompt_count;
    uint32_t count, batch;
    uint8_t type, cache_type, stream_type; /* ptxgen_element */
    float temperature, top_p; /* temperature 0: the largest logit */
    uint64_t seed;
    bool time, has_text;
};

/* Options that were read, or not, are to be freed. */
ptxgen_status options_read(int argc, char **argv, struct options *options, ptxgen_error *err);
void options_free(struct options *options);

#endif
