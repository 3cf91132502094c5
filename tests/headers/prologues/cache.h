/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/dispatch.h>

extern ptxgen_error err;
extern void use_dispatchers(const ptxgen_dispatch_options *options);
