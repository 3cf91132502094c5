/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a new spec: plan, text, machine code, loaded entries; each step timed. */
#include "src/runtime/cache_store.h"
#include "src/runtime/dump.h"
#include "src/runtime/pack.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Where a kernel is in the disk cache. */
struct place {
    struct origin origin;
    struct keyed_text question;
    bool has_question; /* otherwise only the text leads there */
    struct keyed_text head;
    struct digest tried; /* a key that led to nothing */
};

/* One compilation under way. */
struct job {
    const ptxgen_dispatcher *dispatcher;
    const void *spec;
    ptxgen_loaded *loaded;
    bool tuned;         /* the plan is */
    ptx_module *module; /* NULL until there is an emission */
    const char *text;
    char *edited; /* the text, when it is not the emitted one */
    struct memo_answer answer;
    struct place *place; /* NULL: the disk cache has none for it */
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

static ptxgen_status plan(struct job *job, ptxgen_error *err)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    ptxgen_loaded *loaded = job->loaded;
    ptxgen_status status = ptxgen_tuned_plan(d->tuning, loaded->family, job->spec, &d->target,
                                             loaded->plan, &job->tuned, err);
    if (status == PTXGEN_OK)
        status = loaded_check(loaded, err);
    lap(job, &loaded->report.emit_ns);
    return status;
}

static ptxgen_status emit(struct job *job, ptxgen_error *err)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    ptxgen_load_report *report = &job->loaded->report;
    job->module = ptx_module_create(&d->target.ptx, NULL);
    if (!job->module)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "%s: no memory to emit",
                           job->loaded->family->name);
    if (d->cache)
        ptx_module_defer_checks(job->module);
    ptxgen_status status =
        loaded_emit(job->loaded, job->module, &job->text, &report->text_bytes, err);
    if (status == PTXGEN_OK)
        status = entry_points_of(job->module, &job->answer.entries, err);
    if (job->edited)
        job->text = job->edited;
    lap(job, &report->emit_ns);
    return status;
}

static void look_for_override(struct job *job)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    if (d->override_folder)
        job->edited = override_text(d, job->loaded->family, job->spec);
    if (job->edited)
        job->loaded->report.origin = PTXGEN_ORIGIN_OVERRIDE;
}

static ptxgen_status load(struct job *job, ptxgen_error *err)
{
    const ptxgen_module_options options = {.context = job->dispatcher->context};
    ptxgen_loaded *loaded = job->loaded;
    loaded->report.cubin_bytes = job->cubin.size;
    ptxgen_status status = ptxgen_module_load_cubin(
        loaded->driver, job->cubin.bytes, job->cubin.size, &options, &loaded->module, err);
    if (status == PTXGEN_OK)
        status = loaded_fetch(loaded, &job->answer.entries, err);
    lap(job, &loaded->report.load_ns);
    return status;
}

/* ---- packs ---- */

/* With the plan that the code was emitted from, which no driver's version has limited. */
static ptxgen_status load_packed(struct job *job, const struct pack_code *found, ptxgen_error *err)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    const ptxgen_module_options options = {.context = d->context};
    ptxgen_loaded *loaded = job->loaded;
    ptxgen_target target = d->target;
    target.ptx.max_ptx = 0;
    ptxgen_status status = loaded->family->make_plan(job->spec, &target, loaded->plan, err);
    if (status == PTXGEN_OK)
        status = loaded_check(loaded, err);
    lap(job, &loaded->report.emit_ns);
    if (status == PTXGEN_OK && found->cubin_sm)
        status = ptxgen_module_load_cubin(d->driver, found->code, found->bytes, &options,
                                          &loaded->module, err);
    else if (status == PTXGEN_OK)
        status = ptxgen_module_load_ptx(d->driver, found->code, &options, &loaded->module, err);
    lap(job, found->cubin_sm ? &loaded->report.load_ns : &loaded->report.compile_ns);
    if (status == PTXGEN_OK)
        status = loaded_fetch(loaded, &found->entries, err);
    lap(job, &loaded->report.load_ns);
    *(found->cubin_sm ? &loaded->report.cubin_bytes : &loaded->report.text_bytes) = found->bytes;
    return status;
}

