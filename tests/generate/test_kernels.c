/* SPDX-License-Identifier: Apache-2.0 */
/* Each kernel of the example alone, against the formula of its header in double precision. */
#include "bed.h"

#include "examples/generate/attention.h"
#include "examples/generate/greedy.h"
#include "examples/generate/prefill.h"
#include "examples/generate/rope.h"

#include <string.h>

static const char *const devices[] = {"cpu:sm_80", "cpu:sm_90"};

static void assert_near(double got, double right, double tolerance, const char *what, size_t i)
{
    if (!(fabs(got - right) <= tolerance))
        fail_msg("%s[%zu] is %.9g, not %.9g within %.2g", what, i, got, right, tolerance);
}

/* ---- rope ---- */

struct rope_case {
    struct rope_spec spec;
    double base;
    bool has_factors;
};

static const struct rope_case rope_cases[] = {
    {{4, 1, 64, 1e-6f, PTXGEN_F32, PTXGEN_F32, 1, 0}, 1e4, false},
    {{6, 2, 128, 0, PTXGEN_F16, PTXGEN_F16, 0, 1}, 5e5, true},
    {{2, 1, 256, 1e-5f, PTXGEN_BF16, PTXGEN_BF16, 1, 0}, 1e6, false},
    {{1, 1, 64, 1e-5f, PTXGEN_F16, PTXGEN_F32, 1, 1}, 1e4, true},
};

enum { ROPE_TOKENS = 3, ROPE_SLOTS = 2, ROPE_CONTEXT = 100001 };
static const int32_t rope_positions[ROPE_TOKENS] = {0, 7, 100000};
static const int32_t rope_slots[ROPE_TOKENS] = {0, 1, 1};

/* The head of D elements at x, normalised and rotated. */
static void rope_reference(const struct rope_case *c, const struct array *x, size_t first,
                           const struct array *gain, const float *factors, int position, double *y)
{
    const uint32_t D = c->spec.head_size;
    double squares = 0;
    for (uint32_t i = 0; i < D; i++)
        squares += array_at(x, first + i) * array_at(x, first + i);
    for (uint32_t i = 0; i < D; i++) {
        y[i] = array_at(x, first + i);
        if (c->spec.has_norm)
            y[i] *= array_at(gain, i) / sqrt(squares / D + (double)c->spec.epsilon);
    }
    for (uint32_t i = 0; i < D / 2; i++) {
        double angle = position * pow(c->base, -2.0 * i / D) / (factors ? (double)factors[i] : 1);
        uint32_t a = c->spec.interleaved ? 2 * i : i, b = c->spec.interleaved ? a + 1 : i + D / 2;
        double u = y[a], v = y[b];
        y[a] = u * cos(angle) - v * sin(angle);
        y[b] = u * sin(angle) + v * cos(angle);
    }
}

struct rope_data {
    struct array q, k, v, q_norm, k_norm, rotated, keys, values;
    float factors[128];
};

static void check_cache(const struct bed *bed, const struct array *cache, size_t first,
                        const double *right, uint32_t count, const char *what)
{
    array_fetch(bed, cache, first, count);
    for (uint32_t i = 0; i < count; i++)
        assert_near(array_at(cache, first + i), right[i],
                    4e-6 + fabs(right[i]) * rounding_of(cache->type), what, first + i);
}

