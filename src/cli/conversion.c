/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion.h"

#include "../harness/progress.h"
#include "output_file.h"
#include "plural.h"
#include "../files/printable.h"
#include "safetensors_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the input's layers ---- */

/* The layer that a tensor is part of, or NULL. */
static struct converted_layer *layer_of(const struct conversion *c, const char *name)
{
    const char *dot = strrchr(name, '.');
    size_t length = dot && c->kind->is_suffix(dot + 1) ? (size_t)(dot - name) : SIZE_MAX;
    for (size_t i = 0; i < c->count; i++) {
        const char *prefix = c->layers[i].prefix;
        if ((c->kind->has_plain && !strcmp(prefix, name)) ||
            (strlen(prefix) == length && !memcmp(prefix, name, length)))
            return &c->layers[i];
    }
    return NULL;
}

static bool is_there(const struct conversion *c, const char *prefix)
{
    for (size_t i = 0; i < c->count; i++)
        if (!strcmp(c->layers[i].prefix, prefix))
            return true;
    return false;
}

static ptxgen_status add_layer(struct conversion *c, const char *prefix, ptxgen_error *err)
{
    if (is_there(c, prefix))
        return PTXGEN_OK;
    struct converted_layer *grown = realloc(c->layers, (c->count + 1) * sizeof *grown);
    if (grown) {
        c->layers = grown;
        grown[c->count++] = (struct converted_layer){.prefix = strdup(prefix),
                                                     .layer = calloc(1, c->kind->layer_bytes)};
    }
    if (!grown || !grown[c->count - 1].prefix || !grown[c->count - 1].layer)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a layer");
    return c->kind->find(c, prefix, grown[c->count - 1].layer, err);
}

/* The layer that begins with this tensor, where nobody names any. */
static ptxgen_status add_layer_at(struct conversion *c, const char *name, ptxgen_error *err)
{
    const char *dot = strrchr(name, '.');
    if (!dot || !c->kind->is_suffix(dot + 1))
        return PTXGEN_OK;
    char *prefix = strndup(name, (size_t)(dot - name));
    if (!prefix)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a layer");
    ptxgen_status status =
        c->kind->is_layer(c, prefix, dot + 1) ? add_layer(c, prefix, err) : PTXGEN_OK;
    free(prefix);
    return status;
}

static ptxgen_status find_layers(struct conversion *c, ptxgen_error *err)
{
    const struct convert_request *r = c->request;
    const ptxgen_tensor_list *tensors = ptxgen_files_tensors(c->store);
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; status == PTXGEN_OK && i < r->layer_count; i++)
        status = add_layer(c, r->layers[i], err);
    for (size_t i = 0; !r->layer_count && status == PTXGEN_OK && i < tensors->count; i++)
        status = add_layer_at(c, tensors->items[i].name, err);
    if (status == PTXGEN_OK && !c->count)
        status = ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "%s has no %s", r->input, c->kind->none);
    return status;
}

/* What another format would have under the layer's name says nothing of the layer that is written.
 */
static void warn_of_dropped(const struct conversion *c)
{
    const ptxgen_tensor_list *tensors = ptxgen_files_tensors(c->store);
    for (size_t i = 0; c->kind->reads && i < tensors->count; i++) {
        const ptxgen_tensor *t = &tensors->items[i];
        const struct converted_layer *l = layer_of(c, t->name);
        if (l && !c->kind->reads(c, l->prefix, l->layer, t))
            fprintf(stderr, "ptxgen: left out, as its layer's format has no such tensor: %s\n",
                    printable(t->name, strlen(t->name)).text);
    }
}

/* ---- a layer ---- */

void layer_tensors_add(struct layer_tensors *t, unsigned place, const char *prefix,
                       const char *suffix, ptxgen_dtype dtype, unsigned ndim, uint64_t rows,
                       uint64_t columns)
{
    uint64_t count = ndim == 2 ? rows * columns : rows;
    snprintf(t->names[place], CONVERT_NAME, "%s.%s", prefix, suffix);
    t->items[place] = (ptxgen_tensor){.name = t->names[place],
                                      .dtype = dtype,
                                      .ndim = ndim,
                                      .shape = {rows, columns},
                                      .bytes = count * ptxgen_dtype_find(dtype)->block_bytes};
}

static ptxgen_status declare_layer(const struct conversion *c, const struct layer_tensors *t,
                                   ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    for (unsigned i = 0; status == PTXGEN_OK && i < CONVERT_TENSORS; i++)
        if (t->items[i].name)
            status = safetensors_writer_declare(c->writer, &t->items[i], err);
    return status;
}

static ptxgen_status allocate(struct layer_tensors *t, ptxgen_error *err)
{
    for (unsigned i = 0; i < CONVERT_TENSORS; i++) {
        if (!t->items[i].name)
            continue;
        t->data[i] = malloc(t->items[i].bytes + 1);
        if (!t->data[i])
            return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %zu bytes",
                               t->items[i].bytes);
    }
    return PTXGEN_OK;
}

