/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a dispatcher's kernels: a node for each (family, spec), which is made once and kept
 * until the table is freed, so that readers need no lock.
 *
 * A node's references are counted in stripes, one cache line each, so that threads on different
 * processors do not share one; only the sum means something. A reader adds one to its stripe and
 * then looks at the state: only READY makes it a reference, else it is taken back. All states but
 * that are changed under the dispatcher's lock. Who sets RETIRING and then finds the sum 0 knows
 * that nobody holds a reference: references of before are in the sum, later ones see the state.
 * (A sum read while counts change is never too low: a reference is added before it is taken away,
 * and what a reader takes back it takes from the stripe that it added to.)
 */
#ifndef PTXGEN_RUNTIME_REGISTRY_H
#define PTXGEN_RUNTIME_REGISTRY_H

#include "src/runtime/loaded.h"

#include <stdatomic.h>
#include <stdint.h>

enum node_state {
    NODE_EMPTY,    /* nothing is loaded or known to fail */
    NODE_BUSY,     /* being compiled or unloaded by one thread; others wait */
    NODE_READY,    /* `loaded` may be used by all threads */
    NODE_RETIRING, /* to be unloaded once its references are gone; dispatch makes it READY again */
    NODE_FAILED    /* `error` says why */
};

enum { REGISTRY_STRIPES = 16, CACHE_LINE = 64 };

struct registry_stripe {
    _Alignas(CACHE_LINE) atomic_long references;
};

struct registry_node {
    struct registry_stripe stripes[REGISTRY_STRIPES];
    uint64_t hash;
    const ptxgen_family *family;
    atomic_int state;
    ptxgen_loaded *loaded;
    ptxgen_error *error;
    struct registry_node *next; /* of all, newest first */
    unsigned char spec[];
};

struct registry_slots;

struct registry {
    _Atomic(struct registry_slots *) slots;
    struct registry_node *newest;
    size_t count;
};

uint64_t registry_hash(const ptxgen_family *family, const void *spec);

/* False when there is no memory. */
bool registry_init(struct registry *registry);
/* Frees nodes and their errors; what they loaded is gone by then. */
void registry_free(struct registry *registry);

/* Without a lock; NULL when there is none. */
struct registry_node *registry_find(const struct registry *registry, uint64_t hash,
                                    const ptxgen_family *family, const void *spec);
/* Under the lock, for what registry_find did not find; NULL when there is no memory. */
struct registry_node *registry_insert(struct registry *registry, uint64_t hash,
                                      const ptxgen_family *family, const void *spec);

/* True, with one reference more, when the node is READY. */
bool node_acquire(struct registry_node *node);
void node_release(struct registry_node *node);
/* The sum; see above for when it means something. */
long node_references(const struct registry_node *node);

#endif
