/* SPDX-License-Identifier: Apache-2.0 */
/* How the command explains itself: help, near names, targets by product, completion, manual pages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const commands[] = {"list",    "emit",  "inspect", "devices", "run",
                                       "bench",   "tune",  "plot",    "cache",   "profile",
                                       "convert", "files", "doctor",  "help"};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void assert_same_text(const struct outcome *a, const struct outcome *b)
{
    assert_int_equal(a->code, b->code);
    assert_string_equal(a->out, b->out);
    assert_string_equal(a->err, b->err);
}

static void help_of_a_command_is_what_its_help_option_prints(void **state)
{
    (void)state;
    for (int i = 0; i < COMMANDS - 1; i++) {
        struct outcome help = run("help", commands[i]), option = run(commands[i], "--help");
        assert_exit(&help, 0);
        assert_contains(help.out, "Usage: ptxgen ");
        assert_same_text(&help, &option);
        outcome_free(&help);
        outcome_free(&option);
    }
    struct outcome help = run("help", "run", "marlin"), option = run("run", "marlin", "--help");
    assert_exit(&help, 0);
    assert_contains(help.out, "--group-size");
    assert_same_text(&help, &option);
    outcome_free(&help);
    outcome_free(&option);
    help = run("help");
    option = run("--help");
    for (int i = 0; i < COMMANDS; i++)
        assert_contains(help.out, commands[i]);
    assert_same_text(&help, &option);
    outcome_free(&help);
    outcome_free(&option);
    assert_refuses(2, "ptxgen: help takes a command and a family at most\n", "help", "run",
                   "marlin", "w8a8");
    assert_refuses(2, "no command is named \"rum\"; did you mean \"run\"?\n", "help", "rum");
}

static void a_name_that_is_none_is_answered_with_the_nearest(void **state)
{
    (void)state;
    assert_refuses(2, "ptxgen: no command is named \"benhc\"; did you mean \"bench\"?\n", "benhc");
    assert_refuses(2,
                   "ptxgen: no family is named \"marln\"; `ptxgen list` prints them; did you mean "
                   "\"marlin\"?\n",
                   "emit", "marln", "--k", "256");
    assert_refuses(2, "ptxgen: no family is named \"qqq\"; `ptxgen list` prints them\n", "run",
                   "qqq");
}

static void a_product_names_the_target_of_its_chip(void **state)
{
    (void)state;
    static const struct {
        const char *product, *target;
    } rows[] = {
        {"h200", "sm_90a"}, {"H100-SXM", "sm_90a"}, {"RTX-4090", "sm_89"}, {"A100-80GB", "sm_80"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct outcome by_product =
            run("emit", "dense", "--k", "64", "--n", "64", "--m", "1", "--target", rows[i].product);
        struct outcome by_target =
            run("emit", "dense", "--k", "64", "--n", "64", "--m", "1", "--target", rows[i].target);
        assert_exit(&by_product, 0);
        assert_same_text(&by_product, &by_target);
        outcome_free(&by_product);
        outcome_free(&by_target);
    }
    assert_refuses(2, "--target Voodoo2: ", "emit", "dense", "--k", "64", "--n", "64", "--target",
                   "Voodoo2");
    assert_refuses(2, "sm_90a needs PTX 8.0, but the cap is PTX 7.8", "emit", "dense", "--k", "64", "--n",
                   "64", "--ptx-version", "7.8", "--target", "h200");
}

/* Native is either this machine's GPU, or refused in the words of the driver's failure. */
static void native_is_the_gpu_at_hand(void **state)
{
    (void)state;
    struct outcome devices = run("devices"), emit = run("emit", "dense", "--k", "64", "--n", "64",
                                                        "--m", "1", "--target", "native");
    if (strstr(devices.out, "gpu: none"))
        assert_contains(emit.err, "--target native: ");
    assert_exit(&emit, strstr(devices.out, "gpu: none") ? 3 : 0);
    outcome_free(&devices);
    outcome_free(&emit);
}

/* ---- completion and manual pages ---- */

/* What the script for bash offers for the last of the words. */
static void assert_completes(const char *words, const char *candidates)
{
    char script[1200], wanted[300];
    snprintf(script, sizeof script,
             "source " COMPLETION "; COMP_WORDS=(ptxgen %s); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); "
             "_ptxgen " PTXGEN_COMMAND " \"${COMP_WORDS[COMP_CWORD]}\"; echo \"${COMPREPLY[*]}\"",
             words);
    struct outcome o = run_program((const char *const[]){"bash", "-c", script, NULL});
    assert_exit(&o, 0);
    snprintf(wanted, sizeof wanted, "%s\n", candidates);
    assert_string_equal(o.out, wanted);
    outcome_free(&o);
}

static void bash_completes_commands_families_and_options(void **state)
{
    (void)state;
    assert_completes("c", "cache convert");
    assert_completes("run m", "marlin");
    assert_completes("run --see", "--seed");
    assert_completes("run marlin --gro", "--group-size");
    assert_completes("emit -", "--annotate --force --m --output --ptx-version --target");
    assert_completes("cache --ma", "--max-bytes");
    assert_completes("files x", "");
    assert_completes("frobnicate --x", "");
}

static void every_command_has_a_manual_page(void **state)
{
    (void)state;
    char path[400];
    if (!*MANUAL) {
        puts("the manual pages were not built: there is no help2man");
        skip();
        return;
    }
    for (int i = -1; i < COMMANDS - 1; i++) {
        snprintf(path, sizeof path, MANUAL "/ptxgen%s%s.1", i < 0 ? "" : "-",
                 i < 0 ? "" : commands[i]);
        struct outcome o = run_program((const char *const[]){"cat", path, NULL});
        assert_exit(&o, 0);
        assert_contains(o.out, ".SH SYNOPSIS");
        outcome_free(&o);
    }
    struct outcome families = run("list");
    for (char *line = strtok(families.out, "\n"); line; line = strtok(NULL, "\n")) {
        snprintf(path, sizeof path, MANUAL "/ptxgen-run-%.*s.1", (int)strcspn(line, " "), line);
        struct outcome o = run_program((const char *const[]){"cat", path, NULL});
        assert_exit(&o, 0);
        assert_contains(o.out, "The kernel:");
        outcome_free(&o);
    }
    outcome_free(&families);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_of_a_command_is_what_its_help_option_prints),
        cmocka_unit_test(a_name_that_is_none_is_answered_with_the_nearest),
        cmocka_unit_test(a_product_names_the_target_of_its_chip),
        cmocka_unit_test(native_is_the_gpu_at_hand),
        cmocka_unit_test(bash_completes_commands_families_and_options),
        cmocka_unit_test(every_command_has_a_manual_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
