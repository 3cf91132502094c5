/* SPDX-License-Identifier: Apache-2.0 */
#include "launch_check.h"

#include "launch_ahead.h"

#include <stdlib.h>
#include <string.h>

static bool has_workspace(const struct launch_check *c)
{
    return c->workspace && c->workspace->base && c->workspace->bytes;
}

/* Prepares the outputs, launches and fetches them; the time of one launch in seconds. */
static ptxgen_status launch(const struct launch_check *c, struct device *d, int times,
                            double *seconds, ptxgen_error *err)
{
    for (size_t i = 0; i < c->output_count; i++)
        memset(c->outputs[i]->host, BUFFER_POISON, c->outputs[i]->bytes);
    if (c->prepare)
        c->prepare(c->problem);
    ptxgen_status status = buffers_each(c->outputs, c->output_count, buffer_upload, err);
    if (status == PTXGEN_OK)
        status = time_launches(d, c->launch, c->launching, times, seconds, err);
    if (status == PTXGEN_OK && has_workspace(c))
        status = buffer_download(c->workspace, err);
    return status == PTXGEN_OK ? buffers_each(c->outputs, c->output_count, buffer_download, err)
                               : status;
}

/* ---- more launches ---- */

static size_t bytes_of(const struct launch_check *c)
{
    size_t bytes = 0;
    for (size_t i = 0; i < c->output_count; i++)
        bytes += c->outputs[i]->bytes;
    return bytes;
}

static void keep(const struct launch_check *c, unsigned char *bytes)
{
    for (size_t i = 0; i < c->output_count; bytes += c->outputs[i++]->bytes)
        memcpy(bytes, c->outputs[i]->host, c->outputs[i]->bytes);
}

/* `which` launch should have given the bytes of the first. */
static void check_same(const struct launch_check *c, const unsigned char *bytes, const char *which,
                       struct check *check)
{
    for (size_t i = 0; i < c->output_count; bytes += c->outputs[i++]->bytes)
        if (memcmp(bytes, c->outputs[i]->host, c->outputs[i]->bytes))
            check_fail(check, "%s gave other bits in %s than the first", which,
                       c->outputs[i]->name);
}

static ptxgen_status repeat_as(const struct launch_check *c, struct device *d, bool overlap,
                               const unsigned char *first, struct check *check, ptxgen_error *err)
{
    int times = c->in_place ? 1 : 10;
    double seconds = 0;
    if (c->overlap)
        *c->overlap = overlap;
    ptxgen_status status = launch(c, d, times, &seconds, err);
    if (status == PTXGEN_OK)
        check_same(c, first,
                   overlap ? "the last of more overlapping launches" : "the last of more launches",
                   check);
    check->microseconds = times > 1 ? seconds * 1e6 : 0;
    return status;
}

static ptxgen_status repeat(const struct launch_check *c, struct device *d,
                            const unsigned char *first, struct check *check, ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    if (c->overlap && d->facts.compute_capability >= 90)
        status = repeat_as(c, d, true, first, check, err);
    if (status == PTXGEN_OK) /* last, since its time is kept */
        status = repeat_as(c, d, false, first, check, err);
    return status;
}

/* ---- behind a kernel that writes the activations ---- */

struct behind {
    const struct launch_check *check;
    struct probe ahead;
};

static ptxgen_status launch_behind(void *state, uint32_t copy, ptxgen_error *err)
{
    const struct behind *b = state;
    ptxgen_status status = launch_ahead(&b->ahead, b->check->activations, err);
    return status == PTXGEN_OK ? b->check->launch(b->check->launching, copy, err) : status;
}

static ptxgen_status check_overlap(const struct launch_check *c, struct device *d,
                                   const unsigned char *first, struct check *check,
                                   ptxgen_error *err)
{
    double seconds;
    struct behind behind = {.check = c};
    struct launch_check other = *c;
    other.launch = launch_behind;
    other.launching = &behind;
    ptxgen_status status = launch_ahead_load(&behind.ahead, d, err);
    *c->overlap = 1;
    if (status == PTXGEN_OK)
        status = launch(&other, d, 1, &seconds, err);
    if (status == PTXGEN_OK)
        check_same(c, first, "a launch that may overlap what writes its activations", check);
    *c->overlap = 0;
    probe_free(&behind.ahead);
    return status;
}