static void check_rope(const struct bed *bed, const struct rope_case *c, const struct rope_data *d)
{
    const struct rope_spec *s = &c->spec;
    const uint32_t D = s->head_size;
    const float *factors = c->has_factors ? d->factors : NULL;
    double right[256];
    array_fetch(bed, &d->rotated, 0, d->rotated.count);
    for (uint32_t t = 0; t < ROPE_TOKENS; t++) {
        for (uint32_t h = 0; h < s->heads; h++) {
            size_t first = (t * s->heads + h) * D;
            rope_reference(c, &d->q, first, &d->q_norm, factors, rope_positions[t], right);
            for (uint32_t i = 0; i < D; i++)
                assert_near(array_at(&d->rotated, first + i), right[i], 4e-6, "q", first + i);
        }
        for (uint32_t h = 0; h < s->kv_heads; h++) {
            size_t first = (t * s->kv_heads + h) * D;
            size_t row = ((size_t)rope_slots[t] * s->kv_heads + h) * ROPE_CONTEXT;
            size_t place = (row + (size_t)rope_positions[t]) * D;
            rope_reference(c, &d->k, first, &d->k_norm, factors, rope_positions[t], right);
            check_cache(bed, &d->keys, place, right, D, "key");
            for (uint32_t i = 0; i < D; i++)
                right[i] = array_at(&d->v, first + i);
            check_cache(bed, &d->values, place, right, D, "value");
        }
    }
}

static void rotates(struct bed *bed, const struct rope_case *c)
{
    const struct rope_spec *s = &c->spec;
    const size_t D = s->head_size, queries = ROPE_TOKENS * s->heads * D;
    const size_t pairs = ROPE_TOKENS * s->kv_heads * D;
    const size_t cache = (size_t)ROPE_SLOTS * s->kv_heads * ROPE_CONTEXT * D;
    struct random r = {D};
    struct rope_data d = {.q = array_random(bed, &r, s->type, queries, 0.3),
                          .k = array_random(bed, &r, s->type, pairs, 0.3),
                          .v = array_random(bed, &r, s->type, pairs, 1),
                          .q_norm = array_random(bed, &r, PTXGEN_F32, D, 0.5),
                          .k_norm = array_random(bed, &r, PTXGEN_F32, D, 0.5),
                          .rotated = array_unwritten(bed, PTXGEN_F32, queries),
                          .keys = array_unwritten(bed, s->cache_type, cache),
                          .values = array_unwritten(bed, s->cache_type, cache)};
    for (size_t i = 0; i < D / 2; i++)
        d.factors[i] = i < D / 4 ? 1 : 8;
    uint64_t turns[128];
    rope_turns(c->base, c->has_factors ? d.factors : NULL, s->head_size, turns);
    struct rope_args args = {.m = ROPE_TOKENS,
                             .q = d.q.device,
                             .k = d.k.device,
                             .v = d.v.device,
                             .q_norm = d.q_norm.device,
                             .k_norm = d.k_norm.device,
                             .turns = bed_upload(bed, turns, D / 2 * sizeof *turns),
                             .positions = bed_upload(bed, rope_positions, sizeof rope_positions),
                             .slots = bed_upload(bed, rope_slots, sizeof rope_slots),
                             .rotated = d.rotated.device,
                             .keys = d.keys.device,
                             .values = d.values.device,
                             .context = ROPE_CONTEXT};
    ptxgen_error err;
    assert_ok(rope_launch(bed_load(bed, rope_family(), s), &args, NULL, &err), &err);
    bed_synchronise(bed);
    check_rope(bed, c, &d);
    struct array *arrays[] = {&d.q,      &d.k,       &d.v,    &d.q_norm,
                              &d.k_norm, &d.rotated, &d.keys, &d.values};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        array_free(arrays[i]);
}

static void rope_is_the_formula(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rope_cases / sizeof *rope_cases; i++) {
        struct bed bed;
        bed_open(&bed, devices[i % 2]);
        rotates(&bed, &rope_cases[i]);
        bed_close(&bed);
    }
}

/* ---- attention ---- */

struct attention_case {
    struct attention_spec spec;
    uint32_t splits;
};

