/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUTLASS form follows from mma.sp. In m16n8k32 the 8 groups of a row are two half registers:
 * columns 0–15 in lane 4g and 16–31 in lane 4g+1, row g in the low half and row g+8 in the high
 * half. Selector 1 takes the next two lanes instead. So 32 lanes hold the metadata of 32 rows × 32
 * columns, and a row of ldmatrix brings the four words of a quad. In m16n8k64 the 16 groups of a
 * row are two whole registers: of lanes 4g and 4g+2 for row g, of 4g+1 and 4g+3 for row g+8.
 */
#include "formats.h"

enum { WARP = 32, NIBBLE_BITS = 4, NIBBLE_MASK = 0xF };

/* ---- nibbles and masks ---- */

/*
 * The nibble of a group whose four mask bits are the index; 0, which is no nibble, unless two are
 * set.
 */
static const unsigned char nibble_of_mask[16] = {
    [0x3] = 0x4, [0x5] = 0x8, [0x6] = 0x9, [0x9] = 0xC, [0xA] = 0xD, [0xC] = 0xE,
};

static unsigned mask_of_nibble(unsigned nibble)
{
    return 1u << sparse24_first(nibble) | 1u << sparse24_second(nibble);
}

/* ---- mma.sp's lanes ---- */

/* Rows and columns whose metadata fills a register of 32 lanes; none of f32. */
struct tile {
    unsigned rows, columns;
};
static const struct tile tiles[] = {[PTXGEN_SPARSE24_F32] = {0, 0},
                                    [PTXGEN_SPARSE24_F16] = {32, 32},
                                    [PTXGEN_SPARSE24_BF16] = {32, 32},
                                    [PTXGEN_SPARSE24_S8] = {16, 64}};

struct sparse24_lane_slot sparse24_lane_slot(ptxgen_sparse24_type type, unsigned row,
                                             unsigned group)
{
    unsigned quad = 4 * (row % 8);
    if (type == PTXGEN_SPARSE24_S8)
        return (struct sparse24_lane_slot){quad + 2 * (group / 8) + row / 8,
                                           group % 8 * NIBBLE_BITS};
    return (struct sparse24_lane_slot){quad + 2 * (row / 16) + group / 4,
                                       row / 8 % 2 * 16 + group % 4 * NIBBLE_BITS};
}

/* ---- the place of a group in each form ---- */

struct place {
    size_t byte;
    unsigned shift, bits;
};

static struct place place_in_bytes(const ptxgen_sparse24_shape *shape, size_t row, size_t group)
{
    return (struct place){row * sparse24_groups(shape) + group, 0, 8};
}

static struct place place_in_nibbles(const ptxgen_sparse24_shape *shape, size_t row, size_t group)
{
    return (struct place){(row * sparse24_groups(shape) + group) / 2, group % 2 * NIBBLE_BITS,
                          NIBBLE_BITS};
}

static struct place place_in_cutlass(const ptxgen_sparse24_shape *shape, size_t row, size_t group)
{
    const struct tile tile = tiles[shape->type];
    size_t tile_groups = tile.columns / SPARSE24_GROUP;
    size_t index = group / tile_groups * (shape->n / tile.rows) + row / tile.rows;
    struct sparse24_lane_slot slot = sparse24_lane_slot(shape->type, (unsigned)(row % tile.rows),
                                                        (unsigned)(group % tile_groups));
    return (struct place){(index * WARP + slot.lane) * sizeof(uint32_t) + slot.bit / 8,
                          slot.bit % 8, NIBBLE_BITS};
}

struct form {
    const char *name;
    size_t groups_a_byte;
    bool is_mask;
    struct place (*place)(const ptxgen_sparse24_shape *shape, size_t row, size_t group);
};

static const struct form forms[] = {
    [PTXGEN_SPARSE24_BYTES] = {"byte metadata", 1, false, place_in_bytes},
    [PTXGEN_SPARSE24_NIBBLES] = {"nibble metadata", 2, false, place_in_nibbles},
    [PTXGEN_SPARSE24_BITMASK] = {"the bitmask", 2, true, place_in_nibbles},
    [PTXGEN_SPARSE24_CUTLASS] = {"CUTLASS metadata", 2, false, place_in_cutlass},
};

