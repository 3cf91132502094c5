/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Register folding keeps the meaning of programs: random programs are run by a small interpreter
 * once over virtual registers and once over the names they were folded into, with the same results;
 * and the names are as few as the live intervals allow.
 */
#include "support.h"

#include "src/ptxgen/internal.h"

#include <stdlib.h>

/* ---- a seeded generator ---- */

static uint64_t random_state;

static uint32_t pick(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % below;
}

enum { VARIABLES = 24, MOST_STATEMENTS = 120 };

struct program {
    ptx_kernel *k;
    ptx_u32 variable[VARIABLES]; /* all written before they are read */
    ptx_u64 wide[4];
    unsigned variables, wides, budget, depth;
};

static ptx_u32 any(struct program *p)
{
    return p->variable[pick(p->variables)];
}

static ptx_pred condition(struct program *p)
{
    ptx_u32 a = any(p), b = any(p);
    return pick(2) ? ptx_setp_lt_u32(p->k, a, b) : ptx_setp_eq_u32(p->k, ptx_and_b32(p->k, a, ptx_imm_u32(1)), ptx_imm_u32(0));
}

/* A new value; at times it becomes a variable of its own, else it overwrites one. */
static void keep(struct program *p, ptx_u32 x)
{
    if (p->variables < VARIABLES && !p->depth)
        p->variable[p->variables++] = x;
    else
        ptx_mov_u32_to(p->k, any(p), x);
}

static void emit_arithmetic(struct program *p)
{
    ptx_u32 a = any(p), b = any(p), to = any(p);
    switch (pick(7)) {
    case 0: keep(p, ptx_add_u32(p->k, a, b)); break;
    case 1: keep(p, ptx_xor_b32(p->k, a, b)); break;
    case 2: keep(p, ptx_shl_b32(p->k, a, ptx_imm_u32(pick(31)))); break;
    case 3: ptx_add_u32_to(p->k, to, a, ptx_imm_u32(pick(1000))); break;
    case 4: ptx_mov_u32_to(p->k, to, a); break;
    case 5: keep(p, ptx_selp_u32(p->k, a, b, condition(p))); break;
    default: {
        ptx_u64 *wide = &p->wide[pick(p->wides)];
        ptx_add_u64_to(p->k, *wide, *wide, ptx_cvt_u64_u32(p->k, a));
        ptx_mov_u32_to(p->k, to, ptx_cvt_u32_u64(p->k, *wide));
    }
    }
}

static void emit_statements(struct program *p, unsigned count);

static void emit_guarded(struct program *p)
{
    ptx_pred c = condition(p);
    ptx_u32 a = any(p), b = any(p), to = any(p), x = any(p);
    switch (pick(3)) {
    case 0: /* a write that may not happen */
        ptx_guarded(p->k, c) ptx_add_u32_to(p->k, to, a, b);
        break;
    case 1: /* a value under one guard */
        ptx_guarded(p->k, c)
        {
            x = ptx_xor_b32(p->k, a, b);
            ptx_add_u32_to(p->k, to, x, a);
        }
        break;
    default: /* a pair of opposite guards */
        ptx_guarded(p->k, c) x = ptx_add_u32(p->k, a, b);
        if (pick(2))
            ptx_mov_u32_to(p->k, to, b);
        ptx_guarded_not(p->k, c) ptx_xor_b32_to(p->k, x, a, b);
        ptx_mov_u32_to(p->k, any(p), x);
    }
}

/* Written where c holds, read where it holds again, over other control flow. */
static void emit_correlated(struct program *p)
{
    ptx_pred c = condition(p);
    ptx_u32 x = any(p);
    ptx_if(p->k, c)
    {
        ptx_u32 a = any(p);
        x = ptx_add_u32(p->k, a, ptx_imm_u32(3));
    }
    emit_statements(p, 2);
    ptx_if(p->k, c) ptx_mov_u32_to(p->k, any(p), x);
}

static void emit_loop(struct program *p)
{
    ptx_u32 i = ptx_mov_u32(p->k, ptx_imm_u32(0));
    if (pick(2)) {
        ptx_u32 limit = ptx_and_b32(p->k, any(p), ptx_imm_u32(3));
        ptx_for(p->k, i, limit, ptx_imm_u32(1)) emit_statements(p, 1 + pick(4));
        return;
    }
    ptx_loop(p->k, b)
    {
        emit_statements(p, 1 + pick(3));
        ptx_add_u32_to(p->k, i, i, ptx_imm_u32(1));
        ptx_loop_break_if(&b, ptx_setp_ge_u32(p->k, i, ptx_imm_u32(1 + pick(3))), false);
        emit_statements(p, 1);
    }
}

