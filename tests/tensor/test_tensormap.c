/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor maps: the rules of cuTensorMapEncodeTiled one by one, and copies against a walk over
 * every element with the swizzle tables of the PTX ISA.
 */
#include "tests/status.h"

#include "slow_mma.h"
#include "src/emulator/tensormap_tiled.h"

typedef struct spec {
    uint64_t dims[5], strides[5];
    uint32_t box[5], steps[5];
    emu_tensor_map_args args;
} spec;

/** A valid map of rank 2: f16, 100 × 50, box 64 × 8. */
static void valid_spec(spec *s)
{
    *s = (spec){.dims = {100, 50, 1, 1, 1},
                .strides = {208},
                .box = {64, 8, 1, 1, 1},
                .steps = {1, 1, 1, 1, 1}};
    s->args = (emu_tensor_map_args){.type = EMU_TENSOR_F16,
                                    .rank = 2,
                                    .address = 0x10000,
                                    .dims = s->dims,
                                    .strides = s->strides,
                                    .box = s->box,
                                    .element_strides = s->steps,
                                    .swizzle = EMU_SWIZZLE_128B};
}

static ptxgen_status encode(const spec *s, ptxgen_error *err)
{
    uint8_t map[EMU_TENSOR_MAP_BYTES];
    return emu_tensor_map_encode_tiled(map, &s->args, err);
}

static void encode_accepts_a_valid_map_and_decode_returns_it(void **state)
{
    (void)state;
    spec s;
    uint8_t bytes[EMU_TENSOR_MAP_BYTES];
    emu_tensor_map map;
    valid_spec(&s);
    s.args.oob_fill = 1;
    s.steps[0] = 7; /* ignored by the API */
    s.steps[1] = 2;
    s.dims[1] = (uint64_t)1 << 32;
    assert_int_equal(emu_tensor_map_encode_tiled(bytes, &s.args, NULL), PTXGEN_OK);
    assert_int_equal(emu_tensor_map_decode(bytes, &map, NULL), PTXGEN_OK);
    assert_int_equal(map.type, EMU_TENSOR_F16);
    assert_int_equal(map.rank, 2);
    assert_int_equal(map.swizzle, EMU_SWIZZLE_128B);
    assert_true(map.fill_nan);
    assert_int_equal(map.address, 0x10000);
    assert_int_equal(map.dims[0], 100);
    assert_true(map.dims[1] == (uint64_t)1 << 32);
    assert_int_equal(map.strides[0], 2);
    assert_int_equal(map.strides[1], 208);
    assert_int_equal(map.box[1], 8);
    assert_int_equal(map.element_strides[0], 1);
    assert_int_equal(map.element_strides[1], 2);
    assert_int_equal(emu_tensor_box_bytes(&map), 64 * 2 * 4);
}

#define EXPECT_REFUSED(status, says, change)                                                       \
    do {                                                                                           \
        spec s;                                                                                    \
        ptxgen_error err;                                                                          \
        valid_spec(&s);                                                                            \
        assert_int_equal(encode(&s, &err), PTXGEN_OK);                                             \
        change;                                                                                    \
        assert_int_equal(encode(&s, &err), status);                                                \
        assert_says(&err, says);                                                                   \
    } while (0)

