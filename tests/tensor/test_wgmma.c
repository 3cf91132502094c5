/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma: operands are laid out in a shared memory by the canonical CuTe layouts of the PTX ISA's
 * "Shared Memory Matrix Layout", evaluated as shapes and strides, then by Swizzle<B,4,3>.
 */
#include "tests/status.h"

#include "slow_mma.h"

enum { SHARED_BYTES = 160 * 1024, MAX_N = 256, MAX_K = 64 };

typedef struct shared_memory {
    uint8_t bytes[SHARED_BYTES];
    uint32_t limit; /* addresses from here on cannot be read */
} shared_memory;

static bool read16(void *user, emu_operand operand, uint32_t address, uint8_t out[16])
{
    (void)operand;
    const shared_memory *memory = user;
    assert_int_equal(address % 16, 0);
    if (address + 16 > memory->limit)
        return false;
    memcpy(out, memory->bytes + address, 16);
    return true;
}

/* ---- canonical layouts, in elements ---- */

/** Offset in elements of (mn, k), before swizzling. T elements are 16 bytes; S in 16 bytes. */
static unsigned canonical(unsigned mn, unsigned k, bool mn_major, unsigned S, unsigned T,
                          unsigned lbo, unsigned sbo)
{
    if (!mn_major) { /* ((8,m),(T,2k)) : ((max(S,1)·T,SBO),(1, S ? T : LBO)) */
        unsigned row_stride = S == 0 ? T : S * T, column_stride = S == 0 ? lbo : T;
        return mn % 8 * row_stride + mn / 8 * sbo + k % T + k / T * column_stride;
    }
    if (S == 0) /* ((T,1,m),(8,k)) : ((1,T,SBO),(1T,LBO)) */
        return mn % T + mn / T * sbo + k % 8 * T + k / 8 * lbo;
    /* ((T,S,m),(8,k)) : ((1,T,LBO),(S·T,SBO)) */
    return mn % T + mn / T % S * T + mn / (T * S) * lbo + k % 8 * (S * T) + k / 8 * sbo;
}

/** CuTe's Swizzle<B,4,3> on a byte address. */
static unsigned swizzle(unsigned address, unsigned B)
{
    unsigned yyy = ((1u << B) - 1) << 7;
    return address ^ ((address & yyy) >> 3);
}

typedef struct operand {
    emu_element type;
    unsigned lines, depth; /* M or N, and K as stored */
    bool mn_major;
    unsigned swizzle_bytes;
    unsigned pattern_start; /* from where the swizzle pattern repeats, a multiple of 128 */
    int *matrix;            /* [lines][depth] */
} operand;

/** Writes the matrix at `start`, returns its descriptor. */
static uint64_t store_operand(shared_memory *memory, const operand *from, uint32_t start)
{
    const unsigned bytes = emu_element_bits(from->type) / 8, T = 16 / bytes;
    const unsigned S = from->swizzle_bytes / 16;
    const unsigned B = S == 0 ? 0 : S == 2 ? 1 : S == 4 ? 2 : 3;
    const unsigned span = (S ? S : 1) * T;
    unsigned lbo, sbo; /* in elements; with gaps, so that a mix-up shows */
    if (!from->mn_major) {
        sbo = S ? 8 * span : 16 * T;
        lbo = from->lines / 8 * sbo + 8 * T;
    } else if (S == 0) {
        sbo = 16 * T;
        lbo = (from->lines / T) * 16 * T + 8 * T;
    } else {
        lbo = 8 * span;
        sbo = (from->lines / span + 1) * 8 * span;
    }
    for (unsigned mn = 0; mn < from->lines; mn++) {
        for (unsigned k = 0; k < from->depth; k++) {
            unsigned offset = canonical(mn, k, from->mn_major, S, T, lbo, sbo) * bytes;
            unsigned relative = start + offset - from->pattern_start;
            unsigned address = swizzle(relative, B) + from->pattern_start;
            assert_true(address + bytes <= SHARED_BYTES);
            uint64_t value = element_bits(from->type, from->matrix[mn * from->depth + k]);
            memcpy(memory->bytes + address, &value, bytes);
        }
    }
    emu_matrix_descriptor fields = {
        .start = start,
        .leading = lbo * bytes,
        .stride = sbo * bytes,
        .base_offset = (uint8_t)(from->pattern_start >> 7 & 7),
        .swizzle_bytes = (uint8_t)from->swizzle_bytes,
    };
    return emu_matrix_descriptor_encode(&fields);
}

/* ---- one wgmma against a triple loop ---- */

