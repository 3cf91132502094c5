/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry marlin_repack_codes: a CTA packs four steps of strips, which are 8 KB in and 8 KB out.
 *
 *     checkpoint ──16 bytes a thread──▶ shared memory ──words──▶ lanes ──16 bytes a lane──▶ codes
 *                    (cp.async)         in its own order
 *
 * A chunk has 16, 8 or 4 bytes, the largest number that divides a line; chunks past the end of K or
 * N become zeros. With act_order a chunk is composed from the eight rows that its words have to
 * hold, so that shared memory has the order of the groups. Layouts along K with act_order are
 * packed by codes_by_column.c instead.
 *
 * A lane's output word has eight nibbles, each from a word in shared memory: the word is rotated so
 * that the nibble is at its place, and that place is selected. Where in its word a nibble is
 * depends on the lane and on the format:
 *
 *     format   a line is          nibble (row 2q + odd + 8·high of 16, column g + 8·half of 16)
 *     GPTQ     8 rows             2q + odd
 *     AWQ      1 row              g in the order 0 2 4 6 1 3 5 7
 *     by column  a column         2q + odd
 *     Marlin   16 rows            half·2 + high + 4·odd, of the lane's own word
 */
#include "../formats/format_table.h"
#include "emit.h"

enum { NIBBLES = 8, SELECT_BY_C = 0xD8 };

/* ---- the geometry ---- */

static uint32_t source_lines(const struct repack *q)
{
    return q->shape->along_k ? q->spec->n : q->spec->k / q->shape->rows_per_line;
}

/* Bytes of a source's line: 8 elements along the line take 4 bytes for each row in the line. */
static uint32_t source_line_bytes(const struct repack *q)
{
    return q->shape->along_k ? q->spec->k / 2 : q->spec->n / 2 * q->shape->rows_per_line;
}

/* Bytes of the part of a CTA's line that comes from one source. */
static uint32_t region_bytes(const struct repack *q)
{
    return q->gated && !q->shape->along_k ? q->shape->line_bytes / 2 : q->shape->line_bytes;
}

static uint32_t region_lines(const struct repack *q)
{
    return q->gated && q->shape->along_k ? q->shape->lines / 2 : q->shape->lines;
}

/*
 * The run in which gate and up alternate: 32 columns each, or 128 where blocks of 64 columns cannot
 * be divided; counted in chunks along N, or in lines along K.
 */
static uint32_t run(const struct repack *q)
{
    if (q->shape->along_k)
        return MARLIN_STRIP / 2;
    uint32_t columns = q->spec->format == PTXGEN_W4_MARLIN ? 2 * MARLIN_STRIP : MARLIN_STRIP / 2;
    return columns * q->shape->rows_per_line / 2 / q->chunk_bytes;
}

static uint32_t largest_chunk(uint32_t bytes)
{
    return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : 4;
}

static void measure(struct repack *q)
{
    q->pitch = q->shape->line_bytes + q->shape->gap;
    q->lines = source_lines(q);
    q->line_bytes = source_line_bytes(q);
    q->chunk_bytes = largest_chunk(q->line_bytes);
    q->chunks = q->shape->line_bytes / q->chunk_bytes;
}

/* ---- into shared memory ---- */

/* A chunk of the source, and its place in shared memory. */
struct chunk {
    ptx_u32 line, index; /* in the source */
    ptx_u64 source;      /* gate's or up's address */
    ptx_pred exists;
    bool always; /* the chunk always exists, and `exists` is not set */
    ptx_u32 to;
};

/* Turns a position that alternates between gate and up into one of a source; returns the source. */
static ptx_u64 split(struct repack *q, ptx_u32 *position)
{
    ptx_kernel *k = q->k;
    uint32_t length = run(q);
    ptx_u32 runs = gemm_divide(k, *position, length);
    ptx_pred up = ptx_setp_ne_u32(k, ptx_and_b32(k, runs, U32(1)), U32(0));
    ptx_u32 within = ptx_and_b32(k, *position, U32(length - 1));
    ptx_u32 pair = ptx_shr_u32(k, runs, U32(1));
    *position = ptx_mad_lo_u32(k, pair, U32(length), within);
    return ptx_selp_u64(k, q->sources[1], q->sources[0], up);
}

