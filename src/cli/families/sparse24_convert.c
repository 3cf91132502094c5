/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert sparse24: the output has the input's tensors in their order; in the place of the first
 * tensor of a weight, in whatever form, stand those of its new form.
 */
#include "sparse24_convert.h"

#include "../convert_outcome.h"
#include "../exit_code.h"
#include "../option_once.h"
#include "../options.h"
#include "../output_file.h"
#include "../safetensors_writer.h"
#include "sparse24_layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_FROM = OPTION_COMMAND_KEYS,
    KEY_TO,
    KEY_PRUNE,
    KEY_FORCE,
    KEY_LAYER = OPTION_REPEATED_KEYS,
    MOST_LAYERS = 4096
};

struct request {
    const char *input, *output;
    int from, to; /* forms; -1: not given */
    const char *layers[MOST_LAYERS];
    size_t layer_count; /* 0: all that are compressed */
    bool prune, force;
};

struct conversion {
    const struct request *request;
    struct tensor_store *store;
    struct safetensors_writer *writer;
    struct weight {
        char *prefix;
        struct sparse24_layer layer;
        bool done; /* in the present pass */
    } * weights;
    size_t count;
    struct convert_outcome outcome;
};

/* ---- options ---- */

static const struct argp_option options_table[] = {
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

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct request *r = state->input;
    switch (key) {
    case KEY_TO: r->to = parse_choice(state, "--to", arg, sparse24_form_names); return 0;
    case KEY_FROM: r->from = parse_choice(state, "--from", arg, sparse24_form_names); return 0;
    case KEY_LAYER:
        if (r->layer_count == MOST_LAYERS)
            argp_error(state, "--layer %s: at most %d layers", arg, MOST_LAYERS);
        r->layers[r->layer_count++] = arg;
        return 0;
    case KEY_PRUNE: r->prune = true; return 0;
    case KEY_FORCE: r->force = true; return 0;
    case ARGP_KEY_ARG: take_file(state, &r->input, &r->output, arg); return 0;
    case ARGP_KEY_END:
        if (!r->output || r->to < 0)
            argp_error(state, "an input, an output and --to are needed");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- the input's weights ---- */

/* The weight that a tensor is part of, or NULL. */
static struct weight *weight_of(const struct conversion *c, const char *name)
{
    size_t length = sparse24_layer_prefix(name);
    for (size_t i = 0; i < c->count; i++) {
        const char *prefix = c->weights[i].prefix;
        if (!strcmp(prefix, name) || (length == strlen(prefix) && !memcmp(prefix, name, length)))
            return &c->weights[i];
    }
    return NULL;
}

static ptxgen_status add_weight(struct conversion *c, const char *prefix, size_t length,
                                ptxgen_error *err)
{
    struct weight *grown = realloc(c->weights, (c->count + 1) * sizeof *grown);
    char *copy = strndup(prefix, length);
    if (grown)
        c->weights = grown;
    if (!grown || !copy) {
        free(copy);
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a weight's name");
    }
    struct weight *w = &c->weights[c->count++];
    *w = (struct weight){.prefix = copy};
    return sparse24_layer_find(c->store, copy, c->request->from, &w->layer, err);
}

static ptxgen_status find_weights(struct conversion *c, ptxgen_error *err)
{
    const struct request *r = c->request;
    const struct tensor_list *tensors = tensor_store_tensors(c->store);
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; status == PTXGEN_OK && i < r->layer_count; i++)
        if (!weight_of(c, r->layers[i]))
            status = add_weight(c, r->layers[i], strlen(r->layers[i]), err);
    for (size_t i = 0; !r->layer_count && status == PTXGEN_OK && i < tensors->count; i++) {
        const char *name = tensors->items[i].name;
        size_t length = sparse24_layer_prefix(name);
        char prefix[SPARSE24_NAME];
        struct sparse24_layer found;
        snprintf(prefix, sizeof prefix, "%.*s", (int)length, name);
        if (length && length < sizeof prefix && !weight_of(c, name) &&
            sparse24_layer_find(c->store, prefix, r->from, &found, NULL) == PTXGEN_OK &&
            (found.form != SPARSE24_DENSE || r->from == SPARSE24_DENSE))
            status = add_weight(c, name, length, err);
    }
    if (status == PTXGEN_OK && !c->count)
        status =
            ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                        "%s has no compressed 2:4 weight; --layer names a dense one", r->input);
    return status;
}

/* ---- a weight ---- */

/* The dense weight, or its pruned copy in `pruned`, compressed. */
static ptxgen_status compress(const struct conversion *c, const struct sparse24_layer *l,
                              ptxgen_span values, ptxgen_span metadata, ptxgen_error *err)
{
    ptxgen_span pruned = {malloc(l->values.bytes + 1), l->values.bytes};
    ptxgen_status status = PTXGEN_OK;
    if (!pruned.data)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a weight");
    memcpy(pruned.data, l->values.data, l->values.bytes);
    const ptxgen_const_span dense = {pruned.data, pruned.bytes};
    if (c->request->prune)
        status = ptxgen_sparse24_prune(&l->shape, dense, pruned, err);
    if (status == PTXGEN_OK && c->request->to == SPARSE24_DENSE)
        memcpy(values.data, pruned.data, values.bytes);
    else if (status == PTXGEN_OK)
        status = ptxgen_sparse24_compress(&l->shape, dense, values,
                                          (ptxgen_sparse24_form)c->request->to, metadata, err);
    free(pruned.data);
    return status;
}

