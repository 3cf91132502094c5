/* SPDX-License-Identifier: Apache-2.0 */
/* store FOLDER N: keeps the first tile of a marlin product of N columns. */
#include <ptxgen/device.h>
#include <ptxgen/emulator.h>
#include <ptxgen/marlin.h>
#include <ptxgen/tune.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    ptxgen_driver driver;
    ptxgen_device_facts facts;
    ptxgen_cache *cache;
    ptxgen_marlin_plan plan;
    ptxgen_tuned_range range = {.to_m = UINT32_MAX};
    ptxgen_error err = {0};
    const ptxgen_cache_options where = {.folder = argv[1]};
    const ptxgen_marlin_spec spec = {.k = 1024,
                                     .n = argc > 2 ? (uint32_t)atoi(argv[2]) : 0,
                                     .group_size = 128,
                                     .type = PTXGEN_F16};
    ptxgen_emulator_driver(&driver);
    if (ptxgen_driver_start(&driver, &err) || ptxgen_device_read(&driver, 0, &facts, &err) ||
        ptxgen_cache_open(&where, &cache, &err)) {
        puts(err.message);
        return 2;
    }
    ptxgen_target target = ptxgen_device_target(&facts);
    bool failed =
        ptxgen_marlin_make_plan(&spec, &target, &plan, &err) ||
        !ptxgen_marlin_family()->tiling->candidate(&plan, 0, range.tile) ||
        ptxgen_tuning_store(cache, &facts, ptxgen_marlin_family(), &spec, &target, &range, 1, &err);
    if (failed)
        puts(err.message);
    return failed;
}
