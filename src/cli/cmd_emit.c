/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen emit: a family's PTX text. */
#include "command.h"
#include "exit_code.h"
#include "options.h"
#include "output_file.h"

#include <stdlib.h>

enum { KEY_ANNOTATE = OPTION_COMMAND_KEYS, KEY_FORCE };

struct emit_options {
    unsigned flags;
    uint32_t m;       /* 0: entries for all */
    const char *path; /* "-": standard output */
    bool force;
    ptxgen_target target;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct emit_options *options = state->input;
    switch (key) {
    case KEY_ANNOTATE: options->flags |= PTX_TEXT_ANNOTATE; return 0;
    case OPTION_ROWS: parse_rows(state, arg, 1, &options->m, 1); return 0;
    case 'o': options->path = arg; return 0;
    case KEY_FORCE: options->force = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options_table[] = {
    {.name = "annotate", .key = KEY_ANNOTATE, .doc = "Keep sections, comments and register notes"},
    {.name = "m",
     .key = OPTION_ROWS,
     .arg = "M",
     .doc = "Write only the entry that serves so many tokens"},
    {.name = "output", .key = 'o', .arg = "FILE", .doc = "Write here instead of standard output"},
    {.name = OUTPUT_FORCE_NAME, .key = KEY_FORCE, .doc = OUTPUT_FORCE_DOC},
    {0},
};

static ptxgen_status write_text(const struct emit_options *options, const char *text, size_t length,
                                ptxgen_error *err)
{
    struct output_file *out;
    ptxgen_status status = output_file_open(options->path, options->force, &out, err);
    if (status != PTXGEN_OK)
        return status;
    status = output_file_write(out, text, length, err);
    if (status == PTXGEN_OK)
        return output_file_finish(out, err);
    output_file_abandon(out);
    return status;
}

static ptxgen_status emit_text(const struct family_options *family_options,
                               const struct emit_options *options, ptx_module *module,
                               ptxgen_error *err)
{
    const char *text;
    size_t length;
    ptxgen_status status = family_emit(family_options, &options->target, options->m, module, err);
    if (status == PTXGEN_OK)
        status = ptx_module_text(module, options->flags, &text, &length, err);
    if (status == PTXGEN_OK)
        status = write_text(options, text, length, err);
    return status;
}

static int emit(int argc, char **argv)
{
    static const struct argp argp = {.options = options_table, .parser = parse};
    struct emit_options options = {.path = "-", .target = default_target()};
    const struct family_arguments arguments = {.command = &argp,
                                               .input = &options,
                                               .shared = &target_argp,
                                               .shared_input = &options.target};
    struct family_options *family_options;
    parse_family(argc, argv, &arguments, &family_options);
    ptxgen_error err = {0};
    ptx_module *module = ptx_module_create(&options.target.ptx, NULL);
    ptxgen_status status =
        module ? emit_text(family_options, &options, module, &err)
               : ptxgen_fail(&err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a module");
    ptx_module_destroy(module);
    free(family_options);
    return status == PTXGEN_OK ? EXIT_OK : report_failure(&err);
}

const struct command emit_command = {"emit", "FAMILY [OPTION...]", "write a kernel's PTX text",
                                     emit};