static void emit_statement(struct program *p)
{
    unsigned kind = pick(10);
    p->budget--;
    if (kind < 5 || p->depth > 3) {
        emit_arithmetic(p);
        return;
    }
    p->depth++;
    switch (kind) {
    case 5: emit_guarded(p); break;
    case 6: ptx_if(p->k, condition(p)) emit_statements(p, 1 + pick(3)); break;
    case 7:
        ptx_if_else(p->k, condition(p)) emit_statements(p, 1 + pick(3));
        else emit_statements(p, 1 + pick(3));
        break;
    case 8: emit_loop(p); break;
    default: emit_correlated(p);
    }
    p->depth--;
}

static void emit_statements(struct program *p, unsigned count)
{
    for (unsigned i = 0; i < count && p->budget; i++)
        emit_statement(p);
}

/* Its results are what it stores. */
static ptx_module *random_program(uint64_t seed)
{
    random_state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    struct program p = {.k = ptx_kernel_begin(m, "random"), .budget = 10 + pick(MOST_STATEMENTS)};
    ptx_u64 out = ptx_mov_u64(p.k, ptx_imm_u64(0));
    for (p.variables = 0; p.variables < 3; p.variables++)
        p.variable[p.variables] = ptx_mov_u32(p.k, ptx_imm_u32(pick(1 << 20)));
    for (p.wides = 0; p.wides < 3; p.wides++)
        p.wide[p.wides] = ptx_mov_u64(p.k, ptx_imm_u64(pick(1 << 20)));
    emit_statements(&p, 1000);
    for (unsigned i = 0; i < p.variables; i++)
        if (pick(3))
            ptx_st_global_u32(p.k, out, 4 * (int)i, p.variable[i]);
    for (unsigned i = 0; i < p.wides; i++)
        ptx_st_global_u64(p.k, out, 256 + 8 * (int)i, p.wide[i]);
    ptx_kernel_end(p.k);
    return m;
}

/* ---- the interpreter ---- */

enum { MOST_STEPS = 2000000, MOST_RESULTS = 64, RUBBISH = 0x5bad5bad };

struct machine {
    const ptx_kernel *k;
    bool folded;     /* registers are found by class and name */
    uint64_t *value; /* by register, or by class × register_count + name */
    uint64_t result[MOST_RESULTS];
    size_t results, steps;
};

static uint64_t *cell(struct machine *c, uint32_t reg)
{
    const struct ptx_register *r = &c->k->registers[reg];
    if (!c->folded)
        return &c->value[reg];
    return &c->value[(size_t)ptx_class_of(r->type) * c->k->register_count + r->name];
}

static uint64_t get(struct machine *c, ptx_operand o)
{
    return o.kind == PTX_OPERAND_REGISTER ? *cell(c, o.index) : o.bits;
}

static uint64_t compute(struct machine *c, const struct ptx_instruction *i, const ptx_operand *o)
{
    switch (i->op) {
    case PTX_OP_mov_u32:
    case PTX_OP_mov_u64:
    case PTX_OP_cvt_u64_u32: return get(c, o[1]);
    case PTX_OP_cvt_u32_u64: return (uint32_t)get(c, o[1]);
    case PTX_OP_add_u32: return (uint32_t)(get(c, o[1]) + get(c, o[2]));
    case PTX_OP_add_u64: return get(c, o[1]) + get(c, o[2]);
    case PTX_OP_xor_b32: return get(c, o[1]) ^ get(c, o[2]);
    case PTX_OP_and_b32: return get(c, o[1]) & get(c, o[2]);
    case PTX_OP_shl_b32: return (uint32_t)(get(c, o[1]) << get(c, o[2]));
    case PTX_OP_setp_lt_u32: return get(c, o[1]) < get(c, o[2]);
    case PTX_OP_setp_ge_u32: return get(c, o[1]) >= get(c, o[2]);
    case PTX_OP_setp_eq_u32: return get(c, o[1]) == get(c, o[2]);
    case PTX_OP_selp_u32: return get(c, o[3]) ? get(c, o[1]) : get(c, o[2]);
    default: fail_msg("the interpreter has no %s", ptx_op_name(&ptx_ops[i->op]).s);
    }
    return 0;
}

