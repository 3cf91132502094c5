/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marlin's bits over replays; the first launch must have written every element.
 *
 *     marlin_replays [cpu | gpu] [REPLAYS]      gpu and 100 by default
 */
#include "src/cli/families/marlin.h"
#include "tests/replays.h"

#include <stdio.h>
#include <stdlib.h>

struct shape {
    uint32_t m;
    ptxgen_marlin_spec spec;
};

/* Divided and whole tiles, of every size; gathered activations; tails. */
static const struct shape gpu_shapes[] = {
    {1, {.k = 4096, .n = 4096, .group_size = 128, .type = PTXGEN_F16}},
    {16, {.k = 8192, .n = 1032, .group_size = 32, .type = PTXGEN_BF16, .zeros = 1}},
    {16, {.k = 4096, .n = 14336, .group_size = 128, .type = PTXGEN_F16}},
    {33, {.k = 10944, .n = 640, .group_size = 64, .type = PTXGEN_F16, .act_order = 1}},
    {64, {.k = 4096, .n = 4096, .group_size = PTXGEN_W4_PER_CHANNEL, .type = PTXGEN_BF16}},
    {200, {.k = 2048, .n = 2048, .group_size = 128, .type = PTXGEN_F16}},
    {1000, {.k = 4096, .n = 1024, .group_size = 128, .type = PTXGEN_F16,
            .epilogue = PTXGEN_EPILOGUE_SWIGLU}},
};
static const struct shape cpu_shapes[] = {
    {5, {.k = 512, .n = 96, .group_size = 128, .type = PTXGEN_F16}},
    {17, {.k = 272, .n = 72, .group_size = 16, .type = PTXGEN_BF16, .zeros = 1, .act_order = 1}},
};

enum place { X, CODES, SCALES, ZEROS, ORDER, OPERANDS };

struct bench {
    const ptxgen_marlin *kernel;
    ptxgen_marlin_args args; /* but for c and the workspace */
    size_t c_bytes;
    struct buffer operands[OPERANDS]; /* zeroed where the kernel takes none */
};

/* ---- operands ---- */

static void create(struct bench *b, enum place which, size_t bytes, struct device *device)
{
    ptxgen_error err;
    must_do(buffer_create(device, "operand", bytes, 0, &b->operands[which], &err), "a buffer",
            &err);
}

/* Elements whose bytes are 0x20 … 0x3f are finite and positive as f16 and as bf16. */
static void fill_elements(struct buffer *buffer, struct random *r)
{
    random_fill(r, buffer->host, buffer->bytes);
    for (size_t i = 0; i < buffer->bytes; i++)
        buffer->host[i] = 0x20 | (buffer->host[i] & 0x1f);
}

static void fill_backward(struct buffer *order)
{
    uint32_t *host = (uint32_t *)(void *)order->host, k = (uint32_t)(order->bytes / 4);
    for (uint32_t i = 0; i < k; i++)
        host[i] = k - 1 - i;
}

static void make_operands(struct bench *b, const struct shape *shape, struct device *device)
{
    const ptxgen_marlin_spec *s = &shape->spec;
    struct buffer *o = b->operands, *all[OPERANDS];
    struct random r = random_start(1);
    ptxgen_marlin_packed packed;
    ptxgen_error err;
    must_do(ptxgen_marlin_packed_layout(s, &packed, &err), "the layout", &err);
    create(b, X, 2 * (size_t)shape->m * s->k, device);
    create(b, CODES, packed.codes_bytes, device);
    create(b, SCALES, packed.scales_bytes, device);
    fill_elements(&o[X], &r);
    random_fill(&r, o[CODES].host, o[CODES].bytes);
    fill_elements(&o[SCALES], &r);
    if (s->zeros) {
        create(b, ZEROS, packed.zeros_bytes, device);
        random_fill(&r, o[ZEROS].host, o[ZEROS].bytes);
    }
    if (s->act_order) {
        create(b, ORDER, 4 * (size_t)s->k, device);
        fill_backward(&o[ORDER]);
    }
    for (int i = 0; i < OPERANDS; i++)
        all[i] = &o[i];
    must_do(buffers_each(all, OPERANDS, buffer_upload, &err), "an upload", &err);
    b->args = (ptxgen_marlin_args){.m = shape->m,
                                   .x = o[X].address,
                                   .codes = o[CODES].address,
                                   .scales = o[SCALES].address,
                                   .zeros = o[ZEROS].address,
                                   .order = o[ORDER].address};
}

/* ---- a problem ---- */

static ptxgen_status launch(void *bench, ptxgen_cu_deviceptr c, ptxgen_cu_deviceptr workspace,
                            ptxgen_cu_stream stream, ptxgen_error *err)
{
    const struct bench *b = bench;
    ptxgen_marlin_args args = b->args;
    args.y = c;
    args.workspace = workspace;
    return ptxgen_marlin_launch(b->kernel, &args, stream, err);
}

static bool was_written(void *bench, const unsigned char *c)
{
    const struct bench *b = bench;
    for (size_t i = 0; i < b->c_bytes; i += 2)
        if (c[i] == REPLAY_POISON && c[i + 1] == REPLAY_POISON)
            return false;
    return true;
}

/* How many of the replays left other bits than the first launch. */
static unsigned run(struct device *device, const struct shape *shape, unsigned replays)
{
    ptxgen_target target = ptxgen_device_target(&device->facts);
    struct bench b = {.c_bytes = 2 * (size_t)shape->m * shape->spec.n};
    ptxgen_marlin_plan plan;
    ptxgen_marlin *kernel;
    ptxgen_error err;
    must_do(ptxgen_marlin_make_plan(&shape->spec, &target, &plan, &err), "the plan", &err);
    must_do(ptxgen_marlin_load(&device->driver, &plan, NULL, &kernel, &err), "loading", &err);
    b.kernel = kernel;
    make_operands(&b, shape, device);
    must_do(ptxgen_marlin_workspace_bytes(kernel, &b.args, &b.args.workspace_bytes, &err), "sizing",
            &err);
    const struct replayed what = {.problem = &b,
                                  .launch = launch,
                                  .is_right = was_written,
                                  .y_bytes = b.c_bytes,
                                  .workspace_bytes = b.args.workspace_bytes};
    unsigned different = replays_that_differ(&device->driver, &what, replays);
    for (int i = 0; i < OPERANDS; i++)
        buffer_destroy(&b.operands[i]);
    ptxgen_marlin_destroy(kernel);
    return different;
}

int main(int argc, char **argv)
{
    struct device device;
    unsigned replays = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 100, all = 0;
    ptxgen_error err;
    must_do(device_open(argc > 1 ? argv[1] : "gpu", &device, &err), "the device", &err);
    const struct shape *shapes = device.emulated ? cpu_shapes : gpu_shapes;
    size_t count = device.emulated ? sizeof cpu_shapes / sizeof *cpu_shapes
                                   : sizeof gpu_shapes / sizeof *gpu_shapes;
    for (size_t i = 0; i < count; i++) {
        unsigned different = run(&device, &shapes[i], replays);
        printf("K=%u N=%u M=%u: %u replays on each of %d streams, %u with other bits\n",
               shapes[i].spec.k, shapes[i].spec.n, shapes[i].m, replays, REPLAY_STREAMS, different);
        fflush(stdout);
        all += different;
    }
    device_close(&device);
    return all ? 1 : 0;
}
