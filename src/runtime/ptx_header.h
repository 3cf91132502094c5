/* SPDX-License-Identifier: Apache-2.0 */
/* The two directives that open every PTX text, read so that a hopeless load is never tried. */
#ifndef PTXGEN_RUNTIME_PTX_HEADER_H
#define PTXGEN_RUNTIME_PTX_HEADER_H

#include <ptxgen/driver.h>

struct ptx_header {
    int version; /* 10 × major + minor of .version; 0 when the text opens otherwise */
    int arch;    /* 90 for sm_90, sm_90a and sm_90f; 0 when not found */
    char suffix; /* 'a': that chip only; 'f': its family, from it on; 0: it and all later */
};

/* Never fails: what is not found stays 0 and is left to the driver to judge. */
struct ptx_header ptx_header_read(const char *ptx);

/*
 * PTXGEN_ERROR_DRIVER_TOO_OLD when the driver cannot know the version, PTXGEN_ERROR_WRONG_DEVICE
 * when the target cannot run on `device`.
 */
ptxgen_status ptx_header_check(const struct ptx_header *header, const ptxgen_driver *driver,
                               ptxgen_cu_device device, ptxgen_error *err);

#endif
