/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linker, and the cubin that it makes: an ELF file for CUDA that says in the padding of its
 * identification whose it is, with one section: length and checksum of the PTX text, and the text.
 */
#include "src/emulator/driver_state.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELF_MACHINE_CUDA = 190, SECTIONS = 3 };

static const char OWNER[EI_NIDENT - EI_PAD] = {'P', 'T', 'X', 'E', 'M', 'U', '1'};
static const char NAMES[] = "\0.shstrtab\0.ptxgen.text";
enum { NAME_OF_NAMES = 1, NAME_OF_TEXT = 11 };
_Static_assert(sizeof NAMES % sizeof(uint64_t) == 0, "no padding: equal text, equal bytes");

/* What stands before the text; the ELF part is the same but for the text's size. */
struct cubin_head {
    Elf64_Ehdr elf;
    Elf64_Shdr sections[SECTIONS];
    char names[sizeof NAMES];
    uint64_t length, checksum;
};
enum { SECTION_HEAD = sizeof(struct cubin_head) - offsetof(struct cubin_head, length) };

static uint64_t checksum(const char *text, size_t length)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash;
}

/* Reads no further than what differs from a text's beginning. */
bool emu_is_cubin(const void *image)
{
    const unsigned char *ident = image;
    return strncmp(image, ELFMAG, SELFMAG) == 0 && memcmp(ident + EI_PAD, OWNER, sizeof OWNER) == 0;
}

/* All of the head but the checksum: equal for equal lengths of text. */
static struct cubin_head head_for(uint64_t length)
{
    struct cubin_head head = {.elf = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
                                                  ELFDATA2LSB, EV_CURRENT},
                                      .e_type = ET_EXEC,
                                      .e_machine = ELF_MACHINE_CUDA,
                                      .e_version = EV_CURRENT,
                                      .e_shoff = offsetof(struct cubin_head, sections),
                                      .e_ehsize = sizeof(Elf64_Ehdr),
                                      .e_shentsize = sizeof(Elf64_Shdr),
                                      .e_shnum = SECTIONS,
                                      .e_shstrndx = 1},
                              .sections = {[1] = {.sh_name = NAME_OF_NAMES,
                                                  .sh_type = SHT_STRTAB,
                                                  .sh_offset = offsetof(struct cubin_head, names),
                                                  .sh_size = sizeof NAMES},
                                           [2] = {.sh_name = NAME_OF_TEXT,
                                                  .sh_type = SHT_PROGBITS,
                                                  .sh_offset = offsetof(struct cubin_head, length),
                                                  .sh_size = SECTION_HEAD + length + 1}},
                              .length = length};
    memcpy(head.elf.e_ident + EI_PAD, OWNER, sizeof OWNER);
    memcpy(head.names, NAMES, sizeof NAMES);
    return head;
}

/*
 * The image has no size, so each part is read only when the one before it is what emu_cubin_make
 * writes: then the sections lie in the image if its maker, or cubin_check, has seen to that.
 */
static bool read_head(const char *image, struct cubin_head *head)
{
    const size_t sections = offsetof(struct cubin_head, sections),
                 names = offsetof(struct cubin_head, names);
    struct cubin_head due = head_for(0);
    memcpy(head, image, sections);
    if (memcmp(head, &due, sections) != 0)
        return false;
    memcpy(head->sections, image + sections, names - sections);
    if (head->sections[2].sh_size <= SECTION_HEAD)
        return false;
    due = head_for(head->sections[2].sh_size - SECTION_HEAD - 1);
    if (memcmp(head->sections, due.sections, sizeof due.sections) != 0)
        return false;
    memcpy(head->names, image + names, sizeof *head - names);
    return memcmp(head->names, due.names, sizeof due.names) == 0 && head->length == due.length;
}

const char *emu_cubin_text(const void *image, size_t *length, ptxgen_error *err)
{
    struct cubin_head head;
    const char *text = (const char *)image + sizeof head;
    if (!read_head(image, &head) || checksum(text, (size_t)head.length) != head.checksum) {
        ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                    "the emulator's cubin is damaged, or has a wrong checksum");
        return NULL;
    }
    *length = (size_t)head.length;
    return text;
}

void *emu_cubin_make(const char *text, size_t length, size_t *size)
{
    char *image = malloc(sizeof(struct cubin_head) + length + 1);
    if (!image)
        return NULL;
    struct cubin_head head = head_for(length);
    head.checksum = checksum(text, length);
    memcpy(image, &head, sizeof head);
    memcpy(image + sizeof head, text, length);
    image[sizeof head + length] = '\0';
    *size = sizeof head + length + 1;
    return image;
}

