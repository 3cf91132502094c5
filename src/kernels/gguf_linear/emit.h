/* SPDX-License-Identifier: Apache-2.0 */
/* The types and functions that the files of the gguf_linear emitter share. */
#ifndef PTXGEN_GGUF_LINEAR_EMIT_H
#define PTXGEN_GGUF_LINEAR_EMIT_H

#include "../gemm/emit.h"
#include "layout.h"

enum { MAX_N_TILES = 3, MOST_WORDS = 512, MAX_COPIES = 10 };

/* ---- types.c: from the bytes of a unit to integers and scales ---- */

/*
 * A unit of two rows in shared memory, as a lane reads it: `row` are the rows' first bytes, and
 * `lane_row` lie 4 bytes further for each quad lane. Words that have been read are kept.
 */
struct unit {
    ptx_kernel *k;
    uint32_t align; /* of which `row` are multiples */
    ptx_u32 row[2], lane_row[2];
    int first;           /* where the unit begins behind them */
    ptx_u32 quad4;       /* 4 · quad lane */
    ptx_u32 pair_bytes;  /* selector of bytes 2q, 2q, 2q + 1, 2q + 1 */
    ptx_pred odd, upper; /* quad lanes 1 and 3, 2 and 3 */
    ptx_u32 table[4];    /* numbers of a type's 16 codes, a byte each */

    /* Filled by a type, for both rows. */
    ptx_f32 d[2], dmin[2]; /* d·(scales·codes − offset·scales) − dmin·minima, or d·codes + dmin */
    ptx_u32 scales[2][4]; /* signed bytes, by group */
    ptx_u32 minima[2];    /* signed bytes: the minima, or scales, of groups of 16 4q to 4q + 3 */

    struct {
        bool by_lane, high;
        int row, phase, index;
        ptx_u32 word;
    } words[MOST_WORDS];
    unsigned word_count;
    struct {
        bool is_known;
        ptx_u32 row, lane_row, selector;
    } phases[2][4];
};

struct gguf_linear_type {
    uint32_t type;
    struct gguf_linear_facts facts;
    uint32_t group; /* weights that share an integer scale, 16 or 32; 0: each block has its d */
    int32_t offset; /* by which codes are too large, where `minima` are the scales; else 0 */
    bool has_dmin;
    const uint32_t *table;
    void (*scale)(struct unit *u, int row);                 /* of all groups */
    void (*block)(struct unit *u, unsigned group, int row); /* of a block of 32 */
    /* The codes of a group of 32 as signed bytes: the lane's four of each half. */
    void (*codes)(struct unit *u, unsigned group, int row, ptx_u32 to[2]);
};
const struct gguf_linear_type *gguf_linear_type(uint32_t type);

/* ---- the product ---- */

/* What h is made of. */
struct h_inputs {
    ptx_u64 x, residual, residual_out, gamma, post_gamma;
    ptx_u32 x_stride, residual_stride, residual_out_stride, m;
};

/* The matrices of one type, whose tiles are numbered through. */
struct phase {
    const struct gguf_linear_type *type;
    uint32_t matrices[MATRICES], count;
    uint32_t before; /* tiles of the phases before this one */
};

struct gguf_linear_kernel {
    ptx_kernel *k;
    const ptxgen_gguf_linear_plan *plan;
    const ptxgen_gguf_linear_spec *spec;
    const ptxgen_gguf_linear_variant *v;
    struct gemm_threads at;
    ptx_u32 wk, wn;                 /* the warp's place along K and along N */
    ptx_u32 ring_number;            /* the warp's ring among those of the CTA */
    ptx_u32 part, place;            /* the CTA's part of K, and its place in it */
    ptx_u32 own_tile;               /* the first of the warps along K, among those of all phases */
    ptx_u32 thread;                 /* among those of the warps along K */
    ptx_u32 part_first, part_count; /* the part's units */
    /* Shared memory: the ring of the warps along K, or the warp's own; records, from the part's
     * first on, or by cp.async from the warp's; sums; the parts' arrivals. */
    ptx_u32 ring, records, partials, arrivals;
    ptx_u32 b[MAX_N_TILES], columns[MAX_N_TILES]; /* offsets in a record: fragments, powers */
    ptx_u32 s16[MAX_N_TILES], quad4, pair_bytes;
    ptx_pred odd, upper;
    ptx_u64 params[PRODUCT_X];
    ptx_u32 y_stride[MATRICES];
    struct h_inputs in;
    struct phase phases[MATRICES];
    uint32_t phase_count;
    /* Tensor copies: the maps' generic addresses, the ring's mbarriers, and the part's pairs. */
    ptx_u64 maps[MATRICES];
    ptx_u32 ring_barriers, part_pair, part_end_pair;
    ptx_u32 both_partials; /* the sum of the two addresses that `partials` alternates between */
};

