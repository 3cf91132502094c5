/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind ptxgen_dispatcher. */
#ifndef PTXGEN_RUNTIME_DISPATCHER_H
#define PTXGEN_RUNTIME_DISPATCHER_H

#include "src/runtime/manifest.h"
#include "src/runtime/registry.h"

#include <pthread.h>
#include <sys/types.h>

struct ptxgen_dispatcher {
    struct registry registry; /* read without the lock, changed under it */
    pthread_mutex_t lock;     /* never held while compiling, loading or waiting for the device */
    pthread_cond_t changed;   /* a node is no longer BUSY */

    /* Constant from creation on. */
    const ptxgen_driver *driver;
    ptxgen_cu_context context;
    ptxgen_cu_device device;
    ptxgen_target target;
    int max_registers;
    bool line_info;
    struct assembler assembler;
    const ptxgen_cache *cache;               /* NULL: no disk */
    char no_cache[PTXGEN_MESSAGE_SIZE + 32]; /* why not */
    ptxgen_cache *own_cache;                 /* to be closed */
    const ptxgen_tuning *tuning;             /* NULL: none */
    ptxgen_tuning *own_tuning;               /* to be freed */
    ptxgen_pack **packs;                     /* a copy of the list */
    size_t pack_count;
    char *dump_folder, *override_folder; /* NULL: none */
    void (*log)(void *user, const char *message);
    void *log_user;
    pid_t process;
};

/* Plans, emits, assembles and loads, whatever the registry says. */
ptxgen_status compile(const ptxgen_dispatcher *dispatcher, const ptxgen_family *family,
                      const void *spec, ptxgen_loaded **loaded, ptxgen_error *err);

void dispatcher_log(const ptxgen_dispatcher *dispatcher, const char *format, ...)
    PTXGEN_PRINTF(2, 3);

#endif
