/* SPDX-License-Identifier: Apache-2.0 */
#include "ptxas.h"

#include "temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PATH_SIZE = 4096 + 32, LOG_SIZE = 700 };

/* A folder of its own for each run. */
struct files {
    struct temporary_folder folder; /* first, and its paths are those below */
    char path[PATH_SIZE], text[PATH_SIZE + 16], cubin[PATH_SIZE + 16], log[PATH_SIZE + 16];
};

static void name_files(struct temporary_folder *folder)
{
    struct files *files = (struct files *)folder;
    snprintf(files->text, sizeof files->text, "%s/text.ptx", files->path);
    snprintf(files->cubin, sizeof files->cubin, "%s/code.cubin", files->path);
    snprintf(files->log, sizeof files->log, "%s/log", files->path);
}

static ptxgen_status make_folder(struct files *files, ptxgen_error *err)
{
    const char *variable = getenv("TMPDIR");
    const char *parent = variable && *variable ? variable : "/tmp";
    files->folder = (struct temporary_folder){files->path, {files->text, files->cubin, files->log}};
    snprintf(files->path, sizeof files->path, "%.4096s/ptxgen-pack.XXXXXX", parent);
    if (temporary_folder_create(&files->folder, name_files) != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_FILE, "no folder for the assembler in %s: %s", parent,
                           strerror(errno));
    return PTXGEN_OK;
}

static ptxgen_status write_text(const char *path, const char *text, ptxgen_error *err)
{
    FILE *file = fopen(path, "w");
    bool whole = file && fputs(text, file) >= 0;
    whole &= file && fclose(file) == 0;
    return whole ? PTXGEN_OK
                 : ptxgen_fail(err, PTXGEN_ERROR_FILE,
                               "a text for the assembler cannot be written to %s: %s", path,
                               strerror(errno));
}

/* Fills the error with the beginning of what the assembler printed. */
static ptxgen_status fail_with_log(const char *program, const char *sm, const char *path,
                                   ptxgen_error *err)
{
    char log[LOG_SIZE + 1] = "";
    FILE *file = fopen(path, "r");
    if (file) {
        log[fread(log, 1, LOG_SIZE, file)] = '\0';
        fclose(file);
    }
    log[strcspn(log, "\n")] = '\0';
    return ptxgen_fail(err, PTXGEN_ERROR_JIT, "%.200s refuses a text for %s: %s", program, sm, log);
}

static ptxgen_status run(const char *program, const char *sm, const struct files *files,
                         ptxgen_error *err)
{
    char arch[32];
    snprintf(arch, sizeof arch, "-arch=%s", sm);
    const char *const words[] = {program, arch, files->text, "-o", files->cubin, NULL};
    posix_spawn_file_actions_t actions;
    pid_t process;
    int state = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, files->log,
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    int failure =
        posix_spawnp(&process, program, &actions, NULL, (char *const *)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure)
        return ptxgen_fail(err, PTXGEN_ERROR_FILE, "the assembler %s cannot be run: %s", program,
                           strerror(failure));
    pid_t ended;
    while ((ended = waitpid(process, &state, 0)) < 0 && errno == EINTR)
        ;
    return ended == process && WIFEXITED(state) && WEXITSTATUS(state) == 0
               ? PTXGEN_OK
               : fail_with_log(program, sm, files->log, err);
}

static ptxgen_status read_cubin(const char *path, ptxgen_cubin *cubin, ptxgen_error *err)
{
    struct stat facts;
    FILE *file = fopen(path, "r");
    bool whole = file && fstat(fileno(file), &facts) == 0;
    if (whole) {
        cubin->size = (size_t)facts.st_size;
        cubin->bytes = malloc(cubin->size + 1);
        whole = cubin->bytes && fread(cubin->bytes, 1, cubin->size, file) == cubin->size;
    }
    if (file)
        fclose(file);
    if (!whole)
        ptxgen_cubin_free(cubin);
    return whole ? PTXGEN_OK
                 : ptxgen_fail(err, PTXGEN_ERROR_FILE, "the assembler's %s cannot be read", path);
}

ptxgen_status ptxas_assemble(void *user, const char *ptx, const char *sm, ptxgen_cubin *cubin,
                             ptxgen_error *err)
{
    const char *program = user;
    struct files files;
    ptxgen_status status = make_folder(&files, err);
    if (status != PTXGEN_OK)
        return status;
    status = write_text(files.text, ptx, err);
    if (status == PTXGEN_OK)
        status = run(program, sm, &files, err);
    if (status == PTXGEN_OK)
        status = read_cubin(files.cubin, cubin, err);
    temporary_folder_remove(&files.folder);
    return status;
}
