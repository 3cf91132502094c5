/* SPDX-License-Identifier: Apache-2.0 */
/* Constant expressions, and special registers that are vectors. Values are those of ptxas 13.0. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    uint64_t want;
} expressions[] = {
    {"(4 * 8) + 2", 0x22},
    {"(1 << 5) | 0b101", 0x25},
    {"~0", UINT64_MAX},
    {"2 + 3 * 4 << 1", 0x1c},
    {"1 | 2 ^ 3 & 4", 3},
    {"5 - 3 - 1", 1},
    {"100 / 10 / 5", 2},
    {"1 < 2 < 3", 1},
    {"3 > 2 > 1", 0},
    {"0 ? 1 : 0 ? 2 : 3", 3},
    {"1 ? 0 ? 4 : 5 : 6", 5},
    {"- 3 - -4", 1},
    {"-7 / 2", (uint64_t)-3},
    {"-7 % 4", 1},
    {"-7 % -4", (uint64_t)-7},
    {"(-7 % -4) >> 1", 0x7ffffffffffffffc},
    {"-1 >> 1", UINT64_MAX},
    {"-1U >> 1", 0x7fffffffffffffff},
    {"(.u64)-1 >> 60", 0xf},
    {"(.s64)0xFFFFFFFFFFFFFFF8 >> 1", (uint64_t)-4},
    {"1 << 65", 2},
    {"1 << -1", 0x8000000000000000},
    {"(~7) >> 1", 0x7ffffffffffffffc},
    {"(-8 & -1) >> 1", (uint64_t)-4},
    {"(-8 | 1U) >> 1", 0x7ffffffffffffffc},
    {"(1 ? -8 : 0U) >> 1", (uint64_t)-4},
    {"(0 ? 0 : 0xFFFFFFFFFFFFFFF8) >> 1", 0x7ffffffffffffffc},
    {"-1 < 0", 1},
    {"-1 < 0U", 0},
    {"-1 > 1U", 1},
    {"-1 == 18446744073709551615", 1},
    {"(1U < 2) - 2 >> 1", UINT64_MAX},
    {"!5", 0},
    {"1 && 2 || 0", 1},
    {"9223372036854775808 >> 4", 0x0800000000000000},
    {"1.5 < 2.0 ? 7 : 8", 7},
    {"WARP_SZ * 2", 64},
    {"010 + 0x10U", 24},
};
enum { EXPRESSIONS = sizeof expressions / sizeof *expressions };

static void check_values(struct bench *bench, const char *text, const char *where)
{
    uint64_t got[EXPRESSIONS];
    bench_load(bench, text);
    ptxgen_cu_deviceptr out = bench_blank(bench, sizeof got);
    bench_run(bench, "k", 1, 1, (void *[]){&out});
    bench_read(bench, got, out, sizeof got);
    for (int i = 0; i < EXPRESSIONS; i++)
        if (got[i] != expressions[i].want)
            fail_msg("%s, as %s, is %llx; should be %llx", expressions[i].text, where,
                     (unsigned long long)got[i], (unsigned long long)expressions[i].want);
}

#define HEADER ".version 8.0\n.target sm_80\n.address_size 64\n"
#define BEGIN ".visible .entry k(.param .u64 px)\n{\n.reg .u64 %o, %v;\nld.param.u64 %o, [px];\n"

static void constant_expressions_are_operands_and_initial_values(void **state)
{
    (void)state;
    struct bench bench;
    char operands[16384] = HEADER BEGIN, values[16384] = HEADER ".global .u64 g[] = {";
    bench_open(&bench, "cpu:sm_80");
    for (int i = 0; i < EXPRESSIONS; i++) {
        const char *text = expressions[i].text;
        snprintf(operands + strlen(operands), 200,
                 "mov.u64 %%v, %s;\nst.global.u64 [%%o + 8 * %d], %%v;\n", text, i);
        snprintf(values + strlen(values), 200, "%s%s", i ? ", " : "", text);
    }
    strcat(operands, "ret;\n}\n");
    strcat(values, "};\n" BEGIN);
    for (int i = 0; i < EXPRESSIONS; i++)
        snprintf(values + strlen(values), 200,
                 "ld.global.u64 %%v, [g + (%d << 3)];\nst.global.u64 [%%o + %d], %%v;\n", i, 8 * i);
    strcat(values, "ret;\n}\n");
    check_values(&bench, operands, "an operand");
    check_values(&bench, values, "an initial value");
    bench_close(&bench);
}

/* Each operator with each pair of these, with and without blanks around it: what C has for int64_t.
 */
static const int64_t operands[] = {0, 1, 2, 3, 7, 63, 4096};
static const char *const operators[] = {"*",  "/",  "%",  "+",  "-", "<<", ">>", "<",  ">",
                                        "<=", ">=", "==", "!=", "&", "^",  "|",  "&&", "||"};

