/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of packed weights, and their unpacking. */
#include "packed.h"

#include "../layout.h"
#include "../spec.h"
#include "scale_range.h"

#include <stdlib.h>
#include <string.h>

/* ---- sizes ---- */

ptxgen_status ptxgen_marlin_packed_layout(const ptxgen_marlin_spec *spec,
                                          ptxgen_marlin_packed *packed, ptxgen_error *err)
{
    ptxgen_status status = marlin_check_spec(spec, err);
    if (status != PTXGEN_OK)
        return status;
    if (!packed)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "marlin: packed is NULL");
    size_t strips = marlin_strips(spec), groups = marlin_groups(spec);
    *packed = (ptxgen_marlin_packed){
        .codes_bytes = strips * marlin_steps(spec) * MARLIN_STEP_BYTES,
        .scales_bytes = strips * groups * MARLIN_SCALES_BYTES,
        .zeros_bytes = spec->zeros ? strips * groups * MARLIN_ZEROS_BYTES : 0,
        .order_bytes = spec->act_order ? spec->k * sizeof *packed->order : 0,
    };
    return PTXGEN_OK;
}

ptxgen_status marlin_check_packed(const ptxgen_marlin_spec *spec, const ptxgen_marlin_packed *p,
                                  ptxgen_error *err)
{
    ptxgen_marlin_packed need;
    ptxgen_status status = ptxgen_marlin_packed_layout(spec, &need, err);
    if (status != PTXGEN_OK)
        return status;
    if (!p)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "marlin: packed is NULL");
    const struct {
        const char *name;
        const void *data;
        size_t bytes, needed;
    } arrays[] = {{"codes", p->codes, p->codes_bytes, need.codes_bytes},
                  {"scales", p->scales, p->scales_bytes, need.scales_bytes},
                  {"zeros", p->zeros, p->zeros_bytes, need.zeros_bytes},
                  {"order", p->order, p->order_bytes, need.order_bytes}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        if (!arrays[i].needed)
            continue;
        if (!arrays[i].data)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "marlin: packed.%s is NULL",
                               arrays[i].name);
        if (arrays[i].bytes != arrays[i].needed)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "marlin: packed.%s is of %zu bytes, but the spec needs %zu",
                               arrays[i].name, arrays[i].bytes, arrays[i].needed);
    }
    return PTXGEN_OK;
}

/* ---- unpacking ---- */

struct packed_view {
    const ptxgen_marlin_spec *spec;
    const ptxgen_marlin_packed *packed;
    size_t steps, groups;
};

/* The place of a column of a matrix in the packed strips. */
struct packed_feature {
    size_t strip, tile, g, half; /* half: of the tile's columns, g or g + 8 */
};

static struct packed_feature find_column(const ptxgen_marlin_spec *spec, size_t n, bool up)
{
    size_t width = marlin_strip_features(spec), column = n % width + (up ? width : 0);
    return (struct packed_feature){n / width, column / MARLIN_TILE, column % 8,
                                   column % MARLIN_TILE / 8};
}

static unsigned code_at(const struct packed_view *v, const struct packed_feature *c, size_t k)
{
    size_t row = k % 16, lane = c->g * 4 + row % 8 / 2;
    size_t nibble = row / 8 * 2 + c->half + row % 2 * 4;
    size_t tile = ((c->strip * v->steps + k / MARLIN_STEP) * 4 + c->tile) * MARLIN_TILE_BYTES;
    size_t byte = tile + lane * 16 + k % MARLIN_STEP / 16 * 4 + nibble / 2;
    return ((const unsigned char *)v->packed->codes)[byte] >> nibble % 2 * 4 & 15;
}

static size_t packed_group(const ptxgen_marlin_spec *spec, size_t group)
{
    size_t rows = marlin_scale_rows(spec);
    return rows ? group * (marlin_group_rows(spec) / rows) : 0;
}

/* The scale and the zero point of a packed group in a column. */
struct packed_scale {
    uint16_t bits;
    uint8_t zero;
};

static struct packed_scale scale_at(const struct packed_view *v, bool up, size_t packed, size_t n)
{
    struct packed_feature c = find_column(v->spec, n, up);
    size_t at = c.strip * v->groups + packed;
    const unsigned char *scales =
        (const unsigned char *)v->packed->scales + at * MARLIN_SCALES_BYTES;
    struct packed_scale s = {.zero = PTXGEN_W4_SYMMETRIC_ZERO};
    memcpy(&s.bits, scales + (c.g * 8 + c.tile * 2 + c.half) * sizeof s.bits, sizeof s.bits);
    if (v->spec->zeros) {
        const unsigned char *word =
            (const unsigned char *)v->packed->zeros + at * MARLIN_ZEROS_BYTES + c.g * 4;
        s.zero = word[c.tile] >> c.half * 4 & 15;
    }
    return s;
}

static void unpack_groups(const struct packed_view *v, bool up, ptxgen_w4_matrix *m)
{
    const size_t groups = m->k ? m->k / marlin_group_rows(v->spec) : 0;
    for (size_t group = 0; group < groups; group++)
        for (size_t n = 0; n < m->n; n++) {
            struct packed_scale s = scale_at(v, up, packed_group(v->spec, group), n);
            size_t to = group * m->n + n;
            memcpy((unsigned char *)m->scales + to * sizeof s.bits, &s.bits, sizeof s.bits);
            if (m->zeros)
                m->zeros[to] = s.zero;
        }
}

