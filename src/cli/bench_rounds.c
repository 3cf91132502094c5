/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_rounds.h"

#include <stdlib.h>

enum { KINDS = 3 };

struct bench_round {
    struct timing times[KINDS]; /* plain, overlapped, the peer's */
};

struct bench_rounds *bench_rounds_start(unsigned ms, unsigned rounds)
{
    size_t each = sizeof(struct bench_rounds) + rounds * sizeof(struct bench_round);
    struct bench_rounds *r = calloc(ms, each);
    struct bench_round *room = (struct bench_round *)(r + ms);
    for (unsigned i = 0; r && i < ms; i++)
        r[i].each = room + (size_t)i * rounds;
    return r;
}

void bench_rounds_add(struct bench_rounds *r, const struct bench_row *row)
{
    r->each[r->count++] = (struct bench_round){.times = {row->plain, row->overlapped, row->peer}};
}

static struct timing summary(const struct bench_rounds *r, int kind)
{
    struct timing all = r->each[0].times[kind];
    double medians[BENCH_MOST_ROUNDS];
    unsigned replays = 0;
    for (unsigned i = 0; i < r->count; i++) {
        const struct timing *t = &r->each[i].times[kind];
        medians[i] = t->median;
        all.least = t->least < all.least ? t->least : all.least;
        all.most = t->most > all.most ? t->most : all.most;
        replays += t->replays;
    }
    all.replays = replays;
    all.median = bench_median(medians, r->count);
    return all;
}

void bench_rounds_medians(const struct bench_rounds *r, struct bench_row *row)
{
    row->plain = summary(r, 0);
    row->overlapped = summary(r, 1);
    row->peer = summary(r, 2);
}
