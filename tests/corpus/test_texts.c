/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The corpus's texts are the same however they come about: again, in another order, on threads, in
 * another locale, in another process. Another compiler's are compared by .ci/test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "corpus.h"
#include "tests/comma_locale.h"

static struct corpus corpus;
static struct digest *first, *again;
static char locale_folder[COMMA_LOCALE_FOLDER];

/* ---- what is compared ---- */

static int emit_all_once(void **state)
{
    (void)state;
    corpus = corpus_read(SPECS);
    first = calloc(corpus.count, sizeof *first);
    again = calloc(corpus.count, sizeof *again);
    return !first || !again || !corpus_emit_all(&corpus, CORPUS_TEXT, 1, false, first) ||
           !comma_locale_make(locale_folder);
}

static int remove_all(void **state)
{
    (void)state;
    free(first);
    free(again);
    corpus_free(&corpus);
    return comma_locale_remove(locale_folder) ? 0 : -1;
}

static void assert_the_same(void)
{
    for (size_t i = 0; i < corpus.count; i++)
        if (strcmp(first[i].hex, again[i].hex))
            fail_msg("another text: %s", corpus.specs[i].line);
}

/* ---- claims ---- */

static void emitted_on_threads(void **state)
{
    (void)state;
    assert_true(corpus_emit_all(&corpus, CORPUS_TEXT, 4, false, again));
    assert_the_same();
}

static void emitted_again_in_another_order_and_locale(void **state)
{
    (void)state;
    assert_true(comma_locale_enter());
    bool done = corpus_emit_all(&corpus, CORPUS_TEXT, 1, true, again);
    setlocale(LC_ALL, "C");
    assert_true(done);
    assert_the_same();
}

/* Which has other addresses, other contents of fresh memory, an environment of another size. */
static void emitted_by_another_process(void **state)
{
    (void)state;
    char line[1024], digest[DIGEST_HEX + 1], spec[sizeof line];
    size_t i = 0;
    FILE *other = popen("LC_ALL=comma MALLOC_PERTURB_=165 PADDING=$(printf %4000s) '" DIGESTS
                        "' '" SPECS "' 2",
                        "r");
    assert_non_null(other);
    while (fgets(line, sizeof line, other) && i < corpus.count) {
        assert_int_equal(sscanf(line, "%64s %[^\n]", digest, spec), 2);
        assert_string_equal(spec, corpus.specs[i].line);
        memcpy(again[i++].hex, digest, sizeof digest);
    }
    assert_int_equal(pclose(other), 0);
    assert_int_equal(i, corpus.count);
    assert_the_same();
}

/* Two specs may share a text, as targets of one kind do in all but a line; not all of them. */
static void most_texts_differ(void **state)
{
    (void)state;
    size_t different = 0;
    for (size_t i = 0; i < corpus.count; i++) {
        size_t j = 0;
        while (strcmp(first[i].hex, first[j].hex))
            j++;
        different += i == j;
    }
    assert_true(different * 10 > corpus.count * 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emitted_on_threads),
        cmocka_unit_test(emitted_again_in_another_order_and_locale),
        cmocka_unit_test(emitted_by_another_process),
        cmocka_unit_test(most_texts_differ),
    };
    return cmocka_run_group_tests_name("the corpus's texts are the same when", tests, emit_all_once,
                                       remove_all);
}
