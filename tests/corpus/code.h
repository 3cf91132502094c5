/* SPDX-License-Identifier: Apache-2.0 */
/* A PTX text without what does not change its machine code. */
#ifndef PTXGEN_TESTS_CORPUS_CODE_H
#define PTXGEN_TESTS_CORPUS_CODE_H

/*
 * The text without comments and blank lines, in which the names of entries, parameters, variables
 * and labels are numbers, in the order in which they first appear, parameters of each entry anew.
 * Texts that differ in these names and in comments alone give the same. The caller frees it; NULL
 * where memory has run out.
 */
char *code_of(const char *text);

#endif