static struct chunk find_chunk(struct repack *q, uint32_t round)
{
    ptx_kernel *k = q->k;
    uint32_t step = REPACK_THREADS / q->chunks;
    struct chunk c = {.source = q->sources[0]};
    c.line = ptx_add_u32(k, gemm_divide(k, q->at.thread, q->chunks), U32(round * step));
    c.index = ptx_and_b32(k, q->at.thread, U32(q->chunks - 1));
    ptx_u32 line_at = ptx_mad_lo_u32(k, c.line, U32(q->pitch), q->staged);
    c.to = ptx_mad_lo_u32(k, c.index, U32(q->chunk_bytes), line_at);
    if (q->gated)
        c.source = split(q, q->shape->along_k ? &c.line : &c.index);
    ptx_u32 by_line = q->shape->along_k ? q->region_n : q->region_k;
    ptx_u32 by_chunk = q->shape->along_k ? q->region_k : q->region_n;
    c.line = ptx_mad_lo_u32(k, by_line, U32(region_lines(q)), c.line);
    c.index = ptx_mad_lo_u32(k, by_chunk, U32(region_bytes(q) / q->chunk_bytes), c.index);
    return c;
}

static void find_existence(struct repack *q, struct chunk *c)
{
    bool lines_end = q->lines % region_lines(q), chunks_end = q->line_bytes % region_bytes(q);
    c->always = !lines_end && !chunks_end;
    if (lines_end)
        c->exists = ptx_setp_lt_u32(q->k, c->line, U32(q->lines));
    uint32_t count = q->line_bytes / q->chunk_bytes;
    if (lines_end && chunks_end)
        c->exists = ptx_setp_bool_lt_u32(q->k, c->index, U32(count), c->exists);
    else if (chunks_end)
        c->exists = ptx_setp_lt_u32(q->k, c->index, U32(count));
}

static ptx_u64 line_address(struct repack *q, const struct chunk *c)
{
    return ptx_mad_wide_u32(q->k, c->line, U32(q->line_bytes), c->source);
}

static void copy_chunk(struct repack *q, const struct chunk *c)
{
    ptx_kernel *k = q->k;
    ptx_u64 line = line_address(q, c);
    ptx_u64 from = ptx_mad_wide_u32(k, c->index, U32(q->chunk_bytes), line);
    ptx_u32 bytes =
        c->always ? U32(q->chunk_bytes) : ptx_selp_u32(k, U32(q->chunk_bytes), U32(0), c->exists);
    switch (q->chunk_bytes) {
    case 16: ptx_cp_async_cg_zfill(k, c->to, 0, from, 0, 16, bytes); break;
    case 8: ptx_cp_async_ca_zfill(k, c->to, 0, from, 0, 8, bytes); break;
    default: ptx_cp_async_ca_zfill(k, c->to, 0, from, 0, 4, bytes);
    }
}

/* ---- into shared memory, by `order` ---- */

/* Loads the checkpoint's rows of a word's eight nibbles; `first` is a multiple of 8. */
static void load_order(struct repack *q, ptx_u32 first, ptx_u32 rows[NIBBLES])
{
    ptx_u64 from = ptx_mad_wide_u32(q->k, first, U32(4), q->order);
    ptx_ld_global_nc_v4_u32(q->k, rows, from, 0);
    ptx_ld_global_nc_v4_u32(q->k, rows + 4, from, 16);
}

void marlin_repack_insert(ptx_kernel *k, ptx_u32 word, ptx_u32 from, ptx_u32 rotation, unsigned i)
{
    ptx_u32 turned = ptx_shf_r_wrap_b32(k, from, from, rotation);
    ptx_lop3_b32_to(k, word, word, turned, U32(15u << 4 * i), SELECT_BY_C);
}

ptx_u32 marlin_repack_rotation(ptx_kernel *k, ptx_u32 row, unsigned i)
{
    return ptx_mad_lo_u32(k, row, U32(4), U32(32 - 4 * i));
}

