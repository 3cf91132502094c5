/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights against the layout's definition, and back again. */
#include "tests/status.h"

#include "packing.h"
#include "scale_edges.h"
#include "specs.h"

#include <math.h>

static void expect_layout(const struct weights *w, const ptxgen_marlin_packed *packed)
{
    ptxgen_error err;
    ptxgen_marlin_packed slow = packed_allocate(&w->spec);
    uint32_t *order = allocate(w->spec.k * sizeof *order);
    ptxgen_w4_matrix sorted[2] = {{.codes = NULL}};
    for (unsigned i = 0; i < w->count; i++) {
        sorted[i].codes = allocate(w->spec.k * w->spec.n);
        assert_ok(ptxgen_w4_sort_rows(&w->matrices[i], &sorted[i], order, &err), &err);
    }
    size_t width = w->count == 2 ? 32 : 64, strips = (w->spec.n + width - 1) / width;
    size_t steps = (w->spec.k + 63) / 64;
    assert_int_equal(packed->codes_bytes, strips * steps * 2048);
    slow_codes(sorted, strips, steps, slow.codes);
    slow_groups(sorted, (ptxgen_element)w->spec.type, strips, packed->scales_bytes / 128 / strips,
                slow.scales, slow.zeros);
    if (slow.order)
        memcpy(slow.order, order, w->spec.k * sizeof *order);
    assert_same_packed(packed, &slow);
    for (unsigned i = 0; i < w->count; i++)
        free(sorted[i].codes);
    free(order);
    packed_free(&slow);
}

static void expect_packed(struct random *r, const ptxgen_marlin_spec *spec, ptxgen_w4_format format,
                          unsigned threads)
{
    ptxgen_error err;
    struct weights w = make_weights(r, spec, format, (ptxgen_element)spec->type);
    ptxgen_marlin_packed packed = packed_allocate(spec);
    ptxgen_w4_repack_options options = {.threads = threads};
    assert_ok(ptxgen_marlin_pack(spec, &w.checkpoints[0], up_of(&w), &packed, &options, &err),
              &err);
    expect_layout(&w, &packed);

    ptxgen_w4_matrix back[2];
    for (unsigned i = 0; i < w.count; i++)
        back[i] = matrix_allocate(spec->k, spec->n, spec->group_size, (ptxgen_element)spec->type,
                                  true, true);
    assert_ok(ptxgen_marlin_unpack(spec, &packed, &back[0], w.count == 2 ? &back[1] : NULL, &err),
              &err);
    for (unsigned i = 0; i < w.count; i++) {
        assert_same_matrix(&back[i], &w.matrices[i]);
        matrix_free(&back[i]);
    }
    packed_free(&packed);
    free_weights(&w);
}

