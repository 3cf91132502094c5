/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/rows.h"

#include "src/kernels/tile/boxes.h"

ptxgen_status rows_map(const ptxgen_driver *driver, const struct operand_rows *o,
                       ptxgen_cu_tensor_map *map, ptxgen_error *err)
{
    const uint64_t shape[2] = {o->columns, o->rows}, pitch = o->stride * o->element;
    const uint32_t box[2] = {RUNTIME_BOX_BYTES / o->element, o->box_rows}, steps[2] = {1, 1};
    ptxgen_cu_result result = driver->tensor_map_encode_tiled(
        map, o->type, 2, (void *)(uintptr_t)o->address, shape, &pitch, box, steps,
        PTXGEN_CU_TENSOR_MAP_INTERLEAVE_NONE, PTXGEN_CU_TENSOR_MAP_SWIZZLE_128B,
        PTXGEN_CU_TENSOR_MAP_L2_PROMOTION_L2_256B, PTXGEN_CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err,
                                  "%s: the tensor map of %s, %llu rows %llu bytes apart", o->family,
                                  o->name, (unsigned long long)o->rows, (unsigned long long)pitch);
    return PTXGEN_OK;
}

/* One map will do where all boxes are alike, or there is but one. */
ptxgen_status rows_map_boxes(const ptxgen_driver *driver, const struct operand_rows *o,
                             ptxgen_cu_tensor_map maps[2], ptxgen_error *err)
{
    struct operand_rows last = *o;
    last.box_rows = tile_last_box_rows(o->rows, o->box_rows);
    ptxgen_status status = rows_map(driver, &last, &maps[1], err);
    if (status != PTXGEN_OK)
        return status;
    if (last.box_rows < o->box_rows && o->rows > o->box_rows)
        return rows_map(driver, o, &maps[0], err);
    maps[0] = maps[1];
    return PTXGEN_OK;
}
