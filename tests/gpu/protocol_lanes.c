/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lanes do with each other beyond one instruction of differential: shfl with every clamp and
 * every segment, operations of a part of a warp, matrices whose rows lie anywhere, cp.async that
 * fills up with zeros.
 */
#include "protocol.h"

#include <stdio.h>

static struct protocol *add(struct protocol_list *list, const char *name)
{
    struct protocol *p = protocol_add(list, "%s", name);
    protocol_set_type(p, protocol_type("u32"));
    return p;
}

/* ---- shfl ---- */

/* A result and its predicate, folded into a register. */
#define FOLD(to, d) "mad.lo.u32 " to ", " to ", 0x9e3779b1, " d ";\n"
#define FOLD_PREDICATE(to) "@%%p2 xor.b32 " to ", " to ", 0x5bd1e995;\n"

/*
 * Warp w of the grid has segment mask w mod 32, and passes through all clamps; lanes agree on the
 * source's lane, or each has its own. At last all lanes have clamps of their own.
 */
static void add_shuffle(struct protocol_list *list, const char *mode)
{
    char name[96];
    snprintf(name, sizeof name, "shfl.sync.%s with every clamp and segment", mode);
    struct protocol *p = add(list, name);
    protocol_append(
        p,
        "ld.shared.u32 %%r20, [%%r3+8];\nld.shared.u32 %%r21, [%%r3+12];\n"
        "ld.shared.u32 %%r29, [%%r3+16];\n"
        "mad.lo.u32 %%r22, %%r5, 128, %%r0;\nshr.u32 %%r22, %%r22, 5;\n"
        "and.b32 %%r23, %%r22, 31;\nshl.b32 %%r23, %%r23, 8;\n" /* the segment, then the clamp */
        "mov.u32 %%r24, 0;\nmov.u32 %%r25, 0;\nmov.u32 %%r26, 0;\nmov.u32 %%r27, 0;\n"
        "LOOP: or.b32 %%r28, %%r23, %%r24;\n"
        "shfl.sync.%s.b32 %%r30|%%p2, %%r20, %%r21, %%r28, -1;\n" FOLD("%%r25", "%%r30")
            FOLD_PREDICATE(
                "%%r25") "add.u32 %%r31, %%r24, %%r22;\n"
                         "shfl.sync.%s.b32 %%r30|%%p2, %%r20, %%r31, %%r28, -1;\n" FOLD("%%r26",
                                                                                        "%%r30")
                             FOLD_PREDICATE(
                                 "%%r26") "xor.b32 %%r31, %%r29, %%r24;\nand.b32 %%r31, %%r31, "
                                          "0x1f1f;\n"
                                          "shfl.sync.%s.b32 %%r30|%%p2, %%r20, %%r21, %%r31, "
                                          "-1;\n" FOLD("%%r27", "%%r30") FOLD_PREDICATE(
                                              "%%r27") "add.u32 %%r24, %%r24, 1;\nsetp.lt.u32 "
                                                       "%%p3, %%r24, 32;\n@%%p3 bra LOOP;\n"
                                                       "st.global.u32 [%%d2], "
                                                       "%%r25;\nst.global.u32 [%%d2+4], %%r26;\n"
                                                       "st.global.u32 [%%d2+8], %%r27;\n",
        mode, mode, mode);
}

/* Constants for the source's lane and for clamp and segment. */
static void add_constant_shuffle(struct protocol_list *list, const char *mode)
{
    static const struct {
        unsigned lane, segment, clamp;
    } cases[] = {{1, 0, 31},  {1, 0, 0},   {16, 0, 31},  {31, 0, 31}, {3, 24, 31}, {2, 28, 0},
                 {5, 16, 15}, {0, 31, 31}, {4, 24, 7},   {1, 30, 31}, {9, 3, 20},  {32, 0, 31},
                 {33, 0, 0},  {6, 7, 5},   {17, 16, 31}, {30, 1, 2}};
    char name[96];
    snprintf(name, sizeof name, "shfl.sync.%s of constants", mode);
    struct protocol *p = add(list, name);
    protocol_append(p, "ld.shared.u32 %%r20, [%%r3+8];\n");
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        protocol_append(p,
                        "shfl.sync.%s.b32 %%r30|%%p2, %%r20, %u, %u, -1;\n" FOLD_PREDICATE(
                            "%%r30") "st.global.u32 [%%d2+%u], %%r30;\n",
                        mode, cases[i].lane, cases[i].segment << 8 | cases[i].clamp, 4 * i);
}

static void list_shuffles(struct protocol_list *list)
{
    static const char *const modes[] = {"up", "down", "bfly", "idx"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        add_shuffle(list, modes[i]);
        add_constant_shuffle(list, modes[i]);
    }
}

