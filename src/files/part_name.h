/* SPDX-License-Identifier: Apache-2.0 */
/** Names of files that are parts of one: "model-00002-of-00005.gguf". */
#ifndef PTXGEN_FILES_PART_NAME_H
#define PTXGEN_FILES_PART_NAME_H

#include <stdbool.h>
#include <stddef.h>

struct part_name {
    size_t stem;            /**< length of what stands before "-00002", with its folder */
    unsigned number, count; /**< 2 of 5; both from 1 to 99999, number <= count */
};

/** Whether the path ends so; the extension includes its dot. */
bool part_name_read(const char *path, const char *extension, struct part_name *name);
/** The path of another part, for free(); NULL without memory. */
char *part_name_write(const char *path, const char *extension, const struct part_name *name,
                      unsigned number);

/** "FOLDER/NAME", where `beside` lies in that folder, for free(); NULL without memory. */
char *path_beside(const char *beside, const char *name);
/** The last component. */
const char *path_name(const char *path);

#endif