static void every_format_packs_into_the_layout(void **state)
{
    (void)state;
    struct random r = {1};
    static const struct {
        uint32_t k, n;
        int32_t group_size;
    } shapes[] = {{64, 64, 64},   {256, 128, 128}, {16, 8, 16},    {144, 72, 48},
                  {112, 200, 16}, {160, 64, 32},   {192, 128, 96}, {208, 104, -1},
                  {384, 64, 384}, {640, 64, 320},  {320, 136, 32}, {128, 64, -1}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (unsigned mode = 0; mode < 8; mode++)
            for (int f = 0; ptxgen_w4_format_name((ptxgen_w4_format)f); f++) {
                ptxgen_marlin_spec spec = {.k = shapes[s].k,
                                           .n = shapes[s].n,
                                           .group_size = shapes[s].group_size,
                                           .type = mode & 1 ? PTXGEN_BF16 : PTXGEN_F16,
                                           .zeros = mode >> 1 & 1,
                                           .act_order = mode >> 2 & 1};
                if (format_holds((ptxgen_w4_format)f, &spec))
                    expect_packed(&r, &spec, (ptxgen_w4_format)f, 1 + s % 3);
            }
}

static void swiglu_interleaves_gate_and_up_by_32_columns(void **state)
{
    (void)state;
    struct random r = {2};
    static const uint32_t ns[] = {8, 32, 40, 64, 128, 232};
    for (size_t i = 0; i < sizeof ns / sizeof *ns; i++)
        for (unsigned mode = 0; mode < 4; mode++)
            for (int f = 0; ptxgen_w4_format_name((ptxgen_w4_format)f); f++) {
                ptxgen_marlin_spec spec = {.k = 192,
                                           .n = ns[i],
                                           .group_size = i % 2 ? 48 : 64,
                                           .type = PTXGEN_F16,
                                           .zeros = mode & 1,
                                           .act_order = mode >> 1,
                                           .epilogue = PTXGEN_EPILOGUE_SWIGLU};
                if (format_holds((ptxgen_w4_format)f, &spec))
                    expect_packed(&r, &spec, (ptxgen_w4_format)f, 2);
            }
}

/* One column for each of them, in both versions of GPTQ. */
static void zero_points_0_to_15_survive_gptq_v1_and_v2(void **state)
{
    (void)state;
    ptxgen_error err;
    struct random r = {3};
    ptxgen_marlin_spec spec = {.k = 64, .n = 64, .group_size = 32, .type = PTXGEN_F16, .zeros = 1};
    for (int f = PTXGEN_W4_GPTQ_V1; f <= PTXGEN_W4_GPTQ_V2; f++) {
        ptxgen_w4_matrix m = matrix_random(&r, 64, 64, 32, PTXGEN_F16, true, false);
        for (size_t i = 0; i < 2 * 64; i++)
            m.zeros[i] = i % 16;
        ptxgen_w4_checkpoint from = checkpoint_of(&m, (ptxgen_w4_format)f);
        ptxgen_marlin_packed packed = packed_allocate(&spec);
        assert_ok(ptxgen_marlin_pack(&spec, &from, NULL, &packed, NULL, &err), &err);
        const uint32_t *words = packed.zeros;
        for (size_t group = 0; group < 2; group++)
            for (size_t column = 0; column < 64; column++) {
                size_t nibble = column / 16 * 2 + column % 16 / 8;
                assert_int_equal(words[group * 8 + column % 8] >> 4 * nibble & 15, column % 16);
            }
        packed_free(&packed);
        checkpoint_free(&from);
        matrix_free(&m);
    }
}

static void scales_are_converted_to_the_specs_type(void **state)
{
    (void)state;
    ptxgen_error err;
    struct random r = {4};
    static const ptxgen_element types[] = {PTXGEN_F16, PTXGEN_BF16, PTXGEN_F32};
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 2; to++) {
            ptxgen_marlin_spec spec = {
                .k = 128, .n = 72, .group_size = 32, .type = (uint8_t)types[to]};
            struct weights w = make_weights(&r, &spec, PTXGEN_W4_PACK_QUANTIZED, types[from]);
            ptxgen_marlin_packed packed = packed_allocate(&spec);
            assert_ok(ptxgen_marlin_pack(&spec, &w.checkpoints[0], NULL, &packed, NULL, &err),
                      &err);
            expect_layout(&w, &packed);
            packed_free(&packed);
            free_weights(&w);
        }
}

struct progress {
    size_t calls, last;
};

static void note_progress(void *user, size_t done, size_t all)
{
    struct progress *p = user;
    p->calls++;
    p->last = done;
    assert_int_equal(all, 400);
}

static void packing_reports_its_progress(void **state)
{
    (void)state;
    ptxgen_error err;
    struct random r = {5};
    ptxgen_marlin_spec spec = {.k = 400, .n = 64, .group_size = 80, .type = PTXGEN_F16};
    struct weights w = make_weights(&r, &spec, PTXGEN_W4_GPTQ_V2, PTXGEN_F16);
    ptxgen_marlin_packed packed = packed_allocate(&spec);
    struct progress progress = {0};
    ptxgen_w4_repack_options options = {3, note_progress, &progress};
    assert_ok(ptxgen_marlin_pack(&spec, &w.checkpoints[0], NULL, &packed, &options, &err), &err);
    assert_int_equal(progress.calls, 4);
    assert_int_equal(progress.last, 400);
    packed_free(&packed);
    free_weights(&w);
}

