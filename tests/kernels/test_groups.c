/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of groups of rows with weights of their own, on the emulator. Operands are small whole
 * numbers, so every sum is exact and y is compared with equality.
 */
#include "grouped.h"

#include "tests/emitted.h"
#include "tests/emulator/bench.h"
#include "tests/random.h"
#include "tests/share.h"
#include "tests/status.h"

#include "src/kernels/gemm/schedule.h"

#include <ptxgen/accuracy.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_GROUPS = 256, GUARD = GROUPED_TILE_M /* rows before and behind y */ };

static const uint16_t untouched = 0x7A5A;

/* ---- one problem ---- */

struct problem {
    struct grouped spec;
    uint32_t m, ends[MOST_GROUPS];
    uint16_t *x, *w, *y; /* y with its guard rows */
};

static uint32_t y_rows(const struct problem *p)
{
    return p->m + 2 * GUARD;
}

static uint16_t *draw(struct random *r, size_t count)
{
    uint16_t *values = calloc(count ? count : 1, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        ptxgen_element_store(PTXGEN_F16, values, i, (double)(random_bits(r) % 5) - 2);
    return values;
}

static struct problem make(struct grouped spec, const uint32_t rows[])
{
    struct random r = {.state = spec.groups};
    struct problem p = {.spec = spec};
    for (uint32_t g = 0; g < spec.groups; g++) {
        p.m += rows[g];
        p.ends[g] = p.m;
    }
    p.x = draw(&r, (size_t)p.m * spec.k);
    p.w = draw(&r, (size_t)spec.groups * spec.n * spec.k);
    p.y = calloc((size_t)y_rows(&p) * spec.n, sizeof *p.y);
    assert_non_null(p.y);
    return p;
}

static void release(struct problem *p)
{
    free(p->x);
    free(p->w);
    free(p->y);
}

/* ---- the reference ---- */

static double product(const struct problem *p, uint32_t group, uint32_t row, uint32_t column)
{
    const uint32_t k = p->spec.k;
    const uint16_t *x = p->x + (size_t)row * k;
    const uint16_t *w = p->w + ((size_t)group * p->spec.n + column) * k;
    double sum = 0;
    for (uint32_t i = 0; i < k; i++)
        sum += ptxgen_element_load(PTXGEN_F16, x, i) * ptxgen_element_load(PTXGEN_F16, w, i);
    return sum;
}

static void check_row(const struct problem *p, uint32_t group, uint32_t row)
{
    const uint16_t *y = p->y + (size_t)(GUARD + row) * p->spec.n;
    for (uint32_t column = 0; column < p->spec.n; column++) {
        double got = ptxgen_element_load(PTXGEN_F16, y, column);
        double wanted = product(p, group, row, column);
        if (got != wanted)
            fail_msg("row %u of group %u, column %u: %g, not %g", row, group, column, got, wanted);
    }
}

static void check_guards(const struct problem *p)
{
    size_t guard = (size_t)GUARD * p->spec.n, behind = guard + (size_t)p->m * p->spec.n;
    for (size_t i = 0; i < guard; i++)
        if (p->y[i] != untouched || p->y[behind + i] != untouched)
            fail_msg("guard rows of y are overwritten at element %zu", i);
}

static void check(const struct problem *p)
{
    uint32_t row = 0;
    for (uint32_t g = 0; g < p->spec.groups; g++)
        for (uint32_t end = p->ends[g] < p->m ? p->ends[g] : p->m; row < end; row++)
            check_row(p, g, row);
    assert_int_equal(row, p->m);
    check_guards(p);
}

/* ---- launches ---- */

/* To be freed. */
static char *text_of(const struct grouped *spec)
{
    ptxgen_target target = target_of("sm_80");
    ptxgen_error err;
    ptx_module *module = ptx_module_create(&target.ptx, NULL);
    grouped_emit(spec, module);
    return text_of_module(module, ptx_module_status(module, &err), &err);
}

static void load(struct bench *b, const struct grouped *spec)
{
    char *text = text_of(spec);
    bench_load(b, text);
    free(text);
}

/* Launches the problem with so many CTAs and leaves y. Flags are 0 again after the launch. */
static void run(struct bench *b, struct problem *p, uint32_t ctas, ptxgen_cu_deviceptr workspace)
{
    const struct grouped *s = &p->spec;
    size_t y_elements = (size_t)y_rows(p) * s->n;
    uint32_t flags[GROUPED_FLAGS / 4], m = p->m;
    for (size_t i = 0; i < y_elements; i++)
        p->y[i] = untouched;
    ptxgen_cu_deviceptr x = bench_buffer(b, p->x, (size_t)m * s->k * 2);
    ptxgen_cu_deviceptr w = bench_buffer(b, p->w, (size_t)s->groups * s->n * s->k * 2);
    ptxgen_cu_deviceptr ends = bench_buffer(b, p->ends, s->groups * sizeof *p->ends);
    ptxgen_cu_deviceptr with_guards = bench_buffer(b, p->y, y_elements * 2);
    ptxgen_cu_deviceptr y = with_guards + (size_t)GUARD * s->n * 2;
    assert_int_equal(b->driver.memset_d8(workspace, 0, GROUPED_FLAGS), PTXGEN_CUDA_SUCCESS);
    void *arguments[] = {&x, &w, &ends, &y, &workspace, &m};
    bench_run(b, "grouped", ctas, GROUPED_THREADS, arguments);
    bench_read(b, p->y, with_guards, y_elements * 2);
    bench_read(b, flags, workspace, sizeof flags);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        assert_int_equal(flags[i], 0);
}

static void free_buffers(struct bench *b)
{
    while (b->buffer_count)
        b->driver.mem_free(b->buffers[--b->buffer_count]);
}

/* A problem is right with one CTA, with three, with a CTA for each tile there can be, and more. */
static void assert_right_with_any_ctas(struct bench *b, struct problem *p)
{
    const struct grouped *s = &p->spec;
    uint64_t tiles = gemm_most_tiles_m(p->m, s->groups, GROUPED_TILE_M) * grouped_tiles_n(s);
    const uint32_t ctas[] = {1, 3, (uint32_t)tiles, (uint32_t)tiles * grouped_stages(s) + 5};
    for (size_t i = 0; i < sizeof ctas / sizeof *ctas; i++) {
        run(b, p, ctas[i], bench_blank(b, grouped_workspace_bytes(ctas[i])));
        check(p);
        free_buffers(b);
    }
}

static const struct grouped usual = {.n = 40, .k = 200};

/* The groups have so many rows each. Tiles are divided, then whole; CTAs begin in any order. */
static void assert_groups_are_right(uint32_t groups, const uint32_t rows[])
{
    for (int i = 0; i < test_share(4); i++) {
        const ptxgen_emulator_options options = {.seed = (uint64_t)(i / 2)};
        struct grouped spec = usual;
        struct bench b;
        spec.groups = groups;
        spec.whole = i % 2;
        bench_open(&b, "cpu:sm_80");
        bench_options(&b, &options);
        load(&b, &spec);
        struct problem p = make(spec, rows);
        assert_right_with_any_ctas(&b, &p);
        release(&p);
        bench_close(&b);
    }
}

/* ---- claims ---- */

static void two_groups_of_unequal_rows_have_weights_of_their_own(void **state)
{
    (void)state;
    assert_groups_are_right(2, (const uint32_t[]){5, 37});
    assert_groups_are_right(2, (const uint32_t[]){37, 5});
    assert_groups_are_right(2, (const uint32_t[]){16, 32});
}

static void groups_may_have_no_rows(void **state)
{
    (void)state;
    assert_groups_are_right(2, (const uint32_t[]){0, 9});
    assert_groups_are_right(2, (const uint32_t[]){9, 0});
    assert_groups_are_right(6, (const uint32_t[]){0, 0, 20, 0, 3, 0});
}

static void groups_may_have_one_row(void **state)
{
    (void)state;
    assert_groups_are_right(3, (const uint32_t[]){1, 1, 1});
    assert_groups_are_right(1, (const uint32_t[]){1});
    assert_groups_are_right(8, (const uint32_t[]){0, 0, 0, 0, 0, 0, 0, 1});
}

static void groups_of_any_rows_follow_each_other(void **state)
{
    (void)state;
    assert_groups_are_right(1, (const uint32_t[]){35});
    assert_groups_are_right(4, (const uint32_t[]){17, 1, 0, 33});
    assert_groups_are_right(8, (const uint32_t[]){3, 15, 16, 0, 17, 2, 1, 20});
}

/* A band of tiles is 16 tiles high. */
static void a_group_may_be_higher_than_a_band(void **state)
{
    (void)state;
    assert_groups_are_right(2, (const uint32_t[]){17, 16 * GROUPED_TILE_M + 20});
}

/* A warp writes the table of 32 groups at a time, and an entry more than there are groups. */
static void groups_may_be_more_than_the_lanes_of_a_warp(void **state)
{
    (void)state;
    for (uint32_t groups = 31; groups <= 33; groups++) {
        uint32_t rows[33] = {[0] = 1, [5] = 17, [30] = 4};
        rows[groups - 1] = 18;
        assert_groups_are_right(groups, rows);
    }
}

static void many_groups_have_few_rows(void **state)
{
    uint32_t rows[MOST_GROUPS] = {[3] = 1, [64] = 2, [200] = 1};
    (void)state;
    rows[MOST_GROUPS - 1] = 1;
    assert_groups_are_right(MOST_GROUPS, rows);
}

/* Whatever the array of ends holds, no row from m on is read or written. */
static void groups_end_at_m_at_the_latest_and_have_no_fewer_than_no_rows(void **state)
{
    static const uint32_t ends[][3] = {{4, 100, UINT32_MAX}, {24, 4, 0}};
    struct grouped spec = usual;
    struct bench b;
    (void)state;
    spec.groups = 3;
    bench_open(&b, "cpu:sm_80");
    load(&b, &spec);
    struct problem p = make(spec, (const uint32_t[]){4, 20, 0});
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        memcpy(p.ends, ends[i], sizeof ends[i]);
        assert_right_with_any_ctas(&b, &p);
    }
    release(&p);
    bench_close(&b);
}

