/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loaded kernel of any family with the arguments of a launch, whose arrays are a list: what a
 * launch must refuse is asserted of each of them. The lists of matrix products are the harness's.
 * Addresses are made up, and no launch gets as far as reading them.
 */
#ifndef PTXGEN_TESTS_LAUNCH_SUBJECTS_H
#define PTXGEN_TESTS_LAUNCH_SUBJECTS_H

#include "tests/launches.h"

#include "src/harness/harness.h"

#include <ptxgen/dense.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/marlin.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/quantise.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <stdio.h>
#include <stdlib.h>

enum {
    K = 256,
    N = 64,
    X_GAP =
        4, /* elements behind rows of x, which is then aligned in a workspace where it must be */
    MOST_ARRAYS = 16,
    HOME = 0x1000000 /* from one array to the next */
};

enum array_use {
    ARRAY_READ,
    ARRAY_IN_PLACE, /* read, and may be what is written */
    ARRAY_WRITTEN
};

struct array {
    const char *name;
    size_t address, size; /* offsets in the arguments, of the bytes that are there too */
    size_t stride;        /* likewise; 0: none */
    uint64_t rows, columns;
    unsigned element, align;
    uint64_t bytes;
    enum array_use use;
    bool is_workspace;
};

struct launched {
    const char *family;
    const void *kernel;
    void *args;
    ptxgen_status (*launch)(const void *kernel, const void *args, ptxgen_cu_stream stream,
                            ptxgen_error *err);
    unsigned count;
    struct array arrays[MOST_ARRAYS];
};

static inline uint64_t *word_at(const struct launched *l, size_t offset)
{
    return (uint64_t *)(void *)((char *)l->args + offset);
}

static inline void assert_launches(const struct launched *l, const char *what)
{
    ptxgen_error err = {0};
    if (l->launch(l->kernel, l->args, NULL, &err) != PTXGEN_OK)
        fail_msg("%s: %s: %s", l->family, what, err.message);
}

/* With this sentence, to the letter. */
__attribute__((format(printf, 3, 4))) static inline void
assert_launch_refused(const struct launched *l, ptxgen_status status, const char *format, ...)
{
    char sentence[PTXGEN_MESSAGE_SIZE];
    ptxgen_error err = {0};
    va_list values;
    va_start(values, format);
    vsnprintf(sentence, sizeof sentence, format, values);
    va_end(values);
    assert_refusal(l->launch(l->kernel, l->args, NULL, &err), &err, status, sentence);
}

/* Gives the array's rows another stride, in elements; 0: their own length. */
static inline void set_stride(const struct launched *l, struct array *a, uint64_t stride)
{
    *word_at(l, a->stride) = stride;
    a->bytes = ((a->rows - 1) * (stride ? stride : a->columns) + a->columns) * a->element;
}

static inline uint64_t stride_of(const struct launched *l, const struct array *a)
{
    uint64_t stride = a->stride ? *word_at(l, a->stride) : 0;
    return stride ? stride : a->columns;
}

static inline void place_apart(const struct launched *l)
{
    for (unsigned i = 0; i < l->count; i++)
        *word_at(l, l->arrays[i].address) = (i + 1) * (uint64_t)HOME;
}

/* ---- matrix products ---- */

/* A spec with all that it can have, so that every array is used. */
struct subject {
    const struct harness *harness;
    const void *spec;
    const char *target;
    int m, most_m;
    unsigned workspace_align; /* 0: there is none */
    bool copies_x;            /* rows of x that are not aligned are copied to the workspace */
    bool is_narrow;           /* strides are below 2^32 */
};

