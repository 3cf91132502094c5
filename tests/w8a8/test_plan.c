/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan accepts, chooses and refuses. */
#include "support.h"

#include "src/kernels/w8a8/layout.h"
#include "tests/random.h"

static ptxgen_w8a8_spec spec_of(uint32_t k, uint32_t n)
{
    return (ptxgen_w8a8_spec){.k = k, .n = n, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
}

static ptxgen_w8a8_plan plan_of(const ptxgen_w8a8_spec *spec, const char *name)
{
    ptxgen_target target = target_of(name);
    ptxgen_w8a8_plan plan;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_make_plan(spec, &target, &plan, &err), &err);
    return plan;
}

/* What a launch of m tokens needs, as far as the plan says. */
static ptxgen_status workspace_bytes(const ptxgen_w8a8_plan *plan, uint64_t m, uint64_t *bytes,
                                     ptxgen_error *err)
{
    const ptxgen_tile *v = ptxgen_w8a8_choose(plan, m);
    struct w8a8_schedule schedule;
    if (!v)
        return gemm_refuse_m(&w8a8_planner, plan, m, err);
    ptxgen_status status = w8a8_schedule(plan, v, m, &schedule, err);
    if (status == PTXGEN_OK)
        *bytes = schedule.workspace_bytes;
    return status;
}

static void refused_with(ptxgen_status status, const ptxgen_w8a8_spec *spec, const char *words)
{
    ptxgen_target target = target_of("sm_90");
    ptxgen_w8a8_plan plan;
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_w8a8_make_plan(spec, &target, &plan, &err), status);
    assert_says(&err, words);
}

static void refused(const ptxgen_w8a8_spec *spec, const char *words)
{
    refused_with(PTXGEN_ERROR_UNSUPPORTED, spec, words);
}

static void invalid(const ptxgen_w8a8_spec *spec, const char *words)
{
    refused_with(PTXGEN_ERROR_INVALID_ARGUMENT, spec, words);
}

static void huge_shapes_and_short_strides_are_refused(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_of(8, 1u << 31);
    refused(&s, "N = 2147483648 is above");
    s = spec_of(64, 8);
    s.w_stride = 63;
    invalid(&s, "w_stride = 63 is below K = 64");
}

static void codes_outside_eight_bits_or_without_zero_are_refused(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_of(64, 8);
    s.q_min = -129;
    s.q_max = 127;
    refused(&s, "-129 ... 127");
    s.q_min = 1;
    refused(&s, "1 ... 127");
    s.q_min = -8;
    s.q_max = 0;
    refused(&s, "-8 ... 0");
}

static void unknown_types_and_flags_are_refused(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_of(64, 8);
    s.x_type = 4;
    invalid(&s, "x_type = 4");
    s = spec_of(64, 8);
    s.scales = 4;
    invalid(&s, "scales = 4");
    s = spec_of(64, 8);
    s.bias = 2;
    invalid(&s, "flag");
}

/* The largest K that is accepted keeps the largest sum within s32; the next one does not. */
static void k_is_refused_just_where_sums_could_overflow(void **state)
{
    (void)state;
    static const struct {
        int q_min, q_max, asymmetric;
        int64_t reach;
        uint32_t most;
    } cases[] = {{-127, 127, 0, 127, 132104},
                 {-128, 127, 0, 128, 131071},
                 {-128, 127, 1, 255, 65793},
                 {-7, 7, 0, 7, 2396745}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_w8a8_spec s = spec_of(cases[i].most, 8);
        s.q_min = (int16_t)cases[i].q_min;
        s.q_max = (int16_t)cases[i].q_max;
        s.asymmetric = (uint8_t)cases[i].asymmetric;
        assert_true(cases[i].reach * 128 * cases[i].most <= INT32_MAX);
        assert_true(cases[i].reach * 128 * (cases[i].most + 1) > INT32_MAX);
        plan_of(&s, "sm_90");
        s.k++;
        refused(&s, "can leave 32 bits");
    }
}

