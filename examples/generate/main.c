/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate: a whole model from a GGUF file, on a GPU or the emulator. Token ids or text in, the
 * same out.
 *
 *     generate model.gguf --ids 2,651,506 --count 24
 *     generate model.gguf --text "The capital of France is" --count 24 --type bf16
 *
 * Where to read on: model.c has metadata and weights, forward.c the launches of a layer, rope.c,
 * attention.c and greedy.c kernels that are written with the builder.
 */
#include "options.h"
#include "sample.h"
#include "tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct program {
    struct options options;
    struct device device;
    struct model model;
    struct tokenizer *tokenizer; /* NULL: the file has no vocabulary */
    struct forward *forward;
    struct sampler sampler;
    ptxgen_cu_event events[2]; /* after the tokens of even steps, and of odd ones */
    int32_t *tokens;           /* [count, batch], pinned */
    float *logits;             /* [batch, vocabulary], where the host needs them */
    FILE *logits_file;
    bool *has_ended; /* by sequence */
    uint32_t steps;  /* that have been done */
    double open_seconds, prompt_seconds, step_seconds;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_emulated(const struct program *p)
{
    return !p->device.driver.library;
}

static bool is_greedy(const struct program *p)
{
    return !(p->options.temperature > 0);
}

static void show_prompt(void *user, uint32_t done, uint32_t count)
{
    (void)user;
    fprintf(stderr, "generate: %u of %u tokens of the prompt\n", done, count);
}

/* ---- setting up ---- */

/* The ids of sequences that were given as text. */
static ptxgen_status read_texts(struct program *p, ptxgen_error *err)
{
    ptxgen_status status = tokenizer_open(p->model.gguf, &p->tokenizer, err);
    if (status == PTXGEN_ERROR_NOT_FOUND && !p->options.has_text)
        return PTXGEN_OK;
    for (uint32_t i = 0; i < p->options.prompt_count && !status; i++) {
        struct prompt *prompt = &p->options.prompts[i];
        if (prompt->text)
            status = tokenizer_ids(p->tokenizer, prompt->text, &prompt->ids, &prompt->count, err);
    }
    return status;
}

static const struct prompt *prompt_of(const struct program *p, uint32_t sequence)
{
    uint32_t last = p->options.prompt_count - 1;
    return &p->options.prompts[sequence < last ? sequence : last];
}

static ptxgen_status open_forward(struct program *p, ptxgen_error *err)
{
    const struct options *o = &p->options;
    struct forward_options f = {.type = o->type,
                                .cache_type = o->cache_type,
                                .stream_type = o->stream_type,
                                .batch = o->batch};
    for (uint32_t i = 0; i < o->prompt_count; i++)
        if (o->prompts[i].count > f.longest_prompt)
            f.longest_prompt = o->prompts[i].count;
    f.context = f.longest_prompt + o->count;
    if (f.context > p->model.context)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "prompt and answer are %u tokens; the model was made for %u", f.context,
                           p->model.context);
    if (is_emulated(p))
        f.progress = show_prompt;
    return forward_create(&p->device, &p->model, &f, &p->forward, err);
}

static ptxgen_status allocate(struct program *p, ptxgen_error *err)
{
    const struct options *o = &p->options;
    const uint32_t n = p->model.vocabulary;
    void *pinned = NULL;
    ptxgen_status status = device_check(
        &p->device,
        p->device.driver.mem_host_alloc(&pinned, (size_t)o->count * o->batch * sizeof(int32_t), 0),
        "memory for tokens", err);
    for (int i = 0; i < 2 && !status; i++)
        status = device_check(
            &p->device,
            p->device.driver.event_create(&p->events[i], PTXGEN_CU_EVENT_DISABLE_TIMING),
            "an event", err);
    p->tokens = pinned;
    p->has_ended = calloc(o->batch, sizeof *p->has_ended);
    p->logits = malloc((size_t)o->batch * n * sizeof *p->logits);
    p->sampler = (struct sampler){.temperature = o->temperature,
                                  .top_p = o->top_p,
                                  .state = o->seed,
                                  .candidates = malloc(n * sizeof(struct candidate))};
    if (!status && (!p->has_ended || !p->logits || !p->sampler.candidates))
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for logits");
    if (!status && o->logits) {
        p->logits_file = fopen(o->logits, "wb");
        if (!p->logits_file)
            status = ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s cannot be written", o->logits);
    }
    return status;
}

