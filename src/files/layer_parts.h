/* SPDX-License-Identifier: Apache-2.0 */
/** What loaders of a layer's tensors, PREFIX.weight, PREFIX.weight_scale and so on, share. */
#ifndef PTXGEN_FILES_LAYER_PARTS_H
#define PTXGEN_FILES_LAYER_PARTS_H

#include "nearest.h"
#include "tensor_list.h"

/**
 * PREFIX.PART, or PART when the prefix is NULL or empty; NULL when there is none of that name, or
 * when the part is NULL.
 */
const ptxgen_tensor *layer_part(const ptxgen_files *store, const char *prefix, const char *part);

/** The same, or PTXGEN_ERROR_NOT_FOUND naming tensor and file. */
ptxgen_status layer_require_part(const ptxgen_files *store, const char *prefix, const char *part,
                                 const ptxgen_tensor **tensor, ptxgen_error *err);

/**
 * Whether a tensor is called LAYER.PART, or PART; `layer` receives what stands before the last dot,
 * which must fit.
 */
bool layer_split(const char *tensor, const char *part, char *layer, size_t size);
/** What a wrong prefix may have been meant for: of names PREFIX.PART with one of the parts. */
struct nearest_text layer_nearest(const ptxgen_files *store, const char *prefix,
                                  const char *const *parts, size_t count);

/** Floats of a layer: so many, or one for all where that may be. */
struct layer_floats {
    const char *part;
    uint64_t count;
    bool one, required;
};
/** Finds them; `tensor` is NULL where there are none and none are required. */
ptxgen_status layer_find_floats(const ptxgen_files *store, const char *prefix,
                                const struct layer_floats *floats, const ptxgen_tensor **tensor,
                                ptxgen_error *err);

/**
 * Refuses scales that are NaN or infinite, and with `positive` those at or below 0, by name, place
 * and value. The tensor is one of floats; NULL passes.
 */
ptxgen_status layer_check_scales(const ptxgen_tensor *scales, bool positive, ptxgen_error *err);
/**
 * Refuses zero points of which one is not 0, in any type of numbers; `rule` ends the sentence:
 * "w8a8's weights are symmetric". NULL passes.
 */
ptxgen_status layer_check_zeros(const ptxgen_tensor *zeros, const char *rule, ptxgen_error *err);

#endif
