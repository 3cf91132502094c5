/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A file under a name of its own until it is whole, and a folder for files of another program.
 * Whatever ends the process but SIGKILL removes them: signals that end a process are caught where
 * they had their default action, and end it still.
 */
#ifndef PTXGEN_CLI_TEMPORARY_FILE_H
#define PTXGEN_CLI_TEMPORARY_FILE_H

#include <sys/stat.h>

struct temporary_file;

/**
 * Creates one in the folder of `target`, with the owner and the permissions of `old`, or those
 * of any new file. NULL with errno on failure; *fd, open for writing, is the caller's.
 */
struct temporary_file *temporary_file_create(const char *target, const struct stat *old, int *fd);
/** Removes it unless it has got its name, and releases it. NULL does nothing. */
void temporary_file_remove(struct temporary_file *temporary);

/** Gives it the name of the target, in place of a file that has it. 0, or -1 with errno. */
int temporary_file_rename(struct temporary_file *temporary, const char *target);
/** Gives it the name of the target unless a file has it: -1 and EEXIST. */
int temporary_file_link(struct temporary_file *temporary, const char *target);
/** Brings the names in the target's folder to the disk. 0, or -1 with errno. */
int temporary_file_sync_folder(const char *target);

enum { TEMPORARY_FOLDER_FILES = 3 };
/** Paths, which stay where they are until the folder is removed. */
struct temporary_folder {
    char *path;                           /**< ends with XXXXXX, in place of which it gets a name */
    char *files[TEMPORARY_FOLDER_FILES]; /**< those in it, which need not be there */
};
/**
 * Creates the folder, for its owner alone; then `name` fills in the paths of its files. 0, or -1
 * with errno.
 */
int temporary_folder_create(struct temporary_folder *folder,
                            void (*name)(struct temporary_folder *folder));
/** Removes the files that are there, and the folder. */
void temporary_folder_remove(struct temporary_folder *folder);

#endif