static ptxgen_status open_all(struct program *p, ptxgen_error *err)
{
    double begin = now();
    ptxgen_status status = device_open(p->options.device, &p->device, err);
    if (!status)
        status = model_open(&p->device, p->options.model, &p->model, err);
    if (!status)
        status = read_texts(p, err);
    if (!status)
        status = open_forward(p, err);
    p->open_seconds = now() - begin;
    return status ? status : allocate(p, err);
}

static void close_all(struct program *p)
{
    forward_destroy(p->forward);
    tokenizer_close(p->tokenizer);
    model_close(&p->model);
    if (p->tokens)
        p->device.driver.mem_free_host(p->tokens);
    for (int i = 0; i < 2; i++)
        if (p->events[i])
            p->device.driver.event_destroy(p->events[i]);
    device_close(&p->device);
    if (p->logits_file)
        fclose(p->logits_file);
    free(p->sampler.candidates);
    free(p->logits);
    free(p->has_ended);
    options_free(&p->options);
}

/* ---- tokens ---- */

/* What the host does with the logits of a step, if anything, before the next tokens are chosen. */
static ptxgen_status take_logits(struct program *p, ptxgen_error *err)
{
    const uint32_t n = p->model.vocabulary, batch = p->options.batch;
    if (is_greedy(p) && !p->logits_file)
        return PTXGEN_OK;
    ptxgen_status status = forward_logits(p->forward, p->logits, err);
    if (!status)
        status = device_wait(&p->device, err);
    if (!status && p->logits_file &&
        fwrite(p->logits, sizeof *p->logits, (size_t)batch * n, p->logits_file) !=
            (size_t)batch * n)
        status = ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s cannot be written", p->options.logits);
    return status;
}

/* Chooses the tokens of step `step`; those of a step with a graph have been chosen by it. */
static ptxgen_status choose(struct program *p, uint32_t step, ptxgen_error *err)
{
    int32_t *ids = p->tokens + (size_t)step * p->options.batch;
    ptxgen_status status = PTXGEN_OK;
    if (!is_greedy(p)) {
        for (uint32_t i = 0; i < p->options.batch; i++)
            ids[i] = sample(&p->sampler, p->logits + (size_t)i * p->model.vocabulary,
                            p->model.vocabulary);
        return forward_set(p->forward, ids, err);
    }
    if (step == 0)
        status = forward_choose(p->forward, err);
    return status ? status : forward_tokens(p->forward, ids, err);
}

/* Shows the tokens of a step, which are waited for; true when all sequences have ended. */
static bool show_step(struct program *p, uint32_t step)
{
    bool all = true;
    char text[256];
    for (uint32_t i = 0; i < p->options.batch; i++) {
        int32_t id = p->tokens[(size_t)step * p->options.batch + i];
        if (p->tokenizer && tokenizer_ends(p->tokenizer, id))
            p->has_ended[i] = true;
        all = all && p->has_ended[i];
        if (p->options.has_text && p->options.batch == 1 && !p->has_ended[i]) {
            tokenizer_text(p->tokenizer, id, text, sizeof text);
            fputs(text, stdout);
            fflush(stdout);
        }
    }
    if (is_emulated(p))
        fprintf(stderr, "generate: token %u of %u\n", step + 1, p->options.count);
    return all && !p->options.time;
}

