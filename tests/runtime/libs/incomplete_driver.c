/* SPDX-License-Identifier: Apache-2.0 */
/* A library that calls itself a driver for DRIVER_VERSION and has hardly any calls. */
#include <ptxgen/driver_types.h>

ptxgen_cu_result cuGetErrorName(ptxgen_cu_result error, const char **text);
ptxgen_cu_result cuGetErrorString(ptxgen_cu_result error, const char **text);
ptxgen_cu_result cuInit(unsigned int flags);
ptxgen_cu_result cuDriverGetVersion(int *version);

ptxgen_cu_result cuGetErrorName(ptxgen_cu_result error, const char **text)
{
    (void)error;
    *text = "CUDA_ERROR";
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result cuGetErrorString(ptxgen_cu_result error, const char **text)
{
    return cuGetErrorName(error, text);
}

ptxgen_cu_result cuInit(unsigned int flags)
{
    (void)flags;
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result cuDriverGetVersion(int *version)
{
    *version = DRIVER_VERSION;
    return PTXGEN_CUDA_SUCCESS;
}
