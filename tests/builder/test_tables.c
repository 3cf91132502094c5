/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns of the instruction table, derived a second time: alignment from the mnemonic's vector
 * and type, what a result does between lanes from the kind of operation, constants' ranges from
 * the ISA's limits, a modifier's text from its name; and what each needs, what it does to threads
 * and memory, and which text runs on which chip, written out.
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

/* ---- lists of names ---- */

/* Whether one of the patterns in the list, with spaces between, is of that name. */
static bool is_listed(const char *list, const char *name)
{
    char pattern[64];
    for (int used; sscanf(list, " %63s%n", pattern, &used) == 1; list += used)
        if (!fnmatch(pattern, name, 0))
            return true;
    return false;
}

/* ---- needs ---- */

/* PTX ISA, "PTX ISA Notes" and "Target ISA Notes" of each instruction; the first row counts. */
static const struct {
    const char *needs, *names;
} needs[] = {
    {"7.1/80", ("*_and_popc *_test_wait_parity cvt_f32_bf* mma_sp_*_tf32 mma_sp_m16n8k128* "
                "mma_sp_m16n8k16* mma_sp_m16n8k32* mma_sp_m16n8k64_s*")},
    {"7.4/80", ("*_last *_normal createpolicy* discard* ld_global_hint* ld_global_nc_hint* "
                "st_global_hint*")},
    {"7.5/80", "*_alias *_ignore"},
    {"7.6/80", "bmsk* szext*"},
    {"7.7/80", "*_param cvta_param* cvta_to_param*"},
    {"7.8/80", "barrier_cta* movmatrix*"},
    {"7.8/90",
     ("*_add_bf16x2 *_bf16_f16 *_bf16_f64 *_f16_bf16 *_f64_bf16 *_integral_bf16 "
      "*_m16n8k16_f64 *_m16n8k4_f64 *_m16n8k8_f64 *_ns *_s16_bf16 *_s32_bf16 *_s64_bf16 "
      "*_try_wait *_try_wait_parity *_u16_bf16 *_u32_bf16 *_u64_bf16 add_bf* atom_*_add_bf16 "
      "atom_shared_cluster* cvt_bf16_s* cvt_bf16_u* cvt_ftz* cvt_tf* ex2_approx_ftz* "
      "getctarank* griddepcontrol* isspacep_shared_* ld_shared_cluster* mapa* mbarrier_*_n "
      "mul_bf* red_*_add_bf16 red_shared_cluster* setp_*_bf16 setp_*_bf16x2 sreg_cluster* "
      "sreg_is* sreg_nclusterid* st_shared_cluster* stmatrix_x* sub_bf* tanh_approx_bf*")},
    {"8.0/90",
     ("*_arrive_cluster *_bulk_commit_group *_drop_cluster *_g2s *_g2s_hint *_multicast "
      "*_multicast_hint *_n_cluster *_parity_cluster *_relu_s32 *_remote *_s16x2 *_s2c *_s2g "
      "*_s2g_hint *_tensormap *_tx *_tx_cluster *_u16x2 *_wait_cluster barrier_cluster* "
      "cp_*_L2 cp_async_bulk_wait* cp_reduce* elect* fence_mbarrier* fence_proxy_async*")},
    {"8.0/90a", ("*_fence wgmma_*_group wgmma_k16* wgmma_k256* wgmma_k32_f* wgmma_k32_s32_s8_s* "
                 "wgmma_k32_s32_u8_u* wgmma_k8*")},
    {"8.0/90a 8.6/100a 8.6/101a 8.7/120a 8.8/100f 8.8/101f 8.8/120f", "setmaxnreg*"},
    {"8.1/80", "cvt_rna_*_tf32_f32 cvt_satfinite_bf* cvt_satfinite_f*"},
    {"8.1/89 7.8/90", "*_e4m3x2 *_e5m2x2 cvt_e4* cvt_e5*"},
    {"8.1/90",
     ("atom_global_add_v* atom_global_max_v* atom_global_min_v* red_async* red_global_add_v* "
      "red_global_max_v* red_global_min_v* sreg_aggr* st_async*")},
    {"8.2/80", "lop3_*_b32"},
    {"8.2/90a", ("wgmma_sp_k16* wgmma_sp_k32* wgmma_sp_k64_f* wgmma_sp_k64_s32_s8_s* "
                 "wgmma_sp_k64_s32_u8_u*")},
    {"8.3/80", "ld_*_b128 mov_b128 pack_b128 st_*_b128 unpack_b128"},
    {"8.3/90", "fence_proxy_tensormap*"},
    {"8.4/89", "mma_m16n8k32_f32* mma_sp_m16n8k64_f*"},
    {"8.4/90", "atom_*_b128"},
    {"8.4/90a", "*_s8_u8_ra *_u8_s8_ra wgmma_*_s8_u8 wgmma_*_u8_s8"},
    {"8.5/80", ("mma_spo_*_tf32 mma_spo_m16n8k128* mma_spo_m16n8k16* mma_spo_m16n8k32* "
                "mma_spo_m16n8k64_s*")},
    {"8.5/89", "mma_spo_m16n8k64_f*"},
    {"8.6/100", "*_f32x2 add_f32_* cvt_satfinite_tf* fma_f32_* sub_f32_*"},
    {"8.6/100a 8.6/101a 8.7/120a 8.8/100f 8.8/101f 8.8/120f",
     "*_b8 *_e2m3x2 *_e3m2x2 *_ue8m0x2 cvt_e2* cvt_e3* cvt_rp* cvt_rz* ldmatrix_m*"},
    {"8.6/100a 8.8/100f", "redux_*_f32"},
    {"8.6/90", "*_cta_hint *_relaxed_cluster *_restrict_cta cp_*_cta fence_acquire*"},
    {"8.7/100a 8.8/103a", "cvt_rs*"},
    {"8.7/89", "mma_m16n8k16_*_e4m3 mma_m16n8k16_*_e5m2 mma_m16n8k32_f16*"},
    {"8.8/100", "*_3_f32 *_v4_f64 *_v4_s64 *_v4_u64 *_v8_f32 *_v8_s32 *_v8_u32"},
    {"7.0/80", "*"},
};

