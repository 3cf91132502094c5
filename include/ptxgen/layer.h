/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Layers of checkpoints: which tensors of a file belong together, and in which form they are.
 *
 * A linear layer is several tensors, whose names, types and shapes say which software wrote them.
 * ptxgen_files_layer finds those of a layer that is named, in files of any form below, and checks
 * them; ptxgen_linear_from_layer (linear.h, in libptxgen) makes a layer of them that runs:
 *
 *     ptxgen_files *files;
 *     ptxgen_layer layer;
 *     ptxgen_linear *linear;
 *     if (ptxgen_files_open("model.safetensors", &files, &err) != PTXGEN_OK ||
 *         ptxgen_files_layer(files, "model.layers.0.mlp.down_proj", NULL, &layer, &err) !=
 *             PTXGEN_OK ||
 *         ptxgen_linear_from_layer(dispatcher, &layer, NULL, &options, &linear, &err) != PTXGEN_OK)
 *         return report(&err);
 *     ptxgen_files_close(files); // the layer has its own copy
 *
 * For a layer L the tensors are
 *
 *     W4        4 bits with scales of groups
 *       GPTQ, GPTQ_V2, AWQ   L.qweight, L.scales, L.qzeros, of GPTQ L.g_idx
 *       PACK_QUANTIZED       L.weight_packed, L.weight_scale, L.weight_zero_point, L.weight_g_idx,
 *                            L.weight_shape (compressed-tensors)
 *       MARLIN               L.B, L.s, L.zeros
 *       PACKED               L.marlin_codes … (`ptxgen convert --to packed`)
 *     W8        L.weight, I8, F8_E4M3 or F8_E5M2 [N, K]; L.weight_zero_point, zeros
 *       ROWS                 L.weight_scale, of N or one
 *       BLOCKS               L.weight_scale_inv or L.weight_scale [N/128, K/128], rounded up
 *                            L.input_scale, L.input_zero_point: static scales of activations
 *     SPARSE24  2:4 sparse [N, K]
 *       BYTES, NIBBLES       L.sparse [N, K/2] with L.meta_bytes or L.meta_nibbles
 *       CUTLASS              L.sparse with L.meta_cutlass (PyTorch)
 *       BITMASK              L.compressed with L.bitmask (compressed-tensors)
 *       DENSE                L.dense, or L itself; taken only where it is chosen
 *                            of I8 L.weight_scale, L.input_scale
 *     GGUF      L.weight or L, a matrix in a type of blocks
 *     FLOATS    L.weight or L, a matrix of F32, F16 or BF16, of either format
 *
 * and L.bias, of floats, where it is there. The weight's own name, L.weight, stands for L.
 *
 * The functions are in libptxgen-files; files.h says of it, of lifetime and threads what holds
 * here too. A ptxgen_layer is a plain value that borrows tensors of the files.
 */
#ifndef PTXGEN_LAYER_H
#define PTXGEN_LAYER_H

#include <ptxgen/files.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ptxgen_layer_kind {
    PTXGEN_LAYER_ANY = 0,      /**< of choices: whatever the file has */
    PTXGEN_LAYER_W4 = 1,       /**< by `marlin` */
    PTXGEN_LAYER_W8 = 2,       /**< by `w8a8` */
    PTXGEN_LAYER_SPARSE24 = 3, /**< by `sparse24` */
    PTXGEN_LAYER_GGUF = 4,     /**< by `gguf_linear` */
    PTXGEN_LAYER_FLOATS = 5    /**< by `dense` */
} ptxgen_layer_kind;

