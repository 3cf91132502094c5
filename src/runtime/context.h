/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA context made current for a stretch of code, and what is known of its device. */
#ifndef PTXGEN_RUNTIME_CONTEXT_H
#define PTXGEN_RUNTIME_CONTEXT_H

#include <ptxgen/driver.h>

/*
 * Pushes `context`, or the current context once more when it is NULL, onto the thread's stack;
 * `*entered` is the one pushed. Each success is paired with one context_leave.
 */
ptxgen_status context_enter(const ptxgen_driver *driver, ptxgen_cu_context context,
                            ptxgen_cu_context *entered, ptxgen_error *err);
void context_leave(const ptxgen_driver *driver);

/* 10 × major + minor. */
ptxgen_status device_compute_capability(const ptxgen_driver *driver, ptxgen_cu_device device,
                                        int *capability, ptxgen_error *err);

/* The name of a device for a sentence; "unknown device" when the driver does not report one. */
enum { DEVICE_NAME_SIZE = 128 };
void device_name(const ptxgen_driver *driver, ptxgen_cu_device device, char name[DEVICE_NAME_SIZE]);

#endif
