/* SPDX-License-Identifier: Apache-2.0 */
/* What the command says of its options, of files of another format, and of chips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command.h"
#include "src/harness/progress.h"
#include "tests/dispatch/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAYERS GOLDEN_DIR "/marlin_g128.safetensors"
#define SPARSE GOLDEN_DIR "/sparse24_torch.safetensors"
#define GGUF GOLDEN_DIR "/q4k.gguf"
#define INSPECT "inspect", "rmsnorm_q4k", "--k", "4096", "--n", "4096"

/* ---- options ---- */

static void an_option_with_two_values_is_refused(void **state)
{
    (void)state;
    assert_refuses(2, "--k is given twice, as 256 and 512", "emit", "marlin", "--k", "256", "--n",
                   "64", "--k", "512");
    assert_refuses(2, "--m is given twice, as 1 and 2", "run", "w8a8", "--k", "256", "--n", "64",
                   "--m", "1", "--m=2", "--device", "cpu");
    assert_refuses(2, "--m is given twice, as 1 and 2", "run", "dense", "--k", "256", "--n", "64",
                   "--m", "1", "--m=2", "--device", "cpu");
    assert_refuses(2, "--target is given twice, as sm_80 and sm_90", "inspect", "dense", "--k",
                   "256", "--n", "64", "--target", "sm_80", "--target", "sm_90");
    assert_refuses(2, "--shape is given twice", "bench", "marlin", "--shape", "128x64", "--shape",
                   "64x64", "--device", "cpu");
    assert_refuses(2, "--to is given twice, as awq and gptq", "convert", LAYERS, "/nonexistent/x",
                   "--to", "awq", "--to", "gptq");
    assert_refuses(2, "--to is given twice, as bytes and nibbles", "convert", "sparse24", SPARSE,
                   "/nonexistent/x", "--to", "bytes", "--to", "nibbles");
    assert_refuses(2, "--folder is given twice, as /a and /b", "cache", "list", "--folder", "/a",
                   "--folder", "/b");
    assert_refuses(2, "--layer is given twice, as gptq and marlin", "run", "marlin",
                   "--safetensors", LAYERS, "--layer", "gptq", "--layer", "marlin");
    assert_refuses(2, "warp_n is there twice", "emit", "marlin", "--k", "256", "--n", "64",
                   "--tile", "tile_m=16,warp_n=64,warp_n=32");
    struct outcome o = run("emit", "marlin", "--k", "256", "--n", "64", "--k", "256", "--bias",
                           "--bias", "--m", "1");
    assert_exit(&o, 0);
    outcome_free(&o);
    o = run("convert", LAYERS, "-", "--to", "awq", "--layer", "gptq", "--layer", "marlin");
    assert_exit(&o, 0);
    assert_contains(o.err, "2 layers as awq");
    outcome_free(&o);
}

static void random_problems_take_no_other_option_of_a_problem(void **state)
{
    (void)state;
    static const char sentence[] = "--random-specs draws problems of its own";
    assert_refuses(2, sentence, "run", "marlin", "--random-specs", "1", "--k", "256");
    assert_refuses(2, sentence, "run", "marlin", "--random-specs", "1", "--bias");
    assert_refuses(2, sentence, "run", "dense", "--random-specs", "1", "--m", "3");
    assert_refuses(2, sentence, "run", "marlin", "--random-specs", "1", "--safetensors", LAYERS,
                   "--layer", "gptq");
}

static void two_shapes_are_refused(void **state)
{
    (void)state;
    static const char sentence[] = "--shape and the kernel's own K and features are both given";
    assert_refuses(2, sentence, "bench", "marlin", "--shape", "128x64", "--k", "256", "--device",
                   "cpu");
    assert_refuses(2, sentence, "bench", "rmsnorm_q4k", "--n", "64", "--shape", "256x64",
                   "--device", "cpu");
    assert_refuses(2, sentence, "bench", "dense", "--n", "64", "--shape", "256x64", "--device",
                   "cpu");
    assert_refuses(2, sentence, "tune", "marlin", "--shape", "128x64", "--n", "64", "--device",
                   "cpu");
    struct outcome o = run("bench", "dense", "--m", "2", "--shape", "256x64", "--device", "cpu",
                           "--replays", "1", "--launches", "1");
    assert_exit(&o, 0); /* here n are rows, of which --shape says nothing */
    outcome_free(&o);
}

static void group_sizes_are_whole_numbers_or_minus_one(void **state)
{
    (void)state;
    static const char sentence[] =
        "--group-size -2: expected a whole number from 1 to 2147483647, or -1 for one group";
    assert_refuses(2, sentence, "emit", "marlin", "--k", "256", "--n", "64", "--group-size", "-2");
    assert_refuses(2, sentence, "convert", LAYERS, "/nonexistent/x", "--to", "awq", "--group-size",
                   "-2");
}

static void bytes_are_taken_with_a_suffix(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    folder_make(folder);
    static const char *const good[] = {"1", "4096", "512K", "16M", "1G", "16777215T"};
    static const char *const bad[] = {"0", "1g", "1GB", "G", "-1", "1.5G", "16777216T", "1 G", ""};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct outcome o = run("cache", "prune", "--folder", folder, "--max-bytes", good[i]);
        assert_exit(&o, 0);
        assert_contains(o.out, "removed 0 entries and 0 strays, 0 bytes");
        outcome_free(&o);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_refuses(2, "expected bytes, or a number with K, M, G or T", "cache", "prune",
                       "--folder", folder, "--max-bytes", bad[i]);
    folder_remove(folder);
}