/* Composes a chunk of four columns of eight rows. */
static void gather_along_n(struct repack *q, const struct chunk *c, ptx_u32 words[4])
{
    ptx_kernel *k = q->k;
    ptx_u32 rows[NIBBLES], loaded[4];
    load_order(q, ptx_shl_b32(k, c->line, U32(3)), rows);
    ptx_u64 column = ptx_mad_wide_u32(k, c->index, U32(q->chunk_bytes), c->source);
    for (unsigned i = 0; i < NIBBLES; i++) {
        ptx_u32 line = ptx_shr_u32(k, rows[i], U32(3));
        ptx_u64 from = ptx_mad_wide_u32(k, line, U32(q->line_bytes), column);
        ptx_u32 rotation = marlin_repack_rotation(k, rows[i], i);
        ptx_ld_global_nc_v4_u32(k, loaded, from, 0);
        for (unsigned w = 0; w < 4; w++)
            marlin_repack_insert(k, words[w], loaded[w], rotation, i);
    }
}

/* Composes a chunk of the next rows of a column, eight rows for each word. */
static void gather_along_k(struct repack *q, const struct chunk *c, ptx_u32 words[4])
{
    ptx_kernel *k = q->k;
    uint32_t count = q->chunk_bytes / WORD_BYTES;
    ptx_u32 first = ptx_mul_lo_u32(k, c->index, U32(count * NIBBLES));
    ptx_u64 column = line_address(q, c);
    for (uint32_t w = 0; w < count; w++) {
        ptx_u32 rows[NIBBLES];
        load_order(q, ptx_add_u32(k, first, U32(w * NIBBLES)), rows);
        for (unsigned i = 0; i < NIBBLES; i++) {
            ptx_u32 word = ptx_shr_u32(k, rows[i], U32(3));
            ptx_u64 from = ptx_mad_wide_u32(k, word, U32(WORD_BYTES), column);
            ptx_u32 rotation = marlin_repack_rotation(k, rows[i], i);
            marlin_repack_insert(k, words[w], ptx_ld_global_nc_u32(k, from, 0), rotation, i);
        }
    }
}

static void gather(struct repack *q, const struct chunk *c, ptx_u32 words[4])
{
    if (q->shape->along_k)
        gather_along_k(q, c, words);
    else
        gather_along_n(q, c, words);
}

static void gather_chunk(struct repack *q, const struct chunk *c)
{
    ptx_kernel *k = q->k;
    ptx_u32 words[4];
    for (uint32_t w = 0; w < 4; w++)
        words[w] = ptx_mov_u32(k, U32(0));
    if (c->always)
        gather(q, c, words);
    else
        ptx_if(k, c->exists)
            gather(q, c, words);
    if (q->chunk_bytes == 16)
        ptx_st_shared_v4_u32(k, c->to, 0, words);
    else
        ptx_st_shared_v2_u32(k, c->to, 0, words);
}

static void stage(struct repack *q)
{
    ptx_kernel *k = q->k;
    ptx_section(k, "copy four steps of strips to shared memory");
    for (uint32_t round = 0; round < q->shape->lines * q->chunks / REPACK_THREADS; round++) {
        struct chunk c = find_chunk(q, round);
        find_existence(q, &c);
        if (q->spec->act_order)
            gather_chunk(q, &c);
        else
            copy_chunk(q, &c);
    }
    if (!q->spec->act_order)
        ptx_cp_async_wait_all(k);
    ptx_bar_sync(k, 0);
}

/* ---- out of shared memory ---- */

/*
 * Where a format has the nibbles of a lane in shared memory. Each index adds its distance to the
 * address: those in registers, which are the warp's part (0 or 1, the first of two) and tile, and
 * the lane with its group and quad; and those of a nibble, which is the code of row
 * 16·word + 8·high + 2·quad + odd and column 8·half + group. The number of a nibble in its word is
 * a sum as well, of a part in registers and of what each index of the nibble adds.
 */
