/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns of the instruction table, derived a second time: alignment from the mnemonic's vector
 * and type, what a result does between lanes from the kind of operation, constants' ranges from
 * the ISA's limits, a modifier's text from its name; and which text runs on which chip, written
 * out.
 */
#include "support.h"

#include "src/ptxgen/internal.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* ---- words of a text ---- */

/* The row's text without its {groups}. */
static struct ptx_string plain_text(const struct ptx_op *op)
{
    const struct ptx_string text = ptx_op_text(op);
    struct ptx_string plain;
    char *to = plain.s;
    bool in_group = false;
    for (const char *s = text.s; *s; s++) {
        in_group = in_group || *s == '{';
        if (!in_group)
            *to++ = *s;
        in_group = in_group && *s != '}';
    }
    *to = 0;
    return plain;
}

/* Whether the word stands in the text, between dots. */
static bool has(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || at[-1] == '.') && (!at[length] || at[length] == '.'))
            return true;
    return false;
}

static bool begins(const char *text, const char *words)
{
    size_t length = strlen(words);
    return !strncmp(text, words, length) && (!text[length] || text[length] == '.');
}

/* ---- alignment ---- */

/* "….v4.u8" is 4 bytes: as many as the vector has elements, of so many bytes. */
static unsigned bytes_accessed(const char *text)
{
    const char *type = strrchr(text, '.') + 1, *digits = type + strcspn(type, "0123456789");
    unsigned bits = 0, packed = 1, vector = 1;
    assert_int_equal(sscanf(digits, "%ux%u", &bits, &packed) >= 1, 1);
    for (unsigned v = 2; v <= 8; v *= 2) {
        char word[4];
        snprintf(word, sizeof word, "v%u", v);
        vector = has(text, word) ? v : vector;
    }
    return bits / 8 * packed * vector;
}

static unsigned alignment_of(const char *text)
{
    if (begins(text, "ldmatrix") || begins(text, "stmatrix"))
        return 16; /* a row of a matrix */
    if (begins(text, "st.async") || begins(text, "red.async"))
        return 0;
    bool accesses =
        begins(text, "ld") || begins(text, "st") || begins(text, "atom") || begins(text, "red");
    return accesses ? bytes_accessed(text) : 0;
}

static void alignment_is_that_of_vector_and_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < ptx_op_count; i++) {
        const struct ptx_string text = plain_text(&ptx_ops[i]);
        if (ptx_ops[i].align != alignment_of(text.s))
            fail_msg("%s: an alignment of %u, not %u", text.s, ptx_ops[i].align,
                     alignment_of(text.s));
    }
}

/* ---- between lanes ---- */

enum { BETWEEN = PTX_FLAG_VARIES | PTX_FLAG_LANEUNI | PTX_FLAG_CTAUNI | PTX_FLAG_SHFLIDX };

/* A special register: of the lane, the thread and the time; of the warp; of the CTA. */
static unsigned between_of_special(const char *name)
{
    static const char *const of_lane[] = {"%tid.*", "%lane*", "%clock*", "%globaltimer*"};
    for (size_t i = 0; i < sizeof of_lane / sizeof *of_lane; i++)
        if (!fnmatch(of_lane[i], name, 0))
            return PTX_FLAG_VARIES;
    return !strcmp(name, "%warpid") || !strcmp(name, "%nwarpid") ? PTX_FLAG_LANEUNI
                                                                 : PTX_FLAG_CTAUNI;
}

static bool has_result(const struct ptx_op *op)
{
    return op->term_count && (ptx_op_term(op, 0)->flags & PTX_TERM_WRITTEN);
}

static unsigned between_of_load(const char *text)
{
    bool changes = has(text, "volatile") || has(text, "relaxed") || has(text, "acquire");
    return changes || has(text, "local") ? PTX_FLAG_VARIES
           : has(text, "param")          ? PTX_FLAG_CTAUNI
                                         : 0;
}

