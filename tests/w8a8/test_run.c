/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels through the command, on the emulator: every bit of y, gaps, inputs left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/cli/command.h"
#include "tests/share.h"

#include <stdio.h>
#include <string.h>

#define GOLDEN GOLDEN_DIR "/w8a8.safetensors"

static void golden_file_is_right_in_every_bit_for_every_type(void **state)
{
    (void)state;
    const char *const types[] = {"f32", "f16", "bf16", "f64"};
    for (int i = 0; i < 4; i++) {
        struct outcome o = run("run", "w8a8", "--safetensors", GOLDEN, "--input", "activation",
                               "--dtype", types[i], "--device", "cpu");
        assert_exit(&o, 0);
        assert_contains(o.out, "K=96 N=40 M=6");
        assert_contains(o.out, "240 outputs: largest error 0,");
        outcome_free(&o);
    }
}

static void every_tile_is_right_at_its_edges(void **state)
{
    (void)state;
    struct outcome o =
        run("run", "w8a8", "--k", "272", "--n", "150", "--m",
            "0,1,8,9,16,17,32,33,64,65,128,129,256,257,300", "--device", "cpu:sm_90");
    assert_exit(&o, 0);
    assert_contains(o.out, "45000 outputs: largest error 0,");
    outcome_free(&o);
}

/* Many turns of the ring, several tiles a CTA, tails, warpgroups along rows, tokens and K. */
static void tiles_of_wgmma_are_right(void **state)
{
    (void)state;
    static const char *const cases[][6] = {
        {"4096", "4096", "300", "16", "tile_m=16,tile_n=64,kind=1", "4800"},
        {"700", "704", "9001", "5", "tile_m=16,tile_n=64,kind=1", "45005"},
        {"272", "272", "9001", "11", "tile_m=16,kind=1", "99011"},
        {"4096", "4096", "300", "61", "tile_m=64,kind=1", "18300"},
        {"700", "704", "9001", "20", "tile_m=64,tile_n=64,kind=1", "180020"},
        {"272", "272", "4096", "9", "tile_m=64,kind=1", "36864"},
        {"272", "272", "14336", "70", "tile_m=128,wk=2,kind=1", "1003520"},
        {"272", "272", "150", "300", "tile_m=128,tile_n=64,kind=1", "45000"},
        {"272", "272", "150", "300", "tile_m=256,tile_n=64,kind=1", "45000"},
        {"400", "400", "1000", "300", "tile_m=256,tile_n=128,wk=1,kind=1", "300000"},
        {"400", "400", "1000", "300", "tile_m=128,tile_n=128,wn=1,kind=1", "300000"},
        {"700", "704", "301", "190", "tile_m=128,tile_n=128,wn=1,kind=1", "57190"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const *c = cases[i];
        char told[64];
        struct outcome o = run("run", "w8a8", "--k", c[0], "--w-stride", c[1], "--n", c[2], "--m",
                               c[3], "--tile", c[4], "--device", "cpu:sm_90", "--asymmetric");
        assert_exit(&o, 0);
        snprintf(told, sizeof told, "%s outputs: largest error 0,", c[5]);
        assert_contains(o.out, told);
        outcome_free(&o);
    }
}

/* A thread has several chunks of a row, one at a time; the last are in part, or not at all there.
 */
static void long_rows_are_right(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"f64", "9001"}, {"f64", "28672"}, {"f32", "16401"}, {"bf16", "16392"}, {"f16", "20000"}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const char *const *c = cases[i / 2];
        struct outcome o = run("run", "w8a8", "--m", "33", "--n", "16", "--k", c[1], "--dtype",
                               c[0], "--asymmetric", "--device", i % 2 ? "cpu:sm_80" : "cpu:sm_90");
        assert_exit(&o, 0);
        assert_contains(o.out, "528 outputs: largest error 0,");
        outcome_free(&o);
    }
}

static void no_tokens_exit_with_0(void **state)
{
    (void)state;
    struct outcome o = run("run", "w8a8", "--m", "0", "--n", "64", "--k", "64", "--device", "cpu");
    assert_exit(&o, 0);
    outcome_free(&o);
}

