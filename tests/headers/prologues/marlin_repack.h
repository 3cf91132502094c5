/* SPDX-License-Identifier: Apache-2.0 */
extern ptxgen_error err;
extern ptxgen_dispatcher *dispatcher;
extern const ptxgen_marlin_repack_spec spec;
extern ptxgen_marlin_repack *repack;
extern const ptxgen_marlin_repack_args args;
extern const ptxgen_driver driver;
extern uint64_t qweight, scales, qzeros;
extern ptxgen_cu_stream stream;
int report(const ptxgen_error *err);
