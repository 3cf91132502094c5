/* SPDX-License-Identifier: Apache-2.0 */
#include "tune_choice.h"

#include <math.h>
#include <string.h>

/* Which tiles are in use: one of each entry at most. */
struct selection {
    bool in[TUNE_MOST_TILES];
};

static double time_of(const struct tune_table *t, unsigned tile, unsigned m)
{
    double seconds = t->tiles[tile].seconds[m];
    if (seconds <= 0)
        return INFINITY;
    return tile == t->own[m] ? 0.99 * seconds : seconds;
}

/* Of those in use, for one M. */
static unsigned fastest(const struct tune_table *t, const struct selection *s, unsigned m)
{
    unsigned best = t->own[m];
    double least = s->in[best] ? time_of(t, best, m) : INFINITY;
    for (unsigned i = 0; i < t->tile_count; i++)
        if (s->in[i] && time_of(t, i, m) < least) {
            best = i;
            least = time_of(t, i, m);
        }
    return best;
}

/* The sum of the logarithms of the times. */
static double cost(const struct tune_table *t, const struct selection *s)
{
    double sum = 0;
    for (unsigned m = 0; m < t->m_count; m++) {
        unsigned tile = fastest(t, s, m);
        sum += s->in[tile] ? log(time_of(t, tile, m)) : 1e3; /* no tile in use was measured there */
    }
    return sum;
}

static struct selection with(const struct tune_table *t, const struct selection *s, unsigned tile)
{
    struct selection changed = *s;
    for (unsigned i = 0; i < t->tile_count; i++)
        if (!strcmp(t->tiles[i].entry, t->tiles[tile].entry))
            changed.in[i] = i == tile;
    return changed;
}

static bool is_as_good(const struct tune_table *t, const struct selection *fewer,
                       const struct selection *s)
{
    for (unsigned m = 0; m < t->m_count; m++) {
        unsigned tile = fastest(t, fewer, m);
        if (!fewer->in[tile] || time_of(t, tile, m) > 1.02 * time_of(t, fastest(t, s, m), m))
            return false;
    }
    return true;
}

static void leave_out(const struct tune_table *t, struct selection *s)
{
    const struct selection all = *s;
    for (unsigned i = 0; i < t->tile_count; i++) {
        struct selection fewer = *s;
        fewer.in[i] = false;
        if (s->in[i] && is_as_good(t, &fewer, &all))
            *s = fewer;
    }
}

void tune_choose(struct tune_table *t)
{
    struct selection s = {{false}};
    for (unsigned m = t->m_count; m-- > 0;)
        s = with(t, &s, t->own[m]);
    double least = cost(t, &s);
    for (bool better = true; better;) {
        better = false;
        for (unsigned i = 0; i < t->tile_count; i++) {
            struct selection changed = with(t, &s, i);
            double c = cost(t, &changed);
            if (c >= least)
                continue;
            least = c;
            s = changed;
            better = true;
        }
    }
    leave_out(t, &s);
    for (unsigned m = 0; m < t->m_count; m++)
        t->chosen[m] = fastest(t, &s, m);
}

unsigned tune_ranges(const struct tune_table *t, ptxgen_tuned_range ranges[TUNE_MOST_MS])
{
    unsigned count = 0;
    for (unsigned m = 0; m < t->m_count; m++) {
        const struct tune_tile *tile = &t->tiles[t->chosen[m]];
        if (m == 0 || t->chosen[m] != t->chosen[m - 1])
            memcpy(ranges[count++].tile, tile->numbers, sizeof tile->numbers);
        ranges[count - 1].to_m = t->ms[m];
    }
    return count;
}
