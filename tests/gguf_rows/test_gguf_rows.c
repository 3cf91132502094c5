/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of every GGUF type, decoded on the device, have the bits of the host's decoder. */
#include "tests/problems.h"

#include "src/harness/gguf_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES = 16, ELEMENTS = 3 };

static const ptxgen_gguf_type_info *type_at(int i)
{
    const ptxgen_gguf_type_info *type = ptxgen_gguf_type_at((size_t)i);
    assert_non_null(type);
    return type;
}

/* ---- bits ---- */

/* The bits of each element are the reference's, which tells 0 from −0; any NaN is one. */
static void assert_bits(const struct problem *p)
{
    const ptxgen_gguf_rows_spec *s = p->plan;
    const size_t element = typed_bytes(s->y_type);
    const ptxgen_gguf_rows_operands operands = {
        .m = p->m,
        .n = p->operands[GGUF_ROWS_AT_W].rows,
        .ids = problem_at(p, GGUF_ROWS_AT_IDS, 0, 0),
        .first_row = s->indexed ? 0 : GGUF_ROWS_BEFORE,
        .w = problem_at(p, GGUF_ROWS_AT_W, 0, 0),
    };
    unsigned char *row = malloc(s->k * element);
    ptxgen_error err;
    assert_non_null(row);
    for (uint64_t m = 0; m < p->m; m++) {
        assert_ok(ptxgen_gguf_rows_reference(s, &operands, m, row, &err), &err);
        for (uint32_t i = 0; i < s->k; i++) {
            const void *got = problem_at(p, GGUF_ROWS_AT_Y, m, i);
            if (!isnan(typed_load(s->y_type, row, i)))
                assert_memory_equal(got, row + i * element, element);
            else
                assert_true(isnan(typed_load(s->y_type, got, 0)));
        }
    }
    free(row);
}

static void run_bits(struct device *device, const ptxgen_gguf_rows_spec *spec, uint64_t m,
                     const struct layout *layout)
{
    struct problem p = make_problem(device, &gguf_rows_harness, spec, m, layout);
    check_problem(&p, device);
    assert_bits(&p);
    problem_release(&p);
}

/* Rows of a block, of no whole strip, of several strips, and of several parts. */
static void every_type_has_the_bits_of_the_hosts_decoder(void **state)
{
    static const uint32_t multiples[] = {1, 3, 9, 19, 41};
    struct device device = open_device("cpu:sm_90");
    (void)state;
    for (int i = 0; i < TYPES * 5; i++) {
        const ptxgen_gguf_type_info *type = type_at(i / 5);
        const uint32_t block = type->block_weights == 1 ? 77 : type->block_weights;
        const ptxgen_gguf_rows_spec spec = {.k = block * multiples[i % 5],
                                            .w_type = (uint8_t)type->type,
                                            .y_type = (uint8_t)(i % ELEMENTS),
                                            .scale = i % 4 == 3 ? -0.75f : 0,
                                            .indexed = i % 2};
        if (test_in_share(i))
            run_bits(&device, &spec, 3, NULL);
    }
    device_close(&device);
}

/* Starts of w and y at all multiples of their alignments, and rows of y with gaps. */
static void rows_at_any_address_are_right(void **state)
{
    struct device device = open_device("cpu:sm_80");
    (void)state;
    for (int i = 0; i < TYPES * 8; i++) {
        const ptxgen_gguf_type_info *type = type_at(i / 8);
        const ptxgen_gguf_rows_spec spec = {.k = type->block_weights == 1 ? 267 : 512,
                                            .w_type = (uint8_t)type->type,
                                            .y_type = (uint8_t)(i / 3 % ELEMENTS)};
        struct layout layout = {.gap = {0}};
        layout.shift[GGUF_ROWS_AT_W] = (uint32_t)(i % 8 * 3);
        layout.shift[GGUF_ROWS_AT_Y] = (uint32_t)(i % 3);
        layout.gap[GGUF_ROWS_AT_Y] = i % 5 == 4 ? 8 : (uint32_t)(i % 5);
        if (test_in_share(i))
            run_bits(&device, &spec, 2, &layout);
    }
    device_close(&device);
}

static void random_problems_are_right(void **state)
{
    (void)state;
    assert_drawn_problems_are_right(&gguf_rows_harness, 8);
}

/* ---- launches by hand ---- */

/* Arrays of exactly the bytes that a launch needs, past which the emulator lets no kernel read. */
struct launch {
    struct device *device;
    ptxgen_gguf_rows_plan plan;
    ptxgen_gguf_rows *kernel;
    ptxgen_gguf_rows_args args;
    size_t row_bytes;
};

static uint64_t allocate(struct device *device, const void *bytes, size_t size)
{
    ptxgen_cu_deviceptr address;
    assert_int_equal(device->driver.mem_alloc(&address, size), PTXGEN_CUDA_SUCCESS);
    if (bytes)
        assert_int_equal(device->driver.memcpy_htod(address, bytes, size), PTXGEN_CUDA_SUCCESS);
    return address;
}

