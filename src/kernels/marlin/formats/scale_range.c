/* SPDX-License-Identifier: Apache-2.0 */
#include "scale_range.h"

#include <math.h>

ptxgen_status marlin_check_scale(ptxgen_element type, const struct marlin_scale *s,
                                 ptxgen_error *err)
{
    const char *name = type == PTXGEN_F16 ? "f16" : "bf16";
    unsigned most = marlin_most_difference(s->zero);
    if (!isfinite(s->stored))
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "marlin: the scale %g of %s, group %zu, feature %zu, is not finite as %s", s->given,
            s->matrix, s->group, s->feature, name);
    if (s->stored == 0 && s->given != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "marlin: the scale %g of %s, group %zu, feature %zu, is not 0, but "
                           "rounds to 0 as %s",
                           s->given, s->matrix, s->group, s->feature, name);
    bool leaves = type == PTXGEN_F16 && fabs(s->stored) * most > marlin_largest_weight;
    if (leaves && s->zero == MARLIN_UNKNOWN_ZERO)
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "marlin: the scale %g of %s, group %zu, feature %zu, makes with its zero "
            "point weights past %.0f, where f16 ends",
            s->given, s->matrix, s->group, s->feature, marlin_largest_weight);
    if (leaves)
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "marlin: the scale %g of %s, group %zu, feature %zu, with the zero point "
            "%u makes weights up to %.0f, but f16 ends at %.0f",
            s->given, s->matrix, s->group, s->feature, s->zero, fabs(s->stored) * most,
            marlin_largest_weight);
    if (type == PTXGEN_BF16 && fabs(s->stored) >= marlin_scales_end)
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "marlin: the scale %g of %s, group %zu, feature %zu, is not between -2^25 "
            "and 2^25, as scales in bf16 are to be",
            s->given, s->matrix, s->group, s->feature);
    return PTXGEN_OK;
}
