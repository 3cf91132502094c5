/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma.mma_async: every kind at 64 by 16 without a swizzle, so that a row of 8 by 16 bytes is a
 * core matrix of 128 bytes, A in the buffer's first 4 KB or in registers, B in the second; and
 * every layout of the matrices in shared memory at 64 by 64.
 */
#include "protocol.h"

#include <string.h>

enum { N = 16, CORE = 128, B_AT = 4096 };

/* Elements as PTX calls them, and how operands are drawn. */
struct element {
    const char *name;
    uint8_t role, bits;
};
static const struct element f16 = {"f16", ROLE_F16, 16}, bf16 = {"bf16", ROLE_BF16, 16},
                            tf32 = {"tf32", ROLE_TF32, 32}, e4m3 = {"e4m3", ROLE_E4M3, 8},
                            e5m2 = {"e5m2", ROLE_E5M2, 8}, s8 = {"s8", ROLE_INTEGER, 8},
                            u8 = {"u8", ROLE_INTEGER, 8}, b1 = {"b1", ROLE_INTEGER, 1};

struct shape {
    const struct element *a, *b;
    const char *d, *suffix;
    bool sparse, registers, accumulates, transposes;
};

/* start, leading and stride byte offsets in units of 16 */
static unsigned long long descriptor(unsigned leading, unsigned stride)
{
    return (unsigned long long)(leading / 16) << 16 | (unsigned long long)(stride / 16) << 32;
}