/* ---- refusals ---- */

static void expect_refusal(const ptxgen_marlin_spec *spec, const struct weights *w,
                           const ptxgen_marlin_packed *packed, ptxgen_status expected,
                           const char *words)
{
    ptxgen_error err = {0};
    ptxgen_w4_repack_options options = {.threads = 2};
    assert_int_equal(ptxgen_marlin_pack(spec, &w->checkpoints[0], up_of(w), packed, &options, &err),
                     expected);
    assert_says(&err, words);
}

static const ptxgen_marlin_spec plain = {.k = 256, .n = 64, .group_size = 64, .type = PTXGEN_F16};

static void packing_refuses_another_shape_than_the_specs(void **state)
{
    (void)state;
    struct random r = {6};
    struct weights w = make_weights(&r, &plain, PTXGEN_W4_GPTQ_V1, PTXGEN_F16);
    const struct {
        uint32_t k, n;
        int32_t group_size;
    } others[] = {{512, 64, 64}, {256, 72, 64}, {256, 64, 128}, {256, 64, -1}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ptxgen_marlin_spec spec = plain;
        spec.k = others[i].k;
        spec.n = others[i].n;
        spec.group_size = others[i].group_size;
        ptxgen_marlin_packed packed = packed_allocate(&spec);
        expect_refusal(&spec, &w, &packed, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "K = 256, N = 64 and groups of 64");
        packed_free(&packed);
    }
    free_weights(&w);
}

static void packing_refuses_zero_points_and_orders_that_the_spec_lacks(void **state)
{
    (void)state;
    struct random r = {7};
    ptxgen_marlin_spec zeros = plain, ordered = plain;
    zeros.zeros = 1;
    ordered.act_order = 1;
    ptxgen_marlin_packed packed = packed_allocate(&plain);
    struct weights w = make_weights(&r, &zeros, PTXGEN_W4_GPTQ_V1, PTXGEN_F16);
    expect_refusal(&plain, &w, &packed, PTXGEN_ERROR_INVALID_ARGUMENT, "zero points other than 8");
    free_weights(&w);
    w = make_weights(&r, &ordered, PTXGEN_W4_GPTQ_V1, PTXGEN_F16);
    expect_refusal(&plain, &w, &packed, PTXGEN_ERROR_INVALID_ARGUMENT, "no act_order");
    free_weights(&w);
    packed_free(&packed);
}

static void packing_refuses_scales_that_the_type_cannot_hold(void **state)
{
    (void)state;
    struct random r = {8};
    static const struct {
        double value;
        ptxgen_element from;
    } scales[] = {{65536, PTXGEN_BF16}, {INFINITY, PTXGEN_F16}, {NAN, PTXGEN_F32}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        struct weights w = make_weights(&r, &plain, PTXGEN_W4_GPTQ_V1, scales[i].from);
        ptxgen_marlin_packed packed = packed_allocate(&plain);
        ptxgen_element_store(scales[i].from, w.checkpoints[0].scales.data, 3 * 64 + 17,
                             scales[i].value);
        expect_refusal(&plain, &w, &packed, PTXGEN_ERROR_UNSUPPORTED,
                       "group 3, feature 17, is not finite as f16");
        packed_free(&packed);
        free_weights(&w);
    }
}