static void small_m_takes_one_launch_and_large_m_two(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_of(8192, 8192);
    ptxgen_w8a8_plan p = plan_of(&s, "sm_90");
    char text[256];
    uint64_t bytes;
    assert_true(ptxgen_w8a8_choose(&p, 1)->fused);
    ptxgen_w8a8_explain(&p, 1, text, sizeof text);
    assert_non_null(strstr(text, "one launch"));
    assert_int_equal(workspace_bytes(&p, 1, &bytes, NULL), PTXGEN_OK);
    assert_int_equal(bytes, 0);
    for (uint32_t m = 2; m < 100000; m = m * 3 / 2) {
        assert_false(ptxgen_w8a8_choose(&p, m)->fused);
        ptxgen_w8a8_explain(&p, m, text, sizeof text);
        assert_non_null(strstr(text, "two launches"));
        assert_int_equal(workspace_bytes(&p, m, &bytes, NULL), PTXGEN_OK);
        assert_true(bytes >= (uint64_t)m * 8192);
    }
    assert_null(ptxgen_w8a8_choose(&p, 0));
    s.max_m = 100;
    p = plan_of(&s, "sm_90");
    assert_non_null(ptxgen_w8a8_choose(&p, 100));
    assert_null(ptxgen_w8a8_choose(&p, 101));
    ptxgen_error err;
    assert_int_equal(workspace_bytes(&p, 101, &bytes, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "m = 101 is outside"));
}

