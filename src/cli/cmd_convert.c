/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen convert: 4-bit layers of a safetensors file in another format; 2:4 sparse ones by name. */
#include "command.h"
#include "exit_code.h"
#include "families/marlin_convert.h"
#include "families/sparse24_convert.h"
#include "option_once.h"
#include "options.h"
#include "output_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEY_TO = OPTION_COMMAND_KEYS,
    KEY_FORMAT,
    KEY_GROUP_SIZE,
    KEY_TYPE,
    KEY_THREADS,
    KEY_FROM,
    KEY_PRUNE,
    KEY_FORCE,
    KEY_LAYER = OPTION_REPEATED_KEYS
};

static const char *const type_names[] = {"f16", "bf16", NULL};
static const ptxgen_element types[] = {PTXGEN_F16, PTXGEN_BF16};

static const struct argp_option marlin_options[] = {
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
    {.name = OUTPUT_FORCE_NAME, .key = KEY_FORCE, .doc = OUTPUT_FORCE_DOC},
    {0},
};

static const struct argp_option sparse24_options[] = {
    {.name = "to",
     .key = KEY_TO,
     .arg = "FORM",
     .doc = "dense, or compressed with metadata as bytes, nibbles, bitmask or cutlass"},
    {.name = "from",
     .key = KEY_FROM,
     .arg = "FORM",
     .doc = "Take weights in this form (the first that there is, dense last)"},
    {.name = "layer",
     .key = KEY_LAYER,
     .arg = "PREFIX",
     .doc = "Convert this weight; may be given several times (all that are compressed, or with "
            "--from dense all PREFIX.dense)"},
    {.name = "prune",
     .key = KEY_PRUNE,
     .doc = "Keep the two largest of four in a dense weight; otherwise it must be 2:4 sparse"},
    {.name = OUTPUT_FORCE_NAME, .key = KEY_FORCE, .doc = OUTPUT_FORCE_DOC},
    {0},
};

/* What is parsed; of the kinds' options those of the one kind are used. */
struct given {
    const struct layer_kind *kind;
    struct convert_request request;
    struct marlin_convert_options marlin;
    struct sparse24_convert_options sparse24;
};

static void add_layer(struct argp_state *state, struct convert_request *r, const char *prefix)
{
    const char **layers = realloc(r->layers, (r->layer_count + 1) * sizeof *layers);
    if (!layers)
        argp_failure(state, EXIT_INTERNAL, 0, "no memory for --layer");
    r->layers = layers;
    r->layers[r->layer_count++] = prefix;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct given *g = state->input;
    struct convert_request *r = &g->request;
    switch (key) {
    case KEY_TO: r->to = parse_choice(state, "--to", arg, g->kind->forms); return 0;
    case KEY_LAYER: add_layer(state, r, arg); return 0;
    case KEY_FORMAT: g->marlin.choice.format = arg; return 0;
    case KEY_GROUP_SIZE: g->marlin.choice.group_size = parse_group_size(state, arg); return 0;
    case KEY_TYPE:
        g->marlin.type = types[parse_choice(state, "--type", arg, type_names)];
        g->marlin.type_given = true;
        return 0;
    case KEY_THREADS:
        g->marlin.threads = (unsigned)parse_number(state, "--threads", arg, 1, 1024);
        return 0;
    case KEY_FROM: g->sparse24.from = parse_choice(state, "--from", arg, g->kind->forms); return 0;
    case KEY_PRUNE: g->sparse24.prune = true; return 0;
    case KEY_FORCE: r->force = true; return 0;
    case ARGP_KEY_ARG: take_file(state, &r->input, &r->output, arg); return 0;
    case ARGP_KEY_END:
        if (!r->output || r->to < 0)
            argp_error(state, "an input, an output and --to are needed");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int convert_file(const struct argp *argp, int argc, char **argv, struct given *g)
{
    struct convert_outcome outcome;
    ptxgen_error err = {0};
    g->request.to = -1;
    parse_arguments(argp, argc, argv, 0, g);
    ptxgen_status status = convert(g->kind, &g->request, &outcome, &err);
    if (status == PTXGEN_OK)
        convert_outcome_print(g->kind, &g->request, &outcome);
    free(g->request.layers);
    return status == PTXGEN_OK ? EXIT_OK : report_failure(&err);
}

static int convert_marlin(int argc, char **argv)
{
    static const struct argp argp = {
        .options = marlin_options,
        .parser = parse,
        .args_doc = "INPUT OUTPUT",
        .doc = "Writes a safetensors file with 4-bit layers in another format; its other tensors "
               "are copied.\vFor 2:4 sparse weights: ptxgen convert sparse24 --help.",
    };
    struct given g = {.kind = &marlin_layers,
                      .request.options = &g.marlin,
                      .marlin.threads = (unsigned)sysconf(_SC_NPROCESSORS_ONLN)};
    return convert_file(&argp, argc, argv, &g);
}

static int convert_sparse24(int argc, char **argv)
{
    static const struct argp argp = {
        .options = sparse24_options,
        .parser = parse,
        .args_doc = "INPUT OUTPUT",
        .doc =
            "Writes a safetensors file with 2:4 sparse weights in another form; its other "
            "tensors are copied.\vA weight PREFIX is PREFIX.dense or PREFIX itself, PREFIX.sparse "
            "with PREFIX.meta_bytes, meta_nibbles or meta_cutlass, or PREFIX.compressed with "
            "PREFIX.bitmask.",
    };
    struct given g = {
        .kind = &sparse24_layers, .request.options = &g.sparse24, .sparse24.from = -1};
    return convert_file(&argp, argc, argv, &g);
}

/* "convert sparse24 …", "convert marlin …"; without a family's name, marlin. */
static int convert_family(int argc, char **argv)
{
    char name[64];
    bool sparse = argc > 1 && !strcmp(argv[1], "sparse24");
    if (!sparse && (argc < 2 || strcmp(argv[1], "marlin")))
        return convert_marlin(argc, argv);
    snprintf(name, sizeof name, "%s %s", argv[0], argv[1]);
    argv[1] = name;
    return sparse ? convert_sparse24(argc - 1, argv + 1) : convert_marlin(argc - 1, argv + 1);
}

const struct command convert_command = {
    "convert", "[FAMILY] INPUT OUTPUT --to FORMAT [OPTION...]",
    "write 4-bit or 2:4 sparse layers of a file in another format", convert_family};
