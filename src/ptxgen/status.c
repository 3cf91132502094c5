/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/status.h>

#include "src/ptxgen/c_locale.h"
#include "src/ptxgen/sentence.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *ptxgen_status_name(ptxgen_status status)
{
    switch (status) {
#define NAME(s) \
    case s: return #s
        NAME(PTXGEN_OK);
        NAME(PTXGEN_ERROR_INVALID_ARGUMENT);
        NAME(PTXGEN_ERROR_OUT_OF_MEMORY);
        NAME(PTXGEN_ERROR_UNSUPPORTED);
        NAME(PTXGEN_ERROR_SYSTEM);
        NAME(PTXGEN_ERROR_TARGET);
        NAME(PTXGEN_ERROR_OPERAND);
        NAME(PTXGEN_ERROR_ALIGNMENT);
        NAME(PTXGEN_ERROR_LABEL);
        NAME(PTXGEN_ERROR_UNINITIALISED);
        NAME(PTXGEN_ERROR_DIVERGENCE);
        NAME(PTXGEN_ERROR_ASYNC);
        NAME(PTXGEN_ERROR_SHARED_MEMORY);
        NAME(PTXGEN_ERROR_REGISTERS);
        NAME(PTXGEN_ERROR_STRUCTURE);
        NAME(PTXGEN_ERROR_NO_DRIVER);
        NAME(PTXGEN_ERROR_DRIVER_TOO_OLD);
        NAME(PTXGEN_ERROR_NO_DEVICE);
        NAME(PTXGEN_ERROR_WRONG_DEVICE);
        NAME(PTXGEN_ERROR_DRIVER);
        NAME(PTXGEN_ERROR_JIT);
        NAME(PTXGEN_ERROR_FILE);
        NAME(PTXGEN_ERROR_MALFORMED);
        NAME(PTXGEN_ERROR_NOT_FOUND);
        NAME(PTXGEN_ERROR_PTX_SYNTAX);
        NAME(PTXGEN_ERROR_PTX_FAULT);
#undef NAME
    }
    return "PTXGEN_ERROR_UNKNOWN";
}

/* ---- sentences ---- */

/* Bytes of the UTF-8 character at `text`; 0 when there is none (RFC 3629). */
static size_t character(const unsigned char *text)
{
    static const struct {
        unsigned char lead, least, most; /* the first byte, and what the second may be */
        unsigned char last;              /* of a range of first bytes */
        size_t bytes;
    } forms[] = {{0xC2, 0x80, 0xBF, 0xDF, 2}, {0xE0, 0xA0, 0xBF, 0xE0, 3},
                 {0xE1, 0x80, 0xBF, 0xEC, 3}, {0xED, 0x80, 0x9F, 0xED, 3},
                 {0xEE, 0x80, 0xBF, 0xEF, 3}, {0xF0, 0x90, 0xBF, 0xF0, 4},
                 {0xF1, 0x80, 0xBF, 0xF3, 4}, {0xF4, 0x80, 0x8F, 0xF4, 4}};
    if (*text < 0x80)
        return *text >= ' ' && *text != 0x7F ? 1 : *text == '\n' || *text == '\t';
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (*text < forms[i].lead || *text > forms[i].last)
            continue;
        bool good = text[1] >= forms[i].least && text[1] <= forms[i].most;
        for (size_t j = 2; good && j < forms[i].bytes; j++)
            good = (text[j] & 0xC0) == 0x80;
        return good ? forms[i].bytes : 0;
    }
    return 0;
}

/* How many of the last bytes begin a character that is not there to its end. */
static size_t cut_character(const char *text, size_t length)
{
    for (size_t back = 1; back <= 3 && back <= length; back++) {
        unsigned char byte = (unsigned char)text[length - back];
        if ((byte & 0xC0) == 0x80)
            continue;
        size_t whole = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
        return whole > back ? back : 0;
    }
    return 0;
}

void sentence_clean(char *text, size_t size)
{
    size_t length = strlen(text);
    if (length + 1 == size)
        text[length - cut_character(text, length)] = '\0';
    while (*text) {
        size_t bytes = character((const unsigned char *)text);
        if (!bytes)
            *text = '?';
        text += bytes ? bytes : 1;
    }
}

/* Without memory for the C locale the sentence is written in the thread's own. */
ptxgen_status ptxgen_vfail(ptxgen_error *err, ptxgen_status status, const char *format,
                           va_list args)
{
    if (err) {
        struct c_locale locale;
        bool in_c = c_locale_begin(&locale);
        err->status = status;
        vsnprintf(err->message, sizeof err->message, format, args);
        sentence_clean(err->message, sizeof err->message);
        if (in_c)
            c_locale_end(&locale);
    }
    return status;
}

ptxgen_status ptxgen_fail(ptxgen_error *err, ptxgen_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ptxgen_vfail(err, status, format, args);
    va_end(args);
    return status;
}
