/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getcpu */
#include "src/runtime/registry.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table: open addressing, at most half full ---- */

struct registry_slots {
    struct registry_slots *outgrown; /* readers may still be in it: freed with the registry */
    size_t mask;
    _Atomic(struct registry_node *) nodes[];
};

enum { FIRST_SLOTS = 64 };

static struct registry_slots *slots_new(size_t count)
{
    struct registry_slots *slots =
        calloc(1, sizeof *slots + count * sizeof(_Atomic(struct registry_node *)));
    if (slots)
        slots->mask = count - 1;
    return slots;
}

static void slots_put(struct registry_slots *slots, struct registry_node *node)
{
    size_t i = node->hash & slots->mask;
    while (atomic_load_explicit(&slots->nodes[i], memory_order_relaxed))
        i = (i + 1) & slots->mask;
    atomic_store_explicit(&slots->nodes[i], node, memory_order_release);
}

static bool grow(struct registry *registry, struct registry_slots *slots)
{
    struct registry_slots *larger = slots_new(2 * (slots->mask + 1));
    if (!larger)
        return false;
    for (struct registry_node *node = registry->newest; node; node = node->next)
        slots_put(larger, node);
    larger->outgrown = slots;
    atomic_store_explicit(&registry->slots, larger, memory_order_release);
    return true;
}

bool registry_init(struct registry *registry)
{
    struct registry_slots *slots = slots_new(FIRST_SLOTS);
    registry->newest = NULL;
    registry->count = 0;
    atomic_init(&registry->slots, slots);
    return slots != NULL;
}

void registry_free(struct registry *registry)
{
    struct registry_slots *slots = atomic_load(&registry->slots);
    while (slots) {
        struct registry_slots *outgrown = slots->outgrown;
        free(slots);
        slots = outgrown;
    }
    while (registry->newest) {
        struct registry_node *node = registry->newest;
        registry->newest = node->next;
        free(node->error);
        free(node);
    }
}

/* ---- keys ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

uint64_t registry_hash(const ptxgen_family *family, const void *spec)
{
    const unsigned char *bytes = spec;
    size_t size = family->spec_bytes;
    uint64_t hash = mix(size, (uintptr_t)family), word;
    for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = mix(hash, word);
    }
    word = 0;
    memcpy(&word, bytes, size);
    return mix(hash, word);
}

struct registry_node *registry_find(const struct registry *registry, uint64_t hash,
                                    const ptxgen_family *family, const void *spec)
{
    const struct registry_slots *slots =
        atomic_load_explicit(&registry->slots, memory_order_acquire);
    for (size_t i = hash & slots->mask;; i = (i + 1) & slots->mask) {
        struct registry_node *node = atomic_load_explicit(&slots->nodes[i], memory_order_acquire);
        if (!node)
            return NULL;
        if (node->hash == hash && node->family == family &&
            memcmp(node->spec, spec, family->spec_bytes) == 0)
            return node;
    }
}

struct registry_node *registry_insert(struct registry *registry, uint64_t hash,
                                      const ptxgen_family *family, const void *spec)
{
    struct registry_slots *slots = atomic_load_explicit(&registry->slots, memory_order_relaxed);
    if (2 * (registry->count + 1) > slots->mask + 1 && !grow(registry, slots))
        return NULL;
    size_t bytes = sizeof(struct registry_node) + family->spec_bytes;
    struct registry_node *node;
    node = aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    if (!node)
        return NULL;
    memset(node, 0, sizeof *node);
    node->hash = hash;
    node->family = family;
    memcpy(node->spec, spec, family->spec_bytes);
    node->next = registry->newest;
    registry->newest = node;
    registry->count++;
    slots_put(atomic_load_explicit(&registry->slots, memory_order_relaxed), node);
    return node;
}

/* ---- references ---- */

static atomic_long *own_stripe(struct registry_node *node)
{
    int processor = sched_getcpu();
    return &node->stripes[(unsigned)processor % REGISTRY_STRIPES].references;
}

bool node_acquire(struct registry_node *node)
{
    atomic_long *references = own_stripe(node);
    atomic_fetch_add(references, 1);
    if (atomic_load(&node->state) == NODE_READY)
        return true;
    atomic_fetch_sub(references, 1);
    return false;
}

void node_release(struct registry_node *node)
{
    atomic_fetch_sub(own_stripe(node), 1);
}

long node_references(const struct registry_node *node)
{
    long sum = 0;
    for (int i = 0; i < REGISTRY_STRIPES; i++)
        sum += atomic_load(&node->stripes[i].references);
    return sum;
}
