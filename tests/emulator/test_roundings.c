/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cvt to every floating-point format, from every source and by every rounding that the ISA gives
 * it, of both signs: exact values, ties, just above and below, subnormals, overflow. What is right
 * is found among the values of the format, which lie on a line in the order of their codes: the
 * two next to the exact source, of which the rounding says which.
 */
#include "bench.h"
#include "tests/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 2048, THREADS = 128, ROUNDINGS = 5 };

struct format {
    int exponent, fraction; /* bits */
    bool infinity;
    uint64_t largest; /* code */
};

static const struct format f64 = {11, 52, true, 0x7fefffffffffffff};
static const struct format f32 = {8, 23, true, 0x7f7fffff};
static const struct format tf32 = {8, 10, true, 0x3fbff};
static const struct format f16 = {5, 10, true, 0x7bff};
static const struct format bf16 = {8, 7, true, 0x7f7f};
static const struct format e5m2 = {5, 2, true, 0x7b};
static const struct format e4m3 = {4, 3, false, 0x7e};

enum source { F64, F32, F16, BF16, S32, U32, S64, U64 };
static const struct {
    const char *name;
    char letter; /* of the register: h, r, d */
} sources[] = {{"f64", 'd'}, {"f32", 'r'}, {"f16", 'h'}, {"bf16", 'h'},
               {"s32", 'r'}, {"u32", 'r'}, {"s64", 'd'}, {"u64", 'd'}};

static const char *const names[ROUNDINGS] = {"rn", "rz", "rm", "rp", "rna"};
enum { RN = 1, RZ = 2, RM = 4, RP = 8, RNA = 16, ALL = RN | RZ | RM | RP };

struct conversion {
    const char *suffix, *to;
    const struct format *format;
    char letter;
    enum source from;
    unsigned roundings;
    int elements; /* of the result; 2 from two sources, or from one pair */
};

static const struct conversion conversions[] = {
    {"", "f16", &f16, 'h', F32, ALL, 1},
    {"", "f16", &f16, 'h', F64, ALL, 1},
    {"", "f16", &f16, 'h', BF16, ALL, 1},
    {"", "f16", &f16, 'h', S32, ALL, 1},
    {"", "f16", &f16, 'h', U32, ALL, 1},
    {"", "f16", &f16, 'h', S64, ALL, 1},
    {"", "f16", &f16, 'h', U64, ALL, 1},
    {"", "bf16", &bf16, 'h', F32, RN | RZ, 1},
    {"", "bf16", &bf16, 'h', F64, ALL, 1},
    {"", "bf16", &bf16, 'h', F16, ALL, 1},
    {"", "bf16", &bf16, 'h', S32, ALL, 1},
    {"", "bf16", &bf16, 'h', S64, ALL, 1},
    {"", "bf16", &bf16, 'h', U64, ALL, 1},
    {"", "f32", &f32, 'r', F64, ALL, 1},
    {"", "f32", &f32, 'r', S32, ALL, 1},
    {"", "f32", &f32, 'r', U32, ALL, 1},
    {"", "f32", &f32, 'r', S64, ALL, 1},
    {"", "f32", &f32, 'r', U64, ALL, 1},
    {"", "f64", &f64, 'd', S64, ALL, 1},
    {"", "f64", &f64, 'd', U64, ALL, 1},
    {"", "tf32", &tf32, 'r', F32, RN | RZ | RNA, 1},
    {".satfinite", "tf32", &tf32, 'r', F32, RNA, 1},
    {".satfinite", "f16", &f16, 'h', F32, RN | RZ, 1},
    {".satfinite", "bf16", &bf16, 'h', F32, RN | RZ, 1},
    {".relu", "f16", &f16, 'h', F32, RN | RZ, 1},
    {".relu", "bf16", &bf16, 'h', F32, RN | RZ, 1},
    {"", "f16x2", &f16, 'r', F32, RN | RZ, 2},
    {"", "bf16x2", &bf16, 'r', F32, RN | RZ, 2},
    {".relu", "f16x2", &f16, 'r', F32, RN | RZ, 2},
    {".relu", "bf16x2", &bf16, 'r', F32, RN | RZ, 2},
    {".satfinite", "e4m3x2", &e4m3, 'h', F32, RN, 2},
    {".satfinite", "e5m2x2", &e5m2, 'h', F32, RN, 2},
    {".satfinite.relu", "e4m3x2", &e4m3, 'h', F32, RN, 2},
    {".satfinite.relu", "e5m2x2", &e5m2, 'h', F32, RN, 2},
    {".satfinite", "e4m3x2", &e4m3, 'h', F16, RN, 2},
    {".satfinite", "e5m2x2", &e5m2, 'h', F16, RN, 2},
};

/* ---- the model ---- */

/* What a code without its sign stands for; beyond the largest, what would come next. */
static long double value_of(const struct format *f, uint64_t code)
{
    int bias = (1 << (f->exponent - 1)) - 1;
    uint64_t one = (uint64_t)1 << f->fraction, fraction = code & (one - 1);
    int exponent = (int)(code >> f->fraction);
    return exponent ? ldexpl((long double)(one + fraction), exponent - bias - f->fraction)
                    : ldexpl((long double)fraction, 1 - bias - f->fraction);
}

