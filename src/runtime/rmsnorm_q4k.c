/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and launching the rmsnorm_q4k family. */
#include <ptxgen/q4k.h>
#include <ptxgen/rmsnorm_q4k.h>

#include "src/kernels/rmsnorm_q4k/layout.h"
#include "src/runtime/array.h"
#include "src/runtime/loaded.h"

#include <stddef.h>
#include <stdio.h>

/* The public type is never defined: it is the name of a ptxgen_loaded of this family. */
static const ptxgen_loaded *loaded_of(const ptxgen_rmsnorm_q4k *q)
{
    return (const ptxgen_loaded *)q;
}

static const ptxgen_rmsnorm_q4k_plan *plan_of(const ptxgen_rmsnorm_q4k *q)
{
    return ptxgen_loaded_plan(loaded_of(q));
}

static ptxgen_status hand_over(ptxgen_status status, ptxgen_loaded *loaded,
                               ptxgen_rmsnorm_q4k **kernel)
{
    if (status == PTXGEN_OK)
        *kernel = (ptxgen_rmsnorm_q4k *)loaded;
    return status;
}

/* ---- the family's table ---- */

static ptxgen_status make_plan(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err)
{
    return ptxgen_rmsnorm_q4k_make_plan(spec, target, plan, err);
}

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_rmsnorm_q4k_emit(plan, ~0u, module, err);
}

/* From sm_90 on the weights come through tensor maps. */
static ptxgen_status check_driver(const ptxgen_driver *driver, const void *plan, ptxgen_error *err)
{
    const ptxgen_rmsnorm_q4k_plan *p = plan;
    return p->target.ptx.sm < 90
               ? PTXGEN_OK
               : ptxgen_driver_require(driver, offsetof(ptxgen_driver, tensor_map_encode_tiled),
                                       err);
}

static void describe(const void *spec, char *text, size_t size)
{
    static const char *const types[] = {"f32", "f16", "bf16"};
    const ptxgen_rmsnorm_q4k_spec *s = spec;
    snprintf(text, size, "k=%u n=%u,%u,%u x=%s y=%s epsilon=%.9g max_m=%u%s%s%s%s", s->k, s->n[0],
             s->n[1], s->n[2], s->x_type < 3 ? types[s->x_type] : "?",
             s->y_type < 3 ? types[s->y_type] : "?", s->epsilon, s->max_m,
             s->epilogue == PTXGEN_EPILOGUE_SWIGLU ? " swiglu" : "", s->bias ? " bias" : "",
             s->residual ? " residual" : "", s->residual_out ? " residual_out" : "");
}

const ptxgen_family *ptxgen_rmsnorm_q4k_family(void)
{
    static const ptxgen_family family = {.name = "rmsnorm_q4k",
                                         .plan_version = 7,
                                         .spec_bytes = sizeof(ptxgen_rmsnorm_q4k_spec),
                                         .plan_bytes = sizeof(ptxgen_rmsnorm_q4k_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .check_driver = check_driver,
                                         .describe = describe,
                                         .revision = library_revision};
    return &family;
}

/* ---- loading ---- */

ptxgen_status ptxgen_rmsnorm_q4k_load(const ptxgen_driver *driver,
                                      const ptxgen_rmsnorm_q4k_plan *plan,
                                      const ptxgen_module_options *options,
                                      ptxgen_rmsnorm_q4k **kernel, ptxgen_error *err)
{
    if (!driver || !rmsnorm_q4k_is_plan(plan) || !kernel)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "rmsnorm_q4k: driver, a plan that was made, and kernel must be given");
    ptxgen_loaded *loaded = NULL;
    ptxgen_status status = loaded_from_plan(driver, ptxgen_rmsnorm_q4k_family(), plan,
                                            &plan->target, options, &loaded, err);
    return hand_over(status, loaded, kernel);
}

ptxgen_status ptxgen_rmsnorm_q4k_dispatch(ptxgen_dispatcher *dispatcher,
                                          const ptxgen_rmsnorm_q4k_spec *spec,
                                          ptxgen_rmsnorm_q4k **kernel, ptxgen_error *err)
{
    ptxgen_loaded *loaded = NULL;
    ptxgen_status status =
        ptxgen_dispatch(dispatcher, ptxgen_rmsnorm_q4k_family(), spec, &loaded, err);
    return hand_over(status, loaded, kernel);
}

void ptxgen_rmsnorm_q4k_destroy(ptxgen_rmsnorm_q4k *q)
{
    ptxgen_release((ptxgen_loaded *)q);
}

