/* SPDX-License-Identifier: Apache-2.0 */
/* Which ends of structured blocks belong to which beginnings, in which order. */
#include "support.h"

#include <stdlib.h>

/* ---- every kind of block ---- */

static ptx_block begin_if(ptx_kernel *k, ptx_source s)
{
    return ptx_if_begin(k, s, cta_condition(k), false);
}
static ptx_block begin_unless(ptx_kernel *k, ptx_source s)
{
    return ptx_if_begin(k, s, cta_condition(k), true);
}
static ptx_block begin_else(ptx_kernel *k, ptx_source s)
{
    ptx_block b = begin_if(k, s);
    ptx_if_else_next(&b);
    return b;
}
static void end_both(ptx_block *b)
{
    ptx_if_else_next(b);
    ptx_if_else_next(b);
}
static ptx_block begin_for(ptx_kernel *k, ptx_source s)
{
    ptx_u32 i = ptx_mov_u32(k, ptx_imm_u32(0));
    return ptx_for_begin(k, s, i, ptx_imm_u32(4), ptx_imm_u32(1));
}
static ptx_block begin_loop(ptx_kernel *k, ptx_source s)
{
    ptx_pred p = cta_condition(k);
    ptx_block b = ptx_loop_begin(k, s);
    ptx_loop_break_if_at(&b, s, p, false);
    return b;
}
static ptx_block begin_guard(ptx_kernel *k, ptx_source s)
{
    return ptx_guard_begin(k, s, cta_condition(k), false);
}
static ptx_block begin_guard_not(ptx_kernel *k, ptx_source s)
{
    return ptx_guard_begin(k, s, cta_condition(k), true);
}

enum class { IF, FOR, LOOP, GUARD };

static const struct kind {
    const char *name;
    enum class class;
    ptx_block (*begin)(ptx_kernel *k, ptx_source source);
    void (*end)(ptx_block *block);
} kinds[] = {
    {"if", IF, begin_if, ptx_if_end},
    {"unless", IF, begin_unless, ptx_if_end},
    {"if of an if_else", IF, begin_if, end_both},
    {"else of an if_else", IF, begin_else, ptx_if_else_next},
    {"for", FOR, begin_for, ptx_for_end},
    {"loop", LOOP, begin_loop, ptx_loop_end},
    {"guarded", GUARD, begin_guard, ptx_guard_end},
    {"guarded_not", GUARD, begin_guard_not, ptx_guard_end},
};
enum { KINDS = sizeof kinds / sizeof *kinds };
static const struct { enum class class; void (*end)(ptx_block *); } ends[] = {
    {IF, ptx_if_end}, {IF, ptx_if_else_next}, {FOR, ptx_for_end}, {LOOP, ptx_loop_end},
    {GUARD, ptx_guard_end}};
enum { ENDS = sizeof ends / sizeof *ends };

/* A public function that begins, ends or goes on with a block is in the tables above. */
static void every_function_of_blocks_has_its_row(void **state)
{
    (void)state;
    static const char *const known[] = {"if_begin",   "if_end",    "if_else_next", "for_begin",
                                        "for_end",    "loop_begin", "loop_end",    "guard_begin",
                                        "guard_end",  "loop_break_if_at"};
    FILE *file = fopen(PTX_HEADER, "r");
    assert_non_null(file);
    char line[512];
    size_t found = 0;
    while (fgets(line, sizeof line, file)) {
        char *name = strstr(line, "ptx_block ptx_");
        name = name ? name + 10 : strstr(line, "(ptx_block *") ? strstr(line, "ptx_") : NULL;
        if (!name || !strchr(name, '('))
            continue;
        size_t length = strcspn(name, "(");
        bool listed = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            listed = listed || (strlen(known[i]) + 4 == length &&
                                !strncmp(name + 4, known[i], length - 4));
        if (!listed)
            fail_msg("%.*s is not among the blocks of this test", (int)length, name);
        found++;
    }
    fclose(file);
    assert_int_equal(found, sizeof known / sizeof *known);
}

/* ---- building with them ---- */

static const struct kind *outer, *inner;
static void (*other_end)(ptx_block *);

