/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metadata that PyTorch wrote in CUTLASS's order, loaded as CUTLASS's kernels load it: the 16
 * bytes of an ldmatrix row are the words of the four lanes of a group. Multiplying by columns
 * of the identity must give back the dense matrix, so this pins the lane maps of mma.sp.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "slow_mma.h"

enum { N = 64, K = 128 };

typedef struct golden_file {
    char *bytes;
    const char *data; /* where the offsets of the header count from */
} golden_file;

static golden_file read_golden(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    golden_file golden = {malloc((size_t)size), NULL};
    assert_non_null(golden.bytes);
    assert_int_equal(fread(golden.bytes, 1, (size_t)size, file), size);
    fclose(file);
    uint64_t header;
    memcpy(&header, golden.bytes, 8);
    golden.data = golden.bytes + 8 + header;
    golden.bytes[7 + header] = 0; /* the header's closing brace: it is now a string */
    return golden;
}

/** Bytes of a tensor of the safetensors file. */
static const void *tensor(const golden_file *golden, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\"", name);
    const char *at = strstr(golden->bytes + 8, key);
    assert_non_null(at);
    at = strstr(at, "data_offsets");
    assert_non_null(at);
    return golden->data + strtoul(strchr(at, '[') + 1, NULL, 10);
}

/** The metadata register of the lanes for 16 rows from `row`, one shape's K from tile `tile`. */
static emu_lanes metadata_of(const uint32_t *words, bool bytes, unsigned row, unsigned tile)
{
    /* one ldmatrix row of four words covers rows g, g + 8 (bytes), and g + 16, g + 24 (halves) */
    emu_lanes lanes;
    unsigned block = bytes ? row / 16 : row / 32;
    unsigned tile_words = bytes ? 2 * N : N;
    for (unsigned lane = 0; lane < 32; lane++)
        lanes.lane[lane] = words[tile * tile_words + block * 32 + lane];
    return lanes;
}

static unsigned element(const void *data, bool bytes, unsigned index)
{
    return bytes ? ((const uint8_t *)data)[index] : ((const uint16_t *)data)[index];
}

/** 16 rows of A from `row`, compressed columns from `first`. */
static void compressed_fragment(const void *data, bool bytes, unsigned row, unsigned first,
                                unsigned terms, emu_lanes a[4])
{
    unsigned bits = bytes ? 8 : 16, per = 32 / bits;
    memset(a, 0, 4 * sizeof *a);
    for (unsigned lane = 0; lane < 32; lane++) {
        for (unsigned i = 0; i < 4 * per; i++) {
            unsigned r = row + lane / 4 + (i / per % 2 ? 8 : 0);
            unsigned c = first + (i >= 2 * per ? terms / 2 : 0) + lane % 4 * per + i % per;
            put_element(a, bits, lane, i, element(data, bytes, r * K / 2 + c));
        }
    }
}

static void check_tile(const golden_file *golden, const char *name, emu_element type, unsigned row,
                       unsigned tile)
{
    const bool bytes = type == EMU_S8;
    const unsigned k = bytes ? 64 : 32, per = bytes ? 4 : 2;
    const emu_element acc = bytes ? EMU_S32 : EMU_F32;
    const emu_mma_op op = {MMA(16, (uint16_t)k, acc, type, type, acc), .sparse = true,
                           .ordered_metadata = true};
    char key[64];
    snprintf(key, sizeof key, "%s.sparse", name);
    emu_lanes a[4], zero[4] = {{{0}}}, d[4];
    compressed_fragment(tensor(golden, key), bytes, row, tile * k / 2, k / 2, a);
    snprintf(key, sizeof key, "%s.meta_cutlass", name);
    emu_lanes metadata = metadata_of(tensor(golden, key), bytes, row, tile);
    snprintf(key, sizeof key, "%s.dense", name);
    const void *dense = tensor(golden, key);
    for (unsigned first = 0; first < k; first += 8) { /* B: the identity's columns from here */
        emu_lanes b[4] = {{{0}}};
        for (unsigned column = 0; column < 8; column++) {
            unsigned at = first + column, lane = column * 4 + at / per % 4;
            b[at / per / 4].lane[lane] |= (uint32_t)element_bits(type, 1) << at % per * (32 / per);
        }
        unsigned selector = bytes ? 0 : row % 32 / 16;
        assert_int_equal(
            emu_mma_sp(&op, EMU_NUMERICS_EXACT, d, a, b, zero, &metadata, selector, NULL),
            PTXGEN_OK);
        for (unsigned i = 0; i < 128; i++) {
            unsigned r = i / 8, c = i % 8;
            uint32_t got = d[r / 8 * 2 + c % 2].lane[r % 8 * 4 + c / 2];
            unsigned value = element(dense, bytes, (row + r) * K + tile * k + first + c);
            if (bytes) {
                assert_int_equal((int32_t)got, (int8_t)value);
                continue;
            }
            float exact = 0;
            if (type == EMU_BF16) {
                uint32_t wide = value << 16;
                memcpy(&exact, &wide, 4);
            } else {
                uint32_t wide = (value & 0x7FFF) << 13;
                memcpy(&exact, &wide, 4);
                exact *= value & 0x8000 ? -0x1p112f : 0x1p112f;
            }
            float product;
            memcpy(&product, &got, 4);
            assert_true(product == exact);
        }
    }
}

static void pytorch_metadata_gives_back_the_dense_matrix(void **state)
{
    (void)state;
    golden_file golden = read_golden(GOLDEN_DIR "/sparse24_torch.safetensors");
    for (unsigned row = 0; row < N; row += 16) {
        for (unsigned tile = 0; tile < K / 64; tile++)
            check_tile(&golden, "s8", EMU_S8, row, tile);
        for (unsigned tile = 0; tile < K / 32; tile++) {
            check_tile(&golden, "f16", EMU_F16, row, tile);
            check_tile(&golden, "bf16", EMU_BF16, row, tile);
        }
    }
    free(golden.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pytorch_metadata_gives_back_the_dense_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
