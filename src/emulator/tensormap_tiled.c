/* SPDX-License-Identifier: Apache-2.0 */
#include "tensormap_tiled.h"

#include <stddef.h>
#include <string.h>

#include "tensor_swizzle.h"

/** "ptxgenTM" read as a little-endian number. */
static const uint64_t MAGIC = 0x4D546E6567787470u;

/** The opaque 128 bytes. The driver's type wants 64-byte alignment; copies need none. */
typedef struct packed_map {
    uint64_t magic;
    uint8_t type, rank, swizzle, fill_nan;
    uint8_t element_strides[EMU_TENSOR_MAX_RANK];
    uint8_t zero[7];
    uint64_t address;
    uint32_t dims_minus_one[EMU_TENSOR_MAX_RANK]; /* dims go up to 2^32 */
    uint16_t box[EMU_TENSOR_MAX_RANK];
    uint16_t unused;
    uint64_t strides[EMU_TENSOR_MAX_RANK - 1];
    uint64_t sum; /* of all words before it */
} packed_map;

_Static_assert(sizeof(packed_map) <= EMU_TENSOR_MAP_BYTES, "a tensor map is 128 bytes");

/* ---- the rules of cuTensorMapEncodeTiled ---- */

enum {
    TYPE_COUNT = EMU_TENSOR_TF32_FTZ + 1,
    TYPE_COUNT_OF_API = 16, /* with the packed 4- and 6-bit types */
    SWIZZLE_COUNT_OF_API = 7,
    L2_COUNT = 4
};

static const uint8_t ELEMENT_BYTES[TYPE_COUNT] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
static const uint32_t SWIZZLE_BYTES[] = {0, 32, 64, 128};

uint32_t emu_tensor_element_bytes(emu_tensor_type type)
{
    return ELEMENT_BYTES[type];
}

static bool is_float(uint32_t type)
{
    return type >= EMU_TENSOR_F16;
}

static ptxgen_status invalid(ptxgen_error *err, const char *sentence)
{
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "tensor map: %s", sentence);
}

static ptxgen_status check_kinds(const emu_tensor_map_args *args, ptxgen_error *err)
{
    if (args->type >= TYPE_COUNT_OF_API)
        return invalid(err, "unknown data type");
    if (args->rank < 1 || args->rank > EMU_TENSOR_MAX_RANK)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "tensor map: rank %u is not 1 to 5",
                           args->rank);
    if (!args->dims || !args->box || !args->element_strides || (args->rank > 1 && !args->strides))
        return invalid(err, "an array of dimensions, strides or the box is NULL");
    if (args->interleave > 2 || args->swizzle >= SWIZZLE_COUNT_OF_API ||
        args->l2_promotion >= L2_COUNT || args->oob_fill > 1)
        return invalid(err, "unknown interleave, swizzle, L2 promotion or fill");
    if (args->type >= TYPE_COUNT)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "tensor map: packed 4- and 6-bit types are not emulated");
    if (args->interleave != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "tensor map: interleaved layouts are not emulated");
    if (args->swizzle > EMU_SWIZZLE_128B)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "tensor map: 128-byte swizzles with larger atoms are not emulated");
    if (args->oob_fill == 1 && !is_float(args->type))
        return invalid(err, "NaN fill needs a floating-point type");
    return PTXGEN_OK;
}

static ptxgen_status check_global(const emu_tensor_map_args *args, ptxgen_error *err)
{
    if (args->address == 0 || args->address % 16 != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "tensor map: global address 0x%llX is not a multiple of 16",
                           (unsigned long long)args->address);
    for (uint32_t i = 0; i < args->rank; i++) {
        if (args->dims[i] == 0 || args->dims[i] > (uint64_t)1 << 32)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "tensor map: globalDim[%u] is %llu: it must be 1 to 2^32", i,
                               (unsigned long long)args->dims[i]);
        if (i + 1 == args->rank)
            break;
        uint64_t stride = args->strides[i];
        if (stride % 16 != 0 || stride >= (uint64_t)1 << 40)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "tensor map: globalStrides[%u] is %llu: it must be a multiple of "
                               "16 below 2^40",
                               i, (unsigned long long)stride);
    }
    return PTXGEN_OK;
}