/* The largest code whose value is not above the magnitude. */
static uint64_t code_below(const struct format *f, long double magnitude)
{
    uint64_t low = 0, high = f->largest;
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if (value_of(f, middle) <= magnitude)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static bool goes_up(const struct format *f, uint64_t code, long double magnitude, bool negative,
                    unsigned rounding)
{
    long double below = value_of(f, code), above = value_of(f, code + 1);
    if (magnitude == below || rounding == RZ)
        return false;
    if (rounding == RM || rounding == RP)
        return negative == (rounding == RM);
    long double down = magnitude - below, up = above - magnitude;
    return down > up || (down == up && (rounding == RNA || (code & 1)));
}

static uint64_t model(const struct conversion *c, long double x, bool minus, unsigned rounding)
{
    const struct format *f = c->format;
    if (strstr(c->suffix, ".relu") && minus)
        return 0;
    long double magnitude = fabsl(x);
    uint64_t sign = (uint64_t)minus << (f->exponent + f->fraction);
    bool saturates = strstr(c->suffix, ".satfinite") != NULL;
    if (isinf(x))
        return sign | (f->largest + !saturates);
    uint64_t code = code_below(f, magnitude);
    code += goes_up(f, code, magnitude, minus, rounding);
    if (code > f->largest && saturates)
        code = f->largest;
    return sign | code;
}

/* ---- sources ---- */

static long double source_value(enum source from, uint64_t bits, bool *minus)
{
    const struct format *f = from == F64 ? &f64 : from == F32 ? &f32 : from == F16 ? &f16 : &bf16;
    int64_t integer = from == S32 ? (int32_t)bits : (int64_t)bits;
    if (from >= S32) {
        bool is_signed = from == S32 || from == S64;
        *minus = is_signed && integer < 0;
        return is_signed ? (long double)integer : (long double)bits;
    }
    uint64_t code = bits & (((uint64_t)1 << (f->exponent + f->fraction)) - 1);
    *minus = bits >> (f->exponent + f->fraction) & 1;
    long double magnitude = code > f->largest ? (long double)INFINITY : value_of(f, code);
    return *minus ? -magnitude : magnitude;
}

static uint64_t float_bits(enum source from, double x)
{
    uint64_t bits = 0;
    float narrow = (float)x;
    memcpy(&bits, from == F64 ? (void *)&x : (void *)&narrow, from == F64 ? 8 : 4);
    return bits;
}

/* A source of 16 bits, by its own kind of code, never a NaN. */
static uint64_t draw_short(enum source from, uint64_t r)
{
    const struct format *f = from == F16 ? &f16 : &bf16;
    return (r >> 32 & 1) << 15 | (r & 0x7fff) % (f->largest + 2);
}

/*
 * A value of the format, the middle above it, or a hair off either, of either sign; or what the
 * source's own bits make of chance.
 */
static uint64_t draw(const struct conversion *c, struct random *random)
{
    uint64_t r = random_bits(random), chance = random_bits(random);
    if (c->from == S64 || c->from == U64)
        return r & 1 ? chance >> (r >> 8) % 64 : ((uint64_t)1 << (r >> 8) % 64) + (r >> 16) % 5 - 2;
    if (c->from == S32 || c->from == U32)
        return (uint32_t)(r & 1 ? (uint32_t)chance >> (r >> 8) % 32
                                : (1u << (r >> 8) % 32) + (uint32_t)(r >> 16) % 5 - 2);
    if (c->from == F16 || c->from == BF16)
        return draw_short(c->from, chance);
    uint64_t code = chance % (c->format->largest + 2);
    if (r % 8 == 0)
        code = r % 16 ? c->format->largest - (r >> 8) % 3 : (r >> 8) % 4;
    long double below = value_of(c->format, code), above = value_of(c->format, code + 1);
    double x = (double)(r >> 16 & 1 ? (below + above) / 2 : below);
    uint64_t bits = float_bits(c->from, x) + (r >> 17) % 3;
    bits -= (bits != 0) & (r >> 24);
    uint64_t infinity = c->from == F64 ? f64.largest + 1 : f32.largest + 1;
    bits = bits < infinity ? bits : infinity;
    return bits | (r >> 32 & 1) << (c->from == F64 ? 63 : 31);
}

static void draw_inputs(const struct conversion *c, uint64_t inputs[COUNT])
{
    static const double edges[] = {0.0, -0.0, INFINITY, -INFINITY, 0x1p-149, -0x1p-149};
    struct random random = {7};
    for (int i = 0; i < COUNT; i++)
        inputs[i] = draw(c, &random);
    for (int i = 0; i < 6 && (c->from == F64 || c->from == F32); i++)
        inputs[i] = float_bits(c->from, edges[i]);
}

/* ---- running ---- */

/* Thread i converts input i, or the pair of it and of the one before it from the end. */
static char *kernel_of(const struct conversion *c)
{
    char *text = calloc(1, 8192);
    char letter = sources[c->from].letter;
    int bits = letter == 'h'   ? 16
               : letter == 'r' ? 32
                               : 64,
        from_pair = c->from == F16 && c->elements == 2;
    int used = snprintf(
        text, 8192,
        ".reg .b16 %%h<4>; .reg .b32 %%r<4>, %%t<4>; .reg .b64 %%d<4>, %%a<4>;\n"
        "ld.param.u64 %%a1, [pi]; ld.param.u64 %%a2, [po];\n"
        "mov.u32 %%t1, %%ctaid.x; mov.u32 %%t2, %%tid.x; mad.lo.u32 %%t1, %%t1, %d, %%t2;\n"
        "mul.wide.u32 %%a3, %%t1, 8; sub.u32 %%t2, %d, %%t1;\n"
        "add.u64 %%a3, %%a3, %%a1; ld.global.b%d %%%c1, [%%a3];\n"
        "mul.wide.u32 %%a3, %%t2, 8; add.u64 %%a3, %%a3, %%a1; ld.global.b%d %%%c2, [%%a3];\n"
        "mad.wide.u32 %%a2, %%t1, %d, %%a2;\n",
        THREADS, COUNT - 1, bits, letter, bits, letter, ROUNDINGS * 8);
    if (from_pair)
        used += snprintf(text + used, 8192 - (size_t)used, "mov.b32 %%r1, {%%h2, %%h1};\n");
    for (int r = 0; r < ROUNDINGS; r++) {
        if (!(c->roundings >> r & 1))
            continue;
        char operands[40];
        snprintf(operands, sizeof operands,
                 from_pair          ? "%%r1"
                 : c->elements == 2 ? "%%%c1, %%%c2"
                                    : "%%%c1",
                 letter, letter);
        used += snprintf(text + used, 8192 - (size_t)used,
                         "cvt.%s%s.%s.%s %%%c3, %s;\nst.global.b%d [%%a2+%d], %%%c3;\n", names[r],
                         c->suffix, c->to, from_pair ? "f16x2" : sources[c->from].name, c->letter,
                         operands,
                         c->letter == 'h'   ? 16
                         : c->letter == 'r' ? 32
                                            : 64,
                         r * 8, c->letter);
    }
    return text;
}

static uint64_t expected(const struct conversion *c, const uint64_t inputs[COUNT], int i,
                         unsigned rounding)
{
    bool minus;
    long double x = source_value(c->from, inputs[i], &minus);
    uint64_t result = model(c, x, minus, rounding);
    if (c->format == &tf32)
        return result << 13;
    if (c->elements == 1)
        return result;
    x = source_value(c->from, inputs[COUNT - 1 - i], &minus);
    return result << (1 + c->format->exponent + c->format->fraction) | model(c, x, minus, rounding);
}

static int wrong_results(const struct conversion *c, const uint64_t inputs[COUNT],
                         const uint64_t got[COUNT][ROUNDINGS])
{
    int wrong = 0;
    for (int i = 0; i < COUNT; i++)
        for (int r = 0; r < ROUNDINGS; r++) {
            if (!(c->roundings >> r & 1))
                continue;
            uint64_t want = expected(c, inputs, i, 1u << r);
            if (got[i][r] != want && wrong++ < 3)
                print_error("cvt.%s%s.%s.%s of %llx (and %llx) gives %llx, not %llx\n", names[r],
                            c->suffix, c->to, sources[c->from].name, (unsigned long long)inputs[i],
                            (unsigned long long)inputs[COUNT - 1 - i],
                            (unsigned long long)got[i][r], (unsigned long long)want);
        }
    return wrong;
}

static void conversions_round_to_the_value_that_the_mode_names(void **state)
{
    (void)state;
    static uint64_t inputs[COUNT], got[COUNT][ROUNDINGS];
    struct bench bench;
    int wrong = 0;
    bench_open(&bench, "cpu:sm_90");
    ptxgen_cu_deviceptr in = bench_buffer(&bench, NULL, sizeof inputs);
    ptxgen_cu_deviceptr out = bench_buffer(&bench, NULL, sizeof got);
    for (size_t k = 0; k < sizeof conversions / sizeof *conversions; k++) {
        const struct conversion *c = &conversions[k];
        draw_inputs(c, inputs);
        assert_int_equal(bench.driver.memcpy_htod(in, inputs, sizeof inputs), 0);
        assert_int_equal(bench.driver.memset_d8(out, 0, sizeof got), 0);
        char *text = kernel_of(c);
        bench_kernel(&bench, "sm_90", ".param .u64 pi, .param .u64 po", text);
        free(text);
        bench_run(&bench, "k", COUNT / THREADS, THREADS, (void *[]){&in, &out});
        bench_read(&bench, got, out, sizeof got);
        wrong += wrong_results(c, inputs, (const uint64_t(*)[ROUNDINGS])got);
    }
    assert_int_equal(wrong, 0);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversions_round_to_the_value_that_the_mode_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
