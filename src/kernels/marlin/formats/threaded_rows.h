/* SPDX-License-Identifier: Apache-2.0 */
/* Work on rows of weights that several threads divide into parts of 128 rows. */
#ifndef PTXGEN_KERNELS_MARLIN_FORMATS_THREADED_ROWS_H
#define PTXGEN_KERNELS_MARLIN_FORMATS_THREADED_ROWS_H

#include <ptxgen/marlin_formats.h>

enum { W4_PART_ROWS = 128 };

/* Works on rows `first` to `end` − 1. */
typedef ptxgen_status w4_work(void *job, size_t first, size_t end, ptxgen_error *err);

/*
 * Calls `work` for every part of `rows`, and the progress callback after each. `options` may be
 * NULL. After a failure no further part is begun; the failure of the first part is returned.
 */
ptxgen_status w4_work_in_parts(size_t rows, w4_work *work, void *job,
                               const ptxgen_w4_repack_options *options, ptxgen_error *err);

#endif
