/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which two accesses of the same bytes of shared memory race: every kind with every kind, of two
 * lanes, of two warpgroups, and of two CTAs of a cluster. The first access runs before the second,
 * so that what is reported depends on order alone. Here stand the verdicts a second time, letter
 * by letter, beside those of the emulator's table.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* %r1: thread; %r3: lane; %r7: a value of the thread's own; %r10: the bytes; %r11, %r17: others;
 * %r8, %r9: mbarriers for the first and the second access; %r13: the CTA's rank. */
static const char head[] =
    ".version 8.6\n.target sm_90a\n.address_size 64\n"
    ".visible .entry k(.param .u64 pa)\n{\n"
    ".reg .pred %p<10>; .reg .b32 %r<30>; .reg .b64 %rd<9>; .reg .f32 %f<5>;\n"
    ".shared .align 128 .b8 buf[512];\n.shared .align 128 .b8 more[128];\n"
    ".shared .align 8 .b64 bars[2];\n"
    "ld.param.u64 %rd1, [pa];\nmov.u32 %r1, %tid.x;\nand.b32 %r3, %r1, 31;\n"
    "mov.u32 %r10, buf;\nmov.u32 %r11, more;\nmov.u32 %r8, bars;\nadd.u32 %r9, %r8, 8;\n"
    "mov.u32 %r13, %cluster_ctarank;\nmad.lo.u32 %r7, %r13, 300, %r1;\nadd.u32 %r7, %r7, 7;\n"
    "setp.eq.u32 %p0, %r1, 0;\nadd.u32 %r17, %r11, 64;\n"
    "@%p0 mbarrier.init.shared.b64 [%r8], 1;\n@%p0 mbarrier.init.shared.b64 [%r9], 1;\n"
    "bar.sync 0;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

/* In a kind's text stand ? for the guard of the one lane that accesses, ! for its mbarrier, and #
 * for the state space; `far` is whether it may be of another CTA's memory. */
struct kind {
    const char *name, *text, *wait;
    char letter;
    int scope; /* of strong accesses: 1 the CTA, 2 the cluster or more */
    bool far, of_group;
};

#define GENERIC "cvt.u64.u32 %rd2, %r10;\ncvta.shared.u64 %rd2, %rd2;\n"
#define MET "MET: mbarrier.try_wait.parity.shared.b64 %p6, [%r8], 0;\n@!%p6 bra MET;\n"
#define COUNTED(bytes)                                                                             \
    "?mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [!], " bytes ";\n"
#define BULK "mbarrier::complete_tx::bytes"
#define WGMMA                                                                                      \
    "shr.u32 %r20, %r10, 4;\ncvt.u64.u32 %rd6, %r20;\nwgmma.fence.sync.aligned;\n"                 \
    "setp.ne.b32 %p7, 0, 0;\n"                                                                     \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd6, %rd6, %p7, 1, "    \
    "1, 0, 0;\nwgmma.commit_group.sync.aligned;\n"

