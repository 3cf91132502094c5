/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/linear.h>

extern ptxgen_error err;
extern ptxgen_dispatcher *dispatcher;
extern ptxgen_linear_options options;
extern ptxgen_status report(const ptxgen_error *err);
