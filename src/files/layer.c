/* SPDX-License-Identifier: Apache-2.0 */
/* The layer of a name: which kind it is, and its tensors. */
#include "layer_kinds.h"

#include <stdio.h>
#include <string.h>

/* By ptxgen_layer_kind, in the order in which a file is asked. */
static const struct layer_kind_row *const kinds[] = {
    [PTXGEN_LAYER_W4] = &layer_w4,
    [PTXGEN_LAYER_W8] = &layer_w8,
    [PTXGEN_LAYER_SPARSE24] = &layer_sparse24,
    [PTXGEN_LAYER_GGUF] = &layer_gguf,
    [PTXGEN_LAYER_FLOATS] = &layer_floats,
};
enum { KINDS = sizeof kinds / sizeof *kinds, NAME_SIZE = 1024 };

/* ---- names ---- */

/* "L" of "L.weight" where a tensor is called so; else the name itself. */
static const char *without_weight(const ptxgen_files *files, const char *name, char base[NAME_SIZE])
{
    bool is_tensor = ptxgen_tensor_list_find(ptxgen_files_tensors(files), name);
    return is_tensor && layer_split(name, "weight", base, NAME_SIZE) ? base : name;
}

static struct nearest_text nearest_layers(const ptxgen_files *files, const char *wanted)
{
    const ptxgen_tensor_list *tensors = ptxgen_files_tensors(files);
    struct nearest nearest = {.wanted = wanted};
    char name[NAME_SIZE];
    for (size_t i = 0; i < tensors->count; i++)
        if (ptxgen_files_layer_of(files, &tensors->items[i], name, sizeof name))
            nearest_offer(&nearest, tensors->items[i].name, strlen(name));
    return nearest_text(&nearest);
}

static ptxgen_status refuse(const ptxgen_files *files, const char *name, ptxgen_error *err)
{
    const ptxgen_tensor *t = layer_part(files, name, "weight");
    t = t ? t : ptxgen_tensor_list_find(ptxgen_files_tensors(files), name);
    if (!t)
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                           "the file has no layer %s: neither %s.weight nor weights by another "
                           "name%s",
                           name, name, nearest_layers(files, name).text);
    return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                       "%s is %s %s; weights are a matrix of F32, F16, BF16, I8 or F8, or in "
                       "a type of blocks of GGUF",
                       t->name, ptxgen_dtype_find(t->dtype)->name, tensor_shape_text(t).text);
}

/* ---- finding ---- */

static ptxgen_status check_choice(const ptxgen_layer_choice *c, ptxgen_error *err)
{
    if ((unsigned)c->kind >= KINDS)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_files_layer: %d is no kind of layer", (int)c->kind);
    const struct layer_kind_row *kind = kinds[c->kind];
    if (c->form && (!kind || c->form < kind->first_form || c->form > kind->last_form))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_files_layer: the form %d is none that may be chosen of kind %d",
                           (int)c->form, (int)c->kind);
    return PTXGEN_OK;
}

static ptxgen_status find(const ptxgen_files *files, const char *name,
                          const ptxgen_layer_choice *choice, ptxgen_layer *layer, ptxgen_error *err)
{
    char base[NAME_SIZE];
    if (choice->kind == PTXGEN_LAYER_SPARSE24 || (!choice->kind && layer_sparse24.has(files, name)))
        layer->kind = PTXGEN_LAYER_SPARSE24;
    else
        name = without_weight(files, name, base);
    if (!layer->kind)
        layer->kind = choice->kind;
    for (int i = PTXGEN_LAYER_W4; !layer->kind && i < KINDS; i++)
        if (kinds[i]->has(files, name))
            layer->kind = (ptxgen_layer_kind)i;
    return layer->kind ? kinds[layer->kind]->find(files, name, choice, layer, err)
                       : refuse(files, name, err);
}

ptxgen_status ptxgen_files_layer(const ptxgen_files *files, const char *name,
                                 const ptxgen_layer_choice *choice, ptxgen_layer *layer,
                                 ptxgen_error *err)
{
    static const ptxgen_layer_choice any;
    choice = choice ? choice : &any;
    if (layer)
        memset(layer, 0, sizeof *layer);
    if (!files || !name || !layer)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_files_layer: files, name and layer must be given");
    ptxgen_status status = check_choice(choice, err);
    if (status == PTXGEN_OK)
        status = find(files, name, choice, layer, err);
    if (status != PTXGEN_OK)
        memset(layer, 0, sizeof *layer);
    return status;
}

ptxgen_layer_kind ptxgen_files_layer_of(const ptxgen_files *files, const ptxgen_tensor *tensor,
                                        char *name, size_t size)
{
    for (int i = PTXGEN_LAYER_W4; files && tensor && name && size && i < KINDS; i++)
        if (kinds[i]->recognise(files, tensor, name, size))
            return (ptxgen_layer_kind)i;
    return PTXGEN_LAYER_ANY;
}
