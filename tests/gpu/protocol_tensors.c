/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor copies and reductions: boxes that reach over the tensor's edges, swizzles, multicast. */
#include "protocol.h"

#include <stdio.h>
#include <string.h>

/* CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapFloatOOBfill. */
enum { U8, U16, U32, S32, U64, S64, F16, F32, F64, BF16, F32_FTZ, TF32, TF32_FTZ };
enum { PLAIN, SWIZZLE_32, SWIZZLE_64, SWIZZLE_128 };
enum { ZEROS, NANS };

#define BYTES ".mbarrier::complete_tx::bytes"

static void set_tensor(struct protocol *p, const struct tensor *t, uint8_t type)
{
    p->blocks.in = p->blocks.out = (struct source){.type = type};
    p->blocks.maps = true;
    p->blocks.tensor = *t;
    p->word = t->bytes;
}

/* ---- loads ---- */

struct load {
    const char *name;
    struct tensor tensor;
    int16_t from[5], by[5]; /* the box's place in CTA c: from + c · by; 16 bytes by 16 in [0] */
};

static const struct load loads[] = {
    {"1d u32", {U32, 4, 1, PLAIN, ZEROS, {2000}, {256}, {1}}, {-16}, {64}},
    {"2d f32, 128-byte swizzle, NaN",
     {F32, 4, 2, SWIZZLE_128, NANS, {48, 40}, {32, 32}, {1, 1}},
     {-8, -3},
     {8, 5}},
    {"2d f32, 128-byte swizzle, narrow",
     {F32, 4, 2, SWIZZLE_128, ZEROS, {48, 40}, {16, 32}, {1, 1}},
     {-8, -3},
     {8, 5}},
    {"2d f16, 64-byte swizzle",
     {F16, 2, 2, SWIZZLE_64, ZEROS, {64, 60}, {32, 64}, {1, 1}},
     {-8, 5},
     {8, -2}},
    {"2d f16", {F16, 2, 2, PLAIN, ZEROS, {64, 60}, {32, 64}, {1, 1}}, {-16, 5}, {8, -2}},
    {"2d u8", {U8, 1, 2, PLAIN, ZEROS, {48, 100}, {32, 128}, {1, 1}}, {-16, -60}, {16, 9}},
    {"2d f16, 128-byte swizzle, NaN",
     {F16, 2, 2, SWIZZLE_128, NANS, {64, 60}, {64, 64}, {1, 1}},
     {-32, -9},
     {8, 7}},
    {"2d u8, 32-byte swizzle",
     {U8, 1, 2, SWIZZLE_32, ZEROS, {48, 100}, {32, 128}, {1, 1}},
     {-16, -60},
     {16, 9}},
    {"2d u8, 128-byte swizzle",
     {U8, 1, 2, SWIZZLE_128, ZEROS, {144, 50}, {128, 64}, {1, 1}},
     {0, -8},
     {16, 3}},
    {"2d u64", {U64, 8, 2, PLAIN, ZEROS, {20, 16}, {16, 8}, {1, 1}}, {-4, -2}, {2, 1}},
    {"2d f64, NaN", {F64, 8, 2, SWIZZLE_128, NANS, {20, 16}, {16, 8}, {1, 1}}, {-4, -2}, {2, 1}},
    {"2d s32, every other row",
     {S32, 4, 2, PLAIN, ZEROS, {32, 60}, {16, 40}, {1, 2}},
     {-4, -5},
     {4, 2}},
    {"2d u16, every third row",
     {U16, 2, 2, SWIZZLE_64, ZEROS, {64, 60}, {32, 48}, {1, 3}},
     {-8, -5},
     {8, 2}},
    {"2d s64", {S64, 8, 2, SWIZZLE_64, ZEROS, {20, 16}, {8, 16}, {1, 1}}, {-4, -2}, {2, 1}},
    {"2d f32 ftz", {F32_FTZ, 4, 2, PLAIN, NANS, {48, 40}, {32, 32}, {1, 1}}, {-8, -3}, {8, 5}},
    {"2d tf32", {TF32, 4, 2, PLAIN, NANS, {48, 40}, {32, 32}, {1, 1}}, {-8, -3}, {8, 5}},
    {"2d tf32 ftz", {TF32_FTZ, 4, 2, PLAIN, NANS, {48, 40}, {32, 32}, {1, 1}}, {-8, -3}, {8, 5}},
    {"3d bf16, NaN",
     {BF16, 2, 3, PLAIN, NANS, {24, 10, 9}, {16, 8, 8}, {1, 1, 1}},
     {-8, -2, -1},
     {8, 1, 1}},
    {"4d u32, 64-byte swizzle",
     {U32, 4, 4, SWIZZLE_64, ZEROS, {20, 5, 5, 4}, {16, 4, 4, 4}, {1, 1, 1, 1}},
     {-4, 1, -1, -2},
     {4, 1, 0, 1}},
    {"4d u32, strides",
     {U32, 4, 4, PLAIN, ZEROS, {20, 5, 5, 4}, {16, 4, 4, 4}, {1, 2, 1, 3}},
     {-4, 1, -1, -2},
     {4, 1, 0, 1}},
    {"5d f32",
     {F32, 4, 5, PLAIN, ZEROS, {12, 4, 5, 3, 2}, {8, 4, 4, 2, 4}, {1, 1, 1, 1, 1}},
     {4, 0, -1, 1, -1},
     {0, 1, 0, 0, 1}},
};

