/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/atomic_op.h"
#include "src/emulator/half.h"

const char *const emu_atomic_names[] = {"and", "or",  "xor", "exch", "cas", "inc",
                                        "dec", "add", "min", "max",  NULL};

bool emu_atomic_allows(enum emu_atomic op, enum emu_type type)
{
    uint32_t bits = emu_types[type].bits;
    char kind = emu_types[type].kind;
    switch (op) {
    case ATOMIC_AND:
    case ATOMIC_OR:
    case ATOMIC_XOR: return kind == 'B' && (bits == 32 || bits == 64);
    case ATOMIC_EXCH: return kind == 'B' && bits >= 32;
    case ATOMIC_CAS: return kind == 'B' && bits >= 16;
    case ATOMIC_INC:
    case ATOMIC_DEC: return type == T_u32;
    case ATOMIC_ADD:
        return (kind == 'U' || kind == 'S' || kind == 'F') && bits >= 16 && type != T_u16 &&
               type != T_s16 && type != T_tf32;
    default:
        return type == T_u32 || type == T_s32 || type == T_u64 || type == T_s64 || type == T_f16 ||
               type == T_bf16 || type == T_f16x2 || type == T_bf16x2;
    }
}

static uint64_t get(const uint8_t bytes[16])
{
    uint64_t value;
    memcpy(&value, bytes, 8);
    return value;
}

static float flushed(float x, bool flush)
{
    uint32_t bits = emu_bits_of(x);
    return flush && (bits & 0x7f800000u) == 0 ? emu_float_of(bits & 0x80000000u) : x;
}

static float real_of(uint16_t bits, bool bf16)
{
    return bf16 ? emu_bf16_to_f32(bits) : emu_f16_to_f32(bits);
}

static uint16_t half_op(enum emu_atomic op, uint16_t x, uint16_t y, bool bf16)
{
    float a = real_of(x, bf16), b = real_of(y, bf16);
    if (op == ATOMIC_ADD)
        return (uint16_t)emu_to_small(emu_add_odd(a, b), bf16 ? &emu_format_bf16 : &emu_format_f16,
                                      SMALL_RN, false);
    if (a != a || b != b)
        return a == a ? x : b == b ? y : 0x7fff;
    bool x_less = a == b ? x >> 15 : a < b;
    return x_less == (op == ATOMIC_MIN) ? x : y;
}

static uint64_t float_op(enum emu_atomic op, enum emu_type type, bool flush, uint64_t x, uint64_t y)
{
    if (type == T_f32)
        return emu_bits_of(flushed(emu_canonical(flushed(emu_float_of((uint32_t)x), flush) +
                                                 flushed(emu_float_of((uint32_t)y), flush)),
                                   flush));
    if (type == T_f64)
        return emu_bits64_of(emu_double_of(x) + emu_double_of(y));
    bool bf16 = type == T_bf16 || type == T_bf16x2;
    uint64_t result = half_op(op, (uint16_t)x, (uint16_t)y, bf16);
    if (emu_types[type].bits == 32)
        result |= (uint64_t)half_op(op, (uint16_t)(x >> 16), (uint16_t)(y >> 16), bf16) << 16;
    return result;
}

static bool less(enum emu_type type, uint64_t x, uint64_t y)
{
    switch (type) {
    case T_u32: return (uint32_t)x < (uint32_t)y;
    case T_s32: return (int32_t)x < (int32_t)y;
    case T_s64: return (int64_t)x < (int64_t)y;
    default: return x < y;
    }
}

static uint64_t integer_op(enum emu_atomic op, enum emu_type type, uint64_t x, uint64_t y)
{
    switch (op) {
    case ATOMIC_AND: return x & y;
    case ATOMIC_OR: return x | y;
    case ATOMIC_XOR: return x ^ y;
    case ATOMIC_INC: return (uint32_t)x >= (uint32_t)y ? 0 : x + 1;
    case ATOMIC_DEC: return (uint32_t)x == 0 || (uint32_t)x > (uint32_t)y ? y : x - 1;
    case ATOMIC_ADD: return x + y;
    case ATOMIC_MIN: return less(type, x, y) ? x : y;
    case ATOMIC_MAX: return less(type, x, y) ? y : x;
    default: return y;
    }
}

void emu_atomic_apply(enum emu_atomic op, enum emu_type type, bool flush, const uint8_t old[16],
                      const uint8_t b[16], const uint8_t c[16], uint8_t result[16])
{
    uint32_t bytes = emu_types[type].bits / 8;
    if (op == ATOMIC_CAS || op == ATOMIC_EXCH) {
        bool replace = op == ATOMIC_EXCH || memcmp(old, b, bytes) == 0;
        memcpy(result, !replace ? old : op == ATOMIC_EXCH ? b : c, 16);
        return;
    }
    uint64_t value = emu_types[type].kind == 'F' ? float_op(op, type, flush, get(old), get(b))
                                                 : integer_op(op, type, get(old), get(b));
    memset(result, 0, 16);
    memcpy(result, &value, 8);
}
