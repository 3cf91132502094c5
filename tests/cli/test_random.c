/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The problems that `run --random-specs` draws, by their names alone: memory on the device is
 * refused, so none is run. They are of sizes that the reference does in a second, few compute
 * nothing, some have a K as models have it and then few features, and all kinds occur.
 */
#include "tests/checks.h"

#include "src/cli/family.h"
#include "src/harness/problem.h"

#include <stdio.h>
#include <string.h>

enum { PROBLEMS = 320, DEEP = 4096 };

static ptxgen_cu_result no_memory(ptxgen_cu_deviceptr *address, size_t bytes)
{
    (void)address, (void)bytes;
    return PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
}

/* "K=512 N=48,16 M=3 …": K, and the sums of what stands behind the other two letters. */
static void read_sizes(const char *name, uint64_t sizes[3])
{
    static const char letters[] = "KNM";
    for (int i = 0; i < 3; i++) {
        const char word[] = {letters[i], '=', '\0'}, *at = strstr(name, word);
        char *end;
        sizes[i] = 1; /* of an N that is not there */
        if (!at && letters[i] == 'N')
            continue;
        if (!at)
            fail_msg("'%s' has no %c", name, letters[i]);
        sizes[i] = strtoull(at + 2, &end, 10);
        while (*end == ',')
            sizes[i] += strtoull(end + 1, &end, 10);
    }
}

struct drawn {
    unsigned deep, deep_empty, empty, one;
    uint64_t longest_k, most, deep_most;
    char names[PROBLEMS * 128];
};

static void draw(const struct family *family, struct device *device, struct drawn *d)
{
    memset(d, 0, sizeof *d);
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        struct check check = {.outputs = 0};
        ptxgen_error err;
        uint64_t sizes[3];
        assert_int_not_equal(problem_run_random(family->harness, seed, device, &check, &err), PTXGEN_OK);
        read_sizes(check.problem, sizes);
        const uint64_t products = sizes[0] * sizes[1] * sizes[2];
        const uint64_t wider = sizes[1] > sizes[2] ? sizes[1] : sizes[2];
        const bool is_deep = sizes[0] >= DEEP;
        d->empty += !products;
        d->one += (strstr(check.problem, "N=") && sizes[1] == 1) || sizes[2] == 1;
        d->deep += is_deep;
        d->deep_empty += is_deep && !products;
        d->longest_k = sizes[0] > d->longest_k ? sizes[0] : d->longest_k;
        d->most = products > d->most ? products : d->most;
        d->deep_most = is_deep && wider > d->deep_most ? wider : d->deep_most;
        strcat(d->names, check.problem);
        strcat(d->names, " \n");
    }
}

static void random_problems_are_as_large_as_they_should_be(void **state)
{
    static const struct {
        const char *family;
        uint64_t budget, widest; /* products; features or tokens of a deep problem */
        const char *words[24];   /* each occurs, and not in each */
    } rows[] = {
        {"dense", 1 << 20, 128, {" f16", " bf16", " f32", " bias", " residual", " silu"}},
        {"gguf_rows",
         1 << 17,
         128,
         {" w=F32", " w=F16", " w=BF16", " w=Q4_0", " w=Q4_1", " w=Q5_0", " w=Q5_1", " w=Q8_0",
          " w=Q2_K", " w=Q3_K", " w=Q4_K", " w=Q5_K", " w=Q6_K", " w=IQ4_NL", " w=IQ4_XS",
          " w=MXFP4", " y=f32", " y=f16", " y=bf16", " scale=", " indexed"}},
        {"marlin",
         1 << 21,
         128,
         {" f16", " bf16", " zeros", " act-order", " swiglu", " bias", " residual", " silu",
          " group=-1", " group=16 ", " group=48 ", " group=256 "}},
        {"quantise",
         1 << 17,
         128,
         {" x=f16", " x=bf16", " x=f32", " codes=s8", " codes=-7..7", " codes=e4m3", " groups",
          " asymmetric", " rmsnorm", " silu-mul", " residual", " gamma=bf16"}},
        {"rmsnorm_q4k",
         1 << 23,
         192,
         {" x=f16", " x=bf16", " x=f32", " y=f16", " y=bf16", " y=f32", " residual ",
          " residual-out", " bias", " swiglu", " eps=1e-12", " eps=0.25"}},
        {"sparse24",
         1 << 21,
         128,
         {" f16", " bf16", " s8", " f32", " y=bf16", " bias", " residual", " silu", " inflated",
          " plain"}},
        {"w8a8",
         1 << 21,
         512, /* rows of gate and of up */
         {" x=f16", " x=bf16", " x=f32", " y=f16", " y=bf16", " y=f32", " asymmetric", " bias",
          " codes=-128..127", " codes=-7..7", " codes=e4m3", " w=e5m2"}},
    };
    static struct drawn drawn;
    struct device device = open_device("cpu:sm_90");
    (void)state;
    device.driver.mem_alloc = no_memory;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct drawn *d = &drawn;
        draw(family_find(rows[i].family), &device, &drawn);
        for (int w = 0; rows[i].words[w]; w++) {
            unsigned count = 0;
            for (const char *at = d->names; (at = strstr(at, rows[i].words[w])); at++)
                count++;
            if (!count || count == PROBLEMS)
                fail_msg("%s:%s in %u of %d problems", rows[i].family, rows[i].words[w], count,
                         PROBLEMS);
        }
        assert_in_range(d->deep, PROBLEMS / 40, PROBLEMS / 8);
        assert_in_range(d->longest_k, 12000, 16384);
        assert_in_range(d->empty, 1, PROBLEMS / 4);
        assert_in_range(d->one, 1, PROBLEMS / 4);
        assert_true(d->deep_empty <= d->deep / 3);
        assert_in_range(d->deep_most, 8, rows[i].widest);
        assert_in_range(d->most, rows[i].budget / 4, rows[i].budget);
    }
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_problems_are_as_large_as_they_should_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