static const struct attention_case attention_cases[] = {
    {{.heads = 4,
      .kv_heads = 1,
      .head_size = 64,
      .window = 16,
      .scale = 0.125f,
      .type = PTXGEN_F32,
      .cache_type = PTXGEN_F32},
     1},
    {{.heads = 4,
      .kv_heads = 2,
      .head_size = 64,
      .window = 0,
      .scale = 0.125f,
      .type = PTXGEN_F16,
      .cache_type = PTXGEN_F32},
     5},
    {{.heads = 8,
      .kv_heads = 2,
      .head_size = 128,
      .window = 0,
      .scale = 0.09f,
      .type = PTXGEN_F16,
      .cache_type = PTXGEN_F16},
     3},
    {{.heads = 2,
      .kv_heads = 2,
      .head_size = 256,
      .window = 133,
      .scale = 0.0625f,
      .type = PTXGEN_BF16,
      .cache_type = PTXGEN_BF16},
     7},
    {{.heads = 12,
      .kv_heads = 1,
      .head_size = 64,
      .window = 0,
      .scale = 0.125f,
      .type = PTXGEN_F32,
      .cache_type = PTXGEN_F16},
     2},
    {{.heads = 8,
      .kv_heads = 1,
      .head_size = 256,
      .window = 200,
      .scale = 0.0625f,
      .type = PTXGEN_F16,
      .cache_type = PTXGEN_F16},
     2},
    {{.heads = 1,
      .kv_heads = 1,
      .head_size = 64,
      .window = 300,
      .scale = 0.125f,
      .type = PTXGEN_F32,
      .cache_type = PTXGEN_BF16},
     2},
    /* Scores so far apart that queries rounded to bf16 would be noticed. */
    {{.heads = 3,
      .kv_heads = 1,
      .head_size = 64,
      .window = 0,
      .scale = 2,
      .type = PTXGEN_F32,
      .cache_type = PTXGEN_BF16},
     32},
};

/* Up to 256 keys are one CTA's. */
enum { TOKENS = 5, SLOTS = 5, CONTEXT = 400 };
static const int32_t positions[TOKENS] = {0, 134, 255, 256, 399}, slots[TOKENS] = {0, 0, 0, 1, 1};

static int first_seen(const struct attention_spec *s, int position)
{
    int window = (int)s->window;
    return window && position + 1 > window ? position + 1 - window : 0;
}

/* Normal numbers, of which the device has those that tokens may see: other reads are faults. */
static void fill_cache(struct random *r, struct array *cache)
{
    for (size_t i = 0; i < cache->count; i++)
        ptxgen_element_store((ptxgen_element)cache->type, cache->host, i, random_normal(r));
}

static void show_cache(const struct bed *bed, const struct attention_spec *s,
                       const struct array *cache, int slot, int first, int count)
{
    const size_t size = s->head_size * ptxgen_element_size((ptxgen_element)cache->type);
    for (uint32_t h = 0; h < s->kv_heads; h++) {
        size_t at = (((size_t)slot * s->kv_heads + h) * CONTEXT + (size_t)first) * size;
        assert_int_equal(bed->driver.memcpy_htod(cache->device + at, (char *)cache->host + at,
                                                 (size_t)count * size),
                         0);
    }
}

static void attention_reference(const struct attention_spec *s, const struct array *q,
                                const struct array *keys, const struct array *values, size_t row,
                                uint32_t kv, int position, int slot, double *y)
{
    const uint32_t D = s->head_size;
    const size_t list = ((size_t)slot * s->kv_heads + kv) * CONTEXT * D;
    double weights = 0;
    memset(y, 0, D * sizeof *y);
    for (int p = first_seen(s, position); p <= position; p++) {
        double score = 0;
        for (uint32_t i = 0; i < D; i++)
            score += array_at(q, row * D + i) * array_at(keys, list + (size_t)p * D + i);
        double weight = exp((double)s->scale * score);
        weights += weight;
        for (uint32_t i = 0; i < D; i++)
            y[i] += weight * array_at(values, list + (size_t)p * D + i);
    }
    for (uint32_t i = 0; i < D; i++)
        y[i] /= weights;
}

struct attention_data {
    struct array q, keys, values, y;
};

static struct attention_data make_data(const struct bed *bed, const struct attention_spec *s,
                                       size_t tokens)
{
    const size_t outputs = tokens * s->heads * s->head_size;
    const size_t cache = (size_t)SLOTS * s->kv_heads * CONTEXT * s->head_size;
    struct random r = {s->head_size + s->heads};
    struct attention_data d = {.q = array_random(bed, &r, PTXGEN_F32, outputs, 2),
                               .keys = array_unwritten(bed, s->cache_type, cache),
                               .values = array_unwritten(bed, s->cache_type, cache),
                               .y = array_unwritten(bed, s->type, outputs)};
    fill_cache(&r, &d.keys);
    fill_cache(&r, &d.values);
    return d;
}

