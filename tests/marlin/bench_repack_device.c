/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speed of packing on a device, beside a copy of the same number of bytes: bytes read and written
 * by a second. Each result is compared with what the host packs.
 *
 *     bench_marlin_repack_device [DEVICE [K N]]      gpu 8192 28672 unless given
 */
#include <ptxgen/marlin_repack.h>

#include "src/harness/bench_time.h"
#include "src/harness/buffer.h"
#include "src/harness/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 128, LAUNCHES = 4, REPLAYS = 10, MOST = 10 };

static const struct test_case {
    ptxgen_w4_format format;
    bool act_order, swiglu;
} cases[] = {
    {PTXGEN_W4_GPTQ_V1, false, false},
    {PTXGEN_W4_GPTQ_V1, false, true},
    {PTXGEN_W4_GPTQ_V1, true, false},
    {PTXGEN_W4_AWQ, false, false},
    {PTXGEN_W4_AWQ, false, true},
    {PTXGEN_W4_PACK_QUANTIZED, false, false},
    {PTXGEN_W4_PACK_QUANTIZED, false, true},
    {PTXGEN_W4_PACK_QUANTIZED, true, false},
    {PTXGEN_W4_MARLIN, false, false},
    {PTXGEN_W4_MARLIN, false, true},
};

/* Everything that a case has, in host and device memory. */
struct work {
    struct device *device;
    ptxgen_marlin_spec spec;
    ptxgen_marlin_repack_spec repack;
    struct buffer buffers[MOST];
    unsigned count;
    ptxgen_w4_checkpoint checkpoints[2];
    ptxgen_marlin_packed packed;
    struct buffer *written[3];
    ptxgen_marlin_repack_args args;
    ptxgen_marlin_repack *kernel;
    int32_t *g_idx;
};

static ptxgen_status add(struct work *w, const char *name, size_t bytes, struct buffer **buffer,
                         ptxgen_error *err)
{
    *buffer = &w->buffers[w->count++];
    return buffer_create(w->device, name, bytes, 0, *buffer, err);
}

/* Codes of any value; zero points and scales likewise, but for scales that are not finite. */
static ptxgen_status add_tensor(struct work *w, const char *name, ptxgen_w4_tensor *tensor,
                                uint64_t *address, struct random *r, ptxgen_error *err)
{
    struct buffer *buffer;
    ptxgen_status status = add(w, name, ptxgen_w4_tensor_bytes(tensor), &buffer, err);
    if (status != PTXGEN_OK)
        return status;
    random_fill(r, buffer->host, buffer->bytes);
    for (size_t i = 1; tensor->dtype == PTXGEN_W4_F16 && i < buffer->bytes; i += 2)
        buffer->host[i] &= 0xBB; /* an exponent of all ones becomes another */
    tensor->data = buffer->host;
    *address = buffer->address;
    return buffer_upload(buffer, err);
}

static ptxgen_status add_checkpoint(struct work *w, const struct test_case *c, unsigned i,
                                    struct random *r, ptxgen_error *err)
{
    ptxgen_w4_checkpoint *to = &w->checkpoints[i];
    ptxgen_marlin_repack_tensors *on_device = i ? &w->args.up : &w->args.weights;
    const ptxgen_w4_info info = {.k = w->spec.k,
                                 .n = w->spec.n,
                                 .groups = w->spec.k / GROUP,
                                 .group_size = GROUP,
                                 .scale_type = PTXGEN_F16,
                                 .act_order = c->act_order};
    ptxgen_status status = ptxgen_w4_layout(&info, c->format, to, err);
    if (status == PTXGEN_OK)
        status = add_tensor(w, "weights", &to->weights, &on_device->weights, r, err);
    if (status == PTXGEN_OK)
        status = add_tensor(w, "scales", &to->scales, &on_device->scales, r, err);
    if (status == PTXGEN_OK)
        status = add_tensor(w, "zeros", &to->zeros, &on_device->zeros, r, err);
    to->shape = (ptxgen_w4_tensor){.data = NULL};
    if (to->g_idx.shape[0])
        to->g_idx.data = w->g_idx;
    return status;
}

