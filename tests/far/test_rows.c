/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two rows 2³¹ elements apart, of every array whose stride a launch takes, for every tile that a
 * plan has: views into tensors of more elements. A launch over rows that lie side by side is
 * compared with the reference, and one over the same rows far apart must give its bits.
 *
 * The emulator's memory is mapped when it is touched, so only the rows themselves take any.
 */
#include "tests/problems.h"

#include <ptxgen/dense.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/marlin.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/quantise.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <stdlib.h>
#include <string.h>

enum { ROWS = 2, MOST_FAR = 8 };

/* Rows at multiples of 16 bytes, and at none, which some kernels bring together first. */
static const uint32_t strides[] = {(1u << 31) + 16, (1u << 31) + 1};
static const char *const devices[] = {"cpu:sm_90", "cpu:sm_80", "cpu:sm_120"};
enum { STRIDES = sizeof strides / sizeof *strides, DEVICES = sizeof devices / sizeof *devices };

/* ---- arrays far apart ---- */

/* The rows of a buffer, which has them side by side, somewhere else. */
struct far {
    struct buffer *near;
    ptxgen_cu_deviceptr address;
    uint64_t pitch; /* bytes from row to row */
};

struct far_arrays {
    struct device *device;
    struct far arrays[MOST_FAR];
    size_t count;
};

static void must_copy(ptxgen_cu_result result)
{
    assert_int_equal(result, PTXGEN_CUDA_SUCCESS);
}

/* The address of an array with the rows that `near` has now; 0 where that was not created. */
static uint64_t place_far(struct far_arrays *all, struct buffer *near, uint64_t stride,
                          size_t element)
{
    const ptxgen_driver *d = &all->device->driver;
    struct far f = {.near = near, .pitch = stride * element};
    size_t row = near->bytes / ROWS;
    if (!near->base)
        return 0;
    assert_true(all->count < MOST_FAR);
    must_copy(d->mem_alloc(&f.address, f.pitch + row));
    for (size_t i = 0; i < ROWS; i++)
        must_copy(d->memcpy_htod(f.address + i * f.pitch, near->host + i * row, row));
    all->arrays[all->count++] = f;
    return f.address;
}

/* An output: its rows must come to be those that `near` has. */
static void expect_rows(const struct far_arrays *all, const struct buffer *near,
                        const char *problem)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct far *f = &all->arrays[i];
        size_t row = near->bytes / ROWS;
        unsigned char *got = malloc(row);
        for (size_t r = 0; f->near == near && r < ROWS; r++) {
            assert_non_null(got);
            must_copy(all->device->driver.memcpy_dtoh(got, f->address + r * f->pitch, row));
            if (memcmp(got, near->host + r * row, row))
                fail_msg("%s: row %zu of %s, 0x%llx bytes apart, differs from rows side by side",
                         problem, r, near->name, (unsigned long long)f->pitch);
        }
        free(got);
    }
}

static uint64_t allocate(struct far_arrays *all, uint64_t bytes)
{
    struct far f = {.near = NULL};
    if (!bytes)
        return 0;
    assert_true(all->count < MOST_FAR);
    must_copy(all->device->driver.mem_alloc(&f.address, bytes));
    must_copy(all->device->driver.memset_d8(f.address, 0, bytes));
    all->arrays[all->count++] = f;
    return f.address;
}

static void release(struct far_arrays *all)
{
    for (size_t i = 0; i < all->count; i++)
        all->device->driver.mem_free(all->arrays[i].address);
    all->count = 0;
}

static void ran(struct device *device, ptxgen_status status, const char *problem, ptxgen_error *err)
{
    if (status == PTXGEN_OK)
        status = device_wait(device, err);
    status = device_explain(device, status, err);
    if (status != PTXGEN_OK)
        fail_msg("%s: %s", problem, err->message);
}

/*
 * The arrays whose stride a launch takes, of the weights only where `far_weights`, in rows `stride`
 * elements apart: a launch over them has the outputs of one over rows side by side.
 */
static void run_far(struct device *device, const struct harness *h, const void *spec,
                    const void *tile, uint32_t stride, bool far_weights)
{
    struct far_arrays far = {.device = device};
    struct check check = {.outputs = 0};
    struct problem p = make_tiled(device, h, spec, tile, ROWS, NULL, 1);
    void *kernel = NULL;
    uint64_t workspace = 0;
    ptxgen_error err;
    assert_ok(problem_check(&p, device, &check, &err), &err);
    assert_right(&check);
    struct kernel_args args = problem_args(&p);
    for (unsigned i = 0; i < p.count; i++) {
        const struct operand *o = &p.operands[i];
        if (!o->used || !o->stride || (o->role == OPERAND_WEIGHTS && !far_weights))
            continue;
        args_set(&args, o->address, place_far(&far, &p.buffers[i], stride, typed_bytes(o->type)));
        args_set(&args, o->stride, stride);
        args_set(&args, o->bytes, operand_bytes(o, stride));
    }
    assert_ok(h->verbs->load(&device->driver, p.plan, &kernel, &err), &err);
    if (h->workspace_bytes) {
        assert_ok(h->verbs->workspace_bytes(kernel, &args, &workspace, &err), &err);
        args_set(&args, h->workspace, allocate(&far, workspace));
        args_set(&args, h->workspace_bytes, workspace);
    }
    ran(device, h->verbs->launch(kernel, &args, device->stream, &err), check.problem, &err);
    for (unsigned i = 0; i < p.count; i++)
        if (p.operands[i].used && p.operands[i].role == OPERAND_OUTPUT)
            expect_rows(&far, &p.buffers[i], check.problem);
    h->verbs->destroy(kernel);
    release(&far);
    problem_release(&p);
}