static const struct kind kinds[] = {
    {"ld", "?ld#.u32 %r4, [%r10];\n", "", 'R', 0, true, false},
    {"ld.v4", "?ld#.v4.u32 {%r4,%r5,%r6,%r14}, [%r10];\n", "", 'R', 0, true, false},
    {"ld.u8", "?ld#.u8 %r4, [%r10+3];\n", "", 'R', 0, true, false},
    {"generic ld", GENERIC "?ld.u32 %r4, [%rd2];\n", "", 'R', 0, true, false},
    {"ldmatrix", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r10];\n", "", 'R', 0, false,
     false},
    {"ld.relaxed.cta", "?ld.relaxed.cta#.u32 %r4, [%r10];\n", "", 'r', 1, true, false},
    {"ld.relaxed.cluster", "?ld.relaxed.cluster#.u32 %r4, [%r10];\n", "", 'r', 2, true, false},
    {"ld.volatile", "?ld.volatile#.u32 %r4, [%r10];\n", "", 'r', 2, true, false},
    {"st", "?st#.u32 [%r10], %r7;\n", "", 'W', 0, true, false},
    {"st.v2", "?st#.v2.u32 [%r10], {%r7,%r7};\n", "", 'W', 0, true, false},
    {"st.u16", "?st#.u16 [%r10+2], %r7;\n", "", 'W', 0, true, false},
    {"generic st", GENERIC "?st.u32 [%rd2], %r7;\n", "", 'W', 0, true, false},
    {"stmatrix",
     "sub.u32 %r4, %r3, 3;\nand.b32 %r4, %r4, 7;\nmad.lo.u32 %r4, %r4, 16, %r10;\n"
     "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], {%r7};\n",
     "", 'W', 0, false, false},
    {"st.relaxed.cta", "?st.relaxed.cta#.u32 [%r10], %r7;\n", "", 'w', 1, true, false},
    {"st.relaxed.gpu", "?st.relaxed.gpu#.u32 [%r10], %r7;\n", "", 'w', 2, true, false},
    {"st.volatile", "?st.volatile#.u32 [%r10], %r7;\n", "", 'w', 2, true, false},
    {"atom.cta", "?atom.relaxed.cta#.add.u32 %r4, [%r10], %r7;\n", "", 'A', 1, true, false},
    {"atom", "?atom#.add.u32 %r4, [%r10], %r7;\n", "", 'A', 2, true, false},
    {"red", "?red#.add.u32 [%r10], %r7;\n", "", 'A', 2, true, false},
    {"cp.async", "?cp.async.ca.shared.global [%r10], [%rd1], 4;\n", "cp.async.wait_all;\n", 'C', 0,
     false, false},
    {"cp.async.cg", "?cp.async.cg.shared.global [%r10], [%rd1], 16;\n?cp.async.commit_group;\n",
     "cp.async.wait_group 0;\n", 'C', 0, false, false},
    {"bulk load",
     COUNTED("16") "?cp.async.bulk.shared::cluster.global." BULK " [%r10], [%rd1], 16, [!];\n", MET,
     'C', 0, true, false},
    {"bulk copy",
     COUNTED("16") "?cp.async.bulk.shared::cluster.shared::cta." BULK " [%r10], [%r11], 16, [!];\n",
     MET, 'C', 0, true, false},
    {"st.async", COUNTED("4") "?st.async.shared::cluster." BULK ".u32 [%r10], %r7, [!];\n", MET,
     'C', 0, true, false},
    {"bulk store",
     ("?cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10], 16;\n"
      "?cp.async.bulk.commit_group;\n"),
     "?cp.async.bulk.wait_group.read 0;\n", 'B', 0, false, false},
    {"source of a bulk copy",
     COUNTED("16") "?cp.async.bulk.shared::cluster.shared::cta." BULK " [%r17], [%r10], 16, [!];\n",
     MET, 'B', 0, false, false},
    {"wgmma", WGMMA, "wgmma.wait_group.sync.aligned 0;\n", 'G', 0, false, true},
    {"red.async",
     COUNTED("4") "?red.async.relaxed.cluster.shared::cluster." BULK ".add.u32 [%r10], %r7, [!];\n",
     MET, 'X', 2, true, false},
    {"bulk reduction",
     COUNTED("16") "?cp.reduce.async.bulk.shared::cluster.shared::cta." BULK
                   ".add.u32 [%r10], [%r11], 16, [!];\n",
     MET, 'X', 2, true, false},
    {"mbarrier.init", "?mbarrier.init.shared.b64 [%r10], 1;\n",
     "?mbarrier.inval.shared.b64 [%r10];\n", 'O', 0, false, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/*
 * .: no race. o: a race unless ordered. s: the same, but not between accesses that are morally
 * strong. w: a fault until the first one is waited for, or its mbarrier is invalidated; then as in
 * the row below it.
 */
enum {
    READ,
    STRONG_READ,
    WRITE,
    STRONG_WRITE,
    ATOMIC,
    COPY,
    SOURCE,
    WGMMA_READ,
    REDUCTION,
    OBJECT
};
static const char letters[] = "RrWwACBGXO";
static const char *const verdicts[] = {
    /* second:        RrWwACBGXO */
    [READ] = /*      */ "..oooo..oo", [STRONG_READ] = /* */ "..osso..so",
    [WRITE] = /*     */ "oooooooooo", [STRONG_WRITE] = /**/ "osossoooso",
    [ATOMIC] = /*    */ "osossoooso", [COPY] = /*      */ "wwwwwwwwww",
    [SOURCE] = /*    */ "..wwww..ww", [WGMMA_READ] = /**/ "..wwww..ww",
    [REDUCTION] = /* */ "wwwwwwwwsw", [OBJECT] = /*    */ "wwwwwwwwww"};

/* The row of a first access that is waited for. */
static const uint8_t after_wait[] = {
    [READ] = READ,     [STRONG_READ] = STRONG_READ,   [WRITE] = WRITE,
    [ATOMIC] = ATOMIC, [STRONG_WRITE] = STRONG_WRITE, [COPY] = WRITE,
    [SOURCE] = READ,   [WGMMA_READ] = READ,           [REDUCTION] = ATOMIC,
    [OBJECT] = WRITE};

static uint32_t row_of(const struct kind *kind)
{
    return (uint32_t)(strchr(letters, kind->letter) - letters);
}

static bool writes(const struct kind *kind)
{
    return strchr("WwACXO", kind->letter);
}

/* ---- programs ---- */

enum distance { LANES, WARPGROUPS, CTAS, CTAS_BACK, DISTANCES };
static const char *const distances[] = {"two lanes", "two warpgroups", "two CTAs",
                                        "two CTAs, the first from afar"};
enum order { UNORDERED, ORDERED, ORDERED_UNWAITED, ORDERS };
static const char *const orders[] = {"unordered", "ordered", "not waited for"};

static void put(char *text, const char *body, const char *guard, const char *mbarrier,
                const char *space)
{
    char *to = text + strlen(text);
    for (; *body; body++) {
        const char *with = *body == '?'   ? guard
                           : *body == '!' ? mbarrier
                           : *body == '#' ? space
                                          : NULL;
        if (*body == '!' && body[1] == '%')
            with = NULL; /* a negated guard */
        if (with)
            to += sprintf(to, "%s", with);
        else
            *to++ = *body;
    }
    *to = '\0';
}

#define MAPPED(rank)                                                                               \
    "mapa.shared::cluster.u32 %r10, %r10, " rank ";\nmapa.shared::cluster.u32 %r8, %r8, " rank     \
    ";\nmapa.shared::cluster.u32 %r9, %r9, " rank ";\n"
#define LATER                                                                                      \
    "mov.u32 %r15, 40;\nLATER: nanosleep.u32 20;\nsub.u32 %r15, %r15, 1;\n"                        \
    "setp.ne.u32 %p8, %r15, 0;\n@%p8 bra LATER;\n"
#define CLUSTER_MEETS "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"

struct cell {
    const struct kind *first, *second;
    enum distance distance;
    enum order order;
};

/* Which threads come first and second, and how they meet. */
static const struct {
    const char *start, *before_second, *meets, *end;
} shapes[] = {
    [LANES] = {"setp.ne.u32 %p2, %r13, 0;\n@%p2 exit;\nsetp.gt.u32 %p2, %r1, 31;\n@%p2 "
               "exit;\nsetp.eq.u32 %p1, %r3, 0;\n"
               "setp.eq.u32 %p4, %r3, 1;\n",
               "", "bar.warp.sync -1;\n", ""},
    [WARPGROUPS] = {"setp.ne.u32 %p2, %r13, 0;\n@%p2 exit;\nsetp.eq.u32 %p1, %r3, 0;\n"
                    "mov.pred %p4, %p1;\nshr.u32 %r12, %r1, 7;\nsetp.ne.u32 %p2, %r12, 0;\n"
                    "@%p2 bra SECOND;\n",
                    "bra END;\nSECOND:\n" LATER, "bar.sync 0;\n", "bar.sync 0;\n"},
    [CTAS] = {"setp.eq.u32 %p1, %r3, 0;\nmov.pred %p4, %p1;\nsetp.ne.u32 %p2, %r13, 0;\n"
              "@%p2 bra SECOND;\n",
              "bra END;\nSECOND:\n" MAPPED("0") LATER, CLUSTER_MEETS, CLUSTER_MEETS},
    [CTAS_BACK] = {"setp.eq.u32 %p1, %r3, 0;\nmov.pred %p4, %p1;\nsetp.ne.u32 %p2, %r13, 0;\n"
                   "@%p2 bra SECOND;\n" MAPPED("1"),
                   "bra END;\nSECOND:\n" LATER, CLUSTER_MEETS, CLUSTER_MEETS},
};

/* One warp of a warpgroup accesses, unless the access is the whole group's. */
static void put_access(char *text, const struct kind *kind, bool second, const char *label,
                       const struct cell *cell)
{
    bool far = cell->distance == (second ? CTAS : CTAS_BACK);
    const char *guard = second ? "@%p4 " : "@%p1 ", *mbarrier = second ? "%r9" : "%r8";
    const char *space = far ? ".shared::cluster" : ".shared";
    if (second)
        strcat(text, "add.u32 %r17, %r17, 16;\n");
    if (!kind->of_group)
        sprintf(text + strlen(text),
                "and.b32 %%r16, %%r1, 127;\nsetp.ge.u32 %%p3, %%r16, 32;\n@%%p3 bra %s;\n", label);
    put(text, kind->text, guard, mbarrier, space);
    if (!second && cell->order != ORDERED_UNWAITED)
        put(text, kind->wait, guard, mbarrier, space);
    sprintf(text + strlen(text), "%s:\n", label);
}

static char *program(const struct cell *cell)
{
    char *text = malloc(8192);
    const char *meets = cell->order == UNORDERED ? "" : shapes[cell->distance].meets;
    strcpy(text, head);
    strcat(text, shapes[cell->distance].start);
    put_access(text, cell->first, false, "DONE", cell);
    if (cell->distance != LANES)
        strcat(text, meets);
    strcat(text, shapes[cell->distance].before_second);
    strcat(text, meets);
    put_access(text, cell->second, true, "END", cell);
    strcat(text, shapes[cell->distance].end);
    strcat(text, "ret;\n}\n");
    return text;
}

/* Only what is looked at here. */
static const uint32_t looked_at = PTXGEN_CHECK_RACES | PTXGEN_CHECK_WARP_RACES |
                                  PTXGEN_CHECK_ASYNC | PTXGEN_CHECK_BARRIERS |
                                  PTXGEN_CHECK_EQUAL_STORES | PTXGEN_CHECK_SHARED_BUFFERS;

/* Two CTAs of two warpgroups, or of one where two CTAs access. */
static ptxgen_emulator_fault run(struct bench *bench, const struct cell *cell, uint32_t disabled)
{
    char *text = program(cell);
    bench_options(
        bench, &(ptxgen_emulator_options){.disabled_checks = ~looked_at | disabled, .workers = 1});
    bench_load(bench, text);
    free(text);
    bench->cluster = 2;
    ptxgen_cu_result result = bench_launch(bench, "k", 2, cell->distance < CTAS ? 256 : 128,
                                           (void *[]){&bench->buffers[0]});
    ptxgen_emulator_fault fault = bench_fault(bench);
    assert_int_equal(result != PTXGEN_CUDA_SUCCESS, fault.check != PTXGEN_CHECK_NONE);
    ptxgen_emulator_clear_fault(bench->context);
    if (strstr(fault.message, "exits while")) /* the second access is never waited for */
        fault = (ptxgen_emulator_fault){.check = PTXGEN_CHECK_NONE};
    return fault;
}

static void open_with_words(struct bench *bench)
{
    static const uint32_t words[1024];
    bench_open(bench, "cpu:sm_90");
    bench_buffer(bench, words, sizeof words);
}

/* ---- verdicts ---- */

static bool possible(const struct cell *cell)
{
    const struct kind *first = cell->first, *second = cell->second;
    bool counted = strstr(first->wait, "MET");
    if (cell->order == ORDERED_UNWAITED && !*first->wait)
        return false;
    switch (cell->distance) {
    case LANES: /* an mbarrier that is waited for orders the whole warp; a lane has its own row */
        return !first->of_group && !second->of_group &&
               (!counted || cell->order == ORDERED_UNWAITED) &&
               !(strcmp(first->name, "stmatrix") == 0 && first == second);
    case CTAS: return second->far;
    case CTAS_BACK: return first->far && !*first->wait;
    default: return true;
    }
}

/* What is said of a fault while the first access is under way. */
static void say_unwaited(const struct cell *cell, char *wanted)
{
    bool reads = strchr("RrABGX", cell->second->letter);
    const char *does = reads ? "read" : "written";
    switch (cell->first->letter) {
    case 'G':
        strcpy(wanted, "race in shared memory: this write follows a read by a wgmma that is not "
                       "waited for, of thread (0,0,0)");
        break;
    case 'O':
        sprintf(wanted,
                "shared memory that holds an mbarrier object is %s: mbarrier.inval is "
                "missing",
                does);
        break;
    default:
        sprintf(wanted,
                "shared memory is %s while an asynchronous %s it is under way: its wait is missing",
                cell->first->letter == 'B' ? "written" : does,
                cell->first->letter == 'B'   ? "copy out of"
                : cell->first->letter == 'X' ? "reduction into"
                                             : "copy into");
    }
}

/* The verdict of the table: the check that fails, and what it says, at the end too. */
static ptxgen_emulator_check want(const struct cell *cell, char *wanted, const char **end)
{
    const struct kind *first = cell->first, *second = cell->second;
    uint32_t row = row_of(first), column = row_of(second);
    bool far = cell->distance >= CTAS;
    bool reach = !far || (first->scope > 1 && second->scope > 1);
    *wanted = '\0';
    *end = "";
    if (cell->order == ORDERED_UNWAITED) {
        if (verdicts[row][column] != 'w')
            return PTXGEN_CHECK_NONE;
        say_unwaited(cell, wanted);
        return first->letter == 'G'   ? PTXGEN_CHECK_RACES
               : first->letter == 'O' ? PTXGEN_CHECK_BARRIERS
                                      : PTXGEN_CHECK_ASYNC;
    }
    char verdict = verdicts[after_wait[row]][column];
    if (cell->order == ORDERED || verdict == '.' || (verdict == 's' && reach))
        return PTXGEN_CHECK_NONE;
    sprintf(wanted, "race in shared memory: this %s follows a %s by thread (",
            writes(second) ? "write" : "read", writes(first) ? "write" : "read");
    *end = verdict == 'o' ? " without a barrier between them"
                          : "; both are strong, but the scope of one does not include the other's "
                            "thread";
    return cell->distance == LANES ? PTXGEN_CHECK_WARP_RACES : PTXGEN_CHECK_RACES;
}

static int compare(struct bench *bench, const struct cell *cell)
{
    char wanted[400];
    const char *end;
    if (!possible(cell))
        return 0;
    ptxgen_emulator_check check = want(cell, wanted, &end);
    ptxgen_emulator_fault fault = run(bench, cell, 0);
    size_t length = strlen(fault.message), tail = strlen(end);
    if (fault.check == check && strstr(fault.message, wanted) && length >= tail &&
        strcmp(fault.message + length - tail, end) == 0)
        return 0;
    print_error("%s, then %s, %s, %s: want '%s', got '%s'\n", cell->first->name, cell->second->name,
                distances[cell->distance], orders[cell->order], wanted, fault.message);
    return 1;
}

static void every_two_kinds(enum distance distance)
{
    struct bench bench;
    int wrong = 0;
    open_with_words(&bench);
    for (uint32_t a = 0; a < KINDS; a++)
        for (uint32_t b = 0; b < KINDS; b++)
            for (int order = 0; order < ORDERS; order++)
                wrong += compare(&bench,
                                 &(struct cell){&kinds[a], &kinds[b], distance, (enum order)order});
    bench_close(&bench);
    assert_int_equal(wrong, 0);
}

static void every_two_kinds_of_two_lanes_have_their_verdict(void **state)
{
    (void)state;
    every_two_kinds(LANES);
}

static void every_two_kinds_of_two_warpgroups_have_their_verdict(void **state)
{
    (void)state;
    every_two_kinds(WARPGROUPS);
}

static void every_two_kinds_of_two_ctas_have_their_verdict(void **state)
{
    (void)state;
    every_two_kinds(CTAS);
    every_two_kinds(CTAS_BACK);
}

/* ---- strong accesses that overlap in part ---- */

static void strong_accesses_of_other_bytes_race(void **state)
{
    static const struct kind
        whole = {"", "?st.relaxed.cta.shared.u32 [%r10], %r7;\n", "", 'w', 1, true, false},
        half = {"", "?ld.relaxed.cta.shared.u16 %r4, [%r10+2];\n", "", 'r', 1, true, false},
        halves = {"",
                  "?st.relaxed.cta.shared.u16 [%r10], %r7;\n"
                  "?st.relaxed.cta.shared.u16 [%r10+2], %r7;\n",
                  "",
                  'w',
                  1,
                  true,
                  false};
    struct bench bench;
    (void)state;
    open_with_words(&bench);
    ptxgen_emulator_fault fault =
        run(&bench, &(struct cell){&whole, &half, WARPGROUPS, UNORDERED}, 0);
    assert_int_equal(fault.check, PTXGEN_CHECK_RACES);
    assert_non_null(strstr(fault.message, "; both are strong, but do not overlap completely"));
    fault = run(&bench, &(struct cell){&halves, &half, WARPGROUPS, UNORDERED}, 0);
    assert_string_equal(fault.message, "");
    bench_close(&bench);
}

/* ---- stores of one value ---- */

#define SAME "mov.u32 %r7, 5;\n"
static const struct kind equal[] = {
    {"st", SAME "?st#.u32 [%r10], %r7;\n", "", 'W', 0, true, false},
    {"st.u8", SAME "?st#.u8 [%r10], %r7;\n", "", 'W', 0, true, false},
    {"st.v4", SAME "mov.u32 %r18, 0;\n?st#.v4.u32 [%r10], {%r7,%r18,%r18,%r18};\n", "", 'W', 0,
     true, false},
    {"generic st", SAME GENERIC "?st.u32 [%rd2], %r7;\n", "", 'W', 0, true, false},
};

static int stores_race(struct bench *bench, const struct cell *cell)
{
    static const char suffix[] =
        " without a barrier between them; it stores what is there, which does not make it ordered";
    ptxgen_emulator_fault fault = run(bench, cell, 0);
    ptxgen_emulator_fault allowed = run(bench, cell, PTXGEN_CHECK_EQUAL_STORES);
    bool race = cell->order == UNORDERED;
    if (fault.check == (race ? PTXGEN_CHECK_EQUAL_STORES : PTXGEN_CHECK_NONE) &&
        allowed.check == PTXGEN_CHECK_NONE &&
        (!race || (strstr(fault.message, "race in shared memory: this write follows a write by "
                                         "thread (0,0,0)") &&
                   strstr(fault.message, suffix))))
        return 0;
    print_error("%s, then %s, %s, %s: '%s', '%s'\n", cell->first->name, cell->second->name,
                distances[cell->distance], orders[cell->order], fault.message, allowed.message);
    return 1;
}

static void equal_stores_race_unless_that_is_allowed(void **state)
{
    enum { STORES = sizeof equal / sizeof *equal };
    struct bench bench;
    int wrong = 0;
    (void)state;
    open_with_words(&bench);
    for (uint32_t a = 0; a < STORES; a++)
        for (uint32_t b = 0; b < STORES; b++)
            for (int distance = LANES; distance < DISTANCES; distance++)
                for (int order = UNORDERED; order <= ORDERED; order++)
                    wrong += stores_race(&bench, &(struct cell){&equal[a], &equal[b],
                                                                (enum distance)distance,
                                                                (enum order)order});
    bench_close(&bench);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_two_kinds_of_two_lanes_have_their_verdict),
        cmocka_unit_test(every_two_kinds_of_two_warpgroups_have_their_verdict),
        cmocka_unit_test(every_two_kinds_of_two_ctas_have_their_verdict),
        cmocka_unit_test(strong_accesses_of_other_bytes_race),
        cmocka_unit_test(equal_stores_race_unless_that_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