/* Rows go to their groups in turn: neighbours in a group are far from each other in the file. */
static ptxgen_status make_order(struct work *w, ptxgen_error *err)
{
    struct buffer *order;
    size_t groups = w->spec.k / GROUP;
    ptxgen_status status = add(w, "order", w->spec.k * sizeof(uint32_t), &order, err);
    if (status != PTXGEN_OK)
        return status;
    for (size_t k = 0; k < w->spec.k; k++)
        w->g_idx[k] = (int32_t)(w->spec.act_order ? k % groups : k / GROUP);
    status = ptxgen_marlin_row_order(&w->repack, w->g_idx, (uint32_t *)(void *)order->host, err);
    w->packed.order = (uint32_t *)(void *)order->host;
    w->args.order = order->address;
    return status == PTXGEN_OK ? buffer_upload(order, err) : status;
}

static ptxgen_status add_packed(struct work *w, ptxgen_error *err)
{
    const size_t bytes[3] = {w->packed.codes_bytes, w->packed.scales_bytes, w->packed.zeros_bytes};
    void **host[3] = {&w->packed.codes, &w->packed.scales, &w->packed.zeros};
    uint64_t *address[3] = {&w->args.codes, &w->args.scales, &w->args.zeros};
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; status == PTXGEN_OK && i < 3; i++) {
        status = add(w, "packed", bytes[i], &w->written[i], err);
        if (status == PTXGEN_OK)
            status = buffer_upload(w->written[i], err); /* for its guards */
        *host[i] = w->written[i]->host;
        *address[i] = w->written[i]->address;
    }
    return status;
}

static ptxgen_status load(struct work *w, ptxgen_error *err)
{
    const ptxgen_target target = ptxgen_device_target(&w->device->facts);
    ptxgen_marlin_repack_plan plan;
    ptxgen_status status = ptxgen_marlin_repack_make_plan(&w->repack, &target, &plan, err);
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_repack_load(&w->device->driver, &plan, NULL, &w->kernel, err);
    return status;
}

static ptxgen_status prepare(struct work *w, const struct test_case *c, ptxgen_error *err)
{
    struct random r = random_start(1);
    w->spec.act_order = c->act_order;
    w->spec.epilogue = c->swiglu ? PTXGEN_EPILOGUE_SWIGLU : PTXGEN_EPILOGUE_NONE;
    w->repack = (ptxgen_marlin_repack_spec){.k = w->spec.k,
                                            .n = w->spec.n,
                                            .group_size = GROUP,
                                            .type = w->spec.type,
                                            .zeros = w->spec.zeros,
                                            .act_order = w->spec.act_order,
                                            .epilogue = w->spec.epilogue,
                                            .format = (uint8_t)c->format,
                                            .scale_type = PTXGEN_F16};
    w->g_idx = calloc(w->spec.k, sizeof *w->g_idx);
    if (!w->g_idx)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for g_idx");
    ptxgen_status status = ptxgen_marlin_packed_layout(&w->spec, &w->packed, err);
    if (status == PTXGEN_OK)
        status = make_order(w, err);
    for (unsigned i = 0; status == PTXGEN_OK && i < 1u + c->swiglu; i++)
        status = add_checkpoint(w, c, i, &r, err);
    if (status == PTXGEN_OK)
        status = add_packed(w, err);
    return status == PTXGEN_OK ? load(w, err) : status;
}

static void release(struct work *w)
{
    ptxgen_marlin_repack_destroy(w->kernel);
    for (unsigned i = 0; i < w->count; i++)
        buffer_destroy(&w->buffers[i]);
    free(w->g_idx);
}

/* The device's result is what the host packs, which takes the place of what is brought back. */
static ptxgen_status compare(struct work *w, ptxgen_error *err)
{
    ptxgen_status status = ptxgen_marlin_repack_launch(w->kernel, &w->args, w->device->stream, err);
    if (status == PTXGEN_OK)
        status = device_wait(w->device, err);
    if (status != PTXGEN_OK)
        return device_explain(w->device, status, err);
    const ptxgen_w4_repack_options options = {.threads = 8};
    const ptxgen_w4_checkpoint *up =
        w->spec.epilogue == PTXGEN_EPILOGUE_SWIGLU ? &w->checkpoints[1] : NULL;
    status = ptxgen_marlin_pack(&w->spec, &w->checkpoints[0], up, &w->packed, &options, err);
    for (int i = 0; status == PTXGEN_OK && i < 3; i++)
        status = buffer_verify(w->written[i], err);
    return status;
}