static inline uint32_t phase_tiles(const ptxgen_gguf_linear_spec *s, const struct phase *p)
{
    uint32_t tiles = 0;
    for (uint32_t i = 0; i < p->count; i++)
        tiles += matrix_tiles(s, p->matrices[i]);
    return tiles;
}

/* Where a tile is. */
struct place {
    ptx_u64 w, bias, y;
    ptx_u32 feature, n; /* its first feature in the matrix, whose features are n */
    ptx_u32 y_stride;
};
struct place gguf_linear_locate(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 tile);
/* Tiles from a warp's tile to its next one. */
static inline uint32_t tile_step(const struct gguf_linear_kernel *q)
{
    return q->v->part_ctas * q->v->wn;
}

/* ---- stream.c ---- */

/* Where a warp's next copies come from and go to. */
struct stream {
    const struct phase *phase;
    ptx_u32 tile, left;          /* units that are left of the tile */
    ptx_u64 next[2];             /* the tile's first row at the next unit; of gate and up */
    ptx_u64 begin[2], end[2];    /* of the matrix */
    ptx_u32 edge;                /* 1: near the matrix's begin or end */
    ptx_u32 offsets[MAX_COPIES]; /* of the lane's chunks behind `next` */
    ptx_u32 places[MAX_COPIES];  /* in a slot */
    ptx_u32 fill;                /* shared address of the next slot */
};
/* Issues the copies of all slots but one. */
struct stream gguf_linear_start_stream(struct gguf_linear_kernel *q, const struct phase *p);
void gguf_linear_issue(struct gguf_linear_kernel *q, struct stream *s);
/* Moves a slot's address on. */
void gguf_linear_next_slot(struct gguf_linear_kernel *q, ptx_u32 slot);
/* The two rows of the weights that a lane copies and multiplies, of a tile. */
void gguf_linear_find_rows(struct gguf_linear_kernel *q, const struct phase *p,
                           const struct place *at, ptx_u64 rows[2]);
/* The first tile of the warp in a phase. */
ptx_u32 gguf_linear_first_tile(struct gguf_linear_kernel *q, const struct phase *p);

/* ---- tensor_stream.c ---- */

/* A slot of a warp's ring, and the parity of the phase of its full barrier. */
struct slot {
    ptx_u32 index, parity;
};
struct slot gguf_linear_first_slot(struct gguf_linear_kernel *q);
void gguf_linear_advance_slot(struct gguf_linear_kernel *q, struct slot *slot);
ptx_u32 gguf_linear_slot_address(struct gguf_linear_kernel *q, struct slot slot);
/* Waits for the slot's copies. */
void gguf_linear_wait(struct gguf_linear_kernel *q, struct slot slot);
/* Arrives at the slot's empty barrier, where warps share it: this lane has read it. */
void gguf_linear_release(struct gguf_linear_kernel *q, struct slot slot);

/* What a warp's next copies bring, and into which slot. */
struct tensor_stream {
    ptx_u32 tile, pair;             /* the tile among those of all phases */
    ptx_u32 row;                    /* the tile's first in its matrix */
    ptx_u64 map;                    /* the matrix's */
    ptx_u32 pair_words, slot_bytes; /* of the matrix's type */
    struct slot fill;
};
/* Sets up the ring's mbarriers, and finds the warp's first tile. */
struct tensor_stream gguf_linear_start_tensor_stream(struct gguf_linear_kernel *q);
/* Issues the copies of the next `count` slots. */
void gguf_linear_fill_slots(struct gguf_linear_kernel *q, struct tensor_stream *s, ptx_u32 count);
/*
 * Issues the copies of a slot, unless it is past the last tile, and moves on; of warps that share
 * the slot, the first issues them.
 */
