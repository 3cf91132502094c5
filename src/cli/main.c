/* SPDX-License-Identifier: Apache-2.0 */
/* The ptxgen command: finds the subcommand and hands over. */
#include "command.h"
#include "exit_code.h"
#include "options.h"
#include "output_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command *const commands[] = {
    &list_command,  &emit_command,    &inspect_command, &devices_command,
    &run_command,   &bench_command,   &tune_command,    &plot_command,
    &cache_command, &profile_command, &convert_command, &files_command,
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

/* What --help prints: the purpose, and below the options the commands and the exit codes. */
static const char *help_text(void)
{
    static char text[4096];
    size_t size = sizeof text,
           used = (size_t)snprintf(
               text, size,
               "Writes, inspects, runs and times GPU kernels for quantised inference.\v"
               "Commands (ptxgen COMMAND --help says more):\n");
    for (int i = 0; i < COMMANDS && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "  %-8s %s\n", commands[i]->name,
                                 commands[i]->summary);
    if (used < size)
        snprintf(text + used, size - used, "\n%s", EXIT_CODE_HELP);
    return text;
}

int main(int argc, char **argv)
{
    const struct argp argp = {
        .parser = parse, .args_doc = "COMMAND [ARGUMENT...]", .doc = help_text()};
    standard_output_start();
    argp_err_exit_status = EXIT_USAGE;
    argp_program_version = "ptxgen " PTXGEN_VERSION;
    struct arguments arguments = {0};
    parse_arguments(&argp, argc, argv, ARGP_IN_ORDER, &arguments);

    char name[64];
    snprintf(name, sizeof name, "ptxgen %s", arguments.command->name);
    arguments.argv[0] = name;
    return arguments.command->run(arguments.argc, arguments.argv);
}
