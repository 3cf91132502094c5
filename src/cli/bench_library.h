/* SPDX-License-Identifier: Apache-2.0 */
/** A peer's library, opened at run time. */
#ifndef PTXGEN_CLI_BENCH_LIBRARY_H
#define PTXGEN_CLI_BENCH_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

struct bench_library {
    void *handle; /**< NULL: closed */
    const char *name;
};

/** Opens `path`, or by the first of `names` (up to a NULL) that there is when it is NULL. */
bool bench_library_open(struct bench_library *library, const char *path, const char *const *names,
                        char *why, size_t size);
/** A function of the library, and the function pointer that is to be its address. */
struct bench_symbol {
    const char *name;
    void *function;
};
/** Finds all of them, or says which there is not. */
bool bench_library_find(const struct bench_library *library, const struct bench_symbol *symbols,
                        size_t count, char *why, size_t size);
void bench_library_close(struct bench_library *library);

#endif
