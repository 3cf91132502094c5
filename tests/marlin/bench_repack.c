/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speed of repacking into Marlin's layout and into the kernel's: bytes of packed weights, read and
 * written, by the clock and by the processor time of all threads, which a loaded machine disturbs
 * less.
 */
#include <ptxgen/marlin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { K = 8192, N = 8192, GROUP = 128, REPEATS = 5 };

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int allocate(ptxgen_w4_tensor *t, int byte)
{
    size_t bytes = ptxgen_w4_tensor_bytes(t);
    t->data = bytes ? malloc(bytes) : NULL;
    if (t->data)
        memset(t->data, byte, bytes);
    return !bytes || t->data;
}

static int prepare(const ptxgen_w4_info *info, ptxgen_w4_format format, ptxgen_w4_checkpoint *c)
{
    if (ptxgen_w4_layout(info, format, c, NULL) != PTXGEN_OK)
        return 0;
    c->shape.shape[0] = 0;                                /* weight_shape may be absent */
    int zero = format == PTXGEN_W4_GPTQ_V1 ? 0x77 : 0x88; /* 8 everywhere */
    if (!allocate(&c->weights, 0x5A) || !allocate(&c->scales, 0) || !allocate(&c->zeros, zero) ||
        !allocate(&c->g_idx, 0) || !allocate(&c->shape, 0))
        return 0;
    for (size_t k = 0; c->g_idx.data && k < info->k; k++) /* 77 is odd: a permutation of 2^13 */
        ((int32_t *)c->g_idx.data)[k] =
            (int32_t)((info->act_order ? k * 77 % info->k : k) / (size_t)info->group_size);
    return 1;
}

static void release(ptxgen_w4_checkpoint *c)
{
    free(c->weights.data);
    free(c->scales.data);
    free(c->zeros.data);
    free(c->g_idx.data);
    free(c->shape.data);
}

/* What a layout's packing needs: filled by the test, run by `pack`. */
struct packing {
    ptxgen_w4_checkpoint from, marlin;
    ptxgen_marlin_spec spec;
    ptxgen_marlin_packed packed;
    uint32_t *order;
};

static ptxgen_status to_marlin(struct packing *p, const ptxgen_w4_repack_options *options,
                               ptxgen_error *err)
{
    return ptxgen_w4_to_marlin(&p->from, &p->marlin, p->order, options, err);
}

static ptxgen_status to_kernel(struct packing *p, const ptxgen_w4_repack_options *options,
                               ptxgen_error *err)
{
    return ptxgen_marlin_pack(&p->spec, &p->from, NULL, &p->packed, options, err);
}

static const struct layout {
    const char *name;
    ptxgen_status (*pack)(struct packing *, const ptxgen_w4_repack_options *, ptxgen_error *);
} layouts[] = {{"marlin", to_marlin}, {"kernel", to_kernel}};

static int prepare_packing(struct packing *p, ptxgen_w4_format format, int act_order)
{
    ptxgen_w4_info info = {.k = K,
                           .n = N,
                           .groups = K / GROUP,
                           .group_size = GROUP,
                           .scale_type = PTXGEN_F16,
                           .symmetric = true,
                           .act_order = act_order};
    p->spec = (ptxgen_marlin_spec){
        .k = K, .n = N, .group_size = GROUP, .type = PTXGEN_F16, .act_order = (uint8_t)act_order};
    p->order = malloc(K * sizeof *p->order);
    if (!p->order || !prepare(&info, format, &p->from) ||
        !prepare(&info, PTXGEN_W4_MARLIN, &p->marlin) ||
        ptxgen_marlin_packed_layout(&p->spec, &p->packed, NULL) != PTXGEN_OK)
        return 0;
    p->packed.codes = calloc(p->packed.codes_bytes, 1);
    p->packed.scales = calloc(p->packed.scales_bytes, 1);
    p->packed.order = malloc(K * sizeof *p->packed.order);
    return p->packed.codes && p->packed.scales && p->packed.order;
}

static void release_packing(struct packing *p)
{
    release(&p->from);
    release(&p->marlin);
    free(p->order);
    free(p->packed.codes);
    free(p->packed.scales);
    free(p->packed.order);
}

static int measure(const struct layout *layout, ptxgen_w4_format format, int act_order,
                   unsigned threads)
{
    struct packing p = {.order = NULL};
    ptxgen_error err = {0};
    int ok = prepare_packing(&p, format, act_order);
    double best = 1e9, best_cpu = 1e9;
    for (int i = 0; ok && i < REPEATS; i++) {
        ptxgen_w4_repack_options options = {.threads = threads};
        double start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
        ok = layout->pack(&p, &options, &err) == PTXGEN_OK;
        start = now(CLOCK_MONOTONIC) - start;
        cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        best = start < best ? start : best;
        best_cpu = cpu < best_cpu ? cpu : best_cpu;
    }
    if (ok)
        printf("%-6s from %-14s %-9s %u threads: %6.2f GB/s, %6.2f GB per processor second\n",
               layout->name, ptxgen_w4_format_name(format), act_order ? "act-order" : "", threads,
               1e-9 * K * N / best, 1e-9 * K * N / best_cpu);
    else
        fprintf(stderr, "%s: %s\n", ptxgen_w4_format_name(format), err.message);
    release_packing(&p);
    return ok;
}

int main(void)
{
    for (unsigned threads = 1; threads <= 2; threads++)
        for (const struct layout *l = layouts; l < layouts + 2; l++)
            if (!measure(l, PTXGEN_W4_GPTQ_V1, 0, threads) ||
                !measure(l, PTXGEN_W4_GPTQ_V1, 1, threads) ||
                !measure(l, PTXGEN_W4_AWQ, 0, threads) ||
                !measure(l, PTXGEN_W4_PACK_QUANTIZED, 0, threads))
                return 1;
    return 0;
}
