/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plug-in's life: another thread opens the library, has a kernel from it and closes it again, and
 * ends after that. Twice, so that nothing of the first time may be left.
 *
 *     reopen LIBRARY
 */
#include <ptxgen/emulator.h>
#include <ptxgen/rmsnorm_q4k.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
}

/* What failed, or NULL. */
static const char *use(void *library)
{
    static ptxgen_driver driver;
    void (*fill)(ptxgen_driver *);
    ptxgen_status (*start)(ptxgen_driver *, ptxgen_error *);
    ptxgen_status (*create)(const ptxgen_driver *, const ptxgen_dispatch_options *,
                            ptxgen_dispatcher **, ptxgen_error *);
    ptxgen_status (*dispatch)(ptxgen_dispatcher *, const ptxgen_rmsnorm_q4k_spec *,
                              ptxgen_rmsnorm_q4k **, ptxgen_error *);
    void (*give_back)(ptxgen_rmsnorm_q4k *), (*destroy)(ptxgen_dispatcher *);
    find(library, "ptxgen_emulator_driver", &fill);
    find(library, "ptxgen_driver_start", &start);
    find(library, "ptxgen_dispatcher_create", &create);
    find(library, "ptxgen_rmsnorm_q4k_dispatch", &dispatch);
    find(library, "ptxgen_rmsnorm_q4k_destroy", &give_back);
    find(library, "ptxgen_dispatcher_destroy", &destroy);
    ptxgen_rmsnorm_q4k_spec spec = {.k = 256, .n = {16}, .epsilon = 1e-6f, .max_m = 1};
    ptxgen_cu_context context;
    ptxgen_dispatcher *dispatcher;
    ptxgen_rmsnorm_q4k *kernel;
    fill(&driver);
    if (start(&driver, NULL) || driver.ctx_create(&context, 0, 0))
        return "no context";
    if (create(&driver, NULL, &dispatcher, NULL) || dispatch(dispatcher, &spec, &kernel, NULL))
        return "no kernel";
    give_back(kernel);
    destroy(dispatcher);
    return driver.ctx_destroy(context) ? "no end of the context" : NULL;
}

static void *live(void *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return dlerror();
    const char *failure = use(library);
    if (!failure && dlclose(library))
        failure = "not closed";
    if (!failure && dlopen(path, RTLD_NOW | RTLD_NOLOAD))
        failure = "still there after closing";
    return (void *)failure;
}

int main(int argc, char **argv)
{
    for (int i = 0; argc == 2 && i < 2; i++) {
        pthread_t thread;
        void *failure;
        if (pthread_create(&thread, NULL, live, argv[1]) || pthread_join(thread, &failure))
            return 1;
        if (failure)
            return fprintf(stderr, "%s\n", (const char *)failure), 1;
    }
    return argc == 2 ? 0 : 1;
}
