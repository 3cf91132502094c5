/* SPDX-License-Identifier: Apache-2.0 */
/* PTXGEN_DUMP and PTXGEN_OVERRIDE: files for people, named by family, spec and target. */
#ifndef PTXGEN_RUNTIME_DUMP_H
#define PTXGEN_RUNTIME_DUMP_H

#include "src/runtime/dispatcher.h"

enum { DUMP_LOG_SIZE = 65536 };

/* Writes what is not NULL; trouble goes to the dispatcher's log. */
void dump_kernel(const ptxgen_dispatcher *dispatcher, const ptxgen_family *family, const void *spec,
                 const char *text, const ptxgen_cubin *cubin, const char *log);

/* The text that overrides the emitted one, from malloc, after a line in the log; or NULL. */
char *override_text(const ptxgen_dispatcher *dispatcher, const ptxgen_family *family,
                    const void *spec);

#endif
