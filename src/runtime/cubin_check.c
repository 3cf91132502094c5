/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/cubin_check.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { ELF_MACHINE_CUDA = 190 };

static bool lies_within(uint64_t offset, uint64_t length, size_t size)
{
    return offset <= size && length <= size - offset;
}

static bool is_cuda_elf(const Elf64_Ehdr *header)
{
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
           header->e_machine == ELF_MACHINE_CUDA;
}

static bool tables_lie_within(const Elf64_Ehdr *header, size_t size)
{
    bool entries_fit = header->e_shentsize >= sizeof(Elf64_Shdr) &&
                       (header->e_phnum == 0 || header->e_phentsize >= sizeof(Elf64_Phdr));
    return entries_fit && header->e_shnum > 0 && header->e_shstrndx < header->e_shnum &&
           lies_within(header->e_shoff, (uint64_t)header->e_shnum * header->e_shentsize, size) &&
           lies_within(header->e_phoff, (uint64_t)header->e_phnum * header->e_phentsize, size);
}

/* Variables that are zero have no bytes in the file; code and the sections' names must have them.
 */
static bool may_have_no_bytes(const Elf64_Shdr *section, bool holds_names)
{
    return section->sh_type == SHT_NULL ||
           (section->sh_type == SHT_NOBITS && !(section->sh_flags & SHF_EXECINSTR) && !holds_names);
}

static bool sections_lie_within(const unsigned char *bytes, const Elf64_Ehdr *header, size_t size)
{
    for (size_t i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, bytes + header->e_shoff + i * header->e_shentsize, sizeof section);
        if (!may_have_no_bytes(&section, i == header->e_shstrndx) &&
            !lies_within(section.sh_offset, section.sh_size, size))
            return false;
    }
    return true;
}

static bool segments_lie_within(const unsigned char *bytes, const Elf64_Ehdr *header, size_t size)
{
    for (size_t i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, bytes + header->e_phoff + i * header->e_phentsize, sizeof segment);
        if (!lies_within(segment.p_offset, segment.p_filesz, size))
            return false;
    }
    return true;
}

ptxgen_status cubin_check(const void *cubin, size_t size, ptxgen_error *err)
{
    Elf64_Ehdr header;
    if (size < sizeof header)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "a cubin of %zu bytes is shorter than its own header, %zu bytes", size,
                           sizeof header);
    memcpy(&header, cubin, sizeof header);
    if (!is_cuda_elf(&header))
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "the %zu bytes are not a cubin: they do not open with the header of a "
                           "64-bit little-endian ELF file for CUDA",
                           size);
    if (!tables_lie_within(&header, size) || !sections_lie_within(cubin, &header, size) ||
        !segments_lie_within(cubin, &header, size))
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "the cubin is cut short or damaged: it refers to bytes beyond its %zu",
                           size);
    return PTXGEN_OK;
}
