/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a check of launches notices of the state between them, with a stand-in for a kernel: it adds
 * what it has of x to a sum that it keeps in the workspace behind its flags.
 */
#include "tests/checks.h"

#include "src/cli/launch_check.h"

#include <string.h>

enum { FLAGS = 3, COLUMNS = 4 };

struct stand_in {
    struct device device;
    struct buffer x, y, workspace;
    int launches;
    bool forgets_sum;   /* puts it back to 0, as it should */
    uint32_t raises[3]; /* the flag, 1 to FLAGS, that each launch leaves at 1; or 0 */
    float seen[3];      /* x[0] of each launch */
};

static struct stand_in open_stand_in(void)
{
    struct stand_in s = {.device = open_device("cpu"), .forgets_sum = true};
    return s;
}

static void create(struct stand_in *s)
{
    ptxgen_error err;
    assert_ok(buffer_create(&s->device, "x", COLUMNS * sizeof(float), 0, &s->x, &err), &err);
    assert_ok(buffer_create(&s->device, "y", sizeof(float), 0, &s->y, &err), &err);
    assert_ok(buffer_create_workspace(&s->device, (FLAGS + 1) * sizeof(float), &s->workspace, &err),
              &err);
    for (size_t i = 0; i < COLUMNS; i++)
        ptxgen_element_store(PTXGEN_F32, s->x.host, i, (double)i + 1);
}

static ptxgen_status add_to_sum(void *state, uint32_t copy, ptxgen_error *err)
{
    struct stand_in *s = state;
    const ptxgen_driver *driver = &s->device.driver;
    float x[COLUMNS], sum;
    uint32_t words[FLAGS + 1];
    (void)copy, (void)err;
    assert_int_equal(driver->memcpy_dtoh(x, s->x.address, sizeof x), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(driver->memcpy_dtoh(words, s->workspace.address, sizeof words),
                     PTXGEN_CUDA_SUCCESS);
    memcpy(&sum, &words[FLAGS], sizeof sum);
    for (int i = 0; i < COLUMNS; i++)
        sum += x[i];
    if (s->launches < 3) {
        s->seen[s->launches] = x[0];
        for (uint32_t i = 0; i < FLAGS; i++)
            words[i] = s->raises[s->launches] == i + 1;
    }
    s->launches++;
    words[FLAGS] = 0;
    if (!s->forgets_sum)
        memcpy(&words[FLAGS], &sum, sizeof sum);
    assert_int_equal(driver->memcpy_htod(s->y.address, &sum, sizeof sum), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(driver->memcpy_htod(s->workspace.address, words, sizeof words),
                     PTXGEN_CUDA_SUCCESS);
    return PTXGEN_OK;
}

static ptxgen_status nothing_to_compare(void *problem, struct check *check, ptxgen_error *err)
{
    (void)problem, (void)check, (void)err;
    return PTXGEN_OK;
}

static struct check run(struct stand_in *s)
{
    struct buffer *const inputs[] = {&s->x}, *const outputs[] = {&s->y};
    const struct launch_check c = {.inputs = inputs,
                                   .outputs = outputs,
                                   .input_count = 1,
                                   .output_count = 1,
                                   .workspace = &s->workspace,
                                   .flags = FLAGS,
                                   .activations = &s->x,
                                   .activation_type = PTXGEN_F32,
                                   .has_rows = true,
                                   .launch = add_to_sum,
                                   .launching = s,
                                   .compare = nothing_to_compare};
    struct check check = {.outputs = 0};
    ptxgen_error err;
    create(s);
    assert_ok(launch_check(&c, &s->device, &check, &err), &err);
    buffer_destroy(&s->x);
    buffer_destroy(&s->y);
    buffer_destroy(&s->workspace);
    device_close(&s->device);
    return check;
}

static void expect_finding(struct stand_in *s, const char *words)
{
    struct check check = run(s);
    assert_false(check_passed(&check));
    if (!strstr(check.where, words))
        fail_msg("\"%s\" does not say \"%s\"", check.where, words);
}

static void three_launches_have_other_activations_each(void **state)
{
    (void)state;
    struct stand_in s = open_stand_in();
    struct check check = run(&s);
    assert_right(&check);
    assert_int_equal(s.launches, 3);
    assert_true(s.seen[0] == 1 && s.seen[1] == -0.5f && s.seen[2] == 1);
}

static void a_flag_that_a_launch_leaves_is_found(void **state)
{
    (void)state;
    static const char *const launches[] = {"the first launch left flag 2 of 3",
                                           "a second launch, with other activations, left flag 2",
                                           "a third launch into one workspace left flag 2"};
    for (int i = 0; i < 3; i++) {
        struct stand_in s = open_stand_in();
        s.raises[i] = FLAGS;
        expect_finding(&s, launches[i]);
    }
}

static void sums_that_outlive_a_launch_are_found(void **state)
{
    (void)state;
    struct stand_in s = open_stand_in();
    s.forgets_sum = false;
    expect_finding(&s, "a third launch into one workspace gave other bits in y than the first");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_launches_have_other_activations_each),
        cmocka_unit_test(a_flag_that_a_launch_leaves_is_found),
        cmocka_unit_test(sums_that_outlive_a_launch_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