static void free_data(struct attention_data *d)
{
    array_free(&d->q);
    array_free(&d->keys);
    array_free(&d->values);
    array_free(&d->y);
}

/* All heads of token `t`. */
static void check_token(const struct attention_spec *s, const struct attention_data *d, size_t t,
                        int position, int slot, double tolerance)
{
    double right[256];
    for (uint32_t h = 0; h < s->heads; h++) {
        size_t row = t * s->heads + h;
        attention_reference(s, &d->q, &d->keys, &d->values, row, h / (s->heads / s->kv_heads),
                            position, slot, right);
        for (size_t i = 0; i < s->head_size; i++)
            assert_near(array_at(&d->y, row * s->head_size + i), right[i],
                        tolerance + fabs(right[i]) * rounding_of(s->type), "y",
                        row * s->head_size + i);
    }
}

static void attends(struct bed *bed, const struct attention_case *c)
{
    const struct attention_spec *s = &c->spec;
    struct attention_data d = make_data(bed, s, TOKENS);
    for (int t = 0; t < TOKENS; t++) {
        int first = first_seen(s, positions[t]), count = positions[t] + 1 - first;
        show_cache(bed, s, &d.keys, slots[t], first, count);
        show_cache(bed, s, &d.values, slots[t], first, count);
    }
    size_t tickets = (size_t)attention_tickets_bytes(s, TOKENS);
    struct attention_args args = {
        .m = TOKENS,
        .q = d.q.device,
        .keys = d.keys.device,
        .values = d.values.device,
        .positions = bed_upload(bed, positions, sizeof positions),
        .slots = bed_upload(bed, slots, sizeof slots),
        .y = d.y.device,
        .partials = bed_alloc(bed, (size_t)attention_partials_bytes(s, TOKENS, c->splits)),
        .tickets = bed_alloc(bed, tickets),
        .context = CONTEXT,
        .splits = c->splits};
    assert_int_equal(bed->driver.memset_d8(args.tickets, 0, tickets), 0);
    ptxgen_loaded *loaded = bed_load(bed, attention_family(), s);
    for (int launch = 0; launch < 2; launch++) { /* the second finds the tickets as they were */
        ptxgen_error err;
        assert_ok(attention_launch(loaded, &args, NULL, &err), &err);
        bed_synchronise(bed);
    }
    array_fetch(bed, &d.y, 0, d.y.count);
    for (size_t t = 0; t < TOKENS; t++)
        check_token(s, &d, t, positions[t], slots[t],
                    s->cache_type == PTXGEN_F32 ? 1e-5 : 2 * rounding_of(s->cache_type));
    free_data(&d);
}

static void attention_is_the_formula(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof attention_cases / sizeof *attention_cases; i++) {
        struct bed bed;
        bed_open(&bed, devices[i % 2]);
        attends(&bed, &attention_cases[i]);
        bed_close(&bed);
    }
}

/* ---- attention that rotates ---- */

static const struct attention_case rotating_cases[] = {
    {{.heads = 4,
      .kv_heads = 1,
      .head_size = 64,
      .window = 16,
      .scale = 0.125f,
      .rotates = 1,
      .has_norm = 1,
      .epsilon = 1e-6f},
     1},
    {{.heads = 8,
      .kv_heads = 2,
      .head_size = 128,
      .scale = 0.09f,
      .type = PTXGEN_F16,
      .cache_type = PTXGEN_F16,
      .rotates = 1,
      .interleaved = 1},
     3},
    {{.heads = 8,
      .kv_heads = 1,
      .head_size = 256,
      .scale = 0.0625f,
      .type = PTXGEN_BF16,
      .cache_type = PTXGEN_BF16,
      .rotates = 1,
      .has_norm = 1,
      .epsilon = 1e-5f},
     4},
    {{.heads = 8,
      .kv_heads = 1,
      .head_size = 128,
      .window = 300,
      .scale = 0.09f,
      .type = PTXGEN_F32,
      .cache_type = PTXGEN_BF16,
      .rotates = 1,
      .has_norm = 1,
      .epsilon = 1e-5f},
     2},
    {{.heads = 2,
      .kv_heads = 2,
      .head_size = 64,
      .scale = 0.125f,
      .type = PTXGEN_F16,
      .cache_type = PTXGEN_F32,
      .rotates = 1,
      .interleaved = 1},
     8},
};

