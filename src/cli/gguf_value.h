/* SPDX-License-Identifier: Apache-2.0 */
/**
 * GGUF metadata values, read in place from untrusted bytes.
 *
 * A value is a scalar, a string or an array; strings and arrays are views into the file. Arrays
 * may nest. They are checked whole when they are first read, so walking one later cannot fail:
 *
 *     struct gguf_array rest = value.array;
 *     struct gguf_value element;
 *     while (gguf_array_next(&rest, &element))
 *         …
 */
#ifndef PTXGEN_CLI_GGUF_VALUE_H
#define PTXGEN_CLI_GGUF_VALUE_H

#include "printable.h"

#include <ptxgen/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The numbers are the format's. */
enum gguf_type {
    GGUF_UINT8 = 0,
    GGUF_INT8 = 1,
    GGUF_UINT16 = 2,
    GGUF_INT16 = 3,
    GGUF_UINT32 = 4,
    GGUF_INT32 = 5,
    GGUF_FLOAT32 = 6,
    GGUF_BOOL = 7,
    GGUF_STRING = 8,
    GGUF_ARRAY = 9,
    GGUF_UINT64 = 10,
    GGUF_INT64 = 11,
    GGUF_FLOAT64 = 12,
};

/** Not NUL-terminated; any bytes. */
struct gguf_string {
    const char *bytes;
    size_t length;
};

struct gguf_array {
    enum gguf_type type; /**< of each element */
    uint64_t count;
    const unsigned char *data; /**< the first of `count` elements, packed */
    size_t bytes;
};

struct gguf_value {
    enum gguf_type type;
    union {
        uint64_t u; /**< UINT8 to UINT64, widened */
        int64_t i;  /**< INT8 to INT64, widened */
        float f32;  /**< FLOAT32, all bits kept */
        double f64; /**< FLOAT64 */
        bool boolean;
        struct gguf_string string;
        struct gguf_array array;
    };
};

/** "UINT32", or "unknown" for a number that the format does not have. */
const char *gguf_type_name(enum gguf_type type);

/** Takes the first element off `rest`; false when none is left. */
bool gguf_array_next(struct gguf_array *rest, struct gguf_value *element);

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
ptxgen_status gguf_read_string(struct gguf_cursor *c, struct gguf_string *value, ptxgen_error *err);
/** A value of the given type number, which is checked too. */
ptxgen_status gguf_read_value(struct gguf_cursor *c, uint32_t type, struct gguf_value *value,
                              ptxgen_error *err);

#endif