static int64_t computed(int64_t x, const char *operator, int64_t y)
{
    switch (operator[0] | operator[1] << 8) {
    case '*': return x * y;
    case '/': return x / y;
    case '%': return x % y;
    case '+': return x + y;
    case '-': return x - y;
    case '<' | '<' << 8: return (int64_t)((uint64_t)x << y);
    case '>' | '>' << 8: return x >> y;
    case '<': return x < y;
    case '>': return x > y;
    case '<' | '=' << 8: return x <= y;
    case '>' | '=' << 8: return x >= y;
    case '=' | '=' << 8: return x == y;
    case '!' | '=' << 8: return x != y;
    case '&': return x & y;
    case '^': return x ^ y;
    case '|': return x | y;
    case '&' | '&' << 8: return x && y;
    default: return x || y;
    }
}

static bool is_defined(int64_t x, const char *operator, int64_t y)
{
    bool divides = *operator== '/' || * operator== '%',
         shifts = operator[1] == * operator&&(*operator== '<' || * operator== '>');
    (void)x;
    return !(divides && y == 0) && !(shifts && y > 63);
}

static void every_operator_is_the_one_of_its_sign(void **state)
{
    (void)state;
    enum { OPERANDS = sizeof operands / sizeof *operands };
    for (size_t o = 0; o < sizeof operators / sizeof *operators; o++) {
        char text[16384] = HEADER BEGIN;
        int64_t got[2 * OPERANDS * OPERANDS], want[2 * OPERANDS * OPERANDS];
        size_t count = 0;
        for (size_t i = 0; i < (size_t)OPERANDS * OPERANDS; i++) {
            int64_t x = operands[i / OPERANDS], y = operands[i % OPERANDS];
            for (int blank = 0; blank < 2 && is_defined(x, operators[o], y); blank++) {
                const char *space = blank ? " " : "";
                snprintf(text + strlen(text), 160,
                         "mov.u64 %%v, %lld%s%s%s(%lld);\nst.global.u64 [%%o + %zu], %%v;\n",
                         (long long)x, space, operators[o], space, (long long)y, 8 * count);
                want[count++] = computed(x, operators[o], y);
            }
        }
        strcat(text, "ret;\n}\n");
        struct bench bench;
        bench_open(&bench, "cpu:sm_80");
        bench_load(&bench, text);
        ptxgen_cu_deviceptr out = bench_blank(&bench, sizeof got);
        bench_run(&bench, "k", 1, 1, (void *[]){&out});
        bench_read(&bench, got, out, count * sizeof *got);
        bench_close(&bench);
        for (size_t i = 0; i < count; i++)
            if (got[i] != want[i])
                fail_msg("value %zu of operator %s is %lld; should be %lld", i, operators[o],
                         (long long)got[i], (long long)want[i]);
    }
}

static void doubles_have_their_own_expressions(void **state)
{
    (void)state;
    struct bench bench;
    uint64_t got[4];
    bench_open(&bench, "cpu:sm_80");
    bench_load(&bench, HEADER ".global .f64 g = 1.0 / 3.0;\n.global .b64 h = 0d3FF0000000000000;\n"
                              ".visible .entry k(.param .u64 px)\n{\n.reg .u64 %o; .reg .f64 %d; "
                              ".reg .b64 %b; .reg .f32 %f;\nld.param.u64 %o, [px];\n"
                              "mov.f64 %d, -(1.5) * 2.0;\nst.global.f64 [%o], %d;\n"
                              "ld.global.f64 %d, [g];\nst.global.f64 [%o + 8], %d;\n"
                              "ld.global.b64 %b, [h];\nst.global.b64 [%o + 16], %b;\n"
                              "mov.f32 %f, 1.0 - 0.5 - 0.25;\nst.global.f32 [%o + 24], %f;\n"
                              "st.global.f32 [%o + 28], %f;\nret;\n}\n");
    ptxgen_cu_deviceptr out = bench_blank(&bench, sizeof got);
    bench_run(&bench, "k", 1, 1, (void *[]){&out});
    bench_read(&bench, got, out, sizeof got);
    assert_true(got[0] == 0xc008000000000000);
    assert_true(got[1] == 0x3fd5555555555555);
    assert_true(got[2] == 0x3ff0000000000000);
    assert_true(got[3] == 0x3e8000003e800000);
    bench_close(&bench);
}

