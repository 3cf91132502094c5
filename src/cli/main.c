/* SPDX-License-Identifier: Apache-2.0 */
/* The ptxgen command: finds the subcommand and hands over. */
#include "command.h"
#include "exit_code.h"
#include "options.h"
#include "output_file.h"

#include "../files/nearest.h"

#include <ptxgen/version.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int help(int argc, char **argv);

static const struct command help_command = {"help", "[COMMAND [FAMILY]]",
                                            "what a command does, and its options", help};
static const struct command *const commands[] = {
    &list_command,    &emit_command,  &inspect_command, &devices_command, &run_command,
    &bench_command,   &tune_command,  &plot_command,    &cache_command,   &profile_command,
    &convert_command, &files_command, &pack_command,    &doctor_command,  &help_command,
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

/* Ends the program with a usage error that has the nearest names. */
static void refuse_command(struct argp_state *state, const char *name)
{
    struct nearest nearest = {.wanted = name};
    for (int i = 0; i < COMMANDS; i++)
        nearest_offer(&nearest, commands[i]->name, strlen(commands[i]->name));
    argp_error(state, "no command is named \"%s\"%s", name, nearest_text(&nearest).text);
}

/* The first word that is no option names the command; the rest is the command's. */
static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        arguments->command = find_command(arg);
        if (!arguments->command)
            refuse_command(state, arg);
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

/* Reads the command's name, and runs it with the rest. */
static int run(int argc, char **argv)
{
    const struct argp argp = {
        .parser = parse, .args_doc = "COMMAND [ARGUMENT...]", .doc = help_text()};
    struct arguments arguments = {0};
    parse_arguments(&argp, argc, argv, ARGP_IN_ORDER, &arguments);

    char name[64];
    snprintf(name, sizeof name, "ptxgen %s", arguments.command->name);
    arguments.argv[0] = name;
    return arguments.command->run(arguments.argc, arguments.argv);
}

/* "help COMMAND FAMILY" is "COMMAND FAMILY --help". */
static int help(int argc, char **argv)
{
    enum { MOST_WORDS = 2 };
    char program[] = "ptxgen", option[] = "--help";
    char *words[1 + MOST_WORDS + 1 + 1] = {program};
    int count = 1;
    if (argc > 1 + MOST_WORDS) {
        fputs("ptxgen: help takes a command and a family at most\n", stderr);
        return EXIT_USAGE;
    }
    for (int i = 1; i < argc; i++)
        words[count++] = argv[i];
    words[count++] = option;
    return run(count, words);
}

int main(int argc, char **argv)
{
    standard_output_start();
    argp_err_exit_status = EXIT_USAGE;
    argp_program_version = "ptxgen " PTXGEN_VERSION;
    return run(argc, argv);
}