typedef struct wgmma_case {
    emu_wgmma_op op;
    unsigned swizzle_a, swizzle_b;
    unsigned selector;
    bool scale_d;
} wgmma_case;

static int a[64][MAX_K], dense[64][MAX_K], b[MAX_N][MAX_K], c[64][MAX_N];
static shared_memory memory;
static emu_lanes ra[16], rd[4 * 128], metadata[4];

/** Compressed A, its dense form, and the metadata of each warp. */
static void make_a(const wgmma_case *test, unsigned terms)
{
    memset(dense, 0, sizeof dense);
    memset(metadata, 0, sizeof metadata);
    for (unsigned row = 0; row < 64; row++) {
        for (unsigned i = 0; i < terms; i++)
            a[row][i] = random_element(test->op.a);
        if (!test->op.sparse) {
            memcpy(dense[row], a[row], sizeof dense[row]);
            continue;
        }
        bool tf32 = test->op.a == EMU_TF32, bytes = emu_element_bits(test->op.a) == 8;
        unsigned per_chunk = tf32 ? 1 : 2;
        for (unsigned chunk = 0; chunk < terms / per_chunk; chunk++) {
            unsigned first = (unsigned)random_int(0, 2);
            unsigned second = (unsigned)random_int((int)first + 1, 3);
            if (tf32) {
                first = 2 * (unsigned)random_int(0, 1);
                second = first + 1;
                dense[row][chunk * 2 + first / 2] = a[row][chunk];
            } else {
                dense[row][chunk * 4 + first] = a[row][2 * chunk];
                dense[row][chunk * 4 + second] = a[row][2 * chunk + 1];
            }
            unsigned lane = row % 8 * 4, bit;
            if (bytes) {
                lane += row % 16 / 8 + (chunk >= 8 ? 2 : 0);
                bit = chunk % 8 * 4;
            } else {
                lane += test->selector * 2 + chunk / 4;
                bit = row % 16 / 8 * 16 + chunk % 4 * 4;
            }
            metadata[row / 16].lane[lane] |= (first | second << 2) << bit;
        }
    }
}

/** Figures "WGMMA .m64nNk* register fragment layout for matrix A". */
static void pack_a(emu_element type, unsigned terms)
{
    unsigned bits = emu_element_bits(type), per = 32 / bits;
    memset(ra, 0, sizeof ra);
    for (unsigned thread = 0; thread < 128; thread++) {
        unsigned warp = thread / 32, lane = thread % 32;
        for (unsigned i = 0; i < 4 * per; i++) {
            unsigned row = warp * 16 + lane / 4 + (i / per % 2 ? 8 : 0);
            unsigned k = (i >= 2 * per ? terms / 2 : 0) + lane % 4 * per + i % per;
            put_element(ra + warp * 4, bits, lane, i, element_bits(type, a[row][k]));
        }
    }
}

/** Figures "… for accumulator matrix D": row and column of element i of a thread. */
static unsigned d_row(unsigned thread, unsigned i)
{
    return thread / 32 * 16 + thread % 32 / 4 + (i % 4 >= 2 ? 8 : 0);
}

static unsigned d_column(unsigned thread, unsigned i)
{
    return i / 4 * 8 + thread % 4 * 2 + i % 2;
}