static ptxgen_status wait_step(struct program *p, uint32_t step, ptxgen_error *err)
{
    return device_check(&p->device, p->device.driver.event_synchronize(p->events[step % 2]),
                        "a step", err);
}

static ptxgen_status read_prompts(struct program *p, ptxgen_error *err)
{
    double begin = now();
    ptxgen_status status = PTXGEN_OK;
    for (uint32_t i = 0; i < p->options.batch && !status; i++)
        status = forward_prompt(p->forward, i, prompt_of(p, i)->ids, prompt_of(p, i)->count, err);
    if (!status)
        status = device_wait(&p->device, err);
    p->prompt_seconds = now() - begin;
    return status;
}

/* The next step is enqueued before the tokens of one are looked at, so that the device has work. */
static ptxgen_status generate(struct program *p, ptxgen_error *err)
{
    const uint32_t count = p->options.count;
    double begin = now();
    bool is_done = false;
    ptxgen_status status = read_prompts(p, err);
    if (!status && p->options.time) /* once more, now that everything has run before */
        status = read_prompts(p, err);
    for (uint32_t step = 0; step < count && !status && !is_done; step++) {
        status = take_logits(p, err);
        if (!status)
            status = choose(p, step, err);
        if (!status)
            status = device_check(
                &p->device, p->device.driver.event_record(p->events[step % 2], p->device.stream),
                "a step", err);
        if (!status && step + 1 < count)
            status = forward_step(p->forward, is_greedy(p), err);
        if (!status)
            status = wait_step(p, step, err);
        if (step == 1) /* the first step has made its graph */
            begin = now();
        p->step_seconds = now() - begin;
        p->steps = step + 1;
        is_done = !status && show_step(p, step);
    }
    return status;
}

/* ---- what came out ---- */

static void print_sequences(const struct program *p)
{
    char text[256];
    if (p->options.has_text && p->options.batch == 1) {
        putchar('\n');
        return;
    }
    for (uint32_t i = 0; i < p->options.batch; i++) {
        for (uint32_t step = 0; step < p->steps; step++) {
            int32_t id = p->tokens[(size_t)step * p->options.batch + i];
            if (p->options.has_text) {
                tokenizer_text(p->tokenizer, id, text, sizeof text);
                fputs(text, stdout);
            } else {
                printf("%s%d", step ? "," : "", id);
            }
            if (p->tokenizer && tokenizer_ends(p->tokenizer, id))
                break;
        }
        putchar('\n');
    }
}

static void print_times(const struct program *p)
{
    double prompt = 0;
    for (uint32_t i = 0; i < p->options.batch; i++)
        prompt += prompt_of(p, i)->count;
    fprintf(
        stderr,
        "%s: %.2f GB of weights, all open in %.2f s; prompt of %.0f tokens: %.1f ms, %.0f tokens/s",
        p->device.facts.name, 1e-9 * (double)p->model.bytes, p->open_seconds, prompt,
        1e3 * p->prompt_seconds, prompt / p->prompt_seconds);
    if (p->steps > 2)
        fprintf(stderr, "; %u steps of %u: %.3f ms each, %.0f tokens/s", p->steps - 2,
                p->options.batch, 1e3 * p->step_seconds / (p->steps - 2),
                p->options.batch * (p->steps - 2) / p->step_seconds);
    fputc('\n', stderr);
}

int main(int argc, char **argv)
{
    static struct program p;
    ptxgen_error err;
    ptxgen_status status = options_read(argc, argv, &p.options, &err);
    if (!status)
        status = open_all(&p, &err);
    if (!status)
        status = generate(&p, &err);
    if (!status)
        print_sequences(&p);
    if (!status && p.options.time)
        print_times(&p);
    if (!status && p.logits_file && fflush(p.logits_file))
        status = ptxgen_fail(&err, PTXGEN_ERROR_FILE, "%s cannot be written", p.options.logits);
    if (status)
        fprintf(stderr, "generate: %s\n", err.message);
    close_all(&p);
    return status ? 1 : 0;
}