static void the_entry_is_assembled_without_spills(void **state)
{
    struct grouped spec = usual;
    (void)state;
    spec.groups = 8;
    skip_without_ptxas();
    char *text = text_of(&spec);
    assert_assembles_without_spills(text, "sm_80");
    free(text);
}

/* ---- the division among CTAs ---- */

/* The first stage of a CTA where the host divides the tiles. */
static uint32_t first_stage(const struct gemm_schedule *s, uint32_t cta)
{
    uint32_t unit = cta < s->grid ? cta : s->grid;
    return (unit * s->share + (unit < s->extra ? unit : s->extra)) * s->granule;
}

/*
 * The CTAs have the stages that the host's schedule for this number of tiles gives them: those
 * whose last tile goes on in another CTA, and no others, have stored partial sums.
 */
static void assert_divided_as_by_the_host(struct bench *b, struct problem *p, uint32_t tiles,
                                          uint32_t ctas)
{
    enum { SUMS = GROUPED_THREADS * GROUPED_TILE_M / 2 /* of a CTA */ };
    const uint32_t stages = grouped_stages(&p->spec);
    const struct gemm_schedule schedule =
        gemm_deal(tiles, stages, ctas, gemm_deals_whole(tiles, ctas));
    ptxgen_cu_deviceptr workspace = bench_buffer(b, NULL, grouped_workspace_bytes(ctas));
    float sums[SUMS];
    run(b, p, ctas, workspace);
    assert_int_equal(grouped_workspace_bytes(ctas), GROUPED_FLAGS + ctas * sizeof sums);
    for (uint32_t cta = 0; cta < ctas; cta++) {
        uint32_t first = first_stage(&schedule, cta), end = first_stage(&schedule, cta + 1);
        bool stored = false;
        bench_read(b, sums, workspace + GROUPED_FLAGS + cta * sizeof sums, sizeof sums);
        for (size_t i = 0; i < SUMS; i++)
            stored |= sums[i] != 0;
        assert_int_equal(stored, first < end && end % stages != 0);
    }
    free_buffers(b);
}

