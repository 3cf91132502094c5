/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/global_order.h"
#include "src/emulator/global_race.h"
#include "src/emulator/proxy.h"
#include "src/emulator/shared_memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is known ---- */

/* `count` entries by ascending cluster, each its cluster's index, the epochs of its warps, and if
 * proxies are looked at those whose generic writes to global memory are fenced. */
struct emu_known {
    struct emu_known *next, **link; /* among all of the launch */
    uint32_t references, count;
    uint32_t entries[];
};

static uint32_t warps_of(const struct emu_launch *launch)
{
    return launch->cluster_ctas * launch->warps;
}

static uint32_t epochs_of(const struct emu_launch *launch)
{
    return warps_of(launch) * (launch->proxies ? 2 : 1);
}

static const uint32_t *entry_at(const struct emu_launch *launch, const struct emu_known *known,
                                uint32_t index)
{
    return known->entries + (size_t)index * (1 + epochs_of(launch));
}

static struct emu_known *make(struct emu_warp *warp, uint32_t most)
{
    struct emu_launch *launch = warp->cta->cluster->launch;
    size_t bytes = (size_t)most * (1 + epochs_of(launch)) * sizeof(uint32_t);
    struct emu_known *made = malloc(sizeof *made + bytes);
    if (!made)
        emu_out_of_memory(warp);
    made->references = 1;
    made->count = 0;
    pthread_mutex_lock(&launch->lock);
    made->next = launch->order.all;
    made->link = &launch->order.all;
    if (made->next)
        made->next->link = &made->next;
    launch->order.all = made;
    pthread_mutex_unlock(&launch->lock);
    return made;
}

static struct emu_known *share(struct emu_known *known)
{
    if (known)
        known->references++;
    return known;
}

static void drop(struct emu_launch *launch, struct emu_known *known)
{
    if (!known || --known->references)
        return;
    pthread_mutex_lock(&launch->lock);
    *known->link = known->next;
    if (known->next)
        known->next->link = known->link;
    pthread_mutex_unlock(&launch->lock);
    free(known);
}

static void replace(struct emu_warp *warp, struct emu_known **place, struct emu_known *fresh)
{
    struct emu_known *old = *place;
    *place = fresh;
    drop(warp->cta->cluster->launch, old);
}

/* Appends the larger (or the smaller) epochs of two entries of one cluster. */
static void append(const struct emu_launch *launch, struct emu_known *to, const uint32_t *a,
                   const uint32_t *b, bool larger)
{
    uint32_t *entry = to->entries + (size_t)to->count++ * (1 + epochs_of(launch));
    entry[0] = a[0];
    for (uint32_t w = 1; w <= epochs_of(launch); w++)
        entry[w] = (a[w] > b[w]) == larger ? a[w] : b[w];
}

/* Everything that one of two holds (join) or that both hold; either may be NULL. */
static struct emu_known *combine(struct emu_warp *warp, struct emu_known *a, struct emu_known *b,
                                 bool join)
{
    const struct emu_launch *launch = warp->cta->cluster->launch;
    if (a == b)
        return share(a);
    if (!a || !b)
        return join ? share(a ? a : b) : NULL;
    struct emu_known *made = make(warp, a->count + b->count);
    uint32_t i = 0, j = 0;
    while (i < a->count || j < b->count) {
        const uint32_t *left = i < a->count ? entry_at(launch, a, i) : NULL;
        const uint32_t *right = j < b->count ? entry_at(launch, b, j) : NULL;
        bool takes_left = left && (!right || left[0] <= right[0]);
        bool takes_right = right && (!left || right[0] <= left[0]);
        if (takes_left && takes_right)
            append(launch, made, left, right, join);
        else if (join)
            append(launch, made, takes_left ? left : right, takes_left ? left : right, join);
        i += takes_left;
        j += takes_right;
    }
    return made;
}

static void add(struct emu_warp *warp, struct emu_known **to, struct emu_known *more)
{
    replace(warp, to, combine(warp, *to, more, true));
}

