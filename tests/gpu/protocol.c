/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct protocol *protocol_add(struct protocol_list *list, const char *format, ...)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 64;
        list->items = realloc(list->items, list->capacity * sizeof *list->items);
        if (!list->items)
            abort();
    }
    struct protocol *made = &list->items[list->count++];
    *made = (struct protocol){.word = 4};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(made->name, sizeof made->name, format, arguments);
    va_end(arguments);
    for (char *at = made->name; (at = strchr(at, '\n'));)
        *at = ' ';
    return made;
}

void protocol_list_all(struct protocol_list *list)
{
    protocol_list_copies(list);
    protocol_list_mbarriers(list);
    protocol_list_steps(list);
    protocol_list_tensors(list);
    protocol_list_wgmma(list);
    protocol_list_carries(list);
    protocol_list_lanes(list);
}

void protocol_append(struct protocol *p, const char *format, ...)
{
    size_t used = strlen(p->body);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(p->body + used, sizeof p->body - used, format, arguments);
    va_end(arguments);
}

const struct protocol_type *protocol_type(const char *name)
{
    static const struct protocol_type types[] = {
        {"u32", PTX_U32, 4}, {"s32", PTX_S32, 4}, {"u64", PTX_U64, 8}, {"s64", PTX_S64, 8},
        {"f32", PTX_F32, 4}, {"f64", PTX_F64, 8}, {"f16", PTX_F16, 2}, {"bf16", PTX_BF16, 2},
        {"b32", PTX_U32, 4}, {"b64", PTX_U64, 8},
    };
    size_t i = 0;
    while (strcmp(types[i].name, name) != 0)
        i++;
    return &types[i];
}

void protocol_set_type(struct protocol *p, const struct protocol_type *type)
{
    p->blocks.in = p->blocks.out = (struct source){.type = type->type};
    p->word = type->bytes;
}

struct protocol *protocol_add_to(struct protocol_list *list, unsigned destination, const char *name,
                                 const char *type)
{
    static const char *const words[DESTINATIONS] = {
        [OWN_IN_PAIR] = "to itself",
        [MAPPED_IN_PAIR] = "to itself, mapped",
        [PEER] = "to its peer",
        [ALONE] = "to itself, mapped, alone",
    };
    struct protocol *p = protocol_add(list, "%s %s", name, words[destination]);
    protocol_set_type(p, protocol_type(type));
    p->destination = (uint8_t)destination;
    return p;
}

/* Where the destination's buffer and mbarrier are: CTAs of a cluster of two, or of one. */
#define PAIR ".reqnctapercluster 2, 1, 1\n"
#define MAP(rank)                                                                                  \
    "mov.u32 %r8, %cluster_ctarank;\n" rank "mapa.shared::cluster.u32 %r6, %r1, %r8;\n"            \
    "mapa.shared::cluster.u32 %r7, %r2, %r8;\n"

static const struct {
    const char *directive, *map, *meet;
} destinations[DESTINATIONS] = {
    [OWN] = {"", "mov.u32 %r6, %r1;\nmov.u32 %r7, %r2;\n", "bar.sync 0;\n"},
    [OWN_IN_PAIR] = {PAIR, "mov.u32 %r6, %r1;\nmov.u32 %r7, %r2;\n", PROTOCOL_MEET},
    [MAPPED_IN_PAIR] = {PAIR, MAP(""), PROTOCOL_MEET},
    [PEER] = {PAIR, MAP("xor.b32 %r8, %r8, 1;\n"), PROTOCOL_MEET},
    [ALONE] = {".reqnctapercluster 1, 1, 1\n", MAP(""), PROTOCOL_MEET},
};

/*
 * %r0 is the thread, %r1 the buffer, which holds the CTA's block of in, %r2 an mbarrier, %r3 the
 * thread's line of the buffer; %r6 and %r7 the destination's buffer and mbarrier; %d0 and %d1 the
 * CTA's blocks of out and in, %d2 the thread's line of out; %p0 is true in thread 0. A body that
 * ends in a jump to WAIT leaves its results in the buffer, whose first word is inverted when bytes
 * are still to come, or came that nobody expected; MEET in it stands for a barrier with
 * the destination.
 */
