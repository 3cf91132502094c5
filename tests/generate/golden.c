/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ptxgen_tensor *find(const struct golden *g, const char *prompt, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", prompt, what);
    return ptxgen_tensor_list_find(ptxgen_files_tensors(g->files), name);
}

static ptxgen_status read_prompt(const struct golden *g, struct prompt *p, ptxgen_error *err)
{
    const ptxgen_tensor *prompt = find(g, p->name, "prompt"), *greedy = find(g, p->name, "greedy");
    const ptxgen_tensor *logits = find(g, p->name, "logits_f64");
    const ptxgen_tensor *ids = find(g, p->name, "logit_ids");
    if (!greedy || !logits || logits->ndim != 2 || logits->shape[0] != greedy->shape[0])
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s has no tokens with logits", p->name);
    p->ids = prompt->data;
    p->length = (uint32_t)prompt->shape[0];
    p->greedy = greedy->data;
    p->steps = (uint32_t)greedy->shape[0];
    p->logits = logits->data;
    p->logit_count = (uint32_t)logits->shape[1];
    p->logit_ids = ids ? ids->data : NULL;
    return PTXGEN_OK;
}

ptxgen_status golden_open(const char *path, struct golden *g, ptxgen_error *err)
{
    memset(g, 0, sizeof *g);
    ptxgen_status status = ptxgen_files_open(path, &g->files, err);
    for (size_t i = 0; !status && i < ptxgen_files_tensors(g->files)->count; i++) {
        const char *name = ptxgen_files_tensors(g->files)->items[i].name;
        const char *dot = strstr(name, ".prompt");
        if (!dot || (size_t)(dot - name) >= sizeof g->prompts->name || g->count == MOST_PROMPTS)
            continue;
        struct prompt *p = &g->prompts[g->count++];
        memcpy(p->name, name, (size_t)(dot - name));
        status = read_prompt(g, p, err);
    }
    if (!status && g->count == 0)
        status = ptxgen_fail(err, PTXGEN_ERROR_MALFORMED, "%s has no prompts", path);
    return status;
}

void golden_close(struct golden *g)
{
    ptxgen_files_close(g->files);
}

double golden_limit(uint8_t type)
{
    return type == PTXGEN_F32 ? 0.06 : type == PTXGEN_F16 ? 0.1 : 0.6;
}

/* A NaN is as far off as can be. */
static void compare(struct prompt *p, uint32_t step, const float *logits, uint32_t vocabulary)
{
    const float *right = p->logits + (size_t)step * p->logit_count;
    for (uint32_t i = 0; i < p->logit_count; i++) {
        uint32_t id = p->logit_ids ? (uint32_t)p->logit_ids[i] : i;
        double off = fabs((double)logits[id] - (double)right[i]);
        if (off <= p->largest)
            continue;
        p->largest = off == off ? off : INFINITY;
        p->step = step;
    }
    uint32_t best = 0;
    for (uint32_t i = 1; i < vocabulary; i++)
        if (logits[i] > logits[best])
            best = i;
    p->equal += best == (uint32_t)p->greedy[step];
    p->seen++;
}

static ptxgen_status compare_step(struct golden *g, const struct forward *f,
                                  const struct device *device, uint32_t step, float *logits,
                                  uint32_t vocabulary, ptxgen_error *err)
{
    ptxgen_status status = forward_logits(f, logits, err);
    if (!status)
        status = device_wait(device, err);
    for (uint32_t i = 0; i < g->count && !status; i++)
        if (step < g->prompts[i].steps)
            compare(&g->prompts[i], step, logits + (size_t)i * vocabulary, vocabulary);
    return status;
}

/* The tokens that follow; a sequence whose tokens have ended goes on with the last. */
static ptxgen_status give_tokens(struct golden *g, struct forward *f, uint32_t step,
                                 ptxgen_error *err)
{
    int32_t ids[MOST_PROMPTS];
    for (uint32_t i = 0; i < g->count; i++) {
        const struct prompt *p = &g->prompts[i];
        ids[i] = p->greedy[step < p->steps ? step : p->steps - 1];
    }
    ptxgen_status status = forward_set(f, ids, err);
    return status ? status : forward_step(f, false, err);
}

ptxgen_status golden_run(struct golden *g, const struct device *device, const struct model *model,
                         const struct forward_options *options, uint32_t steps, ptxgen_error *err)
{
    struct forward_options o = *options;
    struct forward *f = NULL;
    uint32_t most = 0;
    o.batch = g->count;
    for (uint32_t i = 0; i < g->count; i++) {
        struct prompt *p = &g->prompts[i];
        p->largest = p->step = p->equal = p->seen = 0;
        most = p->steps > most ? p->steps : most;
        o.context = p->length + most > o.context ? p->length + most : o.context;
    }
    steps = steps < most ? steps : most;
    ptxgen_status status = forward_create(device, model, &o, &f, err);
    float *logits = malloc((size_t)g->count * model->vocabulary * sizeof *logits);
    if (!status && !logits)
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for logits");
    for (uint32_t i = 0; i < g->count && !status; i++)
        status = forward_prompt(f, i, g->prompts[i].ids, g->prompts[i].length, err);
    for (uint32_t step = 0; step < steps && !status; step++) {
        if (step)
            status = give_tokens(g, f, step - 1, err);
        if (!status)
            status = compare_step(g, f, device, step, logits, model->vocabulary, err);
    }
    free(logits);
    forward_destroy(f);
    return status;
}

bool golden_passed(const struct golden *g, uint8_t type)
{
    for (uint32_t i = 0; i < g->count; i++) {
        const struct prompt *p = &g->prompts[i];
        if (p->seen == 0 || p->equal != p->seen || !(p->largest <= golden_limit(type)))
            return false;
    }
    return true;
}
