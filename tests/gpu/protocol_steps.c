/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has no result of its own: barriers, fences, waits for cp.async, hints, conversions of
 * addresses. Each stands where the words that come out depend on it, as far as it has an effect.
 */
#include "protocol.h"

#include <stdio.h>

static struct protocol *add(struct protocol_list *list, const char *name)
{
    struct protocol *p = protocol_add(list, "%s", name);
    protocol_set_type(p, protocol_type("u32"));
    return p;
}

/* ---- words handed from thread to thread ---- */

/* %r20 is a word that the thread makes of its word of in, %r21 the line of the thread that differs
 * by `distance`. */
static void append_word(struct protocol *p, unsigned distance)
{
    protocol_append(p,
                    "ld.shared.u32 %%r20, [%%r3+16];\nmad.lo.u32 %%r20, %%r20, 3, %%r0;\n"
                    "xor.b32 %%r21, %%r0, %u;\nmad.lo.u32 %%r21, %%r21, 64, %%r1;\n",
                    distance);
}

/* Threads `distance` apart exchange words; `barrier` stands between. */
static void add_exchange(struct protocol_list *list, const char *barrier, unsigned distance)
{
    struct protocol *p = add(list, barrier);
    append_word(p, distance);
    protocol_append(p,
                    "st.shared.u32 [%%r3+32], %%r20;\n%s;\n"
                    "ld.shared.u32 %%r22, [%%r21+32];\nst.global.u32 [%%d2], %%r22;\n",
                    barrier);
}

/* Two warps hand words to the other two, and do not wait for them. */
static void add_hand_over(struct protocol_list *list, const char *arrive, const char *sync)
{
    struct protocol *p = add(list, arrive);
    append_word(p, 64);
    protocol_append(p,
                    "setp.ge.u32 %%p3, %%r0, 64;\n@%%p3 bra TAKES;\n"
                    "st.shared.u32 [%%r3+32], %%r20;\n%s;\nbra DONE;\nTAKES: %s;\n"
                    "ld.shared.u32 %%r22, [%%r21+32];\nst.global.u32 [%%d2], %%r22;\nbra DONE;\n",
                    arrive, sync);
}

/* CTAs exchange words; a barrier stands between, and another before they end. */
static void add_cluster_exchange(struct protocol_list *list, const char *arrive, const char *wait)
{
    struct protocol *p = protocol_add_to(list, PEER, arrive, "u32");
    append_word(p, 0);
    protocol_append(p,
                    "MEETadd.u32 %%r22, %%r6, %%r4;\n"
                    "st.shared::cluster.u32 [%%r22+32], %%r20;\n%s;\n%s;\n"
                    "ld.shared.u32 %%r22, [%%r3+32];\nst.global.u32 [%%d2], %%r22;\n" PROTOCOL_MEET,
                    arrive, wait);
}

/* Words go through global memory, and a flag says so; `fence` stands on both sides. */
static void add_message(struct protocol_list *list, const char *fence)
{
    struct protocol *p = add(list, fence);
    append_word(p, 64);
    protocol_append(p,
                    "mov.u32 %%r23, 0;\nst.shared.u32 [%%r3+48], %%r23;\nbar.sync 0;\n"
                    "setp.ge.u32 %%p3, %%r0, 64;\n@%%p3 bra TAKES;\n"
                    "st.global.u32 [%%d2], %%r20;\n%s;\nmov.u32 %%r23, 1;\n"
                    "st.relaxed.cta.shared.u32 [%%r3+48], %%r23;\nbra DONE;\n"
                    "TAKES: ld.relaxed.cta.shared.u32 %%r23, [%%r21+48];\n"
                    "setp.eq.u32 %%p4, %%r23, 0;\n@%%p4 bra TAKES;\n%s;\n"
                    "ld.global.u32 %%r22, [%%d2+-4096];\nst.global.u32 [%%d2+4], %%r22;\n"
                    "bra DONE;\n",
                    fence, fence);
}

