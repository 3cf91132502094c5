/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/instr.h>

int report(const ptxgen_error *err);