/* Tokens of sequences of their own. */
static const int32_t own_slots[TOKENS] = {0, 1, 2, 3, 4};

struct rotated {
    struct array k, v, q_norm, k_norm;
    struct rope_case rope;
};

/* Puts what the launch makes of q, k and v where the reference looks for it, on the host. */
static void rotate_on_host(const struct attention_spec *s, struct attention_data *d,
                           const struct rotated *r)
{
    const size_t D = s->head_size;
    double head[256];
    for (size_t t = 0; t < TOKENS; t++) {
        for (size_t h = t * s->heads; h < (t + 1) * s->heads; h++) {
            rope_reference(&r->rope, &d->q, h * D, &r->q_norm, NULL, positions[t], head);
            for (size_t i = 0; i < D; i++)
                ((float *)d->q.host)[h * D + i] = (float)head[i];
        }
        for (size_t h = 0; h < s->kv_heads; h++) {
            size_t list = ((size_t)own_slots[t] * s->kv_heads + h) * CONTEXT;
            size_t at = (list + (size_t)positions[t]) * D, from = (t * s->kv_heads + h) * D;
            rope_reference(&r->rope, &r->k, from, &r->k_norm, NULL, positions[t], head);
            for (size_t i = 0; i < D; i++) {
                ptxgen_element type = (ptxgen_element)s->cache_type;
                ptxgen_element_store(type, d->keys.host, at + i, head[i]);
                ptxgen_element_store(type, d->values.host, at + i, array_at(&r->v, from + i));
            }
        }
    }
}

/* The token's own key and value went to the cache. */
static void check_own(const struct bed *bed, const struct attention_spec *s,
                      const struct attention_data *d, size_t t)
{
    const size_t D = s->head_size;
    double right[2][256];
    for (size_t h = 0; h < s->kv_heads; h++) {
        size_t list = ((size_t)own_slots[t] * s->kv_heads + h) * CONTEXT;
        size_t at = (list + (size_t)positions[t]) * D;
        for (size_t i = 0; i < D; i++) {
            right[0][i] = array_at(&d->keys, at + i);
            right[1][i] = array_at(&d->values, at + i);
        }
        check_cache(bed, &d->keys, at, right[0], (uint32_t)D, "own key");
        check_cache(bed, &d->values, at, right[1], (uint32_t)D, "own value");
    }
}

