/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void check_fail(struct check *check, const char *format, ...)
{
    check->wrong++;
    if (check->where[0])
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(check->where, sizeof check->where, format, args);
    va_end(args);
}

static bool agrees(double output, double reference, double bound)
{
    if (isnan(reference))
        return isnan(output);
    return output == reference || fabs(output - reference) <= bound;
}

void check_output(struct check *check, const char *name, size_t row, size_t column,
                  ptxgen_element type, double output, const struct expected_output *expected)
{
    double reference = expected->value, bound = expected->bound;
    check->outputs++;
    if (isnan(bound)) {
        check->unbounded++;
        return;
    }
    if (!agrees(output, reference, bound)) {
        check_fail(check, "%s[%zu, %zu] is %.9g; the reference has %.9g and allows %.3g", name, row,
                   column, output, reference, bound);
        if (isnan(output) || isnan(reference))
            check->worst = INFINITY;
    }
    if (expected->spread)
        ptxgen_tally_add(&check->tally, type, output, reference, bound, expected->spread);
    double error = output == reference ? 0 : fabs(output - reference);
    if (isnan(error))
        return;
    check->error = fmax(check->error, error);
    if (error > 0)
        check->worst = fmax(check->worst, error / bound);
}

void check_add(struct check *check, const struct check *part)
{
    check->outputs += part->outputs;
    check->wrong += part->wrong;
    check->unbounded += part->unbounded;
    check->worst = fmax(check->worst, part->worst);
    check->error = fmax(check->error, part->error);
    check->tally.outputs += part->tally.outputs;
    check->tally.squares += part->tally.squares;
    if (!check->where[0])
        memcpy(check->where, part->where, sizeof check->where);
}

void check_tally(struct check *check)
{
    double ratio = ptxgen_tally_ratio(&check->tally);
    if (!(ratio <= 1))
        check_fail(
            check,
            "all outputs together are %.3g times as far from the reference as rounding takes "
            "them at most, whether or not each is within its bound",
            ratio);
}

void check_note_expected(struct check *check, struct check *expected)
{
    check_tally(expected);
    snprintf(check->note, sizeof check->note,
             "the file's expected output: largest error %.3g, %.3g of its bound; spread %.3g",
             expected->error, expected->worst, ptxgen_tally_ratio(&expected->tally));
    if (!check_passed(expected))
        check_fail(check, "%s", expected->where);
}

bool check_passed(const struct check *check)
{
    return check->wrong == 0 && check->worst <= 1 && ptxgen_tally_ratio(&check->tally) <= 1;
}