static int entry_of(const ptxgen_rmsnorm_q4k *q, uint64_t m)
{
    const ptxgen_rmsnorm_q4k_plan *plan = plan_of(q);
    const ptxgen_rmsnorm_q4k_variant *v = ptxgen_rmsnorm_q4k_choose(plan, m);
    return v ? (int)(v - plan->variants) : -1;
}

const ptxgen_kernel_attributes *ptxgen_rmsnorm_q4k_attributes(const ptxgen_rmsnorm_q4k *q,
                                                              uint64_t m)
{
    int entry = q ? entry_of(q, m) : -1;
    return entry < 0 ? NULL : ptxgen_kernel_get_attributes(loaded_of(q)->entries[entry]);
}

/* ---- checking arguments ---- */

/* Checks all arrays, and gives strides of 0 their meaning. */
static ptxgen_status check_arrays(const ptxgen_rmsnorm_q4k_spec *s, ptxgen_rmsnorm_q4k_args *a,
                                  ptxgen_error *err)
{
    enum { SHARED = 4, MATRICES = PTXGEN_RMSNORM_Q4K_MATRICES, EACH = 3, F32 = 4 };
    static const char *const names[MATRICES][EACH] = {{"w[0]", "y[0]", "bias[0]"},
                                                      {"w[1]", "y[1]", "bias[1]"},
                                                      {"w[2]", "y[2]", "bias[2]"}};
    unsigned x = s->x_type == PTXGEN_F32 ? 4 : 2, y = s->y_type == PTXGEN_F32 ? 4 : 2;
    struct launch_array arrays[SHARED + MATRICES * EACH] = {
        LAUNCH_ROWS("x", true, LAUNCH_INPUT, a->x, x, &a->x_stride, s->k, a->m),
        LAUNCH_BYTES("gamma", true, LAUNCH_INPUT, a->gamma, F32, (uint64_t)s->k * F32),
        LAUNCH_ROWS("residual", s->residual, LAUNCH_INPUT, a->residual, x, &a->residual_stride,
                    s->k, a->m),
        LAUNCH_ROWS("residual_out", s->residual_out, LAUNCH_OUTPUT, a->residual_out, x,
                    &a->residual_out_stride, s->k, a->m),
    };
    struct launch_array *next = &arrays[SHARED];
    for (int i = 0; i < MATRICES && s->n[i]; i++) {
        bool has_output = i == 0 || s->epilogue != PTXGEN_EPILOGUE_SWIGLU;
        uint64_t n = s->n[i],
                 row_bytes = (uint64_t)s->k / PTXGEN_Q4K_BLOCK_WEIGHTS * PTXGEN_Q4K_BLOCK_BYTES;
        *next++ = (struct launch_array)LAUNCH_BYTES(names[i][0], true, LAUNCH_INPUT, a->w[i],
                                                    16, n * row_bytes);
        *next++ = (struct launch_array)LAUNCH_ROWS(names[i][1], has_output, LAUNCH_OUTPUT, a->y[i],
                                                   y, &a->y_stride[i], n, a->m);
        *next++ = (struct launch_array)LAUNCH_BYTES(names[i][2], s->bias, LAUNCH_INPUT, a->bias[i],
                                                    F32, n * F32);
    }
    ptxgen_status status = launch_check_arrays("rmsnorm_q4k", arrays, (size_t)(next - arrays), err);
    return status == PTXGEN_OK ? launch_check_narrow_strides("rmsnorm_q4k", arrays,
                                                             (size_t)(next - arrays), err)
                               : status;
}

ptxgen_status ptxgen_rmsnorm_q4k_workspace_bytes(const ptxgen_rmsnorm_q4k *q,
                                                 const ptxgen_rmsnorm_q4k_args *args,
                                                 uint64_t *bytes, ptxgen_error *err)
{
    if (!q || !args || !bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "rmsnorm_q4k: kernel, args and bytes must be given");
    if (args->m && entry_of(q, args->m) < 0)
        return rmsnorm_q4k_refuse_m(plan_of(q), args->m, err);
    *bytes = 0;
    return PTXGEN_OK;
}

/* ---- launching ---- */

/*
 * The weights as rows of 32-bit elements; boxes of 16 rows, or 8 for SwiGLU, by two super-blocks
 * (see weights.c).
 */
