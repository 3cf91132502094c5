/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma.mma_async of 64 by 16: A in the buffer's first 4 KB or in registers, B in the second, both
 * K-major without a swizzle, so a row of 8 by 16 bytes is a core matrix of 128 bytes.
 */
#include "protocol.h"

#include <stdarg.h>

#include <stdio.h>
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
                            u8 = {"u8", ROLE_INTEGER, 8};

struct shape {
    const struct element *a, *b;
    const char *d;
    bool sparse, registers, accumulates, transposes;
};

/* start, leading and stride byte offsets in units of 16 */
static unsigned long long descriptor(unsigned leading, unsigned stride)
{
    return (unsigned long long)(leading / 16) << 16 | (unsigned long long)(stride / 16) << 32;
}

static void append(struct protocol *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void append(struct protocol *p, const char *format, ...)
{
    size_t used = strlen(p->body);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(p->body + used, sizeof p->body - used, format, arguments);
    va_end(arguments);
}

static void add(struct protocol_list *list, const struct shape *f)
{
    const bool halves = !strcmp(f->d, "f16"), integer = f->a->role == ROLE_INTEGER;
    const unsigned count = halves ? N / 4 : N / 2, k = (f->sparse ? 512u : 256u) / f->a->bits;
    const unsigned chunks_b = f->sparse ? 4 : 2; /* of 16 bytes along K */
    struct protocol *p = protocol_add(
        list, "wgmma%s.m64n%uk%u.%s.%s.%s%s%s", f->sparse ? ".sp" : "", N, k, f->d, f->a->name,
        f->b->name, f->registers ? ", A in registers" : "", f->accumulates ? "" : ", scale-d 0");
    p->word = halves ? 2 : 4;
    p->blocks.in = (struct source){.type = PTX_U32, .role = f->a->role};
    p->blocks.out = (struct source){.type = PTX_U32,
                                    .role = integer  ? ROLE_INTEGER
                                            : halves ? ROLE_F16
                                                     : ROLE_F32_MATRIX};
    for (unsigned i = 0; i < count; i++)
        append(p, "ld.global.u32 %%r%u, [%%d2+%u];\n", 100 + i, 4 * i);
    for (unsigned i = 0; i < 4 && f->registers; i++)
        append(p, "ld.shared.u32 %%r%u, [%%r3+%u];\n", 200 + i, 4 * i);
    append(p,
           "shr.u32 %%r8, %%r1, 4;\nand.b32 %%r8, %%r8, 16383;\ncvt.u64.u32 %%d9, %%r8;\n"
           "or.b64 %%d10, %%d9, 0x%llx;\nadd.u64 %%d11, %%d9, %d;\nor.b64 %%d11, %%d11, 0x%llx;\n",
           descriptor(CORE, 2 * CORE), B_AT / 16, descriptor(CORE, chunks_b * CORE));
    append(p, "setp.ne.u32 %%p2, %d, 0;\n", f->accumulates);
    if (f->sparse) /* valid pairs of indices, of several kinds over the lanes */
        append(p, "mov.u32 %%r9, 0x4e9d84c8;\nshr.u32 %%r10, %%r0, 2;\nand.b32 %%r10, %%r10, 7;\n"
                  "shl.b32 %%r10, %%r10, 2;\nshf.l.wrap.b32 %%r9, %%r9, %%r9, %%r10;\n");
    append(p, "wgmma.fence.sync.aligned;\nwgmma.mma_async%s.sync.aligned.m64n%uk%u.%s.%s.%s {",
           f->sparse ? ".sp" : "", N, k, f->d, f->a->name, f->b->name);
    for (unsigned i = 0; i < count; i++)
        append(p, "%s%%r%u", i ? ", " : "", 100 + i);
    append(p, "}, %s, %%d11, %s%%p2%s%s;\n", f->registers ? "{%r200, %r201, %r202, %r203}" : "%d10",
           f->sparse ? "%r9, 0, " : "", integer ? "" : ", 1, -1",
           !f->transposes ? ""
           : f->registers ? ", 0"
                          : ", 0, 0");
    append(p, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    for (unsigned i = 0; i < count; i++)
        append(p, "st.global.u32 [%%d2+%u], %%r%u;\n", 4 * i, 100 + i);
}

void protocol_list_wgmma(struct protocol_list *list)
{
    static const struct {
        const struct element *a, *b;
        const char *d;
        bool transposes;
    } kinds[] = {
        {&f16, &f16, "f32", true},    {&bf16, &bf16, "f32", true},  {&f16, &f16, "f16", true},
        {&tf32, &tf32, "f32", false}, {&e4m3, &e4m3, "f32", false}, {&e5m2, &e5m2, "f32", false},
        {&e4m3, &e5m2, "f32", false}, {&e4m3, &e4m3, "f16", false}, {&s8, &s8, "s32", false},
        {&u8, &u8, "s32", false},     {&s8, &u8, "s32", false},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (unsigned variant = 0; variant < 8; variant++) {
            struct shape f = {kinds[i].a,  kinds[i].b,  kinds[i].d,         variant & 1,
                              variant & 2, variant & 4, kinds[i].transposes};
            if (!(f.sparse && f.a == &tf32)) /* whose metadata has two patterns only */
                add(list, &f);
        }
}
