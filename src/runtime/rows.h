/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of an operand as tensors, in the swizzled boxes of 128 bytes a row that wgmma's operands
 * are. */
#ifndef PTXGEN_RUNTIME_ROWS_H
#define PTXGEN_RUNTIME_ROWS_H

#include <ptxgen/driver.h>

enum { RUNTIME_BOX_BYTES = 128 /* of a row */ };

struct operand_rows {
    const char *family, *name; /* for sentences */
    uint64_t address;
    uint64_t columns, rows, stride; /* in elements, but rows */
    ptxgen_cu_tensor_map_data_type type;
    uint32_t element;  /* bytes */
    uint32_t box_rows; /* of a whole box */
};

ptxgen_status rows_map(const ptxgen_driver *driver, const struct operand_rows *operand,
                       ptxgen_cu_tensor_map *map, ptxgen_error *err);
/*
 * Encodes two maps: of whole boxes, and of the last boxes of boxes.h. The operand has at least one
 * row.
 */
ptxgen_status rows_map_boxes(const ptxgen_driver *driver, const struct operand_rows *operand,
                             ptxgen_cu_tensor_map maps[2], ptxgen_error *err);

#endif
