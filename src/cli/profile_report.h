/* SPDX-License-Identifier: Apache-2.0 */
/** A profile as lines for people, or as JSON. */
#ifndef PTXGEN_CLI_PROFILE_REPORT_H
#define PTXGEN_CLI_PROFILE_REPORT_H

#include "../harness/check.h"
#include "profile_tally.h"

struct profile_report {
    const char *family, *device;
    const struct check *check; /**< what run found */
    const struct profile_tally *tally;
};

void profile_report_lines(const struct profile_report *report);
/** One object on standard output. PTXGEN_ERROR_OUT_OF_MEMORY. */
ptxgen_status profile_report_json(const struct profile_report *report, ptxgen_error *err);

#endif