static void attends_and_rotates(struct bed *bed, const struct attention_case *c)
{
    const struct attention_spec *s = &c->spec;
    const size_t pairs = (size_t)TOKENS * s->kv_heads * s->head_size;
    struct random random = {7};
    struct attention_data d = make_data(bed, s, TOKENS);
    struct rotated r = {.k = array_random(bed, &random, PTXGEN_F32, pairs, 1),
                        .v = array_random(bed, &random, PTXGEN_F32, pairs, 1),
                        .q_norm = array_random(bed, &random, PTXGEN_F32, s->head_size, 1),
                        .k_norm = array_random(bed, &random, PTXGEN_F32, s->head_size, 1),
                        .rope = {.spec = {.head_size = s->head_size,
                                          .epsilon = s->epsilon,
                                          .has_norm = s->has_norm,
                                          .interleaved = s->interleaved},
                                 .base = 1e4}};
    uint64_t turns[128];
    rope_turns(r.rope.base, NULL, s->head_size, turns);
    for (int t = 0; t < TOKENS; t++) {
        int first = first_seen(s, positions[t]);
        show_cache(bed, s, &d.keys, own_slots[t], first, positions[t] - first);
        show_cache(bed, s, &d.values, own_slots[t], first, positions[t] - first);
    }
    size_t tickets = (size_t)attention_tickets_bytes(s, TOKENS);
    struct attention_args args = {
        .m = TOKENS,
        .q = d.q.device,
        .k = r.k.device,
        .v = r.v.device,
        .q_norm = r.q_norm.device,
        .k_norm = r.k_norm.device,
        .turns = bed_upload(bed, turns, s->head_size / 2 * sizeof *turns),
        .keys = d.keys.device,
        .values = d.values.device,
        .positions = bed_upload(bed, positions, sizeof positions),
        .slots = bed_upload(bed, own_slots, sizeof own_slots),
        .y = d.y.device,
        .partials = bed_alloc(bed, (size_t)attention_partials_bytes(s, TOKENS, c->splits)),
        .tickets = bed_alloc(bed, tickets),
        .context = CONTEXT,
        .splits = c->splits};
    assert_int_equal(bed->driver.memset_d8(args.tickets, 0, tickets), 0);
    ptxgen_error err;
    assert_ok(attention_launch(bed_load(bed, attention_family(), s), &args, NULL, &err), &err);
    bed_synchronise(bed);
    array_fetch(bed, &d.y, 0, d.y.count);
    rotate_on_host(s, &d, &r);
    for (size_t t = 0; t < TOKENS; t++) {
        check_token(s, &d, t, positions[t], own_slots[t],
                    s->cache_type == PTXGEN_F32 ? 1e-4 : 2 * rounding_of(s->cache_type));
        check_own(bed, s, &d, t);
    }
    array_free(&r.k);
    array_free(&r.v);
    array_free(&r.q_norm);
    array_free(&r.k_norm);
    free_data(&d);
}

static void attention_that_rotates_is_rope_and_attention(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rotating_cases / sizeof *rotating_cases; i++) {
        struct bed bed;
        bed_open(&bed, devices[i % 2]);
        attends_and_rotates(&bed, &rotating_cases[i]);
        bed_close(&bed);
    }
}

/* ---- prefill ---- */

static const struct attention_spec prefill_cases[] = {
    {.heads = 4,
     .kv_heads = 2,
     .head_size = 64,
     .window = 0,
     .scale = 0.125f,
     .type = PTXGEN_F16,
     .cache_type = PTXGEN_F16},
    {.heads = 2,
     .kv_heads = 2,
     .head_size = 128,
     .window = 50,
     .scale = 0.09f,
     .type = PTXGEN_BF16,
     .cache_type = PTXGEN_BF16},
    {.heads = 2,
     .kv_heads = 1,
     .head_size = 256,
     .window = 33,
     .scale = 0.0625f,
     .type = PTXGEN_F32,
     .cache_type = PTXGEN_F16},
};

/* Two blocks of tokens, the second of which is not full, after some that were there. */
static void prefills(struct bed *bed, const struct attention_spec *s)
{
    enum { START = 41, PREFILLED = 70, SLOT = 1 };
    const int32_t start = START, slot = SLOT;
    struct attention_data d = make_data(bed, s, PREFILLED);
    int first = first_seen(s, START), count = START + PREFILLED - first;
    show_cache(bed, s, &d.keys, SLOT, first, count);
    show_cache(bed, s, &d.values, SLOT, first, count);
    struct attention_args args = {.m = PREFILLED,
                                  .q = d.q.device,
                                  .keys = d.keys.device,
                                  .values = d.values.device,
                                  .positions = bed_upload(bed, &start, sizeof start),
                                  .slots = bed_upload(bed, &slot, sizeof slot),
                                  .y = d.y.device,
                                  .context = CONTEXT};
    ptxgen_error err;
    assert_ok(prefill_launch(bed_load(bed, prefill_family(), s), &args, NULL, &err), &err);
    bed_synchronise(bed);
    array_fetch(bed, &d.y, 0, d.y.count);
    for (size_t t = 0; t < PREFILLED; t++)
        check_token(s, &d, t, START + (int)t, SLOT, 6 * rounding_of(s->cache_type));
    free_data(&d);
}

