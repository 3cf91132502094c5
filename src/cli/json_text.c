/* SPDX-License-Identifier: Apache-2.0 */
#include "json_text.h"

#include "printable.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static ptxgen_status check_strings(const char *subject, const char *text, size_t length,
                                   ptxgen_error *err)
{
    bool in_string = false;
    for (size_t i = 0; i < length; i++) {
        if (!in_string) {
            in_string = text[i] == '"';
            continue;
        }
        if ((unsigned char)text[i] < 0x20)
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "%s: a string holds the raw control character 0x%02X at byte %zu",
                               subject, (unsigned)text[i], i);
        if (length - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0)
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "%s: a string holds a NUL (\\u0000) at byte %zu", subject, i);
        if (text[i] == '\\')
            i++;
        else if (text[i] == '"')
            in_string = false;
    }
    return PTXGEN_OK;
}

static ptxgen_status check_rest(const char *subject, const char *text, const char *at,
                                const char *end, ptxgen_error *err)
{
    for (; at < end; at++)
        if (!strchr(" \t\r\n", *at) || *at == '\0')
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "%s: byte %td follows the JSON object but is not white space",
                               subject, at - text);
    return PTXGEN_OK;
}

/* cJSON returns NULL for both; a failed allocation also sets errno, and a broken text does not. */
ptxgen_status json_text_read(const char *text, size_t length, const char **end, cJSON **value,
                             ptxgen_error *err)
{
    *end = text;
    errno = 0;
    *value = cJSON_ParseWithLengthOpts(text, length, end, false);
    if (*value)
        return PTXGEN_OK;
    if (errno == ENOMEM)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                           "no memory for the contents of %zu bytes of JSON", length);
    return PTXGEN_ERROR_MALFORMED;
}

ptxgen_status json_text_parse(const char *subject, const char *text, size_t length, cJSON **value,
                              ptxgen_error *err)
{
    const char *end;
    cJSON *parsed;
    *value = NULL;
    if (!utf8_is_valid(text, length))
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s: it is not UTF-8", subject);
    ptxgen_status status = check_strings(subject, text, length, err);
    if (status != PTXGEN_OK)
        return status;
    status = json_text_read(text, length, &end, &parsed, err);
    if (status == PTXGEN_ERROR_MALFORMED)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s: the JSON is malformed near byte %td",
                           subject, end - text);
    if (status != PTXGEN_OK)
        return status;
    status = check_rest(subject, text, end, text + length, err);
    if (status == PTXGEN_OK)
        *value = parsed;
    else
        cJSON_Delete(parsed);
    return status;
}