static void encode_refuses_what_the_driver_refuses(void **state)
{
    (void)state;
    const ptxgen_status invalid = PTXGEN_ERROR_INVALID_ARGUMENT;
    const char *kinds = "tensor map: unknown interleave, swizzle, L2 promotion or fill";
    EXPECT_REFUSED(invalid, "tensor map: unknown data type", s.args.type = 16);
    EXPECT_REFUSED(invalid, "tensor map: rank 0 is not 1 to 5", s.args.rank = 0);
    EXPECT_REFUSED(invalid, "tensor map: rank 6 is not 1 to 5", s.args.rank = 6);
    EXPECT_REFUSED(invalid, "global address 0x10008 is not a multiple of 16", s.args.address += 8);
    EXPECT_REFUSED(invalid, "global address 0x0 is not a multiple of 16", s.args.address = 0);
    EXPECT_REFUSED(invalid, "an array of dimensions, strides or the box is NULL",
                   s.args.strides = NULL);
    EXPECT_REFUSED(invalid, "tensor map: globalDim[0] is 0: it must be 1 to 2^32", s.dims[0] = 0);
    EXPECT_REFUSED(invalid, "globalDim[1] is 4294967297: it must be 1 to 2^32",
                   s.dims[1] = ((uint64_t)1 << 32) + 1);
    EXPECT_REFUSED(invalid, "globalStrides[0] is 216: it must be a multiple of 16 below 2^40",
                   s.strides[0] = 216);
    EXPECT_REFUSED(invalid, "globalStrides[0] is 1099511627776: it must be a multiple of 16",
                   s.strides[0] = (uint64_t)1 << 40);
    EXPECT_REFUSED(invalid, "tensor map: boxDim[1] is 0: it must be 1 to 256", s.box[1] = 0);
    EXPECT_REFUSED(invalid, "tensor map: boxDim[1] is 257: it must be 1 to 256", s.box[1] = 257);
    EXPECT_REFUSED(invalid, "the box is 120 bytes wide: it must be a multiple of 16",
                   s.box[0] = 60);
    EXPECT_REFUSED(invalid, "the box is 144 bytes wide, more than the 128-byte swizzle",
                   s.box[0] = 72);
    EXPECT_REFUSED(invalid, "bytes wide, more than the 64-byte swizzle",
                   s.args.swizzle = EMU_SWIZZLE_64B);
    EXPECT_REFUSED(invalid, kinds, s.args.swizzle = 7);
    EXPECT_REFUSED(invalid, "tensor map: elementStrides[1] is 0: it must be 1 to 8",
                   s.steps[1] = 0);
    EXPECT_REFUSED(invalid, "tensor map: elementStrides[1] is 9: it must be 1 to 8",
                   s.steps[1] = 9);
    EXPECT_REFUSED(invalid, kinds, s.args.l2_promotion = 4);
    EXPECT_REFUSED(invalid, kinds, s.args.oob_fill = 2);
    EXPECT_REFUSED(invalid, "tensor map: NaN fill needs a floating-point type",
                   (s.args.oob_fill = 1, s.args.type = EMU_TENSOR_U16));
    EXPECT_REFUSED(invalid, kinds, s.args.interleave = 3);
    EXPECT_REFUSED(PTXGEN_ERROR_UNSUPPORTED, "tensor map: interleaved layouts are not emulated",
                   s.args.interleave = 1);
    EXPECT_REFUSED(PTXGEN_ERROR_UNSUPPORTED,
                   "tensor map: 128-byte swizzles with larger atoms are not emulated",
                   s.args.swizzle = 4);
    EXPECT_REFUSED(PTXGEN_ERROR_UNSUPPORTED,
                   "tensor map: packed 4- and 6-bit types are not emulated", s.args.type = 13);
}

static void decode_refuses_foreign_or_altered_bytes(void **state)
{
    (void)state;
    spec s;
    uint8_t bytes[EMU_TENSOR_MAP_BYTES] = {0};
    emu_tensor_map map;
    assert_int_equal(emu_tensor_map_decode(bytes, &map, NULL), PTXGEN_ERROR_PTX_FAULT);
    valid_spec(&s);
    assert_int_equal(emu_tensor_map_encode_tiled(bytes, &s.args, NULL), PTXGEN_OK);
    for (unsigned i = 0; i < 104; i++) {
        bytes[i] ^= 0x10;
        ptxgen_error err;
        assert_int_equal(emu_tensor_map_decode(bytes, &map, &err), PTXGEN_ERROR_PTX_FAULT);
        assert_says(&err,
                    "the 128 bytes of a tensor map are not what cuTensorMapEncodeTiled wrote");
        bytes[i] ^= 0x10;
    }
    assert_int_equal(emu_tensor_map_decode(bytes, &map, NULL), PTXGEN_OK);
}

/* ---- copies ---- */

/** "Swizzling Modes": where the 16-byte piece `piece` of a 128-byte row goes, by row. */
static const uint8_t PATTERN_32[2][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}};
static const uint8_t PATTERN_64[4][8] = {{0, 1, 2, 3, 4, 5, 6, 7},
                                         {1, 0, 3, 2, 5, 4, 7, 6},
                                         {2, 3, 0, 1, 6, 7, 4, 5},
                                         {3, 2, 1, 0, 7, 6, 5, 4}};
static const uint8_t PATTERN_128[8][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6},
                                          {2, 3, 0, 1, 6, 7, 4, 5}, {3, 2, 1, 0, 7, 6, 5, 4},
                                          {4, 5, 6, 7, 0, 1, 2, 3}, {5, 4, 7, 6, 1, 0, 3, 2},
                                          {6, 7, 4, 5, 2, 3, 0, 1}, {7, 6, 5, 4, 3, 2, 1, 0}};

static uint32_t table_swizzle(uint32_t address, emu_tensor_swizzle mode)
{
    uint32_t row = address / 128, piece = address / 16 % 8, byte = address % 16;
    switch (mode) {
    case EMU_SWIZZLE_32B: piece = PATTERN_32[row % 2][piece]; break;
    case EMU_SWIZZLE_64B: piece = PATTERN_64[row % 4][piece]; break;
    case EMU_SWIZZLE_128B: piece = PATTERN_128[row % 8][piece]; break;
    default: break;
    }
    return row * 128 + piece * 16 + byte;
}