static void check_wgmma(const wgmma_case *test, emu_numerics numerics)
{
    const emu_wgmma_op *op = &test->op;
    const unsigned terms = op->sparse ? op->k / 2u : op->k;
    const unsigned registers = emu_wgmma_registers(op, EMU_OPERAND_D);
    const unsigned d_bits = emu_element_bits(op->d);
    assert_int_equal(emu_wgmma_check(op, NULL), PTXGEN_OK);
    make_a(test, terms);
    pack_a(op->a, terms);
    static int stored_a[64 * MAX_K], stored_b[MAX_N * MAX_K];
    for (unsigned i = 0; i < 64 * terms; i++)
        stored_a[i] = a[i / terms][i % terms];
    for (unsigned i = 0; i < (unsigned)op->n * op->k; i++)
        stored_b[i] = b[i / op->k][i % op->k] = random_element(op->b);
    memory.limit = SHARED_BYTES;
    for (unsigned i = 0; i < SHARED_BYTES; i++)
        memory.bytes[i] = 0x7F; /* NaN, or a number no sum survives */
    const operand from_a = {op->a, 64, terms, op->transpose_a, test->swizzle_a, 0, stored_a};
    const operand from_b = {op->b, op->n, op->k, op->transpose_b, test->swizzle_b, 0, stored_b};
    emu_wgmma_args args = {
        .d = rd,
        .a = ra,
        .a_descriptor = op->a_shared ? store_operand(&memory, &from_a, 2048) : 0,
        .b_descriptor = store_operand(&memory, &from_b, 64 * 1024),
        .scale_d = test->scale_d,
        .metadata = metadata,
        .selector = test->selector,
        .shared = {read16, &memory},
    };
    memset(rd, 0, sizeof rd);
    for (unsigned thread = 0; thread < 128; thread++) {
        for (unsigned i = 0; i < op->n / 2u; i++) {
            int value = c[d_row(thread, i)][d_column(thread, i)] = random_int(-100, 100);
            put_element(rd + thread / 32 * registers, d_bits, thread % 32, i,
                        accumulator_bits(op->d, value));
        }
    }
    ptxgen_error err = {0};
    assert_ok(emu_wgmma(op, numerics, &args, &err), &err);
    for (unsigned thread = 0; thread < 128; thread++) {
        for (unsigned i = 0; i < op->n / 2u; i++) {
            unsigned row = d_row(thread, i), column = d_column(thread, i);
            int sum = 0;
            for (unsigned k = 0; k < op->k; k++)
                sum += dense[row][k] * b[column][k];
            if (op->negate_a != op->negate_b)
                sum = -sum;
            if (test->scale_d)
                sum += c[row][column];
            assert_int_equal(get_element(rd + thread / 32 * registers, d_bits, thread % 32, i),
                             accumulator_bits(op->d, sum));
        }
    }
}

typedef struct type_case {
    emu_element a, b, d;
    unsigned k;
} type_case;

static const type_case TYPES[] = {
    {EMU_F16, EMU_F16, EMU_F32, 16},   {EMU_F16, EMU_F16, EMU_F16, 16},
    {EMU_BF16, EMU_BF16, EMU_F32, 16}, {EMU_TF32, EMU_TF32, EMU_F32, 8},
    {EMU_S8, EMU_U8, EMU_S32, 32},     {EMU_U8, EMU_S8, EMU_S32, 32},
    {EMU_E4M3, EMU_E5M2, EMU_F32, 32}, {EMU_E5M2, EMU_E4M3, EMU_F16, 32},
};

static const unsigned SWIZZLES[] = {0, 32, 64, 128};

static wgmma_case case_of(const type_case *types, unsigned n, bool sparse)
{
    const uint16_t k = (uint16_t)(types->k * (sparse ? 2 : 1));
    return (wgmma_case){
        .op = {WGMMA((uint16_t)n, k, types->d, types->a, types->b), .sparse = sparse},
        .scale_d = true};
}

static void every_type_multiplies_through_every_swizzle(void **state)
{
    (void)state;
    static const unsigned sizes[] = {8, 16, 24, 64, 96, 256};
    for (unsigned t = 0; t < sizeof TYPES / sizeof TYPES[0]; t++) {
        for (unsigned i = 0; i < 24; i++) {
            unsigned n = sizes[i / 4];
            wgmma_case test = case_of(&TYPES[t], n, false);
            test.op.a_shared = true;
            test.swizzle_a = SWIZZLES[(i + i / 4) % 4];
            test.swizzle_b = SWIZZLES[i % 4];
            check_wgmma(&test, i % 2 ? EMU_NUMERICS_HOPPER : EMU_NUMERICS_EXACT);
            test.op.a_shared = false;
            check_wgmma(&test, EMU_NUMERICS_HOPPER);
        }
    }
}

static void halves_can_be_mn_major(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        for (unsigned major = 1; major < 4; major++) {
            /* N 64 is a whole number of every swizzle's width */
            wgmma_case test = case_of(&TYPES[i % 3], 64, i >= 8);
            test.op.a_shared = true;
            test.op.transpose_a = major & 1;
            test.op.transpose_b = major & 2;
            test.swizzle_a = SWIZZLES[i % 4];
            test.swizzle_b = SWIZZLES[i / 4 % 4];
            /* K-major rows of a sparse B are 64 bytes: they need a swizzle that wide, or none */
            if (test.op.sparse && !test.op.transpose_b && test.swizzle_b == 32)
                test.swizzle_b = 0;
            check_wgmma(&test, EMU_NUMERICS_HOPPER);
        }
    }
}

