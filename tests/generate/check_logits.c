/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares a model's logits with a golden file's:
 *
 *     check_logits MODEL GOLDEN f32|f16|bf16|bf16-stream [DEVICE [PROMPTS]]
 *
 * With PROMPTS, the first so many alone. The stream of residuals is f32, and bf16 with bf16-stream.
 *
 * Exit status: 0 where all are within the type's limit and every greedy token is the same.
 */
#include "golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const types[] = {"f32", "f16", "bf16"}; /* in the order of ptxgen_element */

static void progress(void *user, uint32_t done, uint32_t count)
{
    (void)user;
    fprintf(stderr, "\rprompt: %u of %u tokens%s", done, count, done == count ? "\n" : "");
}

static const char usage[] =
    "check_logits MODEL GOLDEN f32|f16|bf16|bf16-stream [DEVICE [PROMPTS]]\n";

static int report(const struct golden *g, uint8_t type)
{
    for (uint32_t i = 0; i < g->count; i++) {
        const struct prompt *p = &g->prompts[i];
        printf(
            "%s, %s: %u of %u greedy tokens the same; largest difference %.4f of %.2f, step %u\n",
            p->name, types[type], p->equal, p->seen, p->largest, golden_limit(type), p->step);
    }
    puts(golden_passed(g, type) ? "passed" : "FAILED");
    return golden_passed(g, type) ? 0 : 1;
}

int main(int argc, char **argv)
{
    uint8_t type = 0;
    const bool narrow = argc > 3 && strcmp(argv[3], "bf16-stream") == 0;
    if (narrow)
        argv[3][strlen("bf16")] = 0;
    while (argc > 3 && type < 3 && strcmp(types[type], argv[3]) != 0)
        type++;
    if (argc < 4 || type == 3)
        return fputs(usage, stderr), 2;
    struct golden golden = {0};
    struct device device = {0};
    struct model model = {0};
    ptxgen_error err;
    struct forward_options options = {.type = type,
                                      .cache_type = type,
                                      .stream_type = narrow ? PTXGEN_BF16 : PTXGEN_F32,
                                      .longest_prompt = 1024,
                                      .progress = progress};
    ptxgen_status status = golden_open(argv[2], &golden, &err);
    if (argc > 5 && atoi(argv[5]) > 0 && (uint32_t)atoi(argv[5]) < golden.count)
        golden.count = (uint32_t)atoi(argv[5]);
    if (!status)
        status = device_open(argc > 4 ? argv[4] : "auto", &device, &err);
    if (!status)
        status = model_open(&device, argv[1], &model, &err);
    if (!status)
        status = golden_run(&golden, &device, &model, &options, UINT32_MAX, &err);
    int rc =
        status ? (fprintf(stderr, "check_logits: %s\n", err.message), 1) : report(&golden, type);
    model_close(&model);
    device_close(&device);
    golden_close(&golden);
    return rc;
}
