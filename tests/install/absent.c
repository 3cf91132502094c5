/* SPDX-License-Identifier: Apache-2.0 */
/* A program that would use the emulator, with a library that was built without it. */
#include <ptxgen/emulator.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    ptxgen_driver driver;
    ptxgen_error err = {0};
    ptxgen_emulator_driver(&driver);
    ptxgen_status status = ptxgen_driver_start(&driver, &err);
    printf("%s\n", err.message);
    return status == PTXGEN_ERROR_DRIVER &&
                   strstr(err.message, "this libptxgen was built without its emulator")
               ? 0
               : 1;
}