static void sparse_a_meets_the_rows_of_b_that_metadata_names(void **state)
{
    (void)state;
    for (unsigned t = 0; t < sizeof TYPES / sizeof TYPES[0]; t++) {
        bool bytes = emu_element_bits(TYPES[t].a) == 8;
        for (unsigned i = 0; i < 8; i++) {
            wgmma_case test = case_of(&TYPES[t], 32, true);
            test.selector = bytes ? 0 : i & 1;
            test.op.a_shared = i & 2;
            test.swizzle_a = SWIZZLES[i / 2 % 4];
            test.swizzle_b = i & 4 ? 64 : 128;
            check_wgmma(&test, i % 2 ? EMU_NUMERICS_HOPPER : EMU_NUMERICS_EXACT);
        }
    }
}

static void scales_negate_and_drop_the_addend(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        wgmma_case test = case_of(&TYPES[i % 4], 16, false);
        test.op.a_shared = i & 1;
        test.op.negate_a = i & 1;
        test.op.negate_b = i & 2;
        test.scale_d = i & 4;
        test.swizzle_a = test.swizzle_b = 128;
        check_wgmma(&test, EMU_NUMERICS_HOPPER);
    }
    wgmma_case integers = case_of(&TYPES[4], 16, false);
    integers.scale_d = false;
    check_wgmma(&integers, EMU_NUMERICS_HOPPER);
}

static void base_offset_moves_the_swizzle_pattern(void **state)
{
    (void)state;
    static int matrix[8 * 16];
    for (unsigned i = 0; i < 128; i++)
        matrix[i] = (int)(i % 5) - 2;
    for (unsigned rows = 0; rows < 8; rows++) {
        const operand from = {EMU_F16, 8, 16, false, 128, 4096 + rows * 128, matrix};
        memset(memory.bytes, 0, sizeof memory.bytes);
        memory.limit = SHARED_BYTES;
        emu_wgmma_op op = {WGMMA(8, 16, EMU_F32, EMU_F16, EMU_F16)};
        emu_wgmma_args args = {.d = rd,
                               .a = ra,
                               .shared = {read16, &memory},
                               .b_descriptor = store_operand(&memory, &from, 4096 + rows * 128)};
        memset(ra, 0, sizeof ra);
        ra[0].lane[0] = 0x3C00; /* A(0, 0) = 1: row 0 of D is K = 0 of B */
        assert_int_equal(emu_wgmma(&op, EMU_NUMERICS_HOPPER, &args, NULL), PTXGEN_OK);
        for (unsigned column = 0; column < 8; column++)
            assert_int_equal(rd[column % 2].lane[column / 2],
                             element_bits(EMU_F32, matrix[column * 16]));
    }
}

static void descriptor_fields_stand_where_the_isa_table_says(void **state)
{
    (void)state;
    const emu_matrix_descriptor fields = {.start = 0x3FFF0,
                                          .leading = 0x12340,
                                          .stride = 0x400,
                                          .base_offset = 5,
                                          .swizzle_bytes = 64};
    const uint64_t bits = emu_matrix_descriptor_encode(&fields);
    assert_int_equal(bits & 0x3FFF, 0x3FFF);
    assert_int_equal(bits >> 14 & 3, 0);
    assert_int_equal(bits >> 16 & 0x3FFF, 0x1234);
    assert_int_equal(bits >> 32 & 0x3FFF, 0x40);
    assert_int_equal(bits >> 49 & 7, 5);
    assert_int_equal(bits >> 62, 2);
    const emu_matrix_descriptor back = emu_matrix_descriptor_decode(bits);
    assert_int_equal(back.start, fields.start);
    assert_int_equal(back.leading, fields.leading);
    assert_int_equal(back.stride, fields.stride);
    assert_int_equal(back.base_offset, fields.base_offset);
    assert_int_equal(back.swizzle_bytes, fields.swizzle_bytes);
    static const uint8_t modes[] = {0, 128, 64, 32};
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(emu_matrix_descriptor_decode((uint64_t)i << 62).swizzle_bytes, modes[i]);
}

static void refused_shared_reads_are_faults_that_leave_the_accumulators(void **state)
{
    (void)state;
    /* columns 0 … 7 of B can be read and would change D; columns 8 … 15 cannot */
    const emu_wgmma_op op = {WGMMA(16, 16, EMU_F32, EMU_F16, EMU_F16)};
    const emu_matrix_descriptor b_fields = {.leading = 128, .stride = 0x4000};
    emu_wgmma_args args = {.d = rd,
                           .a = ra,
                           .shared = {read16, &memory},
                           .scale_d = true,
                           .b_descriptor = emu_matrix_descriptor_encode(&b_fields)};
    static emu_lanes before[32];
    memory.limit = 0x4000;
    memset(memory.bytes, 0x3C, sizeof memory.bytes);
    memset(ra, 0x3C, sizeof ra);
    memset(rd, 0x11, sizeof rd);
    memcpy(before, rd, sizeof before);
    ptxgen_error err;
    assert_int_equal(emu_wgmma(&op, EMU_NUMERICS_HOPPER, &args, &err), PTXGEN_ERROR_PTX_FAULT);
    assert_says(&err, "leads to shared address 0x4000, which cannot be read");
    assert_memory_equal(rd, before, sizeof before);
    memory.limit = SHARED_BYTES;
    assert_int_equal(emu_wgmma(&op, EMU_NUMERICS_HOPPER, &args, &err), PTXGEN_OK);
    assert_memory_not_equal(rd, before, sizeof before);
}

