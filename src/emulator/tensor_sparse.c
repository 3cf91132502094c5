/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_sparse.h"

#include <string.h>

#include "tensor_fragment.h"

/** Dense elements that one nibble covers. */
static unsigned chunk_elements(emu_element a)
{
    switch (emu_element_bits(a)) {
    case 32: return 2;
    case 4: return 8;
    default: return 4;
    }
}

static bool row_pair_in_a_lane(emu_element a)
{
    return emu_element_bits(a) >= 16;
}

unsigned emu_sparse_terms(unsigned k)
{
    return k / 2;
}

/** Lanes of a group of four that supply metadata: 1, 2 or 4. */
static unsigned contributors_of(emu_element a, unsigned k)
{
    unsigned chunks = k / chunk_elements(a);
    return chunks / 4; /* eight chunks of two rows fill two lanes, either way */
}

uint32_t emu_sparse_lanes(emu_element a, unsigned k, uint32_t selector)
{
    unsigned contributors = contributors_of(a, k);
    if (selector >= 4 / contributors)
        return 0;
    uint32_t quad = ((1u << contributors) - 1) << selector * contributors;
    return quad * 0x11111111u;
}

/** The nibble of one chunk of one row. */
static unsigned chunk_nibble(emu_element a, unsigned contributors, const emu_lanes *metadata,
                             uint32_t selector, unsigned row, unsigned chunk)
{
    unsigned t = selector * contributors, shift;
    if (row_pair_in_a_lane(a)) {
        t += chunk / 4;
        shift = row / 8 * 16 + chunk % 4 * 4;
    } else {
        t += row / 8 + chunk / 8 * 2;
        shift = chunk % 8 * 4;
    }
    return metadata->lane[row % 8 * 4 + t] >> shift & 0xF;
}

static bool nibble_valid(emu_element a, bool ordered, unsigned nibble)
{
    unsigned first = nibble & 3, second = nibble >> 2;
    if (a == EMU_TF32)
        return nibble == 0x4 || nibble == 0xE;
    return ordered ? first < second : first != second;
}

/** Writes the dense columns of the compressed elements of a chunk. */
static void chunk_columns(emu_element a, unsigned nibble, unsigned chunk, uint8_t *out)
{
    unsigned base = chunk * chunk_elements(a);
    unsigned first = nibble & 3, second = nibble >> 2;
    if (a == EMU_TF32) {
        out[0] = (uint8_t)(base + first / 2);
        return;
    }
    unsigned unit = chunk_elements(a) / 4;
    for (unsigned i = 0; i < unit; i++) {
        out[i] = (uint8_t)(base + first * unit + i);
        out[unit + i] = (uint8_t)(base + second * unit + i);
    }
}

ptxgen_status emu_sparse_columns(emu_element a, unsigned k, bool ordered, const emu_lanes *metadata,
                                 uint32_t selector, uint8_t *out, ptxgen_error *err)
{
    const unsigned contributors = contributors_of(a, k);
    if (selector >= 4 / contributors)
        return ptxgen_fail(err, PTXGEN_ERROR_PTX_FAULT,
                           "sparsity selector %u: with %u lanes of four supplying metadata it "
                           "must be below %u",
                           selector, contributors, 4 / contributors);
    const unsigned chunks = k / chunk_elements(a);
    const unsigned terms = emu_sparse_terms(k);
    for (unsigned row = 0; row < EMU_TILE_ROWS; row++) {
        for (unsigned chunk = 0; chunk < chunks; chunk++) {
            unsigned nibble = chunk_nibble(a, contributors, metadata, selector, row, chunk);
            if (!nibble_valid(a, ordered, nibble))
                return ptxgen_fail(err, PTXGEN_ERROR_PTX_FAULT,
                                   "sparsity metadata 0x%X of row %u, chunk %u has no meaning%s",
                                   nibble, row, chunk,
                                   a == EMU_TF32 ? ": tf32 takes 0x4 or 0xE"
                                   : ordered     ? ": the indices must ascend"
                                                 : ": the indices must differ");
            chunk_columns(a, nibble, chunk, out + row * terms + chunk * (terms / chunks));
        }
    }
    return PTXGEN_OK;
}
