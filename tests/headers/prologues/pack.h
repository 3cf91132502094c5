/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/dispatch.h>

extern ptxgen_error err;
extern ptxgen_driver driver;
extern ptxgen_dispatcher *dispatcher;
extern ptxgen_status report(const ptxgen_error *err);
