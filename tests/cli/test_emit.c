/* SPDX-License-Identifier: Apache-2.0 */
/* list, emit and inspect: what needs no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void help_names_commands_and_exit_codes(void **state)
{
    (void)state;
    struct outcome o = run("--help");
    assert_exit(&o, 0);
    const char *const parts[] = {"list", "emit",  "inspect",    "devices",
                                 "run",  "bench", "Exit codes:"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_contains(o.out, parts[i]);
    outcome_free(&o);
}

static void every_command_has_help(void **state)
{
    (void)state;
    const char *const commands[] = {"list", "devices", "emit", "inspect", "run", "bench", "cache"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct outcome o = run(commands[i], "--help");
        assert_exit(&o, 0);
        assert_contains(o.out, commands[i]);
        outcome_free(&o);
    }
    struct outcome o = run("run", "rmsnorm_q4k", "--help");
    assert_exit(&o, 0);
    assert_contains(o.out, "--swiglu");
    assert_contains(o.out, "--gguf");
    assert_contains(o.out, "--random-specs");
    outcome_free(&o);
}

static void list_prints_every_family(void **state)
{
    (void)state;
    struct outcome o = run("list");
    assert_exit(&o, 0);
    assert_contains(o.out, "rmsnorm_q4k");
    outcome_free(&o);
}

static void list_instructions_prints_the_builders_reference(void **state)
{
    (void)state;
    struct outcome o = run("list", "--instructions");
    assert_exit(&o, 0);
    assert_contains(o.out, "ptx_fma_f32\n");
    assert_contains(o.out, "wgmma");
    outcome_free(&o);
}

static void emit_writes_the_targets_text(void **state)
{
    (void)state;
    struct outcome o = run("emit", "rmsnorm_q4k", "--k", "4096", "--n", "96");
    assert_exit(&o, 0);
    assert_contains(o.out, ".target sm_80");
    assert_contains(o.out, ".entry rmsnorm_q4k_m1");
    outcome_free(&o);
    o = run("emit", "rmsnorm_q4k", "--k", "4096", "--n", "96", "--target", "sm_90a");
    assert_exit(&o, 0);
    assert_contains(o.out, ".target sm_90a");
    outcome_free(&o);
}

static void emit_writes_only_the_entry_of_so_many_tokens(void **state)
{
    (void)state;
    const char *const entries[] = {".entry rmsnorm_q4k_m1", ".entry rmsnorm_q4k_m4",
                                   ".entry rmsnorm_q4k_m8"};
    const char *const tokens[] = {"1", "3", "8"};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        struct outcome o = run("emit", "rmsnorm_q4k", "--k", "4096", "--n", "96", "--m", tokens[i]);
        assert_exit(&o, 0);
        for (size_t j = 0; j < sizeof entries / sizeof *entries; j++)
            assert_int_equal(strstr(o.out, entries[j]) != NULL, i == j);
        outcome_free(&o);
    }
}

static void emit_is_the_same_in_two_processes(void **state)
{
    (void)state;
    struct outcome a = run("emit", "rmsnorm_q4k", "--k", "1024", "--n", "64,32", "--bias");
    struct outcome b = run("emit", "rmsnorm_q4k", "--k", "1024", "--n", "64,32", "--bias");
    assert_exit(&a, 0);
    assert_string_equal(a.out, b.out);
    outcome_free(&a);
    outcome_free(&b);
}

static void annotation_adds_comments_and_changes_no_instruction(void **state)
{
    (void)state;
    struct outcome o = run("emit", "rmsnorm_q4k", "--k", "1024", "--n", "64", "--annotate");
    assert_exit(&o, 0);
    assert_contains(o.out, "//");
    outcome_free(&o);
}

static void emit_writes_to_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/ptxgen-test-XXXXXX";
    close(mkstemp(path));
    struct outcome o = run("emit", "rmsnorm_q4k", "--k", "256", "--n", "8", "--force", "-o", path);
    assert_exit(&o, 0);
    assert_int_equal(o.out_length, 0);
    char start[64] = "";
    int fd = open(path, O_RDONLY);
    assert_true(read(fd, start, sizeof start - 1) > 0);
    assert_contains(start, ".version");
    close(fd);
    unlink(path);
    outcome_free(&o);
}

static void emit_names_a_file_that_it_cannot_write(void **state)
{
    (void)state;
    assert_refuses(4, "/nonexistent/x.ptx", "emit", "rmsnorm_q4k", "--k", "256", "--n", "8", "-o",
                   "/nonexistent/x.ptx");
    assert_refuses(4, "/dev/full", "emit", "rmsnorm_q4k", "--k", "256", "--n", "8", "-o",
                   "/dev/full");
}

static void what_the_family_refuses_names_value_and_rule(void **state)
{
    (void)state;
    assert_refuses(2, "K = 4544 must be a positive multiple of 256", "emit", "rmsnorm_q4k", "--k",
                   "4544", "--n", "8");
    assert_refuses(2, "--k and --n", "emit", "rmsnorm_q4k", "--n", "8");
    assert_refuses(2, "SwiGLU", "emit", "rmsnorm_q4k", "--k", "256", "--n", "8,9", "--swiglu");
    assert_refuses(2, "max_m = 9", "emit", "rmsnorm_q4k", "--k", "256", "--n", "8",
                   "--max-m", "9");
}

static void options_are_refused_by_name(void **state)
{
    (void)state;
    assert_refuses(2, "no command", "emmit");
    assert_refuses(2, "no family", "emit", "rmsnorm");
    assert_refuses(2, "--k 12x", "emit", "rmsnorm_q4k", "--k", "12x");
    assert_refuses(2, "--k -256", "emit", "rmsnorm_q4k", "--k", "-256");
    assert_refuses(2, "at most 3 numbers", "emit", "rmsnorm_q4k", "--k", "256", "--n", "1,2,3,4");
    assert_refuses(2, "--n 8,", "emit", "rmsnorm_q4k", "--k", "256", "--n", "8,");
    assert_refuses(2, "f32, f16, bf16", "emit", "rmsnorm_q4k", "--x-type", "f8");
    assert_refuses(2, "from 0 to", "emit", "rmsnorm_q4k", "--epsilon", "-1e-6");
    assert_refuses(2, "from 0 to", "emit", "rmsnorm_q4k", "--epsilon", "1e39");
    assert_refuses(2, "would make it 0", "emit", "rmsnorm_q4k", "--epsilon", "1e-60");
    assert_refuses(2, "sm_79", "emit", "rmsnorm_q4k", "--target", "sm_79");
    assert_refuses(2, "7.8", "emit", "rmsnorm_q4k", "--ptx-version", "eight");
    assert_refuses(2, "sm_90", "emit", "rmsnorm_q4k", "--k", "256", "--n", "8", "--target", "sm_90",
                   "--ptx-version", "7.0");
    assert_refuses(2, "KxN", "bench", "rmsnorm_q4k", "--shape", "4096,4096");
    assert_refuses(2, "H100-SXM", "inspect", "rmsnorm_q4k", "--chip", "Z80");
}

/* Every option that changes the text, for the oldest and newer targets. */
static void emitted_text_assembles(void **state)
{
    (void)state;
    if (!strlen(PTXAS)) {
        print_message("ptxas was not found when this test was built\n");
        skip();
    }
    const char *const options[][6] = {
        {"--k", "256", "--n", "1"},
        {"--k", "4096", "--n", "64,16,16", "--bias"},
        {"--k", "2816", "--n", "100", "--residual-out"},
        {"--k", "1024", "--n", "96", "--swiglu"},
    };
    const char *const targets[] = {"sm_80", "sm_90"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        for (size_t j = 0; j < sizeof targets / sizeof *targets; j++) {
            char ptx[] = "/tmp/ptxgen-test-XXXXXX";
            close(mkstemp(ptx));
            const char *arguments[16] = {"emit",    "rmsnorm_q4k", "--target", targets[j],
                                         "--force", "-o",          ptx};
            for (int a = 0; a < 6; a++)
                arguments[7 + a] = options[i][a];
            struct outcome o = run_command(arguments);
            assert_exit(&o, 0);
            outcome_free(&o);
            const char *const assemble[] = {PTXAS,       "-arch", targets[j], "-o",
                                            "/dev/null", ptx,     NULL};
            o = run_program(assemble);
            unlink(ptx);
            assert_exit(&o, 0);
            outcome_free(&o);
        }
}

static void inspect_reports_mix_registers_occupancy_and_floor(void **state)
{
    (void)state;
    struct outcome o = run("inspect", "rmsnorm_q4k", "--k", "4096", "--n", "14336", "--target",
                           "sm_90", "--m", "1,8", "--bandwidth", "3000");
    assert_exit(&o, 0);
    const char *const parts[] = {"registers:", "shared memory:", "occupancy on sm_90", "mma_m16n8k",
                                 /* 14336 x 16 x 144 + 4096 x 4 + (4096 + 14336) x 2 bytes */
                                 "M=1: rmsnorm_q4k_m1, 132 CTAs; 33083392 bytes", "floor: 11.03 us",
                                 "M=8: rmsnorm_q4k_m8"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_contains(o.out, parts[i]);
    outcome_free(&o);
}

static void inspect_says_where_a_launch_rounds_weights_or_quantises(void **state)
{
    (void)state;
    struct outcome o = run("inspect", "marlin", "--k", "4096", "--n", "4096", "--group-size", "64",
                           "--type", "bf16", "--target", "sm_80", "--m", "1,64");
    assert_exit(&o, 0);
    assert_contains(o.out, "tiles of 8 tokens");
    assert_contains(o.out, "scales are multiplied into sums, in f32");
    assert_contains(o.out, "weights are scaled and rounded to bf16");
    outcome_free(&o);
    o = run("inspect", "w8a8", "--k", "512", "--n", "512", "--target", "sm_80", "--m", "64");
    assert_exit(&o, 0);
    assert_contains(o.out, "two launches: one kernel quantises the 64 tokens");
    outcome_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_names_commands_and_exit_codes),
        cmocka_unit_test(every_command_has_help),
        cmocka_unit_test(list_prints_every_family),
        cmocka_unit_test(list_instructions_prints_the_builders_reference),
        cmocka_unit_test(emit_writes_the_targets_text),
        cmocka_unit_test(emit_writes_only_the_entry_of_so_many_tokens),
        cmocka_unit_test(emit_is_the_same_in_two_processes),
        cmocka_unit_test(annotation_adds_comments_and_changes_no_instruction),
        cmocka_unit_test(emit_writes_to_a_file),
        cmocka_unit_test(emit_names_a_file_that_it_cannot_write),
        cmocka_unit_test(what_the_family_refuses_names_value_and_rule),
        cmocka_unit_test(options_are_refused_by_name),
        cmocka_unit_test(emitted_text_assembles),
        cmocka_unit_test(inspect_reports_mix_registers_occupancy_and_floor),
        cmocka_unit_test(inspect_says_where_a_launch_rounds_weights_or_quantises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
