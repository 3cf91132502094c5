/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that the builder reads and writes, at their edges: each is found again in the text. */
#include "support.h"

#include <stdlib.h>

/* ---- texts ---- */

/* The text of one kernel of these calls, to be freed. */
static char *text_for(ptx_target target, build_function build)
{
    ptx_module *m = ptx_module_create(&target, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    ptx_kernel_reqntid(k, 128, 1, 1);
    build(k);
    ptx_kernel_end(k);
    const char *text;
    ptxgen_error err;
    assert_ok(ptx_module_text(m, 0, &text, NULL, &err), &err);
    char *copy = strdup(text);
    assert_non_null(copy);
    ptx_module_destroy(m);
    return copy;
}

/* What stands behind the next `words` from *at, which is set behind them. */
static const char *behind(const char **at, const char *words)
{
    const char *found = strstr(*at, words);
    if (!found)
        fail_msg("there is no \"%s\" in \"%.200s\"", words, *at);
    return *at = found + strlen(words);
}

/* ---- the operands of raw text ---- */

enum { MOST = 256 };
static unsigned given, named;
static const char *raw_text;

static void give(ptx_operand o[MOST + 1])
{
    for (unsigned i = 0; i <= MOST; i++)
        o[i] = ptx_imm_u32(1000 + i).o;
}

static void emit_each_slot(ptx_kernel *k)
{
    ptx_operand o[MOST + 1];
    ptx_u64 p = ptx_param_u64(k, "p");
    give(o);
    for (unsigned i = 1; i < MOST; i++) {
        char text[64];
        o[0] = (ptx_operand){.type = PTX_U32};
        snprintf(text, sizeof text, "add.u32 %%0, %%%u, %u%%%u", i, i, i);
        ptx_raw(k, text, 0, o, MOST, 1);
        ptx_st_global_u32(k, p, 0, (ptx_u32){o[0]});
    }
}

static void each_operand_of_raw_text_is_the_one_of_its_number(void **state)
{
    (void)state;
    char *text = text_for(sm_80, emit_each_slot);
    const char *at = text;
    for (unsigned i = 1; i < MOST; i++) {
        char *end;
        assert_int_equal(strtoul(behind(&at, "add.u32 %r"), &end, 10), 0);
        char want[64];
        snprintf(want, sizeof want, ", %u, %u%u;", 1000 + i, i, 1000 + i);
        if (strncmp(end, want, strlen(want)) != 0)
            fail_msg("operand %u is \"%.40s\", not \"%s\"", i, end, want);
    }
    free(text);
}

static void emit_raw(ptx_kernel *k)
{
    ptx_operand o[MOST + 1];
    give(o);
    ptx_raw(k, raw_text, 0, o, given, 0);
}

static void emit_named(ptx_kernel *k)
{
    char text[32];
    snprintf(text, sizeof text, "x %%%u", named);
    raw_text = text;
    emit_raw(k);
}

static void raw_text_names_no_operand_past_the_last(void **state)
{
    (void)state;
    static const unsigned counts[] = {0, 1, 2, 9, 10, 11, 19, 20, 99, 100, 101, 199, 200, 255, 256};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        given = counts[i];
        for (unsigned past = 0; past < 2; past++) {
            char number[16], operands[32];
            named = given + past;
            snprintf(number, sizeof number, "names %%%u,", named);
            snprintf(operands, sizeof operands, "but %u operands", given);
            refuses(emit_named, PTXGEN_ERROR_OPERAND, number, operands);
        }
        named = given - 1;
        if (given)
            accepts(emit_named);
    }
    given = MOST + 1;
    named = 0;
    refuses(emit_named, PTXGEN_ERROR_OPERAND, "at most 256 operands");
}