static void one_is_singular(void **state)
{
    (void)state;
    struct outcome o = run("convert", "sparse24", SPARSE, "-", "--to", "bytes", "--layer", "f16");
    assert_exit(&o, 0);
    assert_contains(o.err, "-: 1 weight as bytes, ");
    outcome_free(&o);
    o = run("run", "dense", "--random-specs", "1", "--device", "cpu");
    assert_exit(&o, 0);
    assert_contains(o.out, "1 random problem on");
    outcome_free(&o);
    o = run("run", "dense", "--n", "1", "--k", "16", "--m", "1", "--device", "cpu");
    assert_exit(&o, 0);
    assert_contains(o.out, "1 output: largest error");
    outcome_free(&o);
}

/* ---- targets and chips ---- */

static void an_unknown_target_is_told_all_that_are_known(void **state)
{
    (void)state;
    assert_refuses(2,
                   "sm_91 is not a target that ptxgen knows: it knows sm_80, 86, 87, 88, 89, 90, "
                   "100, 101, 103, 110, 120, 121",
                   "emit", "rmsnorm_q4k", "--k", "256", "--n", "8", "--target", "sm_91");
}

static void inspect_refuses_a_chip_that_cannot_load_the_text(void **state)
{
    (void)state;
    assert_refuses(2, "RTX-3090, which is sm_86, cannot load text for sm_90;", INSPECT, "--target",
                   "sm_90", "--chip", "RTX-3090");
    assert_refuses(2, "B200, which is sm_100, cannot load text for sm_90a;", INSPECT, "--target",
                   "sm_90a", "--chip", "B200");
    struct outcome o = run(INSPECT, "--chip", "H100-SXM");
    assert_exit(&o, 0);
    assert_contains(o.out, "rmsnorm_q4k for sm_80: ");
    assert_contains(o.out, "occupancy on sm_90, ");
    assert_contains(o.out, "the data sheet of H100-SXM");
    outcome_free(&o);
}

/* An A100 has 163 KB of shared memory for a CTA, an RTX 3090 99. */
static void inspect_refuses_a_chip_whose_shared_memory_is_too_small(void **state)
{
    (void)state;
    struct outcome o = run(INSPECT, "--target", "sm_80", "--chip", "RTX-3090");
    assert_exit(&o, 2);
    assert_contains(o.out, "does not fit on sm_86, which has 101376 bytes of shared memory");
    assert_contains(o.err, "rmsnorm_q4k_m1 does not fit on sm_86: a CTA has ");
    outcome_free(&o);
}

/* ---- files ---- */

static void a_file_of_the_other_format_is_a_wrong_file(void **state)
{
    (void)state;
    static const char sentence[] = "q4k.gguf is a GGUF file; a safetensors file is needed here";
    assert_refuses(4, sentence, "convert", GGUF, "/nonexistent/x", "--to", "awq");
    assert_refuses(4, sentence, "convert", "sparse24", GGUF, "/nonexistent/x", "--to", "bytes");
    assert_refuses(4, sentence, "run", "marlin", "--safetensors", GGUF, "--layer", "l", "--device",
                   "cpu");
    assert_refuses(4, sentence, "run", "sparse24", "--safetensors", GGUF, "--layer", "l",
                   "--device", "cpu");
    assert_refuses(4, sentence, "run", "w8a8", "--safetensors", GGUF, "--device", "cpu");
    assert_refuses(4, "is a safetensors file; a GGUF file is needed here", "run", "rmsnorm_q4k",
                   "--gguf", LAYERS, "--tensor", "w", "--norm", "g", "--epsilon", "1e-6",
                   "--device", "cpu");
}

static void the_metadata_of_a_sparse_checkpoint_are_kept(void **state)
{
    (void)state;
    struct outcome o = run("convert", LAYERS, "-", "--to", "awq", "--layer", "gptq");
    assert_exit(&o, 0);
    char folder[FOLDER_PATH], path[FOLDER_PATH + 8];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/in", folder);
    file_write(path, o.out, o.out_length);
    outcome_free(&o);
    o = run("convert", "sparse24", path, "-", "--to", "dense", "--from", "dense", "--layer",
            "scales");
    assert_exit(&o, 0);
    assert_non_null(memmem(o.out, o.out_length, "\"group_size\":\"128\"", 18));
    outcome_free(&o);
    folder_remove(folder);
}

/* ---- progress ---- */

/* A second after its start, of a clock that began long ago. */
static void progress_is_for_terminals(void **state)
{
    (void)state;
    struct progress p = {.what = "work", .started = -20, .shown = -10, .total = 2};
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    assert_non_null(file);
    assert_true(kept >= 0);
    dup2(fileno(file), STDERR_FILENO);
    progress_update(&p, 1);
    p.shown = p.started;
    progress_end(&p);
    dup2(kept, STDERR_FILENO);
    close(kept);
    fseek(file, 0, SEEK_END);
    assert_int_equal(ftell(file), 0);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_option_with_two_values_is_refused),
        cmocka_unit_test(random_problems_take_no_other_option_of_a_problem),
        cmocka_unit_test(two_shapes_are_refused),
        cmocka_unit_test(group_sizes_are_whole_numbers_or_minus_one),
        cmocka_unit_test(bytes_are_taken_with_a_suffix),
        cmocka_unit_test(one_is_singular),
        cmocka_unit_test(an_unknown_target_is_told_all_that_are_known),
        cmocka_unit_test(inspect_refuses_a_chip_that_cannot_load_the_text),
        cmocka_unit_test(inspect_refuses_a_chip_whose_shared_memory_is_too_small),
        cmocka_unit_test(a_file_of_the_other_format_is_a_wrong_file),
        cmocka_unit_test(the_metadata_of_a_sparse_checkpoint_are_kept),
        cmocka_unit_test(progress_is_for_terminals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
