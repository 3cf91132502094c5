/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a new spec: plan, text, machine code, loaded entries; each step timed. */
#include "src/runtime/dispatcher.h"

#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Adds the time since *since to *part, and starts the next. */
static void lap(uint64_t *since, uint64_t *part)
{
    uint64_t now = now_ns();
    *part += now - *since;
    *since = now;
}

static ptxgen_status load(const ptxgen_dispatcher *d, ptxgen_loaded *loaded, ptx_module *module,
                          const void *spec, ptxgen_error *err)
{
    const ptxgen_module_options options = {
        .context = d->context, .max_registers = d->max_registers, .line_info = d->line_info};
    const char *text;
    ptxgen_cubin cubin = {0};
    ptxgen_load_report *report = &loaded->report;
    uint64_t since = now_ns();
    ptxgen_status status = loaded->family->make_plan(spec, &d->target, loaded->plan, err);
    if (status == PTXGEN_OK)
        status = loaded_emit(loaded, module, &text, &report->text_bytes, err);
    lap(&since, &report->emit_ns);
    if (status == PTXGEN_OK)
        status = ptxgen_assemble(d->driver, text, &options, &cubin, err);
    lap(&since, &report->compile_ns);
    if (status == PTXGEN_OK)
        status = ptxgen_module_load_cubin(d->driver, cubin.bytes, cubin.size, &options,
                                          &loaded->module, err);
    if (status == PTXGEN_OK)
        status = loaded_fetch(loaded, module, err);
    lap(&since, &report->load_ns);
    report->cubin_bytes = cubin.size;
    ptxgen_cubin_free(&cubin);
    return status;
}

ptxgen_status compile(const ptxgen_dispatcher *d, const ptxgen_family *family, const void *spec,
                      ptxgen_loaded **loaded, ptxgen_error *err)
{
    ptxgen_loaded *made = loaded_new(d->driver, family);
    ptx_module *module = ptx_module_create(&d->target.ptx, NULL);
    ptxgen_status status = made && module ? load(d, made, module, spec, err)
                                          : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                                                        "%s: no memory to compile", family->name);
    ptx_module_destroy(module);
    if (status == PTXGEN_OK)
        *loaded = made;
    else
        loaded_free(made);
    return status;
}
