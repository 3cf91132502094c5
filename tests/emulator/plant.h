/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planted faults: kernels that are wrong in one way each. All begin alike (see plant.c): %rd1 (pa)
 * points to 4096 written bytes, %rd2 (pb) to 4096 that were never written.
 */
#ifndef EMULATOR_PLANT_H
#define EMULATOR_PLANT_H

#include "bench.h"

struct planted {
    const char *name;
    ptxgen_emulator_check check;
    uint32_t threads, cluster; /* 0: 64 threads, no cluster */
    const char *faulty, *clean;
};

/* The kernel with this body, to be freed. */
char *plant_text(const char *body);

/* The line that ends in "// here"; 0: none. */
uint32_t plant_line(const char *text);

/* The fault that the kernel k of the text ends with, on an sm_90, its warps shuffled by the seed.
 */
ptxgen_emulator_fault plant_run(const struct planted *planted, const char *text, uint64_t seed);

#endif