/* ---- a part of a warp ---- */

/* Leaves a word in %r30; %r20 and %r21 are words of the lane, %r21 one of few, %p4 a bit of it,
 * %r22 the mask of the lanes that come. */
static const struct step {
    const char *name, *step;
} steps[] = {
    {"redux.sync.add.u32", "redux.sync.add.u32 %r30, %r20, %r22"},
    {"redux.sync.add.s32", "redux.sync.add.s32 %r30, %r20, %r22"},
    {"redux.sync.min.u32", "redux.sync.min.u32 %r30, %r20, %r22"},
    {"redux.sync.max.u32", "redux.sync.max.u32 %r30, %r20, %r22"},
    {"redux.sync.min.s32", "redux.sync.min.s32 %r30, %r20, %r22"},
    {"redux.sync.max.s32", "redux.sync.max.s32 %r30, %r20, %r22"},
    {"redux.sync.and.b32", "redux.sync.and.b32 %r30, %r20, %r22"},
    {"redux.sync.or.b32", "redux.sync.or.b32 %r30, %r20, %r22"},
    {"redux.sync.xor.b32", "redux.sync.xor.b32 %r30, %r20, %r22"},
    {"vote.sync.ballot.b32", "vote.sync.ballot.b32 %r30, %p4, %r22"},
    {"vote.sync.ballot.b32 of the opposite", "vote.sync.ballot.b32 %r30, !%p4, %r22"},
    {"vote.sync.any.pred", "vote.sync.any.pred %p2, %p4, %r22;\nselp.u32 %r30, 1, 0, %p2"},
    {"vote.sync.all.pred", "vote.sync.all.pred %p2, %p4, %r22;\nselp.u32 %r30, 1, 0, %p2"},
    {"vote.sync.uni.pred", "vote.sync.uni.pred %p2, %p4, %r22;\nselp.u32 %r30, 1, 0, %p2"},
    {"match.any.sync.b32", "match.any.sync.b32 %r30, %r21, %r22"},
    {"match.any.sync.b64", "match.any.sync.b64 %r30, %d9, %r22"},
    {"match.all.sync.b32", "match.all.sync.b32 %r30|%p2, %r21, %r22;\n@%p2 xor.b32 %r30, %r30, 1"},
    {"match.all.sync.b64", "match.all.sync.b64 %r30|%p2, %d9, %r22;\n@%p2 xor.b32 %r30, %r30, 1"},
};

/* The lanes whose word says so do it, then the others; and then lanes 3 to 8, or one alone. */
static void add_part(struct protocol_list *list, const struct step *s)
{
    char name[96];
    snprintf(name, sizeof name, "%s in a part of a warp", s->name);
    struct protocol *p = add(list, name);
    protocol_append(
        p,
        "ld.shared.u32 %%r20, [%%r3+8];\nld.shared.u32 %%r21, [%%r3+12];\n"
        "ld.shared.u32 %%r23, [%%r3+16];\nand.b32 %%r24, %%r0, 31;\n"
        "shr.u32 %%r25, %%r0, 5;\n" /* a warp's words are of one, two, three or four values */
        "add.u32 %%r25, %%r25, 1;\nrem.u32 %%r21, %%r21, %%r25;\n"
        "mov.b64 %%d9, {%%r5, %%r21};\n"
        "and.b32 %%r26, %%r21, 1;\nsetp.ne.u32 %%p4, %%r26, 0;\n"
        "and.b32 %%r23, %%r23, 1;\nsetp.ne.u32 %%p3, %%r23, 0;\n"
        "vote.sync.ballot.b32 %%r22, %%p3, -1;\nnot.b32 %%r27, %%r22;\n@%%p3 bra HERE;\n"
        "mov.u32 %%r22, %%r27;\nHERE: @%%p3 bra FIRST;\n%s;\nbra MET;\nFIRST: %s;\n"
        "MET: st.global.u32 [%%d2], %%r30;\nbar.warp.sync -1;\n"
        "sub.u32 %%r28, %%r24, 3;\nsetp.lt.u32 %%p5, %%r28, 6;\nmov.u32 %%r22, 0x1f8;\n"
        "@!%%p5 bra OVER;\n%s;\nst.global.u32 [%%d2+4], %%r30;\n"
        "OVER: bar.warp.sync -1;\nsetp.eq.u32 %%p5, %%r24, 17;\nmov.u32 %%r22, 0x20000;\n"
        "@!%%p5 bra DONE;\n%s;\nst.global.u32 [%%d2+8], %%r30;\n",
        s->step, s->step, s->step, s->step);
}

/* ---- matrices ---- */

static const char *const numbers[] = {"x1", "x2", "x4"};

