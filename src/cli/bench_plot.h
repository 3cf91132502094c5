/* SPDX-License-Identifier: Apache-2.0 */
/** A chart of bench's times against M, drawn by gnuplot, which is a program of its own. */
#ifndef PTXGEN_CLI_BENCH_PLOT_H
#define PTXGEN_CLI_BENCH_PLOT_H

#include <ptxgen/status.h>

#include <cJSON.h>
#include <stdbool.h>

/** PTXGEN_ERROR_FILE when there is no gnuplot to draw with. */
ptxgen_status bench_plot_check(ptxgen_error *err);

/**
 * Draws the JSON of bench, which has one shape, as SVG: our time, overlapped where it was measured,
 * the peer's, and the floor. The path is an output file's (output_file.h). Errors: PTXGEN_ERROR_MALFORMED, PTXGEN_ERROR_UNSUPPORTED for several
 * shapes, PTXGEN_ERROR_FILE, PTXGEN_ERROR_SYSTEM.
 */
ptxgen_status bench_plot(const cJSON *bench, const char *path, bool force, ptxgen_error *err);

#endif