static bool load_from(struct job *job, const ptxgen_pack *pack, const struct digest *key)
{
    struct pack_code found;
    const char *why;
    ptxgen_error err = {0};
    bool is_there = pack_find(pack, key, &found, &why);
    lap(job, &job->loaded->report.lookup_ns);
    bool is_loaded = is_there && load_packed(job, &found, &err) == PTXGEN_OK;
    if (is_there)
        entry_points_free(&found.entries);
    if (is_there && !is_loaded) {
        why = err.message;
        loaded_drop(job->loaded);
        job->loaded->report = (ptxgen_load_report){0};
    }
    if (why)
        dispatcher_log(job->dispatcher, "a kernel of %s in a pack is not used: %s",
                       job->loaded->family->name, why);
    return is_loaded;
}

static bool load_by_pack(struct job *job)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    bool is_loaded = false;
    struct keyed_text *subject = d->pack_count ? calloc(1, sizeof *subject) : NULL;
    if (subject && pack_subject_make(job->loaded->family, job->spec, &d->target, subject, NULL) ==
                       PTXGEN_OK)
        for (size_t i = 0; !is_loaded && i < d->pack_count; i++)
            is_loaded = load_from(job, d->packs[i], &subject->key);
    free(subject);
    if (is_loaded) {
        job->loaded->report.origin = PTXGEN_ORIGIN_PACK;
        loaded_is_not_kept(job->loaded, "its code is in a pack");
    }
    return is_loaded;
}

/* ---- the disk ---- */

static void ask(struct job *job)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    const ptxgen_family *family = job->loaded->family;
    ptxgen_tuned_range ranges[PTXGEN_TUNED_RANGES];
    size_t count =
        job->tuned ? ptxgen_tuning_find(d->tuning, family, job->spec, &d->target, ranges) : 0;
    struct place *place = job->place;
    place->has_question =
        memo_question_make(family, &place->origin, ranges, count, &place->question);
}

/* Neither code of an edited text nor what has no place is kept. */
static void find_place(struct job *job)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    struct place *place = d->cache && !job->edited ? calloc(1, sizeof *place) : NULL;
    if (place &&
        origin_make(job->loaded->family, job->spec, &d->target, &d->assembler, &place->origin)) {
        job->place = place;
        ask(job);
        return;
    }
    loaded_is_not_kept(job->loaded, !d->cache     ? d->no_cache
                                    : job->edited ? "code of an edited text is not kept"
                                    : place       ? "its spec is too long for a key"
                                                  : "there is no memory for its key");
    free(place);
}

static void log_unused(const struct job *job, const char *key, const char *suffix, const char *why)
{
    if (why)
        dispatcher_log(job->dispatcher, "%s/%s%s is not used: %s",
                       ptxgen_cache_folder(job->dispatcher->cache), key, suffix, why);
}

static void find_key(struct job *job)
{
    manifest_head_make(&job->place->origin, &job->answer.ptx, &job->place->head);
}

/* Loads the entry of the key, unless that led to nothing before. */
static bool load_entry(struct job *job)
{
    struct place *place = job->place;
    const char *why = NULL;
    ptxgen_error err = {0};
    bool tried = strcmp(place->tried.hex, place->head.key.hex) == 0;
    bool found = !tried && cache_load(job->dispatcher->cache, &place->head, &job->cubin, &why);
    lap(job, &job->loaded->report.lookup_ns);
    if (found && load(job, &err) == PTXGEN_OK) {
        job->loaded->report.origin = PTXGEN_ORIGIN_DISK;
        job->loaded->report.text_bytes = job->answer.ptx.bytes;
        return true;
    }
    if (found) {
        why = err.message;
        loaded_drop(job->loaded);
        ptxgen_cubin_free(&job->cubin);
    }
    log_unused(job, place->head.key.hex, "", why);
    place->tried = place->head.key;
    return false;
}

