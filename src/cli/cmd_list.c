/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen list: the kernel families, or the builder's instructions. */
#include "command.h"
#include "options.h"

#include <stdio.h>

enum { KEY_INSTRUCTIONS = OPTION_COMMAND_KEYS };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    if (key != KEY_INSTRUCTIONS)
        return ARGP_ERR_UNKNOWN;
    *(bool *)state->input = true;
    return 0;
}

static void print_instructions(void)
{
    char name[PTX_NAME_SIZE], text[1024];
    for (size_t i = 0; i < ptx_instruction_count(); i++) {
        ptx_instruction_name(i, name, sizeof name);
        ptx_instruction_describe(i, text, sizeof text);
        printf("ptx_%s\n    %s\n", name, text);
    }
}

static void print_families(void)
{
    const struct family *family;
    for (size_t i = 0; (family = family_at(i)); i++)
        printf("%-12s %s\n", family->name, family->summary);
}

static int list(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {.name = "instructions",
         .key = KEY_INSTRUCTIONS,
         .doc = "Print the reference page of the PTX builder instead"},
        {0},
    };
    static const struct argp argp = {
        .options = options, .parser = parse, .doc = "Prints the kernel families."};
    bool instructions = false;
    parse_arguments(&argp, argc, argv, 0, &instructions);
    if (instructions)
        print_instructions();
    else
        print_families();
    return 0;
}

const struct command list_command = {"list", "[--instructions]",
                                     "kernel families, or the builder's instructions", list};
