/* SPDX-License-Identifier: Apache-2.0 */
/* Links a kernel on the emulator, makes its text section longer than the file, and loads that. */
#include <ptxgen/emulator.h>
#include <ptxgen/kernel.h>

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    static char text[] = ".version 7.0\n.target sm_80\n.visible .entry k() { ret; }";
    const uint64_t more = (uint64_t)1 << 40;
    ptxgen_driver driver;
    ptxgen_error err = {0};
    ptxgen_cu_context context;
    ptxgen_cu_link_state link;
    void *cubin;
    size_t size;
    ptxgen_module *module;
    ptxgen_emulator_driver(&driver);
    if (ptxgen_driver_start(&driver, &err) || driver.ctx_create(&context, 0, 0) ||
        driver.link_create(0, NULL, NULL, &link) ||
        driver.link_add_data(link, PTXGEN_CU_JIT_INPUT_PTX, text, sizeof text, "k", 0, NULL,
                             NULL) ||
        driver.link_complete(link, &cubin, &size))
        return puts("no cubin was linked"), 1;
    char *copy = malloc(size);
    Elf64_Ehdr elf;
    Elf64_Shdr section;
    memcpy(copy, cubin, size);
    memcpy(&elf, copy, sizeof elf);
    memcpy(&section, copy + elf.e_shoff + 2 * sizeof section, sizeof section);
    uint64_t length = sizeof text - 1 + more;
    memcpy(copy + section.sh_offset, &length, sizeof length);
    section.sh_size += more;
    section.sh_type = SHT_NOBITS;
    memcpy(copy + elf.e_shoff + 2 * sizeof section, &section, sizeof section);
    ptxgen_status status = ptxgen_module_load_cubin(&driver, copy, size, NULL, &module, &err);
    printf("%s: %s\n", ptxgen_status_name(status), err.message);
    free(copy);
    return 0;
}
