/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of the example's own, for many tokens, of which products do not take in the stream of
 * residuals themselves: brings it up to date and normalises it.
 *
 *     s[m,k] = s[m,k]                                          NORM_ALONE
 *            = s[m,k] + x[m,k]                                 NORM_BEFORE
 *            = s[m,k] + RMSNorm(x)[m,k] · post_gain[k]         NORM_AFTER
 *     y[m,k] = RMSNorm(s)[m,k] · gain[k]
 */
#ifndef GENERATE_NORM_H
#define GENERATE_NORM_H

#include <ptxgen/dispatch.h>
#include <ptxgen/types.h>

enum norm_mode { NORM_ALONE, NORM_BEFORE, NORM_AFTER };

struct norm_spec {
    uint32_t k; /* at most 16384 */
    float epsilon;
    uint8_t mode;        /* enum norm_mode */
    uint8_t stream_type; /* ptxgen_element of s */
    uint8_t type;        /* ptxgen_element of x and y */
    uint8_t reserved;
};

/* Device addresses. */
struct norm_args {
    uint64_t m;
    uint64_t x, stream, y;    /* [m, k] */
    uint64_t gain, post_gain; /* f32 [k] */
};

const ptxgen_family *norm_family(void);
ptxgen_status norm_launch(const ptxgen_loaded *loaded, const struct norm_args *args,
                          ptxgen_cu_stream stream, ptxgen_error *err);

#endif