static ptxgen_status repack(void *state, uint32_t copy, ptxgen_error *err)
{
    struct work *w = state;
    (void)copy;
    return ptxgen_marlin_repack_launch(w->kernel, &w->args, w->device->stream, err);
}

static ptxgen_status copy_codes(void *state, uint32_t copy, ptxgen_error *err)
{
    struct work *w = state;
    (void)copy;
    return device_check(w->device,
                        w->device->driver.memcpy_dtod_async(w->args.codes, w->args.weights.weights,
                                                            w->checkpoints[0].weights.shape[0] *
                                                                w->checkpoints[0].weights.shape[1] *
                                                                sizeof(uint32_t),
                                                            w->device->stream),
                        "copying", err);
}

static double bytes_moved(const struct work *w)
{
    double bytes = 0;
    for (unsigned i = 0; i < w->count; i++)
        bytes += (double)w->buffers[i].bytes;
    return bytes - (w->spec.act_order ? 0 : (double)w->spec.k * sizeof(uint32_t));
}

static ptxgen_status measure(struct work *w, const struct test_case *c, ptxgen_error *err)
{
    struct timing packing, copying;
    ptxgen_status status = bench_time(w->device, repack, w, 1, LAUNCHES, REPLAYS, &packing, err);
    if (status == PTXGEN_OK)
        status = bench_time(w->device, copy_codes, w, 1, LAUNCHES, REPLAYS, &copying, err);
    if (status != PTXGEN_OK)
        return status;
    double copied = 2.0 * (double)ptxgen_w4_tensor_bytes(&w->checkpoints[0].weights);
    printf("%-14s %-9s %-6s %8.1f us  %7.1f GB/s   copy %7.1f GB/s\n",
           ptxgen_w4_format_name(c->format), c->act_order ? "act-order" : "",
           c->swiglu ? "swiglu" : "", 1e6 * packing.median, 1e-9 * bytes_moved(w) / packing.median,
           1e-9 * copied / copying.median);
    return PTXGEN_OK;
}

static ptxgen_status run_case(struct device *device, uint32_t k, uint32_t n,
                              const struct test_case *c, ptxgen_error *err)
{
    struct work w = {.device = device,
                     .spec = {.k = k, .n = n, .group_size = GROUP, .type = PTXGEN_F16, .zeros = 1}};
    ptxgen_status status = prepare(&w, c, err);
    if (status == PTXGEN_OK)
        status = compare(&w, err);
    if (status == PTXGEN_OK && device->emulated)
        printf("%-14s %-9s %-6s as on the host\n", ptxgen_w4_format_name(c->format),
               c->act_order ? "act-order" : "", c->swiglu ? "swiglu" : "");
    else if (status == PTXGEN_OK)
        status = measure(&w, c, err);
    release(&w);
    return status;
}

int main(int argc, char **argv)
{
    struct device device;
    ptxgen_error err;
    uint32_t k = argc > 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 8192;
    uint32_t n = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 28672;
    setvbuf(stdout, NULL, _IOLBF, 0); /* each case as it is done, into a file too */
    ptxgen_status status = device_open(argc > 1 ? argv[1] : "gpu", &device, &err);
    if (status == PTXGEN_OK)
        printf("K=%u N=%u group=%d f16, zero points, on %s\n", k, n, GROUP, device.facts.name);
    for (size_t i = 0; status == PTXGEN_OK && i < sizeof cases / sizeof *cases; i++)
        status = run_case(&device, k, n, &cases[i], &err);
    if (status != PTXGEN_OK)
        fprintf(stderr, "%s\n", err.message);
    device_close(&device);
    return status != PTXGEN_OK;
}
