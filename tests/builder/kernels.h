/* SPDX-License-Identifier: Apache-2.0 */
/* Small kernels that several tests build: each exercises one side of the text. */
#ifndef BUILDER_KERNELS_H
#define BUILDER_KERNELS_H

#include <ptxgen/instr.h>

/* A whole module; NULL only when out of memory. The caller destroys it. */
typedef ptx_module *(*module_function)(const ptx_allocator *allocator);

struct sample {
    const char *name; /* of the golden files and of the first kernel */
    const char *arch; /* ptxas's */
    module_function build;
};

enum { SAMPLES = 4 };
extern const struct sample samples[SAMPLES];

#endif
