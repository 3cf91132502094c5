/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer as one object. A maker fills in a spec and arguments from the weights, and uploads them;
 * what families differ in besides is a table of functions and of places in their arguments.
 */
#include <ptxgen/dense.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/linear.h>
#include <ptxgen/marlin.h>

#include "src/runtime/context.h"
#include "src/runtime/dispatcher.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BUFFERS = 8, MOST_M = 65536 };

union family_args {
    ptxgen_marlin_args marlin;
    ptxgen_w8a8_args w8a8;
    ptxgen_gguf_linear_args gguf;
    ptxgen_dense_args dense;
};

/* A family's calls, and where its arguments have what a run sets. */
struct linear_kind {
    ptxgen_status (*launch)(const void *kernel, const void *args, ptxgen_cu_stream stream,
                            ptxgen_error *err);
    ptxgen_status (*workspace)(const void *kernel, const void *args, uint64_t *bytes,
                               ptxgen_error *err);
    size_t m, x, y, x_stride, y_stride, x_bytes, y_bytes, workspace_at, workspace_bytes;
};

struct ptxgen_linear {
    const struct linear_kind *kind;
    const ptxgen_dispatcher *dispatcher;
    ptxgen_loaded *loaded;
    uint64_t max_m;
    uint32_t k, n;
    uint64_t bytes;
    unsigned buffer_count;
    ptxgen_cu_deviceptr buffers[MOST_BUFFERS];
    union family_args args; /* all but what a run sets */
};