static ptxgen_status write_layer(const struct conversion *c, const struct converted_layer *l,
                                 struct layer_tensors *t, ptxgen_error *err)
{
    ptxgen_error inner;
    ptxgen_status status = allocate(t, &inner);
    if (status == PTXGEN_OK)
        status = c->kind->fill(c->request, l->layer, t, &inner);
    if (status != PTXGEN_OK)
        ptxgen_fail(err, status, "%s: %s", l->prefix, inner.message);
    for (unsigned i = 0; status == PTXGEN_OK && i < CONVERT_TENSORS; i++)
        if (t->items[i].name)
            status = safetensors_writer_append(c->writer, t->data[i], t->items[i].bytes, err);
    for (unsigned i = 0; i < CONVERT_TENSORS; i++)
        free(t->data[i]);
    return status;
}

/* ---- the file ---- */

/* The input's metadata, but for what the kind says itself. */
static ptxgen_status write_metadata(const struct conversion *c, ptxgen_error *err)
{
    const ptxgen_safetensors *from = ptxgen_files_safetensors(c->store);
    struct convert_metadata own[CONVERT_METADATA] = {{.key = NULL}};
    const char *key, *value;
    ptxgen_status status = PTXGEN_OK;
    if (c->kind->describe)
        c->kind->describe(c->request, own);
    for (unsigned i = 0; status == PTXGEN_OK && i < CONVERT_METADATA; i++)
        if (own[i].key)
            status = safetensors_writer_metadata(c->writer, own[i].key, own[i].value, err);
    for (size_t i = 0;
         status == PTXGEN_OK && (key = ptxgen_safetensors_metadata_at(from, i, &value)) != NULL;
         i++) {
        bool is_own = false;
        for (unsigned j = 0; j < CONVERT_METADATA; j++)
            is_own = is_own || (own[j].key && !strcmp(own[j].key, key));
        if (!is_own)
            status = safetensors_writer_metadata(c->writer, key, value, err);
    }
    return status;
}

static ptxgen_status pass_layer(const struct conversion *c, const struct converted_layer *l,
                                bool write, ptxgen_error *err)
{
    struct layer_tensors t = {.data = {NULL}};
    ptxgen_status status = c->kind->lay_out(c->request, l->prefix, l->layer, &t, err);
    if (status != PTXGEN_OK)
        return status;
    return write ? write_layer(c, l, &t, err) : declare_layer(c, &t, err);
}

/* One pass over the input's tensors: declares those of the output, or writes them. */
static ptxgen_status pass(struct conversion *c, bool write, ptxgen_error *err)
{
    const ptxgen_tensor_list *tensors = ptxgen_files_tensors(c->store);
    struct progress progress = progress_start("layers", c->count);
    ptxgen_status status = PTXGEN_OK;
    size_t done = 0;
    c->copied = 0;
    for (size_t i = 0; i < c->count; i++)
        c->layers[i].done = false;
    for (size_t i = 0; status == PTXGEN_OK && i < tensors->count; i++) {
        const ptxgen_tensor *t = &tensors->items[i];
        struct converted_layer *l = layer_of(c, t->name);
        if (l && !l->done) {
            l->done = true;
            status = pass_layer(c, l, write, err);
            progress_update(&progress, ++done);
        } else if (!l) {
            c->copied++;
            status = write ? safetensors_writer_append(c->writer, t->data, t->bytes, err)
                           : safetensors_writer_declare(c->writer, t, err);
        }
    }
    progress_end(&progress);
    return status;
}

static ptxgen_status write_file(struct conversion *c, ptxgen_error *err)
{
    ptxgen_status status =
        safetensors_writer_open(c->request->output, c->request->force, &c->writer, err);
    if (status != PTXGEN_OK)
        return status;
    status = write_metadata(c, err);
    if (status == PTXGEN_OK)
        status = pass(c, false, err);
    if (status == PTXGEN_OK)
        status = pass(c, true, err);
    if (status == PTXGEN_OK)
        return safetensors_writer_finish(c->writer, err);
    safetensors_writer_abandon(c->writer);
    return status;
}

ptxgen_status convert(const struct layer_kind *kind, const struct convert_request *request,
                      struct convert_outcome *outcome, ptxgen_error *err)
{
    struct conversion c = {.kind = kind, .request = request};
    ptxgen_status status =
        ptxgen_files_open_as(PTXGEN_FILES_SAFETENSORS, request->input, &c.store, err);
    if (status != PTXGEN_OK)
        return status;
    status = find_layers(&c, err);
    if (status == PTXGEN_OK) {
        warn_of_dropped(&c);
        status = write_file(&c, err);
    }
    *outcome = (struct convert_outcome){c.count, c.copied};
    for (size_t i = 0; i < c.count; i++) {
        free(c.layers[i].prefix);
        free(c.layers[i].layer);
    }
    free(c.layers);
    ptxgen_files_close(c.store);
    return status;
}

void convert_outcome_print(const struct layer_kind *kind, const struct convert_request *request,
                           const struct convert_outcome *outcome)
{
    fprintf(output_file_is_stdout(request->output) ? stderr : stdout,
            "%s: %zu %s%s as %s, %zu other tensor%s copied\n", request->output, outcome->converted,
            kind->noun, plural(outcome->converted), kind->forms[request->to], outcome->copied,
            plural(outcome->copied));
}
