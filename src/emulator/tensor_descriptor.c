/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_descriptor.h"

#include "tensor_swizzle.h"

enum { ATOM = 16, FIELD_MASK = 0x3FFFF };

static const uint8_t SWIZZLE_BYTES[4] = {0, 128, 64, 32};

static uint64_t encode_field(uint32_t bytes, unsigned at)
{
    return (uint64_t)((bytes & FIELD_MASK) >> 4) << at;
}

static uint32_t decode_field(uint64_t bits, unsigned at)
{
    return (uint32_t)(bits >> at & 0x3FFF) << 4;
}

uint64_t emu_matrix_descriptor_encode(const emu_matrix_descriptor *fields)
{
    uint64_t mode = 0;
    for (unsigned i = 0; i < 4; i++) {
        if (SWIZZLE_BYTES[i] == fields->swizzle_bytes)
            mode = i;
    }
    return encode_field(fields->start, 0) | encode_field(fields->leading, 16) |
           encode_field(fields->stride, 32) | (uint64_t)(fields->base_offset & 7) << 49 |
           mode << 62;
}

emu_matrix_descriptor emu_matrix_descriptor_decode(uint64_t bits)
{
    return (emu_matrix_descriptor){
        .start = decode_field(bits, 0),
        .leading = decode_field(bits, 16),
        .stride = decode_field(bits, 32),
        .base_offset = (uint8_t)(bits >> 49 & 7),
        .swizzle_bytes = SWIZZLE_BYTES[bits >> 62],
    };
}

uint32_t emu_descriptor_atom(const emu_matrix_descriptor *descriptor, bool mn_major, unsigned minor,
                             unsigned major)
{
    const uint32_t width = descriptor->swizzle_bytes;
    uint32_t offset;
    if (!mn_major && width == 0)
        offset = minor / 8 * descriptor->stride + minor % 8 * ATOM + major * descriptor->leading;
    else if (!mn_major)
        offset = minor / 8 * descriptor->stride + minor % 8 * width + major * ATOM;
    else if (width == 0)
        offset = minor / 8 * descriptor->leading + minor % 8 * ATOM + major * descriptor->stride;
    else
        offset = minor / 8 * descriptor->stride + minor % 8 * width +
                 major / (width / ATOM) * descriptor->leading + major % (width / ATOM) * ATOM;
    return emu_swizzle(descriptor->start + offset, width, descriptor->base_offset);
}
