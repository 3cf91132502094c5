/* SPDX-License-Identifier: Apache-2.0 */
/* run dense: on random data of the options' spec, or of one drawn at random. */
#include "dense.h"

ptxgen_status dense_run(const void *options, const struct run_request *request,
                        struct device *device, struct check *check, ptxgen_error *err)
{
    const struct dense_layout packed = {0};
    struct random r = random_start(request->seed);
    struct dense_problem p;
    ptxgen_status status = dense_allocate(&p, options, request->m, &packed, device, err);
    if (status != PTXGEN_OK)
        return status;
    dense_fill(&p, &r);
    status = dense_check(&p, device, check, err);
    dense_release(&p);
    return status;
}

/* ---- a random problem ---- */

static ptxgen_dense_spec random_spec(struct random *r, bool small)
{
    uint32_t most = small ? 400 : random_below(r, 3) ? 2048 : 8192;
    ptxgen_dense_spec s = {.type = (uint8_t)random_below(r, 3)};
    s.k = 1 + random_below(r, 2 * most);
    if (random_below(r, 3))
        s.k = (s.k + 7) / 8 * 8;
    s.n = 1 + random_below(r, small ? 300 : most);
    if (random_below(r, 3) == 0)
        s.n = (s.n + 63) / 64 * 64;
    uint32_t deep = random_deep_k(r, random_below(r, 2) ? 64 : 1);
    if (deep) {
        s.k = deep;
        s.n = 1 + random_below(r, RANDOM_DEEP_FEATURES);
    }
    s.activation = (uint8_t)random_below(r, PTXGEN_ACTIVATION_RELU + 1);
    s.bias = (uint8_t)random_below(r, 2);
    s.residual = (uint8_t)random_below(r, 2);
    return s;
}

/* Of a size that the reference does in a second. */
static uint32_t random_m(struct random *r, bool small, const ptxgen_dense_spec *s)
{
    uint64_t most = (small ? 1u << 20 : 1u << 31) / ((uint64_t)s->k * s->n);
    return random_launch_rows(r, small, most);
}

/* Views as they come: rows with a gap after them, starts at +1 element and more, Y over the
 * residual. */
static struct dense_layout random_layout(struct random *r, const ptxgen_dense_spec *s)
{
    struct dense_layout l = {.in_place = s->residual && random_below(r, 3) == 0};
    if (random_below(r, 2) == 0)
        return l;
    l.x_gap = random_gap(r, 16);
    l.w_gap = random_gap(r, 16);
    l.residual_gap = random_below(r, 40);
    l.y_gap = random_gap(r, 8);
    if (random_below(r, 2) == 0)
        return l;
    l.x_offset = random_below(r, 8);
    l.w_offset = random_below(r, 8);
    l.residual_offset = random_below(r, 8);
    l.y_offset = random_below(r, 8);
    l.bias_offset = random_below(r, 8);
    return l;
}

ptxgen_status dense_run_random(uint64_t seed, struct device *device, struct check *check,
                               ptxgen_error *err)
{
    struct random r = random_start(seed);
    struct dense_options options = {.spec = random_spec(&r, device->emulated)};
    uint32_t m = random_m(&r, device->emulated, &options.spec);
    if (random_below(&r, 4) == 0)
        options.spec.max_m = m + 1 + random_below(&r, 3);
    struct dense_layout layout = random_layout(&r, &options.spec);
    struct dense_problem p;
    dense_name(&options.spec, m, check->problem, sizeof check->problem);
    ptxgen_status status = dense_allocate(&p, &options, m, &layout, device, err);
    if (status != PTXGEN_OK)
        return status;
    dense_fill(&p, &r);
    if (random_below(&r, 4) == 0)
        dense_disturb(&p, &r);
    status = dense_check(&p, device, check, err);
    dense_release(&p);
    return status;
}
