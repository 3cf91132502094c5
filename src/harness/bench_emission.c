/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include "bench_time.h"
#include "progress.h"

#include <ptxgen/kernel.h>

enum { EMISSIONS = 11, LOADS = 3 };

struct emission {
    ptx_module *module; /* owns the text */
    const char *text;
    size_t length;
};

/* Emits into a new module, which the caller destroys. */
static ptxgen_status emit_once(const ptxgen_target *target, const ptxgen_family *family,
                               const void *plan, struct emission *e, double *seconds,
                               ptxgen_error *err)
{
    double started = now_seconds();
    e->module = ptx_module_create(&target->ptx, NULL);
    if (!e->module)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a module");
    ptxgen_status status = family->emit(plan, e->module, err);
    if (status == PTXGEN_OK)
        status = ptx_module_text(e->module, 0, &e->text, &e->length, err);
    *seconds = now_seconds() - started;
    return status;
}

static ptxgen_status time_loads(struct device *device, const char *text, double *seconds,
                                ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    double each[LOADS];
    for (int i = 0; status == PTXGEN_OK && i < LOADS; i++) {
        ptxgen_module *loaded = NULL;
        double started = now_seconds();
        status = ptxgen_module_load_ptx(&device->driver, text, NULL, &loaded, err);
        each[i] = now_seconds() - started;
        ptxgen_module_destroy(loaded);
    }
    if (status == PTXGEN_OK)
        *seconds = bench_median(each, LOADS);
    return status;
}

ptxgen_status bench_emission(struct device *device, const ptxgen_target *target,
                             const ptxgen_family *family, const void *plan,
                             struct bench_subject *subject, ptxgen_error *err)
{
    double seconds[EMISSIONS];
    struct emission e = {.module = NULL};
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; status == PTXGEN_OK && i < EMISSIONS; i++) {
        ptx_module_destroy(e.module);
        status = emit_once(target, family, plan, &e, &seconds[i], err);
    }
    subject->text_bytes = e.length;
    if (status == PTXGEN_OK) {
        subject->emit_seconds = bench_median(seconds, EMISSIONS);
        status = time_loads(device, e.text, &subject->jit_seconds, err);
    }
    ptx_module_destroy(e.module);
    return status;
}