/* What every CTA reads of x is limited, but for a single token. */
static void long_rows_of_x_let_fewer_tokens_share_one_launch(void **state)
{
    (void)state;
    static const struct {
        uint32_t k;
        uint8_t x_type;
        uint32_t most;
    } cases[] = {{8192, PTXGEN_F16, 1},   {8192, PTXGEN_F32, 1}, {2048, PTXGEN_F64, 1},
                 {2048, PTXGEN_F32, 2},   {2048, PTXGEN_F16, 4}, {1000, PTXGEN_F16, 8},
                 {28672, PTXGEN_BF16, 1}, {60000, PTXGEN_F64, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_w8a8_spec s = spec_of(cases[i].k, 8192);
        s.x_type = cases[i].x_type;
        ptxgen_w8a8_plan p = plan_of(&s, "sm_90");
        assert_true(ptxgen_w8a8_choose(&p, cases[i].most)->fused);
        assert_false(ptxgen_w8a8_choose(&p, cases[i].most + 1)->fused);
    }
}

static void w_is_copied_in_the_widest_units_its_stride_allows(void **state)
{
    (void)state;
    static const uint32_t cases[][3] = {/* K, stride, bytes */ {8192, 0, 16},
                                        {7384, 0, 8},
                                        {4548, 0, 4},
                                        {4550, 0, 1},
                                        {105, 0, 1},
                                        {105, 112, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_w8a8_spec s = spec_of(cases[i][0], 40);
        s.w_stride = cases[i][1];
        assert_int_equal(plan_of(&s, "sm_80").copy_bytes, cases[i][2]);
    }
}

/* Rows of W that are no multiples of 16 bytes are brought to such, by tiles of few tokens those
 * alone that are no multiples of 4: the workspace has room for them. */
static void rows_of_w_are_aligned_in_the_workspace(void **state)
{
    (void)state;
    static const struct {
        uint32_t k, stride, m;
        bool aligns;
    } cases[] = {{4096, 0, 1000, false}, {4089, 0, 1, true},     {4089, 0, 1000, true},
                 {4090, 0, 20, true},    {4092, 0, 1, false},    {4092, 0, 8, false},
                 {4092, 0, 1000, true},  {4088, 0, 1000, true},  {4081, 4096, 1000, false},
                 {4081, 4084, 8, false}, {4081, 4084, 100, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int t = 0; t < TARGETS; t++) {
            ptxgen_w8a8_spec s = spec_of(cases[i].k, 1000);
            s.w_stride = cases[i].stride;
            ptxgen_w8a8_plan p = plan_of(&s, target_names[t]);
            char text[200];
            uint64_t bytes;
            ptxgen_w8a8_explain(&p, cases[i].m, text, sizeof text);
            assert_int_equal(strstr(text, "three launches") != NULL, cases[i].aligns);
            assert_int_equal(workspace_bytes(&p, cases[i].m, &bytes, NULL), PTXGEN_OK);
            if (cases[i].aligns)
                assert_true(bytes >= 4096 * (1000 + (uint64_t)cases[i].m));
        }
}

/* Tiles of up to 64 tokens know of one row of tiles only. */
static void a_tile_of_few_tokens_never_serves_more(void **state)
{
    (void)state;
    for (int i = 0; i < TARGETS; i++) {
        ptxgen_w8a8_spec s = spec_of(4096, 4096);
        ptxgen_w8a8_plan p = plan_of(&s, target_names[i]);
        for (uint32_t m = 1; m < 2000; m++) {
            const ptxgen_tile *v = ptxgen_w8a8_choose(&p, m);
            assert_true(v->tile_m >= m || v->tile_m > 64);
        }
    }
    ptxgen_w8a8_spec s = spec_of(4096, 4096);
    ptxgen_w8a8_plan p = plan_of(&s, "sm_90");
    ptxgen_tile tile = {.tile_m = 16, .tile_n = 64, .wn = 4, .wm = 1, .wk = 2};
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_use_tile(&p, &tile, &err), &err);
    assert_non_null(ptxgen_w8a8_choose(&p, 16));
    assert_null(ptxgen_w8a8_choose(&p, 17));
}

/* From sm_90 on, where both CTAs get as many stages of K. */
static void clusters_halve_k_where_it_divides(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_of(4096, 4096);
    ptxgen_tile tile = {.tile_m = 64, .wn = 4, .wm = 1, .wk = 2, .cluster = 2};
    ptxgen_w8a8_plan p = plan_of(&s, "sm_90");
    ptxgen_error err;
    uint32_t ctas;
    assert_ok(ptxgen_w8a8_use_tile(&p, &tile, &err), &err);
    assert_int_equal(p.variants[0].blocks_n, 64);
    assert_ok(ptxgen_w8a8_ctas(&p, 64, &ctas, &err), &err);
    assert_int_equal(ctas, 128);
    p = plan_of(&s, "sm_80");
    assert_int_equal(ptxgen_w8a8_use_tile(&p, &tile, &err), PTXGEN_ERROR_UNSUPPORTED);
    s.k = 4096 + 256;
    p = plan_of(&s, "sm_90");
    assert_int_equal(ptxgen_w8a8_use_tile(&p, &tile, &err), PTXGEN_ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "cluster"));
}

/* On sm_90a alone, where tensor copies can read W, without clusters. */
static void wgmma_needs_rows_at_multiples_of_16_bytes(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_of(4096, 4000);
    ptxgen_tile tile = {.tile_m = 64, .kind = PTXGEN_WGMMA};
    ptxgen_w8a8_plan p = plan_of(&s, "sm_90a");
    ptxgen_error err;
    uint32_t ctas;
    assert_ok(ptxgen_w8a8_use_tile(&p, &tile, &err), &err);
    assert_int_equal(p.variants[0].blocks_n, 125);
    assert_int_equal(p.variants[0].wn, 1);
    assert_int_equal(p.variants[0].wm, 4);
    assert_ok(ptxgen_w8a8_ctas(&p, 64, &ctas, &err), &err);
    assert_int_equal(ctas, 125);
    tile.tile_n = 128;
    tile.cluster = 2;
    assert_int_equal(ptxgen_w8a8_use_tile(&p, &tile, &err), PTXGEN_ERROR_UNSUPPORTED);
    tile.cluster = 1;
    assert_ok(ptxgen_w8a8_use_tile(&p, &tile, &err), &err);
    assert_int_equal(p.variants[0].blocks_n, 32);
    assert_int_equal(p.variants[0].wn, 4);
    tile.tile_m = 32;
    assert_int_equal(ptxgen_w8a8_use_tile(&p, &tile, &err), PTXGEN_ERROR_UNSUPPORTED);
    p = plan_of(&s, "sm_90");
    assert_int_equal(ptxgen_w8a8_use_tile(&p, &tile, &err), PTXGEN_ERROR_UNSUPPORTED);
    tile.tile_m = 16; /* whose rows, of multiples of 4 bytes, are copied as they are */
    s.k = 4092;
    p = plan_of(&s, "sm_90a");
    assert_int_equal(ptxgen_w8a8_use_tile(&p, &tile, &err), PTXGEN_ERROR_UNSUPPORTED);
    s.k = 4098;
    p = plan_of(&s, "sm_90a");
    assert_ok(ptxgen_w8a8_use_tile(&p, &tile, &err), &err);
}

/* Where W fills the multiprocessors; else K is divided, which mma.sync's tiles can do. */
static void tiles_of_wgmma_serve_up_to_16_and_64_tokens(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{4096, 4096}, {8192, 8192}, {4096, 14336}, {14336, 4096}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        ptxgen_w8a8_spec s = {.k = shapes[i][0], .n = shapes[i][1], .x_type = PTXGEN_F16};
        ptxgen_w8a8_plan p = plan_of(&s, "sm_90a");
        assert_true(ptxgen_w8a8_choose(&p, 1)->fused);
        for (uint32_t m = 3; m <= 64; m++)
            assert_ptr_equal(ptxgen_w8a8_choose(&p, m), ptxgen_w8a8_choose(&p, m <= 16 ? 16 : 64));
        assert_true(ptxgen_w8a8_choose(&p, 16)->kind == PTXGEN_WGMMA);
        assert_int_equal(ptxgen_w8a8_choose(&p, 16)->tile_m, shapes[i][1] > 4096 ? 16 : 64);
        for (uint32_t m = 64; m <= 128; m++)
            assert_true(ptxgen_w8a8_choose(&p, m)->kind == PTXGEN_WGMMA);
    }
    ptxgen_w8a8_spec s = {.k = 8192, .n = 1024, .x_type = PTXGEN_F16};
    ptxgen_w8a8_plan p = plan_of(&s, "sm_90a");
    assert_false(ptxgen_w8a8_choose(&p, 16)->kind == PTXGEN_WGMMA);
}

