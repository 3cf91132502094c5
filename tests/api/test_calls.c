/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every exported function, called with NULL, with zeroed memory and with memory of 0xFF bytes:
 * nothing crashes, what returns a status refuses with a documented one and a sentence in UTF-8,
 * which sentences.h has to the letter, and who is given NULL says PTXGEN_ERROR_INVALID_ARGUMENT.
 * calls.py writes the calls from the headers.
 */
#include "tests/status.h"

#include <ptxgen/accuracy.h>
#include <ptxgen/dense.h>
#include <ptxgen/device.h>
#include <ptxgen/dispatch.h>
#include <ptxgen/driver.h>
#include <ptxgen/emulator.h>
#include <ptxgen/gguf.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/gguf_matvec.h>
#include <ptxgen/gguf_types.h>
#include <ptxgen/linear.h>
#include <ptxgen/marlin_repack.h>
#include <ptxgen/pack.h>

#include <ptxgen/ptx.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/quantise.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/tune.h>
#include <ptxgen/version.h>
#include <ptxgen/w8a8.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 1 << 16, MOST_BLOCKS = 16 };

enum passing { PASS_NULL, PASS_ZEROS, PASS_ONES, PASSINGS };
static const char *const passing_names[] = {"NULL", "zeroed memory", "0xFF bytes"};

struct how {
    enum passing passing;
    int fill; /* 0, or 0xFF */
    ptxgen_error *err;
    ptx_module *module; /* NULL where NULL is passed */
    ptx_kernel *kernel;
    void *blocks[MOST_BLOCKS];
    unsigned used;
    void **place;         /* for an object that is made */
    ptxgen_status status; /* what came back */
    const void *pointer;
};

struct call {
    const char *name;
    void (*make)(struct how *how);
    bool has_status, takes_error;
};

/* ---- arguments ---- */

static void *block(struct how *h, size_t size, int fill)
{
    if (h->passing == PASS_NULL)
        return NULL;
    assert_true(h->used < MOST_BLOCKS);
    void *bytes = malloc(size);
    memset(bytes, fill, size);
    return h->blocks[h->used++] = bytes;
}

static void *zeros(struct how *h, size_t size)
{
    return block(h, size, 0);
}

static void *bytes(struct how *h, size_t size)
{
    return block(h, size, h->fill);
}

/* Where a pointer is put. */
static void *place(struct how *h)
{
    return h->place = block(h, sizeof *h->place, 0);
}

/* A structure passed by value has bytes even where NULL is passed. */
static const void *value(const void *of, size_t size, struct how *h)
{
    if (of)
        return of;
    assert_true(h->used < MOST_BLOCKS);
    return h->blocks[h->used++] = calloc(1, size);
}

static const char *text(const struct how *h)
{
    return h->passing == PASS_NULL ? NULL : h->fill ? "\xFF\xFE%s%n" : "";
}

#include "calls.inc"

/* ---- what may come back ---- */

/* What may be passed: because all of it is allowed, or because there is nothing to refuse. */
static const struct exception {
    const char *name;
    bool passings[PASSINGS];
} accepted[] = {
    {"ptx_module_check", {false, true, true}}, /* of the live module */
    {"ptx_module_kernel_section", {false, true, false}},
    {"ptx_module_status", {false, true, true}},
    {"ptxgen_cache_open", {false, true, true}},       /* the default options */
    {"ptxgen_gguf_decode_row", {false, true, false}}, /* no weights */
    {"ptxgen_gguf_quantise_row", {false, true, false}},
    {"ptxgen_gguf_row_bytes", {false, true, false}},
    {"ptxgen_pack_builder_create", {false, true, true}},
    {"ptxgen_sparse24_compress", {false, true, false}}, /* no rows */
    {"ptxgen_sparse24_convert", {false, true, false}},
    {"ptxgen_sparse24_decompress", {false, true, false}},
    {"ptxgen_sparse24_dense_bytes", {false, true, false}},
    {"ptxgen_sparse24_metadata_bytes", {false, true, false}},
    {"ptxgen_sparse24_pack", {false, true, false}},
    {"ptxgen_sparse24_packed_bytes", {false, true, false}},
    {"ptxgen_sparse24_prune", {false, true, false}},
    {"ptxgen_sparse24_repack_verdict", {false, true, false}},
    {"ptxgen_sparse24_validate", {false, true, false}},
    {"ptxgen_tuning_load", {false, true, true}}, /* nothing, for a device of any name */
    {"ptxgen_w8a8_pack", {false, true, false}},
    {"ptxgen_w8a8_pair", {false, true, false}},
    {"ptxgen_w8a8_row_sums", {false, true, false}},
};