static void fp8_accumulates_with_13_bits(void **state)
{
    (void)state;
    emu_wgmma_op op = {WGMMA(8, 32, EMU_F32, EMU_E4M3, EMU_E4M3)};
    emu_wgmma_args args = {.d = rd, .a = ra, .shared = {read16, &memory}, .scale_d = true};
    memset(memory.bytes, 0, sizeof memory.bytes);
    memory.limit = SHARED_BYTES;
    memset(ra, 0, sizeof ra);
    memset(rd, 0, sizeof rd);
    const float sum = 1 + 0x1p-14f; /* the addend's 14th bit is lost */
    memcpy(&rd[0].lane[0], &sum, 4);
    assert_int_equal(emu_wgmma(&op, EMU_NUMERICS_HOPPER, &args, NULL), PTXGEN_OK);
    assert_int_equal(rd[0].lane[0], 0x3F800000);
    memcpy(&rd[0].lane[0], &sum, 4);
    assert_int_equal(emu_wgmma(&op, EMU_NUMERICS_EXACT, &args, NULL), PTXGEN_OK);
    assert_memory_equal(&rd[0].lane[0], &sum, 4);
}

static void impossible_operations_are_refused(void **state)
{
    (void)state;
    static const struct {
        emu_wgmma_op op;
        const char *says;
    } bad[] = {
        {{WGMMA(8, 32, EMU_F32, EMU_F16, EMU_F16)},
         "wgmma.m64n8k32: K must be 16 for 16-bit elements"},
        {{WGMMA(12, 16, EMU_F32, EMU_F16, EMU_F16)}, "wgmma: N is 12: it must be a multiple of 8"},
        {{WGMMA(264, 16, EMU_F32, EMU_F16, EMU_F16)},
         "wgmma: N is 264: it must be a multiple of 8 (integers above 32: of 16) up to 256"},
        {{WGMMA(40, 32, EMU_S32, EMU_S8, EMU_S8)}, "wgmma: N is 40: it must be a multiple of 8"},
        {{WGMMA(8, 16, EMU_F16, EMU_BF16, EMU_BF16)},
         "wgmma does not exist with these element types"},
        {{WGMMA(8, 16, EMU_F32, EMU_F16, EMU_BF16)},
         "wgmma does not exist with these element types"},
        {{WGMMA(8, 8, EMU_F32, EMU_TF32, EMU_TF32), .transpose_b = true},
         "wgmma: only .f16 and .bf16 operands can be transposed"},
        {{WGMMA(8, 16, EMU_F32, EMU_F16, EMU_F16), .transpose_a = true},
         "wgmma: A in registers cannot be transposed"},
        {{WGMMA(8, 32, EMU_S32, EMU_S8, EMU_S8), .negate_a = true},
         "wgmma: integer operands cannot be negated"},
        {{WGMMA(8, 16, EMU_F32, EMU_F16, EMU_F16), .satfinite = true},
         "wgmma: .satfinite needs integer elements"},
        {{WGMMA(8, 16, EMU_S32, EMU_S4, EMU_S4)}, "wgmma does not exist with these element types"},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ptxgen_error err;
        assert_int_equal(emu_wgmma_check(&bad[i].op, &err), PTXGEN_ERROR_UNSUPPORTED);
        assert_says(&err, bad[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_multiplies_through_every_swizzle),
        cmocka_unit_test(halves_can_be_mn_major),
        cmocka_unit_test(sparse_a_meets_the_rows_of_b_that_metadata_names),
        cmocka_unit_test(scales_negate_and_drop_the_addend),
        cmocka_unit_test(base_offset_moves_the_swizzle_pattern),
        cmocka_unit_test(descriptor_fields_stand_where_the_isa_table_says),
        cmocka_unit_test(refused_shared_reads_are_faults_that_leave_the_accumulators),
        cmocka_unit_test(fp8_accumulates_with_13_bits),
        cmocka_unit_test(impossible_operations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