/* Without an emission. */
static bool load_by_memo(struct job *job)
{
    const struct place *place = job->place;
    const char *why;
    if (!place->has_question)
        return false;
    if (cache_recall(job->dispatcher->cache, &place->question, &job->answer, &why)) {
        find_key(job);
        if (load_entry(job))
            return true;
        entry_points_free(&job->answer.entries);
    } else {
        log_unused(job, place->question.key.hex, MEMO_SUFFIX, why);
    }
    return false;
}

static void publish(struct job *job)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    const struct place *place = job->place;
    ptxgen_error err;
    char *memo = place->has_question
                     ? memo_make(place->question.text, place->question.length, &job->answer)
                     : NULL;
    bool is_new = job->loaded->report.origin != PTXGEN_ORIGIN_DISK;
    const struct publication publication = {.head = &place->head,
                                            .cubin = is_new ? &job->cubin : NULL,
                                            .question = &place->question,
                                            .memo = memo};
    if ((is_new || memo) && cache_publish(d->cache, &publication, &err) != PTXGEN_OK) {
        dispatcher_log(d, "a kernel%s is not kept on disk: %s", is_new ? "" : "'s memo",
                       err.message);
        if (is_new)
            loaded_is_not_kept(job->loaded, err.message);
    }
    free(memo);
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

static ptxgen_status compile_text(struct job *job, ptxgen_error *err)
{
    const ptxgen_dispatcher *d = job->dispatcher;
    if (d->dump_folder)
        job->log = calloc(1, DUMP_LOG_SIZE);
    ptxgen_status status = ptx_module_check(job->module, err); /* what is on disk passed it */
    lap(job, &job->loaded->report.emit_ns);
    if (status == PTXGEN_OK)
        status = assemble(job, err);
    if (status == PTXGEN_OK)
        status = load(job, err);
    if (status == PTXGEN_OK && job->place)
        publish(job);
    if (d->dump_folder)
        dump(job);
    return status;
}

/*
 * Finds the code in a pack, or by a memo, or else by the text, whose memo is then kept, or else
 * assembles it.
 */
static ptxgen_status run(struct job *job, ptxgen_error *err)
{
    bool reads_disk = !job->dispatcher->dump_folder;
    look_for_override(job);
    if (!job->edited && load_by_pack(job))
        return PTXGEN_OK;
    ptxgen_status status = plan(job, err);
    if (status != PTXGEN_OK)
        return status;
    find_place(job);
    if (job->place && reads_disk && load_by_memo(job))
        return PTXGEN_OK;
    status = emit(job, err);
    if (status != PTXGEN_OK)
        return status;
    if (job->place) {
        job->answer.ptx = (struct ptx_digest){digest_of(job->text, job->loaded->report.text_bytes),
                                              job->loaded->report.text_bytes};
        find_key(job);
    }
    if (job->place && reads_disk && load_entry(job)) {
        publish(job);
        return PTXGEN_OK;
    }
    return compile_text(job, err);
}

ptxgen_status compile(const ptxgen_dispatcher *d, const ptxgen_family *family, const void *spec,
                      ptxgen_loaded **loaded, ptxgen_error *err)
{
    struct job job = {.dispatcher = d, .spec = spec, .since = now_ns()};
    job.loaded = loaded_new(d->driver, family);
    ptxgen_status status = job.loaded ? run(&job, err)
                                      : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                                                    "%s: no memory to compile", family->name);
    entry_points_free(&job.answer.entries);
    ptx_module_destroy(job.module);
    ptxgen_cubin_free(&job.cubin);
    free(job.place);
    free(job.edited);
    free(job.log);
    if (status == PTXGEN_OK)
        *loaded = job.loaded;
    else
        loaded_free(job.loaded);
    return status;
}