static void append_fragment(struct protocol *p, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        protocol_append(p, "%s%%r%u", i ? ", " : "{", 30 + i);
    protocol_append(p, "}");
}

/* Rows lie where the lanes' words say, in any part of the buffer, also twice. */
static void add_matrix_load(struct protocol_list *list, unsigned n, const char *trans)
{
    char name[96];
    snprintf(name, sizeof name, "ldmatrix.%s%s of rows anywhere", numbers[n], trans);
    struct protocol *p = add(list, name);
    protocol_append(p,
                    "bar.sync 0;\nld.shared.u32 %%r20, [%%r3+8];\nshr.u32 %%r21, %%r20, 9;\n"
                    "xor.b32 %%r20, %%r20, %%r21;\nmad.lo.u32 %%r20, %%r0, 29, %%r20;\n"
                    "and.b32 %%r20, %%r20, 511;\nmad.lo.u32 %%r20, %%r20, 16, %%r1;\n"
                    "ldmatrix.sync.aligned.m8n8.%s%s.shared.b16 ",
                    numbers[n], trans);
    append_fragment(p, 1u << n);
    protocol_append(p, ", [%%r20];\n");
    for (unsigned i = 0; i < 1u << n; i++)
        protocol_append(p, "st.global.u32 [%%d2+%u], %%r%u;\n", 4 * i, 30 + i);
}

/* Rows lie in the lines of other lanes of the warp, 16, 32 or 48 bytes in. */
static void add_matrix_store(struct protocol_list *list, unsigned n, const char *trans)
{
    char name[96];
    snprintf(name, sizeof name, "stmatrix.%s%s to rows of other lanes", numbers[n], trans);
    struct protocol *p = add(list, name);
    for (unsigned i = 0; i < 1u << n; i++)
        protocol_append(p, "ld.shared.u32 %%r%u, [%%r3+%u];\n", 30 + i, 4 * i);
    protocol_append(p,
                    "bar.sync 0;\nxor.b32 %%r20, %%r0, 21;\nmad.lo.u32 %%r21, %%r20, 64, %%r1;\n"
                    "and.b32 %%r20, %%r20, 3;\nmad.lo.u32 %%r21, %%r20, 16, %%r21;\n"
                    "stmatrix.sync.aligned.m8n8.%s%s.shared.b16 [%%r21], ",
                    numbers[n], trans);
    append_fragment(p, 1u << n);
    protocol_append(p, ";\nbar.sync 0;\n");
    for (unsigned i = 0; i < 16; i++)
        protocol_append(p, "ld.shared.u32 %%r20, [%%r3+%u];\nst.global.u32 [%%d2+%u], %%r20;\n",
                        4 * i, 4 * i);
}

static void list_matrices(struct protocol_list *list)
{
    for (unsigned n = 0; n < 3; n++) {
        add_matrix_load(list, n, "");
        add_matrix_load(list, n, ".trans");
        add_matrix_store(list, n, "");
        add_matrix_store(list, n, ".trans");
    }
}

/* ---- cp.async ---- */

/* Of `size` bytes, 0 … size come from memory, as the lane's word says, and the rest are zeros;
 * twice, for sizes out of a register and for constants. */
static void add_filled(struct protocol_list *list, const char *how, unsigned size)
{
    char name[96];
    snprintf(name, sizeof name, "cp.async.%s of %u bytes, filled with zeros", how, size);
    struct protocol *p = add(list, name);
    protocol_append(p,
                    "ld.shared.u32 %%r20, [%%r3+8];\nshr.u32 %%r21, %%r20, 7;\n"
                    "xor.b32 %%r20, %%r20, %%r21;\nadd.u32 %%r20, %%r20, %%r0;\n"
                    "rem.u32 %%r20, %%r20, %u;\n"
                    "cp.async.%s.shared.global [%%r3], [%%d5+16], %u, %%r20;\n"
                    "cp.async.%s.shared.global [%%r3+16], [%%d5+32], %u, 0;\n"
                    "cp.async.%s.shared.global [%%r3+32], [%%d5+48], %u, %u;\n"
                    "cp.async.wait_all;\n",
                    size + 1, how, size, how, size, how, size, size - 1);
    for (unsigned i = 0; i < 16; i++)
        protocol_append(p, "ld.shared.u32 %%r20, [%%r3+%u];\nst.global.u32 [%%d2+%u], %%r20;\n",
                        4 * i, 4 * i);
}

void protocol_list_lanes(struct protocol_list *list)
{
    list_shuffles(list);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        add_part(list, &steps[i]);
    list_matrices(list);
    for (unsigned size = 4; size <= 16; size *= 2)
        add_filled(list, "ca", size);
    add_filled(list, "cg", 16);
}
