/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk copies and reductions, st.async and red.async. */
#include "protocol.h"

#include <stdio.h>
#include <string.h>

#define BYTES ".mbarrier::complete_tx::bytes"
#define EXPECT(bytes) "@%p0 mbarrier.arrive.expect_tx.shared.b64 %d8, [%r2], " bytes ";\n"

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
        {"cp.async.bulk.prefetch.L2",
         EXPECT("4096") "@%p0 cp.async.bulk.prefetch.L2.global [%d1], 4096;\n"
                        "@%p0 cp.async.bulk.shared::cluster.global" BYTES
                        " [%r1+4096], [%d1], 4096, [%r2];\nbra WAIT;\n"},
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
        protocol_set_type(p, protocol_type("u64"));
        snprintf(p->body, sizeof p->body, "%s", forms[i].body);
    }
    for (unsigned d = OWN_IN_PAIR; d < DESTINATIONS; d++) {
        struct protocol *p =
            protocol_add_to(list, d, "cp.async.bulk.shared::cluster.shared::cta", "u64");
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
                      void (*add)(struct protocol_list *, const char *,
                                  const struct protocol_type *))
{
    for (size_t i = 0; i < count; i++) {
        char names[64], *rest = names;
        snprintf(names, sizeof names, "%s", reductions[i].types);
        for (const char *name; (name = strtok_r(rest, " ", &rest));)
            add(list, reductions[i].op, protocol_type(name));
    }
}

static void add_reduction_to_global(struct protocol_list *list, const char *op,
                                    const struct protocol_type *type)
{
    bool half = type->bytes == 2 && !strcmp(op, "add");
    struct protocol *p = protocol_add(list, "cp.reduce.async.bulk.global.shared::cta.%s%s.%s", op,
                                      half ? ".noftz" : "", type->name);
    protocol_set_type(p, type);
    snprintf(p->body, sizeof p->body,
             "@%%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.%s%s.%s [%%d0], [%%r1], "
             "8192;\n@%%p0 cp.async.bulk.commit_group;\n@%%p0 cp.async.bulk.wait_group 0;\n",
             op, half ? ".noftz" : "", type->name);
}

static void add_reduction_to_shared(struct protocol_list *list, const char *op,
                                    const struct protocol_type *type)
{
    char name[64];
    snprintf(name, sizeof name, "cp.reduce.async.bulk.shared::cluster.shared::cta.%s.%s", op,
             type->name);
    for (unsigned d = OWN_IN_PAIR; d < DESTINATIONS; d++) {
        struct protocol *p = protocol_add_to(list, d, name, type->name);
        snprintf(p->body, sizeof p->body,
                 "@%%p0 mbarrier.arrive.expect_tx.shared.b64 %%d8, [%%r2], 4096;\n"
                 "@%%p0 cp.reduce.async.bulk.shared::cluster.shared::cta" BYTES
                 ".%s.%s [%%r6], [%%r1+4096], 4096, [%%r7];\nbra WAIT;\n",
                 op, type->name);
    }
}

/* Four threads meet at each place, in any order; for inc and dec they bring the same. */
static void add_red_async(struct protocol_list *list, const char *op,
                          const struct protocol_type *type)
{
    bool wide = type->bytes == 8, same = !strcmp(op, "inc") || !strcmp(op, "dec");
    char name[64];
    snprintf(name, sizeof name, "red.async.%s.%s", op, type->name);
    for (unsigned d = OWN_IN_PAIR; d < DESTINATIONS; d++) {
        struct protocol *p = protocol_add_to(list, d, name, type->name);
        snprintf(p->body, sizeof p->body,
                 "@%%p0 mbarrier.arrive.expect_tx.shared.b64 %%d8, [%%r2], %u;\n"
                 "and.b32 %%r8, %%r0, 31;\nmad.lo.u32 %%r9, %%r8, 64, %%r1;\n"
                 "mad.lo.u32 %%r8, %%r8, 8, %%r6;\nld.shared.%s %%%c20, [%%r%c+16];\nMEET"
                 "red.async.relaxed.cluster.shared::cluster" BYTES
                 ".%s.%s [%%r8], %%%c20, [%%r7];\nbra WAIT;\n",
                 128u * type->bytes, wide ? "b64" : "b32", wide ? 'd' : 'r', same ? '9' : '3', op,
                 type->name, wide ? 'd' : 'r');
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
        {"add", "u32 s32 u64"}, {"min", "u32 s32"}, {"max", "u32 s32"}, {"and", "b32"},
        {"or", "b32"},          {"xor", "b32"},     {"inc", "u32"},     {"dec", "u32"},
    };
    each_type(list, to_global, sizeof to_global / sizeof *to_global, add_reduction_to_global);
    each_type(list, to_shared, sizeof to_shared / sizeof *to_shared, add_reduction_to_shared);
    each_type(list, by_threads, sizeof by_threads / sizeof *by_threads, add_red_async);
}

/* ---- st.async ---- */

static void add_st_async(struct protocol_list *list, const char *type, unsigned words)
{
    static const char *const vectors[] = {[1] = "", [2] = "v2.", [4] = "v4."};
    const bool wide = !strcmp(type + 1, "64");
    for (unsigned d = OWN_IN_PAIR; d < DESTINATIONS; d++) {
        char name[32], value[64] = "";
        size_t used = 0;
        snprintf(name, sizeof name, "st.async.%s%s", vectors[words], type);
        for (unsigned i = 0; i < words; i++)
            used += (size_t)snprintf(value + used, sizeof value - used, "%s%%%c2%u", i ? ", " : "",
                                     wide ? 'd' : 'r', i);
        const char *open = words > 1 ? "{" : "", *close = words > 1 ? "}" : "";
        struct protocol *p = protocol_add_to(list, d, name, "u32");
        protocol_append(p,
                        "@%%p0 mbarrier.arrive.expect_tx.shared.b64 %%d8, [%%r2], %u;\n"
                        "ld.shared.%s%s %s%s%s, [%%r3+16];\nadd.u32 %%r8, %%r6, %%r4;\nMEET"
                        "st.async.weak.shared::cluster" BYTES
                        ".%s%s [%%r8], %s%s%s, [%%r7];\nbra WAIT;\n",
                        128 * words * (wide ? 8 : 4), vectors[words], wide ? "b64" : "b32", open,
                        value, close, vectors[words], type, open, value, close);
    }
}

static void list_st_async(struct protocol_list *list)
{
    static const char *const types[] = {"b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (unsigned words = 1; words <= 4; words *= 2)
            if (words < 4 || !strcmp(types[t] + 1, "32"))
                add_st_async(list, types[t], words);
}

void protocol_list_copies(struct protocol_list *list)
{
    list_bulk(list);
    list_reductions(list);
    list_st_async(list);
}
