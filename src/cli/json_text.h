/* SPDX-License-Identifier: Apache-2.0 */
/** JSON of files that are not trusted: what cJSON lets through is refused before it parses. */
#ifndef PTXGEN_CLI_JSON_TEXT_H
#define PTXGEN_CLI_JSON_TEXT_H

#include <ptxgen/status.h>
#include <stddef.h>

#include <cJSON.h>

/**
 * Parses the whole text, which must be UTF-8, as one value with white space after it at most.
 * Strings hold no raw control character, and no NUL, which would cut them short. Failures begin
 * with `subject`. The value is the caller's, for cJSON_Delete.
 */
ptxgen_status json_text_parse(const char *subject, const char *text, size_t length, cJSON **value,
                              ptxgen_error *err);

/**
 * The same of text that is trusted. `end` receives where the value ended or broke.
 * PTXGEN_ERROR_MALFORMED leaves the sentence to the caller, PTXGEN_ERROR_OUT_OF_MEMORY does not.
 */
ptxgen_status json_text_read(const char *text, size_t length, const char **end, cJSON **value,
                             ptxgen_error *err);

#endif