/* ---- the linker ---- */

struct CUlinkState_st {
    char *text;
    size_t length, size;
    void *image;
    unsigned int option_count;
    ptxgen_cu_jit_option *options;
    void **values;
};

void emu_jit_log(unsigned int count, const ptxgen_cu_jit_option *options, void **values,
                 const char *message)
{
    char *buffer = NULL;
    size_t capacity = 0, size_at = count;
    for (unsigned int i = 0; i < count; i++) {
        if (options[i] == PTXGEN_CU_JIT_ERROR_LOG_BUFFER)
            buffer = values[i];
        if (options[i] == PTXGEN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
            capacity = (size_t)(uintptr_t)values[i];
            size_at = i;
        }
        if (options[i] == PTXGEN_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
            values[i] = NULL;
    }
    size_t written = 0;
    if (buffer && capacity) {
        snprintf(buffer, capacity, "%s", message);
        written = strlen(buffer);
    }
    if (size_at < count)
        values[size_at] = (void *)(uintptr_t)written;
}

ptxgen_cu_result emu_cu_link_create(unsigned int option_count, ptxgen_cu_jit_option *options,
                                    void **option_values, ptxgen_cu_link_state *state)
{
    struct CUctx_st *context;
    ptxgen_cu_result result = emu_current(&context);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (!state || (option_count && (!options || !option_values)))
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *state = calloc(1, sizeof **state);
    if (!*state)
        return PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    (*state)->option_count = option_count;
    (*state)->options = options;
    (*state)->values = option_values;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result refuse(struct CUlinkState_st *state, ptxgen_cu_result result,
                               const char *message)
{
    emu_jit_log(state->option_count, state->options, state->values, message);
    return result;
}

ptxgen_cu_result emu_cu_link_add_data(ptxgen_cu_link_state state, ptxgen_cu_jit_input_type type,
                                      void *data, size_t size, const char *name,
                                      unsigned int option_count, ptxgen_cu_jit_option *options,
                                      void **option_values)
{
    struct CUctx_st *context;
    ptxgen_error err = {0};
    ptxgen_cu_result result = emu_current(&context);
    (void)name;
    (void)option_count;
    (void)options;
    (void)option_values;
    if (!state)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    if (result != PTXGEN_CUDA_SUCCESS)
        return refuse(state, result, "no context is current, or it has a fault");
    if (!data)
        return refuse(state, PTXGEN_CUDA_ERROR_INVALID_VALUE, "the PTX text is NULL");
    if (type != PTXGEN_CU_JIT_INPUT_PTX)
        return refuse(state, PTXGEN_CUDA_ERROR_INVALID_IMAGE,
                      "the emulator's linker takes PTX only");
    if (state->text)
        return refuse(state, PTXGEN_CUDA_ERROR_INVALID_IMAGE,
                      "the emulator's linker takes one PTX module");
    struct CUmod_st *module;
    const char *nul = memchr(data, '\0', size);
    size_t length = nul ? (size_t)(nul - (const char *)data) : size;
    state->text = calloc(1, length + 1);
    if (!state->text)
        return PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(state->text, data, length);
    state->length = length;
    result = emu_module_from_text(context, state->text, length, &module, &err);
    if (result != PTXGEN_CUDA_SUCCESS)
        return refuse(state, result, err.message);
    emu_cu_module_unload(module);
    return refuse(state, PTXGEN_CUDA_SUCCESS, "");
}

ptxgen_cu_result emu_cu_link_complete(ptxgen_cu_link_state state, void **cubin, size_t *size)
{
    if (!state)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    if (!cubin)
        return refuse(state, PTXGEN_CUDA_ERROR_INVALID_VALUE, "the place for the cubin is NULL");
    if (!state->text)
        return refuse(state, PTXGEN_CUDA_ERROR_INVALID_VALUE, "nothing was added to the link");
    free(state->image);
    state->image = emu_cubin_make(state->text, state->length, &state->size);
    if (!state->image)
        return PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    *cubin = state->image;
    if (size)
        *size = state->size;
    return refuse(state, PTXGEN_CUDA_SUCCESS, "");
}

ptxgen_cu_result emu_cu_link_destroy(ptxgen_cu_link_state state)
{
    if (!state)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    free(state->text);
    free(state->image);
    free(state);
    return PTXGEN_CUDA_SUCCESS;
}