static void check_warps(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    uint32_t columns = v->tile_m < 8 ? 8 : v->tile_m;
    assert_int_equal(v->wn * v->wm * v->wk, 8);
    assert_true(v->wm == 1 || v->wk == 1);
    assert_int_equal(v->tile_n % (16 * v->wn), 0);
    assert_int_equal(columns % (8 * v->wm), 0);
    assert_true(v->tile_n / v->wn * (columns / v->wm) / 32 <= 128);
    assert_true(v->cluster == 1 || (v->cluster == 2 && p->target.ptx.sm >= 90));
}

static void check_warpgroups(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    assert_int_equal(p->target.ptx.sm, 90);
    assert_int_equal(p->target.ptx.suffix, 'a');
    assert_true(p->copy_bytes == 16 || p->copy_bytes == 1 || v->tile_m > 32);
    if (v->tile_m >= 64) {
        uint32_t rows = v->tile_n / v->wn; /* wgmma's columns */
        assert_int_equal(v->tile_m % 64, 0);
        assert_int_equal(v->wm, v->tile_m / 16);
        assert_true(v->wn * v->wm <= 16 && v->tile_n % v->wn == 0);
        assert_int_equal(rows % (rows > 32 ? 16 : 8), 0);
    } else {
        assert_int_equal(v->tile_n % 64, 0);
        assert_int_equal(v->wn, v->tile_n / 16);
        assert_int_equal(v->wm, 1);
    }
    assert_int_equal(v->cluster, 1);
    assert_false(v->fused);
}

static void check_variant(const ptxgen_w8a8_plan *p, const ptxgen_tile *v)
{
    uint64_t n = p->spec.n, unit = v->fused ? 1 : 8, units = (n + unit - 1) / unit;
    if (v->kind == PTXGEN_WGMMA)
        check_warpgroups(p, v);
    else
        check_warps(p, v);
    assert_true((units + v->blocks_n - 1) / v->blocks_n * unit <= v->tile_n);
    assert_true(v->blocks_n <= n);
    assert_true(v->stages >= 2 && v->shared_bytes <= p->target.shared_per_cta);
}

