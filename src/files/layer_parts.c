/* SPDX-License-Identifier: Apache-2.0 */
#include "layer_parts.h"

#include "number_tensor.h"
#include "printable.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct part_of_layer {
    char name[1024];
};

/* A name that is too long becomes empty, which no tensor of a layer is called. */
static struct part_of_layer part_of(const char *prefix, const char *part)
{
    struct part_of_layer p;
    bool has = prefix && *prefix;
    int length = snprintf(p.name, sizeof p.name, "%s%s%s", has ? prefix : "", has ? "." : "", part);
    if (length < 0 || length >= (int)sizeof p.name)
        p.name[0] = '\0';
    return p;
}

const ptxgen_tensor *layer_part(const ptxgen_files *store, const char *prefix, const char *part)
{
    return part ? ptxgen_tensor_list_find(ptxgen_files_tensors(store), part_of(prefix, part).name)
                : NULL;
}

ptxgen_status layer_require_part(const ptxgen_files *store, const char *prefix, const char *part,
                                 const ptxgen_tensor **tensor, ptxgen_error *err)
{
    return ptxgen_files_require(store, part_of(prefix, part).name, tensor, err);
}

bool layer_split(const char *tensor, const char *part, char *layer, size_t size)
{
    const char *dot = strrchr(tensor, '.');
    size_t length = dot ? (size_t)(dot - tensor) : 0;
    if (strcmp(dot ? dot + 1 : tensor, part) != 0 || length >= size)
        return false;
    memcpy(layer, tensor, length);
    layer[length] = '\0';
    return true;
}

struct nearest_text layer_nearest(const ptxgen_files *store, const char *prefix,
                                  const char *const *parts, size_t count)
{
    const ptxgen_tensor_list *tensors = ptxgen_files_tensors(store);
    struct nearest nearest = {.wanted = prefix};
    for (size_t i = 0; i < tensors->count; i++) {
        const char *name = tensors->items[i].name, *dot = strrchr(name, '.');
        for (size_t part = 0; dot && part < count; part++)
            if (!strcmp(dot + 1, parts[part]))
                nearest_offer(&nearest, name, (size_t)(dot - name));
    }
    return nearest_text(&nearest);
}

ptxgen_status layer_find_floats(const ptxgen_files *store, const char *prefix,
                                const struct layer_floats *floats, const ptxgen_tensor **tensor,
                                ptxgen_error *err)
{
    *tensor = layer_part(store, prefix, floats->part);
    if (*tensor)
        return tensor_check_floats(*tensor, floats->count, floats->one, err);
    return floats->required ? layer_require_part(store, prefix, floats->part, tensor, err)
                            : PTXGEN_OK;
}

ptxgen_status layer_check_scales(const ptxgen_tensor *t, bool positive, ptxgen_error *err)
{
    uint64_t count = t ? tensor_count(t) : 0;
    for (uint64_t i = 0; i < count; i++) {
        double scale = tensor_float(t, i);
        if (!isfinite(scale) || (positive && scale <= 0))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "%s is %.9g (number %llu); a scale is finite%s",
                               printable(t->name, strlen(t->name)).text, scale,
                               (unsigned long long)i, positive ? " and above 0" : "");
    }
    return PTXGEN_OK;
}

ptxgen_status layer_check_zeros(const ptxgen_tensor *t, const char *rule, ptxgen_error *err)
{
    if (!t)
        return PTXGEN_OK;
    struct printable name = printable(t->name, strlen(t->name));
    if (!tensor_is_number(t->dtype))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s is %s, a type in which zero points are not read", name.text,
                           ptxgen_dtype_find(t->dtype)->name);
    uint64_t count = tensor_count(t);
    for (uint64_t i = 0; i < count; i++)
        if (!(tensor_number(t, i) == 0))
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s is %.9g (number %llu), not 0; %s",
                               name.text, tensor_number(t, i), (unsigned long long)i, rule);
    return PTXGEN_OK;
}
