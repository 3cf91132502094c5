/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/gguf_linear.h>

extern ptxgen_error err;
extern ptxgen_dispatcher *dispatcher;
extern const ptxgen_gguf_linear_args args;
extern ptxgen_cu_stream stream;
