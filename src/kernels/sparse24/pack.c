/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs compressed weights into the order of mma.sp's lanes. In bytes, operand A is the same for
 * all types: of the 32 compressed bytes of a feature that go with 64 bytes of a token, register r
 * of lane 4g + q holds the four bytes from 16·(r / 2) + 4q on, for feature g + 8·(r % 2).
 */
#include "inflate.h"
#include "layout.h"
#include "repack.h"

#include <string.h>

enum { LANES = 32, WORD = 4, PIECE_BYTES_OF_ROW = 32 };

struct packing {
    const ptxgen_sparse24_spec *spec;
    const unsigned char *values;
    struct sparse24_metadata metadata;
};

ptxgen_status ptxgen_sparse24_packed_bytes(const ptxgen_sparse24_spec *spec, size_t *bytes,
                                           ptxgen_error *err)
{
    ptxgen_status status = sparse24_check_spec(spec, err);
    if (status != PTXGEN_OK)
        return status;
    if (!bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "sparse24: bytes is NULL");
    if (sparse24_tier(spec) == 1) {
        size_t dense;
        const ptxgen_sparse24_shape shape = sparse24_shape(spec);
        status = ptxgen_sparse24_dense_bytes(&shape, &dense, err);
        *bytes = sparse24_metadata_offset(spec) + sparse24_metadata_bytes(spec);
        return status;
    }
    uint64_t blocks = sparse24_blocks(spec);
    if (blocks > SIZE_MAX / sparse24_block_bytes(spec))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: a weight of N = %u, K = %u is too large for memory", spec->n,
                           spec->k);
    *bytes = (size_t)blocks * sparse24_block_bytes(spec);
    return PTXGEN_OK;
}

/* Of each feature of a strip: the groups of the block whose positions fall, group i in bit i. */
struct falling {
    uint32_t groups[SPARSE24_STRIP];
};

/* Puts the two values of a group into the order of their columns. */
static void swap_values(unsigned char *group, size_t element)
{
    unsigned char first[2];
    memcpy(first, group, element);
    memmove(group, group + element, element);
    memcpy(group + element, first, element);
}

/*
 * Packs 16 features by 32 compressed bytes from `row` and `byte` on; zeros past the weight's ends.
 */
static void pack_piece(const struct packing *p, const struct falling *falling, size_t row,
                       size_t byte, unsigned char *to)
{
    const size_t element = sparse24_element(p->spec), group_bytes = SPARSE24_KEPT * element;
    size_t row_bytes = (size_t)p->spec->k / 2 * element;
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned r = 0; r < 4; r++) {
            size_t at_row = row + lane / 4 + 8 * (r % 2),
                   at = byte + 16 * (r / 2) + lane % 4 * WORD;
            unsigned char *word = to + (lane * 4 + r) * WORD;
            memset(word, 0, WORD);
            if (at_row >= p->spec->n || at >= row_bytes)
                continue;
            memcpy(word, p->values + at_row * row_bytes + at, WORD);
            const uint32_t groups = falling->groups[at_row % SPARSE24_STRIP];
            for (size_t i = 0; groups && i < WORD; i += group_bytes)
                if (groups >> (at + i) / group_bytes % 32 & 1)
                    swap_values(word + i, element);
        }
}

/* The place, in the lanes' words, of a group of the 64 columns of a tile of 16 features. */
static struct sparse24_lane_slot slot_of(ptxgen_sparse24_type type, unsigned row, unsigned group)
{
    if (type == PTXGEN_SPARSE24_S8)
        return sparse24_lane_slot(type, row, group);
    return sparse24_lane_slot(type, row + group / 8 * SPARSE24_TILE, group % 8);
}

static ptxgen_status pack_metadata(const struct packing *p, size_t row, size_t column,
                                   struct falling *falling, unsigned char *to, ptxgen_error *err)
{
    enum { WORD_GROUPS = SPARSE24_WORD_COLUMNS / SPARSE24_GROUP };
    uint32_t words[LANES][SPARSE24_WORDS][SPARSE24_TILES] = {{{0}}};
    for (unsigned r = 0; r < SPARSE24_STRIP; r++)
        for (unsigned g = 0; g < SPARSE24_STEP / SPARSE24_GROUP; g++) {
            unsigned nibble = SPARSE24_FILLER;
            size_t group = column / SPARSE24_GROUP + g;
            if (row + r < p->spec->n && group < p->spec->k / SPARSE24_GROUP) {
                ptxgen_status status =
                    sparse24_load_group(&p->metadata, row + r, group, &nibble, err);
                if (status != PTXGEN_OK)
                    return status;
            }
            if (sparse24_falls(nibble)) {
                falling->groups[r] |= UINT32_C(1) << g;
                nibble = sparse24_second(nibble) | sparse24_first(nibble) << 2;
            }
            struct sparse24_lane_slot slot =
                slot_of(p->metadata.shape.type, r % SPARSE24_TILE, g % WORD_GROUPS);
            words[slot.lane][g / WORD_GROUPS][r / SPARSE24_TILE] |= (uint32_t)nibble << slot.bit;
        }
    memcpy(to, words, sizeof words);
    return PTXGEN_OK;
}