static const uint32_t *entry_of(const struct emu_launch *launch, const struct emu_known *known,
                                uint32_t cluster)
{
    uint32_t low = 0, high = known->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const uint32_t *entry = entry_at(launch, known, middle);
        if (entry[0] == cluster)
            return entry + 1;
        if (entry[0] < cluster)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Whether `less` says nothing about other clusters that `more` does not say. */
static bool holds(const struct emu_warp *warp, const struct emu_known *more,
                  const struct emu_known *less)
{
    const struct emu_launch *launch = warp->cta->cluster->launch;
    for (uint32_t i = 0; i < less->count; i++) {
        const uint32_t *entry = entry_at(launch, less, i);
        if (entry[0] == warp->cta->cluster->index)
            continue;
        const uint32_t *known = more ? entry_of(launch, more, entry[0]) : NULL;
        for (uint32_t w = 0; w < epochs_of(launch); w++)
            if (entry[1 + w] && (!known || known[w] < entry[1 + w]))
                return false;
    }
    return true;
}

/* ---- warps ---- */

static struct emu_warp_order *order_of(struct emu_warp *warp)
{
    if (!warp->order) {
        uint32_t epochs = warp->cta->cluster->epochs;
        warp->order = calloc(1, sizeof *warp->order + epochs * sizeof *warp->order->fenced);
    }
    if (!warp->order)
        emu_out_of_memory(warp);
    return warp->order;
}

static struct emu_known *last_learned(const struct emu_warp *warp)
{
    const struct emu_warp_order *order = warp->order;
    return order && order->learned_count ? order->learned[order->learned_count - 1].known : NULL;
}

/* What was learned in the oldest two epochs counts as learned in the older one. */
static void make_room(struct emu_launch *launch, struct emu_warp_order *order)
{
    if (order->learned_count < EMU_LEARNED)
        return;
    order->learned[1].epoch = order->learned[0].epoch;
    drop(launch, order->learned[0].known);
    memmove(order->learned, order->learned + 1, (EMU_LEARNED - 1) * sizeof *order->learned);
    order->learned_count--;
}

static void learn(struct emu_warp *warp, struct emu_known *more)
{
    struct emu_known *before = last_learned(warp);
    if (holds(warp, before, more))
        return;
    struct emu_warp_order *order = order_of(warp);
    struct emu_known *known = combine(warp, before, more, true);
    make_room(warp->cta->cluster->launch, order);
    order->learned[order->learned_count].epoch = ++warp->clock[warp->number];
    order->learned[order->learned_count++].known = known;
    warp->cta->cluster->learned = true;
}

/* What `other` had learned in the epoch of it that is known. */
static struct emu_known *learned_by(const struct emu_warp *other, uint32_t epoch)
{
    const struct emu_warp_order *order = other->order;
    for (uint32_t i = order ? order->learned_count : 0; i > 0; i--)
        if (order->learned[i - 1].epoch <= epoch)
            return order->learned[i - 1].known;
    return NULL;
}

bool emu_order_knows(const struct emu_warp *warp, uint32_t cluster, uint32_t number, uint32_t epoch,
                     bool fenced)
{
    const struct emu_cluster *own = warp->cta->cluster;
    const struct emu_launch *launch = own->launch;
    uint32_t at = number / EMU_MAX_WARPS * launch->warps + number % EMU_MAX_WARPS +
                  (fenced ? warps_of(launch) : 0);
    for (uint32_t c = 0; c < own->cta_count; c++)
        for (uint32_t w = 0; w < launch->warps; w++) {
            const struct emu_warp *other = &own->ctas[c].warps[w];
            const struct emu_known *known = learned_by(other, warp->clock[other->number]);
            const uint32_t *epochs = known ? entry_of(launch, known, cluster) : NULL;
            if (epochs && epochs[at] >= epoch)
                return true;
        }
    return false;
}

static uint32_t *add_epochs(const struct emu_cluster *cluster, uint32_t *to, const uint32_t *clock)
{
    for (uint32_t c = 0; c < cluster->cta_count; c++)
        for (uint32_t w = 0; w < cluster->launch->warps; w++)
            *to++ = clock[c * EMU_MAX_WARPS + w];
    return to;
}

/* Everything that a warp with this clock knows, of its own cluster and of others. */
static struct emu_known *known_at(struct emu_warp *warp, const uint32_t *clock)
{
    struct emu_cluster *cluster = warp->cta->cluster;
    struct emu_known *known = make(warp, 1);
    uint32_t *entry = known->entries;
    known->count = 1;
    *entry++ = (uint32_t)cluster->index;
    entry = add_epochs(cluster, entry, clock);
    if (cluster->launch->proxies)
        add_epochs(cluster, entry, clock + emu_clock_part(cluster, PROXY_GLOBAL));
    for (uint32_t c = 0; c < cluster->cta_count && cluster->learned; c++)
        for (uint32_t w = 0; w < cluster->launch->warps; w++) {
            const struct emu_warp *other = &cluster->ctas[c].warps[w];
            struct emu_known *learned = learned_by(other, clock[other->number]);
            if (learned)
                add(warp, &known, learned);
        }
    return known;
}

void emu_order_fence(struct emu_warp *warp, uint32_t mask)
{
    struct emu_warp_order *order = order_of(warp);
    if (order->reading_lanes & mask) {
        learn(warp, order->read);
        order->reading_lanes &= ~mask;
        if (!order->reading_lanes)
            replace(warp, &order->read, NULL);
    }
    memcpy(order->fenced, warp->clock, warp->cta->cluster->epochs * sizeof *order->fenced);
    order->fenced_lanes |= mask;
}

void emu_order_proxy_fence(struct emu_warp *warp)
{
    struct emu_launch *launch = warp->cta->cluster->launch;
    if (!warp->cta->cluster->learned)
        return;
    struct emu_known *known = known_at(warp, warp->clock);
    uint32_t *entry = known->entries, warps = warps_of(launch);
    for (uint32_t i = 0; i < known->count; i++, entry += 1 + epochs_of(launch))
        emu_clock_join(entry + 1 + warps, entry + 1, warps);
    learn(warp, known);
    drop(launch, known);
}

/* ---- kernels ahead ---- */

void emu_order_wait_ahead(struct emu_warp *warp)
{
    struct emu_launch *launch = warp->cta->cluster->launch;
    if (!launch->follows || emu_order_knows(warp, RACE_AHEAD, 0, 1, false))
        return;
    struct emu_known *ahead = make(warp, 1);
    ahead->count = 1;
    ahead->entries[0] = RACE_AHEAD;
    for (uint32_t w = 1; w <= epochs_of(launch); w++)
        ahead->entries[w] = 1;
    learn(warp, ahead);
    drop(launch, ahead);
}

void emu_order_launch_dependents(struct emu_warp *warp)
{
    struct emu_launch *launch = warp->cta->cluster->launch;
    if (launch->follows && !emu_order_knows(warp, RACE_AHEAD, 0, 1, false))
        atomic_store_explicit(&launch->leaves_early, true, memory_order_relaxed);
}

/* ---- locations ---- */

static struct emu_flag *slot_of(const struct emu_order *order, uint64_t address)
{
    size_t at = (size_t)(address * 0x9e3779b97f4a7c15u >> 32) & (order->flag_capacity - 1);
    while (order->flags[at].address && order->flags[at].address != address)
        at = (at + 1) & (order->flag_capacity - 1);
    return &order->flags[at];
}

static void grow(struct emu_warp *warp, struct emu_order *order)
{
    struct emu_order wider = *order;
    wider.flag_capacity = order->flag_capacity ? order->flag_capacity * 2 : 64;
    wider.flags = calloc(wider.flag_capacity, sizeof *wider.flags);
    if (!wider.flags)
        emu_out_of_memory(warp);
    for (size_t i = 0; i < order->flag_capacity; i++)
        if (order->flags[i].address)
            *slot_of(&wider, order->flags[i].address) = order->flags[i];
    free(order->flags);
    *order = wider;
}

static struct emu_flag *flag_at(struct emu_warp *warp, uint64_t address)
{
    struct emu_order *order = &warp->cta->cluster->launch->order;
    if (order->flag_count * 2 >= order->flag_capacity)
        grow(warp, order);
    struct emu_flag *flag = slot_of(order, address);
    order->flag_count += !flag->address;
    flag->address = address;
    return flag;
}

/* What a write of this lane releases; NULL: nothing. */
static struct emu_known *released(struct emu_warp *warp, int lane, uint32_t flags)
{
    const struct emu_warp_order *order = warp->order;
    if (flags & ACCESS_RELEASE) {
        struct emu_known *known = known_at(warp, warp->clock);
        warp->clock[warp->number]++;
        return known;
    }
    return order && (order->fenced_lanes >> lane & 1) ? known_at(warp, order->fenced) : NULL;
}

static void acquire(struct emu_warp *warp, int lane, uint32_t flags, struct emu_known *known)
{
    if (flags & ACCESS_ACQUIRE) {
        learn(warp, known);
        return;
    }
    struct emu_warp_order *order = order_of(warp);
    order->reading_lanes |= 1u << lane;
    add(warp, &order->read, known);
}

/*
 * A read-modify-write carries on what the writes before it released, and so does a write after a
 * release by the same thread. A store of the value that is there already can be told from the
 * earlier one by nobody, so that it releases only what both do.
 */
void emu_order_strong(struct emu_warp *warp, int lane, const struct emu_strong_access *access)
{
    struct emu_flag *flag = flag_at(warp, access->address);
    bool wide = access->flags >> ACCESS_SCOPE_SHIFT >= SCOPE_GPU;
    bool read = access->flags & ACCESS_READ;
    if (!access->follows_strong)
        replace(warp, &flag->known, NULL);
    if (read && wide && flag->known)
        acquire(warp, lane, access->flags, flag->known);
    if (!(access->flags & ACCESS_WRITE))
        return;
    struct emu_known *fresh = wide ? released(warp, lane, access->flags) : NULL;
    if ((read && wide) || (access->follows_own && !(access->flags & ACCESS_RELEASE)))
        add(warp, &fresh, flag->known);
    if (!read && !access->changes)
        replace(warp, &fresh, combine(warp, fresh, flag->known, false));
    replace(warp, &flag->known, fresh);
}

void emu_order_forget(struct emu_warp *warp)
{
    struct emu_warp_order *order = warp->order;
    if (!order)
        return;
    struct emu_launch *launch = warp->cta->cluster->launch;
    for (uint32_t i = 0; i < order->learned_count; i++)
        drop(launch, order->learned[i].known);
    drop(launch, order->read);
    free(order);
    warp->order = NULL;
}

void emu_order_free(struct emu_order *order)
{
    while (order->all) {
        struct emu_known *next = order->all->next;
        free(order->all);
        order->all = next;
    }
    free(order->flags);
}
