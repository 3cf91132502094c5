/* SPDX-License-Identifier: Apache-2.0 */
/* run w8a8: on the options' problem, or on one drawn at random. */
#include "w8a8.h"

static ptxgen_status make_random(struct w8a8_problem *p, const struct w8a8_options *options,
                                 const struct run_request *request, struct device *device,
                                 ptxgen_error *err)
{
    const struct w8a8_layout packed = {0};
    ptxgen_status status = w8a8_allocate(p, options, request->m, &packed, device, err);
    if (status == PTXGEN_OK) {
        struct random r = random_start(request->seed);
        w8a8_fill(p, &r);
    }
    return status;
}

ptxgen_status w8a8_run(const void *options, const struct run_request *request,
                       struct device *device, struct check *check, ptxgen_error *err)
{
    const struct w8a8_options *o = options;
    struct w8a8_problem p;
    ptxgen_status status = o->safetensors ? w8a8_read(&p, o, request, device, err)
                                          : make_random(&p, o, request, device, err);
    if (status != PTXGEN_OK)
        return status;
    status = w8a8_check(&p, device, check, err);
    w8a8_release(&p);
    return status;
}

/* ---- a random problem ---- */

/* Rows of W that start at multiples of 16, 8, 4 or 1 bytes, padded now and then. */
static void random_shape(struct random *r, bool small, ptxgen_w8a8_spec *s)
{
    static const uint32_t units[] = {128, 16, 8, 4, 1};
    uint32_t most = small ? 600 : random_below(r, 3) ? 4096 : 30000;
    uint32_t unit = units[random_below(r, 5)];
    s->k = unit * (1 + random_below(r, most / unit));
    s->n = 1 + random_below(r, small ? 300 : most);
    if (random_below(r, 3) == 0)
        s->n = (s->n + 63) / 64 * 64;
    uint32_t deep = random_deep_k(r, unit);
    if (deep) {
        s->k = deep;
        s->n = 1 + random_below(r, RANDOM_DEEP_FEATURES);
    }
    if (random_below(r, 4) == 0)
        s->w_stride = s->k + random_below(r, 40);
    else if (random_below(r, 4) == 0)
        s->w_stride = ptxgen_w8a8_stride(s->k);
}

static ptxgen_w8a8_spec random_spec(struct random *r, bool small)
{
    static const int16_t ranges[][2] = {{0, 0},  {-127, 127}, {-128, 127},
                                        {-7, 7}, {-64, 127},  {0, 127}};
    const int16_t *range = ranges[random_below(r, sizeof ranges / sizeof *ranges)];
    ptxgen_w8a8_spec s = {.q_min = range[0], .q_max = range[1]};
    random_shape(r, small, &s);
    s.x_type = (uint8_t)random_below(r, 4);
    s.y_type = (uint8_t)random_below(r, 4);
    s.scales = random_below(r, 2) ? PTXGEN_W8A8_DYNAMIC : (uint8_t)random_below(r, 3);
    s.asymmetric = (uint8_t)random_below(r, 2);
    s.bias = (uint8_t)random_below(r, 2);
    return s;
}

/* Often at the edges of tiles, and of a size that the reference does in a second. */
static uint32_t random_m(struct random *r, bool small, const ptxgen_w8a8_spec *s)
{
    static const uint32_t edges[] = {0,  1,  2,  7,   8,   9,   16,  17,   32,  33,
                                     64, 65, 96, 128, 129, 256, 257, 1025, 4097};
    uint64_t most = (small ? 1u << 21 : 1u << 31) / ((uint64_t)s->k * s->n);
    uint32_t m = random_below(r, 2) ? edges[random_below(r, sizeof edges / sizeof *edges)]
                                    : random_below(r, small ? 150 : 4098);
    return m <= most ? m : (uint32_t)most;
}

/* Views as they come: rows with a gap after them, starts at +1 element and more. */
static struct w8a8_layout random_layout(struct random *r)
{
    struct w8a8_layout l = {0};
    if (random_below(r, 2) == 0)
        return l;
    l.x_gap = random_gap(r, 8);
    l.y_gap = random_gap(r, 8);
    if (random_below(r, 2) == 0)
        return l;
    l.x_offset = random_below(r, 8);
    l.y_offset = random_below(r, 8);
    l.scale_offset = random_below(r, 4);
    l.w_offset = random_below(r, 8);
    return l;
}

/* Only the variants that serve m, as a program does that knows its M. */
static void limit_tokens(struct random *r, uint32_t m, ptxgen_w8a8_spec *s)
{
    if (random_below(r, 2)) {
        s->max_m = m + 1 + random_below(r, 3);
        s->min_m = m - random_below(r, m + 1);
    }
}

ptxgen_status w8a8_run_random(uint64_t seed, struct device *device, struct check *check,
                              ptxgen_error *err)
{
    struct random r = random_start(seed);
    struct w8a8_options options = {.spec = random_spec(&r, device->emulated)};
    uint32_t m = random_m(&r, device->emulated, &options.spec);
    struct w8a8_layout layout = random_layout(&r);
    struct w8a8_problem p;
    limit_tokens(&r, m, &options.spec);
    w8a8_name(&options.spec, m, check->problem, sizeof check->problem);
    ptxgen_status status = w8a8_allocate(&p, &options, m, &layout, device, err);
    if (status != PTXGEN_OK)
        return status;
    bool exact = options.spec.scales && options.spec.y_type == PTXGEN_F64;
    if (exact)
        w8a8_fill_exact(&p, &r);
    else
        w8a8_fill(&p, &r);
    if (random_below(&r, 4) == 0)
        w8a8_disturb(&p, &r);
    status = w8a8_check(&p, device, check, err);
    w8a8_release(&p);
    return status;
}