/* Executes the instruction at `at`; returns the next one's index. */
static uint32_t step(struct machine *c, uint32_t at)
{
    const struct ptx_instruction *i = &c->k->code[at];
    const ptx_operand *o = &c->k->operands[i->first];
    if (i->op == PTX_PSEUDO_LABEL)
        return at + 1;
    if (i->guarded && (*cell(c, i->guard) != 0) != (i->guarded == '+'))
        return at + 1;
    switch (i->op) {
    case PTX_OP_bra: return c->k->labels[o[0].index].position;
    case PTX_OP_ret: return c->k->code_count;
    case PTX_OP_st_global_u32:
    case PTX_OP_st_global_u64:
        assert_true(c->results < MOST_RESULTS);
        c->result[c->results++] = get(c, o[2]);
        return at + 1;
    default:
        *cell(c, o[0].index) = compute(c, i, o);
        return at + 1;
    }
}

static void run(struct machine *c, const ptx_kernel *k, bool folded)
{
    size_t cells = PTX_CLASSES * (size_t)k->register_count;
    *c = (struct machine){.k = k, .folded = folded, .value = malloc(cells * sizeof *c->value)};
    for (size_t i = 0; i < cells; i++)
        c->value[i] = RUBBISH + (folded ? i : 3 * i); /* unwritten registers differ between runs */
    for (uint32_t at = 0; at < k->code_count; c->steps++) {
        assert_true(c->steps < MOST_STEPS);
        at = step(c, at);
    }
    free(c->value);
}

/* ---- the claims ---- */

enum { PROGRAMS = 3000 };

static void folded_programs_compute_what_virtual_ones_do(void **state)
{
    (void)state;
    size_t steps = 0, registers = 0, names = 0;
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
        ptx_module *m = random_program(seed);
        ptxgen_error err;
        if (ptx_module_status(m, &err) != PTXGEN_OK)
            fail_msg("program %u: %s", (unsigned)seed, err.message);
        struct machine before, after;
        run(&before, m->kernels, false);
        run(&after, m->kernels, true);
        if (before.results != after.results || before.steps != after.steps ||
            memcmp(before.result, after.result, before.results * sizeof *before.result) != 0)
            fail_msg("program %u computes something else when it is folded", (unsigned)seed);
        steps += before.steps;
        registers += m->kernels->register_count;
        for (int c = 0; c < PTX_CLASSES; c++)
            names += m->kernels->names[c];
        ptx_module_destroy(m);
    }
    print_message("%d programs, %zu steps, %zu registers in %zu names\n", PROGRAMS, steps, registers,
                  names);
    assert_true(names * 3 < registers); /* there was something to fold */
}

/* Blocks laid out against the order of their execution: the read stands before the write. */
static void code_out_of_order_computes_what_virtual_registers_do(void **state)
{
    (void)state;
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    ptx_u64 out = ptx_mov_u64(k, ptx_imm_u64(0));
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_label start = ptx_label_new(k, "start"), finish = ptx_label_new(k, "finish");
    ptx_bra(k, start);
    ptx_label_bind(k, finish);
    ptx_st_global_u32(k, out, 0, ptx_mov_u32(k, ptx_imm_u32(5)));
    ptx_st_global_u32(k, out, 4, x);
    ptx_ret(k);
    ptx_label_bind(k, start);
    ptx_mov_u32_to(k, x, ptx_imm_u32(2));
    ptx_bra(k, finish);
    ptx_kernel_end(k);
    assert_int_equal(ptx_module_status(m, NULL), PTXGEN_OK);
    struct machine before, after;
    run(&before, m->kernels, false);
    run(&after, m->kernels, true);
    assert_int_equal(before.result[1], 2);
    assert_int_equal(after.results, 2);
    assert_memory_equal(before.result, after.result, 2 * sizeof *before.result);
    ptx_module_destroy(m);
}

/* Live intervals by a plain statement of the data-flow equations, over single instructions. */
struct plain {
    const ptx_kernel *k;
    uint8_t *live; /* by instruction × register: live before it */
};

static bool is_live(const struct plain *p, uint32_t at, uint32_t reg)
{
    return at < p->k->code_count && p->live[(size_t)at * p->k->register_count + reg];
}

static bool live_after(const struct plain *p, uint32_t at, uint32_t reg)
{
    const struct ptx_instruction *i = &p->k->code[at];
    bool jumps = i->op == PTX_OP_bra, falls = (i->op != PTX_OP_bra && i->op != PTX_OP_ret) || i->guarded;
    return (falls && is_live(p, at + 1, reg)) ||
           (jumps && is_live(p, p->k->labels[p->k->operands[i->first].index].position, reg));
}