static unsigned between_of(const struct ptx_op *op, const char *text)
{
    static const char *const vary[] = {"atom",      "mma",   "wgmma.mma_async", "ldmatrix",
                                       "movmatrix", "elect", "activemask",      "match.any"};
    static const char *const agree[] = {"match.all", "vote", "redux"};
    for (size_t i = 0; i < sizeof vary / sizeof *vary; i++)
        if (begins(text, vary[i]))
            return PTX_FLAG_VARIES;
    for (size_t i = 0; i < sizeof agree / sizeof *agree; i++)
        if (begins(text, agree[i]))
            return PTX_FLAG_LANEUNI;
    if (begins(text, "ld"))
        return between_of_load(text);
    if (begins(text, "mbarrier"))
        return has_result(op) ? PTX_FLAG_VARIES : 0;
    if (begins(text, "shfl")) /* with a second destination it says of which lanes it is */
        return has(text, "idx") && op->term_count == 5 ? PTX_FLAG_SHFLIDX : PTX_FLAG_VARIES;
    if ((begins(text, "bar") || begins(text, "barrier")) && has(text, "red"))
        return op->term_count == 4 ? PTX_FLAG_VARIES : PTX_FLAG_CTAUNI; /* 4: of some threads */
    if (begins(text, "mov") && ptx_op_term(op, op->term_count - 1u)->kind == PTX_TERM_LITERAL)
        return between_of_special(ptx_literal(ptx_op_term(op, op->term_count - 1u)).s);
    return 0;
}

static void results_differ_between_lanes_as_the_operation_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ptx_op_count; i++) {
        const struct ptx_string text = plain_text(&ptx_ops[i]);
        if ((ptx_ops[i].flags & BETWEEN) != between_of(&ptx_ops[i], text.s))
            fail_msg("%s (%s): flags %x, not %x", text.s, ptx_op_name(&ptx_ops[i]).s,
                     ptx_ops[i].flags & BETWEEN, between_of(&ptx_ops[i], text.s));
    }
}

/* ---- constants ---- */

/* The ranges of an instruction's constants, in the order of its operands; the first row counts. */
static const struct {
    const char *name, *ranges;
} constants[] = {
    {"bar_warp_sync", ""},
    {"barrier_cluster_*", ""},
    {"bar_sync_n", "0:15:1 0:1024:32 "},
    {"barrier_cta_sync_n", "0:15:1 0:1024:32 "},
    {"bar_*_n", "0:15:1 32:1024:32 "},
    {"barrier_cta_*_n", "0:15:1 32:1024:32 "},
    {"bar_*", "0:15:1 "},
    {"barrier_cta_*", "0:15:1 "},
    {"bf[ei]_*", "0:255:1 0:255:1 "},
    {"lop3_*", "0:255:1 "},
    {"cp_async_wait_group", "0:63:1 "},
    {"cp_async_bulk_wait_group*", "0:63:1 "},
    {"cp_async_ca*", "4:16:1 "}, /* powers of two */
    {"cp_async_cg*", "16:16:1 "},
    {"*_tensor_*", ""},
    {"cp_async_bulk_commit_group", ""},
    {"cp_async_bulk_*", "0:1048560:16 "},
    {"cp_reduce_async_bulk_s*", "0:1048560:16 "},
    {"mbarrier_*_parity*", "0:1:1 "},
    /* the selectors of sparse metadata: which lanes of four hold it */
    {"mma_sp*_m16n8k8_*", "0:3:1 "},
    {"mma_sp*_m16n8k16_f32_tf32", "0:1:1 "},
    {"mma_sp*_m16n8k16_*", "0:3:1 "},
    {"mma_sp*_m16n8k32_*", "0:1:1 "},
    {"mma_sp*_m16n8k64_s32_?4_?4", "0:1:1 "},
    {"mma_sp*", "0:0:1 "},
    {"wgmma_wait_group", "0:7:1 "},
    {"wgmma_k16_*_ra", "-1:1:2 -1:1:2 0:1:1 "},
    {"wgmma_k16_*", "-1:1:2 -1:1:2 0:1:1 0:1:1 "},
    {"wgmma_k*_f*", "-1:1:2 -1:1:2 "},
    {"wgmma_sp_k16_*", "0:1:1 -1:1:2 -1:1:2 "},
    {"wgmma_sp_k32_*_ra", "0:1:1 -1:1:2 -1:1:2 0:1:1 "},
    {"wgmma_sp_k32_*", "0:1:1 -1:1:2 -1:1:2 0:1:1 0:1:1 "},
    {"wgmma_sp_k64_s32_*", "0:0:1 "},
    {"wgmma_sp_k64_*", "0:0:1 -1:1:2 -1:1:2 "},
    {"setmaxnreg_*", "24:256:8 "},
    {"*", ""},
};