/* ---- dense ---- */

/* Of two features, so that W has two rows, and of more. */
static void rows_of_dense_are_reached(void **state)
{
    int done = 0;
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        struct device device = open_device(devices[d]);
        ptxgen_target target = ptxgen_device_target(&device.facts);
        for (uint8_t type = PTXGEN_F32; type <= PTXGEN_BF16; type++) {
            ptxgen_dense_spec spec = {.k = 136, .n = 72, .type = type, .bias = 1, .residual = 1};
            ptxgen_dense_plan plan;
            ptxgen_error err;
            assert_ok(ptxgen_dense_make_plan(&spec, &target, &plan, &err), &err);
            for (uint32_t v = 0; v < plan.variant_count; v++)
                for (int s = 0; s < 2 * STRIDES; s++) {
                    spec.n = s < STRIDES ? 72 : ROWS;
                    if (test_in_share(done++))
                        run_far(&device, &dense_harness, &spec, &plan.variants[v],
                                strides[s % STRIDES], s >= STRIDES);
                }
        }
        device_close(&device);
    }
}

/* ---- marlin ---- */

/* As they are, gathered by an order, and without a residual, by outputs' other way. */
static void rows_of_marlin_are_reached(void **state)
{
    int done = 0;
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        struct device device = open_device(devices[d]);
        ptxgen_target target = ptxgen_device_target(&device.facts);
        ptxgen_marlin_spec spec = {
            .k = 256, .n = 128, .group_size = 128, .type = PTXGEN_F16, .zeros = 1};
        ptxgen_marlin_plan plan;
        ptxgen_error err;
        assert_ok(ptxgen_marlin_make_plan(&spec, &target, &plan, &err), &err);
        for (uint32_t v = 0; v < plan.variant_count; v++)
            for (uint32_t s = 0; s < STRIDES + 1; s++) {
                spec.act_order = s == STRIDES;
                spec.residual = spec.bias = (v + s) % 2 == 0;
                if (test_in_share(done++))
                    run_far(&device, &marlin_harness, &spec, &plan.variants[v],
                            strides[s % STRIDES], false);
            }
        device_close(&device);
    }
}

/* ---- sparse24 ---- */

static void rows_of_sparse24_are_reached(void **state)
{
    int done = 0;
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        struct device device = open_device(devices[d]);
        ptxgen_target target = ptxgen_device_target(&device.facts);
        for (uint8_t type = PTXGEN_SPARSE24_F32; type <= PTXGEN_SPARSE24_S8; type++) {
            ptxgen_sparse24_spec spec = {.n = 72, .k = 256, .type = type};
            ptxgen_sparse24_plan plan;
            ptxgen_error err;
            spec.y_type = type == PTXGEN_SPARSE24_S8 ? PTXGEN_F16 : type;
            assert_ok(ptxgen_sparse24_make_plan(&spec, &target, &plan, &err), &err);
            for (uint32_t v = 0; v < plan.variant_count + !plan.variant_count; v++)
                for (uint32_t s = 0; s < STRIDES; s++) {
                    spec.residual = spec.bias = (v + s) % 2 == 0;
                    if (test_in_share(done++))
                        run_far(&device, &sparse24_harness, &spec,
                                plan.variant_count ? &plan.variants[v] : NULL, strides[s], false);
                }
        }
        device_close(&device);
    }
}

/* ---- w8a8 ---- */

/* Rows of W that are copied as they are, and that are brought together first. */
static void rows_of_w8a8_are_reached(void **state)
{
    static const uint32_t ks[] = {272, 261};
    int done = 0;
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        struct device device = open_device(devices[d]);
        ptxgen_target target = ptxgen_device_target(&device.facts);
        for (int i = 0; i < 4; i++) {
            ptxgen_w8a8_spec spec = {.k = ks[i % 2],
                                     .n = 72,
                                     .x_type = i < 2 ? PTXGEN_F16 : PTXGEN_F32,
                                     .y_type = i < 2 ? PTXGEN_F32 : PTXGEN_BF16,
                                     .asymmetric = i == 1};
            ptxgen_w8a8_plan plan;
            ptxgen_error err;
            assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
            for (uint32_t v = 0; v < plan.variant_count; v++)
                for (uint32_t s = 0; s < STRIDES; s++) {
                    if (test_in_share(done++))
                        run_far(&device, &w8a8_harness, &spec, &plan.variants[v], strides[s],
                                false);
                }
        }
        device_close(&device);
    }
}

/* ---- gguf_linear ---- */

