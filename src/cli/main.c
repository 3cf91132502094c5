/* SPDX-License-Identifier: Apache-2.0 */
/* The ptxgen command: finds the subcommand and hands over. */
#include "command.h"
#include "exit_code.h"
#include "output_file.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command *const commands[] = {
    &list_command,  &emit_command,    &inspect_command, &devices_command,
    &run_command,   &bench_command,   &tune_command,    &plot_command,
    &cache_command, &profile_command, &convert_command,
};
enum { COMMANDS = sizeof commands / sizeof *commands };

struct arguments {
    const struct command *command;
    int argc;
    char **argv;
};

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

/* The first word that is no option names the command; the rest is the command's. */
static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        arguments->command = find_command(arg);
        if (!arguments->command)
            argp_error(state, "no command is named \"%s\"", arg);
        arguments->argv = &state->argv[state->next - 1];
        arguments->argc = state->argc - state->next + 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS: argp_usage(state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* The commands and the exit codes, below the options in --help. */
static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text;
    char *help = NULL;
    size_t size;
    FILE *out = open_memstream(&help, &size);
    if (!out)
        return (char *)text;
    fputs("Commands (ptxgen COMMAND --help says more):\n", out);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "\n%s", EXIT_CODE_HELP);
    fclose(out);
    return help;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = parse,
        .args_doc = "COMMAND [ARGUMENT...]",
        .doc = "Writes, inspects, runs and times GPU kernels for quantised inference.\v ",
        .help_filter = help_filter,
    };
    standard_output_start();
    argp_err_exit_status = EXIT_USAGE;
    argp_program_version = "ptxgen " PTXGEN_VERSION;
    struct arguments arguments = {0};
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &arguments);

    char name[64];
    snprintf(name, sizeof name, "ptxgen %s", arguments.command->name);
    arguments.argv[0] = name;
    return arguments.command->run(arguments.argc, arguments.argv);
}