/* ---- state between launches ---- */

/* The workspace is back on the host; `which` launch was the last into it. */
static void check_flags(const struct launch_check *c, const char *which, struct check *check)
{
    if (!has_workspace(c))
        return;
    for (size_t i = 0; i < c->flags; i++) {
        uint32_t flag;
        memcpy(&flag, c->workspace->host + i * sizeof flag, sizeof flag);
        if (flag) {
            check_fail(check, "%s left flag %zu of %u in the workspace at 0x%x, not 0", which, i,
                       c->flags, flag);
            return;
        }
    }
}

/* Halves and negates: other sums of another size, as finite as before. */
static void change_activations(const struct launch_check *c)
{
    struct buffer *x = c->activations;
    int type = c->activation_type;
    for (size_t i = 0; i < x->bytes / typed_bytes(type); i++)
        typed_store(type, x->host, i, -typed_load(type, x->host, i) / 2);
}

static ptxgen_status launch_into(const struct launch_check *c, struct device *d, const char *which,
                                 struct check *check, ptxgen_error *err)
{
    double seconds;
    ptxgen_status status = buffer_upload(c->activations, err);
    if (status == PTXGEN_OK)
        status = launch(c, d, 1, &seconds, err);
    if (status == PTXGEN_OK)
        check_flags(c, which, check);
    return status;
}

/* `first` and `activations` are the first launch's, of which the last must give the bits. */
static ptxgen_status launch_others(const struct launch_check *c, struct device *d,
                                   const unsigned char *first, const unsigned char *activations,
                                   struct check *check, ptxgen_error *err)
{
    change_activations(c);
    ptxgen_status status =
        launch_into(c, d, "a second launch, with other activations,", check, err);
    memcpy(c->activations->host, activations, c->activations->bytes);
    if (status == PTXGEN_OK)
        status = launch_into(c, d, "a third launch into one workspace", check, err);
    if (status == PTXGEN_OK)
        check_same(c, first, "a third launch into one workspace", check);
    return status;
}

static ptxgen_status check_state(const struct launch_check *c, struct device *d,
                                 const unsigned char *first, struct check *check, ptxgen_error *err)
{
    size_t bytes = c->activations->bytes;
    unsigned char *activations = malloc(bytes);
    if (!activations)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                           "no memory to keep %zu bytes of activations", bytes);
    memcpy(activations, c->activations->host, bytes);
    check_flags(c, "the first launch", check);
    ptxgen_status status = launch_others(c, d, first, activations, check, err);
    free(activations);
    return status;
}

/* All launches but the first, of which the outputs are on the host. */
static ptxgen_status launch_more(const struct launch_check *c, struct device *d,
                                 struct check *check, ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    unsigned char *first = malloc(bytes_of(c) + 1);
    if (!first)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                           "no memory to keep %zu bytes of outputs", bytes_of(c));
    keep(c, first);
    if (has_workspace(c))
        status = check_state(c, d, first, check, err);
    if (status == PTXGEN_OK && !d->emulated)
        status = repeat(c, d, first, check, err);
    if (status == PTXGEN_OK && d->emulated && c->overlap && d->facts.compute_capability >= 90)
        status = check_overlap(c, d, first, check, err);
    free(first);
    return status;
}

/* ---- the whole ---- */

ptxgen_status launch_check(const struct launch_check *c, struct device *d, struct check *check,
                           ptxgen_error *err)
{
    double seconds;
    ptxgen_status status = buffers_each(c->inputs, c->input_count, buffer_upload, err);
    if (status == PTXGEN_OK && has_workspace(c))
        status = buffer_upload(c->workspace, err);
    if (status == PTXGEN_OK)
        status = buffer_finding(launch(c, d, 1, &seconds, err), err, check);
    if (status == PTXGEN_OK && check_passed(check))
        status =
            buffer_finding(buffers_each(c->inputs, c->input_count, buffer_verify, err), err, check);
    if (status == PTXGEN_OK && check_passed(check) && c->has_rows) {
        status = c->compare(c->problem, check, err);
        if (status == PTXGEN_OK)
            check_tally(check);
        if (status == PTXGEN_OK && !check->once)
            status = buffer_finding(launch_more(c, d, check, err), err, check);
    }
    return status;
}
