/* SPDX-License-Identifier: Apache-2.0 */
/* With every_call.c: a library that looks like a driver for CUDA 12.4 with one device. */
#include <ptxgen/driver_types.h>

ptxgen_cu_result cuInit(unsigned int flags);
ptxgen_cu_result cuDriverGetVersion(int *version);
ptxgen_cu_result cuDeviceGetCount(int *count);

ptxgen_cu_result cuInit(unsigned int flags)
{
    return flags == 0 ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

ptxgen_cu_result cuDriverGetVersion(int *version)
{
    *version = 12040;
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result cuDeviceGetCount(int *count)
{
    *count = 1;
    return PTXGEN_CUDA_SUCCESS;
}
