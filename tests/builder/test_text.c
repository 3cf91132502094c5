/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text byte for byte: golden files, the same in every process, thread and locale.
 * `test_builder_text write` writes the golden files anew.
 */
#include "kernels.h"
#include "support.h"
#include "tests/comma_locale.h"
#include "tests/emitted.h"
#include "tests/share.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLAIN, ANNOTATED, FORMS };
static const unsigned form_flags[FORMS] = {0, PTX_TEXT_ANNOTATE};
static char *golden[SAMPLES][FORMS];

static void golden_path(char *path, size_t size, int sample, int form)
{
    snprintf(path, size, "%s/%s%s.ptx", GOLDEN_DIR, samples[sample].name,
             form == ANNOTATED ? ".annotated" : "");
}

static char *read_all(FILE *f)
{
    size_t length = 0, capacity = 1 << 16;
    char *text = malloc(capacity);
    for (size_t n; (n = fread(text + length, 1, capacity - length - 1, f)); length += n)
        if (capacity - length - n < 2)
            text = realloc(text, capacity *= 2);
    text[length] = 0;
    return text;
}

static int read_goldens(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++)
        for (int form = 0; form < FORMS; form++) {
            char path[512];
            golden_path(path, sizeof path, i, form);
            FILE *f = fopen(path, "rb");
            if (!f)
                return -1;
            golden[i][form] = read_all(f);
            fclose(f);
        }
    return 0;
}

static int free_goldens(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++)
        for (int form = 0; form < FORMS; form++)
            free(golden[i][form]);
    return 0;
}

/* Builds a sample and hands its text over; false when the builder fails. */
static bool with_text(int sample, int form, void (*use)(const char *text, void *ctx), void *ctx)
{
    ptx_module *m = samples[sample].build(NULL);
    const char *text;
    size_t length = 0;
    bool good = ptx_module_text(m, form_flags[form], &text, &length, NULL) == PTXGEN_OK &&
                strlen(text) == length;
    if (good)
        use(text, ctx);
    ptx_module_destroy(m);
    return good;
}

static void compare(const char *text, void *ctx)
{
    struct {
        const char *golden;
        bool same;
    } *c = ctx;
    c->same = !strcmp(text, c->golden);
}

static bool is_golden(int sample, int form)
{
    struct {
        const char *golden;
        bool same;
    } c = {golden[sample][form], false};
    return with_text(sample, form, compare, &c) && c.same;
}

/* How many of the samples' texts differ from the golden files. */
static int differences(void)
{
    int different = 0;
    for (int i = 0; i < SAMPLES; i++)
        for (int form = 0; form < FORMS; form++)
            different += !is_golden(i, form);
    return different;
}

/* ---- golden files ---- */

static void write_out(const char *text, void *file)
{
    fputs(text, file);
}

static int write_goldens(void)
{
    for (int i = 0; i < SAMPLES; i++)
        for (int form = 0; form < FORMS; form++) {
            char path[512];
            golden_path(path, sizeof path, i, form);
            FILE *f = fopen(path, "wb");
            if (!f || !with_text(i, form, write_out, f) || fclose(f))
                return 1;
        }
    return 0;
}

static void text_equals_the_golden_files(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++)
        for (int form = 0; form < FORMS; form++)
            if (!is_golden(i, form))
                fail_msg("%s, form %d, differs from its golden file", samples[i].name, form);
}

static void annotations_change_nothing_but_comments(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        const char *plain = golden[i][PLAIN];
        for (const char *line = golden[i][ANNOTATED]; *line;) {
            size_t length = strcspn(line, "\n") + 1;
            size_t plain_length = strcspn(plain, "\n") + 1;
            if (length == plain_length && !strncmp(line, plain, length))
                plain += plain_length;
            else
                assert_true(length == 1 || !strncmp(line, "\t// ", 4));
            line += length;
        }
        assert_int_equal(*plain, 0);
    }
}

static void texts_are_ascii(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++)
        for (const char *c = golden[i][ANNOTATED]; *c; c++)
            assert_true(*c == '\n' || *c == '\t' || (*c >= ' ' && *c <= '~'));
}

static void golden_files_assemble(void **state)
{
    (void)state;
    skip_without_ptxas();
    for (int i = 0; i < SAMPLES; i++)
        for (int form = 0; form < FORMS; form++) {
            char path[512], command[1024];
            golden_path(path, sizeof path, i, form);
            snprintf(command, sizeof command, "'%s' -arch=%s '%s' -o /dev/null", ptxas_path(),
                     samples[i].arch, path);
            if (system(command) != 0)
                fail_msg("ptxas refuses %s", path);
        }
}

/* ---- the same everywhere ---- */

enum { FORKS = 250, EXECS = 250, THREADS = 8, PER_THREAD = 50, PER_LOCALE = 50 };

static void count_child(pid_t child, int *bad)
{
    int status = -1;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    *bad += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void text_is_the_same_in_500_processes(void **state)
{
    (void)state;
    int bad = 0;
    for (int i = 0; i < test_share(FORKS); i++) {
        pid_t child = fork();
        if (!child)
            _exit(differences() != 0);
        count_child(child, &bad);
    }
    for (int i = 0; i < test_share(EXECS); i++) {
        pid_t child = fork();
        if (!child) {
            execl("/proc/self/exe", "test_builder_text", "compare", (char *)NULL);
            _exit(2);
        }
        count_child(child, &bad);
    }
    assert_int_equal(bad, 0);
}

static void *emit_in_thread(void *bad)
{
    for (int i = 0; i < test_share(PER_THREAD); i++)
        *(int *)bad += differences();
    return NULL;
}

static void text_is_the_same_in_400_emissions_by_8_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int bad[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, emit_in_thread, &bad[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(bad[i], 0);
    }
}

static void text_is_the_same_under_a_decimal_comma(void **state)
{
    (void)state;
    char folder[COMMA_LOCALE_FOLDER];
    assert_true(comma_locale_make(folder));
    assert_true(comma_locale_enter());
    for (int i = 0; i < PER_LOCALE; i++)
        assert_int_equal(differences(), 0);
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel_begin(m, "gr\xf6\xdf"
                        "e"); /* letters there */
    assert_int_equal(ptx_module_status(m, NULL), PTXGEN_ERROR_STRUCTURE);
    ptx_module_destroy(m);
    assert_true(comma_locale_remove(folder));
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "write"))
        return write_goldens();
    if (argc > 1 && !strcmp(argv[1], "compare"))
        return read_goldens(NULL) != 0 || differences() != 0 || free_goldens(NULL) != 0;
    const struct CMUnitTest tests[] = {
        TEST(text_equals_the_golden_files),
        TEST(annotations_change_nothing_but_comments),
        TEST(texts_are_ascii),
        TEST(golden_files_assemble),
        TEST(text_is_the_same_in_500_processes),
        TEST(text_is_the_same_in_400_emissions_by_8_threads),
        TEST(text_is_the_same_under_a_decimal_comma),
    };
    return cmocka_run_group_tests(tests, read_goldens, free_goldens);
}
