/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ptxgen cache warm: compiles the kernels that a file lists, a line each, in the words of
 * `ptxgen emit`: "rmsnorm_q4k --k 4096 --n 14336". Empty lines and what follows a '#' are skipped.
 */
#ifndef PTXGEN_CLI_CACHE_WARM_H
#define PTXGEN_CLI_CACHE_WARM_H

#include <ptxgen/cache.h>

/** Returns an exit_code; a line that is no kernel ends the program with a usage error. */
int cache_warm(const ptxgen_cache *cache, const char *path, const char *device, unsigned threads);

#endif