static const struct subject subjects[] = {
    {&dense_harness,
     &(const ptxgen_dense_spec){
         .n = N, .k = K, .max_m = 40, .type = PTXGEN_F16, .bias = 1, .residual = 1},
     "sm_90", 2, 40, 16, true, false},
    {&marlin_harness,
     &(const ptxgen_marlin_spec){
         .k = K, .n = N, .max_m = 40, .group_size = 64, .type = PTXGEN_F16, .residual = 1},
     "sm_90", 2, 40, 16, true, false},
    {&marlin_harness,
     &(const ptxgen_marlin_spec){.k = K,
                                 .n = N,
                                 .max_m = 40,
                                 .group_size = 64,
                                 .type = PTXGEN_F16,
                                 .zeros = 1,
                                 .act_order = 1,
                                 .bias = 1,
                                 .residual = 1},
     "sm_90", 2, 40, 16, false, false},
    {&marlin_harness,
     &(const ptxgen_marlin_spec){.k = K,
                                 .n = N,
                                 .max_m = 40,
                                 .group_size = PTXGEN_W4_PER_CHANNEL,
                                 .type = PTXGEN_BF16,
                                 .epilogue = PTXGEN_EPILOGUE_SWIGLU,
                                 .bias = 1},
     "sm_80", 2, 40, 16, true, false},
    {&sparse24_harness,
     &(const ptxgen_sparse24_spec){.n = N,
                                   .k = K,
                                   .max_m = 40,
                                   .type = PTXGEN_SPARSE24_F16,
                                   .y_type = PTXGEN_F16,
                                   .bias = 1,
                                   .residual = 1},
     "sm_90", 2, 40, 16, true, false},
    {&sparse24_harness,
     &(const ptxgen_sparse24_spec){.n = N,
                                   .k = K,
                                   .max_m = 40,
                                   .type = PTXGEN_SPARSE24_F16,
                                   .y_type = PTXGEN_F16,
                                   .bias = 1,
                                   .residual = 1,
                                   .tier = 1},
     "sm_90", 2, 40, 16, true, false},
    {&sparse24_harness,
     &(const ptxgen_sparse24_spec){.n = N,
                                   .k = K,
                                   .max_m = 40,
                                   .type = PTXGEN_SPARSE24_S8,
                                   .y_type = PTXGEN_F16,
                                   .bias = 1,
                                   .residual = 1},
     "sm_90", 2, 40, 16, true, false},
    {&sparse24_harness,
     &(const ptxgen_sparse24_spec){.n = N,
                                   .k = K,
                                   .max_m = 40,
                                   .type = PTXGEN_SPARSE24_F16,
                                   .y_type = PTXGEN_F16,
                                   .bias = 1,
                                   .plain = 1},
     "sm_80", 2, 40, 16, true, false},
    {&sparse24_harness,
     &(const ptxgen_sparse24_spec){.n = N,
                                   .k = K,
                                   .max_m = 40,
                                   .type = PTXGEN_SPARSE24_F16,
                                   .y_type = PTXGEN_F16,
                                   .bias = 1,
                                   .tier = 1,
                                   .plain = 1},
     "sm_80", 2, 40, 16, true, false},
    {&w8a8_harness,
     &(const ptxgen_w8a8_spec){.k = K,
                               .n = N,
                               .max_m = 40,
                               .w_stride = K + 16,
                               .x_type = PTXGEN_F16,
                               .y_type = PTXGEN_F16,
                               .scales = PTXGEN_W8A8_TENSOR,
                               .asymmetric = 1,
                               .bias = 1},
     "sm_90", 12, 40, 256, false, true},
    {&w8a8_harness,
     &(const ptxgen_w8a8_spec){.k = K,
                               .n = N,
                               .max_m = 40,
                               .w_stride = K + 16,
                               .x_type = PTXGEN_F16,
                               .y_type = PTXGEN_F32,
                               .scales = PTXGEN_W8A8_TOKEN,
                               .asymmetric = 1,
                               .bias = 1,
                               .residual = 1},
     "sm_90", 12, 40, 256, false, true},
    {&w8a8_harness,
     &(const ptxgen_w8a8_spec){.k = K,
                               .n = N,
                               .max_m = 40,
                               .w_stride = K + 16,
                               .y_type = PTXGEN_F32,
                               .scales = PTXGEN_W8A8_QUANTISED,
                               .asymmetric = 1},
     "sm_90", 12, 40, 256, true, true},
    {&w8a8_harness,
     &(const ptxgen_w8a8_spec){.k = K,
                               .n = N,
                               .max_m = 40,
                               .w_stride = K + 16,
                               .y_type = PTXGEN_F32,
                               .scales = PTXGEN_W8A8_QUANTISED,
                               .codes = PTXGEN_W8A8_E4M3,
                               .group = PTXGEN_W8A8_GROUP},
     "sm_90", 12, 40, 256, true, true},
    {&rmsnorm_q4k_harness,
     &(const ptxgen_rmsnorm_q4k_spec){.k = K,
                                      .n = {N, 8},
                                      .epsilon = 1e-5f,
                                      .max_m = 4,
                                      .x_type = PTXGEN_F16,
                                      .y_type = PTXGEN_F16,
                                      .bias = 1,
                                      .residual = 1,
                                      .residual_out = 1},
     "sm_90", 2, 4, 0, false, true},
    {&gguf_linear_harness,
     &(const ptxgen_gguf_linear_spec){.k = K,
                                      .n = {N, 8},
                                      .epsilon = 1e-5f,
                                      .max_m = 4,
                                      .w_type = {PTXGEN_GGUF_Q6_K, PTXGEN_GGUF_Q8_0},
                                      .x_type = PTXGEN_F16,
                                      .y_type = PTXGEN_F16,
                                      .norm = 1,
                                      .residual = PTXGEN_GGUF_LINEAR_AFTER,
                                      .residual_out = 1,
                                      .bias = 1},
     "sm_90", 2, 4, 16, false, true},
    {&quantise_harness,
     &(const ptxgen_quantise_spec){.k = K,
                                   .epsilon = 1e-5f,
                                   .x_type = PTXGEN_F16,
                                   .group = PTXGEN_QUANTISE_GROUP,
                                   .asymmetric = 1,
                                   .producer = PTXGEN_QUANTISE_RMSNORM,
                                   .residual = 1},
     "sm_90", 2, INT32_MAX, 0, false, true},
    {&gguf_rows_harness,
     &(const ptxgen_gguf_rows_spec){
         .k = K, .w_type = PTXGEN_GGUF_Q4_K, .y_type = PTXGEN_F16, .indexed = 1},
     "sm_90", 2, INT32_MAX, 0, false, false},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

struct bench {
    const struct subject *of;
    struct kernel_args args;
    void *plan, *kernel;
    struct launched launched;
};

static inline struct array array_of(const struct operand *o)
{
    struct array a = {.name = o->name,
                      .address = o->address,
                      .size = o->bytes,
                      .stride = o->stride,
                      .rows = o->rows,
                      .columns = o->columns,
                      .element = (unsigned)typed_bytes(o->type),
                      .align = o->shift ? (unsigned)o->shift : 16,
                      .use = o->role == OPERAND_OUTPUT     ? ARRAY_WRITTEN
                             : o->role == OPERAND_RESIDUAL ? ARRAY_IN_PLACE
                                                           : ARRAY_READ};
    uint64_t pitch = o->pitch ? o->pitch : o->columns;
    a.bytes = ((o->rows - 1) * pitch + o->columns) * a.element;
    return a;
}

static inline uint64_t workspace_of(const struct bench *p)
{
    uint64_t bytes = 0;
    ptxgen_error err = {0};
    assert_ok(p->of->harness->verbs->workspace_bytes(p->kernel, &p->args, &bytes, &err), &err);
    return bytes;
}

static inline void list_arrays(struct bench *p)
{
    const struct harness *h = p->of->harness;
    struct launched *l = &p->launched;
    struct operand operands[MOST_OPERANDS];
    unsigned count = h->operands(p->plan, (uint64_t)p->of->m, operands);
    for (unsigned i = 0; i < count; i++) {
        if (!operands[i].used)
            continue;
        struct array *a = &l->arrays[l->count++];
        *a = array_of(&operands[i]);
        if (operands[i].role == OPERAND_X && a->stride)
            set_stride(l, a, K + X_GAP);
    }
    place_apart(l);
    uint64_t workspace = workspace_of(p);
    assert_int_equal(workspace > 0, p->of->workspace_align > 0);
    if (!workspace)
        return;
    l->arrays[l->count++] = (struct array){.name = "workspace",
                                           .address = h->workspace,
                                           .size = h->workspace_bytes,
                                           .rows = 1,
                                           .columns = workspace,
                                           .element = 1,
                                           .align = p->of->workspace_align,
                                           .bytes = workspace,
                                           .use = ARRAY_WRITTEN,
                                           .is_workspace = true};
    *word_at(l, h->workspace_bytes) = workspace;
    place_apart(l);
}

/* `p` stays where it is: its list points into it. */
static inline void bench_load(struct bench *p, const struct subject *of,
                              const ptxgen_driver *driver)
{
    const struct harness *h = of->harness;
    const ptxgen_target target = target_of(of->target);
    ptxgen_error err = {0};
    *p = (struct bench){.of = of, .plan = calloc(1, h->family()->plan_bytes)};
    assert_non_null(p->plan);
    assert_ok(h->family()->make_plan(of->spec, &target, p->plan, &err), &err);
    assert_ok(h->verbs->load(driver, p->plan, &p->kernel, &err), &err);
    p->launched = (struct launched){.family = h->family()->name,
                                    .kernel = p->kernel,
                                    .args = &p->args,
                                    .launch = h->verbs->launch};
    harness_set_m(h, p->plan, (uint64_t)of->m, &p->args);
    list_arrays(p);
}

static inline void bench_free(struct bench *p)
{
    p->of->harness->verbs->destroy(p->kernel);
    free(p->plan);
}

#endif
