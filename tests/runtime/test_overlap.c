/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each family's table of the arrays of a launch: every output against every other operand from both
 * sides, and the size that is stated of every operand.
 * Addresses are made up, and launches that are let through end in a stub.
 */
#include "tests/launches.h"

#include "src/runtime/array.h"

#include <ptxgen/dense.h>
#include <ptxgen/marlin.h>
#include <ptxgen/marlin_repack.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

enum {
    ROWS = 2,
    K = 256,
    N = 64,
    MOST_OPERANDS = 14,
    HOME = 0x1000000 /* from one operand to the next */
};

struct operand {
    const char *name;
    size_t offset; /* of the address in the arguments */
    size_t size;   /* of the member that says how many bytes are there */
    uint64_t bytes;
    unsigned align;
    enum launch_use use;
};

struct subject {
    const char *family;
    void *kernel, *args;
    ptxgen_status (*launch)(const void *kernel, const void *args, ptxgen_error *err);
    struct operand operands[MOST_OPERANDS];
};

static ptxgen_cu_result launch_nothing(ptxgen_cu_function function, unsigned int grid_x,
                                       unsigned int grid_y, unsigned int grid_z,
                                       unsigned int block_x, unsigned int block_y,
                                       unsigned int block_z, unsigned int shared,
                                       ptxgen_cu_stream stream, void **parameters, void **extra)
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared, (void)stream, (void)parameters, (void)extra;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result launch_nothing_ex(const ptxgen_cu_launch_config *config,
                                          ptxgen_cu_function function, void **parameters,
                                          void **extra)
{
    (void)config, (void)function, (void)parameters, (void)extra;
    return PTXGEN_CUDA_SUCCESS;
}

static struct emulated emulated;

static int setup(void **state)
{
    (void)state;
    open_emulated(&emulated);
    emulated.driver.launch_kernel = launch_nothing;
    emulated.driver.launch_kernel_ex = launch_nothing_ex;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close_emulated(&emulated);
    return 0;
}

static uint64_t *address_of(const struct subject *s, const struct operand *o)
{
    return (uint64_t *)(void *)((char *)s->args + o->offset);
}

static void accepted(const struct subject *s, const char *what)
{
    ptxgen_error err = {0};
    if (s->launch(s->kernel, s->args, &err) != PTXGEN_OK)
        fail_msg("%s: %s: %s", s->family, what, err.message);
}

static void refused(const struct subject *s, const struct operand *a, const struct operand *b)
{
    char one[80], other[80];
    ptxgen_error err = {0};
    ptxgen_status status = s->launch(s->kernel, s->args, &err);
    snprintf(one, sizeof one, "%s: %s, which is written, from", s->family, a->name);
    snprintf(other, sizeof other, "overlaps %s, from", b->name);
    if (status != PTXGEN_ERROR_INVALID_ARGUMENT || !strstr(err.message, one) ||
        !strstr(err.message, other))
        fail_msg("%s over %s: status %d, '%s'", a->name, b->name, status, err.message);
}

static uint64_t up(uint64_t address, unsigned align)
{
    return (address + align - 1) / align * align;
}

/* The output against the other from both sides: next to it, one step over, and just there. */
static void expect_pair(const struct subject *s, const struct operand *output,
                        const struct operand *other)
{
    bool is_later = other->use == LAUNCH_OUTPUT && other > output;
    const struct operand *named = is_later ? other : output, *second = is_later ? output : other;
    uint64_t *address = address_of(s, output), home = *address, there = *address_of(s, other);
    char what[80];
    snprintf(what, sizeof what, "%s beside %s", output->name, other->name);
    *address = up(there + other->bytes, output->align);
    accepted(s, what);
    *address = (there + other->bytes - 1) / output->align * output->align;
    refused(s, named, second);
    *address = (there - output->bytes) / output->align * output->align;
    accepted(s, what);
    *address = up(there - output->bytes + 1, output->align);
    refused(s, named, second);
    *address = there;
    if (other->use == LAUNCH_IN_PLACE && strcmp(output->name, "workspace") != 0)
        accepted(s, what);
    else
        refused(s, named, second);
    *address = home;
}

