/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass of llama, from a file in two parts, against plain double precision. */
#include "small_llama.h"

#include "examples/generate/forward.h"
#include "tests/dispatch/folder.h"
#include "tests/status.h"

#include <math.h>

enum { SEQUENCES = 2, STEPS = 3 };

/* Prompts of different lengths, one of which takes several passes. */
static const int32_t prompts[SEQUENCES][11] = {{7, 3, 49, 0, 11, 30, 2, 2, 41, 19, 5}, {12, 8, 33}};
static const uint32_t lengths[SEQUENCES] = {11, 3};

struct sequence {
    int32_t ids[LLAMA_CONTEXT];
    uint32_t count;
};

/* The logits of all sequences; the next token of each is the largest. */
static void compare(const struct small_llama *llama, const float *logits,
                    struct sequence sequences[SEQUENCES], double tolerance)
{
    for (int i = 0; i < SEQUENCES; i++) {
        struct sequence *s = &sequences[i];
        double right[LLAMA_VOCABULARY];
        int32_t best = 0;
        small_llama_logits(llama, s->ids, s->count, right);
        for (int id = 0; id < LLAMA_VOCABULARY; id++) {
            double got = (double)logits[i * LLAMA_VOCABULARY + id];
            if (!(fabs(got - right[id]) <= tolerance))
                fail_msg("sequence %d of %u tokens: logit %d is %g, not %g", i, s->count, id, got,
                         right[id]);
            if (got > (double)logits[i * LLAMA_VOCABULARY + best])
                best = id;
        }
        s->ids[s->count++] = best;
    }
}

/* Steps of a graph that chooses the tokens itself give those that the logits say. */
static void generate(const struct small_llama *llama, const struct device *device,
                     struct forward *f, double tolerance)
{
    struct sequence sequences[SEQUENCES] = {{{0}, 0}};
    float logits[SEQUENCES * LLAMA_VOCABULARY];
    ptxgen_error err;
    for (int i = 0; i < SEQUENCES; i++) {
        memcpy(sequences[i].ids, prompts[i], sizeof prompts[i]);
        sequences[i].count = lengths[i];
        assert_ok(forward_prompt(f, (uint32_t)i, prompts[i], lengths[i], &err), &err);
    }
    for (int step = 0; step < STEPS; step++) {
        int32_t ids[SEQUENCES];
        assert_ok(forward_logits(f, logits, &err), &err);
        if (step == 0)
            assert_ok(forward_choose(f, &err), &err);
        assert_ok(forward_tokens(f, ids, &err), &err);
        assert_ok(device_wait(device, &err), &err);
        compare(llama, logits, sequences, tolerance);
        for (int i = 0; i < SEQUENCES; i++)
            assert_int_equal(ids[i], sequences[i].ids[sequences[i].count - 1]);
        assert_ok(forward_step(f, true, &err), &err);
    }
    assert_ok(device_wait(device, &err), &err);
}

static void assert_llama(const char *name, uint8_t type, bool has_factors, bool has_output,
                         double tolerance)
{
    char folder[FOLDER_PATH], path[FOLDER_PATH + 64];
    struct device device;
    struct model model;
    struct forward *f;
    ptxgen_error err;
    struct small_llama *llama = small_llama_make(has_factors, has_output);
    folder_make(folder);
    small_llama_write(llama, folder, path, sizeof path);
    assert_ok(device_open(name, &device, &err), &err);
    assert_ok(model_open(&device, path, &model, &err), &err);
    const struct forward_options options = {.type = type,
                                            .cache_type = type,
                                            .stream_type =
                                                type == PTXGEN_BF16 ? PTXGEN_BF16 : PTXGEN_F32,
                                            .batch = SEQUENCES,
                                            .context = LLAMA_CONTEXT};
    assert_ok(forward_create(&device, &model, &options, &f, &err), &err);
    generate(llama, &device, f, tolerance);
    forward_destroy(f);
    model_close(&model);
    device_close(&device);
    folder_remove(folder);
    small_llama_free(llama);
}

static void llama_in_f32_is_the_formula(void **state)
{
    (void)state;
    assert_llama("cpu:sm_90", PTXGEN_F32, true, true, 0.002);
}

static void llama_in_bf16_with_a_tied_output_is_near_it(void **state)
{
    (void)state;
    assert_llama("cpu:sm_80", PTXGEN_BF16, false, false, 0.6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_in_f32_is_the_formula),
        cmocka_unit_test(llama_in_bf16_with_a_tied_output_is_near_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