static ptx_source outer_line(void)
{
    return ptx_source_at("outer.c", 11);
}
static ptx_source inner_line(void)
{
    return ptx_source_at("inner.c", 22);
}
static void emit_something(ptx_kernel *k)
{
    ptx_nanosleep_u32(k, ptx_imm_u32(1));
}

/* The module's sentence, of `build` in one kernel, before and after the kernel's end. */
static ptxgen_status status_of(build_function build, bool ended, ptxgen_error *err)
{
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    ptx_kernel_reqntid(k, 128, 1, 1);
    build(k);
    if (ended)
        ptx_kernel_end(k);
    memset(err, 0, sizeof *err);
    ptxgen_status status = ptx_module_status(m, err);
    ptx_module_destroy(m);
    return status;
}

static void expect(build_function build, bool ended, const char *words, const char *line)
{
    ptxgen_error err;
    ptxgen_status status = status_of(build, ended, &err);
    if (status != PTXGEN_ERROR_STRUCTURE || !strstr(err.message, words) ||
        !strstr(err.message, line))
        fail_msg("%s around %s: %s \"%s\" is not about \"%s\" and \"%s\"", outer->name,
                 inner ? inner->name : "nothing", ptxgen_status_name(status), err.message, words,
                 line);
}

static void expect_good(build_function build)
{
    ptxgen_error err;
    if (status_of(build, true, &err) != PTXGEN_OK)
        fail_msg("%s around %s: %s", outer->name, inner ? inner->name : "nothing", err.message);
}

/* ---- pairs ---- */

static void nest(ptx_kernel *k)
{
    ptx_block a = outer->begin(k, outer_line());
    emit_something(k);
    ptx_block b = inner->begin(k, inner_line());
    emit_something(k);
    inner->end(&b);
    emit_something(k);
    outer->end(&a);
    emit_something(k);
}

static void cross(ptx_kernel *k)
{
    ptx_block a = outer->begin(k, outer_line());
    emit_something(k);
    ptx_block b = inner->begin(k, inner_line());
    emit_something(k);
    outer->end(&a);
    emit_something(k);
    inner->end(&b);
}

static void leave_the_inner_open(ptx_kernel *k)
{
    ptx_block a = outer->begin(k, outer_line());
    inner->begin(k, inner_line());
    emit_something(k);
    outer->end(&a);
}

static void follow(ptx_kernel *k)
{
    ptx_block a = outer->begin(k, outer_line());
    emit_something(k);
    outer->end(&a);
    ptx_block b = inner->begin(k, inner_line());
    emit_something(k);
    inner->end(&b);
}

static void close_the_first_in_the_second(ptx_kernel *k)
{
    ptx_block a = outer->begin(k, outer_line()), kept = a;
    emit_something(k);
    outer->end(&a);
    inner->begin(k, inner_line());
    outer->end(&kept);
}

/* Guards hold no other block; any other block holds any. */
static void blocks_end_in_the_reverse_order_of_their_beginnings(void **state)
{
    (void)state;
    for (outer = kinds; outer < kinds + KINDS; outer++)
        for (inner = kinds; inner < kinds + KINDS; inner++) {
            bool guard = outer->class == GUARD;
            const char *words = guard ? "inside ptx_guarded" : "closed while the one opened at";
            expect_good(follow);
            if (guard)
                expect(nest, false, words, "inner.c:22");
            else
                expect_good(nest);
            expect(cross, false, words, "inner.c:22");
            expect(cross, false, guard ? words : "the block opened at outer.c:11", "inner.c:22");
            expect(leave_the_inner_open, false, words, "inner.c:22");
            expect(close_the_first_in_the_second, false, "the block opened at", "outer.c:11");
        }
}

/* ---- one ---- */

static void leave_open(ptx_kernel *k)
{
    outer->begin(k, outer_line());
    emit_something(k);
}

static void leave_two_open(ptx_kernel *k)
{
    outer->begin(k, outer_line());
    inner->begin(k, inner_line());
}

static void close_twice(ptx_kernel *k)
{
    ptx_block a = outer->begin(k, outer_line());
    outer->end(&a);
    outer->end(&a);
}

