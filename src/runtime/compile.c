/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a new spec: plan, text, machine code, loaded entries; each step timed. */
#include "src/runtime/cache_store.h"
#include "src/runtime/dump.h"

#include <stdlib.h>
#include <time.h>

/* One compilation under way. */
struct job {
    const ptxgen_dispatcher *dispatcher;
    const void *spec;
    ptxgen_loaded *loaded;
    ptx_module *module;
    const char *text;
    char *edited; /* the text, when it is not the emitted one */
    struct manifest_head head;
    bool has_head; /* the disk cache has a place for it */
    ptxgen_cubin cubin;
    char *log; /* of the assembler, when dumping */
    uint64_t since;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Adds the time since the last lap. */
static void lap(struct job *job, uint64_t *part)
{
    uint64_t now = now_ns();
    *part += now - job->since;
    job->since = now;
}

static ptxgen_status emit(struct job *job, ptxgen_error *err)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    ptxgen_loaded *loaded = job->loaded;
    ptxgen_load_report *report = &loaded->report;
    ptxgen_status status = ptxgen_tuned_plan(d->tuning, loaded->family, job->spec, &d->target,
                                             loaded->plan, NULL, err);
    if (status == PTXGEN_OK)
        status = loaded_emit(loaded, job->module, &job->text, &report->text_bytes, err);
    lap(job, &report->emit_ns);
    return status;
}

static void look_for_override(struct job *job)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    if (d->override_folder)
        job->edited = override_text(d, job->loaded->family, job->spec);
    if (job->edited) {
        job->text = job->edited;
        job->loaded->report.origin = PTXGEN_ORIGIN_OVERRIDE;
    }
}

static ptxgen_status load(struct job *job, ptxgen_error *err)
{
    const ptxgen_module_options options = {.context = job->dispatcher->context};
    ptxgen_loaded *loaded = job->loaded;
    loaded->report.cubin_bytes = job->cubin.size;
    ptxgen_status status = ptxgen_module_load_cubin(
        loaded->driver, job->cubin.bytes, job->cubin.size, &options, &loaded->module, err);
    if (status == PTXGEN_OK)
        status = loaded_fetch(loaded, job->module, err);
    lap(job, &loaded->report.load_ns);
    return status;
}

/* ---- the disk ---- */

static bool load_from_disk(struct job *job)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    const char *why;
    ptxgen_error err = {0};
    struct origin origin = {.driver = d->driver,
                            .device = d->device,
                            .family = job->loaded->family,
                            .spec = job->spec,
                            .target = &d->target,
                            .max_registers = d->max_registers,
                            .line_info = d->line_info,
                            .text = job->text,
                            .text_bytes = job->loaded->report.text_bytes};
    job->has_head = manifest_head_make(&origin, &job->head);
    bool found =
        job->has_head && !d->dump_folder && cache_load(d->cache, &job->head, &job->cubin, &why);
    lap(job, &job->loaded->report.lookup_ns);
    if (found && load(job, &err) == PTXGEN_OK) {
        job->loaded->report.origin = PTXGEN_ORIGIN_DISK;
        return true;
    }
    if (found) {
        why = err.message;
        loaded_drop(job->loaded);
        ptxgen_cubin_free(&job->cubin);
    }
    if (job->has_head && !d->dump_folder && why)
        dispatcher_log(d, "%s/%s is not used: %s", ptxgen_cache_folder(d->cache), job->head.key.hex,
                       why);
    return false;
}

static void publish(struct job *job)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    ptxgen_error err;
    if (job->has_head && cache_publish(d->cache, &job->head, &job->cubin, &err) != PTXGEN_OK)
        dispatcher_log(d, "a kernel is not kept on disk: %s", err.message);
    lap(job, &job->loaded->report.publish_ns);
}

/* ---- the assembler ---- */

static ptxgen_status assemble(struct job *job, ptxgen_error *err)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    const ptxgen_module_options options = {.context = d->context,
                                           .max_registers = d->max_registers,
                                           .line_info = d->line_info,
                                           .log = job->log,
                                           .log_size = job->log ? DUMP_LOG_SIZE : 0};
    ptxgen_status status = ptxgen_assemble(d->driver, job->text, &options, &job->cubin, err);
    lap(job, &job->loaded->report.compile_ns);
    return status;
}

/* Asking for the annotated text ends the plain one's life, so this comes last. */
static void dump(struct job *job)
{
    const char *text = job->edited;
    if (!text && ptx_module_text(job->module, PTX_TEXT_ANNOTATE, &text, NULL, NULL) != PTXGEN_OK)
        text = NULL;
    dump_kernel(job->dispatcher, job->loaded->family, job->spec, text, &job->cubin, job->log);
}

static ptxgen_status run(struct job *job, ptxgen_error *err)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    ptxgen_status status = emit(job, err);
    if (status != PTXGEN_OK)
        return status;
    look_for_override(job);
    if (d->cache && !job->edited && load_from_disk(job))
        return PTXGEN_OK;
    if (d->dump_folder)
        job->log = calloc(1, DUMP_LOG_SIZE);
    status = ptx_module_check(job->module, err); /* what is on disk passed before it was kept */
    lap(job, &job->loaded->report.emit_ns);
    if (status == PTXGEN_OK)
        status = assemble(job, err);
    if (status == PTXGEN_OK)
        status = load(job, err);
    if (status == PTXGEN_OK)
        publish(job);
    if (d->dump_folder)
        dump(job);
    return status;
}

ptxgen_status compile(const ptxgen_dispatcher *d, const ptxgen_family *family, const void *spec,
                      ptxgen_loaded **loaded, ptxgen_error *err)
{
    struct job job = {.dispatcher = d, .spec = spec, .since = now_ns()};
    job.loaded = loaded_new(d->driver, family);
    job.module = ptx_module_create(&d->target.ptx, NULL);
    if (job.module && d->cache)
        ptx_module_defer_checks(job.module);
    ptxgen_status status = job.loaded && job.module
                               ? run(&job, err)
                               : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                                             "%s: no memory to compile", family->name);
    ptx_module_destroy(job.module);
    ptxgen_cubin_free(&job.cubin);
    free(job.edited);
    free(job.log);
    if (status == PTXGEN_OK)
        *loaded = job.loaded;
    else
        loaded_free(job.loaded);
    return status;
}
