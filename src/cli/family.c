/* SPDX-License-Identifier: Apache-2.0 */
#include "family.h"

#include "family_file.h"

#include "../harness/bench.h"

#include <stdlib.h>

static struct kernel_request request_of(const struct family_options *o)
{
    return (struct kernel_request){.spec = o->spec,
                                   .tile = o->tile_given ? &o->tile : NULL,
                                   .tuning = o->tuning,
                                   .prologue = o->prologue};
}

/* ---- what the options lack ---- */

/* M against a limit that the options give. */
static ptxgen_status check_m(const struct family_options *o, uint32_t m, unsigned rule,
                             ptxgen_error *err)
{
    const struct option_row *row = option_with(o->family, rule);
    uint32_t limit = row ? *option_number(o, row) : 0;
    bool most = rule == OPTION_MOST_M;
    if (!limit || (most ? m <= limit : m >= limit))
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s: M = %u is %s --%s %u",
                       o->family->name, m, most ? "above" : "below", row->name, limit);
}

/* Kernels of any m where that is 0. */
static ptxgen_status check(const struct family_options *o, uint32_t m, ptxgen_error *err)
{
    const struct option_row *k = option_with(o->family, OPTION_IS_K);
    const struct option_row *n = option_with(o->family, OPTION_IS_N);
    if (!*option_number(o, k) && !n)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s needs --%s", o->family->name,
                           k->name);
    if (n && (!*option_number(o, k) || !*option_number(o, n)))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s needs --%s and --%s",
                           o->family->name, k < n ? k->name : n->name, k < n ? n->name : k->name);
    ptxgen_status status = m ? check_m(o, m, OPTION_MOST_M, err) : PTXGEN_OK;
    return status == PTXGEN_OK && m ? check_m(o, m, OPTION_LEAST_M, err) : status;
}

/* ---- verbs ---- */

ptxgen_status family_emit(const struct family_options *o, const ptxgen_target *target, uint32_t m,
                          ptx_module *module, ptxgen_error *err)
{
    const struct harness *h = o->family->harness;
    const struct kernel_request request = request_of(o);
    void *plan = NULL;
    ptxgen_status status = check(o, m, err);
    if (status == PTXGEN_OK)
        status = harness_new_plan(h, &request, m, target, &plan, NULL, err);
    if (status == PTXGEN_OK)
        status = h->family()->emit(plan, module, err);
    free(plan);
    return status;
}

ptxgen_status family_describe(const struct family_options *o, const ptxgen_target *target,
                              uint32_t m, struct work *work, ptxgen_error *err)
{
    const struct kernel_request request = request_of(o);
    ptxgen_status status = check(o, m, err);
    return status == PTXGEN_OK
               ? harness_describe(o->family->harness, &request, m, target, work, err)
               : status;
}

static ptxgen_status make_random(const struct family_options *o, const struct run_request *request,
                                 struct device *device, struct problem *p, ptxgen_error *err)
{
    struct random r = random_start(request->seed);
    ptxgen_status status = family_allocate(o, request->m, device, p, err);
    if (status == PTXGEN_OK)
        status = problem_fill(p, &r, err);
    return status;
}

ptxgen_status family_allocate(const struct family_options *o, uint32_t m, struct device *device,
                              struct problem *p, ptxgen_error *err)
{
    const struct kernel_request request = request_of(o);
    ptxgen_status status = check(o, m, err);
    return status == PTXGEN_OK
               ? problem_allocate(p, o->family->harness, &request, m, NULL, device, err)
               : status;
}

ptxgen_status family_run(const struct family_options *o, const struct run_request *request,
                         struct device *device, struct check *check, ptxgen_error *err)
{
    struct problem p = {.harness = o->family->harness};
    ptxgen_status status = o->names.file ? family_read(o, request, device, &p, err)
                                         : make_random(o, request, device, &p, err);
    if (status == PTXGEN_OK)
        status = problem_check(&p, device, check, err);
    problem_release(&p);
    return status;
}

void family_set_shape(struct family_options *o, uint32_t k, uint32_t n)
{
    if (o->family->set_shape) {
        o->family->set_shape(o, k, n);
        return;
    }
    const struct option_row *features = option_with(o->family, OPTION_IS_N);
    *option_number(o, option_with(o->family, OPTION_IS_K)) = k;
    if (features)
        *option_number(o, features) = n;
    if (o->family->finish)
        o->family->finish(o);
}

ptxgen_status family_bench(const struct family_options *o, uint32_t m, struct device *device,
                           struct bench_subject *subject, ptxgen_error *err)
{
    const struct kernel_request request = request_of(o);
    ptxgen_status status = check(o, m, err);
    return status == PTXGEN_OK
               ? bench_prepare(o->family->harness, &request, m, device, subject, err)
               : status;
}