static ptxgen_status map_weights(const ptxgen_rmsnorm_q4k *q, const ptxgen_rmsnorm_q4k_args *a,
                                 ptxgen_cu_tensor_map maps[PTXGEN_RMSNORM_Q4K_MATRICES],
                                 ptxgen_error *err)
{
    enum { SUPER_BLOCK_BYTES = 144, BOX_COLUMNS = 2 * SUPER_BLOCK_BYTES / 4, TILE_ROWS = 16 };
    const ptxgen_rmsnorm_q4k_spec *s = &plan_of(q)->spec;
    uint64_t row_bytes = (uint64_t)s->k / 256 * SUPER_BLOCK_BYTES;
    uint32_t rows = s->epilogue == PTXGEN_EPILOGUE_SWIGLU ? TILE_ROWS / 2 : TILE_ROWS;
    const uint32_t box[2] = {BOX_COLUMNS, rows}, steps[2] = {1, 1};
    for (int i = 0; i < PTXGEN_RMSNORM_Q4K_MATRICES && s->n[i]; i++) {
        const uint64_t shape[2] = {row_bytes / 4, s->n[i]};
        ptxgen_cu_result result = loaded_of(q)->driver->tensor_map_encode_tiled(
            &maps[i], PTXGEN_CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, (void *)(uintptr_t)a->w[i],
            shape, &row_bytes, box, steps, PTXGEN_CU_TENSOR_MAP_INTERLEAVE_NONE,
            PTXGEN_CU_TENSOR_MAP_SWIZZLE_NONE, PTXGEN_CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            PTXGEN_CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
        if (result != PTXGEN_CUDA_SUCCESS)
            return ptxgen_driver_fail(
                loaded_of(q)->driver, result, err,
                "rmsnorm_q4k: the tensor map of w[%d], %u rows of %llu bytes", i, s->n[i],
                (unsigned long long)row_bytes);
    }
    return PTXGEN_OK;
}

static ptxgen_status enqueue(const ptxgen_rmsnorm_q4k *q, int entry, ptxgen_rmsnorm_q4k_args *a,
                             ptxgen_cu_stream stream, ptxgen_error *err)
{
    const ptxgen_rmsnorm_q4k_variant *v = &plan_of(q)->variants[entry];
    ptxgen_cu_tensor_map maps[PTXGEN_RMSNORM_Q4K_MATRICES] = {0};
    /* What checked arguments are as the kernel's 32-bit parameters. */
    uint32_t m = (uint32_t)a->m, x_stride = (uint32_t)a->x_stride;
    uint32_t residual_stride = (uint32_t)a->residual_stride;
    uint32_t residual_out_stride = (uint32_t)a->residual_out_stride;
    uint32_t y_stride[PTXGEN_RMSNORM_Q4K_MATRICES];
    for (int i = 0; i < PTXGEN_RMSNORM_Q4K_MATRICES; i++)
        y_stride[i] = (uint32_t)a->y_stride[i];
    void *arguments[] = {&a->x,
                         &a->residual,
                         &a->residual_out,
                         &a->gamma,
                         &a->w[0],
                         &a->w[1],
                         &a->w[2],
                         &a->bias[0],
                         &a->bias[1],
                         &a->bias[2],
                         &a->y[0],
                         &a->y[1],
                         &a->y[2],
                         &x_stride,
                         &residual_stride,
                         &residual_out_stride,
                         &y_stride[0],
                         &y_stride[1],
                         &y_stride[2],
                         &m,
                         &maps[0],
                         &maps[1],
                         &maps[2]}; /* the maps from sm_90 on */
    ptxgen_launch_shape shape = {.grid = {v->grid, 1, 1},
                                 .block = {32 * v->wk * v->wn, 1, 1},
                                 .dynamic_shared_bytes = v->dynamic_shared_bytes,
                                 .programmatic = a->overlap_previous != 0};
    if (plan_of(q)->target.ptx.sm >= 90) {
        ptxgen_status status = map_weights(q, a, maps, err);
        if (status != PTXGEN_OK)
            return status;
    }
    return ptxgen_launch(loaded_of(q)->entries[entry], &shape, stream, arguments, err);
}

ptxgen_status ptxgen_rmsnorm_q4k_launch(const ptxgen_rmsnorm_q4k *q,
                                        const ptxgen_rmsnorm_q4k_args *args,
                                        ptxgen_cu_stream stream, ptxgen_error *err)
{
    if (!q || !args)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "rmsnorm_q4k: kernel and args must be given");
    if (!args->m)
        return PTXGEN_OK;
    int entry = entry_of(q, args->m);
    if (entry < 0)
        return rmsnorm_q4k_refuse_m(plan_of(q), args->m, err);
    ptxgen_rmsnorm_q4k_args a = *args;
    ptxgen_status status = check_arrays(&plan_of(q)->spec, &a, err);
    return status == PTXGEN_OK ? enqueue(q, entry, &a, stream, err) : status;
}
