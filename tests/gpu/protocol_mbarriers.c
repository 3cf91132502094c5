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
    list_arrivals(list);
}
