/* SPDX-License-Identifier: Apache-2.0 */
/* The gguf_rows family in the command: its options. */
#include "../options.h"

#include <ptxgen/gguf_rows.h>

#include <strings.h>

static const char *const type_names[] = {"f32", "f16", "bf16", NULL};

static void take_type(struct argp_state *state, const char *text, struct family_options *o)
{
    const ptxgen_gguf_type_info *type;
    for (size_t i = 0; (type = ptxgen_gguf_type_at(i)) != NULL; i++)
        if (!strcasecmp(type->name, text)) {
            ((ptxgen_gguf_rows_spec *)option_spec(o))->w_type = (uint8_t)type->type;
            return;
        }
    argp_error(state, "--w-type %s: expected a type of GGUF files, as Q4_K, Q6_K, Q8_0 or F16",
               text);
}

static void take_scale(struct argp_state *state, const char *text, struct family_options *o)
{
    ((ptxgen_gguf_rows_spec *)option_spec(o))->scale = parse_epsilon(state, "--scale", text);
}

static const ptxgen_gguf_rows_spec defaults = {.w_type = PTXGEN_GGUF_Q4_K, .y_type = PTXGEN_F16};

#define AT(member) offsetof(ptxgen_gguf_rows_spec, member)
static const struct option_row spec_rows[] = {
    {"k", "K", "Weights of a row: whole blocks of the type", OPTION_NUMBER, AT(k),
     .rules = OPTION_IS_K},
    {"w-type", "TYPE",
     "Of the matrix, as GGUF names it: Q4_K (default), Q6_K, Q8_0, MXFP4, F16 ...", OPTION_OTHER,
     .parse = take_type},
    {"y-type", "TYPE", "Of the decoded rows: f32, f16 (default), bf16", OPTION_CHOICE, AT(y_type),
     .choices = type_names},
    {"scale", "S", "A factor of each weight, as of gemma's embeddings; 0 means 1", OPTION_OTHER,
     .parse = take_scale},
    {"indexed", NULL, "Ids say which rows, else one follows the other", OPTION_FLAG,
     .at = AT(indexed)},
    {0},
};
#undef AT

const struct family gguf_rows_family = {
    .name = "gguf_rows",
    .summary = "Rows of a matrix in any GGUF type, decoded: embeddings, or a matrix of floats",
    .harness = &gguf_rows_harness,
    .spec_rows = spec_rows,
    .defaults = &defaults,
};
