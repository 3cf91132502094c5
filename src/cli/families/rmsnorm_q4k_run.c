/* SPDX-License-Identifier: Apache-2.0 */
/* run rmsnorm_q4k: on the options' problem, or on one drawn at random. */
#include "rmsnorm_q4k.h"

static ptxgen_status make_random(struct rmsnorm_q4k_problem *p,
                                 const struct rmsnorm_q4k_options *options,
                                 const struct run_request *request, struct device *device,
                                 ptxgen_error *err)
{
    const struct rmsnorm_q4k_layout packed = {0};
    ptxgen_status status =
        rmsnorm_q4k_allocate(p, &options->spec, request->m, &packed, device, err);
    if (status == PTXGEN_OK) {
        struct random r = random_start(request->seed);
        rmsnorm_q4k_fill(p, &r);
    }
    return status;
}

ptxgen_status rmsnorm_q4k_run(const void *options, const struct run_request *request,
                              struct device *device, struct check *check, ptxgen_error *err)
{
    const struct rmsnorm_q4k_options *o = options;
    struct rmsnorm_q4k_problem p;
    ptxgen_status status = o->gguf ? rmsnorm_q4k_read(&p, o, request, device, err)
                                   : make_random(&p, o, request, device, err);
    if (status != PTXGEN_OK)
        return status;
    status = rmsnorm_q4k_check(&p, device, check, err);
    rmsnorm_q4k_release(&p);
    return status;
}

/* ---- a random problem ---- */

/* Most are small, some large; often just beside a multiple of the tile. */
static uint32_t random_rows(struct random *r, bool small, bool deep)
{
    uint32_t most = random_below(r, 4) || small ? 200 : 6000;
    return 1 + random_below(r, deep ? RANDOM_DEEP_FEATURES : most);
}

static uint32_t random_k(struct random *r, bool small)
{
    uint32_t most = random_below(r, 4) || small ? 8 : 64;
    return 256 * (1 + random_below(r, most));
}

static ptxgen_rmsnorm_q4k_spec random_spec(struct random *r, bool small)
{
    static const float epsilons[] = {1e-12f, 1e-8f, 1e-6f, 1e-5f, 1e-3f, 0.25f};
    uint32_t usual = random_k(r, small), deep = random_deep_k(r, 256);
    ptxgen_rmsnorm_q4k_spec s = {.k = deep ? deep : usual};
    s.epsilon = epsilons[random_below(r, sizeof epsilons / sizeof *epsilons)];
    s.x_type = (uint8_t)random_below(r, 3);
    s.y_type = (uint8_t)random_below(r, 3);
    s.bias = (uint8_t)random_below(r, 2);
    s.residual = (uint8_t)random_below(r, 2);
    s.residual_out = s.residual && random_below(r, 2);
    s.max_m = random_below(r, 9);
    uint32_t shape = random_below(r, 4);
    s.n[0] = random_rows(r, small, deep);
    if (shape == 0) {
        s.epilogue = PTXGEN_EPILOGUE_SWIGLU;
        s.n[1] = s.n[0];
    } else
        for (uint32_t i = 1; i < shape; i++)
            s.n[i] = random_rows(r, small, deep);
    return s;
}

/* Views as they come: rows with a gap after them, starts at +1 element and more. */
static struct rmsnorm_q4k_layout random_layout(struct random *r, const ptxgen_rmsnorm_q4k_spec *s)
{
    struct rmsnorm_q4k_layout l = {0};
    size_t x_size = ptxgen_element_size((ptxgen_element)s->x_type);
    size_t y_size = ptxgen_element_size((ptxgen_element)s->y_type);
    if (random_below(r, 2) == 0)
        return l;
    l.x_gap = random_below(r, 40);
    l.residual_gap = random_below(r, 40);
    l.residual_out_gap = random_below(r, 40);
    for (int i = 0; i < MATRICES; i++)
        l.y_gap[i] = random_below(r, 40);
    if (random_below(r, 2) == 0)
        return l;
    l.x_offset = x_size * random_below(r, 8);
    l.residual_offset = x_size * random_below(r, 8);
    l.residual_out_offset = x_size * random_below(r, 8);
    l.gamma_offset = 4 * random_below(r, 4);
    l.y_offset = y_size * random_below(r, 8);
    return l;
}

ptxgen_status rmsnorm_q4k_run_random(uint64_t seed, struct device *device, struct check *check,
                                     ptxgen_error *err)
{
    struct random r = random_start(seed);
    ptxgen_rmsnorm_q4k_spec spec = random_spec(&r, device->emulated);
    uint32_t most = spec.max_m ? spec.max_m : PTXGEN_RMSNORM_Q4K_MAX_M;
    struct rmsnorm_q4k_layout layout = random_layout(&r, &spec);
    uint32_t m = random_below(&r, most + 1);
    struct rmsnorm_q4k_problem p;
    rmsnorm_q4k_name(&spec, m, check->problem, sizeof check->problem);
    ptxgen_status status = rmsnorm_q4k_allocate(&p, &spec, m, &layout, device, err);
    if (status != PTXGEN_OK)
        return status;
    rmsnorm_q4k_fill(&p, &r);
    if (random_below(&r, 4) == 0)
        rmsnorm_q4k_disturb(&p, &r);
    status = rmsnorm_q4k_check(&p, device, check, err);
    rmsnorm_q4k_release(&p);
    return status;
}
