/* SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"

#include <math.h>
#include <stdlib.h>

/* In [0, 1): splitmix64 (Steele, Lea, Flood 2014). */
static double uniform(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static int by_falling_weight(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return a->weight != b->weight ? (a->weight < b->weight) - (a->weight > b->weight)
                                  : (a->id > b->id) - (a->id < b->id);
}

int32_t sample(struct sampler *s, const float *logits, uint32_t vocabulary)
{
    enum {
        CANNOT_MATTER = 20
    }; /* e⁻²⁰ of the likeliest, times any vocabulary, is next to nothing */
    struct candidate *c = s->candidates;
    float largest = logits[0];
    uint32_t count = 0, kept = 0;
    double total = 0, sum = 0;
    for (uint32_t i = 1; i < vocabulary; i++)
        largest = logits[i] > largest ? logits[i] : largest;
    for (uint32_t i = 0; i < vocabulary; i++) {
        float below = (logits[i] - largest) / s->temperature;
        if (!(below > -CANNOT_MATTER))
            continue;
        c[count] = (struct candidate){expf(below), (int32_t)i};
        total += (double)c[count++].weight;
    }
    if (count == 0) /* logits that are no numbers */
        return 0;
    qsort(c, count, sizeof *c, by_falling_weight);
    while (kept < count && (kept == 0 || sum < (double)s->top_p * total))
        sum += (double)c[kept++].weight;
    double left = uniform(&s->state) * sum;
    uint32_t i = 0;
    while (i + 1 < kept && left >= (double)c[i].weight)
        left -= (double)c[i++].weight;
    return c[i].id;
}
