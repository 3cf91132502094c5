/* SPDX-License-Identifier: Apache-2.0 */
/* Where bench has no time of its peer, lines and JSON say why: each way in which there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command.h"

#include <cJSON.h>
#include <stdlib.h>
#include <string.h>

/* Of a device that passes for a card with 16 multiprocessors. */
static struct outcome bench(const char *family, const char *option, const char *value,
                            const char *more)
{
    const char *argv[20] = {DEFERRED_COMMAND, "bench", family, "--k", "256", "--n", "64",
                            "--device", "gpu:3", "--replays", "1", "--launches", "1", option};
    int count = 14;
    if (value)
        argv[count++] = value;
    if (more)
        argv[count++] = more;
    struct outcome o = run_program(argv);
    assert_exit(&o, 0);
    return o;
}

static const struct row {
    const char *family, *option, *value;
    const char *failing; /* FAKE_CUBLAS */
    const char *why;     /* of the whole peer; NULL: it was opened */
    const char *missing; /* of the row; NULL: it was timed, or there is no peer */
} rows[] = {
    {"rmsnorm_q4k", "--no-peer", NULL, NULL, "not asked for", NULL},
    {"w8a8", "--no-peer", NULL, NULL, "not asked for", NULL},
    {"rmsnorm_q4k", "--cublas", "/nonexistent/libcublas.so", NULL, "not found (/nonexistent/", NULL},
    {"w8a8", "--cublas", "/nonexistent/libcublasLt.so", NULL, "not found (/nonexistent/", NULL},
    {"w8a8", "--cublas", FAKE_CUBLAS_LIBRARY, NULL, "the library has no cublasLt", NULL},
    {"rmsnorm_q4k", "--cublas", FAKE_CUBLAS_LIBRARY, "create",
     "does not start (cuBLAS status 13)", NULL},
    {"rmsnorm_q4k", "--cublas", FAKE_CUBLAS_LIBRARY, "stream",
     "does not start (cuBLAS status 13)", NULL},
    {"rmsnorm_q4k", "--cublas", FAKE_CUBLAS_LIBRARY, "workspace",
     "does not start (cuBLAS status 13)", NULL},
    {"rmsnorm_q4k", "--cublas", FAKE_CUBLAS_LIBRARY, "gemm", NULL,
     "cublasGemmEx failed with status 13"},
    {"rmsnorm_q4k", "--cublas", FAKE_CUBLAS_LIBRARY, "", NULL, NULL},
};

static void check_lines(const struct row *row, const char *out, const char *err)
{
    const char *peer = strstr(out, "\npeer: "), *time = strstr(out, "\n  peer ");
    assert_non_null(peer);
    assert_contains(peer, row->why ? row->why : "cuBLAS, f16 or bf16 weights (");
    assert_int_equal(!time, row->why != NULL);
    if (row->missing) {
        assert_contains(time, "not timed: ");
        assert_contains(time, row->missing);
        assert_contains(err, "the peer was not timed: ");
    } else if (!row->why) {
        assert_contains(time, " us  (");
    }
}

static void check_json(const struct row *row, const char *out)
{
    cJSON *json = cJSON_Parse(out);
    assert_non_null(json);
    const char *peer = cJSON_GetStringValue(cJSON_GetObjectItem(json, "peer"));
    assert_non_null(peer);
    assert_contains(peer, row->why ? row->why : "cuBLAS, f16 or bf16 weights (");
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "rows"), 0);
    const char *missing = cJSON_GetStringValue(cJSON_GetObjectItem(first, "peer_missing"));
    assert_int_equal(cJSON_HasObjectItem(first, "peer"), !row->why && !row->missing);
    assert_int_equal(!missing, !row->missing);
    if (missing)
        assert_contains(missing, row->missing);
    cJSON_Delete(json);
}

static void a_peer_without_a_time_has_its_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        setenv("FAKE_CUBLAS", row->failing ? row->failing : "", 1);
        struct outcome o = bench(row->family, row->option, row->value, NULL);
        check_lines(row, o.out, o.err);
        outcome_free(&o);
        if (i < 3 || row->missing || !row->why) { /* the others' string is the same */
            o = bench(row->family, row->option, row->value, "--json");
            check_json(row, o.out);
            outcome_free(&o);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_without_a_time_has_its_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
