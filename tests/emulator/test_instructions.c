/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instructions.txt holds the forms that the builder's table emits, one a line behind the target
 * that it needs: the emulator decodes them all.
 */
#include "bench.h"

#include "src/emulator/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool decodes(const char *target, const char *instruction, ptxgen_error *err)
{
    char text[4096];
    struct emu_module *module;
    struct emu_program *program = NULL;
    struct emu_placement placement = {NULL, NULL};
    snprintf(text, sizeof text,
             ".version 8.8\n.target %s\n.visible .entry k(.param .align 16 .b8 par[64])\n{\n"
             ".reg .pred %%p<99>; .reg .b16 %%h<99>; .reg .b32 %%r<400>; .reg .b64 %%d<99>; "
             ".reg .b128 %%q<9>;\nL: %s;\nret;\n}\n",
             target, instruction);
    if (emu_module_parse(text, strlen(text), &module, err) != PTXGEN_OK)
        return false;
    ptxgen_status status =
        emu_program_make(module, &module->functions[0], &placement, &program, err);
    emu_program_free(program);
    emu_module_free(module);
    return status == PTXGEN_OK;
}

static void every_instruction_of_the_builders_table_decodes(void **state)
{
    (void)state;
    char *text = bench_file(INSTRUCTIONS, NULL);
    int count = 0, refused = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), count++) {
        ptxgen_error err;
        char *space = strchr(line, ' ');
        assert_non_null(space);
        *space = '\0';
        if (!decodes(line, space + 1, &err)) {
            print_error("%s: %s\n", space + 1, err.message);
            refused++;
        }
    }
    free(text);
    assert_true(count > 1000);
    assert_int_equal(refused, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_of_the_builders_table_decodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
