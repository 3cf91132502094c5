/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Tensor maps: what cuTensorMapEncodeTiled makes of them in the emulator, and the walk over a
 * box that cp.async.bulk.tensor and cp.reduce.async.bulk.tensor do. Pure functions.
 *
 * The 128 bytes are the emulator's own format (a magic number first), so a map made by a real
 * driver is refused, not misread. Enumerations have the driver API's values.
 *
 *     emu_tensor_map map;
 *     emu_tensor_map_decode(bytes, &map, err);
 *     emu_tensor_box box = {.map = &map, .coordinates = {x, y}, .shared = address};
 *     emu_tensor_map_check_box(&box, err);
 *     emu_tensor_map_walk(&box, copy_segment, user);
 */
#ifndef PTXGEN_EMULATOR_TENSORMAP_TILED_H
#define PTXGEN_EMULATOR_TENSORMAP_TILED_H

#include <stdbool.h>
#include <stdint.h>

#include "ptxgen/status.h"

enum { EMU_TENSOR_MAP_BYTES = 128, EMU_TENSOR_MAX_RANK = 5 };

/** Values of CUtensorMapDataType. */
typedef enum emu_tensor_type {
    EMU_TENSOR_U8 = 0,
    EMU_TENSOR_U16,
    EMU_TENSOR_U32,
    EMU_TENSOR_S32,
    EMU_TENSOR_U64,
    EMU_TENSOR_S64,
    EMU_TENSOR_F16,
    EMU_TENSOR_F32,
    EMU_TENSOR_F64,
    EMU_TENSOR_BF16,
    EMU_TENSOR_F32_FTZ,
    EMU_TENSOR_TF32,
    EMU_TENSOR_TF32_FTZ
} emu_tensor_type;

/** Values of CUtensorMapSwizzle. */
typedef enum emu_tensor_swizzle {
    EMU_SWIZZLE_NONE = 0,
    EMU_SWIZZLE_32B,
    EMU_SWIZZLE_64B,
    EMU_SWIZZLE_128B
} emu_tensor_swizzle;

typedef struct emu_tensor_map {
    emu_tensor_type type;
    uint32_t rank;
    emu_tensor_swizzle swizzle;
    bool fill_nan; /**< out-of-bounds elements become NaN instead of zero */
    uint64_t address;
    uint64_t dims[EMU_TENSOR_MAX_RANK];    /**< elements, innermost first */
    uint64_t strides[EMU_TENSOR_MAX_RANK]; /**< bytes; [0] is the element size */
    uint32_t box[EMU_TENSOR_MAX_RANK];     /**< elements of the tensor that a box spans */
    uint32_t element_strides[EMU_TENSOR_MAX_RANK];
} emu_tensor_map;

/** The arguments of cuTensorMapEncodeTiled, in its order and with its numeric values. */
typedef struct emu_tensor_map_args {
    uint32_t type, rank;
    uint64_t address;
    const uint64_t *dims;            /**< [rank] */
    const uint64_t *strides;         /**< [rank - 1], bytes */
    const uint32_t *box;             /**< [rank] */
    const uint32_t *element_strides; /**< [rank] */
    uint32_t interleave, swizzle, l2_promotion, oob_fill;
} emu_tensor_map_args;

/**
 * Writes the opaque map. INVALID_ARGUMENT where the driver answers CUDA_ERROR_INVALID_VALUE;
 * UNSUPPORTED for what the emulator does not model: interleaved layouts, packed 4- and 6-bit
 * types, the 128-byte swizzles with atoms other than 16 bytes.
 */
ptxgen_status emu_tensor_map_encode_tiled(uint8_t map[EMU_TENSOR_MAP_BYTES],
                                          const emu_tensor_map_args *args, ptxgen_error *err);

/** Reads a map back; PTX_FAULT for bytes that emu_tensor_map_encode_tiled did not write. */
ptxgen_status emu_tensor_map_decode(const uint8_t map[EMU_TENSOR_MAP_BYTES], emu_tensor_map *out,
                                    ptxgen_error *err);

/**
 * Bytes of one element; of a whole box: what the mbarrier counts; from the box's first to its last
 * in shared memory, where a row takes a swizzle's width at least.
 */
uint32_t emu_tensor_element_bytes(emu_tensor_type type);
uint32_t emu_tensor_box_bytes(const emu_tensor_map *map);
uint32_t emu_tensor_box_extent(const emu_tensor_map *map);

/** One box to copy: where it lies in the tensor and in shared memory. */
typedef struct emu_tensor_box {
    const emu_tensor_map *map;
    int32_t coordinates[EMU_TENSOR_MAX_RANK]; /**< innermost first; may lie outside the tensor */
    uint32_t shared;                          /**< shared address of the box */
} emu_tensor_box;

/** A run of bytes, contiguous on both sides. */
typedef struct emu_tensor_segment {
    bool out_of_bounds; /**< load: write the fill; store and reduce: skip. `global` is 0 */
    uint64_t global;
    uint32_t shared; /**< swizzled shared address */
    uint32_t bytes;  /**< a multiple of the element size */
} emu_tensor_segment;

/** Returns false to stop the walk. */
typedef bool (*emu_tensor_visit)(void *user, const emu_tensor_segment *segment);

/** A shared address that is not a multiple of 128 is a PTX_FAULT. */
ptxgen_status emu_tensor_map_check_box(const emu_tensor_box *box, ptxgen_error *err);

/** Visits the box in the order of its shared memory; false when a visit stopped it. */
bool emu_tensor_map_walk(const emu_tensor_box *box, emu_tensor_visit visit, void *user);

/** Writes `bytes` of out-of-bounds fill (zero, or the type's NaN). */
void emu_tensor_map_fill(const emu_tensor_map *map, uint8_t *out, uint32_t bytes);

#endif