enum { PART, TILE, GROUP, QUAD, LANE, WORD, HIGH, ODD, HALF, TERMS };
static const struct positions {
    struct distance {
        uint16_t lines, bytes;
    } of[TERMS];
    enum { SAME, BY_QUAD, BY_GROUP } nibble; /* 2·quad; group in the order 0 2 4 6 1 3 5 7 */
    uint8_t nibble_of[TERMS];
} gptq = {.of = {[PART] = {0, 256}, [TILE] = {0, 64}, [GROUP] = {0, 4},
                 [WORD] = {2, 0}, [HIGH] = {1, 0}, [HALF] = {0, 32}},
          .nibble = BY_QUAD, .nibble_of = {[ODD] = 1}},
  awq = {.of = {[PART] = {0, 32}, [TILE] = {0, 8}, [QUAD] = {2, 0},
                [WORD] = {16, 0}, [HIGH] = {8, 0}, [ODD] = {1, 0}, [HALF] = {0, 4}},
         .nibble = BY_GROUP},
  by_column = {.of = {[PART] = {0, 32}, [TILE] = {16, 0}, [GROUP] = {1, 0},
                      [WORD] = {0, 8}, [HIGH] = {0, 4}, [HALF] = {8, 0}},
               .nibble = BY_QUAD, .nibble_of = {[ODD] = 1}},
  marlin = {.of = {[PART] = {0, 512}, [TILE] = {0, 4}, [LANE] = {0, 16}, [WORD] = {1, 0}},
            .nibble_of = {[HIGH] = 1, [ODD] = 4, [HALF] = 2}},
  /* A strip is half of one of gate's two blocks of 64 columns, and half of one of up's two. */
  gated_marlin = {.of = {[PART] = {0, 8}, [TILE] = {0, 4}, [LANE] = {0, 16}, [WORD] = {1, 0}},
                  .nibble_of = {[HIGH] = 1, [ODD] = 4, [HALF] = 2}};

static const struct positions *positions_of(const struct repack *q)
{
    switch (q->spec->format) {
    case PTXGEN_W4_AWQ: return &awq;
    case PTXGEN_W4_PACK_QUANTIZED: return &by_column;
    case PTXGEN_W4_MARLIN: return q->gated ? &gated_marlin : &marlin;
    default: return &gptq;
    }
}

static uint32_t bytes_of(const struct repack *q, int term)
{
    const struct distance d = positions_of(q)->of[term];
    return d.lines * q->pitch + d.bytes;
}

/* The nibble at place d of a lane's output word. */
struct element {
    uint32_t at[TERMS]; /* its indices; those in registers are 0 here */
};

static struct element element_at(uint32_t word, uint32_t d)
{
    return (struct element){{[WORD] = word, [HALF] = d & 1, [HIGH] = d >> 1 & 1, [ODD] = d >> 2}};
}

static uint32_t element_offset(const struct repack *q, const struct element *e)
{
    uint32_t bytes = 0;
    for (int i = 0; i < TERMS; i++)
        bytes += e->at[i] * bytes_of(q, i);
    return bytes;
}

static uint32_t element_nibble(const struct repack *q, const struct element *e)
{
    uint32_t nibble = 0;
    for (int i = 0; i < TERMS; i++)
        nibble += e->at[i] * positions_of(q)->nibble_of[i];
    return nibble;
}

/* The part of a nibble's place that is the same for all nibbles of the lane. */
struct reading {
    ptx_u32 base;        /* shared address */
    ptx_u32 nibble;      /* as a rotation: 4 × the lane's part of the nibble's number */
    uint32_t part_bytes; /* from one part to the part after the next */
};

/* `tile` and `part` belong to the warp, which packs one tile of parts 0 and 2, or of 1 and 3. */
static struct reading find_reading(struct repack *q, ptx_u32 tile, ptx_u32 part)
{
    enum { BLOCK_BYTES = 512 };
    ptx_kernel *k = q->k;
    const struct positions *p = positions_of(q);
    struct reading r = {q->staged, U32(0), 2 * bytes_of(q, PART)};
    if (p == &gated_marlin) { /* tiles 2 and 3 are up's, whose blocks are the next two */
        ptx_u32 up = ptx_and_b32(k, tile, U32(2));
        r.base = ptx_mad_lo_u32(k, up, U32(BLOCK_BYTES), r.base);
        r.part_bytes = BLOCK_BYTES;
        tile = ptx_and_b32(k, tile, U32(1));
    }
    const ptx_u32 registers[] = {part, tile, q->at.group, q->at.quad, q->at.lane};
    for (int i = PART; i <= LANE; i++)
        if (bytes_of(q, i))
            r.base = ptx_mad_lo_u32(k, registers[i], U32(bytes_of(q, i)), r.base);
    if (p->nibble == BY_QUAD)
        r.nibble = ptx_shl_b32(k, q->at.quad, U32(3));
    if (p->nibble == BY_GROUP) {
        ptx_u32 odd = ptx_and_b32(k, q->at.group, U32(1));
        ptx_u32 even = ptx_and_b32(k, q->at.group, U32(6));
        r.nibble = ptx_mad_lo_u32(k, odd, U32(16), ptx_shl_b32(k, even, U32(1)));
    }
    return r;
}