/* A matrix with this scale and zero point, as a checkpoint, packed; and how its reference fares. */
static void expect_scale_edge(const struct scale_edge *e, ptxgen_w4_format format)
{
    struct weights w = make_edge(e, format);
    ptxgen_marlin_spec spec = w.spec;
    ptxgen_marlin_packed packed = packed_allocate(&spec);
    const ptxgen_marlin_plan plan = plan_of(&spec, "sm_80");
    const ptxgen_marlin_operands operands = {.weights = &w.matrices[0]};
    ptxgen_error err;
    ptxgen_status status = ptxgen_marlin_reference(&plan, &operands, NULL, NULL, &err);
    if (e->refused) {
        assert_int_equal(status, PTXGEN_ERROR_UNSUPPORTED);
        assert_says(&err, e->refused);
        expect_refusal(&spec, &w, &packed, PTXGEN_ERROR_UNSUPPORTED, e->refused);
    } else {
        assert_ok(status, &err);
        assert_ok(ptxgen_marlin_pack(&spec, &w.checkpoints[0], NULL, &packed, NULL, &err), &err);
        assert_ok(ptxgen_marlin_check_packed(&spec, &packed, &err), &err);
    }
    packed_free(&packed);
    free_weights(&w);
}

static void packing_and_the_reference_refuse_scales_at_the_same_edges(void **state)
{
    (void)state;
    for (size_t i = 0; i < SCALE_EDGES; i++)
        for (int f = 0; f < 4; f++)
            expect_scale_edge(&scale_edges[i], (ptxgen_w4_format)f);
}

static void packed_weights_from_elsewhere_are_checked_by_their_scales(void **state)
{
    (void)state;
    static const struct {
        uint8_t type, epilogue;
        uint16_t bits; /* of the 9th scale of a strip's packed group 5: column 1 or gate's 1 */
        const char *words;
    } cases[] = {
        {PTXGEN_F16, 0, 0x7000, "scale 8192 of weights, group 1, feature 1, with the zero point 8"},
        {PTXGEN_F16, 1, 0x7C00, "scale inf of gate, group 1, feature 1, is not finite as f16"},
        {PTXGEN_BF16, 0, 0xCC00,
         "scale -3.35544e+07 of weights, group 1, feature 1, is not between"},
        {PTXGEN_BF16, 1, 0x7FC0, "scale nan of gate, group 1, feature 1, is not finite as bf16"},
    };
    struct random r = {12};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        /* groups of 48 rows are three packed ones each: the last of group 1 */
        ptxgen_marlin_spec spec = {.k = 144,
                                   .n = 64,
                                   .group_size = 48,
                                   .type = cases[i].type,
                                   .epilogue = cases[i].epilogue};
        struct weights w = make_weights(&r, &spec, PTXGEN_W4_GPTQ_V2, (ptxgen_element)spec.type);
        ptxgen_marlin_packed packed = packed_allocate(&spec);
        ptxgen_error err;
        assert_ok(ptxgen_marlin_pack(&spec, &w.checkpoints[0], up_of(&w), &packed, NULL, &err),
                  &err);
        assert_ok(ptxgen_marlin_check_packed(&spec, &packed, &err), &err);
        memcpy((unsigned char *)packed.scales + 5 * 128 + 8 * 2, &cases[i].bits, 2);
        assert_int_equal(ptxgen_marlin_check_packed(&spec, &packed, &err),
                         PTXGEN_ERROR_UNSUPPORTED);
        assert_says(&err, cases[i].words);
        packed_free(&packed);
        free_weights(&w);
    }
}

/* Rows in plain order, which an act-order spec takes as well; zero points as int8. */
static void pack_quantized_packs_alike_with_unset_groups_and_int8_zero_points(void **state)
{
    (void)state;
    struct random r = {13};
    ptxgen_marlin_spec spec = plain;
    spec.zeros = spec.act_order = 1;
    struct weights w = make_weights(&r, &spec, PTXGEN_W4_PACK_QUANTIZED, PTXGEN_F16);
    ptxgen_w4_matrix *m = &w.matrices[0];
    ptxgen_w4_checkpoint c = w.checkpoints[0];
    size_t groups = matrix_groups(m);
    int8_t *zeros = allocate(m->n * groups);
    ptxgen_error err;
    for (size_t k = 0; k < m->k; k++)
        set_word(&c.g_idx, k, (uint32_t)(k / 64));
    ptxgen_marlin_packed expected = packed_allocate(&spec), packed = packed_allocate(&spec);
    assert_ok(ptxgen_marlin_pack(&spec, &c, NULL, &expected, NULL, &err), &err);
    for (size_t k = 0; k < m->k; k++)
        set_word(&c.g_idx, k, UINT32_MAX);
    for (size_t i = 0; i < m->n * groups; i++)
        zeros[i] = (int8_t)(m->zeros[i % groups * m->n + i / groups] - 8);
    c.zeros = (ptxgen_w4_tensor){zeros, PTXGEN_W4_I8, {m->n, groups}};
    assert_ok(ptxgen_marlin_pack(&spec, &c, NULL, &packed, NULL, &err), &err);
    assert_same_packed(&packed, &expected);
    free(zeros);
    packed_free(&packed);
    packed_free(&expected);
    free_weights(&w);
}