/* ---- sizes ---- */

static ptxgen_status check_tiling(const ptxgen_sparse24_shape *shape, ptxgen_error *err)
{
    const struct tile tile = tiles[shape->type];
    if (tile.rows == 0)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "f32 has no CUTLASS metadata: the hardware has no 2:4 product of f32");
    if (shape->n % tile.rows != 0 || shape->k % tile.columns != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "N = %zu, K = %zu have no CUTLASS metadata: N must be a multiple of %u "
                           "and K of %u",
                           shape->n, shape->k, tile.rows, tile.columns);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_sparse24_metadata_bytes(const ptxgen_sparse24_shape *shape,
                                             ptxgen_sparse24_form form, size_t *bytes,
                                             ptxgen_error *err)
{
    size_t dense;
    ptxgen_status status = ptxgen_sparse24_dense_bytes(shape, &dense, err);
    if (status != PTXGEN_OK)
        return status;
    if ((size_t)form >= sizeof forms / sizeof *forms || !bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           bytes ? "%d is no form of 2:4 metadata" : "bytes is NULL (form %d)",
                           (int)form);
    if (form == PTXGEN_SPARSE24_CUTLASS && (status = check_tiling(shape, err)) != PTXGEN_OK)
        return status;
    *bytes = shape->n * sparse24_groups(shape) / forms[form].groups_a_byte;
    return PTXGEN_OK;
}

ptxgen_status sparse24_describe_metadata(const ptxgen_sparse24_shape *shape,
                                         ptxgen_sparse24_form form, ptxgen_const_span metadata,
                                         struct sparse24_array *array, ptxgen_error *err)
{
    size_t expected;
    ptxgen_status status = ptxgen_sparse24_metadata_bytes(shape, form, &expected, err);
    if (status == PTXGEN_OK)
        *array = (struct sparse24_array){forms[form].name, metadata.data, metadata.bytes, expected};
    return status;
}

/* ---- groups ---- */

static bool is_nibble(unsigned value)
{
    return value <= NIBBLE_MASK && sparse24_first(value) != sparse24_second(value);
}

static ptxgen_status refuse_group(const struct form *form, size_t row, size_t group, unsigned value,
                                  ptxgen_error *err)
{
    if (form->is_mask)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "row %zu, group %zu of %s is 0x%X; a group keeps exactly two of its "
                           "four elements",
                           row, group, form->name, value);
    if (value > NIBBLE_MASK)
        return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                           "row %zu, group %zu of %s is 0x%X; bits 4 to 7 must be zero", row, group,
                           form->name, value);
    return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                       "row %zu, group %zu of %s is 0x%X, twice the position %u; a group keeps two "
                       "different elements",
                       row, group, form->name, value, sparse24_first(value));
}

ptxgen_status sparse24_load_group(const struct sparse24_metadata *m, size_t row, size_t group,
                                  unsigned *nibble, ptxgen_error *err)
{
    const struct form *f = &forms[m->form];
    struct place at = f->place(&m->shape, row, group);
    unsigned byte = ((const unsigned char *)m->data)[at.byte];
    unsigned value = byte >> at.shift & ((1u << at.bits) - 1);
    *nibble = f->is_mask ? nibble_of_mask[value] : value;
    return is_nibble(*nibble) ? PTXGEN_OK : refuse_group(f, row, group, value, err);
}

ptxgen_status sparse24_check_byte(size_t row, size_t group, unsigned byte, ptxgen_error *err)
{
    const struct form *bytes = &forms[PTXGEN_SPARSE24_BYTES];
    return is_nibble(byte) ? PTXGEN_OK : refuse_group(bytes, row, group, byte, err);
}

void sparse24_store_group(const ptxgen_sparse24_shape *shape, ptxgen_sparse24_form form, void *data,
                          size_t row, size_t group, unsigned nibble)
{
    const struct form *f = &forms[form];
    struct place at = f->place(shape, row, group);
    unsigned char *byte = (unsigned char *)data + at.byte;
    unsigned others = *byte & ~(((1u << at.bits) - 1) << at.shift);
    unsigned value = f->is_mask ? mask_of_nibble(nibble) : nibble;
    *byte = (unsigned char)(others | value << at.shift);
}