static void instructions_need_what_the_isa_notes_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < ptx_op_count; i++) {
        const struct ptx_op *op = &ptx_ops[i];
        const struct ptx_string name = ptx_op_name(op);
        char found[128] = "";
        size_t row = 0;
        for (unsigned n = 0; n < op->need_count; n++) {
            const struct ptx_need *need = ptx_op_needs(op) + n;
            snprintf(found + strlen(found), sizeof found - strlen(found), "%s%d.%d/%d%.1s",
                     n ? " " : "", need->ptx / 10, need->ptx % 10, need->sm, &need->suffix);
        }
        while (!is_listed(needs[row].names, name.s))
            row++;
        if (strcmp(found, needs[row].needs) != 0)
            fail_msg("%s needs %s, not %s", name.s, found, needs[row].needs);
    }
}

/* ---- what an instruction does to the threads and to memory ---- */

static const struct {
    unsigned flag;
    const char *names;
} effects[] = {
    {PTX_FLAG_ALIGNED,
     ("*_cluster_arrive *_cluster_wait *_relaxed bar_*_n bar_red* bar_sync ldmatrix* mma* "
      "movmatrix* setmaxnreg* stmatrix* wgmma*")},
    {PTX_FLAG_CTABAR, "*_and_pred *_cta_sync *_or_pred *_popc_u32 bar_sync"},
    {PTX_FLAG_BARN, "bar_*_n barrier_*_n"},
    {PTX_FLAG_BRANCH, "bra*"},
    {PTX_FLAG_EXIT, "exit ret"},
    {PTX_FLAG_CPASYNC,
     ("*_cta_hint *_g2s *_g2s_hint *_multicast *_multicast_hint *_s2c cp_*_cta cp_async_ca* "
      "cp_async_cg* cp_reduce_async_bulk_s2c*")},
    {PTX_FLAG_CPWAIT, "cp_async_bulk_wait* cp_async_wait* mbarrier_test* mbarrier_try*"},
    {PTX_FLAG_READSH,
     ("atom_shared_add* atom_shared_and* atom_shared_cas* atom_shared_dec* atom_shared_exch* "
      "atom_shared_inc* atom_shared_max* atom_shared_min* atom_shared_or* atom_shared_xor* "
      "ld_acquire_shared* ld_relaxed_shared* ld_shared_b* ld_shared_f* ld_shared_s* "
      "ld_shared_u* ld_shared_v* ld_volatile_shared* ldmatrix*")},
    {PTX_FLAG_MATH,
     ("*_approx_f32 abs* add* and* bfe* bfi* bfind* bmsk* brev* clz* cnot* copysign* cvt* "
      "div* dp2* dp4* ex2* fma* fns* getctarank* isspacep* lop* mad* mapa* max* min* mov_* "
      "mul* neg* not* or_* pack* popc* prmt* rcp* rem* rsqrt* sad* selp* setp* shf_* shl* "
      "shr* sqrt* sub* szext* tanh* testp* unpack* xor*")},
    {PTX_FLAG_MMA, "mma* wgmma_k* wgmma_sp*"},
};