static void packing_refuses_gate_and_up_in_different_orders(void **state)
{
    (void)state;
    struct random r = {9};
    ptxgen_marlin_spec spec = plain;
    spec.act_order = 1;
    spec.epilogue = PTXGEN_EPILOGUE_SWIGLU;
    struct weights w = make_weights(&r, &spec, PTXGEN_W4_GPTQ_V1, PTXGEN_F16);
    const ptxgen_w4_tensor *g_idx = &w.checkpoints[1].g_idx;
    for (size_t i = 0; i < 128; i++) { /* any two rows of different groups change places */
        uint32_t a = word_of(g_idx, i), b = word_of(g_idx, 255 - i);
        set_word(g_idx, i, b);
        set_word(g_idx, 255 - i, a);
    }
    ptxgen_marlin_packed packed = packed_allocate(&spec);
    expect_refusal(&spec, &w, &packed, PTXGEN_ERROR_UNSUPPORTED, "order their rows differently");
    w.count = 1;
    expect_refusal(&spec, &w, &packed, PTXGEN_ERROR_INVALID_ARGUMENT, "SwiGLU needs it");
    w.count = 2;
    packed_free(&packed);
    free_weights(&w);
}

static void packing_refuses_missing_and_missized_arrays(void **state)
{
    (void)state;
    struct random r = {10};
    struct weights w = make_weights(&r, &plain, PTXGEN_W4_AWQ, PTXGEN_F16);
    ptxgen_marlin_packed packed = packed_allocate(&plain), broken = packed;
    broken.scales = NULL;
    expect_refusal(&plain, &w, &broken, PTXGEN_ERROR_INVALID_ARGUMENT, "packed.scales is NULL");
    broken = packed;
    broken.codes_bytes -= 16;
    expect_refusal(&plain, &w, &broken, PTXGEN_ERROR_INVALID_ARGUMENT, "the spec needs 8192");
    packed_free(&packed);
    free_weights(&w);
}