static void rows_of_gguf_linear_are_reached(void **state)
{
    static const uint8_t types[] = {PTXGEN_GGUF_Q6_K, PTXGEN_GGUF_Q4_K, PTXGEN_GGUF_Q8_0};
    int done = 0;
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        struct device device = open_device(devices[d]);
        for (uint32_t i = 0; i < 3 * 3 * STRIDES; i++) {
            ptxgen_gguf_linear_spec spec = {.k = 512,
                                            .n = {40, 24},
                                            .epsilon = 1e-5f,
                                            .max_m = PTXGEN_GGUF_LINEAR_MAX_M,
                                            .w_type = {types[i % 3], types[i / 3 % 3]},
                                            .x_type = (uint8_t)(i / 3 % 3),
                                            .y_type = (uint8_t)((i + i / 3) % 3),
                                            .norm = i % 2,
                                            .residual = (uint8_t)(1 + i % 2),
                                            .residual_out = 1,
                                            .bias = 1};
            if (test_in_share(done++))
                run_far(&device, &gguf_linear_harness, &spec, NULL, strides[i / 9], false);
        }
        device_close(&device);
    }
}

/* Matrices in floats read x where it is. */
static void rows_of_floats_are_reached(void **state)
{
    static const uint8_t types[] = {PTXGEN_GGUF_F32, PTXGEN_GGUF_F16, PTXGEN_GGUF_BF16};
    int done = 0;
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        struct device device = open_device(devices[d]);
        for (uint32_t i = 0; i < 3 * STRIDES; i++) {
            const ptxgen_gguf_linear_spec spec = {.k = 520,
                                                  .n = {40},
                                                  .max_m = PTXGEN_GGUF_LINEAR_MAX_M,
                                                  .w_type = {types[i % 3]},
                                                  .x_type = (uint8_t)((i + i / 3) % 3),
                                                  .y_type = (uint8_t)(i % 3)};
            if (test_in_share(done++))
                run_far(&device, &gguf_linear_harness, &spec, NULL, strides[i / 3], false);
        }
        device_close(&device);
    }
}

/* ---- rmsnorm_q4k ---- */

/* Plans of 2, 4 and 8 tokens at most have tiles of their own for two. */
static void rows_of_rmsnorm_q4k_are_reached(void **state)
{
    static const uint32_t most[] = {2, 4, 8};
    int done = 0;
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        struct device device = open_device(devices[d]);
        for (uint32_t i = 0; i < 3 * 3 * STRIDES; i++) {
            ptxgen_rmsnorm_q4k_spec spec = {.k = 512,
                                            .n = {40, 24},
                                            .epsilon = 1e-5f,
                                            .max_m = most[i % 3],
                                            .x_type = (uint8_t)(i / 3 % 3),
                                            .y_type = (uint8_t)((i + i / 3) % 3),
                                            .bias = 1,
                                            .residual = i % 2 == 0,
                                            .residual_out = i % 2 == 0};
            if (test_in_share(done++))
                run_far(&device, &rmsnorm_q4k_harness, &spec, NULL, strides[i / 9], false);
        }
        device_close(&device);
    }
}

/* ---- quantise ---- */

static void rows_of_quantise_are_reached(void **state)
{
    int done = 0;
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        struct device device = open_device(devices[d]);
        for (uint32_t i = 0; i < 3 * STRIDES; i++) {
            const ptxgen_quantise_spec spec = {.k = 261,
                                               .x_type = (uint8_t)(i % 3),
                                               .group = i % 2 ? PTXGEN_QUANTISE_GROUP : 0,
                                               .asymmetric = 1,
                                               .producer = (uint8_t)(i % 3),
                                               .residual = i % 3 == 1};
            if (test_in_share(done++))
                run_far(&device, &quantise_harness, &spec, NULL, strides[i / 3], false);
        }
        device_close(&device);
    }
}

/* ---- gguf_rows ---- */

static void rows_of_gguf_rows_are_reached(void **state)
{
    static const uint8_t types[] = {PTXGEN_GGUF_Q5_0, PTXGEN_GGUF_F16};
    int done = 0;
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        struct device device = open_device(devices[d]);
        for (uint32_t i = 0; i < 3 * STRIDES; i++) {
            const ptxgen_gguf_rows_spec spec = {
                .k = 288, .w_type = types[i % 2], .y_type = (uint8_t)(i % 3), .indexed = i % 2};
            if (test_in_share(done++))
                run_far(&device, &gguf_rows_harness, &spec, NULL, strides[i / 3], false);
        }
        device_close(&device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_dense_are_reached),
        cmocka_unit_test(rows_of_marlin_are_reached),
        cmocka_unit_test(rows_of_sparse24_are_reached),
        cmocka_unit_test(rows_of_w8a8_are_reached),
        cmocka_unit_test(rows_of_gguf_linear_are_reached),
        cmocka_unit_test(rows_of_floats_are_reached),
        cmocka_unit_test(rows_of_rmsnorm_q4k_are_reached),
        cmocka_unit_test(rows_of_quantise_are_reached),
        cmocka_unit_test(rows_of_gguf_rows_are_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