static void random_specs_are_right_in_every_bit(void **state)
{
    (void)state;
    const char *const devices[] = {"cpu:sm_90", "cpu:sm_80"}, *const seeds[] = {"1", "1001"};
    for (int i = 0; i < 2; i++) {
        char count[16], told[32];
        snprintf(count, sizeof count, "%d", test_share(100));
        snprintf(told, sizeof told, "%s random problems", count);
        struct outcome o =
            run("run", "w8a8", "--random-specs", count, "--seed", seeds[i], "--device", devices[i]);
        assert_exit(&o, 0);
        assert_contains(o.out, told);
        assert_contains(o.out, "0 wrong");
        outcome_free(&o);
    }
}

static void layers_that_cannot_be_are_refused(void **state)
{
    (void)state;
    assert_refuses(4, "nothing.weight", "run", "w8a8", "--safetensors", GOLDEN, "--layer",
                   "nothing", "--device", "cpu");
    assert_refuses(2, "weight is I8; with --codes e4m3 weights are F8_E4M3 or F8_E5M2", "run", "w8a8",
                   "--safetensors", GOLDEN, "--codes", "e4m3", "--device", "cpu");
    assert_refuses(2, "is above 132104", "run", "w8a8", "--k", "140000", "--n", "8", "--device",
                   "cpu");
}

/* Runs w8a8 with e4m3 codes: all outputs are within their bounds, and together within the spread.
 */
static void check_e4m3(const char *const *options, const char *device)
{
    struct outcome o =
        run("run", "w8a8", "--codes", "e4m3", "--k", options[0], "--n", options[1], "--m",
            options[2], "--dtype", options[3], options[4], options[5], "--device", device);
    assert_exit(&o, 0);
    assert_contains(o.out, " of its bound; spread ");
    outcome_free(&o);
}

/* Between rows of w there are NaNs, which must not reach the products. */
static void e4m3_codes_are_right_at_the_edges_of_every_tile(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu:sm_89", "cpu:sm_90", "cpu:sm_120"};
    static const char *const cases[][6] = {
        {"272", "150", "0,1,8,9,16,17,32,33,64,65,128,129,257", "f16", "--bias", "--scales=token"},
        {"261", "70", "2,13,40,70,130", "f32", "--w-stride=272", "--scales=tensor"},
        {"263", "70", "2,13,40,70,130", "bf16", "--w-stride=267", "--bias"},
        {"4091", "24", "1,16,33,64,100", "f16", "--bias", "--w-stride=4096"},
    };
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            if (test_in_share(4 * i + j))
                check_e4m3(cases[j], devices[i]);
}

