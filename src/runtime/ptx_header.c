/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/ptx_header.h"

#include "src/runtime/context.h"
#include "src/runtime/ptx_version.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *skip_space_and_comments(const char *text)
{
    for (;;) {
        text += strspn(text, " \t\r\n");
        if (strncmp(text, "//", 2) == 0) {
            text += strcspn(text, "\n");
        } else if (strncmp(text, "/*", 2) == 0) {
            const char *end = strstr(text + 2, "*/");
            text = end ? end + 2 : text + strlen(text);
        } else {
            return text;
        }
    }
}

/* Moves past `word` when the text starts with it. */
static bool accept(const char **text, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0)
        return false;
    *text += length;
    return true;
}

/* At most four digits: no version or architecture has more, and an int holds them. */
static int read_number(const char **text)
{
    int number = 0;
    for (int digits = 0; digits < 4 && isdigit((unsigned char)**text); digits++, (*text)++)
        number = 10 * number + (**text - '0');
    return number;
}

struct ptx_header ptx_header_read(const char *ptx)
{
    struct ptx_header header = {0};
    const char *text = skip_space_and_comments(ptx);
    if (!accept(&text, ".version"))
        return header;
    text = skip_space_and_comments(text);
    header.version = 10 * read_number(&text);
    if (accept(&text, "."))
        header.version += read_number(&text);

    text = skip_space_and_comments(text);
    if (!accept(&text, ".target"))
        return header;
    text = skip_space_and_comments(text);
    if (!accept(&text, "sm_"))
        return header;
    header.arch = read_number(&text);
    if (*text == 'a' || *text == 'f')
        header.suffix = *text;
    return header;
}

static ptxgen_status check_version(int version, const ptxgen_driver *driver, ptxgen_error *err)
{
    const struct ptx_release *known = ptx_release_of_driver(driver->version);
    /* A driver of a release that the table does not know is left to judge for itself. */
    if (!known || known->cuda != driver->version || version <= known->ptx)
        return PTXGEN_OK;
    const struct ptx_release *needed = ptx_release_with(version);
    char remedy[64] = "";
    if (needed)
        snprintf(remedy, sizeof remedy, "; it needs one for CUDA %d.%d (r%d) or later",
                 CUDA_MAJOR(needed->cuda), CUDA_MINOR(needed->cuda), needed->branch);
    return ptxgen_fail(err, PTXGEN_ERROR_DRIVER_TOO_OLD,
                       "the text is PTX %d.%d, and the driver, for CUDA %d.%d, takes PTX up to "
                       "%d.%d%s",
                       version / 10, version % 10, CUDA_MAJOR(driver->version),
                       CUDA_MINOR(driver->version), known->ptx / 10, known->ptx % 10, remedy);
}

static const char *reach_of(char suffix)
{
    switch (suffix) {
    case 'a': return "only";
    case 'f': return "and later ones of its family only";
    default: return "or later";
    }
}

static bool runs_on(const struct ptx_header *header, int capability)
{
    switch (header->suffix) {
    case 'a': return capability == header->arch;
    case 'f': return capability / 10 == header->arch / 10 && capability >= header->arch;
    default: return capability >= header->arch;
    }
}

static ptxgen_status check_target(const struct ptx_header *header, const ptxgen_driver *driver,
                                  ptxgen_cu_device device, ptxgen_error *err)
{
    int capability;
    ptxgen_status status = device_compute_capability(driver, device, &capability, err);
    if (status != PTXGEN_OK || runs_on(header, capability))
        return status;
    char name[DEVICE_NAME_SIZE];
    char suffix[2] = {header->suffix, '\0'};
    device_name(driver, device, name);
    return ptxgen_fail(err, PTXGEN_ERROR_WRONG_DEVICE,
                       "the text is for sm_%d%s, which runs on compute capability %d.%d %s; "
                       "device %d (%s) has %d.%d",
                       header->arch, suffix, header->arch / 10, header->arch % 10,
                       reach_of(header->suffix), device, name, capability / 10, capability % 10);
}

ptxgen_status ptx_header_check(const struct ptx_header *header, const ptxgen_driver *driver,
                               ptxgen_cu_device device, ptxgen_error *err)
{
    ptxgen_status status = check_version(header->version, driver, err);
    if (status == PTXGEN_OK && header->arch)
        status = check_target(header, driver, device, err);
    return status;
}