static void constants_have_the_isas_ranges(void **state)
{
    (void)state;
    for (size_t i = 0; i < ptx_op_count; i++) {
        const struct ptx_op *op = &ptx_ops[i];
        const struct ptx_string name = ptx_op_name(op);
        char ranges[128] = "";
        for (unsigned t = 0; t < op->term_count; t++) {
            const struct ptx_term *term = ptx_op_term(op, t);
            if (term->kind == PTX_TERM_CONST || (term->kind == PTX_TERM_VALUE && term->hi))
                snprintf(ranges + strlen(ranges), sizeof ranges - strlen(ranges), "%d:%d:%d ",
                         term->lo, term->hi, term->step);
            bool powers = !strncmp(name.s, "cp_async_ca", 11) && term->kind == PTX_TERM_CONST;
            assert_int_equal((term->flags & PTX_TERM_POW2) != 0, powers);
        }
        size_t row = 0;
        while (fnmatch(constants[row].name, name.s, 0) != 0)
            row++;
        if (strcmp(ranges, constants[row].ranges) != 0)
            fail_msg("%s: constants of %s, not of %s", name.s, ranges, constants[row].ranges);
    }
}

/* ---- modifiers ---- */

/* What a name has in front where two groups have a modifier of one text. */
static const char *without_prefix(const char *name)
{
    static const char *const prefixes[] = {"CVT_", "LD_", "NC_", "ST_", "RED_", "FENCE_", "PRMT_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            return name + strlen(prefixes[i]);
    return !strcmp(name, "FSAT") || !strcmp(name, "FRELU") ? name + 1 : name;
}

static void text_of_modifier(const char *name, char text[64])
{
    bool cache = name[0] == 'L' && isdigit((unsigned char)name[1]) && name[2] == '_';
    if (!strcmp(name, "NAN")) {
        strcpy(text, ".NaN");
        return;
    }
    if (!strcmp(name, "MULTICAST") || !strcmp(name, "XORSIGN_ABS")) {
        strcpy(text, *name == 'M' ? ".multicast::cluster" : ".xorsign.abs");
        return;
    }
    const char *rest = cache ? name + 3 : without_prefix(name);
    int used = snprintf(text, 64, cache ? ".%.2s::" : ".", name);
    for (; *rest; rest++)
        text[used++] =
            (char)(isdigit((unsigned char)rest[0]) || (cache && rest[1] == 0 && *rest == 'B')
                       ? *rest
                       : tolower((unsigned char)*rest));
    text[used] = 0;
}

static void modifiers_have_the_text_of_their_names(void **state)
{
    (void)state;
#define G(group)
#define M(constant, text, ptx, target) {#constant, PTX_##constant},
    static const struct {
        const char *name;
        uint64_t value;
    } names[] = {
#include "src/ptxgen/modifiers.def"
    };
#undef G
#undef M
    size_t named = 0, count = 0;
    for (size_t g = 0; g < ptx_modifier_group_count; g++)
        count += ptx_modifier_groups[g].count;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t g = 0; g < ptx_modifier_group_count; g++) {
            const struct ptx_modifier_group *group = &ptx_modifier_groups[g];
            uint64_t mask = ((UINT64_C(1) << group->bits) - 1) << group->shift;
            uint64_t number = names[i].value >> group->shift;
            if (!(names[i].value & mask))
                continue;
            char text[64];
            text_of_modifier(names[i].name, text);
            assert_int_equal(names[i].value & ~mask, 0);
            assert_in_range(number, 1, group->count);
            if (strcmp(group->alternatives[number - 1].text, text) != 0)
                fail_msg("PTX_%s prints %s, not %s", names[i].name,
                         group->alternatives[number - 1].text, text);
            named++;
        }
    assert_int_equal(named, sizeof names / sizeof *names);
    assert_int_equal(named, count);
}

