/* SPDX-License-Identifier: Apache-2.0 */
/* run and convert of 2:4 sparse weights, on the emulator. */
#include "tests/status.h"

#include "command.h"
#include <ptxgen/files.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GOLDEN GOLDEN_DIR "/sparse24_torch.safetensors"

static const char *const layers[] = {"f16", "bf16", "s8"};

static void assert_same_tensor(const char *path, const char *layer, const char *suffix)
{
    const char *const paths[] = {GOLDEN, path};
    ptxgen_files *stores[2];
    const ptxgen_tensor *tensors[2];
    char name[32];
    snprintf(name, sizeof name, "%s.%s", layer, suffix);
    for (int i = 0; i < 2; i++) {
        ptxgen_error err;
        assert_ok(ptxgen_files_open(paths[i], &stores[i], &err), &err);
        assert_ok(ptxgen_files_require(stores[i], name, &tensors[i], &err), &err);
    }
    assert_int_equal(tensors[0]->dtype, tensors[1]->dtype);
    assert_int_equal(tensors[0]->bytes, tensors[1]->bytes);
    assert_memory_equal(tensors[0]->shape, tensors[1]->shape, 2 * sizeof *tensors[0]->shape);
    assert_memory_equal(tensors[0]->data, tensors[1]->data, tensors[0]->bytes);
    for (int i = 0; i < 2; i++)
        ptxgen_files_close(stores[i]);
}

static void m_are_output_features_and_n_rows(void **state)
{
    (void)state;
    struct outcome o = run("run", "sparse24", "--n", "40", "--m", "3,5", "--k", "64", "--dtype",
                           "s8", "--device", "cpu");
    assert_exit(&o, 0);
    assert_contains(o.out, "K=64 N=40 M=3");
    assert_contains(o.out, "120 outputs: largest error 0,");
    assert_contains(o.out, "200 outputs: largest error 0,");
    outcome_free(&o);
    assert_refuses(2, "--m 1,x: expected whole numbers", "run", "sparse24", "--n", "40", "--k",
                   "64", "--m", "1,x");
}

static void pytorchs_weights_run_in_every_type(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct outcome o = run("run", "sparse24", "--safetensors", GOLDEN, "--layer", layers[i],
                               "--m", "9", "--device", "cpu");
        assert_exit(&o, 0);
        assert_contains(o.out, "K=128 N=64 M=9");
        outcome_free(&o);
    }
}

static void every_form_converts_there_and_back_bit_for_bit(void **state)
{
    (void)state;
    static const char *const forms[] = {"bytes", "nibbles", "bitmask", "cutlass", "dense"};
    for (int f = 0; f < 5; f++) {
        char there[40], back[40];
        fresh_path(there);
        fresh_path(back);
        struct outcome o = run("convert", "sparse24", GOLDEN, there, "--to", forms[f]);
        assert_exit(&o, 0);
        assert_contains(o.out, "3 weights as");
        outcome_free(&o);
        o = run("convert", "sparse24", there, back, "--to", "cutlass", "--layer", "f16", "--layer",
                "bf16", "--layer", "s8");
        assert_exit(&o, 0);
        outcome_free(&o);
        for (int i = 0; i < 3; i++) {
            assert_same_tensor(back, layers[i], "sparse");
            assert_same_tensor(back, layers[i], "meta_cutlass");
            o = run("run", "sparse24", "--safetensors", there, "--layer", layers[i], "--m", "2",
                    "--device", "cpu");
            assert_exit(&o, 0);
            outcome_free(&o);
        }
        unlink(there);
        unlink(back);
    }
}

static void dense_weights_compress_as_pytorch_compressed_them(void **state)
{
    (void)state;
    char path[40];
    fresh_path(path);
    struct outcome o =
        run("convert", "sparse24", GOLDEN, path, "--from", "dense", "--to", "cutlass", "--prune");
    assert_exit(&o, 0);
    outcome_free(&o);
    for (int i = 0; i < 3; i++) {
        assert_same_tensor(path, layers[i], "sparse");
        assert_same_tensor(path, layers[i], "meta_cutlass");
    }
    unlink(path);
}

static void weights_that_are_not_there_are_refused(void **state)
{
    (void)state;
    assert_refuses(4, "no weight nope", "run", "sparse24", "--safetensors", GOLDEN, "--layer",
                   "nope", "--device", "cpu");
    assert_refuses(4, "no weight f16 as bitmask", "convert", "sparse24", GOLDEN, "/tmp/unused",
                   "--from", "bitmask", "--to", "bytes", "--layer", "f16");
    assert_refuses(2, "an input, an output and --to", "convert", "sparse24", GOLDEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(m_are_output_features_and_n_rows),
        cmocka_unit_test(pytorchs_weights_run_in_every_type),
        cmocka_unit_test(every_form_converts_there_and_back_bit_for_bit),
        cmocka_unit_test(dense_weights_compress_as_pytorch_compressed_them),
        cmocka_unit_test(weights_that_are_not_there_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