static void find_rotations(struct repack *q, const struct reading *r, ptx_u32 rotations[NIBBLES])
{
    for (uint32_t d = 0; d < NIBBLES; d++) {
        const struct element e = element_at(0, d);
        uint32_t fixed = 4 * (element_nibble(q, &e) - d) & 31;
        rotations[d] = ptx_add_u32(q->k, r->nibble, U32(fixed));
    }
}

static ptx_u32 pack_word(struct repack *q, const struct reading *r, uint32_t word, uint32_t skipped,
                         const ptx_u32 rotations[NIBBLES])
{
    ptx_kernel *k = q->k;
    ptx_u32 loaded[NIBBLES], out = ptx_mov_u32(k, U32(0));
    uint32_t offsets[NIBBLES];
    for (uint32_t d = 0; d < NIBBLES; d++) {
        const struct element e = element_at(word, d);
        uint32_t same = 0;
        offsets[d] = element_offset(q, &e);
        while (offsets[same] != offsets[d])
            same++;
        loaded[d] =
            same < d ? loaded[same] : ptx_ld_shared_u32(k, r->base, (int)(skipped + offsets[d]));
        marlin_repack_insert(k, out, loaded[d], rotations[d], d);
    }
    return out;
}

/* The address of the lane's 16 bytes of the warp's first part. */
static ptx_u64 find_output(struct repack *q, ptx_u32 tile, ptx_u32 strip, ptx_u32 step)
{
    ptx_kernel *k = q->k;
    const ptxgen_marlin_spec product = marlin_repack_product(q->spec);
    ptx_u64 first = ptx_mul_wide_u32(k, strip, U32(marlin_steps(&product)));
    ptx_u64 index = ptx_add_u64(k, first, ptx_cvt_u64_u32(k, step));
    ptx_u64 at = ptx_mad_lo_u64(k, index, U64(MARLIN_STEP_BYTES), q->codes);
    ptx_u64 tile_at = ptx_mad_wide_u32(k, tile, U32(MARLIN_TILE_BYTES), at);
    return ptx_mad_wide_u32(k, q->at.lane, U32(16), tile_at);
}

static void pack_part(struct repack *q, const struct reading *r, uint32_t round,
                      const ptx_u32 rotations[NIBBLES], ptx_u64 to)
{
    ptx_u32 words[4];
    for (uint32_t w = 0; w < 4; w++)
        words[w] = pack_word(q, r, w, round * r->part_bytes, rotations);
    ptx_st_global_v4_u32(q->k, to, 0, words);
}

static void pack(struct repack *q)
{
    ptx_kernel *k = q->k;
    ptx_section(k, "each nibble to its place");
    const ptxgen_marlin_spec product = marlin_repack_product(q->spec);
    bool along_k = q->shape->along_k;
    ptx_u32 tile = ptx_and_b32(k, q->at.warp, U32(TILES - 1));
    ptx_u32 part = ptx_shr_u32(k, q->at.warp, U32(2));
    struct reading r = find_reading(q, tile, part);
    ptx_u32 rotations[NIBBLES];
    find_rotations(q, &r, rotations);

    ptx_u32 strip = q->region_n, step = q->region_k, *moves = along_k ? &step : &strip;
    *moves = ptx_mad_lo_u32(k, *moves, U32(REPACK_PARTS), part);
    uint32_t limit = along_k ? marlin_steps(&product) : marlin_strips(&product);
    uint64_t pitch =
        along_k ? MARLIN_STEP_BYTES : (uint64_t)marlin_steps(&product) * MARLIN_STEP_BYTES;
    ptx_u64 to = find_output(q, tile, strip, step);
    for (uint32_t round = 0; round < REPACK_PARTS / 2; round++) {
        ptx_u64 at = round ? ptx_add_u64(k, to, U64(2 * round * pitch)) : to;
        if (limit % REPACK_PARTS == 0) {
            pack_part(q, &r, round, rotations, at);
            continue;
        }
        ptx_u32 index = ptx_add_u32(k, *moves, U32(2 * round));
        ptx_if(k, ptx_setp_lt_u32(k, index, U32(limit)))
            pack_part(q, &r, round, rotations, at);
    }
}

