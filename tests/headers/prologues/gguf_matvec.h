/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/gguf_matvec.h>

extern ptxgen_error err;
extern ptxgen_dispatcher *dispatcher;
extern uint32_t type, k, n, m;
extern uint64_t w, x, y, workspace;
extern ptxgen_cu_stream stream;