static void no_number_is_so_long_that_it_names_an_operand(void **state)
{
    (void)state;
    static const char *const texts[] = {"%999",
                                        "%1000",
                                        "%1001",
                                        "%9999",
                                        "%10000",
                                        "%65536",
                                        "%2147483648",
                                        "%4294967296",
                                        "%4294967297",
                                        "%9223372036854775808",
                                        "%18446744073709551616",
                                        "%18446744073709551617",
                                        "%1000000000000000000000000000000000000000000000000000000"};
    static const unsigned counts[] = {1, 12, 256};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            given = counts[c];
            raw_text = texts[i];
            refuses(emit_raw, PTXGEN_ERROR_OPERAND, "the raw text names %");
        }
}

/* With operands 1000 … 1255. */
static void other_text_is_copied_as_it_stands(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"%1%2", "10011002"},     {"%1,%2", "1001,1002"}, {"%007", "1007"},
        {"[%9+4]", "[1009+4]"},   {"%10.x", "1010.x"},    {"%12a", "1012a"},
        {"%", "%"},               {"a%", "a%"},           {"%%", "%%"},
        {"%%1", "%1001"},         {"% 1", "% 1"},         {"%-1", "%-1"},
        {"%laneid", "%laneid"},   {"%pm0", "%pm0"},       {"%envreg31", "%envreg31"},
        {"%clock64", "%clock64"}, {"%rx", "%rx"},         {"{%1, %255}", "{1001, 1255}"},
        {"1 2 3", "1 2 3"},       {"%+1", "%+1"},         {"%0x", "1000x"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char want[64];
        given = MOST;
        raw_text = rows[i][0];
        char *text = text_for(sm_80, emit_raw);
        snprintf(want, sizeof want, "\t%s;\n", rows[i][1]);
        if (!strstr(text, want))
            fail_msg("\"%s\" does not become \"%s\" in \"%s\"", rows[i][0], rows[i][1], text);
        free(text);
    }
}

static void registers_are_not_named_in_raw_text(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"p", "rs", "r", "rd", "rq"};
    static const char *const numbers[] = {"0", "9", "10", "255", "99999"};
    for (int p = 0; p < 5; p++)
        for (int n = 0; n < 5; n++) {
            char text[64], name[32];
            snprintf(name, sizeof name, "%%%s%s", prefixes[p], numbers[n]);
            snprintf(text, sizeof text, "mov.b32 %%0, %s", name);
            given = 1;
            raw_text = text;
            name[8] = 0; /* as much of it as the sentence shows */
            refuses(emit_raw, PTXGEN_ERROR_OPERAND, "names a register itself", name);
        }
}

/* ---- constants ---- */

/* Every power of two and of ten with its neighbours, and their negatives. */
static int edges(uint64_t *list)
{
    int count = 0;
    uint64_t ten = 1;
    for (int i = 0; i < 64; i++)
        for (int d = -1; d <= 1; d++)
            list[count++] = (UINT64_C(1) << i) + (uint64_t)(int64_t)d;
    for (int i = 0; i < 20; i++, ten *= 10)
        for (int d = -1; d <= 1; d++)
            list[count++] = ten + (uint64_t)(int64_t)d;
    for (int i = 0; i < 252; i++)
        list[count + i] = 0 - list[i];
    return count + 252;
}
enum { EDGES = 252 + 252 };

#define EMIT_EDGES(name, ctype)                                                                    \
    static void emit_##name(ptx_kernel *k)                                                         \
    {                                                                                              \
        uint64_t list[EDGES];                                                                      \
        for (int i = 0; i < edges(list); i++)                                                      \
            ptx_mov_##name(k, ptx_imm_##name((ctype)list[i]));                                     \
    }
EMIT_EDGES(u16, uint16_t)
EMIT_EDGES(s16, int16_t)
EMIT_EDGES(u32, uint32_t)
EMIT_EDGES(s32, int32_t)
EMIT_EDGES(u64, uint64_t)
EMIT_EDGES(s64, int64_t)

static float float_of(uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    float f;
    memcpy(&f, &word, sizeof f);
    return f;
}
static double double_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}
static void emit_f32(ptx_kernel *k)
{
    uint64_t list[EDGES];
    for (int i = 0; i < edges(list); i++)
        ptx_mov_f32(k, ptx_imm_f32(float_of(list[i])));
}
static void emit_f64(ptx_kernel *k)
{
    uint64_t list[EDGES];
    for (int i = 0; i < edges(list); i++)
        ptx_mov_f64(k, ptx_imm_f64(double_of(list[i])));
}

