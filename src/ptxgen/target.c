/* SPDX-License-Identifier: Apache-2.0 */
/* Targets: which exist, from which PTX version, and which text runs where. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PTX ISA release notes ("PTX ISA and target support"); 101 was renamed 110 in PTX 9.0. */
static const struct chip {
    int sm, base_ptx, a_ptx, f_ptx; /* 0: there is no such target */
    size_t shared_limit;            /* opt-in shared memory of a CTA, bytes */
} chips[] = {
    {80, 70, 0, 0, 163 * 1024},   {86, 71, 0, 0, 99 * 1024},
    {87, 74, 0, 0, 163 * 1024},   {88, 90, 0, 0, 99 * 1024},
    {89, 78, 0, 0, 99 * 1024},    {90, 78, 80, 0, 227 * 1024},
    {100, 86, 86, 88, 227 * 1024}, {101, 86, 86, 88, 227 * 1024},
    {103, 88, 88, 88, 227 * 1024}, {110, 90, 90, 90, 227 * 1024},
    {120, 87, 87, 88, 99 * 1024}, {121, 88, 88, 88, 99 * 1024},
};

static const struct chip *find_chip(int sm)
{
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
        if (chips[i].sm == sm)
            return &chips[i];
    return NULL;
}

size_t ptx_target_shared_limit(const ptx_target *target)
{
    const struct chip *c = find_chip(target->sm);
    return c ? c->shared_limit : PTX_STATIC_SHARED_LIMIT;
}

/* sm_101 is the chip that PTX 9.0 calls sm_110; 103 is of 100's family, 121 of 120's. */
static int family(int sm)
{
    return sm / 10 == 10 && sm != 101 ? 100 : sm == 101 || sm == 110 ? 110 : sm / 10 * 10;
}

int ptx_target_first_ptx(const ptx_target *target)
{
    const struct chip *c = target ? find_chip(target->sm) : NULL;
    if (!c)
        return 0;
    return target->suffix == 0     ? c->base_ptx
           : target->suffix == 'a' ? c->a_ptx
           : target->suffix == 'f' ? c->f_ptx
                                   : 0;
}

bool ptx_target_runs_on(const ptx_target *text, int chip_sm)
{
    if (!text)
        return false;
    if (text->suffix == 'a')
        return text->sm == chip_sm;
    if (text->suffix == 'f')
        return family(text->sm) == family(chip_sm) && chip_sm >= text->sm;
    return chip_sm >= text->sm;
}

ptxgen_status ptx_target_parse(const char *name, ptx_target *target, ptxgen_error *err)
{
    if (!name || !target)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "target name and result must be given");
    ptx_target t = {0};
    char rest[2] = "";
    int fields = strncmp(name, "sm_", 3) ? 0 : sscanf(name + 3, "%3d%1[af]", &t.sm, rest);
    char again[16];
    t.suffix = rest[0];
    snprintf(again, sizeof again, "sm_%d%s", t.sm, rest);
    if (fields < 1 || strcmp(again, name) != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "target '%s' is not of the form sm_80, sm_90a or sm_120f", name);
    ptxgen_status status = ptx_target_check(&t, err);
    if (status == PTXGEN_OK)
        *target = t;
    return status;
}

static ptxgen_status refuse_chip(int sm, const char *suffix, ptxgen_error *err)
{
    char list[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof chips / sizeof *chips && used < sizeof list; i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%d", i ? ", " : "", chips[i].sm);
    return ptxgen_fail(err, PTXGEN_ERROR_TARGET,
                       "sm_%d%s is not a target that ptxgen knows: it knows sm_%s", sm, suffix,
                       list);
}

ptxgen_status ptx_target_check(const ptx_target *t, ptxgen_error *err)
{
    if (!t)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "the target is NULL");
    char suffix[2] = {t->suffix, 0};
    const struct chip *c = find_chip(t->sm);
    if (!c)
        return refuse_chip(t->sm, suffix, err);
    int first = ptx_target_first_ptx(t);
    if (!first)
        return ptxgen_fail(err, PTXGEN_ERROR_TARGET, "sm_%d has no '%c' variant", t->sm, t->suffix);
    if (t->max_ptx && first > t->max_ptx)
        return ptxgen_fail(err, PTXGEN_ERROR_TARGET,
                           "sm_%d%s needs PTX %d.%d, but the cap is PTX %d.%d", t->sm, suffix,
                           first / 10, first % 10, t->max_ptx / 10, t->max_ptx % 10);
    return PTXGEN_OK;
}

int ptx_needs_met(const struct ptx_need *needs, unsigned count, const ptx_target *target)
{
    int best = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct ptx_need *n = &needs[i];
        bool met = n->suffix == 'a'   ? target->suffix == 'a' && target->sm == n->sm
                   : n->suffix == 'f' ? target->suffix && family(target->sm) == family(n->sm) &&
                                            target->sm >= n->sm
                                      : target->sm >= n->sm;
        if (met && (!best || n->ptx < best))
            best = n->ptx;
    }
    return best;
}
