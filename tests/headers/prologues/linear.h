/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/linear.h>

extern ptxgen_error err;
extern ptxgen_dispatcher *dispatcher;
extern ptxgen_cu_stream stream;
extern uint64_t m, x, y;
extern ptxgen_w4_tensor qweight, scales, qzeros;
extern ptxgen_status report(const ptxgen_error *err);
