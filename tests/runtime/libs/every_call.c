/* SPDX-License-Identifier: Apache-2.0 */
/* Every listed driver call under its exported symbol, weak, so that a library may replace some. */
#include <ptxgen/driver_types.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    ptxgen_cu_result every_##member parameters __asm__(symbol);                                    \
    __attribute__((weak, visibility("default"))) ptxgen_cu_result every_##member parameters        \
    {                                                                                              \
        return PTXGEN_CUDA_ERROR_NOT_SUPPORTED;                                                    \
    }
#include <ptxgen/driver_calls.def>
