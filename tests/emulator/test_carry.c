/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CC.CF between every writer and every reader of it (ISA "Extended-Precision Arithmetic"), of both
 * widths and signs, against exact sums and differences in 128 bits. The machine keeps the carry of
 * its adder: after a subtraction CC.CF is 1 where nothing is borrowed.
 */
#include "bench.h"
#include "tests/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;

struct op {
    const char *name;
    bool subtracts, low, high, reads, writes;
};

static const struct op ops[] = {
    {"add.cc", .writes = true},
    {"sub.cc", .subtracts = true, .writes = true},
    {"mad.lo.cc", .low = true, .writes = true},
    {"mad.hi.cc", .high = true, .writes = true},
    {"addc.cc", .reads = true, .writes = true},
    {"subc.cc", .subtracts = true, .reads = true, .writes = true},
    {"madc.lo.cc", .low = true, .reads = true, .writes = true},
    {"madc.hi.cc", .high = true, .reads = true, .writes = true},
    {"addc", .reads = true},
    {"subc", .subtracts = true, .reads = true},
    {"madc.lo", .low = true, .reads = true},
    {"madc.hi", .high = true, .reads = true},
};
enum { OPS = sizeof ops / sizeof *ops, FIRST_READER = 4, WRITERS = 8 };

static const struct type {
    const char *name;
    int bits;
    bool is_signed;
} types[] = {{"u32", 32, false}, {"s32", 32, true}, {"u64", 64, false}, {"s64", 64, true}};
enum { TYPES = sizeof types / sizeof *types };

enum { THREADS = 64, RESULTS = 3 };

/* What a thread begins with: the flag, and three operands for each of the two instructions. */
struct input {
    uint64_t carry, first[3], second[3];
};

/* ---- the model ---- */

static u128 upper_bound(const struct type *t)
{
    return (u128)1 << t->bits;
}

static u128 narrow(const struct type *t, u128 value)
{
    return value & (upper_bound(t) - 1);
}

/* The factor as the mathematical integer that its bits stand for. */
static s128 integer(const struct type *t, uint64_t bits)
{
    u128 value = narrow(t, bits);
    bool negative = t->is_signed && (value >> (t->bits - 1) & 1);
    return (s128)value - (negative ? (s128)upper_bound(t) : 0);
}

static uint64_t model(const struct op *op, const struct type *t, const uint64_t operands[3],
                      bool *flag)
{
    bool in = op->reads ? *flag : op->subtracts;
    u128 x = narrow(t, operands[0]), y = narrow(t, operands[1]);
    if (op->low || op->high) {
        u128 product = (u128)integer(t, operands[0]) * (u128)integer(t, operands[1]);
        x = narrow(t, op->high ? product >> t->bits : product);
        y = narrow(t, operands[2]);
    }
    s128 exact = op->subtracts ? (s128)x - (s128)y - !in : (s128)x + (s128)y + in;
    bool carried = op->subtracts ? exact >= 0 : exact >= (s128)upper_bound(t);
    if (op->writes)
        *flag = carried;
    return (uint64_t)narrow(t, (u128)exact);
}

/* ---- the kernel: all pairs of two types ---- */

static void append_op(char *to, const struct op *op, const struct type *t, const char *target,
                      char registers)
{
    const char *width = t->bits == 64 ? "d" : "r";
    bool three = op->low || op->high;
    char third[20] = "";
    if (three)
        snprintf(third, sizeof third, ", %%%s%c3", width, registers);
    snprintf(to + strlen(to), 120, "%s.%s %%%s%s, %%%s%c1, %%%s%c2%s;\n", op->name, t->name, width,
             target, width, registers, width, registers, third);
}

static void append_store(char *to, const struct type *t, const char *from, size_t at)
{
    if (t->bits == 64)
        snprintf(to + strlen(to), 120, "st.global.u64 [%%out+%zu], %%d%s;\n", 8 * at, from);
    else
        snprintf(to + strlen(to), 120,
                 "cvt.u64.u32 %%wide, %%r%s;\nst.global.u64 [%%out+%zu], %%wide;\n", from, 8 * at);
}

static void append_inputs(char *to)
{
    static const char names[] = "abc";
    for (int set = 0; set < 2; set++)
        for (int i = 1; i <= 3; i++)
            snprintf(to + strlen(to), 120,
                     "ld.global.u64 %%d%c%d, [%%in+%d];\ncvt.u32.u64 %%r%c%d, %%d%c%d;\n",
                     names[set], i, 8 * (3 * set + i), names[set], i, names[set], i);
}

static const struct op *reader_of(int index)
{
    return &ops[FIRST_READER + index];
}

enum { READERS = OPS - FIRST_READER, PAIRS = WRITERS * READERS };

