/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* dladdr */
#include "src/runtime/manifest.h"
#include "src/ptxgen/c_locale.h"
#include "src/runtime/context.h"
#include "src/runtime/cuda_version.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "ptxgen-cache: 1\n"

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

static bool append_hex(char *text, size_t size, size_t *used, const unsigned char *bytes,
                       size_t count)
{
    static const char digits[] = "0123456789abcdef";
    if (count > (size - *used - 1) / 2)
        return false;
    for (size_t i = 0; i < count; i++) {
        text[(*used)++] = digits[bytes[i] >> 4];
        text[(*used)++] = digits[bytes[i] & 15];
    }
    return true;
}

size_t manifest_subject(const ptxgen_family *family, const void *spec, const ptxgen_target *target,
                        char *text, size_t size)
{
    char line[512];
    const char suffix[2] = {target->ptx.suffix};
    if (!describe_spec(family, spec, line))
        return 0;
    int written =
        snprintf(text, size, "family: %s, plan version %u\nspec: %s\nbytes: ", family->name,
                 family->plan_version, line);
    if (written < 0 || (size_t)written >= size)
        return 0;
    size_t used = (size_t)written;
    if (!append_hex(text, size, &used, spec, family->spec_bytes))
        return 0;
    written =
        snprintf(text + used, size - used,
                 "\ntarget: sm_%d%s, PTX %d, %u multiprocessors, %u shared bytes\n", target->ptx.sm,
                 suffix, target->ptx.max_ptx, target->multiprocessors, target->shared_per_cta);
    return written < 0 || (size_t)written >= size - used ? 0 : used + (size_t)written;
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
    size_t used = manifest_subject(family, spec, target, origin->lines, sizeof origin->lines);
    if (!used || !assembler->length || assembler->length > sizeof origin->lines - used)
        return false;
    memcpy(origin->lines + used, assembler->lines, assembler->length);
    origin->length = used + assembler->length;
    return true;
}

size_t ptx_line_append(char line[PTX_LINE_MOST_BYTES], const struct ptx_digest *ptx)
{
    return (size_t)snprintf(line, PTX_LINE_MOST_BYTES, "ptx: %s, %zu bytes\n", ptx->digest.hex,
                            ptx->bytes);
}

void manifest_head_make(const struct origin *origin, const struct ptx_digest *ptx,
                        struct manifest_head *head)
{
    enum { SCHEMA_LENGTH = sizeof SCHEMA - 1 };
    _Static_assert(sizeof origin->lines + SCHEMA_LENGTH + PTX_LINE_MOST_BYTES <= sizeof head->text,
                   "every origin fits");
    memcpy(head->text, SCHEMA, SCHEMA_LENGTH);
    memcpy(head->text + SCHEMA_LENGTH, origin->lines, origin->length);
    head->length = SCHEMA_LENGTH + origin->length;
    head->length += ptx_line_append(head->text + head->length, ptx);
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

char *manifest_make(const char *head, size_t head_length, const void *cubin, size_t cubin_bytes)
{
    char *text = malloc(MANIFEST_MOST_BYTES);
    if (!text)
        return NULL;
    memcpy(text, head, head_length);
    size_t used = head_length;
    used += (size_t)snprintf(text + used, MANIFEST_MOST_BYTES - used,
                             "library: ptxgen " PTXGEN_VERSION "\ncubin: %s, %zu bytes\n",
                             digest_of(cubin, cubin_bytes).hex, cubin_bytes);
    checksum_append(text, used, label);
    return text;
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
