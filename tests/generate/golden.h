/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prompts with the tokens that follow them and the logits of these, computed in double precision: a
 * GGUF file with tensors NAME.prompt and NAME.greedy (I32), NAME.logits_f64 (F32 [steps, ids]) and,
 * unless logits are of the whole vocabulary, NAME.logit_ids (I32 [ids]).
 */
#ifndef PTXGEN_TESTS_GENERATE_GOLDEN_H
#define PTXGEN_TESTS_GENERATE_GOLDEN_H

#include "examples/generate/forward.h"

enum { MOST_PROMPTS = 4 };

struct prompt {
    char name[8];
    const int32_t *ids, *greedy, *logit_ids; /* logit_ids NULL: the whole vocabulary */
    const float *logits;
    uint32_t length, steps, logit_count;
    /* What came out. */
    double largest; /* difference of a logit */
    uint32_t step;  /* where that was */
    uint32_t equal; /* steps whose largest logit is that of the greedy token */
    uint32_t seen;  /* steps that were compared */
};

struct golden {
    ptxgen_files *files;
    struct prompt prompts[MOST_PROMPTS];
    uint32_t count;
};

ptxgen_status golden_open(const char *path, struct golden *golden, ptxgen_error *err);
void golden_close(struct golden *golden);

/* How far logits may be off where activations are of this type. */
double golden_limit(uint8_t type);

/*
 * Runs all prompts as one batch, giving the tokens of the file whatever the logits say, and
 * compares the logits of the first `steps` of each.
 */
ptxgen_status golden_run(struct golden *golden, const struct device *device,
                         const struct model *model, const struct forward_options *options,
                         uint32_t steps, ptxgen_error *err);
/* Whether all logits compared were near enough and every greedy token the same. */
bool golden_passed(const struct golden *golden, uint8_t type);

#endif
