/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arrays of a launch of any family: every output against every other array from both sides, the
 * size that is stated of each, and the end of the address space. Addresses are made up, and
 * launches that are let through end in a stub.
 */
#include "tests/launch_subjects.h"

#include <ptxgen/marlin_repack.h>

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

/* ---- the rule ---- */

static void refused(const struct launched *l, const struct array *a, const struct array *b)
{
    char one[80], other[80];
    ptxgen_error err = {0};
    ptxgen_status status = l->launch(l->kernel, l->args, NULL, &err);
    snprintf(one, sizeof one, "%s: %s, which is written, from", l->family, a->name);
    snprintf(other, sizeof other, "overlaps %s, from", b->name);
    if (status != PTXGEN_ERROR_INVALID_ARGUMENT || !strstr(err.message, one) ||
        !strstr(err.message, other))
        fail_msg("%s over %s: status %d, '%s'", a->name, b->name, status, err.message);
}

static uint64_t up(uint64_t address, unsigned align)
{
    return (address + align - 1) / align * align;
}

/* Whether an output has the rows and the type of an array, which it may then be. */
static bool is_like(const struct array *output, const struct array *other)
{
    return !output->is_workspace && output->stride && output->element == other->element &&
           output->bytes == other->bytes;
}

/* The output against the other from both sides: next to it, one step over, and just there. */
static void expect_pair(const struct launched *l, const struct array *output,
                        const struct array *other)
{
    bool is_later = other->use == ARRAY_WRITTEN && other > output;
    const struct array *named = is_later ? other : output, *second = is_later ? output : other;
    uint64_t *address = word_at(l, output->address), home = *address;
    uint64_t there = *word_at(l, other->address);
    char what[80];
    snprintf(what, sizeof what, "%s beside %s", output->name, other->name);
    *address = up(there + other->bytes, output->align);
    assert_launches(l, what);
    *address = (there + other->bytes - 1) / output->align * output->align;
    refused(l, named, second);
    *address = (there - output->bytes) / output->align * output->align;
    assert_launches(l, what);
    *address = up(there - output->bytes + 1, output->align);
    refused(l, named, second);
    *address = there;
    if (other->use == ARRAY_IN_PLACE && is_like(output, other))
        assert_launches(l, what);
    else
        refused(l, named, second);
    *address = home;
}

/* The size that the caller states of an array: as long as it must be, then a byte shorter. */
static void expect_size(const struct launched *l, const struct array *a)
{
    uint64_t *size = word_at(l, a->size), kept = *size;
    char words[80];
    ptxgen_error err = {0};
    *size = a->bytes;
    assert_launches(l, a->name);
    *size = a->bytes - 1;
    snprintf(words, sizeof words, "%llu bytes", (unsigned long long)*size);
    assert_refused(l->launch(l->kernel, l->args, NULL, &err), &err, words);
    *size = kept;
}

/* At a multiple of 16 bytes, or more of the workspace would be needed. */
static void expect_end(const struct launched *l, const struct array *a)
{
    unsigned align = a->align > 16 ? a->align : 16;
    uint64_t *address = word_at(l, a->address), kept = *address;
    *address = UINT64_MAX / align * align;
    unsigned long long from = *address;
    if (a->bytes > align && a->stride)
        assert_launch_refused(l, PTXGEN_ERROR_INVALID_ARGUMENT,
                              "%s: %s, %llu rows with a row stride of %llu elements of %u bytes "
                              "from 0x%llx on, leaves the 64-bit address space",
                              l->family, a->name, (unsigned long long)a->rows,
                              (unsigned long long)stride_of(l, a), a->element, from);
    else if (a->bytes > align)
        assert_launch_refused(l, PTXGEN_ERROR_INVALID_ARGUMENT,
                              "%s: %s, %llu bytes from 0x%llx on, leaves the 64-bit address space",
                              l->family, a->name, (unsigned long long)a->bytes, from);
    *address = kept;
}

static void expect_rule(const struct launched *l)
{
    place_apart(l);
    assert_launches(l, "all apart");
    for (unsigned i = 0; i < l->count; i++) {
        const struct array *a = &l->arrays[i];
        expect_size(l, a);
        for (unsigned j = 0; a->use == ARRAY_WRITTEN && j < l->count; j++)
            if (j != i)
                expect_pair(l, a, &l->arrays[j]);
    }
    for (unsigned i = 0; i < l->count; i++)
        expect_end(l, &l->arrays[i]);
}

