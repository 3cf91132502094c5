/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a launch does in one pass gives the bits of its parts: codes and scales are those of w8a8's
 * own quantising entry, and a producer's row, made elsewhere and rounded, then quantised by a
 * launch without a producer, gives what the launch with the producer writes.
 */
#include "tests/problems.h"

#include "src/harness/quantise.h"
#include "src/kernels/gemm/epilogue.h"
#include "src/kernels/w8a8/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES = 3 };

/* ---- an entry of a test's own ---- */

struct entry {
    ptxgen_module *module;
    ptxgen_kernel *kernel;
};

static struct entry load_entry(struct device *device, ptx_module *text, const char *name)
{
    struct entry e;
    const char *ptx;
    ptxgen_error err;
    assert_ok(ptx_module_text(text, 0, &ptx, NULL, &err), &err);
    assert_ok(ptxgen_module_load_ptx(&device->driver, ptx, NULL, &e.module, &err), &err);
    assert_ok(ptxgen_kernel_create(e.module, name, 0, &e.kernel, &err), &err);
    ptx_module_destroy(text);
    return e;
}

static void run_entry(struct device *device, const struct entry *e, uint64_t ctas, uint32_t threads,
                      void *const *arguments)
{
    const ptxgen_launch_shape shape = {.grid = {ctas, 1, 1}, .block = {threads, 1, 1}};
    ptxgen_error err;
    assert_ok(ptxgen_launch(e->kernel, &shape, device->stream, arguments, &err), &err);
    assert_ok(device_wait(device, &err), &err);
    ptxgen_kernel_destroy(e->kernel);
    ptxgen_module_destroy(e->module);
}

static struct buffer device_copy(struct device *device, const void *bytes, size_t size)
{
    struct buffer b;
    ptxgen_error err;
    assert_ok(buffer_create(device, "an array", size, 0, &b, &err), &err);
    if (bytes)
        memcpy(b.host, bytes, size);
    assert_ok(buffer_upload(&b, &err), &err);
    return b;
}

/* ---- w8a8's own entry ---- */

/* Tokens of w8a8, of `k` elements each, as its entry w8a8_quantise has them. */
static void quantise_by_w8a8(struct device *device, const ptxgen_w8a8_spec *spec, const void *x,
                             uint64_t m, struct buffer out[3])
{
    const ptxgen_target target = ptxgen_device_target(&device->facts);
    ptxgen_w8a8_plan plan;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_make_plan(spec, &target, &plan, &err), &err);
    ptx_module *text = ptx_module_create(&target.ptx, NULL);
    assert_ok(ptxgen_w8a8_emit(&plan, ~0u, text, &err), &err);
    const struct entry e = load_entry(device, text, "w8a8_quantise");
    struct buffer in = device_copy(device, x, m * spec->k * typed_bytes(spec->x_type));
    out[0] = device_copy(device, NULL, m * w8a8_code_stride(spec));
    out[1] = device_copy(device, NULL, 4 * m);
    out[2] = device_copy(device, NULL, 4 * m);
    uint64_t wide[W8A8_Q_X_STRIDE] = {[W8A8_Q_X] = in.address,
                                      [W8A8_Q_CODES] = out[0].address,
                                      [W8A8_Q_SCALES] = out[1].address,
                                      [W8A8_Q_ZEROS] = out[2].address,
                                      [W8A8_Q_FLAGS] = out[2].address};
    uint32_t narrow[W8A8_Q_PARAMS] = {[W8A8_Q_X_STRIDE] = spec->k, [W8A8_Q_M] = (uint32_t)m};
    void *arguments[W8A8_Q_PARAMS];
    for (int i = 0; i < W8A8_Q_PARAMS; i++)
        arguments[i] = i < W8A8_Q_X_STRIDE ? (void *)&wide[i] : &narrow[i];
    run_entry(device, &e, m, w8a8_quantise_threads(spec), arguments);
    for (int i = 0; i < 3; i++)
        assert_ok(buffer_download(&out[i], &err), &err);
    buffer_destroy(&in);
}

