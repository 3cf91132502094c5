/* SPDX-License-Identifier: Apache-2.0 */
/* Random problems on a device, run and compared with the reference. */
#ifndef PTXGEN_TESTS_MARLIN_PROBLEMS_H
#define PTXGEN_TESTS_MARLIN_PROBLEMS_H

#include "tests/problems.h"

#include "src/harness/marlin.h"

/* A kernel; of tile_m 0 the tile is the plan's own. */
struct kernel_options {
    ptxgen_marlin_spec spec;
    ptxgen_tile tile;
};

/* A problem with these weights, which are released, and other random data. */
static inline struct problem make_with(struct device *device, const struct kernel_options *options,
                                       uint32_t m, struct marlin_weights *weights,
                                       const struct layout *layout)
{
    const void *tile = options->tile.tile_m ? &options->tile : NULL;
    struct problem p =
        make_tiled(device, &marlin_harness, &options->spec, tile, m, layout, m + options->spec.k);
    ptxgen_error err;
    assert_ok(marlin_pack_weights(&p, &weights->checkpoints[0],
                                  weights->count == 2 ? &weights->checkpoints[1] : NULL, &err),
              &err);
    marlin_release_weights(weights);
    return p;
}

/* A random problem of the options, to be changed before it is run. */
static inline struct problem make_of(struct device *device, const struct kernel_options *options,
                                     uint32_t m, ptxgen_w4_format format,
                                     const struct layout *layout)
{
    struct marlin_weights weights;
    struct random r = random_start(m + options->spec.k);
    ptxgen_error err;
    assert_ok(marlin_random_weights(&options->spec, format, &r, &weights, &err), &err);
    return make_with(device, options, m, &weights, layout);
}

static inline struct problem make(struct device *device, const ptxgen_marlin_spec *spec, uint32_t m,
                                  ptxgen_w4_format format, const struct layout *layout)
{
    const struct kernel_options options = {.spec = *spec};
    return make_of(device, &options, m, format, layout);
}

static inline ptxgen_marlin_spec f16(uint32_t k, uint32_t n, int32_t group_size)
{
    return (ptxgen_marlin_spec){.k = k, .n = n, .group_size = group_size, .type = PTXGEN_F16};
}

#endif
