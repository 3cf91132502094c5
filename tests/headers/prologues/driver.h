/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#define ELIDED_BODY return PTXGEN_CUDA_SUCCESS;

extern ptxgen_driver *driver;
extern ptxgen_error *err;
int report(const char *message);
