/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/marlin.h>

extern ptxgen_error err;
extern const ptxgen_cache *cache;
extern const ptxgen_device_facts facts;
extern const ptxgen_marlin_spec spec;
extern const ptxgen_target target;
extern ptxgen_marlin_plan plan;
