/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest file with a cubin's structure: a header, a segment, three sections. */
#ifndef PTXGEN_TESTS_TINY_CUBIN_H
#define PTXGEN_TESTS_TINY_CUBIN_H

#include <elf.h>

struct tiny_cubin {
    Elf64_Ehdr header;
    unsigned char code[64];
    Elf64_Shdr sections[3];
    Elf64_Phdr segment;
};

static inline struct tiny_cubin tiny_cubin_make(void)
{
    struct tiny_cubin cubin = {
        .header =
            {
                .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                            EV_CURRENT},
                .e_type = ET_EXEC,
                .e_machine = 190,
                .e_version = EV_CURRENT,
                .e_phoff = offsetof(struct tiny_cubin, segment),
                .e_shoff = offsetof(struct tiny_cubin, sections),
                .e_ehsize = sizeof(Elf64_Ehdr),
                .e_phentsize = sizeof(Elf64_Phdr),
                .e_phnum = 1,
                .e_shentsize = sizeof(Elf64_Shdr),
                .e_shnum = 3,
                .e_shstrndx = 1,
            },
        .sections =
            {
                {.sh_type = SHT_NULL},
                {.sh_type = SHT_PROGBITS,
                 .sh_offset = offsetof(struct tiny_cubin, code),
                 .sh_size = 64},
                {.sh_type = SHT_NOBITS, .sh_offset = 0, .sh_size = 1 << 20},
            },
        .segment = {.p_type = PT_LOAD,
                    .p_offset = offsetof(struct tiny_cubin, code),
                    .p_filesz = 64},
    };
    return cubin;
}

#endif
