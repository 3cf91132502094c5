/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

extern ptxgen_error err;
extern ptxgen_driver driver;