/* Chips of one multiprocessor have few CTAs, whose warps then have several parts each. */
static struct launch open_launch(struct device *device, const ptxgen_gguf_rows_spec *spec,
                                 uint32_t multiprocessors)
{
    struct launch l = {.device = device};
    ptxgen_target target = ptxgen_device_target(&device->facts);
    ptxgen_error err;
    if (multiprocessors)
        target.multiprocessors = multiprocessors;
    assert_ok(ptxgen_gguf_rows_make_plan(spec, &target, &l.plan, &err), &err);
    assert_ok(ptxgen_gguf_rows_load(&device->driver, &l.plan, NULL, &l.kernel, &err), &err);
    assert_ok(ptxgen_gguf_row_bytes(spec->w_type, spec->k, &l.row_bytes, &err), &err);
    return l;
}

static void set_rows(struct launch *l, const void *w, uint64_t n, uint64_t m)
{
    const ptxgen_gguf_rows_spec *s = &l->plan.spec;
    l->args = (ptxgen_gguf_rows_args){.m = m, .n = n};
    l->args.y = allocate(l->device, NULL, m * s->k * typed_bytes(s->y_type));
    if (n)
        l->args.w = allocate(l->device, w, n * l->row_bytes);
}

/* Launches, and returns y, to be freed. */
static void *launch(struct launch *l)
{
    const ptxgen_gguf_rows_spec *s = &l->plan.spec;
    const size_t bytes = l->args.m * s->k * typed_bytes(s->y_type);
    void *y = malloc(bytes);
    ptxgen_error err;
    assert_non_null(y);
    ptxgen_status status = ptxgen_gguf_rows_launch(l->kernel, &l->args, l->device->stream, &err);
    if (status == PTXGEN_OK)
        status = device_wait(l->device, &err);
    assert_ok(device_explain(l->device, status, &err), &err);
    assert_int_equal(l->device->driver.memcpy_dtoh(y, l->args.y, bytes), PTXGEN_CUDA_SUCCESS);
    return y;
}

static void close_launch(struct launch *l)
{
    l->device->driver.mem_free(l->args.y);
    l->device->driver.mem_free(l->args.w);
    l->device->driver.mem_free(l->args.ids);
    ptxgen_gguf_rows_destroy(l->kernel);
}

/* Row `m` of y is that of w, or NaNs where that is NULL. */
static void assert_row(const struct launch *l, const void *y, uint64_t m, const void *row)
{
    const ptxgen_gguf_rows_spec *s = &l->plan.spec;
    const ptxgen_gguf_rows_operands operands = {.m = 1, .n = row != NULL, .w = row};
    ptxgen_gguf_rows_spec plain = *s;
    void *want = malloc(s->k * typed_bytes(s->y_type));
    ptxgen_error err;
    assert_non_null(want);
    plain.indexed = 0;
    assert_ok(ptxgen_gguf_rows_reference(&plain, &operands, 0, want, &err), &err);
    for (uint32_t i = 0; i < s->k; i++) {
        double value = typed_load(s->y_type, y, m * s->k + i),
               right = typed_load(s->y_type, want, i);
        assert_true(value == right || (isnan(value) && isnan(right)));
    }
    free(want);
}

/* Of the last rows no byte behind w is read, and of rows that w does not have none at all. */
static void rows_that_w_does_not_have_are_nans(void **state)
{
    enum { N = 3, M = 7, MOST = N * 2 * 210 };
    static const int32_t ids[M] = {2, -1, 3, 0, INT32_MAX, INT32_MIN, 1};
    struct device device = open_device("cpu:sm_90");
    unsigned char w[MOST];
    (void)state;
    for (int i = 0; i < TYPES * 2; i++) {
        const ptxgen_gguf_type_info *type = type_at(i / 2);
        const uint32_t block = type->block_weights;
        const ptxgen_gguf_rows_spec spec = {.k = block == 1    ? 91
                                                 : block < 256 ? 3 * block
                                                               : block,
                                            .w_type = (uint8_t)type->type,
                                            .y_type = (uint8_t)(i % ELEMENTS),
                                            .indexed = i % 2};
        struct random r = random_start((uint64_t)i);
        if (!test_in_share(i))
            continue;
        struct launch l = open_launch(&device, &spec, 0);
        assert_true(N * l.row_bytes <= sizeof w);
        random_fill(&r, w, sizeof w);
        set_rows(&l, w, N, M);
        if (spec.indexed)
            l.args.ids = allocate(&device, ids, sizeof ids);
        l.args.first_row = 1;
        void *y = launch(&l);
        for (int m = 0; m < M; m++) {
            int64_t row = spec.indexed ? ids[m] : m + 1;
            assert_row(&l, y, (uint64_t)m, row >= 0 && row < N ? w + row * l.row_bytes : NULL);
        }
        free(y);
        close_launch(&l);
    }
    device_close(&device);
}