static void list_handed(struct protocol_list *list)
{
    static const char *const barriers[] = {"bar.sync 1", "bar.sync 1, 128", "barrier.cta.sync 2",
                                           "barrier.cta.sync 3, 128"};
    static const struct {
        const char *arrive, *wait;
    } cluster[] = {
        {"barrier.cluster.arrive.release", "barrier.cluster.wait.acquire"},
        {"barrier.cluster.arrive.release.aligned", "barrier.cluster.wait.acquire.aligned"},
        {"fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed", "barrier.cluster.wait.acquire"},
        {"fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed.aligned",
         "barrier.cluster.wait.acquire.aligned"},
    };
    static const char *const fences[] = {
        "fence.acq_rel.cta", "fence.acq_rel.cluster",
        "fence.acq_rel.gpu", "fence.acq_rel.sys",
        "fence.sc.cta",      "fence.sc.gpu",
        "membar.cta",        "membar.gl",
        "membar.sys",        "fence.proxy.alias;\nfence.acq_rel.cta"};
    for (size_t i = 0; i < sizeof barriers / sizeof *barriers; i++)
        add_exchange(list, barriers[i], 64);
    add_exchange(list, "bar.warp.sync 0xffffffff", 1);
    add_hand_over(list, "bar.arrive 1, 128", "bar.sync 1, 128");
    add_hand_over(list, "barrier.cta.arrive 1, 128", "barrier.cta.sync 1, 128");
    for (size_t i = 0; i < sizeof cluster / sizeof *cluster; i++)
        add_cluster_exchange(list, cluster[i].arrive, cluster[i].wait);
    for (size_t i = 0; i < sizeof fences / sizeof *fences; i++)
        add_message(list, fences[i]);
}

/* ---- from threads to copies ---- */

/* What threads have written to shared or global memory is copied from there. */
static void list_proxies(struct protocol_list *list)
{
    static const char *const fences[] = {"fence.proxy.async", "fence.proxy.async.shared::cta",
                                         "fence.proxy.async.shared::cluster"};
    for (size_t i = 0; i < sizeof fences / sizeof *fences; i++) {
        struct protocol *p = add(list, fences[i]);
        append_word(p, 0);
        protocol_append(p,
                        "st.shared.u32 [%%r3+32], %%r20;\n%s;\nbar.sync 0;\n"
                        "@%%p0 cp.async.bulk.global.shared::cta.bulk_group [%%d0], [%%r1], 8192;\n"
                        "@%%p0 cp.async.bulk.commit_group;\n@%%p0 cp.async.bulk.wait_group 0;\n",
                        fences[i]);
    }
    struct protocol *p = add(list, "fence.proxy.async.global");
    append_word(p, 0);
    protocol_append(
        p,
        "st.global.u32 [%%d2+32], %%r20;\nfence.proxy.async.global;\nbar.sync 0;\n"
        "@%%p0 mbarrier.arrive.expect_tx.shared.b64 %%d8, [%%r2], 4096;\n"
        "@%%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%r1], [%%d0], "
        "4096, [%%r2];\nbra WAIT;\n");
}

/* A tensor map that the kernel has written, with fences of each scope. */
static void list_tensor_maps(struct protocol_list *list)
{
    static const char *const scopes[] = {"cta", "cluster", "gpu", "sys"};
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        struct protocol *p = protocol_add(list, "fence.proxy.tensormap::generic, %s", scopes[i]);
        protocol_set_type(p, protocol_type("u32"));
        p->blocks.maps = true;
        p->blocks.tensor = (struct tensor){.type = 2 /* u32 */,
                                           .bytes = 4,
                                           .rank = 1,
                                           .sizes = {2000},
                                           .box = {256},
                                           .steps = {1}};
        protocol_append(p, "@!%%p0 bra WAIT;\n");
        for (unsigned at = 0; at < 128; at += 8)
            protocol_append(p, "ld.param.u64 %%d9, [in_map+%u];\nst.global.u64 [%%d0+%u], %%d9;\n",
                            at, at);
        protocol_append(
            p,
            "fence.proxy.tensormap::generic.release.%s;\n"
            "fence.proxy.tensormap::generic.acquire.%s [%%d0], 128;\nmad.lo.u32 %%r20, %%r5, 64, "
            "12;\n"
            "mbarrier.arrive.expect_tx.shared.b64 %%d8, [%%r2], 1024;\n"
            "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            "[%%r1], [%%d0, {%%r20}], [%%r2];\nbra WAIT;\n",
            scopes[i], scopes[i]);
    }
}