static char *kernel_of(const struct type *wt, const struct type *rt)
{
    char *text = calloc(1, 64 << 10);
    strcpy(text, ".reg .b32 %t, %flag, %ra<4>, %rb<4>, %rx, %ry;\n"
                 ".reg .b64 %out, %in, %wide, %at, %da<4>, %db<4>, %dx, %dy;\n"
                 "ld.param.u64 %out, [px];\nld.param.u64 %in, [py];\nmov.u32 %t, %tid.x;\n");
    snprintf(text + strlen(text), 200,
             "mul.wide.u32 %%at, %%t, %zu;\nadd.u64 %%in, %%in, %%at;\n"
             "mul.wide.u32 %%at, %%t, %d;\nadd.u64 %%out, %%out, %%at;\n"
             "ld.global.u32 %%flag, [%%in];\n",
             sizeof(struct input), 8 * PAIRS * RESULTS);
    append_inputs(text);
    for (int w = 0; w < WRITERS; w++)
        for (int r = 0; r < READERS; r++) {
            size_t at = (size_t)(w * READERS + r) * RESULTS;
            strcat(text, "add.cc.u32 %t, %flag, -1;\n");
            append_op(text, &ops[w], wt, "x", 'a');
            append_op(text, reader_of(r), rt, "y", 'b');
            strcat(text, "addc.u32 %t, 0, 0;\n");
            append_store(text, wt, "x", at);
            append_store(text, rt, "y", at + 1);
            strcat(text, "cvt.u64.u32 %wide, %t;\n");
            snprintf(text + strlen(text), 80, "st.global.u64 [%%out+%zu], %%wide;\n", 8 * (at + 2));
        }
    return text;
}

/* ---- operands ---- */

/* One in two is an edge: carries and borrows turn there. */
static uint64_t draw(struct random *r)
{
    static const uint64_t edges[] = {0,
                                     1,
                                     2,
                                     UINT32_MAX,
                                     (uint64_t)UINT32_MAX + 1,
                                     UINT64_MAX,
                                     UINT64_MAX - 1,
                                     (uint64_t)1 << 63,
                                     (uint64_t)1 << 31,
                                     INT64_MAX,
                                     INT32_MAX};
    uint64_t bits = random_bits(r);
    return bits & 1 ? random_bits(r) : edges[(bits >> 1) % (sizeof edges / sizeof *edges)];
}

static void draw_inputs(struct input inputs[THREADS])
{
    struct random r = {2};
    for (int i = 0; i < THREADS; i++) {
        inputs[i].carry = random_bits(&r) & 1;
        for (int j = 0; j < 3; j++) {
            inputs[i].first[j] = draw(&r);
            inputs[i].second[j] = draw(&r);
        }
        if (i % 4 == 0)
            inputs[i].first[1] = inputs[i].first[0];
        if (i % 8 == 0)
            inputs[i].second[1] = inputs[i].second[0];
    }
}

static void check_thread(const struct type *wt, const struct type *rt, const struct input *input,
                         const uint64_t got[PAIRS][RESULTS])
{
    for (int w = 0; w < WRITERS; w++)
        for (int r = 0; r < READERS; r++) {
            bool flag = input->carry;
            uint64_t want[RESULTS];
            want[0] = model(&ops[w], wt, input->first, &flag);
            want[1] = model(reader_of(r), rt, input->second, &flag);
            want[2] = flag;
            if (memcmp(got[w * READERS + r], want, sizeof want) != 0)
                fail_msg("%s.%s then %s.%s, carry %d in: %llx %llx, carry %llu; should be %llx "
                         "%llx, carry %llu",
                         ops[w].name, wt->name, reader_of(r)->name, rt->name, (int)input->carry,
                         (unsigned long long)got[w * READERS + r][0],
                         (unsigned long long)got[w * READERS + r][1],
                         (unsigned long long)got[w * READERS + r][2], (unsigned long long)want[0],
                         (unsigned long long)want[1], (unsigned long long)want[2]);
        }
}

static void every_writer_of_the_carry_suits_every_reader(void **state)
{
    (void)state;
    static uint64_t got[THREADS][PAIRS][RESULTS];
    struct input inputs[THREADS];
    struct bench bench;
    bench_open(&bench, "cpu:sm_80");
    draw_inputs(inputs);
    ptxgen_cu_deviceptr in = bench_buffer(&bench, inputs, sizeof inputs);
    ptxgen_cu_deviceptr out = bench_blank(&bench, sizeof got);
    for (int w = 0; w < TYPES; w++)
        for (int r = 0; r < TYPES; r++) {
            char *text = kernel_of(&types[w], &types[r]);
            bench_kernel(&bench, "sm_80", ".param .u64 px, .param .u64 py", text);
            free(text);
            bench_run(&bench, "k", 1, THREADS, (void *[]){&out, &in});
            bench_read(&bench, got, out, sizeof got);
            for (int i = 0; i < THREADS; i++)
                check_thread(&types[w], &types[r], &inputs[i], (const uint64_t(*)[RESULTS])got[i]);
        }
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_writer_of_the_carry_suits_every_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