static void ctas_have_the_shares_that_the_host_would_give_them(void **state)
{
    enum { TILES_M = 9 };
    struct grouped spec = usual;
    struct bench b;
    (void)state;
    spec.groups = 5;
    bench_open(&b, "cpu:sm_80");
    load(&b, &spec);
    struct problem p = make(spec, (const uint32_t[]){17, 0, 1, 33, 40});
    for (uint32_t ctas = 1; ctas <= 24; ctas++)
        if (test_in_share((int)ctas))
            assert_divided_as_by_the_host(&b, &p, TILES_M * grouped_tiles_n(&spec), ctas);
    release(&p);
    bench_close(&b);
}

/* The most tiles of `groups` groups with `rows` rows, by trying all numbers of the first's rows. */
static uint64_t most_tiles(uint32_t rows, uint32_t groups, uint32_t tile_m)
{
    uint64_t most = groups == 1 ? (rows + tile_m - 1) / tile_m : 0;
    for (uint32_t first = 0; first <= rows && groups > 1; first++) {
        uint64_t tiles =
            (first + tile_m - 1) / tile_m + most_tiles(rows - first, groups - 1, tile_m);
        most = tiles > most ? tiles : most;
    }
    return most;
}

static void the_bound_of_tiles_is_reached(void **state)
{
    (void)state;
    for (uint32_t groups = 1; groups <= 4; groups++)
        for (uint32_t tile_m = 1; tile_m <= 8; tile_m++)
            for (uint32_t rows = 0; rows <= 20; rows++)
                assert_int_equal(gemm_most_tiles_m(rows, groups, tile_m),
                                 most_tiles(rows, groups, tile_m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_groups_of_unequal_rows_have_weights_of_their_own),
        cmocka_unit_test(groups_may_have_no_rows),
        cmocka_unit_test(groups_may_have_one_row),
        cmocka_unit_test(groups_of_any_rows_follow_each_other),
        cmocka_unit_test(a_group_may_be_higher_than_a_band),
        cmocka_unit_test(groups_may_be_more_than_the_lanes_of_a_warp),
        cmocka_unit_test(many_groups_have_few_rows),
        cmocka_unit_test(groups_end_at_m_at_the_latest_and_have_no_fewer_than_no_rows),
        cmocka_unit_test(ctas_have_the_shares_that_the_host_would_give_them),
        cmocka_unit_test(the_entry_is_assembled_without_spills),
        cmocka_unit_test(the_bound_of_tiles_is_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