/* Of these the caller alone knows how long the arrays are, or what the status should be. */
static bool promises_more(const char *name, enum passing passing)
{
    static const char *const unbounded[] = {
        "ptxgen_element_load",      "ptxgen_element_store", "ptxgen_gguf_parse",
        "ptxgen_safetensors_parse", "ptxgen_w8a8_pack",     "ptxgen_w8a8_row_sums"};
    for (size_t i = 0; i < sizeof unbounded / sizeof *unbounded; i++)
        if (passing == PASS_ONES && !strcmp(unbounded[i], name))
            return true;
    return !strcmp(name, "ptxgen_fail") || !strcmp(name, "ptxgen_driver_fail");
}

static bool may_succeed(const char *name, enum passing passing)
{
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++)
        if (!strcmp(accepted[i].name, name) && accepted[i].passings[passing])
            return true;
    return false;
}

/* The driver's names and the caller's may be anything; the sentence is UTF-8 without controls. */
static bool is_text(const char *s)
{
    const unsigned char *at = (const unsigned char *)s;
    for (; *at; at++)
        if (*at == 0xFF || *at == 0xFE || (*at < ' ' && *at != '\n' && *at != '\t'))
            return false;
    return true;
}

/* ---- the sentences ---- */

enum {
    NO = 1 << PASS_NULL,
    ZEROS = 1 << PASS_ZEROS,
    ONES = 1 << PASS_ONES,
    ANY = NO | ZEROS | ONES
};

static const struct sentence {
    const char *name;
    int passings;
    ptxgen_status status;
    const char *says;
} sentences[] = {
#define ROW(name, passings, status, says) {#name, passings, PTXGEN_ERROR_##status, says},
#include "sentences.h"
#undef ROW
};

/* Why a library cannot be opened is for the loader to say. */
static bool is_the_systems(const char *name, enum passing passing)
{
    return !strcmp(name, "ptxgen_driver_open") && passing != PASS_NULL;
}

static int check_sentence(const struct call *call, const struct how *h)
{
    if (h->status == PTXGEN_OK || !call->takes_error || is_the_systems(call->name, h->passing))
        return 0;
    const char *due = "a row of sentences.h";
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
        if (!strcmp(sentences[i].name, call->name) && sentences[i].passings >> h->passing & 1) {
            due = sentences[i].says;
            if (h->status == sentences[i].status && !strcmp(h->err->message, due))
                return 0;
        }
    print_error("%s with %s: %s, '%s'; due is '%s'\n", call->name, passing_names[h->passing],
                ptxgen_status_name(h->status), h->err->message, due);
    return 1;
}

static char current[128]; /* for a debugger */

static int check_call(const struct call *call, struct how *h)
{
    if (promises_more(call->name, h->passing))
        return 0;
    bool documented = strcmp(ptxgen_status_name(h->status), "PTXGEN_ERROR_UNKNOWN") != 0;
    if (!call->has_status || (h->status == PTXGEN_OK && may_succeed(call->name, h->passing)))
        return 0;
    bool good = documented && h->status != PTXGEN_OK;
    if (h->passing == PASS_NULL)
        good = good && h->status == PTXGEN_ERROR_INVALID_ARGUMENT;
    if (call->takes_error)
        good =
            good && h->err->status == h->status && h->err->message[0] && is_text(h->err->message);
    if (good)
        return check_sentence(call, h);
    print_error("%s with %s: status %d, '%s'\n", call->name, passing_names[h->passing],
                (int)h->status, call->takes_error ? h->err->message : "");
    return 1;
}

static int try_call(const struct call *call, enum passing passing)
{
    const ptx_target target = {.sm = 90, .suffix = 'a'};
    ptxgen_error err = {.status = PTXGEN_OK};
    struct how h = {.passing = passing, .fill = passing == PASS_ONES ? 0xFF : 0, .err = &err};
    ptx_module *module = ptx_module_create(&target, NULL);
    if (passing != PASS_NULL) {
        h.module = module;
        h.kernel = ptx_kernel_begin(module, "k");
    }
    if (!promises_more(call->name, passing))
        call->make(&h);
    int wrong = check_call(call, &h);
    if (!strcmp(call->name, "ptxgen_cache_open") && h.place)
        ptxgen_cache_close(*h.place);
    if (!strcmp(call->name, "ptxgen_pack_builder_create") && h.place)
        ptxgen_pack_builder_destroy(*h.place);
    if (!strcmp(call->name, "ptxgen_tuning_load") && h.place)
        ptxgen_tuning_free(*h.place);
    if (!strcmp(call->name, "ptx_module_create"))
        ptx_module_destroy((ptx_module *)(uintptr_t)h.pointer);
    while (h.used)
        free(h.blocks[--h.used]);
    ptx_module_destroy(module);
    return wrong;
}

static void every_function_refuses_what_no_call_should_pass(void **state)
{
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int passing = 0; passing < PASSINGS; passing++) {
            snprintf(current, sizeof current, "%s with %s", calls[i].name, passing_names[passing]);
            wrong += try_call(&calls[i], (enum passing)passing);
        }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_refuses_what_no_call_should_pass),
    };
    setenv("PTXGEN_CACHE_DIR", "/nonexistent/ptxgen", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
