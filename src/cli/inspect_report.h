/* SPDX-License-Identifier: Apache-2.0 */
/** What inspect has found, as lines for people or as JSON. */
#ifndef PTXGEN_CLI_INSPECT_REPORT_H
#define PTXGEN_CLI_INSPECT_REPORT_H

#include "chips.h"
#include "family.h"
#include "json_draft.h"

enum { INSPECTED_MIX = 512 };

/** A kernel of the module. */
struct inspected_kernel {
    ptx_kernel_info info;
    ptx_mix_row mix[INSPECTED_MIX];
    size_t mix_count;
    const struct architecture *architecture; /**< of the chip; NULL: unknown */
};
size_t inspected_shared_bytes(const struct inspected_kernel *kernel);
/** Whether a CTA has its shared memory; true on an unknown chip. */
bool inspected_fits(const struct inspected_kernel *kernel);

/** What a launch of m tokens moves and multiplies. */
struct prediction {
    uint32_t m;
    struct work work;
    double bandwidth;       /**< bytes a second; 0: unknown */
    const char *data_sheet; /**< the chip that it was taken from; NULL: the user gave it */
};

struct inspect_report {
    bool json;
    struct json_draft draft;
    cJSON *kernels, *predictions;
};
void inspect_report_start(struct inspect_report *report, const char *family,
                          const ptx_target *target, int ptx_version, size_t text_bytes);
void inspect_report_kernel(struct inspect_report *report, const struct inspected_kernel *kernel);
void inspect_report_prediction(struct inspect_report *report, const struct prediction *prediction);
/** Prints the JSON where `status`, which it returns, is PTXGEN_OK, and frees it. */
ptxgen_status inspect_report_end(struct inspect_report *report, ptxgen_status status,
                                 ptxgen_error *err);

#endif