enum { SHARED_BYTES = 1 << 16, NOWHERE = -1, FILL = -2 };

/** For each shared byte: the global byte it pairs with, FILL or NOWHERE. */
typedef struct pairing {
    int64_t global[SHARED_BYTES];
    uint32_t stop_after, visits;
} pairing;

static bool record(void *user, const emu_tensor_segment *segment)
{
    pairing *pairs = user;
    assert_true(segment->bytes > 0 && segment->shared + segment->bytes <= SHARED_BYTES);
    for (uint32_t i = 0; i < segment->bytes; i++) {
        assert_true(pairs->global[segment->shared + i] == NOWHERE); /* every byte once */
        pairs->global[segment->shared + i] =
            segment->out_of_bounds ? FILL : (int64_t)(segment->global + i);
    }
    return ++pairs->visits != pairs->stop_after;
}

static void reset(pairing *pairs)
{
    for (unsigned i = 0; i < SHARED_BYTES; i++)
        pairs->global[i] = NOWHERE;
    pairs->visits = pairs->stop_after = 0;
}

/** Element by element, in the order of "Tiled mode": innermost fastest, rows as wide as a swizzle.
 */
static void slow_walk(const emu_tensor_box *box, pairing *pairs)
{
    const emu_tensor_map *map = box->map;
    static const uint32_t widths[] = {0, 32, 64, 128};
    const uint32_t element = emu_tensor_element_bytes(map->type), width = widths[map->swizzle];
    const uint32_t row = map->box[0] * element, pitch = row > width ? row : width;
    uint32_t counts[5] = {1, 1, 1, 1, 1};
    for (uint32_t i = 0; i < map->rank; i++)
        counts[i] = (map->box[i] + map->element_strides[i] - 1) / map->element_strides[i];
    uint32_t total = counts[0] * counts[1] * counts[2] * counts[3] * counts[4];
    for (uint32_t n = 0; n < total; n++) {
        uint32_t rest = n;
        int64_t global = (int64_t)map->address;
        bool inside = true;
        for (uint32_t i = 0; i < map->rank; i++) {
            int64_t at =
                box->coordinates[i] + (int64_t)(rest % counts[i]) * map->element_strides[i];
            rest /= counts[i];
            inside = inside && at >= 0 && at < (int64_t)map->dims[i];
            global += at * (int64_t)map->strides[i];
        }
        uint32_t at = box->shared + n / counts[0] * pitch + n % counts[0] * element;
        for (uint32_t byte = 0; byte < element; byte++)
            pairs->global[table_swizzle(at + byte, map->swizzle)] = inside ? global + byte : FILL;
    }
}

static void random_map(emu_tensor_map *map)
{
    static const emu_tensor_type types[] = {EMU_TENSOR_U8, EMU_TENSOR_BF16, EMU_TENSOR_F32,
                                            EMU_TENSOR_F64};
    spec s;
    uint8_t bytes[EMU_TENSOR_MAP_BYTES];
    valid_spec(&s);
    s.args.type = types[random_int(0, 3)];
    s.args.rank = (uint32_t)random_int(1, 5);
    s.args.swizzle = (uint32_t)random_int(0, 3);
    const uint32_t element = emu_tensor_element_bytes((emu_tensor_type)s.args.type);
    uint32_t widest = s.args.swizzle == 0 ? 12 : 1u << s.args.swizzle;
    s.box[0] = (uint32_t)random_int(1, (int)widest) * 16 / element;
    if (s.box[0] > 256)
        s.box[0] = 256;
    uint64_t stride = 16;
    for (uint32_t i = 0; i < 5; i++) {
        s.dims[i] = (uint64_t)random_int(1, i == 0 ? 150 : 6);
        if (i > 0) {
            s.box[i] = (uint32_t)random_int(1, 5);
            s.steps[i] = (uint32_t)random_int(1, 3);
        }
        stride = (stride * (i == 0 ? s.dims[0] : s.dims[i]) + 15 + 16) / 16 * 16;
        s.strides[i] = stride;
    }
    assert_int_equal(emu_tensor_map_encode_tiled(bytes, &s.args, NULL), PTXGEN_OK);
    assert_int_equal(emu_tensor_map_decode(bytes, map, NULL), PTXGEN_OK);
}