/* The bits of a constant as PTX spells it: 0f or 0d and all digits, 0x, or decimal. */
static uint64_t constant_at(const char *s, unsigned bits, char **end)
{
    if (s[0] == '0' && (s[1] == 'f' || s[1] == 'd')) {
        uint64_t value = strtoull(s + 2, end, 16);
        assert_int_equal(*end - (s + 2), bits / 4);
        return value;
    }
    if (s[0] == '0' && s[1] == 'x')
        return strtoull(s + 2, end, 16);
    return *s == '-' ? 0 - strtoull(s + 1, end, 10) : strtoull(s, end, 10);
}

static void every_constant_is_in_the_text_to_its_last_bit(void **state)
{
    (void)state;
    static const struct { build_function build; const char *mov; unsigned bits; } types[] = {
        {emit_u16, "mov.b16 %rs", 16}, {emit_s16, "mov.b16 %rs", 16}, {emit_u32, "mov.b32 %r", 32},
        {emit_s32, "mov.b32 %r", 32},  {emit_u64, "mov.b64 %rd", 64}, {emit_s64, "mov.b64 %rd", 64},
        {emit_f32, "mov.b32 %r", 32},  {emit_f64, "mov.b64 %rd", 64}};
    uint64_t list[EDGES];
    int count = edges(list);
    assert_int_equal(count, EDGES);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        char *text = text_for(sm_80, types[t].build), *end;
        const char *at = text;
        uint64_t mask = types[t].bits == 64 ? UINT64_MAX : (UINT64_C(1) << types[t].bits) - 1;
        for (int i = 0; i < count; i++) {
            at = strstr(at, "\tmov.");
            assert_non_null(at);
            at = strstr(at, ", ") + 2;
            uint64_t got = constant_at(at, types[t].bits, &end) & mask;
            if (got != (list[i] & mask) || *end != ';')
                fail_msg("%s: %#llx is \"%.30s\"", types[t].mov, (unsigned long long)list[i], at);
        }
        free(text);
    }
}

/* ---- offsets ---- */

static int32_t offset_at(int i)
{
    int32_t magnitude = i / 2 < 31 ? (int32_t)(UINT32_C(1) << i / 2) : INT32_MAX;
    return i % 2 ? -magnitude : magnitude;
}
enum { OFFSETS = 64 };

static void emit_offsets(ptx_kernel *k)
{
    ptx_u64 p = ptx_param_u64(k, "p");
    for (int i = 0; i < OFFSETS; i++)
        ptx_ld_global_u8(k, p, offset_at(i));
    ptx_ld_global_u8(k, p, INT32_MIN);
    ptx_ld_global_u8(k, p, 0);
}

static void offsets_keep_sign_and_size(void **state)
{
    (void)state;
    char *text = text_for(sm_80, emit_offsets), *end;
    const char *at = text;
    for (int i = 0; i <= OFFSETS; i++) {
        int64_t want = i < OFFSETS ? offset_at(i) : INT32_MIN;
        strtoul(behind(&at, "[%rd"), &end, 10);
        assert_int_equal(*end, '+');
        assert_int_equal(strtoll(end + 1, &end, 10), want);
        assert_int_equal(*end, ']');
    }
    strtoul(behind(&at, "[%rd"), &end, 10);
    assert_int_equal(*end, ']');
    free(text);
}

/* ---- many registers, labels, parameters ---- */

enum { LIVE = 1100 };