static void a_matrix_of_no_rows_and_rows_far_behind_it_are_nans(void **state)
{
    struct device device = open_device("cpu:sm_80");
    const ptxgen_gguf_rows_spec spec = {.k = 64, .w_type = PTXGEN_GGUF_Q8_0};
    const unsigned char w[2 * 34] = {1};
    struct launch l = open_launch(&device, &spec, 0);
    (void)state;
    for (uint64_t n = 0; n < 2; n++) {
        set_rows(&l, w, n, 3);
        l.args.first_row = UINT64_MAX;
        void *y = launch(&l);
        for (uint64_t m = 0; m < 3; m++)
            assert_row(&l, y, m, NULL);
        free(y);
        device.driver.mem_free(l.args.y);
        device.driver.mem_free(l.args.w);
    }
    l.args.y = l.args.w = 0;
    close_launch(&l);
    device_close(&device);
}

static void a_warp_decodes_one_part_after_the_other(void **state)
{
    enum { K = 4096, M = 300 };
    struct device device = open_device("cpu:sm_90");
    const ptxgen_gguf_rows_spec spec = {.k = K, .w_type = PTXGEN_GGUF_Q6_K, .y_type = PTXGEN_BF16};
    struct launch l = open_launch(&device, &spec, 1);
    unsigned char *w = malloc(M * l.row_bytes);
    struct random r = random_start(1);
    uint32_t ctas;
    ptxgen_error err;
    (void)state;
    assert_non_null(w);
    random_fill(&r, w, M * l.row_bytes);
    assert_ok(ptxgen_gguf_rows_ctas(&l.plan, M, &ctas, &err), &err);
    assert_true(M * l.plan.parts > 2 * 8 * ctas); /* of 8 warps each */
    set_rows(&l, w, M, M);
    void *y = launch(&l);
    for (uint64_t m = 0; m < M; m++)
        assert_row(&l, y, m, w + m * l.row_bytes);
    free(y);
    free(w);
    close_launch(&l);
    device_close(&device);
}

static void rows_beyond_4_gigabytes_are_read(void **state)
{
    enum { K = 1 << 16, M = 2 };
    struct device device = open_device("cpu:sm_80");
    const ptxgen_gguf_rows_spec spec = {.k = K, .w_type = PTXGEN_GGUF_Q8_0, .indexed = 1};
    struct launch l = open_launch(&device, &spec, 0);
    const int32_t last = (int32_t)((UINT64_C(1) << 32) / l.row_bytes + 2);
    const int32_t ids[M] = {last, 1};
    unsigned char *w = malloc(M * l.row_bytes);
    struct random r = random_start(1);
    (void)state;
    assert_non_null(w);
    random_fill(&r, w, M * l.row_bytes);
    set_rows(&l, NULL, (uint64_t)last + 1, M);
    l.args.ids = allocate(&device, ids, sizeof ids);
    for (int m = 0; m < M; m++)
        device.driver.memcpy_htod(l.args.w + (uint64_t)ids[m] * l.row_bytes,
                                  w + (size_t)m * l.row_bytes, l.row_bytes);
    void *y = launch(&l);
    for (uint64_t m = 0; m < M; m++)
        assert_row(&l, y, m, w + m * l.row_bytes);
    free(y);
    free(w);
    close_launch(&l);
    device_close(&device);
}

/* As a number of 32 bits without a sign, the id would be that of a row. */
static void a_negative_id_is_none_of_more_than_2_31_rows(void **state)
{
    struct device device = open_device("cpu:sm_80");
    const ptxgen_gguf_rows_spec spec = {.k = 1, .w_type = PTXGEN_GGUF_F16, .indexed = 1};
    const int32_t id = INT32_MIN;
    struct launch l = open_launch(&device, &spec, 0);
    (void)state;
    set_rows(&l, NULL, (UINT64_C(1) << 31) + 1, 1);
    l.args.ids = allocate(&device, &id, sizeof id);
    void *y = launch(&l);
    assert_row(&l, y, 0, NULL);
    free(y);
    close_launch(&l);
    device_close(&device);
}

static void more_rows_than_memory_has_are_refused(void **state)
{
    struct device device = open_device("cpu:sm_80");
    const ptxgen_gguf_rows_spec spec = {.k = 64, .w_type = PTXGEN_GGUF_Q8_0};
    struct launch l = open_launch(&device, &spec, 0);
    ptxgen_error err;
    (void)state;
    set_rows(&l, NULL, 1, 1);
    l.args.n = UINT64_MAX / 68 + 1;
    assert_refusal(ptxgen_gguf_rows_launch(l.kernel, &l.args, NULL, &err), &err,
                   PTXGEN_ERROR_UNSUPPORTED,
                   "gguf_rows: n = 271275648142787524 rows of 68 bytes are more than memory has");
    close_launch(&l);
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_the_bits_of_the_hosts_decoder),
        cmocka_unit_test(rows_at_any_address_are_right),
        cmocka_unit_test(random_problems_are_right),
        cmocka_unit_test(rows_that_w_does_not_have_are_nans),
        cmocka_unit_test(a_matrix_of_no_rows_and_rows_far_behind_it_are_nans),
        cmocka_unit_test(a_warp_decodes_one_part_after_the_other),
        cmocka_unit_test(rows_beyond_4_gigabytes_are_read),
        cmocka_unit_test(a_negative_id_is_none_of_more_than_2_31_rows),
        cmocka_unit_test(more_rows_than_memory_has_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
