/* SPDX-License-Identifier: Apache-2.0 */
extern ptxgen_error err;
extern ptxgen_dispatcher *dispatcher;
extern ptxgen_gguf_rows *kernel;
extern uint64_t ids, w, y, m, n;
extern ptxgen_cu_stream stream;