/* LIVE registers of each class that has instructions of its own, all live at once. */
static void emit_live(ptx_kernel *k)
{
    static ptx_u32 r[LIVE];
    static ptx_u64 d[LIVE];
    static ptx_u16 h[LIVE];
    static ptx_pred p[LIVE];
    ptx_u64 out = ptx_param_u64(k, "out");
    for (int i = 0; i < LIVE; i++) {
        r[i] = ptx_ld_global_u32(k, out, 4 * i);
        d[i] = ptx_ld_global_u64(k, out, 8 * i);
        h[i] = ptx_ld_global_u16(k, out, 2 * i);
        p[i] = ptx_setp_eq_u32(k, r[i], ptx_imm_u32((uint32_t)i));
    }
    for (int i = 0; i < LIVE; i++)
        ptx_guarded(k, p[i])
        {
            ptx_st_global_u32(k, out, 4 * i, r[i]);
            ptx_st_global_u64(k, out, 8 * i, d[i]);
            ptx_st_global_u16(k, out, 2 * i, h[i]);
        }
}

/* The register behind `words` at the end of a store of this offset is the one that was loaded. */
static void check_stored(const char *text, const char *type, const char *prefix, int size)
{
    const char *load = text, *store = text;
    char words[32];
    static bool seen[2 * LIVE];
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < LIVE; i++) {
        char *end;
        snprintf(words, sizeof words, "ld.global.%s %s", type, prefix);
        unsigned long loaded = strtoul(behind(&load, words), &end, 10);
        snprintf(words, sizeof words, "st.global.%s [%%rd", type);
        behind(&store, words);
        long offset = *store && strchr(store, '+') < strchr(store, ']')
                          ? strtol(strchr(store, '+') + 1, NULL, 10)
                          : 0;
        assert_int_equal(offset, i * size);
        unsigned long stored = strtoul(behind(&store, prefix), &end, 10);
        assert_int_equal(*end, ';');
        assert_int_equal(stored, loaded);
        assert_true(loaded < 2 * LIVE && !seen[loaded]);
        seen[loaded] = true;
    }
    snprintf(words, sizeof words, "%s<", prefix);
    unsigned long declared = strtoul(behind(&text, words), NULL, 10), used = 0;
    for (unsigned i = 0; i < 2 * LIVE; i++)
        if (seen[i])
            used = i + 1;
    assert_true(used <= declared && declared <= LIVE + 1); /* and the address */
}

static void a_thousand_live_registers_of_a_class_have_a_thousand_names(void **state)
{
    (void)state;
    char *text = text_for(sm_80, emit_live);
    check_stored(text, "u32", "%r", 4);
    check_stored(text, "u64", "%rd", 8);
    check_stored(text, "u16", "%rs", 2);
    free(text);
}

static char longest[256];

static void emit_labels(ptx_kernel *k)
{
    static ptx_label labels[LIVE];
    ptx_pred p = cta_condition(k);
    for (int i = 0; i < LIVE; i++)
        labels[i] = ptx_label_new(k, i % 2 ? longest : NULL);
    for (int i = 0; i < LIVE; i++)
        ptx_guarded(k, p) ptx_bra(k, labels[i]);
    for (int i = 0; i < LIVE; i++)
        ptx_label_bind(k, labels[i]);
}

static void a_thousand_labels_of_the_longest_name_are_told_apart(void **state)
{
    (void)state;
    memset(longest, 'l', sizeof longest - 1);
    char *text = text_for(sm_80, emit_labels), *end;
    const char *branch = text, *bound = text;
    for (int i = 0; i < LIVE; i++) {
        assert_int_equal(strtol(behind(&branch, "bra $L"), &end, 10), i);
        assert_int_equal(strspn(end, "_l"), i % 2 ? 256 : 0);
        do
            behind(&bound, "\n$L");
        while (bound == text);
        assert_int_equal(strtol(bound, &end, 10), i);
        assert_int_equal(end[strspn(end, "_l")], ':');
        assert_int_equal(strspn(end, "_l"), i % 2 ? 256 : 0);
    }
    free(text);
}

enum { WORDS = 32764 / 4 };
static unsigned words;

static void emit_params(ptx_kernel *k)
{
    for (unsigned i = 0; i < words; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%u", i);
        ptx_param_declare(k, name, 4, 4);
    }
    ptx_param last = ptx_param_declare(k, longest, 4, 4);
    ptx_ld_param_u32(k, last, 0);
}

