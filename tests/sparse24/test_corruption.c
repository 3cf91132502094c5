/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata and sizes that lie: refused or harmless. Arrays are of exact size, for the sanitizers.
 */
#include "tests/status.h"

#include <ptxgen/sparse24.h>

#include "golden.h"
#include "tests/random.h"

#include <stdio.h>

enum { CORRUPTIONS = 10000 };

static uint64_t below(struct random *r, uint64_t limit)
{
    return random_bits(r) % limit;
}

/* One to four bytes changed: a bit flipped, or the byte replaced. */
static void corrupt(struct random *r, uint8_t *bytes, size_t size)
{
    for (uint64_t n = 1 + below(r, 4); n > 0; n--) {
        uint8_t *at = &bytes[below(r, size)];
        *at = (uint8_t)(below(r, 2) ? *at ^ 1u << below(r, 8) : below(r, 256));
    }
}

static unsigned popcount4(unsigned bits)
{
    return (bits & 1) + (bits >> 1 & 1) + (bits >> 2 & 1) + (bits >> 3 & 1);
}

/* The rule told again, over whole bytes of any form: every nibble is a group. */
static bool is_sound(ptxgen_sparse24_form form, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (form == PTXGEN_SPARSE24_BYTES && bytes[i] > 0xF)
            return false;
        for (unsigned shift = 0; shift < (form == PTXGEN_SPARSE24_BYTES ? 4 : 8); shift += 4) {
            unsigned nibble = bytes[i] >> shift & 0xF;
            if (form == PTXGEN_SPARSE24_BITMASK ? popcount4(nibble) != 2
                                                : (nibble & 3) == nibble >> 2)
                return false;
        }
    }
    return true;
}

/* Everything that reads metadata agrees with the rule; what passes comes back unchanged. */
static bool check_corrupted(const struct golden_weight *w, ptxgen_sparse24_form form,
                            ptxgen_const_span metadata)
{
    bool sound = is_sound(form, metadata.data, metadata.bytes);
    ptxgen_error err;
    ptxgen_status expected = sound ? PTXGEN_OK : PTXGEN_ERROR_MALFORMED;
    assert_int_equal(ptxgen_sparse24_validate(&w->shape, w->values, form, metadata, &err),
                     expected);
    if (!sound) {
        assert_says(&err, "row ");
        assert_says(&err, "group ");
    }
    ptxgen_span dense = span_of(w->dense.bytes), other = metadata_span(&w->shape, 0);
    assert_int_equal(ptxgen_sparse24_decompress(&w->shape, w->values, form, metadata, dense, NULL),
                     expected);
    assert_int_equal(ptxgen_sparse24_convert(&w->shape, form, metadata, 0, other, NULL), expected);
    if (sound) {
        ptxgen_span back = metadata_span(&w->shape, form);
        assert_int_equal(ptxgen_sparse24_convert(&w->shape, 0, read_only(other), form, back, NULL),
                         PTXGEN_OK);
        assert_memory_equal(back.data, metadata.data, back.bytes);
        free(back.data);
    }
    free(dense.data);
    free(other.data);
    return sound;
}

static void ten_thousand_corruptions_are_refused_or_harmless(void **state)
{
    (void)state;
    struct random r = {24};
    ptxgen_files *store = golden_open();
    unsigned harmless = 0;
    for (int i = 0; i < CORRUPTIONS; i++) {
        struct golden_weight w = golden_weight(store, i % GOLDEN_WEIGHTS);
        ptxgen_sparse24_form form = i / GOLDEN_WEIGHTS % 4;
        ptxgen_span metadata = metadata_span(&w.shape, form);
        assert_int_equal(ptxgen_sparse24_convert(&w.shape, PTXGEN_SPARSE24_CUTLASS, w.cutlass, form,
                                                 metadata, NULL),
                         PTXGEN_OK);
        corrupt(&r, metadata.data, metadata.bytes);
        harmless += check_corrupted(&w, form, read_only(metadata));
        free(metadata.data);
    }
    assert_in_range(harmless, 100, CORRUPTIONS - 5000); /* both outcomes were met */
    ptxgen_files_close(store);
}