static ptxgen_status fill(const struct conversion *c, const struct sparse24_layer *l,
                          ptxgen_span values, ptxgen_span metadata, ptxgen_error *err)
{
    ptxgen_sparse24_form from = (ptxgen_sparse24_form)l->form;
    if (l->form == SPARSE24_DENSE)
        return compress(c, l, values, metadata, err);
    if (c->request->to == SPARSE24_DENSE)
        return ptxgen_sparse24_decompress(&l->shape, l->values, from, l->metadata, values, err);
    ptxgen_status status = ptxgen_sparse24_validate(&l->shape, l->values, from, l->metadata, err);
    if (status != PTXGEN_OK)
        return status;
    memcpy(values.data, l->values.data, values.bytes);
    return ptxgen_sparse24_convert(&l->shape, from, l->metadata,
                                   (ptxgen_sparse24_form)c->request->to, metadata, err);
}

static ptxgen_status write_weight(const struct conversion *c, const struct weight *w,
                                  const struct sparse24_layer_tensors *t, ptxgen_error *err)
{
    const int64_t shape[2] = {(int64_t)w->layer.shape.n, (int64_t)w->layer.shape.k};
    ptxgen_span values = {malloc(t->items[0].bytes + 1), t->items[0].bytes};
    ptxgen_span metadata = {malloc(t->items[1].bytes + 1), t->items[1].bytes};
    ptxgen_status status = PTXGEN_ERROR_OUT_OF_MEMORY;
    ptxgen_error inner;
    if (values.data && metadata.data)
        status = fill(c, &w->layer, values, metadata, &inner);
    else
        ptxgen_fail(&inner, status, "no memory for it");
    if (status != PTXGEN_OK)
        ptxgen_fail(err, status, "%s: %s", w->prefix, inner.message);
    const void *const data[SPARSE24_LAYER_TENSORS] = {values.data, metadata.data, shape};
    for (unsigned i = 0; status == PTXGEN_OK && i < t->count; i++)
        status = safetensors_writer_append(c->writer, data[i], t->items[i].bytes, err);
    free(values.data);
    free(metadata.data);
    return status;
}

static ptxgen_status declare_weight(const struct conversion *c,
                                    const struct sparse24_layer_tensors *t, ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    for (unsigned i = 0; status == PTXGEN_OK && i < t->count; i++)
        status = safetensors_writer_declare(c->writer, &t->items[i], err);
    return status;
}

/* ---- the file ---- */

/* One pass over the input's tensors: declares those of the output, or writes them. */
static ptxgen_status pass(struct conversion *c, bool write, ptxgen_error *err)
{
    const struct tensor_list *tensors = tensor_store_tensors(c->store);
    ptxgen_status status = PTXGEN_OK;
    c->outcome.copied = 0;
    for (size_t i = 0; i < c->count; i++)
        c->weights[i].done = false;
    for (size_t i = 0; status == PTXGEN_OK && i < tensors->count; i++) {
        const struct named_tensor *tensor = &tensors->items[i];
        struct weight *w = weight_of(c, tensor->name);
        struct sparse24_layer_tensors t = {.count = 0};
        if (w && w->done)
            continue;
        if (w) {
            w->done = true;
            status = sparse24_layer_lay_out(w->prefix, &w->layer.shape, c->request->to, &t, err);
            if (status == PTXGEN_OK)
                status = write ? write_weight(c, w, &t, err) : declare_weight(c, &t, err);
            continue;
        }
        c->outcome.copied++;
        status = write ? safetensors_writer_append(c->writer, tensor->data, tensor->bytes, err)
                       : safetensors_writer_declare(c->writer, tensor, err);
    }
    return status;
}

static ptxgen_status copy_metadata(const struct conversion *c, ptxgen_error *err)
{
    const struct safetensors_file *from = tensor_store_safetensors(c->store);
    const char *key, *value;
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0;
         status == PTXGEN_OK && (key = safetensors_metadata_at(from, i, &value)) != NULL; i++)
        status = safetensors_writer_metadata(c->writer, key, value, err);
    return status;
}

static ptxgen_status convert(struct conversion *c, ptxgen_error *err)
{
    ptxgen_status status =
        tensor_store_open_as(TENSOR_SAFETENSORS, c->request->input, &c->store, err);
    if (status == PTXGEN_OK)
        status = find_weights(c, err);
    if (status == PTXGEN_OK)
        status = safetensors_writer_open(c->request->output, c->request->force, &c->writer, err);
    if (status == PTXGEN_OK)
        status = copy_metadata(c, err);
    if (status == PTXGEN_OK)
        status = pass(c, false, err);
    if (status == PTXGEN_OK)
        status = pass(c, true, err);
    if (status == PTXGEN_OK) {
        status = safetensors_writer_finish(c->writer, err);
        c->writer = NULL;
    }
    safetensors_writer_abandon(c->writer);
    if (c->store)
        tensor_store_close(c->store);
    return status;
}

int sparse24_convert(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options_table,
        .parser = parse,
        .args_doc = "INPUT OUTPUT",
        .doc =
            "Writes a safetensors file with 2:4 sparse weights in another form; its other "
            "tensors are copied.\vA weight PREFIX is PREFIX.dense or PREFIX itself, PREFIX.sparse "
            "with PREFIX.meta_bytes, meta_nibbles or meta_cutlass, or PREFIX.compressed with "
            "PREFIX.bitmask.",
    };
    static struct request request;
    struct conversion c = {.request = &request};
    ptxgen_error err = {0};
    request.from = request.to = -1;
    parse_arguments(&argp, argc, argv, 0, &request);
    ptxgen_status status = convert(&c, &err);
    c.outcome.converted = c.count;
    for (size_t i = 0; i < c.count; i++)
        free(c.weights[i].prefix);
    free(c.weights);
    if (status != PTXGEN_OK)
        return report_failure(&err);
    convert_outcome_print(&c.outcome, request.output, "weight", sparse24_form_names[request.to]);
    return EXIT_OK;
}
