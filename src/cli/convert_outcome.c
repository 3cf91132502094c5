/* SPDX-License-Identifier: Apache-2.0 */
#include "convert_outcome.h"

#include "output_file.h"
#include "plural.h"

#include <stdio.h>

void convert_outcome_print(const struct convert_outcome *outcome, const char *output,
                           const char *what, const char *format)
{
    fprintf(output_file_is_stdout(output) ? stderr : stdout,
            "%s: %zu %s%s as %s, %zu other tensor%s copied\n", output, outcome->converted, what,
            plural(outcome->converted), format, outcome->copied, plural(outcome->copied));
}