static void check_names_are_few(const ptx_kernel *k, const struct ptx_liveness *l)
{
    struct plain p = {k, calloc(k->code_count, k->register_count)};
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t at = k->code_count; at-- > 0;)
            for (uint32_t r = 0; r < k->register_count; r++) {
                bool read = false, killed = false;
                struct ptx_references refs = ptx_uses_at(l->uses, at);
                for (uint32_t j = 0; j < refs.count; j++) {
                    read = read || (refs.list[j].reg == r && refs.list[j].read);
                    killed = killed || (refs.list[j].reg == r && ptx_kills(l, &refs.list[j]));
                }
                bool now = read || (live_after(&p, at, r) && !killed);
                changed = changed || now != is_live(&p, at, r);
                p.live[(size_t)at * k->register_count + r] = now;
            }
    }
    /* Intervals over positions 2i (before, reading) and 2i + 1 (writing, after). */
    uint32_t positions = 2 * k->code_count, *overlap = calloc(PTX_CLASSES * (size_t)positions, 4);
    for (uint32_t r = 0; r < k->register_count; r++) {
        uint32_t first = UINT32_MAX, last = 0;
        struct ptx_references refs = ptx_uses_of(l->uses, r);
        for (uint32_t at = 0; at < k->code_count; at++) {
            bool before = is_live(&p, at, r), after = live_after(&p, at, r);
            for (uint32_t j = 0; j < refs.count; j++)
                after = after || (refs.list[j].at == at && refs.list[j].written);
            if (before && 2 * at < first)
                first = 2 * at;
            if (after && 2 * at + 1 < first)
                first = 2 * at + 1;
            if (before || after)
                last = 2 * at + after;
        }
        for (uint32_t at = first; at <= last && at < positions; at++)
            overlap[ptx_class_of(k->registers[r].type) * positions + at]++;
    }
    for (uint32_t c = 0; c < PTX_CLASSES; c++) {
        uint32_t most = 0;
        for (uint32_t at = 0; at < positions; at++)
            most = overlap[c * positions + at] > most ? overlap[c * positions + at] : most;
        if (most != k->names[c])
            fail_msg("class %u has %u names, but at most %u intervals overlap", c, k->names[c], most);
    }
    free(overlap);
    free(p.live);
}

static void names_are_as_many_as_intervals_overlap(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        ptx_module *m = random_program(seed);
        ptx_kernel *k = m->kernels;
        struct ptx_cfg cfg;
        struct ptx_uses uses;
        struct ptx_liveness l;
        assert_true(ptx_cfg_build(k, &cfg));
        assert_true(ptx_uses_build(k, &uses));
        assert_true(ptx_liveness_build(k, &cfg, &uses, &l));
        ptx_check_initialised(&l);
        check_names_are_few(k, &l);
        ptx_liveness_free(&l);
        ptx_uses_free(k, &uses);
        ptx_cfg_free(k, &cfg);
        ptx_module_destroy(m);
    }
}

/* ---- wgmma ---- */

