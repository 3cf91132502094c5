/* SPDX-License-Identifier: Apache-2.0 */
/* Files of layers that tests describe, and layers of files that are run on the emulator. */
#ifndef PTXGEN_TESTS_LAYERS_BED_H
#define PTXGEN_TESTS_LAYERS_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/dispatch/folder.h"

#include <ptxgen/emulator.h>
#include <ptxgen/linear.h>

#define MARLIN_FILE GOLDEN_DIR "/marlin_g128.safetensors"
#define SPARSE_FILE GOLDEN_DIR "/sparse24_torch.safetensors"
#define W8A8_FILE GOLDEN_DIR "/w8a8.safetensors"
#define GGUF_FILE GOLDEN_DIR "/gguf_products.gguf"

struct bed {
    ptxgen_driver driver;
    ptxgen_cu_context context;
    ptxgen_dispatcher *dispatcher;
    char folder[FOLDER_PATH], path[FOLDER_PATH + 16];
};
int bed_setup(void **state);
int bed_teardown(void **state);

/* ---- files ---- */

enum { DESCRIBED = 12 };
struct description {
    ptxgen_tensor items[DESCRIBED];
    unsigned count;
};
/* columns 0: of one dimension */
void describe(struct description *d, const char *name, ptxgen_dtype dtype, uint64_t rows,
              uint64_t columns, const void *data);
/* To the bed's path, and opens it. */
ptxgen_files *write_and_open(struct bed *bed, const struct description *d);
ptxgen_files *open_file(const char *path);

/* ---- layers ---- */

ptxgen_layer find_layer(const ptxgen_files *files, const char *name,
                        const ptxgen_layer_choice *choice);
ptxgen_linear *make_linear(const struct bed *bed, const ptxgen_layer *layer, const ptxgen_layer *up,
                           const ptxgen_linear_options *options);
/* y [m, n] of x [m, k], both of the type, or x of s8 codes; malloc'ed. */
double *run_linear(const struct bed *bed, const ptxgen_linear *linear, ptxgen_element type,
                   const double *x, bool codes, uint64_t m);
/* Every output is within `tolerance` of Σ |x·w| + 1. */
void assert_near(const double *y, const double *expected, const double *magnitude, size_t count,
                 double tolerance);

/* Numbers of a tensor of floats, malloc'ed. */
double *numbers_of(const ptxgen_files *files, const char *name, size_t *count);

#endif