/* The rule again with another stride for each array, so that its own decides where it ends. */
static void expect_rule_of_strides(const struct launched *packed)
{
    struct launched l = *packed;
    for (unsigned i = 0; i < l.count; i++) {
        struct array *a = &l.arrays[i];
        if (a->stride)
            set_stride(&l, a, a->columns + 16 * (i + 1) + (i == 0 ? X_GAP : 0));
        if (a->use == ARRAY_IN_PLACE)
            a->use = ARRAY_READ; /* the output has another stride, so it is not the same array */
    }
    expect_rule(&l);
    for (unsigned i = 0; i < l.count; i++)
        if (l.arrays[i].stride)
            *word_at(&l, l.arrays[i].stride) = 0;
}

/* Columns of one buffer: `a` first, then `b` first, and each time one element over. */
static void expect_slices(const struct launched *l, struct array *a, struct array *b)
{
    const uint64_t buffer = 64 * (uint64_t)HOME, unit = a->element;
    uint64_t *first = word_at(l, a->address), *second = word_at(l, b->address);
    uint64_t homes[] = {*first, *second};
    ptxgen_error err = {0};
    set_stride(l, a, a->columns + b->columns);
    set_stride(l, b, a->columns + b->columns);
    *first = buffer, *second = buffer + a->columns * unit;
    assert_launches(l, "columns behind those of another array");
    *second -= unit;
    assert_refused(l->launch(l->kernel, l->args, NULL, &err), &err, "overlaps");
    *second = buffer, *first = buffer + b->columns * unit;
    assert_launches(l, "columns before those of another array");
    *first -= unit;
    assert_refused(l->launch(l->kernel, l->args, NULL, &err), &err, "overlaps");
    *first = homes[0], *second = homes[1];
    set_stride(l, a, 0);
    set_stride(l, b, 0);
}

static void expect_all_slices(const struct launched *packed)
{
    struct launched l = *packed;
    for (unsigned i = 0; i < l.count; i++)
        for (unsigned j = 0; l.arrays[i].use == ARRAY_WRITTEN && j < l.count; j++) {
            struct array *a = &l.arrays[j], *b = &l.arrays[i];
            bool is_slice = a->stride && b->stride && a->element == b->element &&
                            a->rows == b->rows && a->use != ARRAY_IN_PLACE;
            if (i != j && is_slice)
                expect_slices(&l, a, b);
        }
}

/* Strides that end beyond 64 bits, or that part an array from the one that it would be in place of.
 */
static void expect_refused_strides(const struct launched *l, bool is_narrow)
{
    struct array *residual = NULL, *y = NULL;
    struct launched own = *l;
    for (unsigned i = 0; i < own.count; i++) {
        struct array *a = &own.arrays[i];
        residual = a->use == ARRAY_IN_PLACE ? a : residual;
        y = a->use == ARRAY_WRITTEN && a->stride ? a : y;
        if (!a->stride || a->element == 1 || is_narrow)
            continue;
        *word_at(l, a->stride) = UINT64_C(1) << 63;
        assert_launch_refused(l, PTXGEN_ERROR_INVALID_ARGUMENT,
                              "%s: %s, %llu rows with a row stride of %llu elements of %u bytes "
                              "from 0x%llx on, leaves the 64-bit address space",
                              l->family, a->name, (unsigned long long)a->rows,
                              (unsigned long long)stride_of(l, a), a->element,
                              (unsigned long long)*word_at(l, a->address));
        *word_at(l, a->stride) = 0;
    }
    if (!residual)
        return;
    ptxgen_error err = {0};
    *word_at(l, residual->stride) = 2 * residual->columns;
    *word_at(l, residual->address) = *word_at(l, y->address);
    assert_refused(l->launch(l->kernel, l->args, NULL, &err), &err,
                   "is not the same array: equal address and row stride");
}

/* ---- the families ---- */

static void products_write_over_nothing_but_the_residual_itself(void **state)
{
    (void)state;
    for (int i = 0; i < SUBJECTS; i++) {
        struct bench b;
        bench_load(&b, &subjects[i], &emulated.driver);
        expect_rule(&b.launched);
        expect_rule_of_strides(&b.launched);
        if (subjects[i].workspace_align)
            args_set(&b.args, subjects[i].harness->workspace_bytes, 1 << 30);
        expect_all_slices(&b.launched);
        expect_refused_strides(&b.launched, subjects[i].is_narrow);
        bench_free(&b);
    }
}

