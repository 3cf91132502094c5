/* SPDX-License-Identifier: Apache-2.0 */
/* run marlin: on the options' problem, or on one drawn at random. */
#include "marlin.h"

static ptxgen_status make_random(struct marlin_problem *p, const struct marlin_options *options,
                                 const struct run_request *request, struct device *device,
                                 ptxgen_error *err)
{
    const struct marlin_layout packed = {0};
    struct random r = random_start(request->seed);
    struct marlin_weights weights;
    ptxgen_target target = ptxgen_device_target(&device->facts);
    ptxgen_marlin_plan plan; /* refuses what it refuses before anything is made */
    ptxgen_status status = marlin_make_plan(options, request->m, &target, &plan, err);
    if (status != PTXGEN_OK)
        return status;
    status = marlin_random_weights(&options->spec, PTXGEN_W4_PACK_QUANTIZED, &r, &weights, err);
    if (status == PTXGEN_OK)
        status = marlin_allocate(p, options, request->m, &packed, &weights, device, err);
    if (status == PTXGEN_OK)
        marlin_fill(p, &r);
    marlin_release_weights(&weights);
    return status;
}

ptxgen_status marlin_run(const void *options, const struct run_request *request,
                         struct device *device, struct check *check, ptxgen_error *err)
{
    const struct marlin_options *o = options;
    struct marlin_problem p;
    ptxgen_status status = o->safetensors ? marlin_read(&p, o, request, device, err)
                                          : make_random(&p, o, request, device, err);
    if (status != PTXGEN_OK)
        return status;
    status = marlin_check(&p, device, check, err);
    marlin_release(&p);
    return status;
}

/* ---- a random problem ---- */

/*
 * Group sizes and K: powers of two, odd multiples of 16, and a single group. `most` limits K·N·M
 * to what the reference takes.
 */
static void random_shape(struct random *r, bool small, ptxgen_marlin_spec *s)
{
    static const int32_t groups[] = {16, 32, 48, 64, 80, 96, 128, 192, 256, PTXGEN_W4_PER_CHANNEL};
    uint32_t most = small ? 512 : random_below(r, 3) ? 2048 : 8192;
    s->group_size = groups[random_below(r, sizeof groups / sizeof *groups)];
    uint32_t unit = s->group_size > 0 ? (uint32_t)s->group_size : 16;
    uint32_t deep = random_deep_k(r, unit);
    s->k = deep ? deep : unit * (1 + random_below(r, most / unit));
    if (s->group_size > 0 && random_below(r, 8) == 0)
        s->group_size = (int32_t)s->k;
    s->n = 8 * (1 + random_below(r, (small ? 256 : most) / 8));
    if (deep)
        s->n = 8 * (1 + random_below(r, RANDOM_DEEP_FEATURES / 8));
    if (random_below(r, 3) == 0)
        s->n = (s->n + 63) / 64 * 64;
}

static ptxgen_marlin_spec random_spec(struct random *r, bool small)
{
    ptxgen_marlin_spec s = {.type = random_below(r, 2) ? PTXGEN_BF16 : PTXGEN_F16};
    random_shape(r, small, &s);
    s.zeros = (uint8_t)random_below(r, 2);
    s.act_order = random_below(r, 4) == 0;
    s.bias = (uint8_t)random_below(r, 2);
    s.residual = (uint8_t)random_below(r, 2);
    if (random_below(r, 4) == 0)
        s.epilogue = PTXGEN_EPILOGUE_SWIGLU;
    else
        s.activation = (uint8_t)random_below(r, 4);
    return s;
}

/* Of a size that the reference does in a second. */
static uint32_t random_m(struct random *r, bool small, const ptxgen_marlin_spec *s)
{
    uint64_t products = (uint64_t)s->k * s->n * marlin_matrices(s);
    uint64_t most = (small ? 1u << 21 : 1u << 31) / products;
    return random_launch_rows(r, small, most);
}

/* Views as they come: rows with a gap after them, starts at +2 bytes and more, y over the residual.
 */
static struct marlin_layout random_layout(struct random *r, const ptxgen_marlin_spec *s)
{
    struct marlin_layout l = {.in_place = s->residual && random_below(r, 3) == 0};
    if (random_below(r, 2) == 0)
        return l;
    l.x_gap = random_gap(r, 8);
    l.residual_gap = random_below(r, 40);
    l.y_gap = random_gap(r, 8);
    if (random_below(r, 2) == 0)
        return l;
    l.x_offset = 2 * random_below(r, 8);
    l.residual_offset = 2 * random_below(r, 8);
    l.y_offset = 2 * random_below(r, 8);
    l.bias_offset = 2 * random_below(r, 8);
    return l;
}

static ptxgen_w4_format random_format(struct random *r, const ptxgen_marlin_spec *s)
{
    for (;;) {
        ptxgen_w4_format format = (ptxgen_w4_format)random_below(r, PTXGEN_W4_MARLIN + 1);
        if (marlin_format_holds(format, s))
            return format;
    }
}

ptxgen_status marlin_run_random(uint64_t seed, struct device *device, struct check *check,
                                ptxgen_error *err)
{
    struct random r = random_start(seed);
    struct marlin_options options = {.spec = random_spec(&r, device->emulated)};
    uint32_t m = random_m(&r, device->emulated, &options.spec);
    if (random_below(&r, 4) == 0)
        options.spec.max_m = m + random_below(&r, 3);
    struct marlin_layout layout = random_layout(&r, &options.spec);
    struct marlin_weights weights;
    struct marlin_problem p;
    marlin_name(&options.spec, m, check->problem, sizeof check->problem);
    ptxgen_status status =
        marlin_random_weights(&options.spec, random_format(&r, &options.spec), &r, &weights, err);
    if (status == PTXGEN_OK)
        status = marlin_allocate(&p, &options, m, &layout, &weights, device, err);
    marlin_release_weights(&weights);
    if (status != PTXGEN_OK)
        return status;
    marlin_fill(&p, &r);
    if (random_below(&r, 4) == 0)
        marlin_disturb(&p, &r);
    status = marlin_check(&p, device, check, err);
    marlin_release(&p);
    return status;
}