static void check_names(const ptxgen_w8a8_plan *p)
{
    for (uint32_t v = 0; v < p->variant_count; v++)
        for (uint32_t w = 0; w < v; w++)
            assert_string_not_equal(ptxgen_w8a8_entry(&p->variants[v]),
                                    ptxgen_w8a8_entry(&p->variants[w]));
}

/* Wide tiles have more than 32 features, and so have others of as many tokens. */
static void variants_of_few_features_have_names_of_their_own(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 80; n++) {
        const ptxgen_w8a8_spec s = spec_of(4096, n);
        const ptxgen_w8a8_plan p = plan_of(&s, "sm_90a");
        check_names(&p);
    }
}

/* No CTA quantises; a launch needs the flags of divided tiles, and the same place for any M. */
static void codes_of_the_caller_take_no_room(void **state)
{
    (void)state;
    uint64_t bytes = 1;
    char text[200];
    ptxgen_w8a8_spec s = spec_of(4096, 4096);
    s.scales = PTXGEN_W8A8_QUANTISED;
    s.x_type = PTXGEN_F64;
    const ptxgen_w8a8_plan wgmma = plan_of(&s, "sm_90a"), mma = plan_of(&s, "sm_80");
    assert_int_equal(wgmma.spec.x_type, PTXGEN_F32);
    assert_int_equal(ptxgen_w8a8_work_type(&s), PTXGEN_F32);
    for (uint32_t m = 1; m < 3000; m = m * 3 / 2 + 1) {
        assert_false(ptxgen_w8a8_choose(&mma, m)->fused || ptxgen_w8a8_choose(&wgmma, m)->fused);
        assert_int_equal(workspace_bytes(&wgmma, m, &bytes, NULL), PTXGEN_OK);
        assert_int_equal(bytes, 0);
        ptxgen_w8a8_explain(&wgmma, m, text, sizeof text);
        assert_non_null(strstr(text, "one launch: tiles of "));
        assert_int_equal(workspace_bytes(&mma, m, &bytes, NULL), PTXGEN_OK);
        assert_true(bytes == 0 || bytes > 4 * mma.target.multiprocessors);
    }
    ptxgen_w8a8_plan fused = mma;
    ptxgen_error err;
    const ptxgen_tile tile = {.tile_m = 1, .wn = 2, .wm = 1, .wk = 4, .fused = 1};
    assert_refusal(ptxgen_w8a8_use_tile(&fused, &tile, &err), &err, PTXGEN_ERROR_INVALID_ARGUMENT,
                   "w8a8: no CTA holds a tile of 1 tokens by 0 features for 1 x 2 x 4 "
                   "warps along M, N and K in 3 stages, in a cluster of 1");
}

/* Any shape on any chip: a variant for every M, and no two of one name. */
static void random_specs_are_planned_soundly_for_every_target(void **state)
{
    (void)state;
    struct random r = {1};
    for (int i = 0; i < 600; i++) {
        ptxgen_w8a8_spec s = spec_of(1 + random_bits(&r) % (i % 3 ? 9000 : 60000),
                                     1 + random_bits(&r) % (i % 4 ? 9000 : 60000));
        s.x_type = random_bits(&r) % 4;
        s.min_m = random_bits(&r) % 2 ? random_bits(&r) % 600 : 0;
        ptxgen_w8a8_plan p = plan_of(&s, target_names[i % TARGETS]);
        for (uint32_t v = 0; v < p.variant_count; v++)
            check_variant(&p, &p.variants[v]);
        check_names(&p);
        for (uint64_t m = s.min_m + 1; m < UINT32_MAX; m = m * 5 / 3 + 1)
            assert_non_null(ptxgen_w8a8_choose(&p, (uint32_t)m));
    }
}

