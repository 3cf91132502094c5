/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Names as they stand in untrusted files, made fit for an error sentence.
 */
#ifndef PTXGEN_FILES_PRINTABLE_H
#define PTXGEN_FILES_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

enum { PRINTABLE_SIZE = 128 };

struct printable {
    char text[PRINTABLE_SIZE];
};

/**
 * The bytes in double quotes, control characters, quotes, backslashes and broken UTF-8 written as
 * \xNN; what does not fit is cut and marked with "...". A value, to be used in place:
 * `ptxgen_fail(err, status, "tensor %s …", printable(name, length).text)`.
 */
struct printable printable(const char *bytes, size_t length);

/** Whether the bytes are UTF-8: no overlong form, no surrogate, nothing past U+10FFFF. */
bool utf8_is_valid(const char *bytes, size_t length);

#endif