/* A tensor of another shape: one row, one column group or one byte more or less. */
static void an_array_of_another_size_is_refused_before_it_is_read(void **state)
{
    (void)state;
    ptxgen_error err;
    ptxgen_files *store = golden_open();
    struct golden_weight w = golden_weight(store, 0);
    ptxgen_span dense = span_of(w.dense.bytes), values = span_of(w.values.bytes);
    for (int form = 0; form <= PTXGEN_SPARSE24_CUTLASS; form++) {
        ptxgen_span metadata = metadata_span(&w.shape, form);
        for (int delta = -1; delta <= 1; delta += 2) {
            ptxgen_span wrong = {metadata.data, metadata.bytes + (size_t)delta};
            ptxgen_span wrong_values = {values.data, values.bytes + (size_t)delta};
            ptxgen_span wrong_dense = {dense.data, dense.bytes + (size_t)delta};
            assert_int_equal(
                ptxgen_sparse24_validate(&w.shape, w.values, form, read_only(wrong), &err),
                PTXGEN_ERROR_INVALID_ARGUMENT);
            assert_says(&err, "its shape takes exactly");
            assert_int_equal(ptxgen_sparse24_validate(&w.shape, read_only(wrong_values), form,
                                                      read_only(metadata), &err),
                             PTXGEN_ERROR_INVALID_ARGUMENT);
            assert_int_equal(ptxgen_sparse24_compress(&w.shape, w.dense, values, form, wrong, &err),
                             PTXGEN_ERROR_INVALID_ARGUMENT);
            assert_int_equal(ptxgen_sparse24_compress(&w.shape, read_only(wrong_dense), values,
                                                      form, metadata, &err),
                             PTXGEN_ERROR_INVALID_ARGUMENT);
            assert_int_equal(ptxgen_sparse24_decompress(&w.shape, w.values, form,
                                                        read_only(metadata), wrong_dense, &err),
                             PTXGEN_ERROR_INVALID_ARGUMENT);
            assert_int_equal(ptxgen_sparse24_convert(&w.shape, PTXGEN_SPARSE24_CUTLASS, w.cutlass,
                                                     form, wrong, &err),
                             PTXGEN_ERROR_INVALID_ARGUMENT);
            assert_int_equal(ptxgen_sparse24_prune(&w.shape, w.dense, wrong_dense, &err),
                             PTXGEN_ERROR_INVALID_ARGUMENT);
        }
        free(metadata.data);
    }
    free(dense.data);
    free(values.data);
    ptxgen_files_close(store);
}

static void refuses_with(ptxgen_sparse24_shape shape, ptxgen_sparse24_form form,
                         ptxgen_status expected, const char *words)
{
    size_t bytes;
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_sparse24_metadata_bytes(&shape, form, &bytes, &err), expected);
    assert_says(&err, words);
}

static void shapes_that_no_form_can_hold_are_refused(void **state)
{
    (void)state;
    const ptxgen_status unsupported = PTXGEN_ERROR_UNSUPPORTED;
    const ptxgen_status invalid = PTXGEN_ERROR_INVALID_ARGUMENT;
    refuses_with((ptxgen_sparse24_shape){PTXGEN_SPARSE24_F16, 1, 12}, PTXGEN_SPARSE24_BYTES,
                 unsupported, "K = 12");
    refuses_with((ptxgen_sparse24_shape){PTXGEN_SPARSE24_F32, 64, 64}, PTXGEN_SPARSE24_CUTLASS,
                 unsupported, "f32");
    refuses_with((ptxgen_sparse24_shape){PTXGEN_SPARSE24_F16, 48, 64}, PTXGEN_SPARSE24_CUTLASS,
                 unsupported, "N = 48");
    refuses_with((ptxgen_sparse24_shape){PTXGEN_SPARSE24_S8, 64, 96}, PTXGEN_SPARSE24_CUTLASS,
                 unsupported, "K = 96");
    refuses_with((ptxgen_sparse24_shape){4, 1, 8}, PTXGEN_SPARSE24_BYTES, invalid, "4 is no");
    refuses_with((ptxgen_sparse24_shape){PTXGEN_SPARSE24_S8, 1, 8}, 4, invalid, "4 is no");
    refuses_with((ptxgen_sparse24_shape){PTXGEN_SPARSE24_F32, SIZE_MAX / 16, 8}, 0, invalid,
                 "too large");
    refuses_with((ptxgen_sparse24_shape){PTXGEN_SPARSE24_F32, 1, SIZE_MAX - 7}, 0, invalid,
                 "too large");
}

/* ---- sizes ---- */

