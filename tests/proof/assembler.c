/* SPDX-License-Identifier: Apache-2.0 */
#include "assembler.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- running one ---- */

/* Runs it on files; what it printed. *status is its exit status. Code that is generated need not
 * be good. */
static FILE *run(const struct assembler *a, const char *arch_option, char *const *files,
                 size_t count, int *status)
{
    FILE *out = tmpfile();
    char *arguments[count + 6];
    if (!out)
        abort();
    memcpy(arguments, (char *[]){a->path, (char *)arch_option, "-O1", "-o", "/dev/null"},
           5 * sizeof *arguments);
    memcpy(arguments + 5, files, count * sizeof *files);
    arguments[count + 5] = NULL;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fileno(out), 1);
        dup2(fileno(out), 2);
        execv(a->path, arguments);
        _exit(127);
    }
    int result = 0;
    if (pid < 0 || waitpid(pid, &result, 0) != pid)
        abort();
    *status = WIFEXITED(result) ? WEXITSTATUS(result) : 128;
    rewind(out);
    return out;
}

/* ---- finding ---- */

static int read_release(const struct assembler *a)
{
    int status, major = 0, minor = 0;
    FILE *out = run(a, "-arch=sm_80", (char *[]){"--version"}, 1, &status);
    char line[512];
    while (fgets(line, sizeof line, out)) {
        const char *s = strstr(line, "release ");
        if (s)
            sscanf(s, "release %d.%d", &major, &minor);
    }
    fclose(out);
    return status == 0 ? 10 * major + minor : 0;
}

static int read_newest(const struct assembler *a)
{
    for (int version = 99; version >= 70; version--)
        if (assembler_knows(a, "-arch=sm_80", "sm_80", version))
            return version;
    return 0;
}

static size_t add(struct assembler *list, size_t count, const char *path)
{
    struct assembler a = {.path = strdup(path)};
    bool usable = count < MAX_ASSEMBLERS && a.path && access(path, X_OK) == 0;
    a.release = usable ? read_release(&a) : 0;
    for (size_t i = 0; i < count; i++)
        usable = usable && list[i].release != a.release;
    if (!usable || !a.release) {
        free(a.path);
        return count;
    }
    a.newest = read_newest(&a);
    list[count] = a;
    return count + 1;
}

static size_t add_list(struct assembler *list, size_t count, const char *paths, const char *suffix)
{
    while (paths && *paths) {
        size_t length = strcspn(paths, ":");
        char path[4096];
        snprintf(path, sizeof path, "%.*s%s", (int)length, paths, suffix);
        count = add(list, count, path);
        paths += length + (paths[length] == ':');
    }
    return count;
}

