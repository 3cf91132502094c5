/* SPDX-License-Identifier: Apache-2.0 */
/* Scales at the ends that packing admits. */
#ifndef PTXGEN_TESTS_MARLIN_SCALE_EDGES_H
#define PTXGEN_TESTS_MARLIN_SCALE_EDGES_H

#include "packing.h"

#include <math.h>

/* The first and the last value that is admitted, and the next beyond; the zero point matters. */
static const struct scale_edge {
    uint8_t type, zeros, zero;
    ptxgen_element from;
    double value;
    const char *refused; /* NULL: admitted */
} scale_edges[] = {
    {PTXGEN_F16, 0, 8, PTXGEN_F16, 8188, NULL},
    {PTXGEN_F16, 0, 8, PTXGEN_F16, -8188, NULL},
    {PTXGEN_F16, 0, 8, PTXGEN_F16, 8192,
     "scale 8192 of weights, group 3, feature 17, with the zero point 8 makes weights up to 65536"},
    {PTXGEN_F16, 0, 8, PTXGEN_F16, -8192, "scale -8192 of weights"},
    {PTXGEN_F16, 0, 8, PTXGEN_F32, 8189.9, NULL}, /* rounds to 8188 */
    {PTXGEN_F16, 0, 8, PTXGEN_F32, 8190.1, "makes weights up to 65536"},
    {PTXGEN_F16, 1, 0, PTXGEN_F16, 4364, NULL},
    {PTXGEN_F16, 1, 0, PTXGEN_F16, 4368, "with the zero point 0 makes weights up to 65520"},
    {PTXGEN_F16, 1, 15, PTXGEN_F16, -4368, "with the zero point 15 makes weights up to 65520"},
    {PTXGEN_F16, 1, 11, PTXGEN_F16, 5952, NULL},
    {PTXGEN_F16, 1, 11, PTXGEN_F16, 5956, "with the zero point 11 makes weights up to 65516"},
    {PTXGEN_F16, 1, 7, PTXGEN_F16, 8188, NULL},
    {PTXGEN_F16, 0, 8, PTXGEN_F16, 0x1p-24, NULL},
    {PTXGEN_F16, 0, 8, PTXGEN_F16, 0, NULL},
    {PTXGEN_F16, 0, 8, PTXGEN_F32, -0.0, NULL},
    {PTXGEN_F16, 0, 8, PTXGEN_F32, 0x1.000002p-25, NULL},
    {PTXGEN_F16, 0, 8, PTXGEN_F32, 0x1p-25, "group 3, feature 17, is not 0, but rounds to 0 as f16"},
    {PTXGEN_F16, 0, 8, PTXGEN_BF16, -0x1p-133, "is not 0, but rounds to 0 as f16"},
    {PTXGEN_F16, 0, 8, PTXGEN_F16, -INFINITY, "scale -inf of weights, group 3, feature 17, is not"},
    {PTXGEN_F16, 0, 8, PTXGEN_BF16, NAN, "is not finite as f16"},
    {PTXGEN_F16, 0, 8, PTXGEN_F32, 65520, "scale 65520 of weights, group 3, feature 17, is not f"},
    {PTXGEN_BF16, 0, 8, PTXGEN_BF16, 0x1.FEp24, NULL},
    {PTXGEN_BF16, 1, 0, PTXGEN_BF16, -0x1.FEp24, NULL},
    {PTXGEN_BF16, 0, 8, PTXGEN_BF16, 0x1p25, "is not between -2^25 and 2^25"},
    {PTXGEN_BF16, 1, 3, PTXGEN_BF16, -0x1p25, "group 3, feature 17, is not between -2^25 and 2^25"},
    {PTXGEN_BF16, 0, 8, PTXGEN_F32, 0x1.FEFFp24, NULL},
    {PTXGEN_BF16, 0, 8, PTXGEN_F32, 0x1.FFp24, "is not between -2^25 and 2^25"},
    {PTXGEN_BF16, 0, 8, PTXGEN_F16, 65504, NULL},
    {PTXGEN_BF16, 0, 8, PTXGEN_BF16, 0x1p-133, NULL},
    {PTXGEN_BF16, 0, 8, PTXGEN_F32, 0x1p-134, "is not 0, but rounds to 0 as bf16"},
    {PTXGEN_BF16, 0, 8, PTXGEN_F32, 0x1.8p-134, NULL},
    {PTXGEN_BF16, 0, 8, PTXGEN_BF16, INFINITY, "is not finite as bf16"},
    {PTXGEN_BF16, 0, 8, PTXGEN_F32, 3.4e38, "is not finite as bf16"},
    {PTXGEN_BF16, 1, 8, PTXGEN_F16, NAN, "is not finite as bf16"},
};
enum { SCALE_EDGES = sizeof scale_edges / sizeof *scale_edges };

/* K = 256, N = 64 in groups of 64 with that scale, and zero point, in group 3, feature 17. */
static inline struct weights make_edge(const struct scale_edge *e, ptxgen_w4_format format)
{
    enum { AT = 3 * 64 + 17 };
    const ptxgen_marlin_spec spec = {
        .k = 256, .n = 64, .group_size = 64, .type = e->type, .zeros = e->zeros};
    struct random r = {8};
    struct weights w = make_weights(&r, &spec, format, e->from);
    ptxgen_w4_matrix *m = &w.matrices[0];
    ptxgen_element_store(e->from, m->scales, AT, e->value);
    if (m->zeros)
        m->zeros[AT] = e->zero;
    checkpoint_free(&w.checkpoints[0]);
    w.checkpoints[0] = checkpoint_of(m, format);
    return w;
}

#endif