void protocol_text(const struct protocol *protocol, char text[PROTOCOL_TEXT])
{
    const char *meet = destinations[protocol->destination].meet;
    const char *at = strstr(protocol->body, "MEET");
    int before = at ? (int)(at - protocol->body) : (int)strlen(protocol->body);
    snprintf(text, PROTOCOL_TEXT,
             ".version 8.6\n.target sm_90a\n.address_size 64\n"
             ".visible .entry k(.param .u64 out, .param .u64 in%s)\n.reqntid 128, 1, 1\n%s%s{\n"
             ".reg .pred %%p<8>;\n.reg .b16 %%h<8>;\n.reg .b32 %%r<256>;\n.reg .b64 %%d<32>;\n"
             ".shared .align 1024 .b8 buf[8192];\n.shared .align 8 .b64 bar;\n"
             "mov.u32 %%r0, %%tid.x;\nmov.u32 %%r1, buf;\nmov.u32 %%r2, bar;\n"
             "shl.b32 %%r4, %%r0, 6;\nadd.u32 %%r3, %%r1, %%r4;\nmov.u32 %%r5, %%ctaid.x;\n"
             "mul.wide.u32 %%d3, %%r5, 8192;\nld.param.u64 %%d0, [out];\nld.param.u64 %%d1, [in];\n"
             "add.u64 %%d0, %%d0, %%d3;\nadd.u64 %%d1, %%d1, %%d3;\ncvt.u64.u32 %%d4, %%r4;\n"
             "add.u64 %%d2, %%d0, %%d4;\nadd.u64 %%d5, %%d1, %%d4;\nsetp.eq.u32 %%p0, %%r0, 0;\n"
             "ld.global.v2.u64 {%%d6, %%d7}, [%%d5];\nst.shared.v2.u64 [%%r3], {%%d6, %%d7};\n"
             "ld.global.v2.u64 {%%d6, %%d7}, [%%d5+16];\n"
             "st.shared.v2.u64 [%%r3+16], {%%d6, %%d7};\n"
             "ld.global.v2.u64 {%%d6, %%d7}, [%%d5+32];\n"
             "st.shared.v2.u64 [%%r3+32], {%%d6, %%d7};\n"
             "ld.global.v2.u64 {%%d6, %%d7}, [%%d5+48];\n"
             "st.shared.v2.u64 [%%r3+48], {%%d6, %%d7};\n"
             "@%%p0 mbarrier.init.shared.b64 [%%r2], 1;\n"
             "fence.mbarrier_init.release.cluster;\nfence.proxy.async;\n%s%s"
             "%.*s%s%s\n"
             "bra DONE;\n"
             "WAIT: mbarrier.try_wait.parity.shared.b64 %%p1, [%%r2], 0;\n@!%%p1 bra WAIT;\n"
             "%s@%%p0 mbarrier.arrive.shared.b64 %%d8, [%%r2];\n"
             "@%%p0 mbarrier.test_wait.parity.shared.b64 %%p1, [%%r2], 1;\n"
             "selp.b64 %%d8, 0, -1, %%p1;\n"
             "ld.shared.v2.u64 {%%d6, %%d7}, [%%r3];\nxor.b64 %%d6, %%d6, %%d8;\nst.global.v2.u64 "
             "[%%d2], {%%d6, %%d7};\n"
             "ld.shared.v2.u64 {%%d6, %%d7}, [%%r3+16];\n"
             "st.global.v2.u64 [%%d2+16], {%%d6, %%d7};\n"
             "ld.shared.v2.u64 {%%d6, %%d7}, [%%r3+32];\n"
             "st.global.v2.u64 [%%d2+32], {%%d6, %%d7};\n"
             "ld.shared.v2.u64 {%%d6, %%d7}, [%%r3+48];\n"
             "st.global.v2.u64 [%%d2+48], {%%d6, %%d7};\n"
             "DONE: ret;\n}\n",
             protocol->blocks.maps
                 ? ", .param .align 64 .b8 in_map[128], .param .align 64 .b8 out_map[128]"
                 : "",
             protocol->directive ? protocol->directive : "",
             destinations[protocol->destination].directive, destinations[protocol->destination].map,
             meet, before, protocol->body, at ? meet : "", at ? at + strlen("MEET") : "", meet);
}
