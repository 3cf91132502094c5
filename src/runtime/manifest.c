/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* dladdr */
#include "src/runtime/manifest.h"
#include "src/ptxgen/c_locale.h"
#include "src/runtime/context.h"
#include "src/runtime/ptx_version.h"

#include <ptxgen/version.h>

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "ptxgen-cache: 1\n"

/* ---- texts ---- */

void text_add(struct text *t, const char *format, ...)
{
    size_t room = t->size - t->used;
    va_list arguments;
    va_start(arguments, format);
    int written = t->is_cut ? -1 : vsnprintf(t->at + t->used, room, format, arguments);
    va_end(arguments);
    t->is_cut = written < 0 || (size_t)written >= room;
    t->used += t->is_cut ? 0 : (size_t)written;
}

/* ---- the head ---- */

void make_printable(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

/*
 * The driver's own version, finer than CUDA's: libcuda is a link to libcuda.so.580.159.04 and the
 * like. "-" for a table that something else filled.
 */
static void name_driver(const ptxgen_driver *driver, char name[64])
{
    Dl_info library;
    void *entry;
    memcpy(&entry, &driver->link_complete, sizeof entry);
    char *path =
        dladdr(entry, &library) && library.dli_fname ? realpath(library.dli_fname, NULL) : NULL;
    const char *slash = path ? strrchr(path, '/') : NULL;
    bool is_libcuda = slash && strncmp(slash + 1, "libcuda", 7) == 0;
    snprintf(name, 64, "%s", is_libcuda ? slash + 1 : "-");
    make_printable(name);
    free(path);
}

/* The description is part of the key, so it is the same in every locale: false without the C one.
 */
static bool describe_spec(const ptxgen_family *family, const void *spec, char text[512])
{
    struct c_locale locale;
    text[0] = '\0';
    if (family->describe) {
        if (!c_locale_begin(&locale))
            return false;
        family->describe(spec, text, 512);
        c_locale_end(&locale);
    }
    text[511] = '\0';
    make_printable(text);
    return true;
}

bool manifest_subject(const ptxgen_family *family, const void *spec, const ptxgen_target *target,
                      struct text *to)
{
    char line[512];
    const unsigned char *bytes = spec;
    bool described = describe_spec(family, spec, line);
    to->is_cut |= !described;
    text_add(to, "family: %s, plan version %u\nspec: %s\nbytes: ", family->name,
             family->plan_version, line);
    for (size_t i = 0; i < family->spec_bytes; i++)
        text_add(to, "%02x", bytes[i]);
    text_add(to, "\ntarget: sm_%d%.1s, ", target->ptx.sm, &target->ptx.suffix);
    if (target->ptx.max_ptx)
        text_add(to, "PTX %d, ", target->ptx.max_ptx);
    text_add(to, "%u multiprocessors, %u shared bytes\n", target->multiprocessors,
             target->shared_per_cta);
    return described;
}

void assembler_read(const ptxgen_driver *driver, ptxgen_cu_device device, int max_registers,
                    bool line_info, struct assembler *assembler)
{
    char name[DEVICE_NAME_SIZE], library[64];
    int capability;
    assembler->length = 0;
    if (device_compute_capability(driver, device, &capability, NULL) != PTXGEN_OK)
        return;
    device_name(driver, device, name);
    make_printable(name);
    name_driver(driver, library);
    assembler->length = (size_t)snprintf(
        assembler->lines, sizeof assembler->lines,
        "device: sm_%d, %s\ndriver: CUDA %d.%d, %s\noptions: registers %d, line info %d\n",
        capability, name, CUDA_MAJOR(driver->version), CUDA_MINOR(driver->version), library,
        max_registers, line_info);
}

bool origin_make(const ptxgen_family *family, const void *spec, const ptxgen_target *target,
                 const struct assembler *assembler, struct origin *origin)
{
    struct text lines = {.at = origin->lines, .size = sizeof origin->lines};
    manifest_subject(family, spec, target, &lines);
    text_add(&lines, "%.*s", (int)assembler->length, assembler->lines);
    origin->length = lines.used;
    return assembler->length && !lines.is_cut;
}

void ptx_line_add(struct text *to, const struct ptx_digest *ptx)
{
    text_add(to, "ptx: %s, %zu bytes\n", ptx->digest.hex, ptx->bytes);
}

void manifest_head_make(const struct origin *origin, const struct ptx_digest *ptx,
                        struct keyed_text *head)
{
    struct text text = {.at = head->text, .size = sizeof head->text};
    text_add(&text, SCHEMA "%s", origin->lines);
    ptx_line_add(&text, ptx);
    head->length = text.used;
    head->key = digest_of(head->text, head->length);
}

/* ---- the last line ---- */

size_t checksum_append(char *text, size_t used, const char *label)
{
    struct digest checksum = digest_of(text, used);
    return used +
           (size_t)snprintf(text + used, CHECKSUM_MOST_LENGTH, "%s%s\n", label, checksum.hex);
}

bool checksum_remove(const char *text, size_t *length, const char *label)
{
    char line[CHECKSUM_MOST_LENGTH];
    size_t line_length = strlen(label) + DIGEST_HEX + 1;
    if (*length < line_length || strlen(text) != *length)
        return false;
    *length -= line_length;
    snprintf(line, sizeof line, "%s%s\n", label, digest_of(text, *length).hex);
    return memcmp(text + *length, line, line_length) == 0;
}

/* ---- the tail ---- */

static const char label[] = "manifest: ";

char *manifest_make(const struct keyed_text *head, const ptxgen_cubin *cubin)
{
    struct text text = {.at = malloc(MANIFEST_MOST_BYTES), .size = MANIFEST_MOST_BYTES};
    if (!text.at)
        return NULL;
    text_add(&text, "%.*slibrary: ptxgen " PTXGEN_VERSION "\ncubin: %s, %zu bytes\n",
             (int)head->length, head->text, digest_of(cubin->bytes, cubin->size).hex, cubin->size);
    checksum_append(text.at, text.used, label);
    return text.at;
}

bool manifest_read(const char *text, size_t length, struct manifest_tail *tail)
{
    if (!checksum_remove(text, &length, label) || strncmp(text, SCHEMA, sizeof SCHEMA - 1) != 0)
        return false;
    const char *ptx = strstr(text, "\nptx: "), *cubin = strstr(text, "\ncubin: ");
    const char *head_end = ptx ? strchr(ptx + 1, '\n') : NULL;
    if (!head_end || !cubin || cubin < head_end ||
        sscanf(cubin, "\ncubin: %64[0-9a-f], %zu bytes\n", tail->cubin.hex, &tail->cubin_bytes) !=
            2)
        return false;
    tail->head_length = (size_t)(head_end + 1 - text);
    return strlen(tail->cubin.hex) == DIGEST_HEX;
}
