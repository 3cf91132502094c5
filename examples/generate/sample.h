/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing a token from logits on the host: at random among the likeliest (top-p, nucleus). */
#ifndef GENERATE_SAMPLE_H
#define GENERATE_SAMPLE_H

#include <stdint.h>

struct sampler {
    float temperature; /* above 0: divides the logits */
    float top_p;       /* the likeliest tokens that together have this probability are drawn from */
    uint64_t state;    /* of the random numbers: any seed */
    struct candidate *candidates; /* [vocabulary]: room that the caller gives */
};

struct candidate {
    float weight;
    int32_t id;
};

int32_t sample(struct sampler *sampler, const float *logits, uint32_t vocabulary);

#endif
