/* SPDX-License-Identifier: Apache-2.0 */
/* What code_of leaves of a text. */
#include "code.h"

#include "tests/status.h"

#include <string.h>

#include <stdio.h>
#include <stdlib.h>

static void assert_same(bool same, const char *a, const char *b)
{
    char *code_a = code_of(a), *code_b = code_of(b);
    assert_non_null(code_a);
    assert_non_null(code_b);
    assert_int_equal(strcmp(code_a, code_b) == 0, same);
    free(code_a);
    free(code_b);
}

#define ENTRY(NAME, X, N, BODY)                                                                    \
    ".visible .entry " NAME "(\n\t.param .u64 " X ",\n\t.param .align 8 .b8 " N "[8]\n)\n{\n" BODY \
    "}\n"

static void names_and_comments_do_not_count(void **state)
{
    (void)state;
    assert_same(true, ENTRY("dense", "x", "n", "\tld.param.u64 %rd1, [x];\n\t// stage\n$L0_for:\n"),
                ENTRY("other", "a", "m", "\tld.param.u64 %rd1, [a];\n\n$L7:\n"));
    assert_same(true, ".shared .align 16 .b8 f$sums[64];\n\tmov.u32 %r1, f$sums+16;\n",
                ".shared .align 16 .b8 g$rows[64];\n\tmov.u32 %r1, g$rows+16;\n");
}

/* A name of another entry's parameter may come again. */
static void parameters_are_those_of_their_entry(void **state)
{
    (void)state;
    const char *load_a = "\tld.param.u64 %rd1, [a];\n", *load_x = "\tld.param.u64 %rd1, [x];\n";
    char one[1024], other[1024];
    snprintf(one, sizeof one, ENTRY("f", "x", "y", "%s") ENTRY("g", "x", "y", "%s$L:\n"),
             load_x, load_x);
    snprintf(other, sizeof other, ENTRY("f", "x", "y", "%s") ENTRY("g", "a", "y", "%s$L:\n"),
             load_x, load_a);
    assert_same(true, one, other);
}

static void instructions_registers_and_which_name_do_count(void **state)
{
    (void)state;
#define BOTH(LINE) ENTRY("f", "x", "y", "\tld.param.u64 " LINE ";\n")
    assert_same(false, BOTH("%rd1, [x]"), BOTH("%rd1, [y]"));
    assert_same(false, BOTH("%rd1, [x]"), BOTH("%rd2, [x]"));
    assert_same(false, BOTH("%rd1, [x]"), BOTH("%rd1, [x+8]"));
    assert_same(false, "\tadd.u32 %r1, %r2, 1;\n", "\tsub.u32 %r1, %r2, 1;\n");
    assert_same(false, "\tbra $L0;\n$L0:\n$L1:\n", "\tbra $L1;\n$L0:\n$L1:\n");
#undef BOTH
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_comments_do_not_count),
        cmocka_unit_test(parameters_are_those_of_their_entry),
        cmocka_unit_test(instructions_registers_and_which_name_do_count),
    };
    return cmocka_run_group_tests_name("the code of a text", tests, NULL, NULL);
}
