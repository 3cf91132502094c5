/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA version in two numbers, for sentences: 12040 is 12 and 4. */
#ifndef PTXGEN_RUNTIME_CUDA_VERSION_H
#define PTXGEN_RUNTIME_CUDA_VERSION_H

#define CUDA_MAJOR(version) ((version) / 1000)
#define CUDA_MINOR(version) ((version) % 1000 / 10)

#endif