static void close_a_copy_too(ptx_kernel *k)
{
    ptx_block a = outer->begin(k, outer_line()), kept = a;
    outer->end(&a);
    outer->end(&kept);
}

static void close_a_copy_within_another(ptx_kernel *k)
{
    ptx_block around = begin_if(k, inner_line()), a = outer->begin(k, outer_line()), kept = a;
    outer->end(&a);
    outer->end(&kept);
    ptx_if_end(&around);
}

static void close_as_another(ptx_kernel *k)
{
    ptx_block a = outer->begin(k, outer_line());
    emit_something(k);
    other_end(&a);
}

static void a_block_is_closed_once_by_the_function_of_its_kind(void **state)
{
    (void)state;
    inner = NULL;
    for (outer = kinds; outer < kinds + KINDS; outer++) {
        expect(leave_open, true, "1 structured blocks were left open", "outer.c:11");
        expect(close_twice, false, "closed twice", "outer.c:11");
        expect(close_a_copy_too, false, "closed twice", "outer.c:11");
        expect(close_a_copy_within_another, false, "closed twice", "outer.c:11");
        for (int i = 0; i < ENDS; i++) {
            other_end = ends[i].end;
            if (ends[i].class != outer->class)
                expect(close_as_another, false, "is closed as a", "outer.c:11");
        }
    }
}

static void the_innermost_of_the_blocks_left_open_is_named(void **state)
{
    (void)state;
    for (outer = kinds; outer < kinds + KINDS; outer++)
        for (inner = kinds; inner < kinds + KINDS; inner++)
            if (outer->class != GUARD)
                expect(leave_two_open, true, "2 structured blocks were left open", "inner.c:22");
}

/* ---- breaks and else ---- */

static void break_from_it(ptx_kernel *k)
{
    ptx_pred p = cta_condition(k);
    ptx_block a = outer->begin(k, outer_line());
    ptx_loop_break_if_at(&a, inner_line(), p, true);
    outer->end(&a);
}

static void break_when_it_has_ended(ptx_kernel *k)
{
    ptx_pred p = cta_condition(k);
    ptx_block a = outer->begin(k, outer_line());
    outer->end(&a);
    ptx_loop_break_if_at(&a, inner_line(), p, false);
}

static void break_from_a_copy_when_it_has_ended(ptx_kernel *k)
{
    ptx_pred p = cta_condition(k);
    ptx_block a = outer->begin(k, outer_line()), kept = a;
    outer->end(&a);
    ptx_loop_break_if_at(&kept, inner_line(), p, false);
}

static void only_loops_that_are_open_are_left_by_a_break(void **state)
{
    (void)state;
    inner = NULL;
    for (outer = kinds; outer < kinds + KINDS; outer++) {
        bool loop = outer->class == FOR || outer->class == LOOP;
        if (loop)
            expect_good(break_from_it);
        else
            expect(break_from_it, false, "which is no loop", "inner.c:22");
        const char *words = loop ? "which has ended" : "which is no loop";
        expect(break_when_it_has_ended, false, words, "inner.c:22");
        expect(break_from_a_copy_when_it_has_ended, false, words, "inner.c:22");
    }
}

static void one_else_too_many(ptx_kernel *k)
{
    ptx_block a = begin_else(k, outer_line());
    ptx_if_else_next(&a);
    ptx_if_else_next(&a);
}

static void else_behind_the_end(ptx_kernel *k)
{
    ptx_block a = begin_if(k, outer_line());
    ptx_if_end(&a);
    ptx_if_else_next(&a);
}

static void an_if_has_one_else_before_its_end(void **state)
{
    (void)state;
    outer = kinds;
    inner = NULL;
    expect(one_else_too_many, false, "closed twice", "outer.c:11");
    expect(else_behind_the_end, false, "closed twice", "outer.c:11");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_function_of_blocks_has_its_row),
        TEST(blocks_end_in_the_reverse_order_of_their_beginnings),
        TEST(a_block_is_closed_once_by_the_function_of_its_kind),
        TEST(the_innermost_of_the_blocks_left_open_is_named),
        TEST(only_loops_that_are_open_are_left_by_a_break),
        TEST(an_if_has_one_else_before_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
