/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of mbarrier: counts and answers, a word each. */
#include "protocol.h"

#include <stdio.h>
#include <string.h>

/* A step, and a word of out for what it leaves: the pending count of the state in %d10, or the
 * answer in %p2. */
static void append_step(struct protocol *p, const char *step, unsigned *word)
{
    protocol_append(p, "%s;\n", step);
    if (strstr(step, " %d10, "))
        protocol_append(p, "mbarrier.pending_count.b64 %%r21, %%d10;\n");
    else if (strstr(step, " %p2, "))
        protocol_append(p, "selp.u32 %%r21, 1, 0, %%p2;\n");
    else
        return;
    protocol_append(p, "st.global.u32 [%%d2+%u], %%r21;\n", 4 * (*word)++);
}

/* ---- of one thread ---- */

static void list_steps(struct protocol_list *list)
{
    enum { STEPS = 16 };
    static const struct {
        const char *name, *steps[STEPS];
    } forms[] = {
        {"mbarrier: arrive, noComplete, counts",
         {"mbarrier.init.shared.b64 [%r2], 7", "mbarrier.arrive.shared.b64 %d10, [%r2]",
          "mbarrier.arrive.noComplete.shared.b64 %d10, [%r2], 2",
          "mbarrier.test_wait.shared.b64 %p2, [%r2], %d10",
          "mbarrier.arrive.shared.b64 %d10, [%r2], 3",
          "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0",
          "mbarrier.arrive.shared.b64 %d10, [%r2]",
          "mbarrier.test_wait.shared.b64 %p2, [%r2], %d10",
          "mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0",
          "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 1",
          "mbarrier.arrive.shared.b64 %d10, [%r2], 7",
          "mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], 1"}},
        {"mbarrier: arrive_drop",
         {"mbarrier.init.shared.b64 [%r2], 4", "mbarrier.arrive_drop.shared.b64 %d10, [%r2]",
          "mbarrier.arrive_drop.noComplete.shared.b64 %d10, [%r2], 1",
          "mbarrier.arrive.shared.b64 %d10, [%r2], 2",
          "mbarrier.try_wait.shared.b64 %p2, [%r2], %d10", "mbarrier.arrive.shared.b64 %d10, [%r2]",
          "mbarrier.arrive.shared.b64 %d10, [%r2]",
          "mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 1, 100"}},
        {"mbarrier: arrive_drop, counts and transactions",
         {"mbarrier.init.shared.b64 [%r2], 9", "mbarrier.arrive_drop.shared.b64 %d10, [%r2], 4",
          "mbarrier.arrive_drop.expect_tx.shared.b64 %d10, [%r2], 48",
          "mbarrier.arrive.shared.b64 %d10, [%r2], 4",
          "mbarrier.test_wait.acquire.cluster.shared::cta.b64 %p2, [%r2], %d10",
          "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 48",
          "mbarrier.test_wait.acquire.cluster.shared::cta.b64 %p2, [%r2], %d10",
          "mbarrier.try_wait.acquire.cluster.shared::cta.b64 %p2, [%r2], %d10",
          "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], 0",
          "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], 1",
          "mbarrier.arrive.shared.b64 %d10, [%r2], 3", "mbarrier.arrive.shared.b64 %d10, [%r2]",
          "mbarrier.try_wait.acquire.cluster.shared::cta.b64 %p2, [%r2], %d10"}},
        {"mbarrier: transactions",
         {"mbarrier.init.shared.b64 [%r2], 2",
          "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 100",
          "mbarrier.arrive.expect_tx.shared.b64 %d10, [%r2], 28",
          "mbarrier.arrive.shared.b64 %d10, [%r2]",
          "mbarrier.test_wait.shared.b64 %p2, [%r2], %d10",
          "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 127",
          "mbarrier.test_wait.shared.b64 %p2, [%r2], %d10",
          "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 1",
          "mbarrier.try_wait.shared.b64 %p2, [%r2], %d10, 50"}},
        {"mbarrier: the largest counts and transactions",
         {"mbarrier.init.shared.b64 [%r2], 1048575",
          "mbarrier.arrive_drop.shared.b64 %d10, [%r2], 1048570",
          "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 1048575",
          "mbarrier.arrive.shared.b64 %d10, [%r2], 5",
          "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0",
          "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 1048575",
          "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0",
          "mbarrier.arrive_drop.shared.b64 %d10, [%r2], 4",
          "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 1",
          "mbarrier.arrive.shared.b64 %d10, [%r2]",
          "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 1"}},
        {"mbarrier: the parity of phases",
         {"mbarrier.init.shared.b64 [%r2], 1", "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0",
          "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 1",
          "mbarrier.arrive.shared.b64 %d10, [%r2]",
          "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0",
          "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 1",
          "mbarrier.arrive.shared.b64 %d10, [%r2]",
          "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0",
          "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 1",
          "mbarrier.test_wait.shared.b64 %p2, [%r2], %d10",
          "mbarrier.arrive.expect_tx.shared.b64 %d10, [%r2], 0",
          "mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0",
          "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 1"}},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct protocol *p = protocol_add(list, "%s", forms[i].name);
        unsigned word = 0;
        protocol_set_type(p, protocol_type("u32"));
        protocol_append(p, "@!%%p0 bra DONE;\nmbarrier.inval.shared.b64 [%%r2];\n");
        for (unsigned s = 0; s < STEPS && forms[i].steps[s]; s++)
            append_step(p, forms[i].steps[s], &word);
    }
}

