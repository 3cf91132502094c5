/* SPDX-License-Identifier: Apache-2.0 */
#include "launch_check.h"

#include <stdlib.h>
#include <string.h>

static bool has_workspace(const struct launch_check *c)
{
    return c->workspace && c->workspace->base;
}

/* Prepares the outputs, launches and fetches them; the time of one launch in seconds. */
static ptxgen_status launch(const struct launch_check *c, struct device *d, int times,
                            double *seconds, ptxgen_error *err)
{
    for (size_t i = 0; i < c->output_count; i++)
        if (c->outputs[i]->base)
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
        bytes += c->outputs[i]->base ? c->outputs[i]->bytes : 0;
    return bytes;
}

static void keep(const struct launch_check *c, unsigned char *bytes)
{
    for (size_t i = 0; i < c->output_count; i++)
        if (c->outputs[i]->base) {
            memcpy(bytes, c->outputs[i]->host, c->outputs[i]->bytes);
            bytes += c->outputs[i]->bytes;
        }
}

static void check_same(const struct launch_check *c, const unsigned char *bytes, bool overlap,
                       struct check *check)
{
    for (size_t i = 0; i < c->output_count; i++)
        if (c->outputs[i]->base) {
            if (memcmp(bytes, c->outputs[i]->host, c->outputs[i]->bytes))
                check_fail(check,
                           "the last of more%s launches gave other bits in %s than the first",
                           overlap ? " overlapping" : "", c->outputs[i]->name);
            bytes += c->outputs[i]->bytes;
        }
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
        check_same(c, first, overlap, check);
    check->microseconds = times > 1 ? seconds * 1e6 : 0;
    return status;
}

static ptxgen_status repeat(const struct launch_check *c, struct device *d, struct check *check,
                            ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    unsigned char *first = malloc(bytes_of(c) + 1);
    if (!first)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                           "no memory to keep %zu bytes of outputs", bytes_of(c));
    keep(c, first);
    if (c->overlap && d->facts.compute_capability >= 90)
        status = repeat_as(c, d, true, first, check, err);
    if (status == PTXGEN_OK) /* last, since its time is kept */
        status = repeat_as(c, d, false, first, check, err);
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
        if (status == PTXGEN_OK && !d->emulated)
            status = buffer_finding(repeat(c, d, check, err), err, check);
    }
    return status;
}