static ptxgen_status check_box(const emu_tensor_map_args *args, ptxgen_error *err)
{
    for (uint32_t i = 0; i < args->rank; i++) {
        if (args->box[i] == 0 || args->box[i] > 256)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "tensor map: boxDim[%u] is %u: it must be 1 to 256", i,
                               args->box[i]);
        if (args->element_strides[i] == 0 || args->element_strides[i] > 8)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "tensor map: elementStrides[%u] is %u: it must be 1 to 8", i,
                               args->element_strides[i]);
    }
    uint32_t inner = args->box[0] * ELEMENT_BYTES[args->type];
    if (inner % 16 != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "tensor map: the box is %u bytes wide: it must be a multiple of 16",
                           inner);
    uint32_t swizzle = SWIZZLE_BYTES[args->swizzle];
    if (swizzle != 0 && inner > swizzle)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "tensor map: the box is %u bytes wide, more than the %u-byte swizzle",
                           inner, swizzle);
    return PTXGEN_OK;
}

/* ---- the opaque bytes ---- */

static uint64_t word_sum(const packed_map *packed)
{
    uint64_t words[offsetof(packed_map, sum) / 8], sum = 0;
    memcpy(words, packed, sizeof words);
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
        sum = sum * 31 + words[i];
    return sum;
}

ptxgen_status emu_tensor_map_encode_tiled(uint8_t map[EMU_TENSOR_MAP_BYTES],
                                          const emu_tensor_map_args *args, ptxgen_error *err)
{
    ptxgen_status status = check_kinds(args, err);
    if (status == PTXGEN_OK)
        status = check_global(args, err);
    if (status == PTXGEN_OK)
        status = check_box(args, err);
    if (status != PTXGEN_OK)
        return status;
    packed_map packed;
    memset(&packed, 0, sizeof packed);
    packed.magic = MAGIC;
    packed.type = (uint8_t)args->type;
    packed.rank = (uint8_t)args->rank;
    packed.swizzle = (uint8_t)args->swizzle;
    packed.fill_nan = (uint8_t)args->oob_fill;
    packed.address = args->address;
    for (uint32_t i = 0; i < args->rank; i++) {
        packed.dims_minus_one[i] = (uint32_t)(args->dims[i] - 1);
        packed.box[i] = (uint16_t)args->box[i];
        packed.element_strides[i] = (uint8_t)args->element_strides[i];
        if (i + 1 < args->rank)
            packed.strides[i] = args->strides[i];
    }
    packed.element_strides[0] = 1; /* the API ignores it without interleaving */
    packed.sum = word_sum(&packed);
    memset(map, 0, EMU_TENSOR_MAP_BYTES);
    memcpy(map, &packed, sizeof packed);
    return PTXGEN_OK;
}

ptxgen_status emu_tensor_map_decode(const uint8_t map[EMU_TENSOR_MAP_BYTES], emu_tensor_map *out,
                                    ptxgen_error *err)
{
    packed_map packed;
    memcpy(&packed, map, sizeof packed);
    if (packed.magic != MAGIC || packed.sum != word_sum(&packed))
        return ptxgen_fail(err, PTXGEN_ERROR_PTX_FAULT,
                           "the 128 bytes of a tensor map are not what cuTensorMapEncodeTiled "
                           "wrote");
    memset(out, 0, sizeof *out);
    out->type = (emu_tensor_type)packed.type;
    out->rank = packed.rank;
    out->swizzle = (emu_tensor_swizzle)packed.swizzle;
    out->fill_nan = packed.fill_nan != 0;
    out->address = packed.address;
    for (uint32_t i = 0; i < packed.rank; i++) {
        out->dims[i] = (uint64_t)packed.dims_minus_one[i] + 1;
        out->box[i] = packed.box[i];
        out->element_strides[i] = packed.element_strides[i];
        out->strides[i] = i == 0 ? ELEMENT_BYTES[packed.type] : packed.strides[i - 1];
    }
    return PTXGEN_OK;
}

/* ---- the walk ---- */

/** Elements that the box holds along a dimension: every element_strides-th one. */
static uint32_t box_count(const emu_tensor_map *map, uint32_t dimension)
{
    uint32_t step = map->element_strides[dimension];
    return (map->box[dimension] + step - 1) / step;
}

static uint32_t row_bytes(const emu_tensor_map *map)
{
    return map->box[0] * ELEMENT_BYTES[map->type];
}

/** From one row to the next in shared memory. */
static uint32_t row_pitch(const emu_tensor_map *map)
{
    uint32_t swizzle = SWIZZLE_BYTES[map->swizzle], bytes = row_bytes(map);
    return bytes > swizzle ? bytes : swizzle;
}

static uint32_t row_count(const emu_tensor_map *map)
{
    uint32_t count = 1;
    for (uint32_t i = 1; i < map->rank; i++)
        count *= box_count(map, i); /* the caller's shared memory bounds it long before 2^32 */
    return count;
}