static unsigned box_bytes(const struct tensor *t)
{
    unsigned bytes = t->bytes;
    for (unsigned i = 0; i < t->rank; i++)
        bytes *= (t->box[i] + t->steps[i] - 1) / t->steps[i];
    return bytes;
}

/* Loads the map's address and "{%r40, …}", the coordinates. */
static void append_place(struct protocol *p, const char *map, const struct load *load)
{
    protocol_append(p, "mov.b64 %%d9, %s;\ncvta.param.u64 %%d9, %%d9;\n", map);
    for (unsigned i = 0; i < load->tensor.rank; i++)
        protocol_append(p, "mad.lo.s32 %%r%u, %%r5, %d, %d;\n", 40 + i, load->by[i], load->from[i]);
}

static void append_coordinates(struct protocol *p, unsigned rank)
{
    for (unsigned i = 0; i < rank; i++)
        protocol_append(p, "%s%%r%u", i ? ", " : "{", 40 + i);
    protocol_append(p, "}");
}

static void add_load(struct protocol_list *list, const struct load *load)
{
    const struct tensor *t = &load->tensor;
    struct protocol *p = protocol_add(list, "cp.async.bulk.tensor to shared: %s", load->name);
    set_tensor(p, t,
               t->type == F32_FTZ || t->type == TF32 || t->type == TF32_FTZ ? PTX_F32 : PTX_U32);
    append_place(p, "in_map", load);
    protocol_append(p,
                    "@%%p0 mbarrier.arrive.expect_tx.shared.b64 %%d8, [%%r2], %u;\n"
                    "@%%p0 cp.async.bulk.tensor.%ud.shared::cluster.global.tile" BYTES
                    " [%%r1], [%%d9, ",
                    box_bytes(t), t->rank);
    append_coordinates(p, t->rank);
    protocol_append(p, "], [%%r2];\nbra WAIT;\n");
}

/* How a copy to shared memory may be written, beside the plain form. */
static const struct spelling {
    const char *space, *modifiers, *operands, *before, *name;
} spellings[] = {
    {"shared::cta", "", "", "", "shared::cta"},
    {"shared::cta", ".L2::cache_hint", ", %d12", "", "shared::cta, hint"},
    {"shared::cluster", ".L2::cache_hint", ", %d12", "", "hint"},
    {"shared::cluster", ".multicast::cluster", ", %h1", "", "multicast"},
    {"shared::cluster", ".multicast::cluster.L2::cache_hint", ", %h1, %d12", "", "multicast, hint"},
    {"shared::cluster", "", "", "cp.async.bulk.prefetch.tensor.", "prefetch"},
};

