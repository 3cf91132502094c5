/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the work type: the same operations on f32 and on f64. */
#include "emit.h"

struct work work_constant(bool wide, double value)
{
    struct work r = {0};
    if (wide)
        r.d = F64(value);
    else
        r.f = F32((float)value);
    return r;
}

#define WORK_BINARY(name)                                                                          \
    struct work work_##name(ptx_kernel *k, bool wide, struct work a, struct work b)                \
    {                                                                                              \
        struct work r = {0};                                                                       \
        if (wide)                                                                                  \
            r.d = ptx_##name##_f64(k, a.d, b.d);                                                   \
        else                                                                                       \
            r.f = ptx_##name##_f32(k, a.f, b.f);                                                   \
        return r;                                                                                  \
    }
WORK_BINARY(add)
WORK_BINARY(sub)
WORK_BINARY(mul)
WORK_BINARY(min)
WORK_BINARY(max)
#undef WORK_BINARY

struct work work_fma(ptx_kernel *k, bool wide, struct work a, struct work b, struct work c)
{
    struct work r = {0};
    if (wide)
        r.d = ptx_fma_f64(k, a.d, b.d, c.d);
    else
        r.f = ptx_fma_f32(k, a.f, b.f, c.f);
    return r;
}

struct work work_neg(ptx_kernel *k, bool wide, struct work a)
{
    struct work r = {0};
    if (wide)
        r.d = ptx_neg_f64(k, a.d);
    else
        r.f = ptx_neg_f32(k, a.f);
    return r;
}

ptx_pred work_less(ptx_kernel *k, bool wide, struct work a, struct work b)
{
    return wide ? ptx_setp_lt_f64(k, a.d, b.d) : ptx_setp_lt_f32(k, a.f, b.f);
}

struct work work_select(ptx_kernel *k, bool wide, struct work a, struct work b, ptx_pred p)
{
    struct work r = {0};
    if (wide)
        r.d = ptx_selp_f64(k, a.d, b.d, p);
    else
        r.f = ptx_selp_f32(k, a.f, b.f, p);
    return r;
}

struct work work_of_s32(ptx_kernel *k, bool wide, ptx_s32 x)
{
    struct work r = {0};
    if (wide)
        r.d = ptx_cvt_f64_s32(k, x);
    else
        r.f = ptx_cvt_f32_s32(k, x);
    return r;
}

struct work work_load_global(ptx_kernel *k, bool wide, ptx_u64 address, int offset)
{
    struct work r = {0};
    if (wide)
        r.d = ptx_ld_global_f64(k, address, offset);
    else
        r.f = ptx_ld_global_f32(k, address, offset);
    return r;
}

struct work work_new(ptx_kernel *k, bool wide, struct work from)
{
    struct work r = {0};
    if (wide)
        r.d = ptx_mov_f64(k, from.d);
    else
        r.f = ptx_mov_f32(k, from.f);
    return r;
}

void work_copy(ptx_kernel *k, bool wide, struct work to, struct work from)
{
    if (wide)
        ptx_mov_f64_to(k, to.d, from.d);
    else
        ptx_mov_f32_to(k, to.f, from.f);
}

void work_load_global_to(ptx_kernel *k, bool wide, struct work to, ptx_u64 address, int offset)
{
    if (wide)
        ptx_ld_global_f64_to(k, to.d, address, offset);
    else
        ptx_ld_global_f32_to(k, to.f, address, offset);
}
