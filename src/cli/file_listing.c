/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes. First the families that read files look for weights whose tensors belong together;
 * then the others are asked of tensors that no layer has, so that the scales of a layer are not
 * taken for a matrix.
 */
#include "file_listing.h"

#include "family_file.h"
#include "options.h"

#include "../files/name_index.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct judging {
    const ptxgen_files *files;
    bool is_gguf;
    ptxgen_target target;
    struct file_listing *listing;
    struct ptxgen_name *layers; /* of the first pass, sorted */
    size_t layer_count;
};

static ptxgen_status no_memory(ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to list a file");
}

__attribute__((format(printf, 3, 4))) static ptxgen_status write(char **text, ptxgen_error *err,
                                                                 const char *format, ...)
{
    char written[PTXGEN_MESSAGE_SIZE + 64];
    va_list args;
    va_start(args, format);
    vsnprintf(written, sizeof written, format, args);
    va_end(args);
    *text = strdup(written);
    return *text ? PTXGEN_OK : no_memory(err);
}

/* ---- one family ---- */

/* What run would say of the layer that the options name. */
static ptxgen_status try_layer(const struct judging *j, struct family_options *o, ptxgen_error *err)
{
    const struct family_file *file = o->family->file;
    struct work work;
    ptxgen_status status = PTXGEN_OK;
    if (o->family->finish)
        o->family->finish(o);
    if (file) {
        struct file_rows rows = {.input = NULL};
        void *sources = calloc(1, file->sources_bytes);
        status = sources ? file->find(j->files, o, sources, &rows, err) : no_memory(err);
        free(sources);
    }
    return status == PTXGEN_OK ? family_describe(o, &j->target, 1, &work, err) : status;
}

static uint32_t number_with(const struct family_options *o, unsigned rule)
{
    const struct option_row *row = option_with(o->family, rule);
    return row && row->kind == OPTION_NUMBER ? *option_number(o, row) : 0;
}

/* Fills the item of a tensor that the family has recognised. */
static ptxgen_status judge(const struct judging *j, struct family_options *o,
                           struct listed_tensor *item, ptxgen_error *err)
{
    ptxgen_error why;
    ptxgen_status status = try_layer(j, o, &why);
    if (status == PTXGEN_ERROR_OUT_OF_MEMORY)
        return ptxgen_fail(err, status, "%s", why.message);
    item->is_weight = true;
    if (o->names.layer && !(item->layer = strdup(o->names.layer)))
        return no_memory(err);
    if (status != PTXGEN_OK)
        return write(&item->note, err, "%s: %s", o->family->name, why.message);
    item->family = o->family;
    item->k = number_with(o, OPTION_IS_K);
    item->n = number_with(o, OPTION_IS_N);
    if (o->names.layer)
        return write(&item->note, err, "--layer %s", *o->names.layer ? o->names.layer : "''");
    if (o->names.norm)
        return write(&item->note, err, "--tensor %s --norm %s", o->names.tensors, o->names.norm);
    if (o->names.tensors)
        return write(&item->note, err, "--tensor %s", o->names.tensors);
    return write(&item->note, err, "%s", "");
}

/* Asks the families that read files of this format, or those that read none. */
static ptxgen_status ask(const struct judging *j, bool readers, struct listed_tensor *item,
                         ptxgen_error *err)
{
    const struct family *family;
    ptxgen_files_format format = j->is_gguf ? PTXGEN_FILES_GGUF : PTXGEN_FILES_SAFETENSORS;
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; status == PTXGEN_OK && !item->is_weight && (family = family_at(i)); i++) {
        struct recognised_names names;
        if (!family->recognise || !family->file == readers ||
            (family->file && family->file->format != format))
            continue;
        struct family_options *o = family_new_options(family);
        if (!o)
            return no_memory(err);
        if (family->recognise(j->files, item->tensor, o, &names))
            status = judge(j, o, item, err);
        free(o);
    }
    return status;
}

/* ---- layers ---- */

static ptxgen_status index_layers(struct judging *j, ptxgen_error *err)
{
    j->layers = calloc(j->listing->count + 1, sizeof *j->layers);
    if (!j->layers)
        return no_memory(err);
    for (size_t i = 0; i < j->listing->count; i++)
        if (j->listing->items[i].layer)
            j->layers[j->layer_count++] = (struct ptxgen_name){j->listing->items[i].layer, i};
    name_index_sort(j->layers, j->layer_count);
    return PTXGEN_OK;
}

/* The longest layer's name that the tensor's begins with, before a dot. */
static ptxgen_status find_layer(const struct judging *j, struct listed_tensor *item,
                                ptxgen_error *err)
{
    const struct ptxgen_name *found = NULL;
    char *name = j->layer_count ? strdup(item->tensor->name) : NULL;
    if (j->layer_count && !name)
        return no_memory(err);
    for (char *dot; name && !found && (dot = strrchr(name, '.')) != NULL;) {
        *dot = '\0';
        found = name_index_find(j->layers, j->layer_count, name);
    }
    free(name);
    if (!found)
        return PTXGEN_OK;
    item->layer = strdup(found->name);
    return item->layer ? write(&item->note, err, "part of layer %s", found->name) : no_memory(err);
}

static ptxgen_status explain(struct listed_tensor *item, ptxgen_error *err)
{
    const ptxgen_tensor *t = item->tensor;
    const char *type = ptxgen_dtype_find(t->dtype)->name;
    if (t->ndim != 2)
        return write(&item->note, err, "%s",
                     t->ndim > 2    ? "more than two dimensions"
                     : t->ndim == 1 ? "a vector"
                                    : "a scalar");
    return write(&item->note, err, "no family multiplies %s", type);
}

static ptxgen_status judge_rest(const struct judging *j, struct listed_tensor *item,
                                ptxgen_error *err)
{
    ptxgen_status status = find_layer(j, item, err);
    if (status == PTXGEN_OK && !item->layer)
        status = ask(j, false, item, err);
    if (status == PTXGEN_OK && !item->note)
        status = explain(item, err);
    return status;
}

ptxgen_status file_listing_make(const ptxgen_files *files, struct file_listing *listing,
                                ptxgen_error *err)
{
    const ptxgen_tensor_list *tensors = ptxgen_files_tensors(files);
    struct judging j = {.files = files,
                        .is_gguf = ptxgen_files_gguf(files) != NULL,
                        .target = default_target(),
                        .listing = listing};
    *listing = (struct file_listing){.items = calloc(tensors->count + 1, sizeof *listing->items)};
    if (!listing->items)
        return no_memory(err);
    listing->count = tensors->count;
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; status == PTXGEN_OK && i < listing->count; i++) {
        listing->items[i].tensor = &tensors->items[i];
        status = ask(&j, true, &listing->items[i], err);
    }
    if (status == PTXGEN_OK)
        status = index_layers(&j, err);
    for (size_t i = 0; status == PTXGEN_OK && i < listing->count; i++)
        if (!listing->items[i].is_weight)
            status = judge_rest(&j, &listing->items[i], err);
    free(j.layers);
    return status;
}

void file_listing_release(struct file_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        free(listing->items[i].layer);
        free(listing->items[i].note);
    }
    free(listing->items);
    *listing = (struct file_listing){.count = 0};
}