/* The size that the caller states of each operand: as long as it must be, then a byte shorter. */
static void expect_sizes(const struct subject *s)
{
    for (const struct operand *o = s->operands; o->name; o++) {
        bool is_workspace = strcmp(o->name, "workspace") == 0;
        char words[120];
        ptxgen_error err = {0};
        uint64_t *size = (uint64_t *)(void *)((char *)s->args + o->size), kept = *size;
        *size = o->bytes;
        accepted(s, o->name);
        *size = o->bytes - 1;
        if (is_workspace)
            snprintf(words, sizeof words, "%s: a workspace of %llu bytes is below the %llu that",
                     s->family, (unsigned long long)*size, (unsigned long long)o->bytes);
        else
            snprintf(words, sizeof words, "%s: %s has %llu bytes, fewer than the %llu ", s->family,
                     o->name, (unsigned long long)*size, (unsigned long long)o->bytes);
        assert_refused(s->launch(s->kernel, s->args, &err), &err, words);
        *size = kept;
    }
}

static void expect_rule(struct subject *s)
{
    uint64_t home = HOME;
    for (struct operand *o = s->operands; o->name; o++, home += HOME)
        *address_of(s, o) = home;
    accepted(s, "all apart");
    expect_sizes(s);
    for (const struct operand *o = s->operands; o->name; o++)
        for (const struct operand *p = s->operands; p->name && o->use == LAUNCH_OUTPUT; p++)
            if (o != p)
                expect_pair(s, o, p);
    for (const struct operand *o = s->operands; o->name; o++) {
        uint64_t *address = address_of(s, o), kept = *address;
        ptxgen_error err = {0};
        *address = UINT64_MAX / o->align * o->align - (o->align > 1 ? o->align : 0);
        if (o->bytes > o->align * 2)
            assert_refused(s->launch(s->kernel, s->args, &err), &err,
                           "leaves the 64-bit address space");
        *address = kept;
    }
}

/*
 * Operands of 16-bit elements with a row stride in the arguments: where, of how many bytes, and the
 * row's elements.
 */
struct rows {
    const char *name; /* NULL past the last */
    size_t stride, size;
    uint64_t columns;
};

