/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_plot.h"

#include "bench_series.h"
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- gnuplot ---- */

/* Runs it; both descriptors are the caller's. */
static ptxgen_status run_gnuplot(const char *option, int in, int out, ptxgen_error *err)
{
    char *const arguments[] = {"gnuplot", (char *)option, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t ignored;
    pid_t process;
    int exit_status = 0;
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGXFSZ);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &ignored);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    int failure = posix_spawnp(&process, arguments[0], &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (failure)
        return ptxgen_fail(err, PTXGEN_ERROR_FILE,
                           "gnuplot, which draws plots, cannot be started: %s (Debian has it as "
                           "gnuplot-nox)",
                           strerror(failure));
    while (waitpid(process, &exit_status, 0) < 0 && errno == EINTR)
        continue;
    if (exit_status)
        return ptxgen_fail(err, PTXGEN_ERROR_SYSTEM, "gnuplot failed (wait status %d)",
                           exit_status);
    return PTXGEN_OK;
}

ptxgen_status bench_plot_check(ptxgen_error *err)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    ptxgen_status status = run_gnuplot("--version", nothing, nothing, err);
    close(nothing);
    return status;
}

/* ---- the script ---- */

static const struct line {
    size_t offset; /* of the time in a point */
    const char *name, *style;
} lines[] = {
    {offsetof(struct bench_point, floor), "floor: bytes read and written, or operations",
     "lw 2 dt 2 lc rgb '#888888'"},
    {offsetof(struct bench_point, peer), NULL, "lw 2 lc rgb '#d95f02'"},
    {offsetof(struct bench_point, overlapped), "ptxgen, overlapping the launch before",
     "lw 1.5 lc rgb '#80b1d3'"},
    {offsetof(struct bench_point, ours), "ptxgen", "lw 2.5 lc rgb '#1f4e9c'"},
};
enum { LINES = sizeof lines / sizeof *lines };

static double time_at(const struct bench_point *p, const struct line *line)
{
    return *(const double *)(const void *)((const char *)p + line->offset);
}

static int is_drawn(const struct bench_series *s, const struct line *line)
{
    for (size_t i = 0; i < s->count; i++)
        if (time_at(&s->points[i], line) > 0)
            return 1;
    return 0;
}

/* The peer's name without what follows in brackets. */
static void print_name(FILE *out, const struct bench_series *s, const struct line *line)
{
    const char *name = line->name ? line->name : s->peer ? s->peer : "peer";
    for (const char *c = name; *c && strncmp(c, " (", 2) != 0 && c - name < 60; c++)
        fputc(*c >= ' ' && *c <= '~' && *c != '"' && *c != '\\' ? *c : '?', out);
}

static void write_data(FILE *out, const struct bench_series *s)
{
    fputs("$times << END\n", out);
    for (size_t i = 0; i < s->count; i++) {
        fprintf(out, "%.0f", s->points[i].m);
        for (int j = 0; j < LINES; j++) {
            double time = time_at(&s->points[i], &lines[j]);
            if (time > 0)
                fprintf(out, " %.4f", time);
            else
                fputs(" NaN", out);
        }
        fputc('\n', out);
    }
    fputs("END\n", out);
}

#define CLIFF_COLOUR "rgb '#fbe3e3'"

/* How many there are. */
static int write_cliffs(FILE *out, const struct bench_series *s)
{
    struct bench_cliff c;
    int count = 0;
    for (size_t at = 0; bench_next_cliff(s, &at, &c); count++)
        fprintf(out,
                "set object rectangle from first %g, graph 0 to first %g, graph 1 behind "
                "fillcolor " CLIFF_COLOUR " fillstyle solid noborder\n",
                c.from_m / 1.01, c.to_m * 1.01);
    return count;
}

/* Times that differ a lot are on a logarithmic axis too. */
static void write_axes(FILE *out, const struct bench_series *s)
{
    double least = s->points[0].ours, most = 0;
    for (size_t i = 0; i < s->count; i++)
        for (int j = 0; j < LINES; j++) {
            double time = time_at(&s->points[i], &lines[j]);
            if (time > 0 && time < least)
                least = time;
            most = time > most ? time : most;
        }
    double last = s->points[s->count - 1].m;
    fprintf(out, "set logscale x 2\nset xrange [%g:%g]\n", s->points[0].m,
            last > s->points[0].m ? last : last + 1);
    if (most > 30 * least)
        fputs("set logscale y 10\nset mytics 10\n", out);
    else
        fputs("set yrange [0:*]\n", out);
}

static void write_script(FILE *out, const struct bench_series *s)
{
    fputs("set terminal svg size 1000,640 noenhanced font 'sans-serif,15' background '#ffffff'\n"
          "set grid xtics ytics lc rgb '#dddddd'\n"
          "set key left top reverse Left samplen 2\n"
          "set xlabel 'rows of activations'\nset ylabel 'microseconds a launch'\n",
          out);
    fprintf(out, "set title \"%s\"\n", s->name);
    write_axes(out, s);
    int cliffs = write_cliffs(out, s);
    write_data(out, s);
    const char *before = "plot ", *with = s->count > 48 ? "lines" : "linespoints pt 7 ps 0.4";
    for (int j = 0; j < LINES; j++)
        if (is_drawn(s, &lines[j])) {
            fprintf(out, "%s$times using 1:%d with %s %s title \"", before, j + 2, with,
                    lines[j].style);
            print_name(out, s, &lines[j]);
            fputc('"', out);
            before = ", ";
        }
    if (cliffs)
        fputs(", NaN with boxes fillstyle solid fillcolor " CLIFF_COLOUR " linecolor " CLIFF_COLOUR
              " title 'over 5 % slower than more rows'",
              out);
    fputc('\n', out);
}

/* ---- drawing ---- */

static ptxgen_status draw_to(const struct bench_series *s, const struct output_file *out,
                             ptxgen_error *err)
{
    FILE *script = tmpfile();
    if (script)
        write_script(script, s);
    ptxgen_status status;
    if (!script || fflush(script) != 0 || ferror(script))
        status = ptxgen_fail(err, PTXGEN_ERROR_FILE, "the script for gnuplot cannot be written: %s",
                             strerror(errno));
    else {
        rewind(script);
        /* -d: nobody's settings */
        status = run_gnuplot("-d", fileno(script), output_file_descriptor(out), err);
    }
    if (script)
        fclose(script);
    return status;
}

static ptxgen_status draw(const struct bench_series *s, const char *path, bool force,
                          ptxgen_error *err)
{
    struct output_file *out;
    ptxgen_status status = output_file_open(path, force, &out, err);
    if (status != PTXGEN_OK)
        return status;
    status = draw_to(s, out, err);
    if (status == PTXGEN_OK)
        return output_file_finish(out, err);
    output_file_abandon(out);
    return status;
}

ptxgen_status bench_plot(const cJSON *bench, const char *path, bool force, ptxgen_error *err)
{
    struct bench_series s, other;
    size_t row = 0;
    ptxgen_status status = bench_series_read(bench, &row, &s, err);
    if (status != PTXGEN_OK)
        return status;
    if (bench_series_read(bench, &row, &other, NULL) == PTXGEN_ERROR_NOT_FOUND) {
        status = draw(&s, path, force, err);
    } else {
        bench_series_free(&other);
        status = ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                             "a plot has one shape, but the JSON has more than \"%s\"", s.name);
    }
    bench_series_free(&s);
    return status;
}
