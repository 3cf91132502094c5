/* SPDX-License-Identifier: Apache-2.0 */
#include "layer_kinds.h"

enum {
    WEIGHT = PTXGEN_LAYER_WEIGHT,
    SCALE = PTXGEN_LAYER_SCALE,
    ZERO = PTXGEN_LAYER_ZERO,
    ORDER = PTXGEN_LAYER_ORDER,
    SHAPE = PTXGEN_LAYER_SHAPE,
    METADATA = PTXGEN_LAYER_METADATA
};

const char *layer_suffix(ptxgen_layer_form form, ptxgen_layer_part part)
{
    static const char *const suffixes[PTXGEN_LAYER_DENSE + 1][PTXGEN_LAYER_PARTS] = {
        [PTXGEN_LAYER_GPTQ] =
            {[WEIGHT] = "qweight", [SCALE] = "scales", [ZERO] = "qzeros", [ORDER] = "g_idx"},
        [PTXGEN_LAYER_GPTQ_V2] =
            {[WEIGHT] = "qweight", [SCALE] = "scales", [ZERO] = "qzeros", [ORDER] = "g_idx"},
        [PTXGEN_LAYER_AWQ] = {[WEIGHT] = "qweight", [SCALE] = "scales", [ZERO] = "qzeros"},
        [PTXGEN_LAYER_PACK_QUANTIZED] = {[WEIGHT] = "weight_packed",
                                         [SCALE] = "weight_scale",
                                         [ZERO] = "weight_zero_point",
                                         [ORDER] = "weight_g_idx",
                                         [SHAPE] = "weight_shape"},
        [PTXGEN_LAYER_MARLIN] = {[WEIGHT] = "B", [SCALE] = "s", [ZERO] = "zeros"},
        [PTXGEN_LAYER_PACKED] = {[WEIGHT] = "marlin_codes",
                                 [SCALE] = "marlin_scales",
                                 [ZERO] = "marlin_zeros",
                                 [ORDER] = "marlin_order",
                                 [SHAPE] = "marlin_shape"},
        [PTXGEN_LAYER_BYTES] = {[WEIGHT] = "sparse", [METADATA] = "meta_bytes"},
        [PTXGEN_LAYER_NIBBLES] = {[WEIGHT] = "sparse", [METADATA] = "meta_nibbles"},
        [PTXGEN_LAYER_BITMASK] =
            {[WEIGHT] = "compressed", [METADATA] = "bitmask", [SHAPE] = "shape"},
        [PTXGEN_LAYER_CUTLASS] = {[WEIGHT] = "sparse", [METADATA] = "meta_cutlass"},
        [PTXGEN_LAYER_DENSE] = {[WEIGHT] = "dense"},
    };
    return form <= PTXGEN_LAYER_DENSE ? suffixes[form][part] : NULL;
}