#define LINEAR_KIND(family, prefix)                                                                \
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
    static const struct linear_kind family##_kind = {                                              \
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
        .workspace_bytes = offsetof(ptxgen_##prefix##_args, workspace_bytes)}

LINEAR_KIND(marlin, marlin);
LINEAR_KIND(w8a8, w8a8);
LINEAR_KIND(gguf, gguf_linear);
LINEAR_KIND(dense, dense);

static void set(union family_args *args, size_t at, uint64_t value)
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

/* Copies an array to memory of its own; an empty one has the address 0. */
static ptxgen_status upload(ptxgen_linear *linear, const void *host, size_t bytes,
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

static ptxgen_status no_memory(ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a layer");
}

/* The bias in the type that the family takes. */
static ptxgen_status upload_bias(ptxgen_linear *linear, const float *bias, ptxgen_element type,
                                 uint64_t *address, ptxgen_error *err)
{
    *address = 0;
    if (!bias || !linear->n)
        return PTXGEN_OK;
    size_t bytes = linear->n * ptxgen_element_size(type);
    void *rounded = malloc(bytes);
    if (!rounded)
        return no_memory(err);
    for (uint32_t i = 0; i < linear->n; i++)
        ptxgen_element_store(type, rounded, i, bias[i]);
    ptxgen_status status = upload(linear, rounded, bytes, address, err);
    free(rounded);
    return status;
}

/* What a run of m tokens whose x is at that address needs at least, added to *most. */
static ptxgen_status ask_workspace(const ptxgen_linear *linear, uint64_t m, uint64_t x,
                                   uint64_t *most, ptxgen_error *err)
{
    const struct linear_kind *kind = linear->kind;
    union family_args args = linear->args;
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

/* What a maker of a family needs. */
struct making {
    ptxgen_dispatcher *dispatcher;
    const ptxgen_linear_options *options;
    const ptxgen_w4_checkpoint *weights, *up;
    const ptxgen_w8a8_weights *floats;
    const void *rows; /* of GGUF, or of floats */
    size_t bytes;
    uint32_t type, n, k;
};
typedef ptxgen_status maker(const struct making *m, ptxgen_linear *linear, ptxgen_error *err);

static ptxgen_status check_options(const struct making *m, ptxgen_error *err)
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

static ptxgen_status make(const struct making *m, maker *fill, ptxgen_linear **linear,
                          ptxgen_error *err)
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
        status = fill(m, made, err);
        if (status == PTXGEN_OK)
            status = give_workspace(made, (ptxgen_element)m->options->type, err);
        if (status == PTXGEN_OK)
            status = wait_for_copies(m->dispatcher->driver, err);
    } else {
        status = no_memory(err);
    }
    context_leave(m->dispatcher->driver);
    if (status == PTXGEN_OK)
        *linear = made;
    else
        ptxgen_linear_destroy(made);
    return status;
}

static ptxgen_status dispatch(ptxgen_linear *linear, const struct making *m,
                              const struct linear_kind *kind, const ptxgen_family *family,
                              const void *spec, ptxgen_error *err)
{
    linear->kind = kind;
    return ptxgen_dispatch(m->dispatcher, family, spec, &linear->loaded, err);
}

/* ---- marlin ---- */

/* Packs into host memory and uploads from there. */
static ptxgen_status pack_w4(const struct making *m, const ptxgen_marlin_spec *spec,
                             ptxgen_linear *linear, ptxgen_error *err)
{
    ptxgen_marlin_packed packed;
    ptxgen_marlin_args *args = &linear->args.marlin;
    ptxgen_status status = ptxgen_marlin_packed_layout(spec, &packed, err);
    if (status != PTXGEN_OK)
        return status;
    struct {
        void **host;
        size_t bytes;
        uint64_t *address;
    } arrays[] = {{&packed.codes, packed.codes_bytes, &args->codes},
                  {&packed.scales, packed.scales_bytes, &args->scales},
                  {&packed.zeros, packed.zeros_bytes, &args->zeros},
                  {(void **)&packed.order, packed.order_bytes, &args->order}};
    enum { ARRAYS = sizeof arrays / sizeof *arrays };
    void *memory[ARRAYS] = {NULL};
    for (int i = 0; status == PTXGEN_OK && i < ARRAYS; i++) {
        memory[i] = arrays[i].bytes ? malloc(arrays[i].bytes) : NULL;
        if (arrays[i].bytes && !memory[i])
            status = no_memory(err);
    }
    packed.codes = memory[0];
    packed.scales = memory[1];
    packed.zeros = memory[2];
    packed.order = memory[3];
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_pack(spec, m->weights, m->up, &packed, NULL, err);
    for (int i = 0; status == PTXGEN_OK && i < ARRAYS; i++)
        status = upload(linear, memory[i], arrays[i].bytes, arrays[i].address, err);
    for (int i = 0; i < ARRAYS; i++)
        free(memory[i]);
    return status;
}

static ptxgen_status fill_w4(const struct making *m, ptxgen_linear *linear, ptxgen_error *err)
{
    ptxgen_w4_info info, up = {.symmetric = true};
    const ptxgen_linear_options *o = m->options;
    if (!m->weights)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: weights is NULL");
    if (m->up && (o->bias || o->activation))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: gate and up take neither a bias nor an activation");
    ptxgen_status status = ptxgen_w4_describe(m->weights, &info, err);
    if (status == PTXGEN_OK && m->up)
        status = ptxgen_w4_describe(m->up, &up, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_marlin_spec spec = {.k = linear->k = (uint32_t)info.k,
                                     .n = linear->n = (uint32_t)info.n,
                                     .group_size = (int32_t)info.group_size,
                                     .max_m = (uint32_t)o->max_m,
                                     .type = o->type,
                                     .zeros = !info.symmetric || !up.symmetric,
                                     .act_order = info.act_order,
                                     .epilogue =
                                         m->up ? PTXGEN_EPILOGUE_SWIGLU : PTXGEN_EPILOGUE_NONE,
                                     .activation = o->activation,
                                     .bias = o->bias != NULL};
    status = dispatch(linear, m, &marlin_kind, ptxgen_marlin_family(), &spec, err);
    if (status == PTXGEN_OK)
        status = pack_w4(m, &spec, linear, err);
    if (status == PTXGEN_OK && spec.bias)
        status =
            upload_bias(linear, o->bias, (ptxgen_element)o->type, &linear->args.marlin.bias, err);
    return status;
}

ptxgen_status ptxgen_linear_from_w4(ptxgen_dispatcher *dispatcher,
                                    const ptxgen_w4_checkpoint *weights,
                                    const ptxgen_w4_checkpoint *up,
                                    const ptxgen_linear_options *options, ptxgen_linear **linear,
                                    ptxgen_error *err)
{
    const struct making m = {
        .dispatcher = dispatcher, .options = options, .weights = weights, .up = up};
    return make(&m, fill_w4, linear, err);
}

/* ---- w8a8 ---- */

static ptxgen_status fill_w8a8(const struct making *m, ptxgen_linear *linear, ptxgen_error *err)
{
    enum { ALIGN = 16 }; /* rows of codes that are copied as they are */
    const ptxgen_w8a8_weights *w = m->floats;
    const ptxgen_linear_options *o = m->options;
    ptxgen_w8a8_args *args = &linear->args.w8a8;
    if (!w)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: weights is NULL");
    const uint32_t stride = w->k > UINT32_MAX - ALIGN ? w->k : (w->k + ALIGN - 1) / ALIGN * ALIGN;
    const ptxgen_w8a8_spec spec = {.k = linear->k = w->k,
                                   .n = linear->n = w->n,
                                   .w_stride = stride,
                                   .max_m = (uint32_t)o->max_m,
                                   .x_type = o->type,
                                   .y_type = o->type,
                                   .codes = (uint8_t)w->codes,
                                   .activation = o->activation,
                                   .bias = o->bias != NULL};
    ptxgen_status status = dispatch(linear, m, &w8a8_kind, ptxgen_w8a8_family(), &spec, err);
    if (status != PTXGEN_OK)
        return status;
    size_t bytes = (size_t)w->n * stride, scale_bytes = w->n * sizeof(float);
    int8_t *codes = malloc(bytes + 1);
    float *scales = malloc(scale_bytes + 1);
    status = codes && scales ? ptxgen_w8a8_quantise(w, stride, codes, PTXGEN_F32, scales, err)
                             : no_memory(err);
    if (status == PTXGEN_OK)
        status = upload(linear, codes, bytes, &args->w, err);
    if (status == PTXGEN_OK)
        status = upload(linear, scales, scale_bytes, &args->w_scale, err);
    if (status == PTXGEN_OK)
        status = upload_bias(linear, o->bias, PTXGEN_F32, &args->bias, err);
    free(codes);
    free(scales);
    return status;
}

ptxgen_status ptxgen_linear_from_w8a8(ptxgen_dispatcher *dispatcher,
                                      const ptxgen_w8a8_weights *weights,
                                      const ptxgen_linear_options *options, ptxgen_linear **linear,
                                      ptxgen_error *err)
{
    const struct making m = {.dispatcher = dispatcher, .options = options, .floats = weights};
    return make(&m, fill_w8a8, linear, err);
}

/* ---- gguf_linear ---- */

static ptxgen_status fill_gguf(const struct making *m, ptxgen_linear *linear, ptxgen_error *err)
{
    const ptxgen_linear_options *o = m->options;
    size_t row_bytes;
    if (!m->rows && m->n && m->k)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: rows is NULL");
    ptxgen_status status = ptxgen_gguf_row_bytes(m->type, m->k, &row_bytes, err);
    if (status != PTXGEN_OK)
        return status;
    if (row_bytes && m->bytes / row_bytes < m->n)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer: %u rows of %zu bytes do not fit into %zu", m->n, row_bytes,
                           m->bytes);
    if (o->activation)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "a layer: gguf_linear has no activation");
    const ptxgen_gguf_linear_spec spec = {.k = linear->k = m->k,
                                          .n = {linear->n = m->n},
                                          .max_m = (uint32_t)o->max_m,
                                          .w_type = {(uint8_t)m->type},
                                          .x_type = o->type,
                                          .y_type = o->type,
                                          .bias = o->bias != NULL};
    status = dispatch(linear, m, &gguf_kind, ptxgen_gguf_linear_family(), &spec, err);
    if (status == PTXGEN_OK)
        status = upload(linear, m->rows, m->n * row_bytes, &linear->args.gguf.w[0], err);
    if (status == PTXGEN_OK)
        status = upload_bias(linear, o->bias, PTXGEN_F32, &linear->args.gguf.bias[0], err);
    return status;
}

