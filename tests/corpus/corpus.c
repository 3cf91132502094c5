/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus.h"

#include "code.h"
#include "src/cli/options.h"
#include "tests/share.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

enum { MOST_WORDS = 64 };

static error_t parse_one_entry(int key, char *arg, struct argp_state *state)
{
    struct corpus_spec *spec = state->input;
    if (key != OPTION_ROWS)
        return ARGP_ERR_UNKNOWN;
    parse_rows(state, arg, 1, &spec->m, 1);
    return 0;
}

static const struct argp_option one_entry_options[] = {
    {.name = "m", .key = OPTION_ROWS, .arg = "M", .doc = "The entry for so many rows alone"},
    {0},
};

/* As `ptxgen emit` reads it. */
static void parse(struct corpus_spec *spec)
{
    static const struct argp argp = {.options = one_entry_options, .parser = parse_one_entry};
    const struct family_arguments arguments = {
        .command = &argp, .input = spec, .shared = &target_argp, .shared_input = &spec->target};
    char name[] = "corpus", *words[MOST_WORDS] = {name}, *rest = NULL;
    char *copy = strdup(spec->line);
    int count = 1;
    for (char *word = copy ? strtok_r(copy, " ", &rest) : NULL; word && count < MOST_WORDS - 1;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    spec->target = default_target();
    spec->family = parse_family(count, words, &arguments, &spec->options);
    free(copy);
}

static void fail_to_read(const char *path, const char *why)
{
    fprintf(stderr, "corpus: %s: %s\n", path, why);
    exit(1);
}

struct corpus corpus_read(const char *path)
{
    struct corpus corpus = {0};
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        fail_to_read(path, "cannot be opened");
    for (int number = 0; getline(&line, &size, file) > 0; number++) {
        if (!test_in_share(number))
            continue;
        struct corpus_spec *more = realloc(corpus.specs, (corpus.count + 1) * sizeof *corpus.specs);
        if (!more)
            fail_to_read(path, "no memory");
        corpus.specs = more;
        line[strcspn(line, "\n")] = 0;
        more[corpus.count] = (struct corpus_spec){.line = strdup(line)};
        parse(&more[corpus.count++]);
    }
    free(line);
    if (ferror(file) || !corpus.count)
        fail_to_read(path, "has no spec that can be read");
    fclose(file);
    return corpus;
}

void corpus_free(struct corpus *corpus)
{
    for (size_t i = 0; i < corpus->count; i++) {
        free(corpus->specs[i].line);
        free(corpus->specs[i].options);
    }
    free(corpus->specs);
    *corpus = (struct corpus){0};
}

/* ---- emission ---- */

static ptxgen_status add_text(ptx_module *module, unsigned flags, struct blake2b *hash,
                              ptxgen_error *err)
{
    const char *text;
    size_t length;
    ptxgen_status status = ptx_module_text(module, flags, &text, &length, err);
    if (status == PTXGEN_OK)
        blake2b_add(hash, text, length);
    return status;
}

static ptxgen_status add_code(ptx_module *module, struct blake2b *hash, ptxgen_error *err)
{
    const char *text;
    size_t length;
    ptxgen_status status = ptx_module_text(module, 0, &text, &length, err);
    if (status != PTXGEN_OK)
        return status;
    char *code = code_of(text);
    if (!code)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the code of a text");
    blake2b_add(hash, code, strlen(code));
    free(code);
    return PTXGEN_OK;
}

ptxgen_status corpus_emit(const struct corpus_spec *spec, enum corpus_part part,
                          struct digest *digest, ptxgen_error *err)
{
    enum { BYTES = DIGEST_HEX / 2 };
    struct blake2b hash;
    unsigned char bytes[BYTES];
    ptx_module *module = ptx_module_create(&spec->target.ptx, NULL);
    if (!module)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a module");
    blake2b_begin(&hash, BYTES);
    ptxgen_status status = family_emit(spec->options, &spec->target, spec->m, module, err);
    if (status == PTXGEN_OK)
        status =
            part == CORPUS_CODE ? add_code(module, &hash, err) : add_text(module, 0, &hash, err);
    if (status == PTXGEN_OK && part == CORPUS_TEXT)
        status = add_text(module, PTX_TEXT_ANNOTATE, &hash, err);
    ptx_module_destroy(module);
    blake2b_end(&hash, bytes);
    for (int i = 0; i < BYTES; i++)
        snprintf(&digest->hex[2 * i], 3, "%02x", bytes[i]);
    return status;
}

struct emission {
    const struct corpus *corpus;
    enum corpus_part part;
    struct digest *digests;
    bool backwards;
    atomic_size_t next;
    atomic_bool failed;
};

static void *emit_in_turn(void *state)
{
    struct emission *e = state;
    for (size_t i; (i = atomic_fetch_add(&e->next, 1)) < e->corpus->count;) {
        size_t at = e->backwards ? e->corpus->count - 1 - i : i;
        ptxgen_error err = {0};
        if (corpus_emit(&e->corpus->specs[at], e->part, &e->digests[at], &err) == PTXGEN_OK)
            continue;
        fprintf(stderr, "corpus: %s: %s\n", e->corpus->specs[at].line, err.message);
        atomic_store(&e->failed, true);
    }
    return NULL;
}

bool corpus_emit_all(const struct corpus *corpus, enum corpus_part part, unsigned threads,
                     bool backwards, struct digest *digests)
{
    enum { MOST_THREADS = 16 };
    struct emission e = {
        .corpus = corpus, .part = part, .digests = digests, .backwards = backwards};
    pthread_t others[MOST_THREADS];
    unsigned started = 0;
    while (started + 1 < threads && started < MOST_THREADS &&
           !pthread_create(&others[started], NULL, emit_in_turn, &e))
        started++;
    emit_in_turn(&e);
    for (unsigned i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    return !atomic_load(&e.failed);
}
