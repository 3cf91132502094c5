/* SPDX-License-Identifier: Apache-2.0 */
/** Problems of the gguf_rows family, for those who fill operands of their own. */
#ifndef PTXGEN_HARNESS_GGUF_ROWS_H
#define PTXGEN_HARNESS_GGUF_ROWS_H

#include "problem.h"

#include <ptxgen/gguf_rows.h>

/** The operands of a problem. */
enum { GGUF_ROWS_AT_IDS, GGUF_ROWS_AT_W, GGUF_ROWS_AT_Y, GGUF_ROWS_OPERANDS };

/**
 * Rows of w in a problem with ids, and w's rows beside those of y in one without: the first one,
 * which is not decoded.
 */
enum { GGUF_ROWS_TABLE = 61, GGUF_ROWS_BEFORE = 1 };

#endif
