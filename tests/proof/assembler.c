/* SPDX-License-Identifier: Apache-2.0 */
#include "assembler.h"

#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- running one ---- */

/* Runs it on a file; what it printed. *status is its exit status. */
static FILE *run(const struct assembler *a, const char *arch_option, const char *file, int *status)
{
    FILE *out = tmpfile();
    if (!out)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fileno(out), 1);
        dup2(fileno(out), 2);
        execl(a->path, a->path, arch_option, file, "-o", "/dev/null", (char *)NULL);
        _exit(127);
    }
    int result = 0;
    if (pid < 0 || waitpid(pid, &result, 0) != pid)
        abort();
    *status = WIFEXITED(result) ? WEXITSTATUS(result) : 128;
    rewind(out);
    return out;
}

static FILE *open_input(char *path)
{
    strcpy(path, "/tmp/ptxgen-proof-XXXXXX");
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        abort();
    return f;
}

/* ---- finding ---- */

static int read_release(const struct assembler *a)
{
    int status, major = 0, minor = 0;
    FILE *out = run(a, "-arch=sm_80", "--version", &status);
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
    char path[64];
    FILE *f = open_input(path);
    fprintf(f, ".version %d.%d\n.target %s\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n",
            version / 10, version % 10, target);
    fclose(f);
    int status;
    fclose(run(a, arch, path, &status));
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

struct judgement {
    const struct proof_text *text;
    const struct probe *list;
    size_t count;
    uint8_t *keep, *shown;
    char **why;
    size_t refused;
    size_t resume; /* the first line that a syntax error kept it from reading; 0: none */
};

static void refuse(struct judgement *j, size_t probe, const char *message)
{
    j->refused += j->keep[probe];
    j->keep[probe] = 0;
    free(j->why[probe]);
    j->why[probe] = strndup(message, strcspn(message, "\n"));
}

/* An instruction whose plainest form is a syntax error: its other forms need not be read. */
static void refuse_forms(struct judgement *j, size_t line, const char *message)
{
    long plain = line > 3 && line <= j->text->line_count ? j->text->lines[line - 1].probe : -1;
    if (plain < 0 || (plain > 0 && j->list[plain - 1].op == j->list[plain].op))
        return;
    for (size_t p = (size_t)plain; p < j->count && j->list[p].op == j->list[plain].op; p++)
        refuse(j, p, message);
}

/* An error at a line of no probe (a declaration) condemns the probes of its kernel. */
static bool refuse_line(struct judgement *j, size_t number, const char *message)
{
    if (number < 4 || number > j->text->line_count)
        return false;
    const struct text_line *line = &j->text->lines[number - 1];
    if (line->probe >= 0) {
        refuse(j, (size_t)line->probe, message);
        return true;
    }
    const struct text_kernel *k = &j->text->kernels[line->kernel];
    for (size_t p = k->first_probe; p < k->end_probe; p++)
        refuse(j, p, message);
    return true;
}

/* Reads "ptxas FILE, line N; error : …". False at a message that has no place. */
static bool read_messages(struct judgement *j, FILE *out)
{
    char message[1024];
    bool placed = true;
    while (fgets(message, sizeof message, out)) {
        const char *line = strstr(message, ", line ");
        const char *kind = strstr(message, "error "), *fatal = strstr(message, "fatal ");
        if (line && (kind || fatal)) {
            size_t number = strtoul(line + 7, NULL, 10);
            const char *text = strchr(line, ':');
            placed = refuse_line(j, number, text ? text + 2 : line) && placed;
            if (fatal) {
                j->resume = number;
                refuse_forms(j, number, text ? text + 2 : line);
            }
        } else if ((kind || fatal) && !strstr(message, "aborted due to errors"))
            placed = false;
    }
    return placed;
}

/* One run over the probes of `shown`. */
static bool judge_once(const struct assembler *a, const char *arch, struct judgement *j,
                       int version, const char *target)
{
    char path[64];
    FILE *f = open_input(path);
    proof_text_write(j->text, version, target, j->shown, strstr(arch, "=sm_") != NULL, f);
    fclose(f);
    int status;
    FILE *out = run(a, arch, path, &status);
    size_t before = j->refused;
    j->resume = 0;
    bool placed = read_messages(j, out);
    bool sound = placed && (status == 0 || j->refused > before);
    if (!sound) {
        fprintf(stderr, "%s %s, PTX %d.%d (text kept in %s):\n", a->path, arch, version / 10,
                version % 10, path);
        rewind(out);
        for (int c; (c = getc(out)) != EOF;)
            putc(c, stderr);
    } else
        unlink(path);
    fclose(out);
    return sound;
}

/* A syntax error ends a run: what stood before it has been judged, what stands after it is put to
 * the next run. Code is generated only for text without errors, so that goes on until it has none.
 */
bool assembler_judge(const struct assembler *a, const char *arch, const struct proof_text *text,
                     int version, const char *target, uint8_t *keep, char **why)
{
    size_t probes = text->list->count;
    struct judgement j = {.text = text,
                          .list = text->list->probes,
                          .count = probes,
                          .keep = keep,
                          .shown = malloc(probes),
                          .why = why};
    if (!j.shown)
        abort();
    memcpy(j.shown, keep, probes);
    bool sound = true, whole = true, generates = strstr(arch, "=sm_") != NULL;
    for (bool again = true; again && sound;) {
        size_t before = j.refused;
        sound = judge_once(a, arch, &j, version, target);
        again = j.resume || (generates && (j.refused > before || !whole));
        whole = !j.resume;
        memcpy(j.shown, keep, probes);
        for (size_t i = 3; i < j.resume; i++)
            if (text->lines[i].probe >= 0)
                j.shown[text->lines[i].probe] = 0;
    }
    free(j.shown);
    return sound;
}