static void what_ptxas_refuses_of_expressions_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"mov.u64 %v, 1 / 0", "divides by zero"},
        {"mov.u64 %v, 0 ? 7 % 0 : 2", "divides by zero"},
        {"mov.f64 %d, 1.0 / 0.0", "divides by zero"},
        {"mov.f64 %d, 1.5 + 2", "not both integers or both doubles"},
        {"mov.f32 %f, 0f3F800000 + 1.0", "not both integers or both doubles"},
        {"mov.f64 %d, 1.5 % 2.0", "'%' takes integers"},
        {"mov.u64 %v, !2.5", "'!' takes an integer"},
        {"mov.u64 %v, (.s64)1.5", "a cast takes an integer"},
        {"mov.f64 %d, 1 ? 1.5 : 2.5", "'?:' takes integers"},
        {"mov.u64 %v, 1 >>> 2", "a constant is due here"},
        {"mov.u64 %v, (1 + 2", "')' is due"},
        {"mov.u64 %v, 1 ? 2", "':' is due"},
        {"st.global.u64 [%o + 1.5], %v", "an offset is due, which is an integer"},
        {"mov.u32 %r, %tid", "'%tid' is a vector; one of its components is due, such as %tid.x"},
        {"mov.v2.u32 {%r, %r}, %tid", "4 elements to 2; 2 are due"},
        {"mov.v4.u32 {%r, %r, %r, %r}, %r", "a special register that is one, is due"},
        {"mov.v4.u32 %r, %tid", "a vector in braces"},
        {"mov.v4.u64 {%v, %v, %v, %v}, %tid", "special registers have 32 bits"},
        {"add.u32 %r, -%r, 1", "an operand is due here"},
        {"add.u32 %r, !%r, 1", "'!' stands before a register that is no predicate"},
        {"mov.u32 !%r, 1", "a register that is written has neither '!' nor an offset"},
        {"mov.u32 %r + 4, 1", "a register that is written has neither '!' nor an offset"},
        {"st.global.u32 [!%o], %r", "an address is not negated"},
        {"L: bra L + 4", "'L' is no label"},
        {"mov.u32 %r, %tid.q", "'%tid.q' is not declared"},
    };
    struct bench bench;
    bench_open(&bench, "cpu:sm_80");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s;\nret;\n}\n",
                 HEADER BEGIN ".reg .f64 %d; .reg .f32 %f; .reg .u32 %r;\n", cases[i].text);
        assert_int_equal(bench_try_load(&bench, text), PTXGEN_CUDA_ERROR_INVALID_PTX);
        if (!strstr(bench.log, cases[i].message))
            fail_msg("%s: '%s' lacks '%s'", cases[i].text, bench.log, cases[i].message);
    }
    bench_close(&bench);
}

/* Of a launch of 2 × 3 CTAs of 8 × 4 threads; the fourth component is 0. */
static void special_registers_are_vectors_of_four(void **state)
{
    (void)state;
    enum { THREADS = 2 * 3 * 8 * 4 };
    uint32_t got[THREADS][16];
    struct bench bench;
    bench_open(&bench, "cpu:sm_80");
    bench.grid_y = 3;
    bench.block_y = 4;
    bench_load(&bench, HEADER
               ".visible .entry k(.param .u64 px)\n{\n.reg .u64 %o, %a; .reg .u32 %x, %y, %z, %w, "
               "%t, %u;\n.reg .u16 %h0, %h1, %h2, %h3;\nld.param.u64 %o, [px];\n"
               "mov.u32 %t, %tid.x;\nmov.u32 %u, %tid.g;\nmad.lo.u32 %t, %u, 8, %t;\n"
               "mov.u32 %u, %ctaid.x;\nmad.lo.u32 %t, %u, 32, %t;\n"
               "mov.u32 %u, %ctaid.y;\nmad.lo.u32 %t, %u, 64, %t;\n"
               "mul.wide.u32 %a, %t, 64;\nadd.u64 %o, %o, %a;\n"
               "mov.v4.u32 {%x, %y, %z, %w}, %tid;\nst.global.v4.u32 [%o], {%x, %y, %z, %w};\n"
               "mov.v4.b32 {%x, %y, %z, %w}, %ntid;\nst.global.v4.u32 [%o+16], {%x, %y, %z, %w};\n"
               "mov.v4.u16 {%h0, %h1, %h2, %h3}, %ctaid;\nmov.b32 %x, {%h0, %h1};\n"
               "mov.b32 %y, {%h2, %h3};\nmov.v2.u32 {%y, %x}, {%x, %y};\n"
               "mov.u32 %z, %nctaid.w;\nmov.u32 %w, %nctaid.b;\n"
               "st.global.v4.u32 [%o+32], {%x, %y, %z, %w};\n"
               "mov.v4.u32 {%x, _, %z, _}, %nctaid;\nst.global.v4.u32 [%o+48], {%x, %y, %z, %w};\n"
               "ret;\n}\n");
    ptxgen_cu_deviceptr out = bench_blank(&bench, sizeof got);
    bench_run(&bench, "k", 2, 8, (void *[]){&out});
    bench_read(&bench, got, out, sizeof got);
    for (uint32_t i = 0; i < THREADS; i++) {
        const uint32_t ctas = i / 64 << 16 | i / 32 % 2;
        const uint32_t want[16] = {i % 8, i / 8 % 4, 0, 0, 8, 4,    1, 0,
                                   0,     ctas,      0, 1, 2, ctas, 1, 1};
        if (memcmp(got[i], want, sizeof want) != 0)
            fail_msg("thread %u has other special registers", i);
    }
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_expressions_are_operands_and_initial_values),
        cmocka_unit_test(every_operator_is_the_one_of_its_sign),
        cmocka_unit_test(doubles_have_their_own_expressions),
        cmocka_unit_test(what_ptxas_refuses_of_expressions_is_refused),
        cmocka_unit_test(special_registers_are_vectors_of_four),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