#define STRIDED(type, operand, member, columns)                                                    \
    {                                                                                              \
        operand, AT(type, member), sizeof(((ptxgen_##type##_args *)0)->member), columns            \
    }

static uint64_t set_stride(const struct subject *s, const struct rows *rows, uint64_t stride)
{
    char *at = (char *)s->args + rows->stride;
    uint32_t narrow, before;
    uint64_t wide = stride, was;
    if (rows->size == sizeof wide) {
        memcpy(&was, at, sizeof was);
        memcpy(at, &wide, sizeof wide);
        return was;
    }
    assert_int_equal(rows->size, sizeof narrow);
    narrow = (uint32_t)stride;
    memcpy(&before, at, sizeof before);
    memcpy(at, &narrow, sizeof narrow);
    return before;
}

/* The rule again with another stride for each array, so that its own decides where it ends. */
static void expect_rule_of_strides(const struct subject *packed, const struct rows *rows,
                                   uint64_t count)
{
    struct subject s = *packed;
    uint64_t before[MOST_OPERANDS];
    for (size_t i = 0; rows[i].name; i++) {
        struct operand *o = s.operands;
        uint64_t stride = rows[i].columns + 16 * (i + 1);
        while (o->name && strcmp(o->name, rows[i].name) != 0)
            o++;
        assert_non_null(o->name);
        before[i] = set_stride(&s, &rows[i], stride);
        o->bytes = 2 * ((count - 1) * stride + rows[i].columns);
        if (o->use == LAUNCH_IN_PLACE)
            o->use = LAUNCH_INPUT; /* the output has another stride, so it is not the same array */
    }
    expect_rule(&s);
    for (size_t i = 0; rows[i].name; i++)
        set_stride(&s, &rows[i], before[i]);
}

/* x in the first columns of one buffer, y in the next: in both orders, then one element over. */
static void expect_slices(const struct subject *s, uint64_t *x, uint64_t *y, uint64_t x_bytes,
                          uint64_t y_bytes, unsigned element)
{
    uint64_t x_home = *x, y_home = *y, buffer = 64 * (uint64_t)HOME;
    ptxgen_error err = {0};
    *x = buffer, *y = buffer + x_bytes;
    accepted(s, "columns behind those of x");
    *y -= element;
    assert_refused(s->launch(s->kernel, s->args, &err), &err, "overlaps");
    *y = buffer, *x = buffer + y_bytes;
    accepted(s, "columns before those of x");
    *x -= element;
    assert_refused(s->launch(s->kernel, s->args, &err), &err, "overlaps");
    *x = x_home, *y = y_home;
}

/* ---- dense ---- */

static ptxgen_status launch_dense(const void *kernel, const void *args, ptxgen_error *err)
{
    return ptxgen_dense_launch(kernel, args, NULL, err);
}

#define AT(type, member) offsetof(ptxgen_##type##_args, member)

static void dense_writes_over_nothing_but_the_residual_itself(void **state)
{
    enum { X_STRIDE = K + 4 /* to be aligned, in a workspace */ };
    const ptxgen_dense_spec spec = {.n = N, .k = K, .type = PTXGEN_F16, .bias = 1, .residual = 1};
    const ptxgen_target target = target_of("sm_90");
    ptxgen_dense_args args = {.m = ROWS, .x = 16, .w = 16, .x_stride = X_STRIDE};
    ptxgen_dense_plan plan;
    ptxgen_dense *kernel;
    ptxgen_error err;
    (void)state;
    assert_ok(ptxgen_dense_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_dense_load(&emulated.driver, &plan, NULL, &kernel, &err), &err);
    assert_ok(ptxgen_dense_workspace_bytes(kernel, &args, &args.workspace_bytes, &err), &err);
    assert_true(args.workspace_bytes >= ROWS * K * 2);
    struct subject s = {
        .family = "dense",
        .kernel = kernel,
        .args = &args,
        .launch = launch_dense,
        .operands = {{"x", AT(dense, x), AT(dense, x_bytes), 2 * (X_STRIDE + K), 2, LAUNCH_INPUT},
                     {"w", AT(dense, w), AT(dense, w_bytes), 2 * K * N, 16, LAUNCH_INPUT},
                     {"bias", AT(dense, bias), AT(dense, bias_bytes), 2 * N, 2, LAUNCH_INPUT},
                     {"residual", AT(dense, residual), AT(dense, residual_bytes), 2 * N * ROWS, 2,
                      LAUNCH_IN_PLACE},
                     {"y", AT(dense, y), AT(dense, y_bytes), 2 * N * ROWS, 2, LAUNCH_OUTPUT},
                     {"workspace", AT(dense, workspace), AT(dense, workspace_bytes),
                      args.workspace_bytes, 16, LAUNCH_OUTPUT}}};
    expect_rule(&s);
    expect_rule_of_strides(&s,
                           (const struct rows[]){STRIDED(dense, "residual", residual_stride, N),
                                                 STRIDED(dense, "y", y_stride, N),
                                                 {NULL, 0, 0, 0}},
                           ROWS);
    expect_rule_of_strides(
        &s, (const struct rows[]){STRIDED(dense, "w", w_stride, K), {NULL, 0, 0, 0}}, N);
    const ptxgen_dense_args kept = args;
    args.x_stride = args.y_stride = K + N;
    expect_slices(&s, &args.x, &args.y, 2 * K, 2 * N, 2);
    args.residual_stride = 2 * N;
    args.residual = args.y;
    assert_refused(ptxgen_dense_launch(kernel, &args, NULL, &err), &err,
                   "is not the same array: equal address and row stride");
    args = kept;
    args.y_stride = UINT64_C(1) << 63;
    assert_refused(ptxgen_dense_launch(kernel, &args, NULL, &err), &err,
                   "dense: y, 2 rows with a row stride of 9223372036854775808 elements");
    ptxgen_dense_destroy(kernel);
}

/* ---- marlin ---- */

static ptxgen_status launch_marlin(const void *kernel, const void *args, ptxgen_error *err)
{
    return ptxgen_marlin_launch(kernel, args, NULL, err);
}

static void marlin_writes_over_nothing_but_the_residual_itself(void **state)
{
    enum { GROUPS = K / 64, X_STRIDE = K + 4 };
    const ptxgen_marlin_spec spec = {.k = K,
                                     .n = N,
                                     .group_size = 64,
                                     .type = PTXGEN_F16,
                                     .zeros = 1,
                                     .act_order = 1,
                                     .bias = 1,
                                     .residual = 1};
    const ptxgen_target target = target_of("sm_90");
    ptxgen_marlin_args args = {.m = ROWS, .x = 16, .x_stride = X_STRIDE};
    ptxgen_marlin_plan plan;
    ptxgen_marlin *kernel;
    ptxgen_error err;
    (void)state;
    assert_ok(ptxgen_marlin_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_marlin_load(&emulated.driver, &plan, NULL, &kernel, &err), &err);
    assert_ok(ptxgen_marlin_workspace_bytes(kernel, &args, &args.workspace_bytes, &err), &err);
    struct subject s = {
        .family = "marlin",
        .kernel = kernel,
        .args = &args,
        .launch = launch_marlin,
        .operands = {
            {"x", AT(marlin, x), AT(marlin, x_bytes), 2 * (X_STRIDE + K), 2, LAUNCH_INPUT},
            {"codes", AT(marlin, codes), AT(marlin, codes_bytes), K * N / 2, 16, LAUNCH_INPUT},
            {"scales", AT(marlin, scales), AT(marlin, scales_bytes), 2 * N * GROUPS, 16,
             LAUNCH_INPUT},
            {"zeros", AT(marlin, zeros), AT(marlin, zeros_bytes), N / 2 * GROUPS, 16, LAUNCH_INPUT},
            {"order", AT(marlin, order), AT(marlin, order_bytes), 4 * K, 16, LAUNCH_INPUT},
            {"bias", AT(marlin, bias), AT(marlin, bias_bytes), 2 * N, 2, LAUNCH_INPUT},
            {"residual", AT(marlin, residual), AT(marlin, residual_bytes), 2 * N * ROWS, 2,
             LAUNCH_IN_PLACE},
            {"y", AT(marlin, y), AT(marlin, y_bytes), 2 * N * ROWS, 2, LAUNCH_OUTPUT},
            {"workspace", AT(marlin, workspace), AT(marlin, workspace_bytes), args.workspace_bytes,
             16, LAUNCH_OUTPUT}}};
    expect_rule(&s);
    expect_rule_of_strides(&s,
                           (const struct rows[]){STRIDED(marlin, "residual", residual_stride, N),
                                                 STRIDED(marlin, "y", y_stride, N),
                                                 {NULL, 0, 0, 0}},
                           ROWS);
    args.x_stride = args.y_stride = K + N;
    expect_slices(&s, &args.x, &args.y, 2 * K, 2 * N, 2);
    args.x_stride = UINT64_C(1) << 63;
    assert_refused(ptxgen_marlin_launch(kernel, &args, NULL, &err), &err, "marlin: x, 2 rows");
    ptxgen_marlin_destroy(kernel);
}

static void marlin_with_swiglu_writes_over_neither_bias(void **state)
{
    const ptxgen_marlin_spec spec = {.k = K,
                                     .n = N,
                                     .group_size = -1,
                                     .type = PTXGEN_BF16,
                                     .epilogue = PTXGEN_EPILOGUE_SWIGLU,
                                     .bias = 1};
    const ptxgen_target target = target_of("sm_80");
    ptxgen_marlin_args args = {.m = ROWS, .x = 16, .x_stride = K};
    ptxgen_marlin_plan plan;
    ptxgen_marlin *kernel;
    ptxgen_error err;
    (void)state;
    assert_ok(ptxgen_marlin_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_marlin_load(&emulated.driver, &plan, NULL, &kernel, &err), &err);
    assert_ok(ptxgen_marlin_workspace_bytes(kernel, &args, &args.workspace_bytes, &err), &err);
    args.workspace = 1 << 12;
    struct subject s = {
        .family = "marlin",
        .kernel = kernel,
        .args = &args,
        .launch = launch_marlin,
        .operands = {
            {"x", AT(marlin, x), AT(marlin, x_bytes), 2 * K * ROWS, 16, LAUNCH_INPUT},
            {"codes", AT(marlin, codes), AT(marlin, codes_bytes), K * N, 16, LAUNCH_INPUT},
            {"scales", AT(marlin, scales), AT(marlin, scales_bytes), 4 * N, 16, LAUNCH_INPUT},
            {"bias", AT(marlin, bias), AT(marlin, bias_bytes), 2 * N, 2, LAUNCH_INPUT},
            {"up_bias", AT(marlin, up_bias), AT(marlin, up_bias_bytes), 2 * N, 2, LAUNCH_INPUT},
            {"y", AT(marlin, y), AT(marlin, y_bytes), 2 * N * ROWS, 2, LAUNCH_OUTPUT}}};
    expect_rule(&s);
    ptxgen_marlin_destroy(kernel);
}

/* ---- sparse24 ---- */

static ptxgen_status launch_sparse24(const void *kernel, const void *args, ptxgen_error *err)
{
    return ptxgen_sparse24_launch(kernel, args, NULL, err);
}

static ptxgen_sparse24 *load_sparse24(const ptxgen_sparse24_spec *spec)
{
    const ptxgen_target target = target_of("sm_90");
    ptxgen_sparse24_plan plan;
    ptxgen_sparse24 *kernel;
    ptxgen_error err;
    assert_ok(ptxgen_sparse24_make_plan(spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_sparse24_load(&emulated.driver, &plan, NULL, &kernel, &err), &err);
    return kernel;
}

static void sparse24_writes_over_nothing_but_the_residual_itself(void **state)
{
    const ptxgen_sparse24_spec specs[] = {{.n = N,
                                           .k = K,
                                           .type = PTXGEN_SPARSE24_F16,
                                           .y_type = PTXGEN_F16,
                                           .bias = 1,
                                           .residual = 1},
                                          {.n = N,
                                           .k = K,
                                           .type = PTXGEN_SPARSE24_F16,
                                           .y_type = PTXGEN_F16,
                                           .bias = 1,
                                           .residual = 1,
                                           .tier = 1},
                                          {.n = N,
                                           .k = K,
                                           .type = PTXGEN_SPARSE24_S8,
                                           .y_type = PTXGEN_F16,
                                           .bias = 1,
                                           .residual = 1}};
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        bool is_s8 = specs[i].type == PTXGEN_SPARSE24_S8;
        unsigned x = is_s8 ? 1 : 2, stride = K + 4;
        ptxgen_sparse24_args args = {.m = ROWS, .x = 16, .x_stride = stride};
        ptxgen_sparse24 *kernel = load_sparse24(&specs[i]);
        size_t packed;
        ptxgen_error err;
        assert_ok(ptxgen_sparse24_packed_bytes(&specs[i], &packed, &err), &err);
        assert_ok(ptxgen_sparse24_workspace_bytes(kernel, &args, &args.workspace_bytes, &err),
                  &err);
        struct subject s = {
            .family = "sparse24",
            .kernel = kernel,
            .args = &args,
            .launch = launch_sparse24,
            .operands = {
                {"x", AT(sparse24, x), AT(sparse24, x_bytes), x * (stride + K), x, LAUNCH_INPUT},
                {"w", AT(sparse24, w), AT(sparse24, w_bytes), packed, 16, LAUNCH_INPUT},
                {"bias", AT(sparse24, bias), AT(sparse24, bias_bytes), 2 * N, 2, LAUNCH_INPUT},
                {"residual", AT(sparse24, residual), AT(sparse24, residual_bytes), 2 * N * ROWS, 2,
                 LAUNCH_IN_PLACE},
                {"y", AT(sparse24, y), AT(sparse24, y_bytes), 2 * N * ROWS, 2, LAUNCH_OUTPUT},
                {"workspace", AT(sparse24, workspace), AT(sparse24, workspace_bytes),
                 args.workspace_bytes, 16, LAUNCH_OUTPUT}}};
        if (is_s8) {
            s.operands[6] = (struct operand){
                "x_scale", AT(sparse24, x_scale), AT(sparse24, x_scale_bytes), 4 * ROWS,
                4,         LAUNCH_INPUT};
            s.operands[7] = (struct operand){
                "w_scale", AT(sparse24, w_scale), AT(sparse24, w_scale_bytes), 4 * N,
                4,         LAUNCH_INPUT};
        }
        expect_rule(&s);
        expect_rule_of_strides(
            &s,
            (const struct rows[]){STRIDED(sparse24, "residual", residual_stride, N),
                                  STRIDED(sparse24, "y", y_stride, N),
                                  {NULL, 0, 0, 0}},
            ROWS);
        if (!is_s8) {
            args.x_stride = args.y_stride = K + N;
            expect_slices(&s, &args.x, &args.y, 2 * K, 2 * N, 2);
        }
        args.y_stride = UINT64_C(1) << 63;
        assert_refused(ptxgen_sparse24_launch(kernel, &args, NULL, &err), &err,
                       "sparse24: y, 2 rows");
        ptxgen_sparse24_destroy(kernel);
    }
}

static ptxgen_status launch_inflate(const void *kernel, const void *args, ptxgen_error *err)
{
    return ptxgen_sparse24_inflate(kernel, args, NULL, err);
}

static void sparse24_inflates_to_somewhere_else(void **state)
{
    const ptxgen_sparse24_spec spec = {
        .n = N, .k = K, .type = PTXGEN_SPARSE24_F32, .y_type = PTXGEN_F32, .tier = 1};
    ptxgen_sparse24_inflate_args args = {.packed = 0};
    size_t packed;
    ptxgen_error err;
    (void)state;
    assert_ok(ptxgen_sparse24_packed_bytes(&spec, &packed, &err), &err);
    struct subject s = {
        .family = "sparse24",
        .kernel = load_sparse24(&spec),
        .args = &args,
        .launch = launch_inflate,
        .operands = {{"packed", AT(sparse24_inflate, packed), AT(sparse24_inflate, packed_bytes),
                      packed, 16, LAUNCH_INPUT},
                     {"dense", AT(sparse24_inflate, dense), AT(sparse24_inflate, dense_bytes),
                      4 * K * N, 16, LAUNCH_OUTPUT}}};
    expect_rule(&s);
    ptxgen_sparse24_destroy(s.kernel);
}

/* ---- w8a8 ---- */

static ptxgen_status launch_w8a8(const void *kernel, const void *args, ptxgen_error *err)
{
    return ptxgen_w8a8_launch(kernel, args, NULL, err);
}

static void w8a8_writes_over_nothing(void **state)
{
    enum { TOKENS = 12 };
    const ptxgen_target target = target_of("sm_90");
    ptxgen_error err;
    (void)state;
    for (int scales = PTXGEN_W8A8_TENSOR; scales <= PTXGEN_W8A8_TOKEN; scales++) {
        unsigned given = scales == PTXGEN_W8A8_TOKEN ? TOKENS : 1;
        const ptxgen_w8a8_spec spec = {.k = K,
                                       .n = N,
                                       .w_stride = K + 16,
                                       .x_type = PTXGEN_F16,
                                       .y_type = PTXGEN_F16,
                                       .scales = (uint8_t)scales,
                                       .asymmetric = 1,
                                       .bias = 1};
        ptxgen_w8a8_args args = {.m = TOKENS};
        ptxgen_w8a8_plan plan;
        ptxgen_w8a8 *kernel;
        assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
        assert_ok(ptxgen_w8a8_load(&emulated.driver, &plan, NULL, &kernel, &err), &err);
        assert_ok(ptxgen_w8a8_workspace_bytes(kernel, &args, &args.workspace_bytes, &err), &err);
        assert_true(args.workspace_bytes > 0);
        struct subject s = {
            .family = "w8a8",
            .kernel = kernel,
            .args = &args,
            .launch = launch_w8a8,
            .operands = {
                {"x", AT(w8a8, x), AT(w8a8, x_bytes), 2 * K * TOKENS, 2, LAUNCH_INPUT},
                {"w", AT(w8a8, w), AT(w8a8, w_bytes), (K + 16) * (N - 1) + K, 16, LAUNCH_INPUT},
                {"w_scale", AT(w8a8, w_scale), AT(w8a8, w_scale_bytes), 4 * N, 4, LAUNCH_INPUT},
                {"w_sum", AT(w8a8, w_sum), AT(w8a8, w_sum_bytes), 4 * N, 4, LAUNCH_INPUT},
                {"bias", AT(w8a8, bias), AT(w8a8, bias_bytes), 4 * N, 4, LAUNCH_INPUT},
                {"x_scale", AT(w8a8, x_scale), AT(w8a8, x_scale_bytes), 4 * given, 4, LAUNCH_INPUT},
                {"x_zero", AT(w8a8, x_zero), AT(w8a8, x_zero_bytes), 4 * given, 4, LAUNCH_INPUT},
                {"y", AT(w8a8, y), AT(w8a8, y_bytes), 2 * N * TOKENS, 2, LAUNCH_OUTPUT},
                {"workspace", AT(w8a8, workspace), AT(w8a8, workspace_bytes), args.workspace_bytes,
                 256, LAUNCH_OUTPUT}}};
        expect_rule(&s);
        expect_rule_of_strides(&s,
                               (const struct rows[]){STRIDED(w8a8, "x", x_stride, K),
                                                     STRIDED(w8a8, "y", y_stride, N),
                                                     {NULL, 0, 0, 0}},
                               TOKENS);
        args.x_stride = args.y_stride = K + N;
        expect_slices(&s, &args.x, &args.y, 2 * K, 2 * N, 2);
        ptxgen_w8a8_destroy(kernel);
    }
}

/* ---- rmsnorm_q4k ---- */

static ptxgen_status launch_rmsnorm_q4k(const void *kernel, const void *args, ptxgen_error *err)
{
    return ptxgen_rmsnorm_q4k_launch(kernel, args, NULL, err);
}

static void rmsnorm_q4k_writes_over_nothing(void **state)
{
    enum { OTHER = 8, Q4K = K / 256 * 144 };
    const ptxgen_rmsnorm_q4k_spec spec = {.k = K,
                                          .n = {N, OTHER},
                                          .epsilon = 1e-5f,
                                          .x_type = PTXGEN_F16,
                                          .y_type = PTXGEN_F16,
                                          .bias = 1,
                                          .residual = 1,
                                          .residual_out = 1};
    const ptxgen_target target = target_of("sm_90");
    ptxgen_rmsnorm_q4k_args args = {.m = ROWS};
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_rmsnorm_q4k *kernel;
    ptxgen_error err;
    (void)state;
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_rmsnorm_q4k_load(&emulated.driver, &plan, NULL, &kernel, &err), &err);
    struct subject s = {
        .family = "rmsnorm_q4k",
        .kernel = kernel,
        .args = &args,
        .launch = launch_rmsnorm_q4k,
        .operands = {
            {"x", AT(rmsnorm_q4k, x), AT(rmsnorm_q4k, x_bytes), 2 * K * ROWS, 2, LAUNCH_INPUT},
            {"gamma", AT(rmsnorm_q4k, gamma), AT(rmsnorm_q4k, gamma_bytes), 4 * K, 4, LAUNCH_INPUT},
            {"residual", AT(rmsnorm_q4k, residual), AT(rmsnorm_q4k, residual_bytes), 2 * K * ROWS,
             2, LAUNCH_INPUT},
            {"residual_out", AT(rmsnorm_q4k, residual_out), AT(rmsnorm_q4k, residual_out_bytes),
             2 * K * ROWS, 2, LAUNCH_OUTPUT},
            {"w[0]", AT(rmsnorm_q4k, w[0]), AT(rmsnorm_q4k, w_bytes[0]), Q4K * N, 16, LAUNCH_INPUT},
            {"y[0]", AT(rmsnorm_q4k, y[0]), AT(rmsnorm_q4k, y_bytes[0]), 2 * N * ROWS, 2,
             LAUNCH_OUTPUT},
            {"bias[0]", AT(rmsnorm_q4k, bias[0]), AT(rmsnorm_q4k, bias_bytes[0]), 4 * N, 4,
             LAUNCH_INPUT},
            {"w[1]", AT(rmsnorm_q4k, w[1]), AT(rmsnorm_q4k, w_bytes[1]), Q4K * OTHER, 16,
             LAUNCH_INPUT},
            {"y[1]", AT(rmsnorm_q4k, y[1]), AT(rmsnorm_q4k, y_bytes[1]), 2 * OTHER * ROWS, 2,
             LAUNCH_OUTPUT},
            {"bias[1]", AT(rmsnorm_q4k, bias[1]), AT(rmsnorm_q4k, bias_bytes[1]), 4 * OTHER, 4,
             LAUNCH_INPUT}}};
    expect_rule(&s);
    expect_rule_of_strides(
        &s,
        (const struct rows[]){STRIDED(rmsnorm_q4k, "x", x_stride, K),
                              STRIDED(rmsnorm_q4k, "residual", residual_stride, K),
                              STRIDED(rmsnorm_q4k, "residual_out", residual_out_stride, K),
                              STRIDED(rmsnorm_q4k, "y[0]", y_stride[0], N),
                              STRIDED(rmsnorm_q4k, "y[1]", y_stride[1], OTHER),
                              {NULL, 0, 0, 0}},
        ROWS);
    args.x_stride = args.y_stride[0] = K + N;
    expect_slices(&s, &args.x, &args.y[0], 2 * K, 2 * N, 2);
    args.y_stride[1] = K + N; /* Q and K of one buffer */
    expect_slices(&s, &args.y[0], &args.y[1], 2 * N, 2 * OTHER, 2);
    ptxgen_rmsnorm_q4k_destroy(kernel);
}

/* ---- marlin_repack ---- */

static ptxgen_status launch_repack(const void *kernel, const void *args, ptxgen_error *err)
{
    return ptxgen_marlin_repack_launch(kernel, args, NULL, err);
}

static void marlin_repack_writes_over_nothing(void **state)
{
    enum { GROUPS = K / 64 };
    const ptxgen_target target = target_of("sm_80");
    (void)state;
    for (int gated = 0; gated < 2; gated++) {
        const ptxgen_marlin_repack_spec spec = {.k = K,
                                                .n = N,
                                                .group_size = 64,
                                                .type = PTXGEN_F16,
                                                .zeros = 1,
                                                .act_order = 1,
                                                .epilogue = gated ? PTXGEN_EPILOGUE_SWIGLU
                                                                  : PTXGEN_EPILOGUE_NONE,
                                                .format = PTXGEN_W4_GPTQ_V1,
                                                .scale_type = PTXGEN_F32};
        unsigned each = gated ? 2 : 1;
        ptxgen_marlin_repack_args args = {.order = 16};
        ptxgen_marlin_repack_plan plan;
        ptxgen_marlin_repack *kernel;
        ptxgen_error err;
        assert_ok(ptxgen_marlin_repack_make_plan(&spec, &target, &plan, &err), &err);
        assert_ok(ptxgen_marlin_repack_load(&emulated.driver, &plan, NULL, &kernel, &err), &err);
        struct subject s = {
            .family = "marlin_repack",
            .kernel = kernel,
            .args = &args,
            .launch = launch_repack,
            .operands = {{"weights", AT(marlin_repack, weights.weights),
                          AT(marlin_repack, weights.weights_bytes), K * N / 2, 16, LAUNCH_INPUT},
                         {"weights' scales", AT(marlin_repack, weights.scales),
                          AT(marlin_repack, weights.scales_bytes), 4 * N * GROUPS, 4, LAUNCH_INPUT},
                         {"weights' zeros", AT(marlin_repack, weights.zeros),
                          AT(marlin_repack, weights.zeros_bytes), N / 2 * GROUPS, 4, LAUNCH_INPUT},
                         {"order", AT(marlin_repack, order), AT(marlin_repack, order_bytes), 4 * K,
                          16, LAUNCH_INPUT},
                         {"codes", AT(marlin_repack, codes), AT(marlin_repack, codes_bytes),
                          each * K * N / 2, 16, LAUNCH_OUTPUT},
                         {"scales", AT(marlin_repack, scales), AT(marlin_repack, scales_bytes),
                          each * 2 * N * GROUPS, 16, LAUNCH_OUTPUT},
                         {"zeros", AT(marlin_repack, zeros), AT(marlin_repack, zeros_bytes),
                          each * N / 2 * GROUPS, 16, LAUNCH_OUTPUT},
                         {"refused", AT(marlin_repack, refused), AT(marlin_repack, refused_bytes),
                          8, 8, LAUNCH_OUTPUT}}};
        if (gated) {
            s.operands[8] = (struct operand){"up",
                                             AT(marlin_repack, up.weights),
                                             AT(marlin_repack, up.weights_bytes),
                                             K * N / 2,
                                             16,
                                             LAUNCH_INPUT};
            s.operands[9] = (struct operand){"up's scales",
                                             AT(marlin_repack, up.scales),
                                             AT(marlin_repack, up.scales_bytes),
                                             4 * N * GROUPS,
                                             4,
                                             LAUNCH_INPUT};
            s.operands[10] = (struct operand){"up's zeros",
                                              AT(marlin_repack, up.zeros),
                                              AT(marlin_repack, up.zeros_bytes),
                                              N / 2 * GROUPS,
                                              4,
                                              LAUNCH_INPUT};
        }
        expect_rule(&s);
        ptxgen_marlin_repack_destroy(kernel);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_writes_over_nothing_but_the_residual_itself),
        cmocka_unit_test(marlin_writes_over_nothing_but_the_residual_itself),
        cmocka_unit_test(marlin_with_swiglu_writes_over_neither_bias),
        cmocka_unit_test(sparse24_writes_over_nothing_but_the_residual_itself),
        cmocka_unit_test(sparse24_inflates_to_somewhere_else),
        cmocka_unit_test(w8a8_writes_over_nothing),
        cmocka_unit_test(rmsnorm_q4k_writes_over_nothing),
        cmocka_unit_test(marlin_repack_writes_over_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