/* A operands in registers, with `after` emitted behind the commit of the only group. */
static ptx_module *wgmma_program(int wait, bool second_group, ptx_u32 a[4], ptx_u32 *later)
{
    ptx_module *m = ptx_module_create(&sm_90a, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    ptx_kernel_reqntid(k, 128, 1, 1);
    ptx_u64 b = ptx_mov_u64(k, ptx_imm_u64(0)), out = ptx_param_u64(k, "out");
    ptx_f32 acc[4];
    for (int j = 0; j < 4; j++) {
        a[j] = ptx_mov_u32(k, ptx_imm_u32(1));
        acc[j] = ptx_mov_f32(k, ptx_imm_f32(0));
    }
    ptx_pred on = ptx_setp_eq_u32(k, a[0], a[1]);
    ptx_wgmma_fence(k);
    ptx_wgmma_k16_f32_f16_ra(k, 8, acc, a, b, on, 1, 1, 0);
    ptx_wgmma_commit_group(k);
    if (second_group)
        ptx_wgmma_commit_group(k);
    ptx_wgmma_wait_group(k, wait);
    *later = ptx_mov_u32(k, ptx_imm_u32(7));
    ptx_st_global_u32(k, out, 0, *later);
    ptx_wgmma_wait_group(k, 0);
    ptx_st_global_v4_f32(k, out, 16, acc);
    ptx_kernel_end(k);
    ptxgen_error err;
    assert_ok(ptx_module_status(m, &err), &err);
    return m;
}

static bool shares_a_name(const ptx_module *m, const ptx_u32 a[4], ptx_u32 later)
{
    const struct ptx_register *r = m->kernels->registers;
    bool shared = false;
    for (int j = 0; j < 4; j++)
        shared = shared || r[a[j].o.index].name == r[later.o.index].name;
    return shared;
}

static void wgmma_operands_keep_their_names_until_a_wait_covers_their_group(void **state)
{
    (void)state;
    static const struct { int wait; bool second, free; } cases[] = {
        {0, false, true}, {1, false, false}, {1, true, true}, {2, true, false}, {0, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptx_u32 a[4], later;
        ptx_module *m = wgmma_program(cases[i].wait, cases[i].second, a, &later);
        if (shares_a_name(m, a, later) != cases[i].free)
            fail_msg("wait_group %d behind %d groups: names are %s", cases[i].wait,
                     1 + cases[i].second, cases[i].free ? "kept" : "given away");
        ptx_module_destroy(m);
    }
}

static void wgmma_operands_keep_their_names_around_a_loop_that_waits_in_its_next_turn(void **state)
{
    (void)state;
    ptx_module *m = ptx_module_create(&sm_90a, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    ptx_kernel_reqntid(k, 128, 1, 1);
    ptx_u64 b = ptx_mov_u64(k, ptx_imm_u64(0)), out = ptx_param_u64(k, "out");
    ptx_u32 i = ptx_mov_u32(k, ptx_imm_u32(0)), a[4], early;
    ptx_f32 acc[4];
    for (int j = 0; j < 4; j++)
        acc[j] = ptx_mov_f32(k, ptx_imm_f32(0));
    ptx_pred on = ptx_setp_eq_u32(k, i, i);
    ptx_for(k, i, ptx_imm_u32(8), ptx_imm_u32(1))
    {
        early = ptx_mov_u32(k, ptx_imm_u32(7)); /* the group of the turn before is still under way */
        ptx_st_global_u32(k, out, 0, early);
        ptx_wgmma_wait_group(k, 0);
        for (int j = 0; j < 4; j++)
            a[j] = ptx_mov_u32(k, i);
        ptx_wgmma_fence(k);
        ptx_wgmma_k16_f32_f16_ra(k, 8, acc, a, b, on, 1, 1, 0);
        ptx_wgmma_commit_group(k);
    }
    ptx_wgmma_wait_group(k, 0);
    ptx_st_global_v4_f32(k, out, 16, acc);
    ptx_kernel_end(k);
    assert_int_equal(ptx_module_status(m, NULL), PTXGEN_OK);
    assert_false(shares_a_name(m, a, early));
    ptx_module_destroy(m);
}

/* ---- pressure ---- */

static unsigned pressure_of(build_function build)
{
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    build(k);
    ptx_kernel_end(k);
    ptx_kernel_info info;
    assert_int_equal(ptx_module_kernel_info(m, 0, &info), PTXGEN_OK);
    ptx_module_destroy(m);
    return info.pressure;
}

static void three_words(ptx_kernel *k)
{
    ptx_u64 p = ptx_mov_u64(k, ptx_imm_u64(0)); /* 2 */
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(0)); /* 3 */
    ptx_st_global_u32(k, p, 0, x);
}
static void unread_results(ptx_kernel *k)
{
    ptx_u64 p = ptx_mov_u64(k, ptx_imm_u64(0)); /* 2 */
    ptx_u32 v[4];
    ptx_ld_global_v4_u32(k, v, p, 0); /* 2 + 4 */
    ptx_st_global_u32(k, p, 0, v[0]);
}
static void held_over_a_loop(ptx_kernel *k)
{
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(0)), i = ptx_mov_u32(k, ptx_imm_u32(0)); /* 2 */
    ptx_for(k, i, ptx_imm_u32(4), ptx_imm_u32(1)) ptx_nanosleep_u32(k, ptx_add_u32(k, i, i)); /* 3 */
    ptx_nanosleep_u32(k, x);
}

static void pressure_is_the_peak_of_live_words(void **state)
{
    (void)state;
    assert_int_equal(pressure_of(three_words), 3);
    assert_int_equal(pressure_of(unread_results), 6);
    assert_int_equal(pressure_of(held_over_a_loop), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(folded_programs_compute_what_virtual_ones_do),
        TEST(code_out_of_order_computes_what_virtual_registers_do),
        TEST(names_are_as_many_as_intervals_overlap),
        TEST(wgmma_operands_keep_their_names_until_a_wait_covers_their_group),
        TEST(wgmma_operands_keep_their_names_around_a_loop_that_waits_in_its_next_turn),
        TEST(pressure_is_the_peak_of_live_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
