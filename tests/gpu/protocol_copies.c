/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk copies and reductions, st.async and red.async, the forms of mbarrier. */
#include "protocol.h"

#include <stdio.h>
#include <string.h>

#define BYTES ".mbarrier::complete_tx::bytes"
#define EXPECT(bytes) "@%p0 mbarrier.arrive.expect_tx.shared.b64 %d8, [%r2], " bytes ";\n"

/* What a reduction's type is called, in PTX and in the builder. */
static const struct type {
    const char *name;
    uint8_t type, bytes;
} types[] = {
    {"u32", PTX_U32, 4}, {"s32", PTX_S32, 4}, {"u64", PTX_U64, 8}, {"s64", PTX_S64, 8},
    {"f32", PTX_F32, 4}, {"f64", PTX_F64, 8}, {"f16", PTX_F16, 2}, {"bf16", PTX_BF16, 2},
    {"b32", PTX_U32, 4}, {"b64", PTX_U64, 8},
};

static const struct type *type_of(const char *name)
{
    size_t i = 0;
    while (strcmp(types[i].name, name) != 0)
        i++;
    return &types[i];
}

static void set_type(struct protocol *p, const struct type *type)
{
    p->blocks.in = p->blocks.out = (struct source){.type = type->type};
    p->word = type->bytes;
}

/* One more protocol, of a destination. */
static struct protocol *add_to(struct protocol_list *list, unsigned destination, const char *name,
                               const char *type)
{
    static const char *const words[DESTINATIONS] = {
        [OWN_IN_PAIR] = "to itself",
        [MAPPED_IN_PAIR] = "to itself, mapped",
        [PEER] = "to its peer",
        [ALONE] = "to itself, mapped, alone",
    };
    struct protocol *p = protocol_add(list, "%s %s", name, words[destination]);
    set_type(p, type_of(type));
    p->destination = (uint8_t)destination;
    return p;
}

/* ---- plain bulk copies ---- */