static void a_plan_for_some_tokens_has_only_their_variants(void **state)
{
    (void)state;
    static const uint32_t cases[][3] = {
        /* fewest, most, variants */ {0, 2, 1}, {1, 1, 1}, {9, 16, 1}, {17, 64, 2}, {300, 0, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_w8a8_spec s = spec_of(4096, 4096);
        s.min_m = cases[i][0];
        s.max_m = cases[i][1];
        ptxgen_w8a8_plan p = plan_of(&s, "sm_90");
        assert_int_equal(p.variant_count, cases[i][2]);
        if (s.min_m > 1)
            assert_null(ptxgen_w8a8_choose(&p, s.min_m - 1));
    }
    ptxgen_w8a8_spec s = spec_of(64, 64);
    s.min_m = 9;
    s.max_m = 8;
    invalid(&s, "min_m = 9");
}

/* Bytes of the workspace grow with M and stay 64 bits wide. */
static void a_million_tokens_are_planned_and_two_to_the_32_stages_refused(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_of(8192, 8192);
    ptxgen_w8a8_plan p = plan_of(&s, "sm_90");
    uint64_t bytes;
    ptxgen_error err;
    assert_ok(workspace_bytes(&p, 1000000, &bytes, &err), &err);
    assert_true(bytes >= UINT64_C(8192) * 1000000);
    assert_int_equal(workspace_bytes(&p, UINT32_MAX, &bytes, &err), PTXGEN_ERROR_UNSUPPORTED);
    assert_says(&err, "m = 4294967295 tokens are more than a launch takes");
}

/* With 48 KB of shared memory a CTA, the widest tile that fits has 64 tokens, and serves no more.
 */
static void a_plan_without_a_tile_for_the_most_tokens_is_refused(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_of(1000, 64);
    ptxgen_target target = target_of("sm_80");
    ptxgen_w8a8_plan p;
    ptxgen_error err = {0};
    target.shared_per_cta = 49152;
    s.max_m = 64;
    assert_ok(ptxgen_w8a8_make_plan(&s, &target, &p, &err), &err);
    assert_non_null(ptxgen_w8a8_choose(&p, 64));
    s.max_m = 65;
    assert_int_equal(ptxgen_w8a8_make_plan(&s, &target, &p, &err), PTXGEN_ERROR_UNSUPPORTED);
    assert_says(&err, "w8a8: no tile fits into the 49152 bytes of shared memory of a CTA");
}

static void a_tile_can_be_given_and_is_checked(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_of(8192, 8192);
    ptxgen_w8a8_plan p = plan_of(&s, "sm_90");
    ptxgen_tile tile = {.tile_m = 16, .tile_n = 128, .wn = 8, .wm = 1, .wk = 1, .stages = 5};
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_use_tile(&p, &tile, &err), &err);
    assert_int_equal(p.variant_count, 1);
    assert_int_equal(p.variants[0].stages, 5);
    assert_int_equal(p.variants[0].blocks_n, 64);
    check_variant(&p, &p.variants[0]);
    tile.stages = 100;
    assert_int_equal(ptxgen_w8a8_use_tile(&p, &tile, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    tile.stages = 16;
    assert_int_equal(ptxgen_w8a8_use_tile(&p, &tile, &err), PTXGEN_ERROR_SHARED_MEMORY);
    tile.stages = 0;
    tile.tile_m = 24;
    assert_int_equal(ptxgen_w8a8_use_tile(&p, &tile, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "24 tokens"));
}

static void equal_specs_give_equal_plans_in_every_byte(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_of(4096, 14336);
    ptxgen_w8a8_plan a, b;
    memset(&a, 0x55, sizeof a);
    memset(&b, 0xAA, sizeof b);
    ptxgen_target target = target_of("sm_90");
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_make_plan(&s, &target, &a, &err), &err);
    s.q_min = -127;
    s.q_max = 127;
    s.w_stride = 4096;
    assert_ok(ptxgen_w8a8_make_plan(&s, &target, &b, &err), &err);
    assert_memory_equal(&a, &b, sizeof a);
}

/* Tokens whose tiles cannot be counted in 32 bits among them. */
static void any_number_of_tokens_is_served_or_refused_with_a_status(void **state)
{
    static const uint32_t ms[] = {1,          INT32_MAX - 1,    INT32_MAX,        1u << 31,
                                  UINT32_MAX, UINT32_MAX - 126, UINT32_MAX - 127, UINT32_MAX - 255};
    (void)state;
    for (int t = 0; t < TARGETS; t++)
        for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
            ptxgen_w8a8_spec s = spec_of(256, 64);
            ptxgen_w8a8_plan p = plan_of(&s, target_names[t]);
            uint32_t ctas = 0;
            uint64_t bytes = 0;
            char text[400] = "";
            ptxgen_error err;
            ptxgen_status expected = ms[i] > INT32_MAX ? PTXGEN_ERROR_UNSUPPORTED : PTXGEN_OK;
            assert_non_null(ptxgen_w8a8_choose(&p, ms[i]));
            assert_int_equal(ptxgen_w8a8_ctas(&p, ms[i], &ctas, &err), expected);
            assert_int_equal(workspace_bytes(&p, ms[i], &bytes, &err), expected);
            ptxgen_w8a8_explain(&p, ms[i], text, sizeof text);
            assert_true(text[0] != '\0');
        }
}

