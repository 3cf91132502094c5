/* SPDX-License-Identifier: Apache-2.0 */
/* Which PTX ISA version came with which CUDA release and driver branch. */
#ifndef PTXGEN_RUNTIME_PTX_VERSION_H
#define PTXGEN_RUNTIME_PTX_VERSION_H

/* A CUDA version in two numbers, for sentences: 12040 is 12 and 4. */
#define CUDA_MAJOR(version) ((version) / 1000)
#define CUDA_MINOR(version) ((version) % 1000 / 10)

struct ptx_release {
    int cuda;   /* as cuDriverGetVersion counts: 12040 is CUDA 12.4 */
    int ptx;    /* 10 × major + minor */
    int branch; /* the first driver branch, the 550 of r550 */
};

/* The newest release that a driver reporting `cuda_version` contains; NULL before CUDA 11.0. */
const struct ptx_release *ptx_release_of_driver(int cuda_version);

/* The first release whose driver assembles `ptx_version`; NULL when the table ends before it. */
const struct ptx_release *ptx_release_with(int ptx_version);

#endif
