/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that looks like cuBLAS and multiplies nothing. FAKE_CUBLAS names the call that fails,
 * with status 13. A product on another stream than the one that was set last fails too.
 */
#include <stdlib.h>
#include <string.h>

enum { FAILED = 13 };

static void *stream_set;

static int result_of(const char *call)
{
    const char *failing = getenv("FAKE_CUBLAS");
    return failing && !strcmp(failing, call) ? FAILED : 0;
}

int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);
int cublasSetStream_v2(void *handle, void *stream);
int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes);
int cublasGemmEx(void);

int cublasCreate_v2(void **handle)
{
    static int it;
    *handle = result_of("create") ? NULL : &it;
    return result_of("create");
}
int cublasDestroy_v2(void *handle)
{
    (void)handle;
    return 0;
}
int cublasSetStream_v2(void *handle, void *stream)
{
    (void)handle;
    stream_set = stream;
    return result_of("stream");
}
int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes)
{
    (void)handle;
    return workspace && bytes ? result_of("workspace") : FAILED;
}
int cublasGemmEx(void)
{
    return stream_set ? result_of("gemm") : FAILED;
}
