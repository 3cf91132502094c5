/* SPDX-License-Identifier: Apache-2.0 */
/* A scratch folder on the fastest file system there is, and what tests do to files. */
#ifndef PTXGEN_TESTS_DISPATCH_FOLDER_H
#define PTXGEN_TESTS_DISPATCH_FOLDER_H

#include <stddef.h>

enum { FOLDER_PATH = 400 };

/* Makes an empty folder, mode 0700, and writes its path. */
void folder_make(char path[FOLDER_PATH]);
/* Removes it with all that is in it, whatever modes that has; a missing one is fine. */
void folder_remove(const char *path);

/* How many names start with `prefix`, those of dot files included, "." and ".." not. */
size_t folder_count(const char *path, const char *prefix);
/* The full path of the first name in order that ends with `suffix`; false when there is none. */
_Bool folder_find(const char *path, const char *suffix, char found[FOLDER_PATH]);

/* The whole file, malloc'ed; aborts when there is none. */
char *file_read(const char *path, size_t *size);
/* Replaces the contents in place; aborts when it cannot. */
void file_write(const char *path, const void *bytes, size_t size);

#endif