static void layout_refuses_unsound_specs(void **state)
{
    (void)state;
    const struct {
        ptxgen_marlin_spec spec;
        const char *words;
    } cases[] = {
        {{.k = 24, .n = 64, .group_size = -1, .type = PTXGEN_F16},
         "K = 24 is not a multiple of 16"},
        {{.k = 64, .n = 12, .group_size = -1, .type = PTXGEN_F16}, "N = 12 is not a multiple of 8"},
        {{.k = 64, .n = 64, .group_size = 24, .type = PTXGEN_F16}, "group size 24 is neither"},
        {{.k = 64, .n = 64, .group_size = 0, .type = PTXGEN_F16}, "group size 0 is neither"},
        {{.k = 64, .n = 64, .group_size = 48, .type = PTXGEN_F16}, "48 does not divide K = 64"},
        {{.k = 10944, .n = 64, .group_size = 128, .type = PTXGEN_F16}, "does not divide K = 10944"},
        {{.k = 64, .n = 64, .group_size = -1, .type = PTXGEN_F32}, "neither PTXGEN_F16"},
        {{.k = 64, .n = 64, .group_size = -1, .type = PTXGEN_F16, .activation = 9}, "activation"},
        {{.k = 64, .n = 64, .group_size = -1, .type = PTXGEN_F16, .bias = 2}, "bias is 2"},
        {{.k = 64, .n = 64, .group_size = -1, .type = PTXGEN_F16, .epilogue = 1, .activation = 1},
         "SwiGLU has its own"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_marlin_packed packed;
        ptxgen_error err = {0};
        assert_int_not_equal(ptxgen_marlin_packed_layout(&cases[i].spec, &packed, &err), PTXGEN_OK);
        assert_says(&err, cases[i].words);
    }
}

static void unpacking_refuses_an_order_that_is_no_permutation(void **state)
{
    (void)state;
    struct random r = {11};
    ptxgen_marlin_spec spec = plain;
    spec.act_order = 1;
    struct weights w = make_weights(&r, &spec, PTXGEN_W4_GPTQ_V1, PTXGEN_F16);
    ptxgen_marlin_packed packed = packed_allocate(&spec);
    ptxgen_w4_matrix back = matrix_allocate(256, 64, 64, PTXGEN_F16, true, true);
    ptxgen_error err;
    assert_ok(ptxgen_marlin_pack(&spec, &w.checkpoints[0], NULL, &packed, NULL, &err), &err);
    static const uint32_t wrong[] = {256, UINT32_MAX};
    uint32_t kept = packed.order[9];
    for (int i = 0; i < 3; i++) {
        packed.order[9] = i < 2 ? wrong[i] : packed.order[8];
        assert_int_equal(ptxgen_marlin_unpack(&spec, &packed, &back, NULL, &err),
                         PTXGEN_ERROR_INVALID_ARGUMENT);
        assert_says(&err, "order[9]");
    }
    packed.order[9] = kept;
    assert_ok(ptxgen_marlin_unpack(&spec, &packed, &back, NULL, &err), &err);
    matrix_free(&back);
    packed_free(&packed);
    free_weights(&w);
}

static void weights_without_k_are_checked_and_unpacked(void **state)
{
    (void)state;
    for (uint32_t n = 0; n <= 64; n += 64) {
        const ptxgen_marlin_spec spec = {.n = n, .k = 0, .group_size = -1, .type = PTXGEN_F16};
        ptxgen_marlin_packed packed = {0};
        ptxgen_error err;
        uint32_t codes[16];
        uint16_t scales[16];
        ptxgen_w4_matrix matrix = {.n = n};
        matrix.codes = (void *)codes;
        matrix.scales = (void *)scales;
        assert_ok(ptxgen_marlin_packed_layout(&spec, &packed, &err), &err);
        assert_ok(ptxgen_marlin_check_packed(&spec, &packed, &err), &err);
        assert_ok(ptxgen_marlin_unpack(&spec, &packed, &matrix, NULL, &err), &err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_packs_into_the_layout),
        cmocka_unit_test(swiglu_interleaves_gate_and_up_by_32_columns),
        cmocka_unit_test(zero_points_0_to_15_survive_gptq_v1_and_v2),
        cmocka_unit_test(scales_are_converted_to_the_specs_type),
        cmocka_unit_test(packing_reports_its_progress),
        cmocka_unit_test(packing_refuses_another_shape_than_the_specs),
        cmocka_unit_test(packing_refuses_zero_points_and_orders_that_the_spec_lacks),
        cmocka_unit_test(packing_refuses_scales_that_the_type_cannot_hold),
        cmocka_unit_test(packing_and_the_reference_refuse_scales_at_the_same_edges),
        cmocka_unit_test(packed_weights_from_elsewhere_are_checked_by_their_scales),
        cmocka_unit_test(pack_quantized_packs_alike_with_unset_groups_and_int8_zero_points),
        cmocka_unit_test(packing_refuses_gate_and_up_in_different_orders),
        cmocka_unit_test(packing_refuses_missing_and_missized_arrays),
        cmocka_unit_test(layout_refuses_unsound_specs),
        cmocka_unit_test(unpacking_refuses_an_order_that_is_no_permutation),
        cmocka_unit_test(weights_without_k_are_checked_and_unpacked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