/** The forms of layers; the head of this file has their tensors. */
typedef enum ptxgen_layer_form {
    PTXGEN_LAYER_ONE_FORM = 0, /**< of GGUF and FLOATS; of choices: what the file says */
    PTXGEN_LAYER_GPTQ = 1,     /**< from here on ptxgen_w4_format + 1 */
    PTXGEN_LAYER_GPTQ_V2 = 2,
    PTXGEN_LAYER_AWQ = 3,
    PTXGEN_LAYER_PACK_QUANTIZED = 4,
    PTXGEN_LAYER_MARLIN = 5,
    PTXGEN_LAYER_PACKED = 6,
    PTXGEN_LAYER_BYTES = 7, /**< from here on ptxgen_sparse24_form + 7 */
    PTXGEN_LAYER_NIBBLES = 8,
    PTXGEN_LAYER_BITMASK = 9,
    PTXGEN_LAYER_CUTLASS = 10,
    PTXGEN_LAYER_DENSE = 11,
    PTXGEN_LAYER_ROWS = 12,  /**< W8: a scale for each of N, or one */
    PTXGEN_LAYER_BLOCKS = 13 /**< W8: a scale for each 128 by 128 */
} ptxgen_layer_form;

/** What the tensors of a layer are for. */
typedef enum ptxgen_layer_part {
    PTXGEN_LAYER_WEIGHT = 0,      /**< codes, values, or the matrix itself */
    PTXGEN_LAYER_SCALE = 1,       /**< of the weights */
    PTXGEN_LAYER_ZERO = 2,        /**< points of the weights */
    PTXGEN_LAYER_ORDER = 3,       /**< of K: g_idx, weight_g_idx, marlin_order */
    PTXGEN_LAYER_SHAPE = 4,       /**< weight_shape, marlin_shape, shape */
    PTXGEN_LAYER_METADATA = 5,    /**< of 2:4 sparse weights */
    PTXGEN_LAYER_INPUT_SCALE = 6, /**< of the activations: one for all */
    PTXGEN_LAYER_INPUT_ZERO = 7,  /**< point of the activations */
    PTXGEN_LAYER_BIAS = 8
} ptxgen_layer_part;
enum { PTXGEN_LAYER_PARTS = 9 };

/** What is known of a layer beside its name. Zero it, then fill it. */
typedef struct ptxgen_layer_choice {
    ptxgen_layer_kind kind;
    ptxgen_layer_form form; /**< of W4 or SPARSE24, with that kind */
    /** W4: features of K that share a scale, −1: all; 0: what metadata or the scales say. */
    int64_t group_size;
} ptxgen_layer_choice;

typedef struct ptxgen_layer {
    ptxgen_layer_kind kind;
    ptxgen_layer_form form;
    int64_t group_size; /**< of the choice, or of the file's metadata; 0: what the scales say */
    /** By ptxgen_layer_part; NULL where there is none. They belong to the files. */
    const ptxgen_tensor *parts[PTXGEN_LAYER_PARTS];
} ptxgen_layer;

/**
 * Finds the tensors of the layer `name`, "" for tensors without a dot in their names, in the form
 * that `choice`, which may be NULL, allows. A file of GPTQ that does not say which version it is
 * (`checkpoint_format` in its metadata) is taken for the first.
 *
 * Checked are the types and shapes of tensors, but for those of W4, which ptxgen_w4_describe
 * checks; that scales are finite and, of activations, above 0; that zero points of symmetric
 * weights are 0, and that no weight of F8 is a NaN or infinite. Errors: PTXGEN_ERROR_NOT_FOUND,
 * with the nearest names that there are; PTXGEN_ERROR_INVALID_ARGUMENT for a tensor of a wrong type
 * or shape and for a wrong value; PTXGEN_ERROR_UNSUPPORTED for what no family multiplies;
 * PTXGEN_ERROR_MALFORMED for a packed layer whose parts do not fit. *layer is zeroed then.
 */
PTXGEN_API ptxgen_status ptxgen_files_layer(const ptxgen_files *files, const char *name,
                                            const ptxgen_layer_choice *choice, ptxgen_layer *layer,
                                            ptxgen_error *err);
/**
 * The kind of layer whose weights a tensor of the files is, by names and types alone, and the
 * layer's name, which is written to `name`; PTXGEN_LAYER_ANY for tensors that are no weights, and
 * names longer than `size` − 1. Asked of all tensors it lists the layers of a file.
 */
PTXGEN_API ptxgen_layer_kind ptxgen_files_layer_of(const ptxgen_files *files,
                                                   const ptxgen_tensor *tensor, char *name,
                                                   size_t size);

#ifdef __cplusplus
}
#endif
#endif