static void prefill_is_the_formula(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof prefill_cases / sizeof *prefill_cases; i++) {
        struct bed bed;
        bed_open(&bed, devices[i % 2]);
        prefills(&bed, &prefill_cases[i]);
        bed_close(&bed);
    }
}

static void other_sizes_are_refused(void **state)
{
    (void)state;
    struct bed bed;
    bed_open(&bed, "cpu:sm_80");
    const struct rope_spec rope = {.heads = 1, .kv_heads = 1, .head_size = 96};
    const struct attention_spec attention = {.heads = 1, .kv_heads = 1, .head_size = 96};
    const struct attention_spec uneven = {.heads = 3, .kv_heads = 2, .head_size = 64};
    const struct attention_spec wide = {
        .heads = 1, .kv_heads = 1, .head_size = 64, .cache_type = PTXGEN_F32};
    const struct attention_spec none = {.heads = 0, .kv_heads = 1, .head_size = 64};
    const struct attention_spec f64 = {
        .heads = 1, .kv_heads = 1, .head_size = 64, .type = PTXGEN_F64};
    const struct attention_spec f64_cache = {
        .heads = 1, .kv_heads = 1, .head_size = 64, .cache_type = PTXGEN_F64};
    const struct greedy_spec empty = {0};
    ptxgen_loaded *loaded;
    ptxgen_error err;
    assert_refusal(ptxgen_dispatch(bed.dispatcher, greedy_family(), &empty, &loaded, &err), &err,
                   PTXGEN_ERROR_UNSUPPORTED, "greedy: the vocabulary has no tokens");
    assert_refusal(ptxgen_dispatch(bed.dispatcher, rope_family(), &rope, &loaded, &err), &err,
                   PTXGEN_ERROR_UNSUPPORTED,
                   "rope: heads of 96 elements; 64, 128 and 256 are supported");
    assert_refusal(ptxgen_dispatch(bed.dispatcher, attention_family(), &attention, &loaded, &err),
                   &err, PTXGEN_ERROR_UNSUPPORTED,
                   "attention: heads of 96 elements; 64, 128 and 256 are supported");
    assert_refusal(ptxgen_dispatch(bed.dispatcher, attention_family(), &uneven, &loaded, &err),
                   &err, PTXGEN_ERROR_UNSUPPORTED,
                   "attention: 3 heads cannot share 2 kv heads evenly");
    assert_refusal(ptxgen_dispatch(bed.dispatcher, attention_family(), &none, &loaded, &err), &err,
                   PTXGEN_ERROR_UNSUPPORTED, "attention: 0 heads cannot share 1 kv heads evenly");
    assert_refusal(ptxgen_dispatch(bed.dispatcher, attention_family(), &f64, &loaded, &err), &err,
                   PTXGEN_ERROR_UNSUPPORTED,
                   "attention: y of element type 3 and a cache of 0; f32 (0), f16 (1) and bf16 (2) "
                   "are supported");
    assert_refusal(ptxgen_dispatch(bed.dispatcher, attention_family(), &f64_cache, &loaded, &err),
                   &err, PTXGEN_ERROR_UNSUPPORTED,
                   "attention: y of element type 0 and a cache of 3; f32 (0), f16 (1) and bf16 (2) "
                   "are supported");
    assert_refusal(ptxgen_dispatch(bed.dispatcher, prefill_family(), &wide, &loaded, &err), &err,
                   PTXGEN_ERROR_UNSUPPORTED,
                   "prefill: the cache is f32; f16 and bf16 are supported");
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rope_is_the_formula),
        cmocka_unit_test(attention_is_the_formula),
        cmocka_unit_test(attention_that_rotates_is_rope_and_attention),
        cmocka_unit_test(prefill_is_the_formula),
        cmocka_unit_test(other_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
