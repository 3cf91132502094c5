/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole forward pass on the emulator: logits of a small gemma3 model against those of its
 * golden file. Greedy tokens alone would survive a wrong base of RoPE, epsilon or window.
 */
#include "golden.h"

#include "examples/generate/rope.h"
#include "tests/share.h"
#include "tests/status.h"

enum { ALL_STEPS = 24 };
/* Tests by number, of which a build that does a part of the whole does the first (share.h). */
enum { IN_F16, IN_F32, WHOLE_IN_F32, FAULTS };

struct bench {
    struct golden golden;
    struct device device;
    struct model model;
};

static void open_bench(struct bench *b, const char *device)
{
    ptxgen_error err;
    assert_ok(golden_open(GOLDEN_DIR "/gemma3_tiny_logits.gguf", &b->golden, &err), &err);
    assert_ok(device_open(device, &b->device, &err), &err);
    assert_ok(model_open(&b->device, GOLDEN_DIR "/gemma3_tiny.gguf", &b->model, &err), &err);
}

static void close_bench(struct bench *b)
{
    model_close(&b->model);
    device_close(&b->device);
    golden_close(&b->golden);
}

/* Prompts go through as a whole, or in pieces of a few tokens. */
static void run(struct bench *b, uint8_t type, bool is_whole, uint32_t steps)
{
    const struct forward_options options = {
        .type = type, .cache_type = type, .longest_prompt = is_whole ? 24 : 0};
    ptxgen_error err;
    assert_ok(golden_run(&b->golden, &b->device, &b->model, &options, steps, &err), &err);
}

static void assert_golden(int number, const char *device, uint8_t type, bool is_whole,
                          uint32_t most_steps)
{
    struct bench b;
    if (!test_in_share(number))
        return;
    open_bench(&b, device);
    uint32_t steps = (uint32_t)test_share((int)most_steps);
    run(&b, type, is_whole, steps);
    for (uint32_t i = 0; i < b.golden.count; i++) {
        const struct prompt *p = &b.golden.prompts[i];
        if (!(p->largest <= golden_limit(type)))
            fail_msg("%s: a logit of step %u is off by %g", p->name, p->step, p->largest);
        assert_int_equal(p->seen, steps);
        assert_int_equal(p->equal, p->seen);
    }
    assert_int_equal(b.golden.count, 2);
    close_bench(&b);
}

static void logits_in_f32_are_the_golden_files(void **state)
{
    (void)state;
    assert_golden(IN_F32, "cpu:sm_90", PTXGEN_F32, false, ALL_STEPS);
}

static void logits_in_f16_are_the_golden_files(void **state)
{
    (void)state;
    assert_golden(IN_F16, "cpu:sm_90", PTXGEN_F16, true, ALL_STEPS / 2);
}

static void first_logits_of_whole_prompts_in_f32_are_the_golden_files(void **state)
{
    (void)state;
    assert_golden(WHOLE_IN_F32, "cpu:sm_80", PTXGEN_F32, true, 1);
}

/* ---- what must not go unnoticed ---- */

static void set_turns(struct bench *b, int local, double base)
{
    uint64_t turns[128];
    ptxgen_error err;
    rope_turns(base, NULL, b->model.head_size, turns);
    assert_ok(
        device_upload(&b->device, b->model.turns[local], turns, b->model.head_size / 2 * 8, &err),
        &err);
}

/* What is planted here is mended by repair(). */
static void wrong_epsilon(struct bench *b)
{
    b->model.epsilon = 0.01f;
}

static void window_too_long(struct bench *b)
{
    b->model.window++;
}

static void wrong_global_base(struct bench *b)
{
    set_turns(b, 0, 500000);
}

static void wrong_local_base(struct bench *b)
{
    set_turns(b, 1, 1000000);
}

static void other_pattern(struct bench *b)
{
    b->model.layer[4].is_local = false;
}

static void wrong_embedding_scale(struct bench *b)
{
    b->model.embedding_scale *= 1.003f;
}

static void repair(struct bench *b, const struct model *right)
{
    b->model = *right;
    b->model.layer[4].is_local = true;
    set_turns(b, 0, 1000000);
    set_turns(b, 1, 10000);
}

/* On one device, whose kernels stay loaded. */
static void first_logits_notice_a_wrong_model(void **state)
{
    (void)state;
    static void (*const faults[])(struct bench *) = {wrong_epsilon,     window_too_long,
                                                     wrong_global_base, wrong_local_base,
                                                     other_pattern,     wrong_embedding_scale};
    struct bench b;
    if (!test_in_share(FAULTS))
        return;
    open_bench(&b, "cpu:sm_90");
    const struct model right = b.model;
    b.golden.count = 1;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        faults[i](&b);
        run(&b, PTXGEN_F32, false, 1);
        if (golden_passed(&b.golden, PTXGEN_F32))
            fail_msg("fault %zu changes logits by %g alone", i, b.golden.prompts[0].largest);
        repair(&b, &right);
    }
    run(&b, PTXGEN_F32, false, 1);
    assert_true(golden_passed(&b.golden, PTXGEN_F32));
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_in_f32_are_the_golden_files),
        cmocka_unit_test(logits_in_f16_are_the_golden_files),
        cmocka_unit_test(first_logits_of_whole_prompts_in_f32_are_the_golden_files),
        cmocka_unit_test(first_logits_notice_a_wrong_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
