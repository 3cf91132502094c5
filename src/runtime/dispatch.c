/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a spec's kernel, compiling it once, and unloading. */
#include "src/runtime/context.h"
#include "src/runtime/dispatcher.h"
#include "src/runtime/uncancelled.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- a new spec ---- */

static void set_state(ptxgen_dispatcher *d, struct registry_node *node, enum node_state state)
{
    atomic_store(&node->state, state);
    pthread_cond_broadcast(&d->changed);
}

/* Called and left with the lock held; the node is BUSY meanwhile. */
static void fill_node(ptxgen_dispatcher *d, struct registry_node *node)
{
    ptxgen_error err = {0};
    set_state(d, node, NODE_BUSY);
    pthread_mutex_unlock(&d->lock);
    ptxgen_error *kept = node->error ? node->error : malloc(sizeof *kept);
    ptxgen_status status =
        kept ? compile(d, node->family, node->spec, &node->loaded, &err)
             : ptxgen_fail(&err, PTXGEN_ERROR_OUT_OF_MEMORY, "%s: no memory", node->family->name);
    pthread_mutex_lock(&d->lock);
    node->error = kept;
    if (status == PTXGEN_OK) {
        node->loaded->node = node;
        set_state(d, node, NODE_READY);
    } else if (kept) {
        *kept = err;
        set_state(d, node, NODE_FAILED);
    } else {
        set_state(d, node, NODE_EMPTY);
    }
}

static ptxgen_status repeat_error(const struct registry_node *node, ptxgen_error *err)
{
    if (err)
        *err = *node->error;
    return node->error->status;
}

/* With the lock held: waits, compiles or revives until there is a reference or an error. */
static ptxgen_status settle(ptxgen_dispatcher *d, struct registry_node *node, bool retry,
                            ptxgen_error *err)
{
    for (bool tried = false;;) {
        switch ((enum node_state)atomic_load(&node->state)) {
        case NODE_RETIRING: set_state(d, node, NODE_READY); break;
        case NODE_READY: node_acquire(node); return PTXGEN_OK;
        case NODE_BUSY:
            pthread_cond_wait(&d->changed, &d->lock);
            tried = true; /* by another thread, just now */
            break;
        case NODE_FAILED:
            if (tried || !retry)
                return repeat_error(node, err);
            fill_node(d, node);
            tried = true;
            break;
        case NODE_EMPTY:
            if (tried && !node->error)
                return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "%s: no memory to dispatch",
                                   node->family->name);
            fill_node(d, node);
            tried = true;
            break;
        }
    }
}

static ptxgen_status check_process(const ptxgen_dispatcher *d, ptxgen_error *err)
{
    if (d->process == getpid())
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_WRONG_DEVICE,
                       "the dispatcher was made before a fork, in process %ld: CUDA contexts do "
                       "not survive one, so make a driver table and dispatcher after it",
                       (long)d->process);
}

static ptxgen_status dispatch_slowly(ptxgen_dispatcher *d, const ptxgen_family *family,
                                     const void *spec, uint64_t hash, bool retry,
                                     ptxgen_loaded **loaded, ptxgen_error *err)
{
    ptxgen_status status = check_process(d, err);
    if (status != PTXGEN_OK)
        return status;
    UNCANCELLED;
    pthread_mutex_lock(&d->lock);
    struct registry_node *node = registry_find(&d->registry, hash, family, spec);
    if (!node)
        node = registry_insert(&d->registry, hash, family, spec);
    status = node ? settle(d, node, retry, err)
                  : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                                "%s: no memory to remember another spec", family->name);
    pthread_mutex_unlock(&d->lock);
    if (status == PTXGEN_OK)
        *loaded = node->loaded;
    return status;
}

static ptxgen_status dispatch(ptxgen_dispatcher *d, const ptxgen_family *family, const void *spec,
                              bool retry, ptxgen_loaded **loaded, ptxgen_error *err)
{
    if (!d || !family || !spec || !loaded)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_dispatch: dispatcher, family, spec or loaded is NULL");
    uint64_t hash = registry_hash(family, spec);
    struct registry_node *node = registry_find(&d->registry, hash, family, spec);
    if (node && node_acquire(node)) {
        *loaded = node->loaded;
        return PTXGEN_OK;
    }
    return dispatch_slowly(d, family, spec, hash, retry, loaded, err);
}

