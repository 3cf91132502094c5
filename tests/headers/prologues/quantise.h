/* SPDX-License-Identifier: Apache-2.0 */
extern ptxgen_error err;
extern ptxgen_dispatcher *dispatcher;
extern ptxgen_quantise *kernel;
extern uint64_t x, codes, scales;
extern uint32_t m;
extern ptxgen_cu_stream stream;
