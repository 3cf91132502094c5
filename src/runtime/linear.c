/* SPDX-License-Identifier: Apache-2.0 */
/* What layers of all families share: their memory, how they are made, run and freed. */
#include "src/runtime/linear.h"

#include "src/runtime/context.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_M = 65536 };

/* What follows the family stands for members that few families have. */
#define LINEAR_KIND(family, prefix, ...)                                                           \
    static ptxgen_status family##_launch(const void *kernel, const void *args,                     \
                                         ptxgen_cu_stream stream, ptxgen_error *err)               \
    {                                                                                              \
        return ptxgen_##prefix##_launch(kernel, args, stream, err);                                \
    }                                                                                              \
    static ptxgen_status family##_workspace(const void *kernel, const void *args, uint64_t *bytes, \
                                            ptxgen_error *err)                                     \
    {                                                                                              \
        return ptxgen_##prefix##_workspace_bytes(kernel, args, bytes, err);                        \
    }                                                                                              \
    const struct linear_kind linear_##family = {                                                   \
        .launch = family##_launch,                                                                 \
        .workspace = family##_workspace,                                                           \
        .m = offsetof(ptxgen_##prefix##_args, m),                                                  \
        .x = offsetof(ptxgen_##prefix##_args, x),                                                  \
        .y = offsetof(ptxgen_##prefix##_args, y),                                                  \
        .x_stride = offsetof(ptxgen_##prefix##_args, x_stride),                                    \
        .y_stride = offsetof(ptxgen_##prefix##_args, y_stride),                                    \
        .x_bytes = offsetof(ptxgen_##prefix##_args, x_bytes),                                      \
        .y_bytes = offsetof(ptxgen_##prefix##_args, y_bytes),                                      \
        .workspace_at = offsetof(ptxgen_##prefix##_args, workspace),                               \
        .workspace_bytes = offsetof(ptxgen_##prefix##_args, workspace_bytes),                      \
        __VA_ARGS__}

LINEAR_KIND(marlin, marlin, );
LINEAR_KIND(w8a8, w8a8, );
LINEAR_KIND(gguf, gguf_linear, );
LINEAR_KIND(dense, dense, );
LINEAR_KIND(sparse24, sparse24, .x_scale = offsetof(ptxgen_sparse24_args, x_scale),
            .x_scale_bytes = offsetof(ptxgen_sparse24_args, x_scale_bytes));

static void set(union linear_family_args *args, size_t at, uint64_t value)
{
    memcpy((unsigned char *)args + at, &value, sizeof value);
}

/* ---- memory ---- */

static ptxgen_status allocate(ptxgen_linear *linear, size_t bytes, uint64_t *address,
                              ptxgen_error *err)
{
    const ptxgen_driver *driver = linear->dispatcher->driver;
    ptxgen_cu_result result = driver->mem_alloc(&linear->buffers[linear->buffer_count], bytes);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err, "allocating %zu bytes for a layer", bytes);
    *address = linear->buffers[linear->buffer_count++];
    linear->bytes += bytes;
    return PTXGEN_OK;
}

ptxgen_status linear_upload(ptxgen_linear *linear, const void *host, size_t bytes,
                            uint64_t *address, ptxgen_error *err)
{
    const ptxgen_driver *driver = linear->dispatcher->driver;
    *address = 0;
    if (!bytes)
        return PTXGEN_OK;
    ptxgen_status status = allocate(linear, bytes, address, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_cu_result result = driver->memcpy_htod(*address, host, bytes);
    return result == PTXGEN_CUDA_SUCCESS
               ? PTXGEN_OK
               : ptxgen_driver_fail(driver, result, err, "uploading %zu bytes of a layer", bytes);
}

ptxgen_status linear_no_memory(ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a layer");
}

ptxgen_status linear_upload_bias(ptxgen_linear *linear, const float *bias, ptxgen_element type,
                                 uint64_t *address, ptxgen_error *err)
{
    *address = 0;
    if (!bias || !linear->n)
        return PTXGEN_OK;
    size_t bytes = linear->n * ptxgen_element_size(type);
    void *rounded = malloc(bytes);
    if (!rounded)
        return linear_no_memory(err);
    for (uint32_t i = 0; i < linear->n; i++)
        ptxgen_element_store(type, rounded, i, bias[i]);
    ptxgen_status status = linear_upload(linear, rounded, bytes, address, err);
    free(rounded);
    return status;
}

/* What a run of m tokens whose x is at that address needs at least, added to *most. */
static ptxgen_status ask_workspace(const ptxgen_linear *linear, uint64_t m, uint64_t x,
                                   uint64_t *most, ptxgen_error *err)
{
    const struct linear_kind *kind = linear->kind;
    union linear_family_args args = linear->args;
    uint64_t bytes = 0;
    set(&args, kind->m, m);
    set(&args, kind->x, x);
    set(&args, kind->y, x);
    ptxgen_status status = kind->workspace(linear->loaded, &args, &bytes, err);
    *most = bytes > *most ? bytes : *most;
    return status;
}

/*
 * Workspace for the most that any number of tokens needs: fewer tokens may need more, as their
 * products are divided along K, and an x that is not aligned is copied.
 */
static ptxgen_status give_workspace(ptxgen_linear *linear, ptxgen_element type, ptxgen_error *err)
{
    enum { ANY_ADDRESS = 1 << 20 };
    const struct linear_kind *kind = linear->kind;
    const ptxgen_driver *driver = linear->dispatcher->driver;
    uint64_t most = 0, address = 0;
    ptxgen_status status = PTXGEN_OK;
    for (uint64_t m = 1; status == PTXGEN_OK && m <= linear->max_m; m++) {
        status = ask_workspace(linear, m, ANY_ADDRESS, &most, err);
        if (status == PTXGEN_OK)
            status = ask_workspace(linear, m, ANY_ADDRESS + ptxgen_element_size(type), &most, err);
    }
    if (status == PTXGEN_OK && most)
        status = allocate(linear, most, &address, err);
    ptxgen_cu_result result =
        status == PTXGEN_OK && most ? driver->memset_d8(address, 0, most) : PTXGEN_CUDA_SUCCESS;
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err, "clearing a layer's workspace");
    set(&linear->args, kind->workspace_at, address);
    set(&linear->args, kind->workspace_bytes, most);
    return status;
}

/* ---- making ---- */

static ptxgen_status check_options(const struct linear_making *m, ptxgen_error *err)
{
    const ptxgen_linear_options *o = m->options;
    if (!m->dispatcher || !o)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: dispatcher and options must be given");
    if (!o->max_m || o->max_m > MOST_M)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: max_m = %llu is not from 1 to %d",
                           (unsigned long long)o->max_m, MOST_M);
    if (o->type > PTXGEN_BF16)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: type %u is not f32, f16 or bf16", o->type);
    for (size_t i = 0; i < sizeof o->reserved; i++)
        if (o->reserved[i])
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "a layer: reserved[%zu] of the options is not 0", i);
    return PTXGEN_OK;
}

/* A stream that does not wait for the default one must find copies and zeros. */
static ptxgen_status wait_for_copies(const ptxgen_driver *driver, ptxgen_error *err)
{
    ptxgen_cu_result result = driver->ctx_synchronize();
    return result == PTXGEN_CUDA_SUCCESS
               ? PTXGEN_OK
               : ptxgen_driver_fail(driver, result, err, "waiting for a layer's weights");
}

ptxgen_status linear_make(const struct linear_making *m, linear_maker *fill, const void *weights,
                          ptxgen_linear **linear, ptxgen_error *err)
{
    ptxgen_cu_context context;
    if (!linear)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: linear is NULL");
    *linear = NULL;
    ptxgen_status status = check_options(m, err);
    if (status == PTXGEN_OK)
        status = context_enter(m->dispatcher->driver, m->dispatcher->context, &context, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_linear *made = calloc(1, sizeof *made);
    if (made) {
        made->dispatcher = m->dispatcher;
        made->max_m = m->options->max_m;
        status = fill(m, weights, made, err);
        if (status == PTXGEN_OK)
            status = give_workspace(made, (ptxgen_element)m->options->type, err);
        if (status == PTXGEN_OK)
            status = wait_for_copies(m->dispatcher->driver, err);
    } else {
        status = linear_no_memory(err);
    }
    context_leave(m->dispatcher->driver);
    if (status == PTXGEN_OK)
        *linear = made;
    else
        ptxgen_linear_destroy(made);
    return status;
}

ptxgen_status linear_dispatch(ptxgen_linear *linear, const struct linear_making *m,
                              const struct linear_kind *kind, const ptxgen_family *family,
                              const void *spec, ptxgen_error *err)
{
    linear->kind = kind;
    return ptxgen_dispatch(m->dispatcher, family, spec, &linear->loaded, err);
}

/* ---- using ---- */

void ptxgen_linear_destroy(ptxgen_linear *linear)
{
    ptxgen_cu_context context;
    if (!linear)
        return;
    const ptxgen_driver *driver = linear->dispatcher->driver;
    if (context_enter(driver, linear->dispatcher->context, &context, NULL) == PTXGEN_OK) {
        for (unsigned i = 0; i < linear->buffer_count; i++)
            driver->mem_free(linear->buffers[i]);
        context_leave(driver);
    }
    ptxgen_release(linear->loaded);
    free(linear);
}

uint32_t ptxgen_linear_k(const ptxgen_linear *linear)
{
    return linear ? linear->k : 0;
}

uint32_t ptxgen_linear_n(const ptxgen_linear *linear)
{
    return linear ? linear->n : 0;
}

uint64_t ptxgen_linear_bytes(const ptxgen_linear *linear)
{
    return linear ? linear->bytes : 0;
}

const char *ptxgen_linear_family(const ptxgen_linear *linear)
{
    return linear ? linear->loaded->family->name : NULL;
}

/* The family's arguments of a run. */
static ptxgen_status fill_args(const ptxgen_linear *linear, const ptxgen_linear_args *args,
                               union linear_family_args *all, ptxgen_error *err)
{
    if (!linear || !args)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer's run: linear and args must be given");
    if (args->m > linear->max_m)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer's run: M = %llu is above max_m, %llu",
                           (unsigned long long)args->m, (unsigned long long)linear->max_m);
    const struct linear_kind *kind = linear->kind;
    *all = linear->args;
    set(all, kind->m, args->m);
    set(all, kind->x, args->x);
    set(all, kind->y, args->y);
    set(all, kind->x_stride, args->x_stride);
    set(all, kind->y_stride, args->y_stride);
    set(all, kind->x_bytes, args->x_bytes);
    set(all, kind->y_bytes, args->y_bytes);
    if (args->workspace) {
        set(all, kind->workspace_at, args->workspace);
        set(all, kind->workspace_bytes, args->workspace_bytes);
    }
    if (kind->x_scale && args->x_scale) {
        set(all, kind->x_scale, args->x_scale);
        set(all, kind->x_scale_bytes, args->x_scale_bytes);
    }
    return PTXGEN_OK;
}

ptxgen_status ptxgen_linear_workspace_bytes(const ptxgen_linear *linear,
                                            const ptxgen_linear_args *args, uint64_t *bytes,
                                            ptxgen_error *err)
{
    union linear_family_args all;
    if (!bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_linear_workspace_bytes: bytes is NULL");
    ptxgen_status status = fill_args(linear, args, &all, err);
    return status == PTXGEN_OK ? linear->kind->workspace(linear->loaded, &all, bytes, err) : status;
}

ptxgen_status ptxgen_linear_run(const ptxgen_linear *linear, const ptxgen_linear_args *args,
                                ptxgen_cu_stream stream, ptxgen_error *err)
{
    union linear_family_args all;
    ptxgen_status status = fill_args(linear, args, &all, err);
    return status == PTXGEN_OK ? linear->kind->launch(linear->loaded, &all, stream, err) : status;
}