static void add(struct protocol_list *list, const struct shape *f)
{
    const bool halves = !strcmp(f->d, "f16"), integer = f->a->role == ROLE_INTEGER;
    const unsigned count = halves ? N / 4 : N / 2, k = (f->sparse ? 512u : 256u) / f->a->bits;
    const unsigned chunks_b = f->sparse ? 4 : 2; /* of 16 bytes along K */
    struct protocol *p =
        protocol_add(list, "wgmma%s.m64n%uk%u.%s.%s.%s%s%s%s", f->sparse ? ".sp" : "", N, k, f->d,
                     f->a->name, f->b->name, f->suffix, f->registers ? ", A in registers" : "",
                     f->accumulates ? "" : ", scale-d 0");
    p->word = halves ? 2 : 4;
    p->blocks.in = (struct source){.type = PTX_U32, .role = f->a->role};
    p->blocks.out = (struct source){.type = PTX_U32, /* among them the largest and the smallest */
                                    .role = integer  ? ROLE_TYPED
                                            : halves ? ROLE_F16
                                                     : ROLE_F32_MATRIX};
    for (unsigned i = 0; i < count; i++)
        protocol_append(p, "ld.global.u32 %%r%u, [%%d2+%u];\n", 100 + i, 4 * i);
    for (unsigned i = 0; i < 4 && f->registers; i++)
        protocol_append(p, "ld.shared.u32 %%r%u, [%%r3+%u];\n", 200 + i, 4 * i);
    protocol_append(
        p,
        "shr.u32 %%r8, %%r1, 4;\nand.b32 %%r8, %%r8, 16383;\ncvt.u64.u32 %%d9, %%r8;\n"
        "or.b64 %%d10, %%d9, 0x%llx;\nadd.u64 %%d11, %%d9, %d;\nor.b64 %%d11, %%d11, 0x%llx;\n",
        descriptor(CORE, 2 * CORE), B_AT / 16, descriptor(CORE, chunks_b * CORE));
    protocol_append(p, "setp.ne.u32 %%p2, %d, 0;\n", f->accumulates);
    if (f->sparse) /* valid pairs of indices, of several kinds over the lanes */
        protocol_append(p,
                        "mov.u32 %%r9, 0x%x;\nshr.u32 %%r10, %%r0, 2;\nand.b32 %%r10, %%r10, 7;\n"
                        "shl.b32 %%r10, %%r10, 2;\nshf.l.wrap.b32 %%r9, %%r9, %%r9, %%r10;\n",
                        f->a == &tf32 ? 0x4e44eee4u : 0x4e9d84c8u);
    protocol_append(
        p, "wgmma.fence.sync.aligned;\nwgmma.mma_async%s.sync.aligned.m64n%uk%u.%s.%s.%s%s {",
        f->sparse ? ".sp" : "", N, k, f->d, f->a->name, f->b->name, f->suffix);
    for (unsigned i = 0; i < count; i++)
        protocol_append(p, "%s%%r%u", i ? ", " : "", 100 + i);
    protocol_append(p, "}, %s, %%d11, %s%%p2%s%s;\n",
                    f->registers ? "{%r200, %r201, %r202, %r203}" : "%d10",
                    f->sparse ? "%r9, 0, " : "", integer ? "" : ", 1, -1",
                    !f->transposes ? ""
                    : f->registers ? ", 0"
                                   : ", 0, 0");
    protocol_append(p, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    for (unsigned i = 0; i < count; i++)
        protocol_append(p, "st.global.u32 [%%d2+%u], %%r%u;\n", 4 * i, 100 + i);
}

/* ---- layouts ---- */

/* A matrix of 64 rows or columns in shared memory, 32 bytes along K; offsets in bytes. */
struct layout {
    unsigned start, leading, stride, swizzle; /* swizzle in bytes */
};

static unsigned long long layout_bits(const struct layout *l)
{
    unsigned long long mode = l->swizzle == 128  ? 1
                              : l->swizzle == 64 ? 2
                              : l->swizzle == 32 ? 3
                                                 : 0;
    return descriptor(l->leading, l->stride) | mode << 62;
}

/* Groups of 8 rows along M or N follow each other; `at` is a multiple of 1024. */
static struct layout k_major(unsigned at, unsigned swizzle, unsigned along_k)
{
    if (!swizzle)
        return (struct layout){at, CORE, 2 * CORE, 0};
    return (struct layout){at + along_k % swizzle, 16, 8 * swizzle, swizzle};
}

/* Of 16-bit elements, so 64 of them are 128 bytes, in blocks of the swizzle's width. */
static struct layout mn_major(unsigned at, unsigned swizzle)
{
    if (!swizzle)
        return (struct layout){at, 8 * CORE, CORE, 0};
    return (struct layout){at, 8 * swizzle, 1024, swizzle};
}

static void append_descriptor(struct protocol *p, unsigned reg, const struct layout *l)
{
    protocol_append(p,
                    "add.u32 %%r8, %%r1, %u;\nshr.u32 %%r8, %%r8, 4;\nand.b32 %%r8, %%r8, 16383;\n"
                    "cvt.u64.u32 %%d%u, %%r8;\nor.b64 %%d%u, %%d%u, 0x%llx;\n",
                    l->start, reg, reg, reg, layout_bits(l));
}

/* A and B may overlap: they are only read. */
static void add_layout(struct protocol_list *list, const struct element *e, const struct layout *a,
                       const struct layout *b, bool a_mn, bool b_mn)
{
    enum { WIDE = 64, REGISTERS = WIDE / 2 };
    bool half = e->bits == 16;
    unsigned k = 256u / e->bits;
    const char *d = e->role == ROLE_INTEGER ? "s32" : "f32";
    struct protocol *p =
        protocol_add(list, "wgmma.m64n%uk%u.%s.%s.%s, %u-byte swizzles, A %s, B %s", WIDE, k, d,
                     e->name, e->name, a->swizzle, a_mn ? "M" : "K", b_mn ? "N" : "K");
    p->blocks.in = (struct source){.type = PTX_U32, .role = e->role};
    p->blocks.out = (struct source){.type = PTX_U32};
    append_descriptor(p, 10, a);
    append_descriptor(p, 11, b);
    for (unsigned i = 0; i < REGISTERS; i++)
        protocol_append(p, "mov.b32 %%r%u, 0;\n", 100 + i);
    protocol_append(p,
                    "setp.ne.u32 %%p2, 0, 0;\nwgmma.fence.sync.aligned;\n"
                    "wgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s {",
                    WIDE, k, d, e->name, e->name);
    for (unsigned i = 0; i < REGISTERS; i++)
        protocol_append(p, "%s%%r%u", i ? ", " : "", 100 + i);
    protocol_append(p, "}, %%d10, %%d11, %%p2%s", e->role == ROLE_INTEGER ? "" : ", 1, 1");
    if (half)
        protocol_append(p, ", %d, %d", a_mn, b_mn);
    protocol_append(p, ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    for (unsigned i = 0; i < REGISTERS; i += 2) /* two of the four of each 8 columns */
        protocol_append(p, "st.global.u32 [%%d2+%u], %%r%u;\n", 2 * i, 100 + i + i / 2 % 2);
}

static void list_layouts(struct protocol_list *list)
{
    static const struct element *const elements[] = {&f16, &bf16, &tf32, &e4m3, &s8};
    static const unsigned swizzles[] = {0, 32, 64, 128};
    for (size_t e = 0; e < sizeof elements / sizeof *elements; e++)
        for (size_t s = 0; s < sizeof swizzles / sizeof *swizzles; s++)
            for (unsigned major = 0; major < (elements[e]->bits == 16 ? 4 : 1); major++) {
                unsigned w = swizzles[s];
                struct layout a = major & 1 ? mn_major(0, w) : k_major(0, w, 32);
                struct layout b =
                    major & 2 ? mn_major(B_AT, w) : k_major(w == 128 ? 0 : B_AT, w, 96);
                add_layout(list, elements[e], &a, &b, major & 1, major & 2);
            }
}

void protocol_list_wgmma(struct protocol_list *list)
{
    static const struct {
        const struct element *a, *b;
        const char *d, *suffix;
        bool transposes;
    } kinds[] = {
        {&f16, &f16, "f32", "", true},          {&bf16, &bf16, "f32", "", true},
        {&f16, &f16, "f16", "", true},          {&tf32, &tf32, "f32", "", false},
        {&e4m3, &e4m3, "f32", "", false},       {&e5m2, &e5m2, "f32", "", false},
        {&e4m3, &e5m2, "f32", "", false},       {&e5m2, &e4m3, "f32", "", false},
        {&e4m3, &e4m3, "f16", "", false},       {&e5m2, &e5m2, "f16", "", false},
        {&e4m3, &e5m2, "f16", "", false},       {&e5m2, &e4m3, "f16", "", false},
        {&s8, &s8, "s32", "", false},           {&u8, &u8, "s32", "", false},
        {&s8, &u8, "s32", "", false},           {&u8, &s8, "s32", "", false},
        {&s8, &s8, "s32", ".satfinite", false}, {&u8, &u8, "s32", ".satfinite", false},
        {&s8, &u8, "s32", ".satfinite", false}, {&u8, &s8, "s32", ".satfinite", false},
        {&b1, &b1, "s32", ".and.popc", false},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (unsigned variant = 0; variant < 8; variant++) {
            struct shape f = {kinds[i].a,  kinds[i].b,  kinds[i].d,  kinds[i].suffix,
                              variant & 1, variant & 2, variant & 4, kinds[i].transposes};
            if (!(f.sparse && f.a == &b1))
                add(list, &f);
        }
    list_layouts(list);
}