static void tiles_of_wgmma_with_e4m3_codes_are_right(void **state)
{
    (void)state;
    static const char *const cases[][6] = {
        {"4096", "300", "16", "f32", "--tile=tile_m=16,tile_n=64,kind=1", "--bias"},
        {"700", "9001", "5", "f16", "--tile=tile_m=16,tile_n=64,kind=1", "--w-stride=704"},
        {"720", "9001", "5", "f16", "--tile=tile_m=16,tile_n=64,kind=1", "--e5m2"},
        {"4096", "300", "61", "f32", "--tile=tile_m=64,kind=1,wk=4", "--bias"},
        {"1500", "2000", "64", "bf16", "--tile=tile_m=64,kind=1,wk=2", "--w-stride=1504"},
        {"272", "300", "300", "f16", "--tile=tile_m=128,tile_n=64,kind=1,wk=2", "--bias"},
        {"400", "301", "190", "f32", "--tile=tile_m=128,tile_n=128,wn=1,kind=1", "--bias"},
        {"400", "301", "300", "f32", "--tile=tile_m=256,tile_n=128,kind=1", "--bias"},
        {"1040", "264", "257", "f16", "--tile=tile_m=256,tile_n=128,kind=1", "--residual"},
        {"656", "264", "600", "bf16", "--tile=tile_m=256,tile_n=96,kind=1", "--e5m2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_e4m3(cases[i], "cpu:sm_90");
}

/* A row: K, N, tokens, two options, the type, the codes, and what is told of the outputs. */
static void check_on_each_device(const char *const cases[][8], size_t count)
{
    static const char *const devices[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_89"};
    for (size_t i = 0; i < 3 * count; i++) {
        const char *const *c = cases[i / 3];
        bool has_codes = i % 3 != 0 || strcmp(c[6], "e4m3") != 0;
        if (!test_in_share((int)i) || !has_codes)
            continue;
        struct outcome o = run("run", "w8a8", "--k", c[0], "--n", c[1], "--m", c[2], c[3], c[4],
                               "--dtype", c[5], "--codes", c[6], "--device", devices[i % 3]);
        assert_exit(&o, 0);
        assert_contains(o.out, c[7]);
        outcome_free(&o);
    }
}

#define S8 "127,127"
#define EXACT "largest error 0,"
#define BOUNDED " of its bound; spread "

/* Every kind of tile, and its edges. A residual and a bias alone leave outputs exact. */
static void epilogues_are_right_on_every_tile(void **state)
{
    (void)state;
#define ROW(...)                                                                                   \
    {                                                                                              \
        "272", "200", "7,33,130", __VA_ARGS__                                                      \
    }
    static const char *const cases[][8] = {
        ROW("--residual", "--asymmetric", "f16", S8, EXACT),
        ROW("--activation=silu", "--bias", "f32", S8, BOUNDED),
        ROW("--activation=gelu", "--residual", "bf16", S8, BOUNDED),
        ROW("--activation=relu", "--residual", "f16", "e4m3", BOUNDED),
        ROW("--activation=gelu-tanh", "--bias", "f16", "e4m3", BOUNDED),
        ROW("--swiglu", "--asymmetric", "f16", S8, BOUNDED),
        ROW("--swiglu", "--residual", "f32", S8, BOUNDED),
        ROW("--swiglu", "--bias", "bf16", "e4m3", BOUNDED),
    };
#undef ROW
    check_on_each_device(cases, sizeof cases / sizeof *cases);
    assert_refuses(2, "a file's layer is one matrix; with --swiglu weights are random", "run",
                   "w8a8", "--safetensors", GOLDEN, "--swiglu", "--device", "cpu");
}

/* Rows of the caller's codes that are copied first, and rows that are read as they are. */
static void codes_of_the_caller_are_right_on_every_tile(void **state)
{
    (void)state;
#define ROW(k, n, option, codes, told)                                                             \
    {                                                                                              \
        k, n, "1,40,130", "--scales=quantised", option, "f16", codes, told                         \
    }
    static const char *const cases[][8] = {
        ROW("512", "72", "--asymmetric", S8, EXACT),
        ROW("4096", "24", "--bias", S8, EXACT),
        ROW("101", "200", "--swiglu", S8, BOUNDED),
        ROW("272", "200", "--residual", "e4m3", BOUNDED),
        ROW("101", "72", "--bias", "e4m3", BOUNDED),
    };
#undef ROW
    check_on_each_device(cases, sizeof cases / sizeof *cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_file_is_right_in_every_bit_for_every_type),
        cmocka_unit_test(every_tile_is_right_at_its_edges),
        cmocka_unit_test(tiles_of_wgmma_are_right),
        cmocka_unit_test(long_rows_are_right),
        cmocka_unit_test(no_tokens_exit_with_0),
        cmocka_unit_test(random_specs_are_right_in_every_bit),
        cmocka_unit_test(layers_that_cannot_be_are_refused),
        cmocka_unit_test(epilogues_are_right_on_every_tile),
        cmocka_unit_test(codes_of_the_caller_are_right_on_every_tile),
        cmocka_unit_test(e4m3_codes_are_right_at_the_edges_of_every_tile),
        cmocka_unit_test(tiles_of_wgmma_with_e4m3_codes_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
