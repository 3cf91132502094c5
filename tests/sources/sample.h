/* SPDX-License-Identifier: Apache-2.0 */
/* What sample.c includes: a function of a header emits as well. */
static inline ptx_u32 from_header(struct handle *h, ptx_u32 x)
{
    return ptx_mov_u32(h->k, x);
}
