/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expressions for emission_order, which is to find the lines that end in "two". Never compiled: what
 * is missing here is what the tool does without.
 */
#include "sample.h"

struct handle {
    ptx_kernel *k;
    struct {
        ptx_u32 (*next)(void *user);
    } calls;
    ptx_u32 a, b;
};

#define PAIR(h, x) pair(h, x, U32(4)) /* emits, as pair does */

static ptx_u32 doubled(struct handle *h, ptx_u32 x)
{
    return ptx_add_u32(h->k, x, x);
}

static ptx_u32 pair(struct handle *h, ptx_u32 a, ptx_u32 b)
{
    return b.o ? doubled(h, a) : a;
}

static uint32_t host_only(uint32_t a)
{
    return a + 1;
}

static void arguments(struct handle *h, ptx_u32 x)
{
    ptx_kernel *k = h->k;
    ptx_add_u32(k, ptx_u32_as_s32(x), ptx_u32_as_s32(x));
    ptx_add_u32(k, doubled(h, x), U32(host_only(3)));
    ptx_add_u32(k, doubled(h, x), doubled(h, x)); /* two */
    ptx_add_u32(k, doubled(h, doubled(h, x)), x);
    ptx_add_u32(k, doubled(h, pair(h, x, x)), PAIR(h, x)); /* two */
    use(host_only(1), from_header(h, x), /* on the line of the comma or the parenthesis after it */
        ptx_mov_u32(k, x)); /* two */
    use(doubled(h, x).o, host_only(2) ? x.o : doubled(h, x).o); /* two */
    h->calls.next = take_next;
    use(h->calls.next(h), doubled(h, x)); /* two */
}

static ptx_u32 take_next(void *user)
{
    struct handle *h = user;
    return doubled(h, h->a);
}

static void operands(struct handle *h, ptx_u32 x)
{
    uint32_t left = doubled(h, x).o + doubled(h, x).o; /* two */
    bool both = doubled(h, x).o && doubled(h, x).o;
    uint32_t either = left ? doubled(h, x).o : pair(h, x, x).o;
    uint32_t first = doubled(h, x).o, second = doubled(h, x).o;
    uint32_t third = doubled(h, x).o ^ (both ? doubled(h, x).o : 0); /* two */
    h->table[doubled(h, x).o] = doubled(h, x); /* two */
    either = (doubled(h, x).o, doubled(h, x).o);
    either = (uint32_t)doubled(h, x).o * (uint32_t)doubled(h, x).o; /* two */
}

static struct place initialisers(struct handle *h, ptx_u32 x)
{
    struct place p = {doubled(h, x), doubled(h, x)}; /* two */
    struct place one = {.a = doubled(h, x), .b = x};
    use(&(struct place){.a = doubled(h, x), .b = doubled(h, x)}); /* two */
    return (struct place){.a = x, .b = {doubled(h, x)}};
}

static void statements(struct handle *h, ptx_u32 x)
{
    ptx_kernel *k = h->k;
    if (doubled(h, x).o)
        doubled(h, x);
    else
        doubled(h, x);
    for (uint32_t i = doubled(h, x).o; i < doubled(h, x).o; i += doubled(h, x).o)
        doubled(h, x);
    ptx_if(k, ptx_setp_ne_u32(k, x, U32(1)))
        doubled(h, x);
    ptx_for(k, x, U32(4), U32(1)) {
        doubled(h, x);
        doubled(h, x);
    }
    ptx_for(k, x, doubled(h, x), doubled(h, x)) { /* two */
        doubled(h, x);
    }
    doubled(h, x);
}