static void codes_and_scales_are_those_of_w8a8s_own_entry(void **state)
{
    enum { M = 5 };
    struct device device = open_device("cpu:sm_89");
    (void)state;
    for (int i = 0; i < TYPES * 3 * 2; i++) {
        const bool groups = i / (TYPES * 3);
        const ptxgen_quantise_spec spec = {.k = groups ? 384 : 333,
                                           .x_type = (uint8_t)(i % TYPES),
                                           .group = groups ? PTXGEN_QUANTISE_GROUP : 0,
                                           .codes = i / TYPES % 3 == 2 ? PTXGEN_W8A8_E4M3
                                                                       : PTXGEN_W8A8_S8,
                                           .asymmetric = i / TYPES % 3 == 1};
        const uint32_t width = groups ? PTXGEN_QUANTISE_GROUP : spec.k, per = spec.k / width;
        const ptxgen_w8a8_spec rows = {.k = width,
                                       .n = 8,
                                       .x_type = spec.x_type,
                                       .y_type = PTXGEN_F16,
                                       .asymmetric = spec.asymmetric,
                                       .codes = spec.codes};
        struct buffer out[3];
        if (!test_in_share(i))
            continue;
        struct problem p = make_problem(&device, &quantise_harness, &spec, M, NULL);
        check_problem(&p, &device);
        quantise_by_w8a8(&device, &rows, p.buffers[QUANTISE_AT_X].host, M * per, out);
        for (uint64_t row = 0; row < M * per; row++)
            assert_memory_equal(problem_at(&p, QUANTISE_AT_CODES, 0, row * width),
                                out[0].host + row * w8a8_code_stride(&rows), width);
        assert_memory_equal(problem_at(&p, QUANTISE_AT_SCALES, 0, 0), out[1].host, 4 * M * per);
        if (spec.asymmetric)
            assert_memory_equal(problem_at(&p, QUANTISE_AT_ZEROS, 0, 0), out[2].host, 4 * M * per);
        for (int o = 0; o < 3; o++)
            buffer_destroy(&out[o]);
        problem_release(&p);
    }
    device_close(&device);
}

/* ---- producers, then a launch without one ---- */

/* The spec without its producer, on these rows, writes what the problem's outputs are. */
static void assert_quantised(struct device *device, const struct problem *p, const void *rows)
{
    ptxgen_quantise_spec spec = *(const ptxgen_quantise_spec *)p->plan;
    spec.producer = PTXGEN_QUANTISE_NONE;
    spec.epsilon = 0;
    spec.residual = spec.gamma_type = 0;
    struct problem then = make_problem(device, &quantise_harness, &spec, p->m, NULL);
    memcpy(then.buffers[QUANTISE_AT_X].host, rows, then.buffers[QUANTISE_AT_X].bytes);
    check_problem(&then, device);
    for (unsigned o = QUANTISE_AT_CODES; o < QUANTISE_OPERANDS; o++)
        if (p->operands[o].used)
            assert_memory_equal(p->buffers[o].host, then.buffers[o].host, then.buffers[o].bytes);
    problem_release(&then);
}

static float mean_square(const ptxgen_quantise_plan *plan, const void *row)
{
    static float sums[1024];
    for (uint32_t t = 0; t < plan->threads; t++) {
        float sum = 0;
        for (uint32_t chunk = t; 8 * chunk < plan->spec.k; chunk += plan->threads)
            for (uint32_t k = 8 * chunk; k < 8 * chunk + 8 && k < plan->spec.k; k++) {
                float s = (float)typed_load(plan->spec.x_type, row, k);
                sum = fmaf(s, s, sum);
            }
        sums[t] = sum;
    }
    for (uint32_t bit = 1; bit < plan->threads; bit *= 2)
        for (uint32_t t = 0; t < plan->threads; t += 2 * bit)
            sums[t] += sums[t + bit];
    return sums[0] * (1.0f / (float)plan->spec.k);
}

/* By the rules of the header, in C. */
static void norm_rows(const struct problem *p, unsigned from, void *rows)
{
    const ptxgen_quantise_plan *plan = p->plan;
    const ptxgen_quantise_spec *s = &plan->spec;
    for (uint64_t m = 0; m < p->m; m++) {
        const void *row = problem_at(p, from, m, 0);
        float r = 1.0f / sqrtf(mean_square(plan, row) + s->epsilon);
        for (uint32_t k = 0; k < s->k; k++) {
            float weight =
                (float)typed_load(s->gamma_type, problem_at(p, QUANTISE_AT_GAMMA, 0, k), 0);
            float scaled = (float)typed_load(s->x_type, row, k) * r;
            typed_store(s->x_type, rows, m * s->k + k, scaled * weight);
        }
    }
}

static void a_norm_and_its_codes_are_those_of_the_norm_then_the_codes(void **state)
{
    enum { M = 3 };
    static const uint32_t ks[] = {40, 512, 1500, 8200};
    struct device device = open_device("cpu:sm_89");
    (void)state;
    for (int i = 0; i < TYPES * 4 * 2 * 2; i++) {
        const ptxgen_quantise_spec spec = {
            .k = ks[i / TYPES % 4],
            .epsilon = 1e-6f,
            .x_type = (uint8_t)(i % TYPES),
            .codes = i % 2 ? PTXGEN_W8A8_E4M3 : PTXGEN_W8A8_S8,
            .group = i / (TYPES * 4) % 2 ? PTXGEN_QUANTISE_GROUP : 0,
            .producer = PTXGEN_QUANTISE_RMSNORM,
            .residual = (uint8_t)(i / (TYPES * 8)),
            .gamma_type = (uint8_t)(i / 3 % TYPES),
        };
        if (!test_in_share(i))
            continue;
        struct problem p = make_problem(&device, &quantise_harness, &spec, M, NULL);
        void *rows = calloc(M * spec.k, typed_bytes(spec.x_type));
        assert_non_null(rows);
        check_problem(&p, &device);
        norm_rows(&p, spec.residual ? QUANTISE_AT_RESIDUAL_OUT : QUANTISE_AT_X, rows);
        assert_quantised(&device, &p, rows);
        free(rows);
        problem_release(&p);
    }
    device_close(&device);
}