static void list_bulk(struct protocol_list *list)
{
    static const struct {
        const char *name, *body;
    } forms[] = {
        {"cp.async.bulk.shared::cluster.global",
         EXPECT("4096") "@%p0 cp.async.bulk.shared::cluster.global" BYTES
                        " [%r1], [%d1+4096], 4096, [%r2];\nbra WAIT;\n"},
        {"cp.async.bulk.shared::cta.global",
         EXPECT("16") "@%p0 cp.async.bulk.shared::cta.global" BYTES
                      " [%r1+32], [%d1+4096], 16, [%r2];\nbra WAIT;\n"},
        {"cp.async.bulk.shared::cluster.global.L2::cache_hint",
         "createpolicy.fractional.L2::evict_first.b64 %d9, 1.0;\n" EXPECT(
             "2048") "@%p0 cp.async.bulk.shared::cluster.global" BYTES
                     ".L2::cache_hint [%r1+2048], [%d1], 2048, [%r2], %d9;\nbra WAIT;\n"},
        {"cp.async.bulk.shared::cluster.global.multicast::cluster",
         "mov.u16 %h1, 1;\n" EXPECT("1024") "@%p0 cp.async.bulk.shared::cluster.global" BYTES
                                            ".multicast::cluster [%r1+2048], [%d1], 1024, [%r2], "
                                            "%h1;\nbra WAIT;\n"},
        {"cp.async.bulk.global.shared::cta",
         "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d0+1024], [%r1], 4096;\n"
         "@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;\n"},
        {"cp.async.bulk.global.shared::cta.L2::cache_hint",
         "createpolicy.fractional.L2::evict_last.b64 %d9, 1.0;\n"
         "@%p0 cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%d0], [%r1], 8192, "
         "%d9;\n@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group.read 0;\n"
         "@%p0 cp.async.bulk.wait_group 0;\n"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct protocol *p = protocol_add(list, "%s", forms[i].name);
        set_type(p, type_of("u64"));
        snprintf(p->body, sizeof p->body, "%s", forms[i].body);
    }
    for (unsigned d = OWN_IN_PAIR; d < DESTINATIONS; d++) {
        struct protocol *p = add_to(list, d, "cp.async.bulk.shared::cluster.shared::cta", "u64");
        snprintf(p->body, sizeof p->body, "%s",
                 EXPECT("2048") "@%p0 cp.async.bulk.shared::cluster.shared::cta" BYTES
                                " [%r6+2048], [%r1+4096], 2048, [%r7];\nbra WAIT;\n");
    }
}

/* ---- reductions: an operation and the types that it takes ---- */

struct reduction {
    const char *op, *types; /* separated by spaces */
};

/* Calls `add` for every type of every operation. */
static void each_type(struct protocol_list *list, const struct reduction *reductions, size_t count,
                      void (*add)(struct protocol_list *, const char *, const struct type *))
{
    for (size_t i = 0; i < count; i++) {
        char names[64], *rest = names;
        snprintf(names, sizeof names, "%s", reductions[i].types);
        for (const char *name; (name = strtok_r(rest, " ", &rest));)
            add(list, reductions[i].op, type_of(name));
    }
}

static void add_reduction_to_global(struct protocol_list *list, const char *op,
                                    const struct type *type)
{
    bool half = type->bytes == 2 && !strcmp(op, "add");
    struct protocol *p = protocol_add(list, "cp.reduce.async.bulk.global.shared::cta.%s%s.%s", op,
                                      half ? ".noftz" : "", type->name);
    set_type(p, type);
    snprintf(p->body, sizeof p->body,
             "@%%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.%s%s.%s [%%d0], [%%r1], "
             "8192;\n@%%p0 cp.async.bulk.commit_group;\n@%%p0 cp.async.bulk.wait_group 0;\n",
             op, half ? ".noftz" : "", type->name);
}

static void add_reduction_to_shared(struct protocol_list *list, const char *op,
                                    const struct type *type)
{
    char name[64];
    snprintf(name, sizeof name, "cp.reduce.async.bulk.shared::cluster.shared::cta.%s.%s", op,
             type->name);
    for (unsigned d = OWN_IN_PAIR; d < DESTINATIONS; d++) {
        struct protocol *p = add_to(list, d, name, type->name);
        snprintf(p->body, sizeof p->body,
                 "@%%p0 mbarrier.arrive.expect_tx.shared.b64 %%d8, [%%r2], 4096;\n"
                 "@%%p0 cp.reduce.async.bulk.shared::cluster.shared::cta" BYTES
                 ".%s.%s [%%r6], [%%r1+4096], 4096, [%%r7];\nbra WAIT;\n",
                 op, type->name);
    }
}

/* Four threads meet at each place, in any order. */
static void add_red_async(struct protocol_list *list, const char *op, const struct type *type)
{
    bool wide = type->bytes == 8;
    char name[64];
    snprintf(name, sizeof name, "red.async.%s.%s", op, type->name);
    for (unsigned d = OWN_IN_PAIR; d < DESTINATIONS; d++) {
        struct protocol *p = add_to(list, d, name, type->name);
        snprintf(p->body, sizeof p->body,
                 "@%%p0 mbarrier.arrive.expect_tx.shared.b64 %%d8, [%%r2], %u;\n"
                 "and.b32 %%r8, %%r0, 31;\nmad.lo.u32 %%r8, %%r8, 8, %%r6;\n"
                 "ld.shared.%s %%%c20, [%%r3+16];\nMEET"
                 "red.async.relaxed.cluster.shared::cluster" BYTES
                 ".%s.%s [%%r8], %%%c20, [%%r7];\nbra WAIT;\n",
                 128u * type->bytes, wide ? "b64" : "b32", wide ? 'd' : 'r', op, type->name,
                 wide ? 'd' : 'r');
    }
}

static void list_reductions(struct protocol_list *list)
{
    static const struct reduction to_global[] = {
        {"add", "u32 s32 u64 f32 f64 f16 bf16"},
        {"min", "u32 s32 u64 s64 f16 bf16"},
        {"max", "u32 s32 u64 s64 f16 bf16"},
        {"and", "b32 b64"},
        {"or", "b32 b64"},
        {"xor", "b32 b64"},
        {"inc", "u32"},
        {"dec", "u32"},
    };
    static const struct reduction to_shared[] = {
        {"add", "u32 s32 u64"}, {"min", "u32 s32"}, {"max", "u32 s32"},
        {"and", "b32"},         {"or", "b32"},      {"xor", "b32"},
    };
    static const struct reduction by_threads[] = {
        {"add", "u32 s32 u64"}, {"min", "u32 s32"}, {"max", "u32 s32"},
        {"and", "b32"},         {"or", "b32"},      {"xor", "b32"},
    };
    each_type(list, to_global, sizeof to_global / sizeof *to_global, add_reduction_to_global);
    each_type(list, to_shared, sizeof to_shared / sizeof *to_shared, add_reduction_to_shared);
    each_type(list, by_threads, sizeof by_threads / sizeof *by_threads, add_red_async);
}

/* ---- st.async ---- */

static void list_st_async(struct protocol_list *list)
{
    static const struct {
        const char *form, *load, *value;
        unsigned bytes;
    } forms[] = {
        {"b32", "ld.shared.b32 %r20, [%r3+16]", "%r20", 4},
        {"b64", "ld.shared.b64 %d20, [%r3+16]", "%d20", 8},
        {"v2.b32", "ld.shared.v2.b32 {%r20, %r21}, [%r3+16]", "{%r20, %r21}", 8},
        {"v2.b64", "ld.shared.v2.b64 {%d20, %d21}, [%r3+16]", "{%d20, %d21}", 16},
        {"v4.f32", "ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r3+16]",
         "{%r20, %r21, %r22, %r23}", 16},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (unsigned d = OWN_IN_PAIR; d < DESTINATIONS; d++) {
            char name[32];
            snprintf(name, sizeof name, "st.async.%s", forms[i].form);
            struct protocol *p = add_to(list, d, name, "u32");
            snprintf(p->body, sizeof p->body,
                     "@%%p0 mbarrier.arrive.expect_tx.shared.b64 %%d8, [%%r2], %u;\n"
                     "%s;\nadd.u32 %%r8, %%r6, %%r4;\nMEETst.async.weak.shared::cluster" BYTES
                     ".%s [%%r8], %s, [%%r7];\nbra WAIT;\n",
                     128 * forms[i].bytes, forms[i].load, forms[i].form, forms[i].value);
        }
}

/* ---- mbarriers: counts and answers, a word each, of one thread ---- */

#define ANSWER(at) "selp.u32 %r20, 1, 0, %p2;\nst.global.u32 [%d2+" at "], %r20;\n"
#define COUNT(at) "mbarrier.pending_count.b64 %r20, %d10;\nst.global.u32 [%d2+" at "], %r20;\n"

static void list_mbarriers(struct protocol_list *list)
{
    static const struct {
        const char *name, *body;
    } forms[] = {
        {"mbarrier: arrive, noComplete, counts",
         "mbarrier.init.shared.b64 [%r2], 7;\n"
         "mbarrier.arrive.shared.b64 %d10, "
         "[%r2];\n" COUNT("0") "mbarrier.arrive."
                               "noComplete.shared.b64 "
                               "%d10, [%r2], "
                               "2;\n" COUNT(
                                   "4") "mbarr"
                                        "ier."
                                        "test_"
                                        "wait."
                                        "share"
                                        "d."
                                        "b64 "
                                        "%p2, "
                                        "[%r2]"
                                        ", "
                                        "%d10;"
                                        "\n" ANSWER(
                                            "8") "mbarrier.arrive.shared.b64 %d10, [%r2], "
                                                 "3;\n" COUNT("1"
                                                              "2") "mbarrier.test_wait.parity."
                                                                   "shared.b64 %p2, [%r2], "
                                                                   "0;\n" ANSWER("16") "mbarrier."
                                                                                       "arrive."
                                                                                       "shared.b64 "
                                                                                       "%d10, "
                                                                                       "[%r2];"
                                                                                       "\n" COUNT("20") "mbarrier.test_wait.shared.b64 %p2, [%r2], %d10;\n" ANSWER("24") "mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;\n" ANSWER("28") "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 1;\n" ANSWER("32") "mbarrier.arrive.shared.b64 %d10, [%r2], 7;\n" COUNT("36") "mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], 1;\n" ANSWER("40")},
        {"mbarrier: arrive_drop", "mbarrier.init.shared.b64 [%r2], 4;\n"
                                  "mbarrier.arrive_drop.shared.b64 %d10, [%r2];\n" COUNT(
                                      "0") "mbarrier.arrive_drop.noComplete.shared.b64 %d10, "
                                           "[%r2], 1;\n" COUNT("4") "mbarrier.arrive.shared.b64 "
                                                                    "%d10, [%r2], 2;\n" COUNT("8") "mbarrier.try_wait.shared.b64 %p2, [%r2], "
                                                                                                   "%d10;\n" ANSWER(
                                                                                                       "12") "mbarrier.arrive.shared.b64 "
                                                                                                             "%d10, [%r2];\n" COUNT("16") "mbarrier.arrive.shared.b64 %d10, [%r2];\n" COUNT(
                                                                                                                 "20") "mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 1, 100;\n" ANSWER("24")},
        {"mbarrier: transactions",
         "mbarrier.init.shared.b64 [%r2], 2;\n"
         "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], "
         "100;\n"
         "mbarrier.arrive.expect_tx.shared.b64 %d10, [%r2], "
         "28;\n" COUNT("0") "mbarrier.arrive.shared.b64 %d10, "
                            "[%r2];\n" COUNT(
                                "4") "mbarrier.test_"
                                     "wait.shared.b64 "
                                     "%p2, [%r2], "
                                     "%d10;\n" ANSWER(
                                         "8") "mbarrier."
                                              "complete_"
                                              "tx."
                                              "relaxed."
                                              "cta."
                                              "shared::"
                                              "cta.b64 "
                                              "[%r2], "
                                              "127;\n"
                                              "mbarrier."
                                              "test_"
                                              "wait."
                                              "shared."
                                              "b64 %p2, "
                                              "[%r2], "
                                              "%d10;"
                                              "\n" ANSWER("12") "mbarrier.complete_tx.relaxed.cta."
                                                                "shared::cta.b64 [%r2], 1;\n"
                                                                "mbarrier.try_wait.shared.b64 %p2, "
                                                                "[%r2], %d10, 50;\n" ANSWER("16")},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct protocol *p = protocol_add(list, "%s", forms[i].name);
        set_type(p, type_of("u32"));
        snprintf(p->body, sizeof p->body, "@!%%p0 bra DONE;\nmbarrier.inval.shared.b64 [%%r2];\n%s",
                 forms[i].body);
    }
}

void protocol_list_copies(struct protocol_list *list)
{
    list_bulk(list);
    list_reductions(list);
    list_st_async(list);
    list_mbarriers(list);
}
