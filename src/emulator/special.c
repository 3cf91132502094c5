/* SPDX-License-Identifier: Apache-2.0 */
/* ISA "Special Registers": filled into ordinary registers when a warp starts. */
#include "src/emulator/decode.h"
#include "src/emulator/machine.h"

#include <time.h>

static void cluster_values(const struct emu_warp *warp, uint64_t values[SPECIAL_COUNT])
{
    const struct emu_cta *cta = warp->cta;
    const struct emu_launch *launch = cta->cluster->launch;
    values[SPECIAL_CLUSTER_CTARANK] = cta->rank;
    values[SPECIAL_CLUSTER_NCTARANK] = launch->cluster_ctas;
    values[SPECIAL_IS_EXPLICIT_CLUSTER] = launch->explicit_cluster;
    for (int i = 0; i < 3; i++) {
        values[SPECIAL_CLUSTERID_X + i] = cta->id[i] / launch->cluster[i];
        values[SPECIAL_NCLUSTERID_X + i] = launch->clusters[i];
        values[SPECIAL_CLUSTER_CTAID_X + i] = cta->id[i] % launch->cluster[i];
        values[SPECIAL_CLUSTER_NCTAID_X + i] = launch->cluster[i];
    }
}

static void warp_values(const struct emu_warp *warp, uint64_t values[SPECIAL_COUNT])
{
    const struct emu_cta *cta = warp->cta;
    const struct emu_launch *launch = cta->cluster->launch;
    for (int i = 0; i < 3; i++) {
        values[SPECIAL_NTID_X + i] = launch->block[i];
        values[SPECIAL_CTAID_X + i] = cta->id[i];
        values[SPECIAL_NCTAID_X + i] = launch->grid[i];
    }
    values[SPECIAL_WARPID] = warp->index;
    values[SPECIAL_NWARPID] = launch->chip->threads_per_sm / 32;
    values[SPECIAL_SMID] = cta->cluster->index % launch->chip->multiprocessors;
    values[SPECIAL_NSMID] = launch->chip->multiprocessors;
    values[SPECIAL_GRIDID] = launch->grid_number;
    values[SPECIAL_DYNAMIC_SMEM_SIZE] = launch->dynamic_bytes;
    values[SPECIAL_TOTAL_SMEM_SIZE] = launch->shared_bytes;
    values[SPECIAL_AGGR_SMEM_SIZE] = launch->shared_bytes;
    cluster_values(warp, values);
}

static uint64_t lane_value(const struct emu_warp *warp, enum emu_special which, uint32_t lane,
                           const uint64_t values[SPECIAL_COUNT])
{
    const uint32_t *block = warp->cta->cluster->launch->block;
    uint32_t linear = warp->index * 32 + lane;
    uint32_t below = (1u << lane) - 1, own = 1u << lane;
    switch (which) {
    case SPECIAL_TID_X: return linear % block[0];
    case SPECIAL_TID_Y: return linear / block[0] % block[1];
    case SPECIAL_TID_Z: return linear / block[0] / block[1];
    case SPECIAL_LANEID: return lane;
    case SPECIAL_LANEMASK_EQ: return own;
    case SPECIAL_LANEMASK_LT: return below;
    case SPECIAL_LANEMASK_LE: return below | own;
    case SPECIAL_LANEMASK_GT: return ~(below | own);
    case SPECIAL_LANEMASK_GE: return ~below;
    default: return values[which];
    }
}

static bool is_clock(enum emu_special which)
{
    return which >= SPECIAL_CLOCK && which <= SPECIAL_GLOBALTIMER_HI;
}

void emu_fill_specials(struct emu_warp *warp)
{
    const struct emu_program *program = warp->cta->cluster->launch->program;
    uint64_t values[SPECIAL_COUNT] = {0};
    warp_values(warp, values);
    for (size_t u = 0; u < program->special_count; u++) {
        const struct emu_special_use *use = &program->specials[u];
        struct emu_src target = emu_slot_src(program, use->slot);
        warp->written[use->slot] = 0xffffffffu;
        for (int lane = 0; lane < 32; lane++)
            emu_set_lane(warp, target, lane, lane_value(warp, use->which, (uint32_t)lane, values));
    }
}

/* Clocks count the warp's instructions (deterministic); the global timer is the host's. */
void emu_fill_clocks(struct emu_warp *warp)
{
    const struct emu_program *program = warp->cta->cluster->launch->program;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t nanoseconds = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    uint64_t cycles = warp->worker->steps * 4;
    for (size_t u = 0; u < program->special_count; u++) {
        const struct emu_special_use *use = &program->specials[u];
        if (!is_clock(use->which))
            continue;
        uint64_t value = use->which >= SPECIAL_GLOBALTIMER ? nanoseconds : cycles;
        if (use->which == SPECIAL_CLOCK_HI || use->which == SPECIAL_GLOBALTIMER_HI)
            value >>= 32;
        struct emu_src target = emu_slot_src(program, use->slot);
        for (int lane = 0; lane < 32; lane++)
            emu_set_lane(warp, target, lane, value);
    }
}
