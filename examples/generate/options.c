/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "generate MODEL.gguf (--ids 2,651,… | --text TEXT) … [--count N] [--batch B] "
    "[--type f32|f16|bf16] [--cache f32|f16|bf16] [--stream f32|bf16] "
    "[--temperature T] [--top-p P] [--seed S] "
    "[--logits FILE] [--device auto|gpu|cpu|cpu:sm_90] [--time]";

static ptxgen_status read_number(const char *option, const char *text, uint32_t lowest,
                                 uint32_t highest, uint32_t *value, ptxgen_error *err)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || number < lowest || number > highest)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "--%s %s: a number from %u to %u is due", option, text, lowest, highest);
    *value = (uint32_t)number;
    return PTXGEN_OK;
}

static ptxgen_status read_fraction(const char *option, const char *text, float highest,
                                   float *value, ptxgen_error *err)
{
    char *end;
    float number = strtof(text, &end);
    if (end == text || *end || !(number >= 0 && number <= highest))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "--%s %s: a number from 0 to %g is due", option, text, (double)highest);
    *value = number;
    return PTXGEN_OK;
}

static ptxgen_status read_type(const char *option, const char *text, uint8_t *type,
                               ptxgen_error *err)
{
    static const char *const names[] = {"f32", "f16", "bf16"}; /* in ptxgen_element's order */
    for (uint8_t i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *type = i;
            return PTXGEN_OK;
        }
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "--%s %s: f32, f16 or bf16 is due",
                       option, text);
}

static ptxgen_status read_ids(const char *text, struct prompt *prompt, ptxgen_error *err)
{
    prompt->ids = calloc(strlen(text) + 1, sizeof *prompt->ids);
    if (!prompt->ids)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for ids");
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        long id = strtol(at, &end, 10);
        if (errno || end == at || (*end && *end != ',') || id < 0 || id > INT32_MAX)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "--ids %s: ids with commas between them are due", text);
        prompt->ids[prompt->count++] = (int32_t)id;
        if (!*end)
            return PTXGEN_OK;
        at = end;
    }
}

static ptxgen_status add_prompt(struct options *o, bool is_text, const char *argument,
                                ptxgen_error *err)
{
    if (o->prompt_count == MOST_PROMPTS)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "at most %d prompts are taken",
                           MOST_PROMPTS);
    struct prompt *prompt = &o->prompts[o->prompt_count++];
    o->has_text = o->has_text || is_text;
    if (!is_text)
        return read_ids(argument, prompt, err);
    prompt->text = argument;
    return PTXGEN_OK;
}

enum {
    IDS = 1,
    TEXT,
    COUNT,
    BATCH,
    TYPE,
    CACHE,
    STREAM,
    TEMPERATURE,
    TOP_P,
    SEED,
    LOGITS,
    DEVICE,
    TIME
};
static const struct option table[] = {
    {"ids", 1, NULL, IDS},       {"text", 1, NULL, TEXT},
    {"count", 1, NULL, COUNT},   {"batch", 1, NULL, BATCH},
    {"type", 1, NULL, TYPE},     {"cache", 1, NULL, CACHE},
    {"stream", 1, NULL, STREAM}, {"temperature", 1, NULL, TEMPERATURE},
    {"top-p", 1, NULL, TOP_P},   {"seed", 1, NULL, SEED},
    {"logits", 1, NULL, LOGITS}, {"device", 1, NULL, DEVICE},
    {"time", 0, NULL, TIME},     {NULL, 0, NULL, 0}};

static ptxgen_status read_option(struct options *o, int option, ptxgen_error *err)
{
    uint32_t seed = 0;
    ptxgen_status status = PTXGEN_OK;
    switch (option) {
    case IDS: return add_prompt(o, false, optarg, err);
    case TEXT: return add_prompt(o, true, optarg, err);
    case COUNT: return read_number("count", optarg, 1, 1 << 20, &o->count, err);
    case BATCH: return read_number("batch", optarg, 1, MOST_PROMPTS, &o->batch, err);
    case TYPE: return read_type("type", optarg, &o->type, err);
    case CACHE: return read_type("cache", optarg, &o->cache_type, err);
    case STREAM:
        status = read_type("stream", optarg, &o->stream_type, err);
        if (status || o->stream_type == PTXGEN_F16)
            status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                                 "--stream %s: f32 or bf16 is due", optarg);
        return status;
    case TEMPERATURE: return read_fraction("temperature", optarg, 100, &o->temperature, err);
    case TOP_P: return read_fraction("top-p", optarg, 1, &o->top_p, err);
    case SEED:
        status = read_number("seed", optarg, 0, UINT32_MAX, &seed, err);
        o->seed = seed;
        return status;
    case LOGITS: o->logits = optarg; return status;
    case DEVICE: o->device = optarg; return status;
    case TIME: o->time = true; return status;
    default: return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s", usage);
    }
}

ptxgen_status options_read(int argc, char **argv, struct options *o, ptxgen_error *err)
{
    enum { UNSET = 255 };
    memset(o, 0, sizeof *o);
    o->device = "auto";
    o->count = 24;
    o->type = PTXGEN_BF16;
    o->cache_type = o->stream_type = UNSET;
    o->top_p = 1;
    ptxgen_status status = PTXGEN_OK;
    int option;
    while (!status && (option = getopt_long(argc, argv, "", table, NULL)) != -1)
        status = read_option(o, option, err);
    if (!status && (argc - optind != 1 || o->prompt_count == 0))
        status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s", usage);
    if (status)
        return status;
    o->model = argv[optind];
    if (o->batch < o->prompt_count)
        o->batch = o->prompt_count;
    if (o->cache_type == UNSET)
        o->cache_type = o->type;
    if (o->stream_type == UNSET)
        o->stream_type = PTXGEN_F32;
    for (uint32_t i = 1; i < o->prompt_count && !status; i++)
        if (!o->prompts[i].text != !o->prompts[0].text)
            status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                                 "all prompts are ids, or all are texts");
    return status;
}

void options_free(struct options *o)
{
    for (uint32_t i = 0; i < o->prompt_count; i++)
        free(o->prompts[i].ids);
}