/* ---- targets and chips ---- */

/*
 * CUDA programming guide, "PTX Compatibility": text of a plain target runs on every later chip, of
 * an architecture-specific one on that chip alone, of a family-specific one on later chips of its
 * family.
 */
static const struct {
    const char *target, *chips;
} runs[] = {
    {"sm_80", "80 86 87 88 89 90 100 101 103 110 120 121"},
    {"sm_86", "86 87 88 89 90 100 101 103 110 120 121"},
    {"sm_87", "87 88 89 90 100 101 103 110 120 121"},
    {"sm_88", "88 89 90 100 101 103 110 120 121"},
    {"sm_89", "89 90 100 101 103 110 120 121"},
    {"sm_90", "90 100 101 103 110 120 121"},
    {"sm_90a", "90"},
    {"sm_100", "100 101 103 110 120 121"},
    {"sm_100a", "100"},
    {"sm_100f", "100 103"},
    {"sm_101", "101 103 110 120 121"},
    {"sm_101a", "101"},
    {"sm_101f", "101 110"},
    {"sm_103", "103 110 120 121"},
    {"sm_103a", "103"},
    {"sm_103f", "103"},
    {"sm_110", "110 120 121"},
    {"sm_110a", "110"},
    {"sm_110f", "110"},
    {"sm_120", "120 121"},
    {"sm_120a", "120"},
    {"sm_120f", "120 121"},
    {"sm_121", "121"},
    {"sm_121a", "121"},
    {"sm_121f", "121"},
};

static void text_runs_on_these_chips_alone(void **state)
{
    (void)state;
    static const int chips[] = {80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        ptx_target target;
        assert_int_equal(ptx_target_parse(runs[i].target, &target, NULL), PTXGEN_OK);
        char found[128] = "";
        for (size_t c = 0; c < sizeof chips / sizeof *chips; c++)
            if (ptx_target_runs_on(&target, chips[c]))
                snprintf(found + strlen(found), sizeof found - strlen(found), "%s%d",
                         *found ? " " : "", chips[c]);
        if (strcmp(found, runs[i].chips) != 0)
            fail_msg("%s runs on %s, not on %s", runs[i].target, found, runs[i].chips);
    }
}

/* No target is left out of the matrix. */
static void every_target_has_its_chips(void **state)
{
    (void)state;
    size_t targets = 0;
    for (int sm = 80; sm < 130; sm++)
        for (const char *suffix = "-af"; *suffix; suffix++) {
            char name[16];
            ptx_target target;
            snprintf(name, sizeof name, "sm_%d%.*s", sm, *suffix != '-', suffix);
            targets += ptx_target_parse(name, &target, NULL) == PTXGEN_OK;
        }
    assert_int_equal(targets, sizeof runs / sizeof *runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alignment_is_that_of_vector_and_type),
        cmocka_unit_test(results_differ_between_lanes_as_the_operation_says),
        cmocka_unit_test(constants_have_the_isas_ranges),
        cmocka_unit_test(modifiers_have_the_text_of_their_names),
        cmocka_unit_test(text_runs_on_these_chips_alone),
        cmocka_unit_test(every_target_has_its_chips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