/* One entry: pairs of silu(gate) · up, rounded to the type, by the emitter's own function. */
static ptx_module *emit_silu_mul(const ptxgen_target *target, uint8_t type)
{
    ptx_module *module = ptx_module_create(&target->ptx, NULL);
    ptx_kernel *k = ptx_kernel_begin(module, "silu_mul");
    ptx_kernel_reqntid(k, 32, 1, 1);
    ptx_u64 gate = ptx_param_u64(k, "gate"), up = ptx_param_u64(k, "up");
    ptx_u64 out = ptx_param_u64(k, "out");
    ptx_u32 place = ptx_mad_lo_u32(k, ptx_sreg_ctaid_x(k), U32(32), ptx_sreg_tid_x(k));
    const ptx_u64 from[2] = {ptx_mad_wide_u32(k, place, U32(4), gate),
                             ptx_mad_wide_u32(k, place, U32(4), up)};
    ptx_f32 v[2][2];
    for (int i = 0; i < 2; i++) {
        ptx_u32 word = ptx_ld_global_u32(k, from[i], 0);
        if (type == PTXGEN_F16) {
            ptx_f16 halves[2];
            ptx_unpack_f16x2(k, halves, ptx_u32_as_f16x2(word));
            v[i][0] = ptx_cvt_f32_f16(k, halves[0]);
            v[i][1] = ptx_cvt_f32_f16(k, halves[1]);
        } else if (type == PTXGEN_BF16) {
            v[i][0] = ptx_u32_as_f32(ptx_shl_b32(k, word, U32(16)));
            v[i][1] = ptx_u32_as_f32(ptx_and_b32(k, word, U32(0xFFFF0000)));
        } else {
            v[i][0] = v[i][1] = ptx_u32_as_f32(word);
        }
    }
    ptx_f32 product[2];
    for (int j = 0; j < 2; j++) {
        ptx_f32 silu = gemm_activate(k, PTXGEN_ACTIVATION_SILU, v[0][j]);
        product[j] = ptx_mul_f32(k, silu, v[1][j]);
    }
    ptx_u64 to = ptx_mad_wide_u32(k, place, U32(4), out);
    if (type == PTXGEN_F32)
        ptx_st_global_f32(k, to, 0, product[0]);
    else
        ptx_st_global_u32(k, to, 0,
                          gemm_narrow_pair(k, type == PTXGEN_BF16, product[0], product[1]));
    ptx_kernel_end(k);
    return module;
}

/* A row of gate and up after the other, whose words are whole warps'. */
static void multiply_row(struct device *device, uint8_t type, const void *x, uint32_t k, void *row)
{
    const ptxgen_target target = ptxgen_device_target(&device->facts);
    const size_t bytes = k * typed_bytes(type);
    const struct entry e = load_entry(device, emit_silu_mul(&target, type), "silu_mul");
    struct buffer in = device_copy(device, x, 2 * bytes), out = device_copy(device, NULL, bytes);
    uint64_t addresses[3] = {in.address, in.address + bytes, out.address};
    void *const arguments[] = {&addresses[0], &addresses[1], &addresses[2]};
    ptxgen_error err;
    run_entry(device, &e, bytes / 128, 32, arguments);
    assert_ok(buffer_download(&out, &err), &err);
    memcpy(row, out.host, bytes);
    buffer_destroy(&in);
    buffer_destroy(&out);
}

static void a_gate_and_its_codes_are_those_of_the_product_then_the_codes(void **state)
{
    enum { M = 3, K = 1088 };
    struct device device = open_device("cpu:sm_89");
    (void)state;
    for (int i = 0; i < TYPES * 2 * 2; i++) {
        const ptxgen_quantise_spec spec = {
            .k = K,
            .x_type = (uint8_t)(i % TYPES),
            .codes = i / TYPES % 2 ? PTXGEN_W8A8_E4M3 : PTXGEN_W8A8_S8,
            .group = i / (TYPES * 2) ? PTXGEN_QUANTISE_GROUP : 0,
            .producer = PTXGEN_QUANTISE_SILU_MUL,
        };
        const size_t bytes = K * typed_bytes(spec.x_type);
        if (!test_in_share(i))
            continue;
        struct problem p = make_problem(&device, &quantise_harness, &spec, M, NULL);
        unsigned char *rows = calloc(M, bytes);
        assert_non_null(rows);
        check_problem(&p, &device);
        for (uint64_t m = 0; m < M; m++)
            multiply_row(&device, spec.x_type, problem_at(&p, QUANTISE_AT_X, m, 0), K,
                         rows + m * bytes);
        assert_quantised(&device, &p, rows);
        free(rows);
        problem_release(&p);
    }
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_and_scales_are_those_of_w8a8s_own_entry),
        cmocka_unit_test(a_norm_and_its_codes_are_those_of_the_norm_then_the_codes),
        cmocka_unit_test(a_gate_and_its_codes_are_those_of_the_product_then_the_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
