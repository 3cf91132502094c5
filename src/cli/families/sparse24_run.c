/* SPDX-License-Identifier: Apache-2.0 */
/* run sparse24: on a file's weight, on the options' problem, or on one drawn at random. */
#include "sparse24.h"

static ptxgen_status make_random(struct sparse24_problem *p, const struct sparse24_options *options,
                                 const struct run_request *request, struct device *device,
                                 ptxgen_error *err)
{
    const struct sparse24_layout packed = {0};
    struct random r = random_start(request->seed);
    ptxgen_status status = sparse24_allocate(p, options, request->m, &packed, device, err);
    if (status == PTXGEN_OK && (status = sparse24_fill(p, &r, err)) != PTXGEN_OK)
        sparse24_release(p);
    return status;
}

ptxgen_status sparse24_run(const void *options, const struct run_request *request,
                           struct device *device, struct check *check, ptxgen_error *err)
{
    const struct sparse24_options *o = options;
    struct sparse24_problem p;
    ptxgen_status status = o->safetensors ? sparse24_read(&p, o, request, device, err)
                                          : make_random(&p, o, request, device, err);
    if (status != PTXGEN_OK)
        return status;
    status = sparse24_check(&p, device, check, err);
    sparse24_release(&p);
    return status;
}

/* ---- a random problem ---- */

static ptxgen_sparse24_spec random_spec(struct random *r, bool small)
{
    static const uint32_t sizes[] = {512, 1024, 2048, 8192};
    uint32_t most = small ? 600 : sizes[random_below(r, sizeof sizes / sizeof *sizes)];
    ptxgen_sparse24_spec s = {.type = (uint8_t)random_below(r, 4)};
    if (s.type != PTXGEN_SPARSE24_S8)
        s.tier = (uint8_t)random_below(r, s.type == PTXGEN_SPARSE24_F32 ? 2 : 3);
    s.y_type = s.type;
    if (s.type == PTXGEN_SPARSE24_S8)
        s.y_type = random_below(r, 2) ? PTXGEN_BF16 : PTXGEN_F16;
    s.k = 8 * (1 + random_below(r, 2 * most / 8));
    if (random_below(r, 3) == 0)
        s.k = (s.k + 127) / 128 * 128;
    s.n = 1 + random_below(r, small ? 300 : most);
    if (random_below(r, 3) == 0)
        s.n = (s.n + 63) / 64 * 64;
    uint32_t deep = random_deep_k(r, random_below(r, 2) ? 128 : 8);
    if (deep) {
        s.k = deep;
        s.n = 1 + random_below(r, RANDOM_DEEP_FEATURES);
    }
    s.activation = (uint8_t)random_below(r, PTXGEN_ACTIVATION_RELU + 1);
    s.bias = (uint8_t)random_below(r, 2);
    s.residual = (uint8_t)random_below(r, 2);
    return s;
}

/* Of a size that the reference does in a part of a second. */
static uint32_t random_m(struct random *r, bool small, const ptxgen_sparse24_spec *s)
{
    uint64_t most = (small ? 1u << 21 : 1u << 26) / ((uint64_t)s->k * s->n);
    return random_launch_rows(r, small, most);
}

/* Views as they come: rows with a gap after them, starts at +1 element and more, Y over the
 * residual. */
static struct sparse24_layout random_layout(struct random *r, const ptxgen_sparse24_spec *s)
{
    struct sparse24_layout l = {.in_place = s->residual && random_below(r, 3) == 0};
    if (random_below(r, 2) == 0)
        return l;
    l.x_gap = random_gap(r, 16);
    l.residual_gap = random_below(r, 40);
    l.y_gap = random_gap(r, 8);
    if (random_below(r, 2) == 0)
        return l;
    l.x_offset = random_below(r, 8);
    l.residual_offset = random_below(r, 8);
    l.y_offset = random_below(r, 8);
    l.bias_offset = random_below(r, 8);
    return l;
}

ptxgen_status sparse24_run_random(uint64_t seed, struct device *device, struct check *check,
                                  ptxgen_error *err)
{
    struct random r = random_start(seed);
    struct sparse24_options options = {.spec = random_spec(&r, device->emulated)};
    uint32_t m = random_m(&r, device->emulated, &options.spec);
    if (random_below(&r, 4) == 0)
        options.spec.max_m = m + 1 + random_below(&r, 3);
    struct sparse24_layout layout = random_layout(&r, &options.spec);
    struct sparse24_problem p;
    sparse24_name(&options.spec, m, check->problem, sizeof check->problem);
    ptxgen_status status = sparse24_allocate(&p, &options, m, &layout, device, err);
    if (status != PTXGEN_OK)
        return status;
    status = sparse24_fill(&p, &r, err);
    if (random_below(&r, 4) == 0)
        sparse24_disturb(&p, &r);
    if (status == PTXGEN_OK)
        status = sparse24_check(&p, device, check, err);
    sparse24_release(&p);
    return status;
}