static void parameters_go_up_to_the_last_byte_that_a_kernel_has(void **state)
{
    (void)state;
    memset(longest, 'l', sizeof longest - 1);
    words = WORDS - 1;
    char *text = text_for(sm_80, emit_params), want[300];
    snprintf(want, sizeof want, "ld.param.u32 %%r0, [%s];", longest);
    assert_non_null(strstr(text, want));
    assert_non_null(strstr(text, "\t.param .align 4 .b8 p8188[4],\n"));
    snprintf(want, sizeof want, "\t.param .align 4 .b8 %s[4]\n)", longest);
    assert_non_null(strstr(text, want));
    free(text);
    words = WORDS;
    refuses(emit_params, PTXGEN_ERROR_OPERAND, "32768 bytes of parameters");
}

/* ---- vectors ---- */

static unsigned columns;

static void emit_wgmma(ptx_kernel *k)
{
    ptx_f32 d[128];
    ptx_u64 a = ptx_param_u64(k, "a");
    ptx_u64 out = ptx_param_u64(k, "out");
    ptx_pred p = cta_condition(k);
    for (unsigned i = 0; i < columns / 2; i++)
        d[i] = ptx_mov_f32(k, ptx_imm_f32(0));
    ptx_wgmma_fence(k);
    ptx_wgmma_k16_f32_f16(k, columns, d, a, a, p, 1, 1, 0, 0);
    ptx_wgmma_commit_group(k);
    ptx_wgmma_wait_group(k, 0);
    for (unsigned i = 0; i < columns / 2; i++)
        ptx_st_global_f32(k, out, (int32_t)(4 * i), d[i]);
}

static void vectors_of_every_length_have_all_their_registers_in_order(void **state)
{
    (void)state;
    for (columns = 8; columns <= 256; columns += 8) {
        char *text = text_for(sm_90a, emit_wgmma), want[32], *end;
        const char *at = text;
        snprintf(want, sizeof want, ".m64n%uk16.", columns);
        behind(&at, want);
        const char *vector = behind(&at, "{");
        at = text;
        for (unsigned i = 0; i < columns / 2; i++) {
            unsigned long reg = strtoul(vector + 2, &end, 10);
            assert_int_equal(*end, i + 1 < columns / 2 ? ',' : '}');
            vector = end + 2;
            behind(&at, "st.global.f32 [");
            behind(&at, ", %r");
            assert_int_equal(strtoul(at, NULL, 10), reg);
        }
        free(text);
    }
}

/* ---- directives ---- */

static unsigned x, y, z;
static void set_reqntid(ptx_kernel *k)
{
    ptx_kernel_reqntid(k, x, y, z);
}
static void set_maxntid(ptx_kernel *k)
{
    ptx_kernel_maxntid(k, x);
}
static void set_minnctapersm(ptx_kernel *k)
{
    ptx_kernel_maxntid(k, 32);
    ptx_kernel_minnctapersm(k, x);
}
static void set_maxnreg(ptx_kernel *k)
{
    ptx_kernel_maxnreg(k, x);
}
static void set_cluster(ptx_kernel *k)
{
    ptx_kernel_reqnctapercluster(k, x, y, z);
}