/* ---- cp.async ---- */

/* Each thread copies the line of its neighbour in in, 16 bytes by 16, and reads its own or the
 * neighbour's when `wait` says that it is there. */
static void add_copies(struct protocol_list *list, const char *name, const char *wait)
{
    struct protocol *p = add(list, name);
    protocol_append(p,
                    "@%%p0 mbarrier.inval.shared.b64 [%%r2];\n"
                    "@%%p0 mbarrier.init.shared.b64 [%%r2], 128;\nbar.sync 0;\n"
                    "xor.b32 %%r21, %%r0, 65;\nmul.wide.u32 %%d9, %%r21, 64;\n"
                    "add.u64 %%d9, %%d9, %%d1;\nmad.lo.u32 %%r21, %%r21, 64, %%r1;\n"
                    "cp.async.cg.shared.global [%%r3], [%%d9], 16;\n"
                    "cp.async.ca.shared.global [%%r3+16], [%%d9+32], 8;\n%s"
                    "st.global.u32 [%%d2], %%r20;\nst.global.u32 [%%d2+4], %%r22;\n",
                    wait);
}

static void list_copies(struct protocol_list *list)
{
#define READ_OWN "ld.shared.u32 %r20, [%r3+4];\nld.shared.u32 %r22, [%r3+20];\n"
#define READ_OTHER "ld.shared.u32 %r20, [%r21+4];\nld.shared.u32 %r22, [%r21+20];\n"
#define SPIN                                                                                       \
    "SPIN: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;\n@!%p2 bra SPIN;\n" READ_OTHER
    add_copies(list, "cp.async.wait_group",
               "cp.async.commit_group;\ncp.async.cg.shared.global [%r3+32], [%d9+48], 16;\n"
               "cp.async.commit_group;\ncp.async.wait_group 1;\n" READ_OWN
               "cp.async.wait_group 0;\nld.shared.u32 %r23, [%r3+36];\n"
               "xor.b32 %r22, %r22, %r23;\n");
    add_copies(list, "cp.async.wait_all", "cp.async.wait_all;\n" READ_OWN);
    add_copies(list, "cp.async.mbarrier.arrive.noinc",
               "cp.async.mbarrier.arrive.noinc.shared.b64 [%r2];\n" SPIN);
    add_copies(list, "cp.async.mbarrier.arrive",
               "cp.async.mbarrier.arrive.shared.b64 [%r2];\n"
               "mbarrier.arrive.shared.b64 %d10, [%r2];\n" SPIN);
}

/* ---- addresses ---- */

/* Of a word of the buffer, of in, of local memory and of the parameters, which the thread chooses;
 * the words that come out do not depend on where these lie. */
static void list_addresses(struct protocol_list *list)
{
    static const struct {
        const char *space, *address; /* in %d10 */
    } spaces[] = {
        {"global", "cvt.u64.u32 %d9, %r20;\nadd.u64 %d10, %d1, %d9;\n"},
        {"shared", "add.u32 %r21, %r1, %r20;\ncvt.u64.u32 %d10, %r21;\n"},
        {"local", "mov.u64 %d10, kept;\nst.local.u32 [%d10], %r20;\n"},
        {"param", "mov.b64 %d10, in;\nsub.u64 %d10, %d10, 0;\n"},
    };
    static const char *const windows[] = {"global", "shared", "local", "param", "shared::cluster"};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        const char *space = spaces[i].space;
        struct protocol *p = protocol_add(list, "cvta, isspacep: %s", space);
        protocol_set_type(p, protocol_type("u32"));
        protocol_append(p,
                        ".local .align 4 .b8 kept[8];\nld.shared.u32 %%r20, [%%r3+16];\n"
                        "and.b32 %%r20, %%r20, 8188;\n%scvta.%s.u64 %%d11, %%d10;\n"
                        "cvta.to.%s.u64 %%d12, %%d11;\nsub.u64 %%d12, %%d12, %%d10;\n"
                        "st.global.u64 [%%d2], %%d12;\n",
                        spaces[i].address, space, space);
        if (i < 3)
            protocol_append(p, "ld.u32 %%r22, [%%d11];\nst.global.u32 [%%d2+8], %%r22;\n");
        for (unsigned w = 0; w < sizeof windows / sizeof *windows; w++)
            protocol_append(p,
                            "isspacep.%s %%p2, %%d11;\nselp.u32 %%r22, 1, 0, %%p2;\n"
                            "st.global.u32 [%%d2+%u], %%r22;\n",
                            windows[w], 12 + 4 * w);
    }
}

