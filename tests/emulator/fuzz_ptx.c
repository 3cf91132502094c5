/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the parser and the decoder take any bytes. A refusal has a sentence with line and
 * column; nothing is read out of bounds, nothing hangs. Built with libFuzzer, or with replay_main.c
 * to run a kept corpus; meson.build says how.
 */
#include "src/emulator/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(const ptxgen_error *err)
{
    unsigned line, column;
    if (sscanf(err->message, "line %u, column %u:", &line, &column) != 2)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct emu_module *module = NULL;
    ptxgen_error err = {0};
    if (emu_module_parse((const char *)data, size, &module, &err) != PTXGEN_OK) {
        check_refusal(&err);
        return 0;
    }
    struct emu_placement placement = {NULL, NULL};
    for (size_t i = 0; i < module->function_count; i++) {
        struct emu_program *program = NULL;
        const struct emu_function *function = &module->functions[i];
        if (!function->is_entry || !function->has_body)
            continue;
        if (emu_program_make(module, function, &placement, &program, &err) != PTXGEN_OK)
            check_refusal(&err);
        else
            emu_program_free(program);
    }
    emu_module_free(module);
    return 0;
}
