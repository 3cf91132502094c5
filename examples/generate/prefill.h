/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of the example's own: attention.h's formula for many tokens of one sequence at
 * neighbouring positions, a piece of a prompt, by tensor cores. The cache is of 16-bit elements;
 * queries and weights are rounded to its type before they are multiplied.
 */
#ifndef GENERATE_PREFILL_H
#define GENERATE_PREFILL_H

#include "attention.h"

const ptxgen_family *prefill_family(void);
/* Of the arguments positions[0] and slots[0] are read alone; splits, partials and tickets are not.
 */
ptxgen_status prefill_launch(const ptxgen_loaded *loaded, const struct attention_args *args,
                             ptxgen_cu_stream stream, ptxgen_error *err);

#endif
