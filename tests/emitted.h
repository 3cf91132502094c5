/* SPDX-License-Identifier: Apache-2.0 */
/* What a family emitted: its text, what its kernels declare, and what ptxas makes of it. */
#ifndef PTXGEN_TESTS_EMITTED_H
#define PTXGEN_TESTS_EMITTED_H

#include <ptxgen/ptx.h>

/* The module's text, which the caller frees, after its emission ended so. Destroys the module. */
char *text_of_module(ptx_module *module, ptxgen_status emitted, const ptxgen_error *err);

struct declared {
    const char *name;
    uint32_t threads, shared_bytes, dynamic_shared_bytes;
};
/* A kernel has the name, the threads and the shared memory that its plan says. */
void assert_declares(const ptx_module *module, uint32_t index, struct declared wanted);

/* What ptxas -v reports of an entry. */
struct assembled_entry {
    char name[64];
    unsigned registers, static_shared_bytes, stack_bytes, spilled_bytes;
};
struct assembled {
    size_t count;
    unsigned serialised; /* entries whose wgmmas ptxas puts one after another */
    struct assembled_entry entries[16];
};

/* Skips the test, and says so, where there is no ptxas. */
void skip_without_ptxas(void);
/* Its path; empty where there is none. */
const char *ptxas_path(void);
/*
 * Fails where ptxas refuses the text, where an entry spills a register or has a stack frame, and
 * where ptxas says that it makes each wgmma wait for the one before.
 */
struct assembled assert_assembles_without_spills(const char *text, const char *target_name);

#endif