size_t assemblers_find(struct assembler *out)
{
    const char *named = getenv("PTXAS");
    if (named && *named)
        return add_list(out, 0, named, "");
    size_t count = add_list(out, 0, getenv("PATH"), "/ptxas");
    glob_t found;
    if (glob("/usr/local/cuda*/bin/ptxas", 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            count = add(out, count, found.gl_pathv[i]);
        globfree(&found);
    }
    return count;
}

/* ---- targets ---- */

bool assembler_knows(const struct assembler *a, const char *arch, const char *target, int version)
{
    char path[] = "/tmp/ptxgen-proof-XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        abort();
    fprintf(f, ".version %d.%d\n.target %s\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n",
            version / 10, version % 10, target);
    fclose(f);
    int status;
    fclose(run(a, arch, (char *[]){path}, 1, &status));
    unlink(path);
    return status == 0;
}

/* Its name of a target without the prefix. What PTX 9.0 calls sm_110 was sm_101. */
bool assembler_arch(const struct assembler *a, const ptx_target *target, char *chip)
{
    const int sm[] = {target->sm, target->sm == 101 && target->suffix != 'a' ? 110 : target->sm};
    for (size_t i = 0; i < 2; i++) {
        char arch[32], name[32], suffix[2] = {target->suffix, 0};
        snprintf(chip, 16, "%d%s", sm[i], suffix);
        snprintf(arch, sizeof arch, "-arch=sm_%s", chip);
        snprintf(name, sizeof name, "sm_%d%s", target->sm, suffix);
        if (assembler_knows(a, arch, name, a->newest))
            return true;
    }
    return false;
}

/* ---- judging ---- */

enum { PATH_BYTES = 64, FIRST_FILE_KERNELS = 25 };

struct judgement {
    const struct proof_text *text;
    uint8_t *keep, *shown;
    char **why;
    size_t refused;
    size_t file_kernels;
    size_t *resume; /* by file: behind the line at which a syntax error ended its reading; or 0 */
    char folder[PATH_BYTES];
    char (*paths)[PATH_BYTES]; /* by file */
};

static size_t count_files(const struct judgement *j)
{
    return (j->text->kernel_count + j->file_kernels - 1) / j->file_kernels;
}

static struct text_part file_of(const struct judgement *j, size_t file)
{
    return proof_text_file(j->text, file, j->file_kernels);
}

static void *allocate(size_t count, size_t bytes)
{
    void *p = calloc(count, bytes);
    if (!p)
        abort();
    return p;
}

static void refuse(struct judgement *j, size_t probe, const char *message)
{
    j->refused += j->keep[probe];
    j->keep[probe] = 0;
    free(j->why[probe]);
    j->why[probe] = strndup(message, strcspn(message, "\n"));
}

/* An instruction whose plainest form is a syntax error: its other forms need not be read. */
static void refuse_forms(struct judgement *j, const struct text_part *file, size_t line,
                         const char *message)
{
    const struct probe *list = j->text->list->probes;
    long plain = j->text->lines[line].probe;
    if (plain < 0 || (plain > 0 && list[plain - 1].op == list[plain].op))
        return;
    for (size_t p = (size_t)plain; p < file->end_probe && list[p].op == list[plain].op; p++)
        refuse(j, p, message);
}

/* An error at a line of no probe (a declaration) condemns the probes of its kernel. */
static void refuse_line(struct judgement *j, size_t number, const char *message)
{
    const struct text_line *line = &j->text->lines[number];
    if (line->probe >= 0) {
        refuse(j, (size_t)line->probe, message);
        return;
    }
    const struct text_part *k = &j->text->kernels[line->kernel];
    for (size_t p = k->first_probe; p < k->end_probe; p++)
        refuse(j, p, message);
}

/* The place in "ptxas FOLDER/FILE.ptx, line N; error : …". */
static bool find_place(const struct judgement *j, const char *message, size_t *file, size_t *number)
{
    const char *path = strstr(message, j->folder);
    return path && sscanf(path + strlen(j->folder), "/%zu.ptx, line %zu;", file, number) == 2 &&
           *file < count_files(j);
}

/* An error in the text of a file. */
static bool read_error(struct judgement *j, size_t file, size_t number, const char *message)
{
    const char *text = strchr(message, ':');
    struct text_part part = file_of(j, file);
    size_t line = part.first_line + number - 1 - TEXT_HEADER_LINES;
    if (line >= part.end_line)
        return false;
    text = text ? text + 2 : message;
    refuse_line(j, line, text);
    if (strstr(message, "fatal ")) {
        j->resume[file] = line + 1;
        refuse_forms(j, &part, line, text);
    }
    return true;
}

/* False at an error that has no place. Modifiers read before a syntax error are taken for the next
 * file's first instruction, which is in its header. */
static bool read_messages(struct judgement *j, FILE *out)
{
    char message[1024];
    bool placed = true, interrupted = false;
    while (fgets(message, sizeof message, out)) {
        const char *fatal = strstr(message, "fatal ");
        size_t file, number;
        if (!fatal && !strstr(message, "error "))
            continue;
        if (!find_place(j, message, &file, &number))
            placed = placed && strstr(message, "aborted due to errors");
        else if (number <= TEXT_HEADER_LINES)
            placed = placed && interrupted && !fatal;
        else
            placed = read_error(j, file, number, message) && placed;
        interrupted = interrupted || fatal;
    }
    return placed;
}

/* One run over the probes of `shown`. */
static bool judge_once(const struct assembler *a, const char *arch, struct judgement *j,
                       int version, const char *target)
{
    const struct proof_text *text = j->text;
    bool generates = strstr(arch, "=sm_") != NULL;
    char *paths[count_files(j)];
    size_t count = 0;
    for (size_t f = 0; f < count_files(j); f++) {
        struct text_part part = file_of(j, f);
        if (proof_text_write(text, &part, version, target, j->shown, generates, j->paths[f]))
            paths[count++] = j->paths[f];
    }
    if (count == 0)
        return true;
    int status;
    FILE *out = run(a, arch, paths, count, &status);
    size_t before = j->refused;
    memset(j->resume, 0, count_files(j) * sizeof *j->resume);
    bool placed = read_messages(j, out);
    bool sound = placed && (status == 0 || j->refused > before);
    if (!sound) {
        fprintf(stderr, "%s %s, PTX %d.%d (text kept in %s):\n", a->path, arch, version / 10,
                version % 10, j->folder);
        rewind(out);
        for (int c; (c = getc(out)) != EOF;)
            putc(c, stderr);
    }
    fclose(out);
    return sound;
}

/* What stands behind a syntax error in its file has not been judged; false when that is nothing. */
static bool show_unread(struct judgement *j)
{
    const struct proof_text *text = j->text;
    bool any = false;
    memset(j->shown, 0, text->list->count);
    for (size_t f = 0; f < count_files(j); f++)
        for (size_t i = j->resume[f], end = file_of(j, f).end_line; i && i < end; i++)
            if (text->lines[i].probe >= 0 && j->keep[text->lines[i].probe]) {
                j->shown[text->lines[i].probe] = 1;
                any = true;
            }
    return any;
}

/* Where there are syntax errors there are more: what is left is read in the smallest files. Code is
 * generated only for text without errors, so that goes on until it has none. */
static bool show_next(struct judgement *j, bool generates, bool refused)
{
    if (!generates) {
        bool any = show_unread(j);
        j->file_kernels = 1;
        return any;
    }
    memcpy(j->shown, j->keep, j->text->list->count);
    return refused;
}

bool assembler_judge(const struct assembler *a, const char *arch, const struct proof_text *text,
                     int version, const char *target, uint8_t *keep, char **why)
{
    struct judgement j = {.text = text,
                          .keep = keep,
                          .shown = allocate(text->list->count, 1),
                          .why = why,
                          .file_kernels = FIRST_FILE_KERNELS,
                          .resume = allocate(text->kernel_count, sizeof *j.resume),
                          .folder = "/tmp/ptxgen-proof-XXXXXX",
                          .paths = allocate(text->kernel_count, sizeof *j.paths)};
    if (!mkdtemp(j.folder))
        abort();
    for (size_t f = 0; f < text->kernel_count; f++)
        snprintf(j.paths[f], sizeof j.paths[f], "%.32s/%zu.ptx", j.folder, f);
    memcpy(j.shown, keep, text->list->count);
    bool sound, again;
    do {
        size_t before = j.refused;
        sound = judge_once(a, arch, &j, version, target);
        again = sound && show_next(&j, strstr(arch, "=sm_") != NULL, j.refused > before);
    } while (again);
    for (size_t f = 0; f < text->kernel_count && sound; f++)
        unlink(j.paths[f]);
    if (sound)
        rmdir(j.folder);
    free(j.shown);
    free(j.resume);
    free(j.paths);
    return sound;
}