/* Words of the other CTA through mapped addresses, whose CTA is asked for. */
static void list_mapped(struct protocol_list *list)
{
    struct protocol *p = protocol_add_to(list, PEER, "mapa, getctarank", "u32");
    protocol_append(
        p, "ld.shared.u32 %%r20, [%%r3+16];\nand.b32 %%r20, %%r20, 8188;\n"
           "add.u32 %%r21, %%r1, %%r20;\ncvt.u64.u32 %%d10, %%r21;\ncvta.shared.u64 %%d11, %%d10;\n"
           "shr.u32 %%r22, %%r0, 3;\nand.b32 %%r22, %%r22, 1;\n"
           "mapa.u64 %%d12, %%d11, %%r22;\nld.u32 %%r23, [%%d12];\nst.global.u32 [%%d2], %%r23;\n"
           "getctarank.u64 %%r23, %%d12;\nst.global.u32 [%%d2+4], %%r23;\n"
           "mapa.shared::cluster.u32 %%r21, %%r21, %%r22;\n"
           "ld.shared::cluster.u32 %%r23, [%%r21];\nst.global.u32 [%%d2+8], %%r23;\n"
           "getctarank.shared::cluster.u32 %%r23, %%r21;\nst.global.u32 [%%d2+12], %%r23;\n"
           "isspacep.shared::cluster %%p2, %%d12;\nselp.u32 %%r22, 1, 0, %%p2;\n"
           "st.global.u32 [%%d2+16], %%r22;\n" PROTOCOL_MEET);
}

/* ---- what changes nothing but speed, and the end of threads ---- */

static void list_rest(struct protocol_list *list)
{
    struct protocol *p = add(list, "prefetch, applypriority, nanosleep, griddepcontrol");
    protocol_append(
        p, "griddepcontrol.wait;\nprefetch.global.L1 [%%d5];\nprefetch.global.L2 [%%d5];\n"
           "prefetch.global.L2::evict_last [%%d5];\nprefetch.global.L2::evict_normal [%%d5];\n"
           "prefetchu.L1 [%%d5];\nshr.u64 %%d9, %%d5, 7;\nshl.b64 %%d9, %%d9, 7;\n"
           "applypriority.global.L2::evict_normal [%%d9], 128;\nnanosleep.u32 20;\n"
           "griddepcontrol.launch_dependents;\nbra.uni ON;\nON: ld.global.u32 %%r20, [%%d5];\n"
           "st.global.u32 [%%d2], %%r20;\n");
    p = add(list, "exit of some threads, ret of others");
    protocol_append(p, "ld.shared.u32 %%r20, [%%r3+16];\nst.global.u32 [%%d2], %%r20;\n"
                       "and.b32 %%r21, %%r20, 3;\nsetp.eq.u32 %%p3, %%r21, 0;\n"
                       "setp.eq.u32 %%p4, %%r21, 1;\n@%%p3 exit;\nst.global.u32 [%%d2+4], %%r20;\n"
                       "@%%p4 ret;\nst.global.u32 [%%d2+8], %%r20;\n");
    p = add(list, "setmaxnreg");
    p->directive = ".maxnreg 128\n";
    protocol_append(p, "ld.shared.u32 %%r20, [%%r3+16];\nsetmaxnreg.dec.sync.aligned.u32 40;\n"
                       "mad.lo.u32 %%r20, %%r20, 5, %%r0;\nsetmaxnreg.inc.sync.aligned.u32 128;\n"
                       "st.global.u32 [%%d2], %%r20;\n");
}

void protocol_list_steps(struct protocol_list *list)
{
    list_handed(list);
    list_proxies(list);
    list_tensor_maps(list);
    list_copies(list);
    list_addresses(list);
    list_mapped(list);
    list_rest(list);
}
