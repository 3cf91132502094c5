/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a check of launches notices of the state between them, with a stand-in for a kernel: it adds
 * what it has of x to a sum that it keeps in the workspace behind its flags.
 */
#include "tests/checks.h"

#include "src/harness/launch_check.h"

#include <ptxgen/kernel.h>

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
    assert_ok(buffer_create(&s->device, "workspace", (FLAGS + 1) * sizeof(float), 0, &s->workspace,
                            &err),
              &err);
    memset(s->workspace.host, 0, s->workspace.bytes);
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

/* ---- launches that may overlap the kernel ahead ---- */

/* Stores x[0] where y is; `early` before it waits. */
static const char copies[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry early(.param .u64 px, .param .u64 py)\n{\n"
    ".reg .b32 %r1; .reg .b64 %rd<3>;\n"
    "ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [py];\nld.global.u32 %r1, [%rd1];\n"
    "griddepcontrol.wait;\nst.global.u32 [%rd2], %r1;\nret;\n}\n"
    ".visible .entry late(.param .u64 px, .param .u64 py)\n{\n"
    ".reg .b32 %r1; .reg .b64 %rd<3>;\n"
    "ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [py];\ngriddepcontrol.wait;\n"
    "ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd2], %r1;\nret;\n}\n";

struct copier {
    struct device device;
    struct buffer x, y;
    ptxgen_kernel *kernel;
    uint32_t overlap;
    int launches, overlapping;
};

static ptxgen_status launch_copy(void *state, uint32_t copy, ptxgen_error *err)
{
    struct copier *c = state;
    void *arguments[] = {&c->x.address, &c->y.address};
    const ptxgen_launch_shape shape = {
        .grid = {1, 1, 1}, .block = {1, 1, 1}, .programmatic = c->overlap};
    (void)copy;
    c->launches++;
    c->overlapping += c->overlap != 0;
    return ptxgen_launch(c->kernel, &shape, c->device.stream, arguments, err);
}

static struct check run_copier(struct copier *c, const char *device, const char *entry)
{
    struct buffer *const inputs[] = {&c->x}, *const outputs[] = {&c->y};
    const struct launch_check launches = {.inputs = inputs,
                                          .outputs = outputs,
                                          .input_count = 1,
                                          .output_count = 1,
                                          .activations = &c->x,
                                          .has_rows = true,
                                          .launch = launch_copy,
                                          .launching = c,
                                          .overlap = &c->overlap,
                                          .compare = nothing_to_compare};
    struct check check = {.outputs = 0};
    ptxgen_module *module = NULL;
    ptxgen_error err;
    *c = (struct copier){.device = open_device(device)};
    assert_ok(ptxgen_module_load_ptx(&c->device.driver, copies, NULL, &module, &err), &err);
    assert_ok(ptxgen_kernel_create(module, entry, 0, &c->kernel, &err), &err);
    assert_ok(buffer_create(&c->device, "x", 6, 0, &c->x, &err), &err);
    assert_ok(buffer_create(&c->device, "y", 4, 0, &c->y, &err), &err);
    memset(c->x.host, 1, c->x.bytes);
    assert_ok(launch_check(&launches, &c->device, &check, &err), &err);
    buffer_destroy(&c->x);
    buffer_destroy(&c->y);
    ptxgen_kernel_destroy(c->kernel);
    ptxgen_module_destroy(module);
    device_close(&c->device);
    return check;
}

static void activations_read_before_the_kernel_ahead_ends_are_found(void **state)
{
    (void)state;
    struct copier c;
    struct check check = run_copier(&c, "cpu:sm_90", "early");
    assert_false(check_passed(&check));
    if (!strstr(check.where, "this read follows a write by the kernel ahead in the stream"))
        fail_msg("%s", check.where);
    assert_true(c.launches == 2 && c.overlapping == 1);
    check = run_copier(&c, "cpu:sm_90", "late");
    assert_right(&check);
    assert_true(c.launches == 2 && c.overlapping == 1 && !c.overlap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_launches_have_other_activations_each),
        cmocka_unit_test(a_flag_that_a_launch_leaves_is_found),
        cmocka_unit_test(sums_that_outlive_a_launch_are_found),
        cmocka_unit_test(activations_read_before_the_kernel_ahead_ends_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