ptxgen_status ptxgen_linear_from_gguf(ptxgen_dispatcher *dispatcher, uint32_t type,
                                      const void *rows, size_t bytes, uint32_t n, uint32_t k,
                                      const ptxgen_linear_options *options, ptxgen_linear **linear,
                                      ptxgen_error *err)
{
    const struct making m = {.dispatcher = dispatcher,
                             .options = options,
                             .type = type,
                             .rows = rows,
                             .bytes = bytes,
                             .n = n,
                             .k = k};
    return make(&m, fill_gguf, linear, err);
}

/* ---- dense ---- */

static ptxgen_status fill_floats(const struct making *m, ptxgen_linear *linear, ptxgen_error *err)
{
    const ptxgen_linear_options *o = m->options;
    const ptxgen_element type = (ptxgen_element)o->type;
    if (!m->rows && m->n && m->k)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: w is NULL");
    const ptxgen_dense_spec spec = {.n = linear->n = m->n,
                                    .k = linear->k = m->k,
                                    .max_m = (uint32_t)o->max_m,
                                    .type = o->type,
                                    .activation = o->activation,
                                    .bias = o->bias != NULL};
    ptxgen_status status = dispatch(linear, m, &dense_kind, ptxgen_dense_family(), &spec, err);
    if (status == PTXGEN_OK)
        status = upload(linear, m->rows, (size_t)m->n * m->k * ptxgen_element_size(type),
                        &linear->args.dense.w, err);
    if (status == PTXGEN_OK)
        status = upload_bias(linear, o->bias, type, &linear->args.dense.bias, err);
    return status;
}

ptxgen_status ptxgen_linear_from_floats(ptxgen_dispatcher *dispatcher, const void *w, uint32_t n,
                                        uint32_t k, const ptxgen_linear_options *options,
                                        ptxgen_linear **linear, ptxgen_error *err)
{
    const struct making m = {
        .dispatcher = dispatcher, .options = options, .rows = w, .n = n, .k = k};
    return make(&m, fill_floats, linear, err);
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

ptxgen_status ptxgen_linear_run(const ptxgen_linear *linear, const ptxgen_linear_args *args,
                                ptxgen_cu_stream stream, ptxgen_error *err)
{
    if (!linear || !args)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer's run: linear and args must be given");
    if (args->m > linear->max_m)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a layer's run: M = %llu is above max_m, %llu",
                           (unsigned long long)args->m, (unsigned long long)linear->max_m);
    const struct linear_kind *kind = linear->kind;
    union family_args all = linear->args;
    set(&all, kind->m, args->m);
    set(&all, kind->x, args->x);
    set(&all, kind->y, args->y);
    set(&all, kind->x_stride, args->x_stride);
    set(&all, kind->y_stride, args->y_stride);
    set(&all, kind->x_bytes, args->x_bytes);
    set(&all, kind->y_bytes, args->y_bytes);
    return kind->launch(linear->loaded, &all, stream, err);
}