#define AT(type, member)                                                                           \
    .address = offsetof(ptxgen_##type##_args, member),                                             \
    .size = offsetof(ptxgen_##type##_args, member##_bytes)

static ptxgen_status inflate(const void *kernel, const void *args, ptxgen_cu_stream stream,
                             ptxgen_error *err)
{
    return ptxgen_sparse24_inflate(kernel, args, stream, err);
}

static void sparse24_inflates_to_somewhere_else(void **state)
{
    const ptxgen_sparse24_spec spec = {
        .n = N, .k = K, .type = PTXGEN_SPARSE24_F32, .y_type = PTXGEN_F32, .tier = 1};
    const ptxgen_target target = target_of("sm_90");
    ptxgen_sparse24_inflate_args args = {.packed = 0};
    ptxgen_sparse24_plan plan;
    ptxgen_sparse24 *kernel;
    size_t packed;
    ptxgen_error err;
    (void)state;
    assert_ok(ptxgen_sparse24_packed_bytes(&spec, &packed, &err), &err);
    assert_ok(ptxgen_sparse24_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_sparse24_load(&emulated.driver, &plan, NULL, &kernel, &err), &err);
    const struct launched l = {
        .family = "sparse24",
        .kernel = kernel,
        .args = &args,
        .launch = inflate,
        .count = 2,
        .arrays = {{"packed", AT(sparse24_inflate, packed), .align = 16, .bytes = packed},
                   {"dense", AT(sparse24_inflate, dense), .align = 16, .bytes = 4 * K * N,
                    .use = ARRAY_WRITTEN}}};
    expect_rule(&l);
    ptxgen_sparse24_destroy(kernel);
}

static ptxgen_status repack(const void *kernel, const void *args, ptxgen_cu_stream stream,
                            ptxgen_error *err)
{
    return ptxgen_marlin_repack_launch(kernel, args, stream, err);
}

static void marlin_repack_writes_over_nothing(void **state)
{
    enum { GROUPS = K / 64 };
    const ptxgen_target target = target_of("sm_80");
    (void)state;
    for (unsigned each = 1; each <= 2; each++) {
        const ptxgen_marlin_repack_spec spec = {.k = K,
                                                .n = N,
                                                .group_size = 64,
                                                .type = PTXGEN_F16,
                                                .zeros = 1,
                                                .act_order = 1,
                                                .epilogue = each == 2 ? PTXGEN_EPILOGUE_SWIGLU
                                                                      : PTXGEN_EPILOGUE_NONE,
                                                .format = PTXGEN_W4_GPTQ_V1,
                                                .scale_type = PTXGEN_F32};
        ptxgen_marlin_repack_args args = {.order = 16};
        ptxgen_marlin_repack_plan plan;
        ptxgen_marlin_repack *kernel;
        ptxgen_error err;
        assert_ok(ptxgen_marlin_repack_make_plan(&spec, &target, &plan, &err), &err);
        assert_ok(ptxgen_marlin_repack_load(&emulated.driver, &plan, NULL, &kernel, &err), &err);
        const struct launched l = {
            .family = "marlin_repack",
            .kernel = kernel,
            .args = &args,
            .launch = repack,
            .count = each == 2 ? 11 : 8,
            .arrays = {
                {"weights", AT(marlin_repack, weights.weights), .align = 16, .bytes = K * N / 2},
                {"weights' scales", AT(marlin_repack, weights.scales), .align = 4,
                 .bytes = 4 * N * GROUPS},
                {"weights' zeros", AT(marlin_repack, weights.zeros), .align = 4,
                 .bytes = N / 2 * GROUPS},
                {"order", AT(marlin_repack, order), .align = 16, .bytes = 4 * K},
                {"codes", AT(marlin_repack, codes), .align = 16, .bytes = each * K * N / 2,
                 .use = ARRAY_WRITTEN},
                {"scales", AT(marlin_repack, scales), .align = 16, .bytes = each * 2 * N * GROUPS,
                 .use = ARRAY_WRITTEN},
                {"zeros", AT(marlin_repack, zeros), .align = 16, .bytes = each * N / 2 * GROUPS,
                 .use = ARRAY_WRITTEN},
                {"refused", AT(marlin_repack, refused), .align = 8, .bytes = 8,
                 .use = ARRAY_WRITTEN},
                {"up", AT(marlin_repack, up.weights), .align = 16, .bytes = K * N / 2},
                {"up's scales", AT(marlin_repack, up.scales), .align = 4, .bytes = 4 * N * GROUPS},
                {"up's zeros", AT(marlin_repack, up.zeros), .align = 4, .bytes = N / 2 * GROUPS}}};
        expect_rule(&l);
        ptxgen_marlin_repack_destroy(kernel);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_write_over_nothing_but_the_residual_itself),
        cmocka_unit_test(sparse24_inflates_to_somewhere_else),
        cmocka_unit_test(marlin_repack_writes_over_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
