/* SPDX-License-Identifier: Apache-2.0 */
/* Destroys a context that is current in a second thread, which then allocates. */
#include <ptxgen/emulator.h>

#include <pthread.h>
#include <stdio.h>

static ptxgen_driver driver;
static ptxgen_cu_context context;
static pthread_barrier_t barrier;

static void *allocate(void *unused)
{
    ptxgen_cu_deviceptr memory = 0;
    driver.ctx_set_current(context);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    printf("%d\n", (int)driver.mem_alloc(&memory, 64));
    return unused;
}

int main(void)
{
    ptxgen_error err = {0};
    pthread_t thread;
    ptxgen_emulator_driver(&driver);
    if (ptxgen_driver_start(&driver, &err) || driver.ctx_create(&context, 0, 0))
        return puts(err.message), 1;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, allocate, NULL);
    pthread_barrier_wait(&barrier);
    driver.ctx_destroy(context);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    return 0;
}
