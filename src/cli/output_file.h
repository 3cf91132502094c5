/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The one way in which the command writes files.
 *
 * A regular file, new or old, is written under another name in the same folder and takes its own
 * name when it is whole and on the disk: whoever reads the name finds all of the old file or all
 * of the new one, and a failure or a signal leaves the old file and nothing else. An old file is
 * replaced only with `force`; the new one has its permissions and, where that is allowed, its
 * owner. A symbolic link stays, and the file that it leads to is written.
 *
 * A pipe or a character device is written as it is, without `force`, and may have received a part
 * of the output when a failure comes; a pipe without a reader is refused after a second. Block
 * devices, sockets and folders are refused. "-" is the standard output, and so are /dev/stdout and
 * /dev/fd/N the descriptors that they name.
 *
 *     struct output_file *out;
 *     if (output_file_open("kernel.ptx", force, &out, err) != PTXGEN_OK)
 *         …
 *     status = output_file_write(out, text, length, err);
 *     if (status == PTXGEN_OK)
 *         status = output_file_finish(out, err);
 *     else
 *         output_file_abandon(out);
 */
#ifndef PTXGEN_CLI_OUTPUT_FILE_H
#define PTXGEN_CLI_OUTPUT_FILE_H

#include <ptxgen/status.h>
#include <stdbool.h>
#include <stddef.h>

/** The option that every command with an output file has. */
#define OUTPUT_FORCE_NAME "force"
#define OUTPUT_FORCE_DOC "Replace the output file when there is one already"

struct output_file;

/** Refuses what output_file_open would refuse, without opening a pipe; leaves nothing. */
ptxgen_status output_file_check(const char *path, bool force, ptxgen_error *err);
/** Failures are PTXGEN_ERROR_FILE, or PTXGEN_ERROR_OUT_OF_MEMORY, and name the path. */
ptxgen_status output_file_open(const char *path, bool force, struct output_file **out,
                               ptxgen_error *err);
ptxgen_status output_file_write(struct output_file *out, const void *data, size_t bytes,
                                ptxgen_error *err);
/** For a process that writes; nothing may have been written by output_file_write. */
int output_file_descriptor(const struct output_file *out);
/** Publishes and releases the file, whatever happens. */
ptxgen_status output_file_finish(struct output_file *out, ptxgen_error *err);
/** Removes what was written and releases the file. NULL does nothing. */
void output_file_abandon(struct output_file *out);

/** Whether `path` means the standard output, where a command must not print anything else. */
bool output_file_is_stdout(const char *path);

/**
 * To be called once, before anything is written: at the end of the process the standard output is
 * flushed and closed, and when a write to it has failed the process says so and exits with
 * EXIT_FILE. A file that outgrows its limit (SIGXFSZ) fails like any other. Descriptors 0 to 2
 * that are closed are occupied, so that no file of the command becomes one of them.
 */
void standard_output_start(void);

#endif
