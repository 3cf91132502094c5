/* SPDX-License-Identifier: Apache-2.0 */
/** The tuned tiles of the default cache folder, for the family's plans. */
#ifndef PTXGEN_CLI_TUNING_TABLE_H
#define PTXGEN_CLI_TUNING_TABLE_H

#include "family.h"

/**
 * Has the options' plans go by what was tuned for the device, as a dispatcher's would; without a
 * table, or a family that takes one, changes nothing. The caller frees the table, NULL or not,
 * after its last use of the options.
 */
ptxgen_tuning *tuning_for(const struct family *family, struct family_options *family_options,
                          const struct device *device);

#endif