static void a_tile_of_zeros_is_refused(void **state)
{
    (void)state;
    ptxgen_w8a8_spec s = spec_of(8192, 8192);
    ptxgen_w8a8_plan p = plan_of(&s, "sm_90a");
    ptxgen_tile tile = {.tile_m = 0};
    ptxgen_error err;
    assert_int_equal(ptxgen_w8a8_use_tile(&p, &tile, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    tile.kind = PTXGEN_WGMMA;
    assert_int_equal(ptxgen_w8a8_use_tile(&p, &tile, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
}

static void a_tile_of_wgmma_has_16_warps_at_most(void **state)
{
    (void)state;
    const ptxgen_target target = target_of("sm_90a");
    const ptxgen_w8a8_spec spec = spec_of(1024, 256);
    for (uint32_t tile_m = 64; tile_m <= 256; tile_m *= 2)
        for (uint32_t wn = 1; wn <= 32; wn *= 2) {
            const ptxgen_tile tile = {.kind = PTXGEN_WGMMA, .tile_m = tile_m, .wn = wn};
            bool fits = wn * tile_m / 16 <= 16;
            ptxgen_w8a8_plan plan;
            ptxgen_error err = {0};
            assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
            ptxgen_status status = ptxgen_w8a8_use_tile(&plan, &tile, &err);
            if (!fits)
                assert_int_equal(status, PTXGEN_ERROR_UNSUPPORTED);
            else if (tile_m > 64 || wn > 1)
                assert_ok(status, &err);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tile_of_wgmma_has_16_warps_at_most),
        cmocka_unit_test(huge_shapes_and_short_strides_are_refused),
        cmocka_unit_test(codes_outside_eight_bits_or_without_zero_are_refused),
        cmocka_unit_test(unknown_types_and_flags_are_refused),
        cmocka_unit_test(k_is_refused_just_where_sums_could_overflow),
        cmocka_unit_test(small_m_takes_one_launch_and_large_m_two),
        cmocka_unit_test(long_rows_of_x_let_fewer_tokens_share_one_launch),
        cmocka_unit_test(w_is_copied_in_the_widest_units_its_stride_allows),
        cmocka_unit_test(rows_of_w_are_aligned_in_the_workspace),
        cmocka_unit_test(a_tile_of_few_tokens_never_serves_more),
        cmocka_unit_test(clusters_halve_k_where_it_divides),
        cmocka_unit_test(wgmma_needs_rows_at_multiples_of_16_bytes),
        cmocka_unit_test(tiles_of_wgmma_serve_up_to_16_and_64_tokens),
        cmocka_unit_test(random_specs_are_planned_soundly_for_every_target),
        cmocka_unit_test(variants_of_few_features_have_names_of_their_own),
        cmocka_unit_test(codes_of_the_caller_take_no_room),
        cmocka_unit_test(a_plan_for_some_tokens_has_only_their_variants),
        cmocka_unit_test(a_million_tokens_are_planned_and_two_to_the_32_stages_refused),
        cmocka_unit_test(any_number_of_tokens_is_served_or_refused_with_a_status),
        cmocka_unit_test(a_tile_of_zeros_is_refused),
        cmocka_unit_test(a_plan_without_a_tile_for_the_most_tokens_is_refused),
        cmocka_unit_test(a_tile_can_be_given_and_is_checked),
        cmocka_unit_test(equal_specs_give_equal_plans_in_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