static ptxgen_status pack_block(const struct packing *p, size_t strip, size_t step,
                                unsigned char *to, ptxgen_error *err)
{
    size_t row = strip * SPARSE24_STRIP, column = step * SPARSE24_STEP;
    struct falling falling = {{0}};
    ptxgen_status status = pack_metadata(p, row, column, &falling,
                                         to + sparse24_pieces(p->spec) * SPARSE24_PIECE, err);
    for (uint32_t i = 0; status == PTXGEN_OK && i < sparse24_mmas(p->spec); i++)
        for (uint32_t t = 0; t < SPARSE24_TILES; t++, to += SPARSE24_PIECE)
            pack_piece(p, &falling, row + t * SPARSE24_TILE,
                       column / 2 * sparse24_element(p->spec) + i * PIECE_BYTES_OF_ROW, to);
    return status;
}

/* For tier 1: copies the compressed values, and stores metadata as bytes. */
static ptxgen_status pack_plain(const struct packing *p, size_t bytes, ptxgen_const_span metadata,
                                unsigned char *to, ptxgen_error *err)
{
    size_t offset = sparse24_metadata_offset(p->spec);
    const ptxgen_span plain = {to + offset, sparse24_metadata_bytes(p->spec)};
    memcpy(to, p->values, bytes);
    memset(to + bytes, 0, offset - bytes);
    return ptxgen_sparse24_convert(&p->metadata.shape, p->metadata.form, metadata,
                                   PTXGEN_SPARSE24_BYTES, plain, err);
}

ptxgen_status ptxgen_sparse24_pack(const ptxgen_sparse24_spec *spec, ptxgen_const_span values,
                                   ptxgen_sparse24_form form, ptxgen_const_span metadata,
                                   ptxgen_span packed, ptxgen_error *err)
{
    size_t bytes, dense;
    ptxgen_status status = ptxgen_sparse24_packed_bytes(spec, &bytes, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_sparse24_shape shape = sparse24_shape(spec);
    const struct packing p = {spec, values.data, {shape, form, metadata.data}};
    struct sparse24_array of_metadata;
    if ((status = ptxgen_sparse24_dense_bytes(&shape, &dense, err)) != PTXGEN_OK ||
        (status = sparse24_describe_metadata(&shape, form, metadata, &of_metadata, err)) !=
            PTXGEN_OK)
        return status;
    const struct sparse24_array arrays[] = {{"values", values.data, values.bytes, dense / 2},
                                            of_metadata,
                                            {"packed", packed.data, packed.bytes, bytes}};
    status = sparse24_check_arrays(arrays, 3, err);
    if (status != PTXGEN_OK || !spec->n || !spec->k)
        return status;
    unsigned char *to = packed.data;
    if (sparse24_tier(spec) == 1)
        return pack_plain(&p, values.bytes, metadata, to, err);
    for (size_t strip = 0; strip < sparse24_strips(spec); strip++)
        for (size_t step = 0; step < sparse24_steps(spec); step++) {
            status = pack_block(&p, strip, step, to, err);
            if (status != PTXGEN_OK)
                return status;
            to += sparse24_block_bytes(spec);
        }
    return PTXGEN_OK;
}

ptxgen_status ptxgen_sparse24_repack_verdict(const ptxgen_sparse24_spec *spec, uint64_t refused,
                                             ptxgen_error *err)
{
    ptxgen_status status = sparse24_check_spec(spec, err);
    if (status != PTXGEN_OK || !refused)
        return status;
    const uint64_t index = SPARSE24_REFUSED_INDEX - (refused >> SPARSE24_REFUSED_BYTE);
    const uint32_t groups = spec->k / SPARSE24_GROUP;
    if (index < (uint64_t)spec->n * groups)
        status = sparse24_check_byte(index / groups, index % groups, refused & 0xFF, err);
    return status != PTXGEN_OK
               ? status
               : ptxgen_fail(
                     err, PTXGEN_ERROR_INVALID_ARGUMENT,
                     "sparse24: 0x%llx is not what a packing of this spec leaves in refused",
                     (unsigned long long)refused);
}