static void copies_pair_every_byte_as_the_element_walk_does(void **state)
{
    (void)state;
    static pairing fast, slow;
    for (unsigned round = 0; round < 400; round++) {
        emu_tensor_map map;
        random_map(&map);
        emu_tensor_box box = {.map = &map, .shared = 128u * (uint32_t)random_int(0, 9)};
        for (uint32_t i = 0; i < map.rank; i++)
            box.coordinates[i] = random_int(i == 0 ? -40 : -4, (int)map.dims[i] + 3);
        assert_int_equal(emu_tensor_map_check_box(&box, NULL), PTXGEN_OK);
        reset(&fast);
        reset(&slow);
        assert_true(emu_tensor_map_walk(&box, record, &fast));
        slow_walk(&box, &slow);
        assert_memory_equal(fast.global, slow.global, sizeof fast.global);
        uint32_t touched = 0;
        for (unsigned i = 0; i < SHARED_BYTES; i++)
            touched += fast.global[i] != NOWHERE;
        assert_int_equal(touched, emu_tensor_box_bytes(&map));
    }
}

static void extreme_coordinates_are_all_fill(void **state)
{
    (void)state;
    static pairing pairs;
    spec s;
    uint8_t bytes[EMU_TENSOR_MAP_BYTES];
    emu_tensor_map map;
    valid_spec(&s);
    assert_int_equal(emu_tensor_map_encode_tiled(bytes, &s.args, NULL), PTXGEN_OK);
    assert_int_equal(emu_tensor_map_decode(bytes, &map, NULL), PTXGEN_OK);
    static const int32_t far[][2] = {{INT32_MIN, 0}, {INT32_MAX, 0}, {0, INT32_MIN},
                                     {0, INT32_MAX}, {100, 0},       {-64, 49}};
    for (unsigned i = 0; i < 6; i++) {
        emu_tensor_box box = {.map = &map, .coordinates = {far[i][0], far[i][1]}};
        reset(&pairs);
        assert_true(emu_tensor_map_walk(&box, record, &pairs));
        for (unsigned j = 0; j < 64 * 2 * 8; j++)
            assert_true(pairs.global[j] == FILL);
    }
}

static void unswizzled_rows_are_single_segments_and_a_visit_can_stop(void **state)
{
    (void)state;
    static pairing pairs;
    spec s;
    uint8_t bytes[EMU_TENSOR_MAP_BYTES];
    emu_tensor_map map;
    valid_spec(&s);
    s.args.swizzle = EMU_SWIZZLE_NONE;
    assert_int_equal(emu_tensor_map_encode_tiled(bytes, &s.args, NULL), PTXGEN_OK);
    assert_int_equal(emu_tensor_map_decode(bytes, &map, NULL), PTXGEN_OK);
    emu_tensor_box box = {.map = &map};
    reset(&pairs);
    assert_true(emu_tensor_map_walk(&box, record, &pairs));
    assert_int_equal(pairs.visits, 8);
    reset(&pairs);
    pairs.stop_after = 3;
    assert_false(emu_tensor_map_walk(&box, record, &pairs));
    assert_int_equal(pairs.visits, 3);
}

static void boxes_need_shared_addresses_of_128_bytes(void **state)
{
    (void)state;
    emu_tensor_map map = {.rank = 1};
    emu_tensor_box box = {.map = &map, .shared = 0x440};
    ptxgen_error err;
    assert_int_equal(emu_tensor_map_check_box(&box, &err), PTXGEN_ERROR_PTX_FAULT);
    assert_says(&err, "0x440");
}

static void fill_is_zero_or_a_nan_in_each_16_bits(void **state)
{
    (void)state;
    uint8_t out[16];
    emu_tensor_map map = {.type = EMU_TENSOR_F16};
    memset(out, 0x55, sizeof out);
    emu_tensor_map_fill(&map, out, 8);
    assert_memory_equal(out, "\0\0\0\0\0\0\0\0\x55\x55\x55\x55\x55\x55\x55\x55", 16);
    map.fill_nan = true;
    emu_tensor_map_fill(&map, out, 4);
    assert_memory_equal(out, "\xF7\x7F\xF7\x7F\0\0", 6);
    map.type = EMU_TENSOR_F32;
    emu_tensor_map_fill(&map, out, 8);
    assert_memory_equal(out, "\xF7\x7F\xF7\x7F\xF7\x7F\xF7\x7F\x55", 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encode_accepts_a_valid_map_and_decode_returns_it),
        cmocka_unit_test(encode_refuses_what_the_driver_refuses),
        cmocka_unit_test(decode_refuses_foreign_or_altered_bytes),
        cmocka_unit_test(copies_pair_every_byte_as_the_element_walk_does),
        cmocka_unit_test(extreme_coordinates_are_all_fill),
        cmocka_unit_test(unswizzled_rows_are_single_segments_and_a_visit_can_stop),
        cmocka_unit_test(boxes_need_shared_addresses_of_128_bytes),
        cmocka_unit_test(fill_is_zero_or_a_nan_in_each_16_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
