/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/marlin.h>

#include <stdio.h>

extern ptxgen_error err;
extern const ptxgen_marlin_plan plan;
