/* SPDX-License-Identifier: Apache-2.0 */
/* Every class of w8a8's launches. */
#include "classes.h"

#include "src/harness/w8a8.h"
#include "src/kernels/w8a8/layout.h"

static const char *const chips[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_120"};
enum { CHIPS = 3, KINDS = 4 /* s8, asymmetric, e4m3, and with scales of groups */ };

/* Of the last, some are drawn, with a tile that the plan of a wide problem has. */
static const struct axes grids[GRIDS] = {
    {{AXIS(4, 20, 84, 132), AXIS(256, 261, 260, 1024, 1536, 8192), AXIS(72, 320, 520, 1024),
      AXIS(1, 7, 16, 30, 60, 100, 200, 300)}},
    {{AXIS(16, 84, 132, 188), AXIS(256, 261, 260, 1024, 4096, 4100, 8192, 28672),
      AXIS(72, 520, 1024, 4096, 14336, 152064), AXIS(1, 2, 4, 8, 16, 32, 64, 100, 256, 500, 4096)}},
    {{AXIS(2, 4, 20), AXIS(256, 261, 260, 1024, 2048, 4096), AXIS(72, 320, 520),
      AXIS(1, 2, 3, 14, 30, 60, 130, 300)}},
};

static size_t problems_of(enum grid grid)
{
    enum { DRAWN = 300000 };
    return grid == PRESCRIBED ? DRAWN : count_of(&grids[grid]) * CHIPS * KINDS;
}

static struct point point_at(enum grid grid, size_t number)
{
    struct point p = {.chip = chips[take_digit(&number, CHIPS)]};
    ptxgen_w8a8_spec *s = (void *)p.spec;
    size_t kind = take_digit(&number, KINDS);
    s->asymmetric = s->bias = kind == 1;
    s->codes = kind >= 2 ? PTXGEN_W8A8_E4M3 : PTXGEN_W8A8_S8;
    s->group = kind == 3 ? PTXGEN_W8A8_GROUP : 0;
    s->x_type = s->asymmetric ? PTXGEN_F32 : PTXGEN_F16;
    s->y_type = PTXGEN_BF16;
    take_sizes(&number, &grids[grid], (uint32_t *const[]){&p.sms, &s->k, &s->n, &p.m});
    return p;
}

static bool make_problem(enum grid grid, size_t number, struct point *p)
{
    if (grid != PRESCRIBED) {
        *p = point_at(grid, number);
        return true;
    }
    struct random r = random_start(number);
    size_t kind = random_below(&r, CHIPS * KINDS);
    uint32_t small = random_below(&r, (uint32_t)count_of(&grids[grid]));
    uint32_t wide = random_below(&r, (uint32_t)count_of(&grids[WIDE]));
    struct point model = point_at(WIDE, kind + CHIPS * KINDS * wide);
    ptxgen_w8a8_plan plan;
    *p = point_at(grid, kind + CHIPS * KINDS * small);
    if (!make_plan(&w8a8_harness, &model, &plan))
        return false;
    p->tile = *ptxgen_w8a8_choose(&plan, model.m);
    p->prescribes = true;
    return true;
}

/* False where a tile that is prescribed takes no such launch. */
static bool name_classes(const struct point *p, const void *of, struct class_names *names)
{
    const ptxgen_w8a8_plan *plan = of;
    const ptxgen_tile *v = ptxgen_w8a8_choose(plan, p->m);
    struct w8a8_schedule s;
    ptxgen_error err;
    uint32_t stages = w8a8_own_steps(&plan->spec, v);
    char tile[NAME / 2];
    if (w8a8_schedule(plan, v, p->m, &s, &err) != PTXGEN_OK)
        return false;
    bool wide = strstr(ptxgen_w8a8_entry(v), "_n") != NULL;
    snprintf(tile, sizeof tile, "%u tokens%s%s%s, wk %u, cluster %u", v->tile_m,
             v->fused ? " fused" : "", v->kind == PTXGEN_WGMMA ? " wgmma" : "", wide ? " wide" : "",
             v->wk, v->cluster);
    snprintf(names->of[0], NAME, "%s, %s, copies of %u%s", tile,
             plan->spec.asymmetric ? "asymmetric"
             : plan->spec.group    ? "groups"
             : plan->spec.codes    ? "e4m3"
                                   : "symmetric",
             w8a8_copy_bytes(plan, v), w8a8_rotates(plan, v) ? ", rotated" : "");
    snprintf(names->of[1], NAME, "%s, %s", tile, dealing_of(&s.tiles, stages));
    snprintf(names->of[2], NAME, "%s, %s tiles, %s", tile, s.tiles.divides ? "divided" : "whole",
             stages_of_cta(&s.tiles, stages) > v->stages ? "ring wraps" : "ring suffices");
    snprintf(names->of[3], NAME, "%s%s%s%s, %s tiles%s%s",
             plan->spec.group   ? "groups, "
             : plan->spec.codes ? "e4m3, "
                                : "",
             plan->target.ptx.sm >= 90 ? "may overlap" : "in turn", v->fused ? ", fused" : "",
             v->kind == PTXGEN_WGMMA ? ", wgmma" : "", s.tiles.divides ? "divided" : "whole",
             w8a8_aligns(plan, v) ? ", aligned first" : "",
             s.prefetch.lines ? ", fetched ahead" : "");
    return true;
}

static void every_class_of_w8a8_is_right(void **state)
{
    static const char *const wanted[] = {
        "fused",
        "16 tokens wgmma", /* a producer each for weights and codes */
        "64 tokens wgmma",
        "128 tokens wgmma wide",
        "256 tokens wgmma",
        "wk 1",
        "wk 2",
        "cluster 1",
        "cluster 2",
        "a whole tile",
        "several whole tiles",
        "divided between two",
        "divided among many",
        "divided, several tiles",
        "ring wraps",
        "ring suffices",
        "rotated",
        "copies of 16",
        "copies of 4",
        "aligned first",
        "fetched ahead",
        "e4m3",
        "groups",
        NULL};
    const struct class_family family = {
        .harness = &w8a8_harness,
        .problems = {problems_of(SMALL), problems_of(WIDE), problems_of(PRESCRIBED)},
        .most_work = 1 << 26,
        .make_problem = make_problem,
        .name_classes = name_classes,
        .wanted = wanted};
    (void)state;
    run_classes(&family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_class_of_w8a8_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
