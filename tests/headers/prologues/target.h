/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/device.h>

extern ptxgen_error err;
extern const ptxgen_device_facts facts;
