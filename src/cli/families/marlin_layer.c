/* SPDX-License-Identifier: Apache-2.0 */
#include "marlin_layer.h"

ptxgen_status marlin_layer_find(const ptxgen_files *store, const char *prefix,
                                const struct layer_choice *choice, ptxgen_layer *layer,
                                ptxgen_error *err)
{
    ptxgen_layer_choice c = {.kind = PTXGEN_LAYER_W4, .group_size = choice->group_size};
    ptxgen_w4_format format;
    ptxgen_status status = PTXGEN_OK;
    if (choice->format) {
        status = ptxgen_w4_detect_format(NULL, choice->format, &format, err);
        c.form = (ptxgen_layer_form)(PTXGEN_LAYER_GPTQ + (int)format);
    }
    return status == PTXGEN_OK ? ptxgen_files_layer(store, prefix, &c, layer, err) : status;
}

ptxgen_status marlin_layer_describe(const ptxgen_layer *layer, ptxgen_w4_checkpoint *checkpoint,
                                    ptxgen_w4_info *info, ptxgen_error *err)
{
    ptxgen_status status = ptxgen_w4_from_layer(layer, checkpoint, err);
    return status == PTXGEN_OK ? ptxgen_w4_describe(checkpoint, info, err) : status;
}

bool marlin_layer_is_packed(const ptxgen_files *store, const char *prefix)
{
    return layer_part(store, prefix, layer_suffix(PTXGEN_LAYER_PACKED, PTXGEN_LAYER_WEIGHT));
}

void marlin_layer_complete_spec(const ptxgen_w4_info *info, bool type_given,
                                ptxgen_marlin_spec *spec)
{
    spec->k = (uint32_t)info->k;
    spec->n = (uint32_t)info->n;
    spec->group_size = info->groups == 1 ? PTXGEN_W4_PER_CHANNEL : (int32_t)info->group_size;
    spec->zeros |= !info->symmetric;
    spec->act_order |= info->act_order;
    if (!type_given && info->scale_type == PTXGEN_BF16)
        spec->type = PTXGEN_BF16;
}