/* The numbers stand in the directive's line, or are refused with a sentence that has them. */
static void directives_take_their_numbers_up_to_the_last(void **state)
{
    (void)state;
    static const struct {
        void (*set)(ptx_kernel *k);
        const char *name;
        unsigned numbers, x, y, z;
        bool good;
    } rows[] = {
        {set_reqntid, ".reqntid", 3, 1, 1, 1, true},
        {set_reqntid, ".reqntid", 3, 1024, 1, 1, true},
        {set_reqntid, ".reqntid", 3, 1, 1024, 1, true},
        {set_reqntid, ".reqntid", 3, 2, 8, 64, true},
        {set_reqntid, ".reqntid", 3, 0, 1, 1, false},
        {set_reqntid, ".reqntid", 3, 1, 0, 1, false},
        {set_reqntid, ".reqntid", 3, 1, 1, 0, false},
        {set_reqntid, ".reqntid", 3, 1025, 1, 1, false},
        {set_reqntid, ".reqntid", 3, 1, 1025, 1, false},
        {set_reqntid, ".reqntid", 3, 1, 1, 65, false},
        {set_reqntid, ".reqntid", 3, 25, 41, 1, false},
        {set_reqntid, ".reqntid", 3, 65536, 65536, 1, false},
        {set_maxntid, ".maxntid", 1, 1, 0, 0, true},
        {set_maxntid, ".maxntid", 1, 1024, 0, 0, true},
        {set_maxntid, ".maxntid", 1, 0, 0, 0, false},
        {set_maxntid, ".maxntid", 1, 1025, 0, 0, false},
        {set_minnctapersm, ".minnctapersm", 1, 1, 0, 0, true},
        {set_minnctapersm, ".minnctapersm", 1, 32, 0, 0, true},
        {set_minnctapersm, ".minnctapersm", 1, 0, 0, 0, false},
        {set_minnctapersm, ".minnctapersm", 1, 33, 0, 0, false},
        {set_maxnreg, ".maxnreg", 1, 16, 0, 0, true},
        {set_maxnreg, ".maxnreg", 1, 255, 0, 0, true},
        {set_maxnreg, ".maxnreg", 1, 15, 0, 0, false},
        {set_maxnreg, ".maxnreg", 1, 256, 0, 0, false},
        {set_cluster, ".reqnctapercluster", 3, 1, 2, 8, true},
        {set_cluster, ".reqnctapercluster", 3, 16, 1, 1, true},
        {set_cluster, ".reqnctapercluster", 3, 1, 1, 16, true},
        {set_cluster, ".reqnctapercluster", 3, 0, 1, 1, false},
        {set_cluster, ".reqnctapercluster", 3, 1, 0, 1, false},
        {set_cluster, ".reqnctapercluster", 3, 1, 1, 0, false},
        {set_cluster, ".reqnctapercluster", 3, 17, 1, 1, false},
        {set_cluster, ".reqnctapercluster", 3, 1, 3, 6, false},
        {set_cluster, ".reqnctapercluster", 3, 1, 65536, 65536, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ptx_module *m = ptx_module_create(&sm_90a, NULL);
        ptx_kernel *k = ptx_kernel_begin(m, "kernel");
        char line[64], three[64];
        x = rows[i].x;
        y = rows[i].y;
        z = rows[i].z;
        rows[i].set(k);
        ptx_kernel_end(k);
        const char *text = "";
        ptxgen_error err = {0};
        ptxgen_status status = ptx_module_text(m, 0, &text, NULL, &err);
        snprintf(line, sizeof line, rows[i].numbers == 3 ? "%s %u, %u, %u\n" : "%s %u\n",
                 rows[i].name, x, y, z);
        snprintf(three, sizeof three, rows[i].numbers == 3 ? "%u × %u × %u" : " %u ", x, y, z);
        if (rows[i].good ? status != PTXGEN_OK || !strstr(text, line)
                         : status != PTXGEN_ERROR_STRUCTURE || !strstr(err.message, three))
            fail_msg("%s: \"%s\" %s", line, err.message, text);
        ptx_module_destroy(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_operand_of_raw_text_is_the_one_of_its_number),
        TEST(raw_text_names_no_operand_past_the_last),
        TEST(no_number_is_so_long_that_it_names_an_operand),
        TEST(other_text_is_copied_as_it_stands),
        TEST(registers_are_not_named_in_raw_text),
        TEST(every_constant_is_in_the_text_to_its_last_bit),
        TEST(offsets_keep_sign_and_size),
        TEST(a_thousand_live_registers_of_a_class_have_a_thousand_names),
        TEST(a_thousand_labels_of_the_longest_name_are_told_apart),
        TEST(parameters_go_up_to_the_last_byte_that_a_kernel_has),
        TEST(vectors_of_every_length_have_all_their_registers_in_order),
        TEST(directives_take_their_numbers_up_to_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
