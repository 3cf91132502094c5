/* SPDX-License-Identifier: Apache-2.0 */
/** The values of gguf.h, read in place from untrusted bytes; arrays are checked whole. */
#ifndef PTXGEN_FILES_GGUF_READ_H
#define PTXGEN_FILES_GGUF_READ_H

#include "printable.h"

#include <ptxgen/gguf.h>

/**
 * What is left to read, and what the reader is about, for the sentence: every failure says
 * "`subject`: …" and gives the offset in the file.
 */
struct gguf_cursor {
    const unsigned char *start, *at, *end;
    char subject[PRINTABLE_SIZE + 16];
};

ptxgen_status gguf_read_u32(struct gguf_cursor *c, uint32_t *value, ptxgen_error *err);
ptxgen_status gguf_read_u64(struct gguf_cursor *c, uint64_t *value, ptxgen_error *err);
ptxgen_status gguf_read_string(struct gguf_cursor *c, ptxgen_gguf_string *value, ptxgen_error *err);
/** A value of the given type number, which is checked too. */
ptxgen_status gguf_read_value(struct gguf_cursor *c, uint32_t type, ptxgen_gguf_value *value,
                              ptxgen_error *err);

#endif
