/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Sections of annotated PTX text: the comment line "// ---- name ----" begins one, which goes on to
 * the next or to the kernel's end. What stands before the first is the section "start".
 */
#ifndef PTXGEN_CLI_SECTIONS_H
#define PTXGEN_CLI_SECTIONS_H

#include <stdbool.h>

/** A place in a kernel's body, and the section that it is in. */
struct section_reader {
    const char *at; /**< the next line */
    char name[128];
};

/** To the start of a kernel's body; false when the text has no kernel of that name. */
bool section_reader_start(struct section_reader *reader, const char *text, const char *kernel);
/** On to the instruction that is written so; false when the kernel ends before it. */
bool section_reader_seek(struct section_reader *reader, const char *instruction);

#endif