static void add_spelling(struct protocol_list *list, const struct load *load,
                         const struct spelling *how)
{
    const struct tensor *t = &load->tensor;
    struct protocol *p =
        protocol_add(list, "cp.async.bulk.tensor to shared: %s, %s", load->name, how->name);
    set_tensor(p, t, PTX_U32);
    append_place(p, "in_map", load);
    protocol_append(p, "createpolicy.fractional.L2::evict_first.b64 %%d12, 1.0;\nmov.u16 %%h1, 1;\n"
                       "prefetch.tensormap [%%d9];\n");
    if (*how->before) {
        protocol_append(p, "@%%p0 %s%ud.L2.global.tile [%%d9, ", how->before, t->rank);
        append_coordinates(p, t->rank);
        protocol_append(p, "];\n");
    }
    protocol_append(p,
                    "@%%p0 mbarrier.arrive.expect_tx.shared.b64 %%d8, [%%r2], %u;\n"
                    "@%%p0 cp.async.bulk.tensor.%ud.%s.global.tile" BYTES "%s [%%r1], [%%d9, ",
                    box_bytes(t), t->rank, how->space, how->modifiers);
    append_coordinates(p, t->rank);
    protocol_append(p, "], [%%r2]%s;\nbra WAIT;\n", how->operands);
}

/* All forms of the first load of each rank. */
static void list_spellings(struct protocol_list *list)
{
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        for (size_t f = 0; f < sizeof spellings / sizeof *spellings; f++)
            if (i == 0 || loads[i - 1].tensor.rank < loads[i].tensor.rank)
                add_spelling(list, &loads[i], &spellings[f]);
}

/* Both CTAs of a cluster copy a box each into both. */
static void add_multicast(struct protocol_list *list)
{
    static const struct load load = {
        "", {U32, 4, 2, PLAIN, ZEROS, {16, 128}, {16, 16}, {1, 1}}, {0, 8}, {0, 1}};
    struct protocol *p = protocol_add(list, "cp.async.bulk.tensor to shared of both: multicast");
    set_tensor(p, &load.tensor, PTX_U32);
    p->destination = PEER;
    append_place(p, "in_map", &load);
    protocol_append(
        p, "mov.u32 %%r9, %%cluster_ctarank;\nmad.lo.u32 %%r9, %%r9, 1024, %%r1;\n"
           "mov.u16 %%h1, 3;\n"
           "@%%p0 mbarrier.arrive.expect_tx.shared.b64 %%d8, [%%r2], 2048;\n"
           "@%%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile" BYTES
           ".multicast::cluster [%%r9], [%%d9, {%%r40, %%r41}], [%%r2], %%h1;\nbra WAIT;\n");
    p = protocol_add(list, "cp.async.bulk to shared of both: multicast");
    p->blocks.in = p->blocks.out = (struct source){.type = PTX_U32};
    p->destination = PEER;
    protocol_append(p, "mov.u32 %%r9, %%cluster_ctarank;\nmad.lo.u32 %%r9, %%r9, 1024, %%r1;\n"
                       "mov.u16 %%h1, 3;\n"
                       "@%%p0 mbarrier.arrive.expect_tx.shared.b64 %%d8, [%%r2], 2048;\n"
                       "@%%p0 cp.async.bulk.shared::cluster.global" BYTES
                       ".multicast::cluster [%%r9], [%%d1+4096], 1024, [%%r2], %%h1;\nbra WAIT;\n");
}

/* ---- stores and reductions: 16 rows of the CTA's 128 ---- */

/* `op` "": a store, with a hint where there is a policy. */
static void append_store(struct protocol *p, const char *op, unsigned rank, const char *policy)
{
    protocol_append(p,
                    "@%%p0 cp.%sasync.bulk.tensor.%ud.global.shared::cta%s%s.tile.bulk_group%s "
                    "[%%d9, ",
                    *op ? "reduce." : "", rank, *op ? "." : "", op,
                    *policy ? ".L2::cache_hint" : "");
    append_coordinates(p, rank);
    protocol_append(p,
                    "], [%%r1]%s%s;\n@%%p0 cp.async.bulk.commit_group;\n"
                    "@%%p0 cp.async.bulk.wait_group 0;\n",
                    *policy ? ", " : "", policy);
}

static void add_store(struct protocol_list *list, const char *op, const char *type_name,
                      const struct tensor *t, uint8_t type, int x, const char *note)
{
    struct load place = {"", *t, {(int16_t)x, 8}, {0, 128}};
    struct protocol *p =
        protocol_add(list, "%s.global.shared::cta%s%s %s%s",
                     *op ? "cp.reduce.async.bulk.tensor.2d" : "cp.async.bulk.tensor.2d",
                     *op ? "." : "", op, type_name, note);
    set_tensor(p, t, type);
    append_place(p, "out_map", &place);
    append_store(p, op, 2, "");
}