/* ---- the entry ---- */

void marlin_repack_begin(struct repack *q, ptx_module *module, uint32_t shared_bytes)
{
    ptx_kernel *k = q->k = ptx_kernel_begin(module, "marlin_repack_codes");
    ptx_kernel_reqntid(k, REPACK_THREADS, 1, 1);
    ptx_u64 addresses[REPACK_PARAMS];
    const bool used[REPACK_PARAMS] = {[REPACK_WEIGHTS] = true,
                                      [REPACK_UP_WEIGHTS] = q->gated,
                                      [REPACK_ORDER] = q->spec->act_order,
                                      [REPACK_TO_CODES] = true};
    marlin_repack_params(k, used, addresses);
    q->sources[0] = addresses[REPACK_WEIGHTS];
    q->sources[1] = addresses[REPACK_UP_WEIGHTS];
    q->order = addresses[REPACK_ORDER];
    q->codes = addresses[REPACK_TO_CODES];
    q->at = gemm_find_threads(k);
    q->staged =
        ptx_shared_address(k, ptx_shared_declare(k, "weights as in the file", shared_bytes, 16));
}

static void emit_codes(struct repack *q, ptx_module *module)
{
    measure(q);
    marlin_repack_begin(q, module, q->shape->lines * q->pitch);
    ptx_kernel *k = q->k;
    q->region_n = gemm_divide(k, q->at.cta, q->grid.along_k);
    q->region_k = q->grid.along_k == 1 ? U32(0) : ptx_rem_u32(k, q->at.cta, U32(q->grid.along_k));
    stage(q);
    pack(q);
    ptx_kernel_end(k);
}

/* Declares all parameters, so that both entries take the same arguments; reads those in use. */
void marlin_repack_params(ptx_kernel *k, const bool used[REPACK_PARAMS],
                          ptx_u64 addresses[REPACK_PARAMS])
{
    static const char *const names[REPACK_PARAMS] = {
        [REPACK_WEIGHTS] = "weights",     [REPACK_SCALES] = "scales",
        [REPACK_ZEROS] = "zeros",         [REPACK_UP_WEIGHTS] = "up_weights",
        [REPACK_UP_SCALES] = "up_scales", [REPACK_UP_ZEROS] = "up_zeros",
        [REPACK_ORDER] = "order",         [REPACK_TO_CODES] = "to_codes",
        [REPACK_TO_SCALES] = "to_scales", [REPACK_TO_ZEROS] = "to_zeros",
        [REPACK_REFUSED] = "refused"};
    for (int i = 0; i < REPACK_PARAMS; i++) {
        addresses[i] = U64(0);
        if (used[i])
            addresses[i] = ptx_param_u64(k, names[i]);
        else
            ptx_param_declare(k, names[i], 8, 8);
    }
}

ptxgen_status ptxgen_marlin_repack_emit(const ptxgen_marlin_repack_plan *plan, ptx_module *module,
                                        ptxgen_error *err)
{
    if (!marlin_repack_is_plan(plan) || !module)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin_repack: a plan that was made, and a module, must be given");
    struct repack q = {.spec = &plan->spec,
                       .shape = marlin_repack_shape(&plan->spec),
                       .grid = marlin_repack_grid(&plan->spec),
                       .columns = marlin_repack_columns(plan),
                       .gated = plan->spec.epilogue == PTXGEN_EPILOGUE_SWIGLU};
    if (q.columns.used)
        marlin_repack_emit_columns(&q, module);
    else
        emit_codes(&q, module);
    marlin_repack_emit_groups(plan, module);
    return ptx_module_status(module, err);
}