uint32_t emu_tensor_box_bytes(const emu_tensor_map *map)
{
    return row_bytes(map) * row_count(map);
}

uint32_t emu_tensor_box_extent(const emu_tensor_map *map)
{
    return row_pitch(map) * row_count(map);
}

ptxgen_status emu_tensor_map_check_box(const emu_tensor_box *box, ptxgen_error *err)
{
    if (box->shared % 128 == 0)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_PTX_FAULT,
                       "tensor copy: shared address 0x%X is not a multiple of 128", box->shared);
}

/** What of a row of the box lies in the tensor: bytes before, inside, after. */
typedef struct row_split {
    uint32_t before, inside, total;
} row_split;

static row_split split_row(const emu_tensor_box *box)
{
    const emu_tensor_map *map = box->map;
    const int64_t width = map->box[0], size = (int64_t)map->dims[0];
    const int64_t x = box->coordinates[0];
    int64_t first = x < 0 ? -x : 0;
    first = first < width ? first : width;
    int64_t last = size - x < width ? size - x : width;
    last = last > first ? last : first;
    const uint32_t element = ELEMENT_BYTES[map->type];
    return (row_split){(uint32_t)first * element, (uint32_t)(last - first) * element,
                       (uint32_t)width * element};
}

typedef struct row_walk {
    const emu_tensor_box *box;
    emu_tensor_visit visit;
    void *user;
} row_walk;

/** Visits `bytes` bytes at shared offset `offset`, in atoms where a swizzle scatters them. */
static bool visit_run(const row_walk *walk, bool out_of_bounds, uint64_t global, uint32_t offset,
                      uint32_t bytes)
{
    const uint32_t swizzle = SWIZZLE_BYTES[walk->box->map->swizzle];
    while (bytes > 0) {
        uint32_t run = bytes;
        uint32_t to_atom_end = 16 - offset % 16;
        if (swizzle != 0 && run > to_atom_end)
            run = to_atom_end;
        emu_tensor_segment segment = {
            .out_of_bounds = out_of_bounds,
            .global = out_of_bounds ? 0 : global,
            .shared = emu_swizzle(walk->box->shared + offset, swizzle, 0),
            .bytes = run,
        };
        if (!walk->visit(walk->user, &segment))
            return false;
        offset += run;
        global += run;
        bytes -= run;
    }
    return true;
}

/** Visits the row of the box at `index` in the outer dimensions. */
static bool visit_row(const row_walk *walk, const row_split *split,
                      const uint32_t index[EMU_TENSOR_MAX_RANK], uint32_t offset)
{
    const emu_tensor_box *box = walk->box;
    const emu_tensor_map *map = box->map;
    uint64_t global = map->address;
    for (uint32_t i = 1; i < map->rank; i++) {
        int64_t at = (int64_t)box->coordinates[i] + (int64_t)index[i] * map->element_strides[i];
        if (at < 0 || (uint64_t)at >= map->dims[i])
            return visit_run(walk, true, 0, offset, split->total);
        global += (uint64_t)at * map->strides[i];
    }
    int64_t first = (int64_t)box->coordinates[0] * ELEMENT_BYTES[map->type] + split->before;
    uint32_t after = split->total - split->before - split->inside;
    return visit_run(walk, true, 0, offset, split->before) &&
           visit_run(walk, false, global + (uint64_t)first, offset + split->before,
                     split->inside) &&
           visit_run(walk, true, 0, offset + split->before + split->inside, after);
}

bool emu_tensor_map_walk(const emu_tensor_box *box, emu_tensor_visit visit, void *user)
{
    const emu_tensor_map *map = box->map;
    const row_walk walk = {box, visit, user};
    const row_split split = split_row(box);
    uint32_t index[EMU_TENSOR_MAX_RANK] = {0};
    uint32_t offset = 0;
    for (;;) {
        if (!visit_row(&walk, &split, index, offset))
            return false;
        offset += row_pitch(map);
        uint32_t i = 1;
        while (i < map->rank && ++index[i] == box_count(map, i))
            index[i++] = 0;
        if (i >= map->rank)
            return true;
    }
}

/* ---- the fill ---- */

void emu_tensor_map_fill(const emu_tensor_map *map, uint8_t *out, uint32_t bytes)
{
    memset(out, 0, bytes);
    if (!map->fill_nan)
        return;
    for (uint32_t i = 0; i < bytes; i++) /* an H100's 0x7FF7, in each 16 bits of the element */
        out[i] = i % 2 ? 0x7F : 0xF7;
}
