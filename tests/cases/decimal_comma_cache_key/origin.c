/* SPDX-License-Identifier: Apache-2.0 */
/* Prints where the code of a kernel comes from; with an argument under a decimal comma. */
#include "../../comma_locale.h"

#include <ptxgen/dispatch.h>
#include <ptxgen/emulator.h>
#include <ptxgen/rmsnorm_q4k.h>

int main(int argc, char **argv)
{
    char folder[COMMA_LOCALE_FOLDER];
    ptxgen_driver driver;
    ptxgen_error err = {0};
    ptxgen_cu_context context;
    ptxgen_dispatcher *dispatcher;
    ptxgen_loaded *loaded;
    ptxgen_rmsnorm_q4k_spec spec = {.k = 512, .n = {64}, .epsilon = 1.5e-5f};
    (void)argv;
    if (argc > 1 && !(comma_locale_make(folder) && comma_locale_enter()))
        return puts("no locale with a decimal comma"), 1;
    ptxgen_emulator_driver(&driver);
    if (ptxgen_driver_start(&driver, &err) || driver.ctx_create(&context, 0, 0) ||
        ptxgen_dispatcher_create(&driver, NULL, &dispatcher, &err) ||
        ptxgen_dispatch(dispatcher, ptxgen_rmsnorm_q4k_family(), &spec, &loaded, &err))
        return puts(err.message), 1;
    printf("origin %d\n", (int)ptxgen_loaded_report(loaded)->origin);
    ptxgen_release(loaded);
    ptxgen_dispatcher_destroy(dispatcher);
    return argc > 1 && !comma_locale_remove(folder);
}
