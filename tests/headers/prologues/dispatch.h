/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/rmsnorm_q4k.h>

extern ptxgen_error err;
extern ptxgen_driver driver;
extern const ptxgen_rmsnorm_q4k_spec spec;
extern const ptxgen_rmsnorm_q4k_args args;
extern ptxgen_cu_stream stream;
