/* SPDX-License-Identifier: Apache-2.0 */
/** The subcommands of ptxgen: a table entry each, nothing else knows them by name. */
#ifndef PTXGEN_CLI_COMMAND_H
#define PTXGEN_CLI_COMMAND_H

struct command {
    const char *name;
    const char *usage;   /**< what follows the name */
    const char *summary; /**< one line */
    /** argv[0] is "ptxgen NAME"; returns an exit_code. */
    int (*run)(int argc, char **argv);
};

extern const struct command list_command, emit_command, inspect_command, run_command,
    devices_command, bench_command, cache_command, profile_command, convert_command, tune_command,
    plot_command, files_command, doctor_command, pack_command;

#endif