static void instructions_have_the_effects_of_their_operations(void **state)
{
    (void)state;
    for (size_t i = 0; i < ptx_op_count; i++) {
        const struct ptx_string name = ptx_op_name(&ptx_ops[i]);
        unsigned known = BETWEEN;
        for (size_t f = 0; f < sizeof effects / sizeof *effects; f++) {
            bool found = ptx_ops[i].flags & effects[f].flag;
            known |= effects[f].flag;
            if (found != is_listed(effects[f].names, name.s))
                fail_msg("%s: flag %x is %s", name.s, effects[f].flag, found ? "there" : "missing");
        }
        assert_int_equal(ptx_ops[i].flags & ~known, 0);
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

/* What modifiers need over their instruction's own needs; those of no row need nothing. */
static const struct {
    const char *group, *text;
    int ptx, sm;
} modifier_needs[] = {
    {"xorsign", "*", 72, 86},      {"l1", "*", 74, 0}, {"l2pf", "*", 74, 0},
    {"scope", ".cluster", 78, 90}, {"*", "*", 0, 0},
};

static void modifiers_need_what_the_isa_notes_say(void **state)
{
    (void)state;
    for (size_t g = 0; g < ptx_modifier_group_count; g++)
        for (size_t a = 0; a < ptx_modifier_groups[g].count; a++) {
            const struct ptx_modifier *modifier = &ptx_modifier_groups[g].alternatives[a];
            size_t row = 0;
            while (fnmatch(modifier_needs[row].group, ptx_modifier_groups[g].name, 0) ||
                   fnmatch(modifier_needs[row].text, modifier->text, 0))
                row++;
            if (modifier->ptx != modifier_needs[row].ptx || modifier->sm != modifier_needs[row].sm)
                fail_msg("%s needs %d and sm_%d, not %d and sm_%d", modifier->text, modifier->ptx,
                         modifier->sm, modifier_needs[row].ptx, modifier_needs[row].sm);
        }
}

/* {group!} prints the first alternative where the caller names none. */
static void groups_hold_their_alternatives_the_default_first(void **state)
{
    (void)state;
    static const struct {
        const char *group, *texts;
    } rows[] = {
        {"rnd", ".rn .rz .rm .rp"},
        {"rnz", ".rn .rz"},
        {"rndi", ".rzi .rni .rmi .rpi"},
        {"satrelu", ".sat .relu"},
        {"bool", ".and .or .xor"},
        {"ldcop", ".ca .cg .cs .lu .cv"},
        {"nccop", ".ca .cg .cs"},
        {"stcop", ".wb .cg .cs .wt"},
        {"l1", (".L1::evict_normal .L1::evict_unchanged .L1::evict_first .L1::evict_last "
                ".L1::no_allocate")},
        {"l2pf", ".L2::64B .L2::128B .L2::256B"},
        {"scope", ".gpu .cta .cluster .sys"},
        {"sem", ".relaxed .acquire .release .acq_rel"},
        {"redsem", ".relaxed .release"},
        {"fencesem", ".acq_rel .sc"},
        {"prmtmode", ".f4e .b4e .rc8 .ecl .ecr .rc16"},
        {"ftz", ".ftz"},
        {"sat", ".sat"},
        {"relu", ".relu"},
        {"satf", ".satfinite"},
        {"nan", ".NaN"},
        {"xorsign", ".xorsign.abs"},
        {"trans", ".trans"},
        {"multicast", ".multicast::cluster"},
    };
    assert_int_equal(ptx_modifier_group_count, sizeof rows / sizeof *rows);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct ptx_modifier_group *group =
            ptx_find_group(rows[i].group, strlen(rows[i].group));
        char texts[128] = "";
        assert_non_null(group);
        for (size_t a = 0; a < group->count; a++)
            snprintf(texts + strlen(texts), sizeof texts - strlen(texts), "%s%s", a ? " " : "",
                     group->alternatives[a].text);
        assert_string_equal(texts, rows[i].texts);
    }
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
        cmocka_unit_test(instructions_need_what_the_isa_notes_say),
        cmocka_unit_test(instructions_have_the_effects_of_their_operations),
        cmocka_unit_test(constants_have_the_isas_ranges),
        cmocka_unit_test(modifiers_have_the_text_of_their_names),
        cmocka_unit_test(modifiers_need_what_the_isa_notes_say),
        cmocka_unit_test(groups_hold_their_alternatives_the_default_first),
        cmocka_unit_test(text_runs_on_these_chips_alone),
        cmocka_unit_test(every_target_has_its_chips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
