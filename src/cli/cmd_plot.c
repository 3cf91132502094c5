/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen plot: what bench --json measured elsewhere, as a chart. */
#include "bench_plot.h"
#include "bench_series.h"
#include "command.h"
#include "exit_code.h"
#include "options.h"
#include "output_file.h"
#include "../files/mapped_file.h"

#include <cJSON.h>
#include <errno.h>
#include <stdio.h>

enum { KEY_FORCE = OPTION_COMMAND_KEYS };

struct plot_options {
    const char *json, *svg;
    bool force;
};

static const struct argp_option options_table[] = {
    {.name = OUTPUT_FORCE_NAME, .key = KEY_FORCE, .doc = OUTPUT_FORCE_DOC},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct plot_options *o = state->input;
    switch (key) {
    case KEY_FORCE: o->force = true; return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 1)
            return ARGP_ERR_UNKNOWN;
        *(state->arg_num ? &o->svg : &o->json) = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->svg)
            argp_error(state, "BENCH.json and FILE.svg must be named");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* cJSON returns NULL for both failures; a failed allocation also sets errno, a broken text does
 * not. */
static ptxgen_status read_json(const char *path, const struct mapped_file *file, cJSON **json,
                               ptxgen_error *err)
{
    const char *end;
    errno = 0;
    *json = cJSON_ParseWithLengthOpts((const char *)file->data, file->size, &end, false);
    if (*json)
        return PTXGEN_OK;
    return errno == ENOMEM ? ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                                         "no memory for the contents of %s", path)
                           : ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s is not JSON", path);
}

static ptxgen_status draw(const struct plot_options *o, ptxgen_error *err)
{
    struct mapped_file file;
    ptxgen_status status = mapped_file_open(o->json, &file, err);
    if (status != PTXGEN_OK)
        return status;
    cJSON *bench;
    status = read_json(o->json, &file, &bench, err);
    mapped_file_close(&file);
    if (status != PTXGEN_OK)
        return status;
    status = bench_plot(bench, o->svg, o->force, err);
    if (status == PTXGEN_OK)
        status = bench_print_cliffs(output_file_is_stdout(o->svg) ? stderr : stdout, bench, err);
    cJSON_Delete(bench);
    return status;
}

static int plot(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options_table,
        .parser = parse,
        .args_doc = "BENCH.json FILE.svg",
        .doc = "Draws time against M from what `ptxgen bench FAMILY --json` printed for one shape, "
               "with gnuplot, and names each M that takes more than 5 % longer than a larger one."};
    struct plot_options o = {.json = NULL};
    ptxgen_error err = {0};
    parse_arguments(&argp, argc, argv, 0, &o);
    return draw(&o, &err) == PTXGEN_OK ? EXIT_OK : report_failure(&err);
}

const struct command plot_command = {"plot", "BENCH.json FILE.svg",
                                     "draw what bench --json has measured", plot};
