/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memo: which text an emission gives, for those who would rather not emit. As text:
 *
 *     ptxgen-memo: 1
 *     revision: …                            of the family's sources
 *     family: marlin, plan version 10
 *     …                                      the origin of machine code, as in its manifest
 *     m 1-16: tile_m=16 warp_n=64 wn=2 …     the tiles, where tuning chose them
 *     ptx: HASH, N bytes
 *     entry: marlin_m16, N shared bytes      in the order of emission
 *     memo: CHECKSUM
 *
 * The lines before "ptx:" are the question, whose hash is the memo's name; the others answer it.
 * The answer is the last line of the head of the entry's manifest, and so leads to the entry's key.
 */
#ifndef PTXGEN_RUNTIME_CACHE_MEMO_H
#define PTXGEN_RUNTIME_CACHE_MEMO_H

#include "src/runtime/cache_folder.h"
#include "src/runtime/loaded.h"
#include "src/runtime/manifest.h"
#include "src/runtime/tuning.h"

#define MEMO_SUFFIX ".memo"

/* False when there is no revision, or it does not fit. `ranges` are those that the plan goes by. */
bool memo_question_make(const ptxgen_family *family, const struct origin *origin,
                        const ptxgen_tuned_range *ranges, size_t count,
                        struct keyed_text *question);

struct memo_answer {
    struct ptx_digest ptx;
    struct entry_points entries;
};
/* The whole memo; NUL-terminated, malloc'ed; NULL without memory, or when it is too long. */
char *memo_make(const char *question, size_t length, const struct memo_answer *answer);
/*
 * READING_WHOLE, with the answer, whose entries are the caller's to free, when the text is, to the
 * byte, what memo_make writes for the question of that key; otherwise *why is why not, a clause.
 */
enum reading memo_read(const char *key, const char *text, size_t size, struct memo_answer *answer,
                       const char **why);

#endif