/* ---- of a thread with its own mbarrier ---- */

#define OWN_TEST(parity) "mbarrier.test_wait.parity.shared.b64 %p2, [%r27], " parity

/*
 * Counts and transactions that the thread's words choose: %r23 are expected, of which %r25 drop out
 * and %r26 stay, %r28 beside one. Where one stayed, it drops out at last, and nobody is expected.
 */
static void list_own(struct protocol_list *list)
{
    static const char *const dropping[] = {
        "mbarrier.init.shared.b64 [%r27], %r23",
        "mbarrier.arrive_drop.shared.b64 %d10, [%r27], %r25",
        OWN_TEST("0"),
        "mbarrier.arrive.shared.b64 %d10, [%r27], %r26",
        OWN_TEST("0"),
        OWN_TEST("1"),
        "@%p5 mbarrier.arrive.noComplete.shared.b64 %d10, [%r27], %r28",
        "mbarrier.arrive_drop.shared.b64 %d10, [%r27]",
        OWN_TEST("1"),
        "mbarrier.test_wait.shared.b64 %p2, [%r27], %d10",
        "@!%p5 bra DONE",
        "mbarrier.arrive_drop.shared.b64 %d10, [%r27], %r28",
        OWN_TEST("0"),
    };
    static const char *const expecting[] = {
        "mbarrier.init.shared.b64 [%r27], %r23",
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r27], %r29",
        "mbarrier.arrive_drop.noComplete.shared.b64 %d10, [%r27], %r25",
        "@%p5 mbarrier.arrive.shared.b64 %d10, [%r27], %r28",
        "mbarrier.arrive.expect_tx.shared.b64 %d10, [%r27], %r30",
        OWN_TEST("0"),
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r27], %r29",
        OWN_TEST("0"),
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r27], %r30",
        OWN_TEST("0"),
        OWN_TEST("1"),
        "mbarrier.test_wait.shared.b64 %p2, [%r27], %d10",
        "@%p5 mbarrier.arrive.shared.b64 %d10, [%r27], %r28",
        "mbarrier.arrive_drop.expect_tx.shared.b64 %d10, [%r27], %r30",
        OWN_TEST("1"),
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r27], %r30",
        OWN_TEST("1"),
        "mbarrier.try_wait.parity.shared.b64 %p2, [%r27], 1",
    };
    static const struct {
        const char *name, *const *steps;
        size_t count;
    } forms[] = {
        {"mbarrier: each thread drops counts of its own", dropping,
         sizeof dropping / sizeof *dropping},
        {"mbarrier: each thread expects bytes of its own", expecting,
         sizeof expecting / sizeof *expecting},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct protocol *p = protocol_add(list, "%s", forms[i].name);
        unsigned word = 0;
        protocol_set_type(p, protocol_type("u32"));
        protocol_append(p, "ld.shared.u32 %%r20, [%%r3+8];\nld.shared.u32 %%r21, [%%r3+12];\n"
                           "ld.shared.u32 %%r22, [%%r3+16];\nadd.u32 %%r27, %%r3, 32;\n"
                           "and.b32 %%r23, %%r20, 1023;\nadd.u32 %%r23, %%r23, 2;\n"
                           "sub.u32 %%r24, %%r23, 1;\nrem.u32 %%r25, %%r21, %%r24;\n"
                           "add.u32 %%r25, %%r25, 1;\nsub.u32 %%r26, %%r23, %%r25;\n"
                           "sub.u32 %%r28, %%r26, 1;\nsetp.ne.u32 %%p5, %%r28, 0;\n"
                           "and.b32 %%r30, %%r22, 0x3ffff;\nadd.u32 %%r30, %%r30, 1;\n"
                           "and.b32 %%r29, %%r21, 0x7ffff;\nadd.u32 %%r29, %%r29, 1;\n");
        for (size_t s = 0; s < forms[i].count; s++)
            append_step(p, forms[i].steps[s], &word);
    }
}