ptxgen_status ptxgen_dispatch(ptxgen_dispatcher *dispatcher, const ptxgen_family *family,
                              const void *spec, ptxgen_loaded **loaded, ptxgen_error *err)
{
    return dispatch(dispatcher, family, spec, false, loaded, err);
}

ptxgen_status ptxgen_dispatch_retry(ptxgen_dispatcher *dispatcher, const ptxgen_family *family,
                                    const void *spec, ptxgen_loaded **loaded, ptxgen_error *err)
{
    return dispatch(dispatcher, family, spec, true, loaded, err);
}

void ptxgen_release(ptxgen_loaded *loaded)
{
    if (!loaded)
        return;
    if (loaded->node)
        node_release(loaded->node);
    else
        loaded_free(loaded);
}

/* ---- unloading ---- */

static bool is_meant(const struct registry_node *node, const ptxgen_family *family,
                     const void *spec)
{
    return !family ||
           (node->family == family && (!spec || memcmp(node->spec, spec, family->spec_bytes) == 0));
}

static void retire(ptxgen_dispatcher *d, const ptxgen_family *family, const void *spec)
{
    for (struct registry_node *node = d->registry.newest; node; node = node->next) {
        if (!is_meant(node, family, spec))
            continue;
        if (atomic_load(&node->state) == NODE_READY)
            set_state(d, node, NODE_RETIRING);
        else if (atomic_load(&node->state) == NODE_FAILED)
            set_state(d, node, NODE_EMPTY);
    }
}

/* Nodes that nobody refers to any more, made BUSY, in an array that ends with NULL. */
static struct registry_node **take_unreferenced(ptxgen_dispatcher *d, size_t *referenced)
{
    struct registry_node **taken = calloc(d->registry.count + 1, sizeof(struct registry_node *));
    size_t count = 0;
    for (struct registry_node *node = d->registry.newest; taken && node; node = node->next) {
        if (atomic_load(&node->state) != NODE_RETIRING)
            continue;
        if (node_references(node) != 0) {
            ++*referenced;
            continue;
        }
        set_state(d, node, NODE_BUSY);
        taken[count++] = node;
    }
    return taken;
}

static ptxgen_status wait_for_context(const ptxgen_dispatcher *d, ptxgen_error *err)
{
    ptxgen_cu_context context;
    ptxgen_status status = context_enter(d->driver, d->context, &context, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_cu_result result = d->driver->ctx_synchronize();
    context_leave(d->driver);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(d->driver, result, err,
                                  "the context cannot be waited for before unloading");
    return PTXGEN_OK;
}

ptxgen_status ptxgen_dispatcher_unload(ptxgen_dispatcher *d, const ptxgen_family *family,
                                       const void *spec, size_t *still_referenced,
                                       ptxgen_error *err)
{
    if (!d || (spec && !family))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_dispatcher_unload: dispatcher is NULL, or a spec is given "
                           "without its family");
    ptxgen_status status = check_process(d, err);
    if (status != PTXGEN_OK)
        return status;
    UNCANCELLED;
    size_t referenced = 0;
    pthread_mutex_lock(&d->lock);
    retire(d, family, spec);
    struct registry_node **taken = take_unreferenced(d, &referenced);
    pthread_mutex_unlock(&d->lock);
    if (!taken)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to unload");
    if (taken[0])
        status = wait_for_context(d, err);
    for (size_t i = 0; status == PTXGEN_OK && taken[i]; i++) {
        loaded_free(taken[i]->loaded);
        taken[i]->loaded = NULL;
    }
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; taken[i]; i++)
        set_state(d, taken[i], taken[i]->loaded ? NODE_RETIRING : NODE_EMPTY);
    pthread_mutex_unlock(&d->lock);
    free(taken);
    if (still_referenced)
        *still_referenced = referenced;
    return status;
}