void gguf_linear_issue_pair(struct gguf_linear_kernel *q, struct tensor_stream *s);

/* ---- product.c ---- */

struct sums {
    ptx_f32 acc[MAX_N_TILES][4]; /* as mma.m16n8 has them, by n-tile */
};
/* Adds unit `in_pair` of a pair at `slot`, which tensor copies brought. */
void gguf_linear_multiply_of_pair(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 slot,
                                  uint32_t in_pair, ptx_u32 record, ptx_u32 unit_index,
                                  struct sums *sums);
/* Adds a unit at `slot`, whose rows begin `shift` bytes into theirs, times the record to the sums.
 */
void gguf_linear_multiply(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 slot,
                          const ptx_u32 shift[2], ptx_u32 record, ptx_u32 unit_index,
                          struct sums *sums);
void gguf_linear_find_columns(struct gguf_linear_kernel *q);

/* ---- finish.c ---- */

/* Synchronises the warps along K. */
void gguf_linear_synchronise(struct gguf_linear_kernel *q);

/* Adds up the sums of the warps along K and of the parts, and stores the tile's outputs. */
void gguf_linear_finish(struct gguf_linear_kernel *q, const struct phase *p, ptx_u32 tile,
                        const struct sums *sums);
ptx_f32 gguf_linear_gate(ptx_kernel *k, const ptxgen_gguf_linear_spec *s, ptx_f32 gate, ptx_f32 up);
void gguf_linear_store(ptx_kernel *k, uint8_t type, ptx_u64 to, ptx_f32 value);
void gguf_linear_emit_join(const ptxgen_gguf_linear_plan *plan, const ptxgen_gguf_linear_variant *v,
                           ptx_module *module);

/* ---- prepare.c ---- */

/* Reads the parameters of 64 bits, and those of 32 bits and m; not those that are not used. */
void gguf_linear_h_params(ptx_kernel *k, const ptxgen_gguf_linear_spec *s, bool used,
                          struct h_inputs *in);
void gguf_linear_h_strides(ptx_kernel *k, const ptxgen_gguf_linear_spec *s, bool used,
                           struct h_inputs *in);
/*
 * The CTA makes all records in shared memory, and synchronises. `behind_loads` is called when what
 * h is made of is on its way.
 */
void gguf_linear_make_records(struct gguf_linear_kernel *q, void (*behind_loads)(void *),
                              void *what);

void gguf_linear_emit_prepare(const ptxgen_gguf_linear_plan *plan,
                              const ptxgen_gguf_linear_variant *v, ptx_module *module);
/* An entry with the same parameters that makes rows of h in `type`, at `records`. */
void gguf_linear_emit_rows(const ptxgen_gguf_linear_plan *plan, ptxgen_element type,
                           const char *name, ptx_module *module);
/* The same of rows in the compute type and in the order of direct.h. */
void gguf_linear_emit_ordered_rows(const ptxgen_gguf_linear_plan *plan, ptx_module *module);

enum { LANE_VALUES = 8 };
/* Eight elements from anywhere, packed as they are in memory. */
void gguf_linear_load_elements(ptx_kernel *k, ptx_u64 from, bool narrow, ptx_u32 to[LANE_VALUES]);
/* Eight elements of a type as f32. */
void gguf_linear_widen(ptx_kernel *k, ptxgen_element type, const ptx_u32 bits[LANE_VALUES],
                       ptx_f32 to[LANE_VALUES]);

/*
 * types.c: bytes of a table for the 8 nibbles of a word, those of the low ones and of the high
 * ones. Three bits of a nibble select among eight bytes, and bit 3 between the table's halves.
 */
void gguf_linear_look_up(ptx_kernel *k, const ptx_u32 table[4], ptx_u32 codes, ptx_u32 to[2]);

#endif