/* ---- of all threads of a cluster ---- */

#define ARRIVE "mbarrier.arrive.shared.b64 %d10, [%r2]"
#define TEST(parity) "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], " parity

/* In the threads whose word of in says so, once or twice. */
static void append_operation(struct protocol *p, const char *operation, const char *label)
{
    protocol_append(p, "@!%%p3 bra %s1;\n%s;\n%s1:\n@!%%p4 bra %s2;\n%s;\n%s2:\n" PROTOCOL_MEET,
                    label, operation, label, label, operation, label);
}

/*
 * Every thread does `operation` on the destination's mbarrier as often as its word of in says, up
 * to twice; thread 0 of the destination counts what has come and ends the phase, but for what
 * `after` brings, and looks at the next.
 */
static void list_arrivals(struct protocol_list *list)
{
    static const char complete[] =
        "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r7], %r20";
    static const struct {
        const char *name, *operation, *after;
    } forms[] = {
        {"arrive", "mbarrier.arrive.shared::cluster.b64 _, [%r7]", NULL},
        {"arrive.release.cluster", "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7]",
         NULL},
        {"arrive.release.cluster, count",
         "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7], %r20", NULL},
        {"arrive.relaxed.cluster",
         "fence.release.sync_restrict::shared::cta.cluster;\n"
         "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r7];\n"
         "fence.acquire.sync_restrict::shared::cluster.cluster",
         NULL},
        {"arrive_drop.release.cluster",
         "mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%r7]", NULL},
        {"arrive.expect_tx.release.cluster",
         "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r7], %r20", complete},
        {"expect_tx.relaxed.cluster",
         "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r7], %r20", complete},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (unsigned d = OWN_IN_PAIR; d < DESTINATIONS; d++) {
            char name[64];
            unsigned word = 0;
            snprintf(name, sizeof name, "mbarrier.%s", forms[i].name);
            struct protocol *p = protocol_add_to(list, d, name, "u32");
            protocol_append(p, "@%%p0 mbarrier.inval.shared.b64 [%%r2];\n"
                               "@%%p0 mbarrier.init.shared.b64 [%%r2], 1000;\n"
                               "fence.mbarrier_init.release.cluster;\n"
                               "ld.shared.u32 %%r20, [%%r3+16];\nand.b32 %%r20, %%r20, 3;\n"
                               "setp.ge.u32 %%p3, %%r20, 1;\nsetp.ge.u32 %%p4, %%r20, 2;\nMEET");
            append_operation(p, forms[i].operation, "FIRST");
            protocol_append(p, "@!%%p0 bra ENDED;\n");
            append_step(p, ARRIVE, &word);
            append_step(p, TEST("0"), &word);
            protocol_append(p, "ld.global.u32 %%r21, [%%d2];\nsub.u32 %%r21, %%r21, 1;\n");
            append_step(p, ARRIVE ", %r21", &word);
            append_step(p, TEST("0"), &word);
            protocol_append(p, "ENDED:\n" PROTOCOL_MEET);
            if (forms[i].after)
                append_operation(p, forms[i].after, "AFTER");
            protocol_append(p, "@!%%p0 bra DONE;\n");
            append_step(p, TEST("0"), &word);
            append_step(p, ARRIVE, &word);
            append_step(p, TEST("1"), &word);
            protocol_append(p, "bra DONE;\n");
        }
}

void protocol_list_mbarriers(struct protocol_list *list)
{
    list_steps(list);
    list_own(list);
    list_arrivals(list);
}
