/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/dispatch.h>
#include <ptxgen/emulator.h>
#include <ptxgen/marlin.h>

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static const ptxgen_marlin_spec spec = {
    .k = 4096, .n = 4096, .group_size = 128, .type = PTXGEN_F16};

static void *dispatch(void *dispatcher)
{
    ptxgen_loaded *loaded;
    ptxgen_dispatch(dispatcher, ptxgen_marlin_family(), &spec, &loaded, NULL);
    return NULL;
}

int main(void)
{
    ptxgen_driver driver;
    ptxgen_cu_context context;
    ptxgen_dispatcher *dispatcher;
    ptxgen_loaded *loaded;
    ptxgen_error err = {0};
    pthread_t thread;
    ptxgen_emulator_driver(&driver);
    if (ptxgen_driver_start(&driver, &err) || driver.ctx_create(&context, 0, 0) ||
        ptxgen_dispatcher_create(&driver, NULL, &dispatcher, &err) ||
        pthread_create(&thread, NULL, dispatch, dispatcher)) {
        puts(err.message);
        return 1;
    }
    usleep(2000);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    if (ptxgen_dispatch(dispatcher, ptxgen_marlin_family(), &spec, &loaded, &err))
        puts(err.message);
    return err.status != PTXGEN_OK;
}