/* Sixteen rows of 64 bytes in every rank, rows 1 to 5 of a group of 8 where there are groups. */
static void list_ranks(struct protocol_list *list)
{
    static const struct load places[] = {
        {"", {U32, 4, 1, PLAIN, ZEROS, {0}, {256}, {1}}, {128}, {2048}},
        {"", {U32, 4, 2, PLAIN, ZEROS, {16, 0}, {16, 16}, {1, 1}}, {0, 8}, {0, 128}},
        {"", {U32, 4, 3, PLAIN, ZEROS, {16, 8, 0}, {16, 4, 4}, {1, 1, 1}}, {0, 2, 1}, {0, 0, 16}},
        {"",
         {U32, 4, 4, PLAIN, ZEROS, {16, 8, 4, 0}, {16, 4, 2, 2}, {1, 1, 1, 1}},
         {0, 2, 1, 1},
         {0, 0, 0, 4}},
        {"",
         {U32, 4, 5, PLAIN, ZEROS, {16, 8, 4, 2, 0}, {16, 4, 2, 2, 1}, {1, 1, 1, 1, 1}},
         {0, 2, 1, 0, 1},
         {0, 0, 0, 0, 2}},
    };
    static const char *const operations[] = {"",    "add", "min", "max", "inc",
                                             "dec", "and", "or",  "xor"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (size_t o = 0; o <= sizeof operations / sizeof *operations; o++) {
            const bool hint = o == sizeof operations / sizeof *operations;
            const char *op = hint ? "" : operations[o];
            struct protocol *p = protocol_add(list, "tensor of %u: %s%s", places[i].tensor.rank,
                                              *op ? op : "store", hint ? ", hint" : "");
            set_tensor(p, &places[i].tensor, PTX_U32);
            append_place(p, "out_map", &places[i]);
            protocol_append(p, "createpolicy.fractional.L2::evict_first.b64 %%d12, 1.0;\n");
            append_store(p, op, places[i].tensor.rank, hint ? "%d12" : "");
        }
}

static void list_reductions(struct protocol_list *list)
{
    static const struct {
        const char *name, *operations; /* separated by spaces */
        uint8_t map, bytes, type;
    } elements[] = {
        {"u32", "add min max and or xor inc dec", U32, 4, PTX_U32},
        {"s32", "add min max and or xor", S32, 4, PTX_S32},
        {"u64", "add min max and or xor", U64, 8, PTX_U64},
        {"s64", "min max", S64, 8, PTX_S64},
        {"f32", "add", F32, 4, PTX_F32},
        {"f16", "add min max", F16, 2, PTX_F16},
        {"bf16", "add min max", BF16, 2, PTX_BF16},
    };
    for (size_t e = 0; e < sizeof elements / sizeof *elements; e++) {
        uint8_t bytes = elements[e].bytes;
        struct tensor t = {elements[e].map,   bytes, 2, PLAIN, ZEROS, {64u / bytes, 0},
                           {64u / bytes, 16}, {1, 1}};
        char names[64], *rest = names;
        add_store(list, "", elements[e].name, &t, elements[e].type, 0, "");
        snprintf(names, sizeof names, "%s", elements[e].operations);
        for (const char *op; (op = strtok_r(rest, " ", &rest));)
            add_store(list, op, elements[e].name, &t, elements[e].type, 0, "");
    }
}

static void list_stores(struct protocol_list *list)
{
    static const struct {
        uint8_t swizzle;
        uint16_t width;
        int8_t x;
        const char *note;
    } forms[] = {
        {PLAIN, 16, 8, ", over the right edge"},
        {SWIZZLE_32, 8, 4, ", 32-byte swizzle"},
        {SWIZZLE_64, 16, 4, ", 64-byte swizzle"},
        {SWIZZLE_128, 16, 8, ", 128-byte swizzle, narrow"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tensor t = {U32,   4, 2, forms[i].swizzle, ZEROS, {16, 0}, {forms[i].width, 16},
                           {1, 1}};
        add_store(list, "", "u32", &t, PTX_U32, forms[i].x, forms[i].note);
        add_store(list, "add", "u32", &t, PTX_U32, forms[i].x, forms[i].note);
    }
}

void protocol_list_tensors(struct protocol_list *list)
{
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        add_load(list, &loads[i]);
    list_spellings(list);
    add_multicast(list);
    list_reductions(list);
    list_stores(list);
    list_ranks(list);
}
