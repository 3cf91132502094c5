/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

extern ptxgen_error err;
extern ptxgen_w4_tensor qweight, scales, qzeros, g_idx;
int report(const ptxgen_error *err);
