/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build-time program: expands instr.def and modifiers.def into
 *     generate header > instr.h      the typed emitters
 *     generate table  > table.inc    the table as C data (see table.h)
 * It stops with a message at the first line that it does not understand.
 */
#include "instruction.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "header"))
        print_header();
    else if (argc == 2 && !strcmp(argv[1], "table"))
        print_table();
    else {
        fprintf(stderr, "usage: generate header|table\n");
        return 1;
    }
    return fflush(stdout) ? 1 : 0;
}