static void unpack_matrix(const struct packed_view *v, bool up, ptxgen_w4_matrix *m)
{
    const ptxgen_marlin_spec *s = v->spec;
    m->k = s->k;
    m->n = s->n;
    m->group_size = (ptrdiff_t)marlin_group_rows(s);
    m->scale_type = (ptxgen_element)s->type;
    for (size_t k = 0; k < m->k; k++) {
        size_t row = s->act_order ? v->packed->order[k] : k;
        for (size_t n = 0; n < m->n; n++) {
            struct packed_feature c = find_column(s, n, up);
            m->codes[row * m->n + n] = (uint8_t)code_at(v, &c, k);
        }
        if (m->g_idx)
            m->g_idx[row] = (int32_t)(k / marlin_group_rows(s));
    }
    unpack_groups(v, up, m);
}

static ptxgen_status check_room(const ptxgen_marlin_spec *spec, const char *name,
                                const ptxgen_w4_matrix *m, ptxgen_error *err)
{
    const char *missing = !m->codes                      ? "codes"
                          : !m->scales                   ? "scales"
                          : spec->zeros && !m->zeros     ? "zeros"
                          : spec->act_order && !m->g_idx ? "g_idx"
                                                         : NULL;
    return missing ? ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "marlin: %s->%s is NULL", name,
                                 missing)
                   : PTXGEN_OK;
}

/* Checks that `order` is a permutation of 0 to K − 1. */
static ptxgen_status check_order(const ptxgen_marlin_spec *spec, const uint32_t *order,
                                 ptxgen_error *err)
{
    if (!spec->act_order)
        return PTXGEN_OK;
    bool *seen = calloc(spec->k, sizeof *seen);
    ptxgen_status status = seen ? PTXGEN_OK
                                : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                                              "marlin: no memory to check %u rows", spec->k);
    for (size_t i = 0; status == PTXGEN_OK && i < spec->k; i++) {
        if (order[i] >= spec->k || seen[order[i]])
            status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                                 "marlin: packed.order[%zu] is %u, which is %s", i, order[i],
                                 order[i] >= spec->k ? "no row" : "there twice");
        else
            seen[order[i]] = true;
    }
    free(seen);
    return status;
}

static ptxgen_status check_scales(const struct packed_view *v, bool up, ptxgen_error *err)
{
    const ptxgen_marlin_spec *spec = v->spec;
    ptxgen_element type = (ptxgen_element)spec->type;
    ptxgen_status status = PTXGEN_OK;
    size_t rows = marlin_scale_rows(spec) ? marlin_scale_rows(spec) : spec->k;
    size_t groups = spec->k ? spec->k / rows : 0;
    for (size_t packed = 0; packed < groups; packed++)
        for (size_t n = 0; status == PTXGEN_OK && n < spec->n; n++) {
            struct packed_scale found = scale_at(v, up, packed, n);
            if (marlin_scale_is_ordinary(type, found.bits, true))
                continue;
            double value = ptxgen_element_load(type, &found.bits, 0);
            const struct marlin_scale s = {
                .matrix = up                   ? "up"
                          : marlin_gated(spec) ? "gate"
                                               : "weights",
                .group = packed * rows / marlin_group_rows(spec),
                .feature = n,
                .zero = found.zero,
                .given = value,
                .stored = value,
            };
            status = marlin_check_scale(type, &s, err);
        }
    return status;
}

ptxgen_status ptxgen_marlin_check_packed(const ptxgen_marlin_spec *spec,
                                         const ptxgen_marlin_packed *packed, ptxgen_error *err)
{
    ptxgen_status status;
    if ((status = marlin_check_packed(spec, packed, err)) != PTXGEN_OK ||
        (status = check_order(spec, packed->order, err)) != PTXGEN_OK)
        return status;
    struct packed_view view = {spec, packed, marlin_steps(spec), marlin_groups(spec)};
    status = check_scales(&view, false, err);
    return status == PTXGEN_OK && marlin_gated(spec) ? check_scales(&view, true, err) : status;
}

ptxgen_status ptxgen_marlin_unpack(const ptxgen_marlin_spec *spec,
                                   const ptxgen_marlin_packed *packed, ptxgen_w4_matrix *weights,
                                   ptxgen_w4_matrix *up, ptxgen_error *err)
{
    ptxgen_status status;
    if ((status = marlin_check_packed(spec, packed, err)) != PTXGEN_OK ||
        (status = check_order(spec, packed->order, err)) != PTXGEN_OK)
        return status;
    if (!weights || marlin_gated(spec) != (up != NULL))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "marlin: %s",
                           !weights ? "weights is NULL"
                           : up     ? "up is given, but the spec has no SwiGLU"
                                    : "up is NULL, but SwiGLU has it");
    if ((status = check_room(spec, "weights", weights, err)) != PTXGEN_OK ||
        (up && (status = check_room(spec, "up", up, err)) != PTXGEN_OK))
        return status;
    struct packed_view view = {spec, packed, marlin_steps(spec), marlin_groups(spec)};
    unpack_matrix(&view, false, weights);
    if (up)
        unpack_matrix(&view, true, up);
    return PTXGEN_OK;
}
