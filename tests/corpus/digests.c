/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a digest of what each spec of a list emits, before the spec, one a line. Two builds, by
 * other compilers or of other sources, emit the same where they print the same:
 *
 *     digests [--code] SPECS [THREADS]
 *
 * With --code two builds print the same where their texts differ in comments and names alone.
 */
#include "corpus.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    enum corpus_part part = CORPUS_TEXT;
    if (argc > 1 && strcmp(argv[1], "--code") == 0) {
        part = CORPUS_CODE;
        argv[1] = argv[0];
        argv++;
        argc--;
    }
    if (argc < 2 || argc > 3)
        return fprintf(stderr, "usage: %s [--code] SPECS [THREADS]\n", argv[0]), 2;
    struct corpus corpus = corpus_read(argv[1]); /* as the command reads options: in the C locale */
    setlocale(LC_ALL, "");
    struct digest *digests = calloc(corpus.count, sizeof *digests);
    unsigned threads = argc == 3 ? (unsigned)atoi(argv[2]) : 1;
    bool done = digests && corpus_emit_all(&corpus, part, threads, false, digests);
    for (size_t i = 0; done && i < corpus.count; i++)
        printf("%s %s\n", digests[i].hex, corpus.specs[i].line);
    free(digests);
    corpus_free(&corpus);
    return fflush(stdout) || !done;
}