enum { DENSE, VALUES, METADATA, TO, PACKED, SPANS };

/* One of the calls that take spans, of which number `wrong` is a byte too long. */
struct sized {
    const struct golden_weight *w;
    ptxgen_span spans[SPANS];
    ptxgen_error err;
};

static ptxgen_status validate(struct sized *s)
{
    return ptxgen_sparse24_validate(&s->w->shape, read_only(s->spans[VALUES]), 0,
                                    read_only(s->spans[METADATA]), &s->err);
}

static ptxgen_status compress(struct sized *s)
{
    return ptxgen_sparse24_compress(&s->w->shape, read_only(s->spans[DENSE]), s->spans[VALUES], 0,
                                    s->spans[METADATA], &s->err);
}

static ptxgen_status decompress(struct sized *s)
{
    return ptxgen_sparse24_decompress(&s->w->shape, read_only(s->spans[VALUES]), 0,
                                      read_only(s->spans[METADATA]), s->spans[DENSE], &s->err);
}

static ptxgen_status convert(struct sized *s)
{
    return ptxgen_sparse24_convert(&s->w->shape, 0, read_only(s->spans[METADATA]), 0, s->spans[TO],
                                   &s->err);
}

static ptxgen_status prune(struct sized *s)
{
    return ptxgen_sparse24_prune(&s->w->shape, read_only(s->spans[DENSE]), s->spans[PACKED],
                                 &s->err);
}

static ptxgen_sparse24_spec spec_of(const struct sized *s)
{
    return (ptxgen_sparse24_spec){.n = (uint32_t)s->w->shape.n,
                                  .k = (uint32_t)s->w->shape.k,
                                  .type = (uint8_t)s->w->shape.type,
                                  .y_type = (uint8_t)s->w->shape.type};
}

static ptxgen_status pack(struct sized *s)
{
    const ptxgen_sparse24_spec spec = spec_of(s);
    return ptxgen_sparse24_pack(&spec, read_only(s->spans[VALUES]), 0,
                                read_only(s->spans[METADATA]), s->spans[PACKED], &s->err);
}

static void a_span_of_another_size_is_named(void **state)
{
    static const struct {
        ptxgen_status (*call)(struct sized *s);
        int wrong;
        const char *name;
    } rows[] = {
        {validate, VALUES, "values"},
        {validate, METADATA, "byte metadata"},
        {compress, DENSE, "dense"},
        {compress, VALUES, "values"},
        {compress, METADATA, "byte metadata"},
        {decompress, VALUES, "values"},
        {decompress, METADATA, "byte metadata"},
        {decompress, DENSE, "dense"},
        {convert, METADATA, "byte metadata"},
        {convert, TO, "byte metadata"},
        {prune, DENSE, "dense"},
        {prune, PACKED, "pruned"},
        {pack, VALUES, "values"},
        {pack, METADATA, "byte metadata"},
        {pack, PACKED, "packed"},
    };
    ptxgen_files *store = golden_open();
    const struct golden_weight w = golden_weight(store, 0);
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sized s = {.w = &w};
        const ptxgen_sparse24_spec spec = spec_of(&s);
        char wanted[100];
        size_t packed;
        assert_ok(ptxgen_sparse24_packed_bytes(&spec, &packed, &s.err), &s.err);
        s.spans[DENSE] = span_of(w.dense.bytes);
        s.spans[VALUES] = span_of(w.values.bytes);
        s.spans[METADATA] = metadata_span(&w.shape, 0);
        s.spans[TO] = metadata_span(&w.shape, 0);
        s.spans[PACKED] = span_of(rows[i].call == pack ? packed : w.dense.bytes);
        const size_t right = s.spans[rows[i].wrong].bytes++;
        snprintf(wanted, sizeof wanted, "%s has %zu bytes; its shape takes exactly %zu",
                 rows[i].name, right + 1, right);
        assert_int_equal(rows[i].call(&s), PTXGEN_ERROR_INVALID_ARGUMENT);
        assert_string_equal(s.err.message, wanted);
        for (int f = 0; f < SPANS; f++)
            free(s.spans[f].data);
    }
    ptxgen_files_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_of_another_size_is_named),
        cmocka_unit_test(ten_thousand_corruptions_are_refused_or_harmless),
        cmocka_unit_test(an_array_of_another_size_is_refused_before_it_is_read),
        cmocka_unit_test(shapes_that_no_form_can_hold_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
