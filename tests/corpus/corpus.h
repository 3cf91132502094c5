/* SPDX-License-Identifier: Apache-2.0 */
/* The specs that `specs` lists, and digests of what they emit. */
#ifndef PTXGEN_TESTS_CORPUS_H
#define PTXGEN_TESTS_CORPUS_H

#include "src/cli/family.h"
#include "src/runtime/blake2b.h"

struct corpus_spec {
    char *line; /* FAMILY OPTION... --target SM */
    const struct family *family;
    struct family_options *options;
    ptxgen_target target;
    uint32_t m; /* 0: entries for all rows */
};

/* Specs of a file, one a line, that are in the share of tests/share.h. */
struct corpus {
    struct corpus_spec *specs;
    size_t count;
};
/* Ends the process, with a sentence, where the file or a line of it cannot be read. */
struct corpus corpus_read(const char *path);
void corpus_free(struct corpus *corpus);

/* What of a text a digest is of. */
enum corpus_part {
    CORPUS_TEXT, /* the plain text and the annotated one */
    CORPUS_CODE, /* what code.h leaves of the plain one: no comments and no names */
};

/*
 * Emits the spec into a module of its own, for a digest of the part. Any number of threads may do
 * so at once.
 */
ptxgen_status corpus_emit(const struct corpus_spec *spec, enum corpus_part part,
                          struct digest *digest, ptxgen_error *err);

/*
 * All of them, on so many threads, which take turns from the list's end or its beginning. False,
 * with a sentence on stderr, if one fails.
 */
bool corpus_emit_all(const struct corpus *corpus, enum corpus_part part, unsigned threads,
                     bool backwards, struct digest *digests);

#endif
