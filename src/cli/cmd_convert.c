/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen convert: 4-bit layers of a safetensors file, in another format. */
#include "command.h"
#include "exit_code.h"
#include "families/marlin_convert.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_TO = OPTION_COMMAND_KEYS, KEY_LAYER, KEY_FORMAT, KEY_GROUP_SIZE, KEY_TYPE, KEY_THREADS };

static const char *const type_names[] = {"f16", "bf16", NULL};
static const ptxgen_element types[] = {PTXGEN_F16, PTXGEN_BF16};

static const struct argp_option options_table[] = {
    {.name = "to",
     .key = KEY_TO,
     .arg = "FORMAT",
     .doc = "gptq, gptq_v2, awq, pack-quantized, marlin, or packed: the order in which ptxgen's "
            "kernel reads"},
    {.name = "layer",
     .key = KEY_LAYER,
     .arg = "PREFIX",
     .doc = "Convert this layer; may be given several times (all that the file has)"},
    {.name = "format",
     .key = KEY_FORMAT,
     .arg = "NAME",
     .doc = "The format of the input, instead of what the file says"},
    {.name = "group-size",
     .key = KEY_GROUP_SIZE,
     .arg = "G",
     .doc = "The group size of the input, instead of what the file says; -1: one group"},
    {.name = "type",
     .key = KEY_TYPE,
     .arg = "TYPE",
     .doc = "Of packed scales: f16 or bf16 (bf16 where they are that already, else f16)"},
    {.name = "threads", .key = KEY_THREADS, .arg = "COUNT", .doc = "One a processor by default"},
    {0},
};

static void add_layer(struct argp_state *state, struct convert_request *r, const char *prefix)
{
    const char **layers = realloc(r->layers, (r->layer_count + 1) * sizeof *layers);
    if (!layers)
        argp_failure(state, EXIT_INTERNAL, 0, "no memory for --layer");
    r->layers = layers;
    r->layers[r->layer_count++] = prefix;
}

static void take_path(struct argp_state *state, struct convert_request *r, const char *path)
{
    if (!r->input)
        r->input = path;
    else if (!r->output)
        r->output = path;
    else
        argp_error(state, "%s: one input and one output are enough", path);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct convert_request *r = state->input;
    switch (key) {
    case KEY_TO:
        r->to = parse_choice(state, "--to", arg, convert_formats);
        r->to_given = true;
        return 0;
    case KEY_LAYER: add_layer(state, r, arg); return 0;
    case KEY_FORMAT: r->choice.format = arg; return 0;
    case KEY_GROUP_SIZE:
        r->choice.group_size =
            strcmp(arg, "-1") ? (ptrdiff_t)parse_number(state, "--group-size", arg, 1, INT32_MAX)
                              : PTXGEN_W4_PER_CHANNEL;
        return 0;
    case KEY_TYPE:
        r->type = types[parse_choice(state, "--type", arg, type_names)];
        r->type_given = true;
        return 0;
    case KEY_THREADS:
        r->threads = (unsigned)parse_number(state, "--threads", arg, 1, 1024);
        return 0;
    case ARGP_KEY_ARG: take_path(state, r, arg); return 0;
    case ARGP_KEY_END:
        if (!r->output || !r->to_given)
            argp_error(state, "an input, an output and --to are needed");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int convert_files(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options_table,
        .parser = parse,
        .args_doc = "INPUT OUTPUT",
        .doc = "Writes a safetensors file with 4-bit layers in another format; its other tensors "
               "are copied.",
    };
    struct convert_request request = {.threads = (unsigned)sysconf(_SC_NPROCESSORS_ONLN)};
    struct convert_outcome outcome = {.layers = 0};
    ptxgen_error err = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    ptxgen_status status = convert(&request, &outcome, &err);
    free(request.layers);
    if (status != PTXGEN_OK)
        return report_failure(&err);
    printf("%s: %zu layers as %s, %zu other tensors copied\n", request.output, outcome.layers,
           convert_formats[request.to], outcome.copied);
    return EXIT_OK;
}

const struct command convert_command = {
    "convert", "INPUT OUTPUT --to FORMAT [OPTION...]",
    "write 4-bit layers of a safetensors file in another format", convert_files};
