/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Register pressure under guards: written cases whose answer is counted by hand, and random small
 * programs against two models that enumerate what is live. One follows every path under every
 * value of the guards, below which the pressure never is; the other states the builder's rules
 * (liveness.c) without its sets and intervals, and agrees exactly.
 */
#include "support.h"
#include "tests/random.h"
#include "tests/share.h"

/* ---- programs ---- */

/* Registers of a program: an address, a word that the predicates come from, predicates, words. */
enum { OUT, SEED, P, Q, BRANCH, WORDS, WORD_COUNT = 5, REGISTERS = WORDS + WORD_COUNT };
static const unsigned weights[REGISTERS] = {2, 1, 0, 0, 0, 1, 1, 1, 1, 1};

enum op { LOAD_OUT, LOAD_SEED, SET, MOVE, ADD, PAIR, STORE, JUMP };

struct line {
    enum op op;
    int guard; /* P, Q or BRANCH; −1: none */
    bool negated;
    int d[2], s[2]; /* registers, −1: none */
    int target;     /* of a jump: the line that it goes to */
};

enum { MOST_LINES = 32 };
struct program {
    struct line lines[MOST_LINES];
    int count;
};

static bool writes(const struct line *l, int r)
{
    return l->d[0] == r || l->d[1] == r;
}
/* Whether the line reads the register, its guard apart. */
static bool reads_operand(const struct line *l, int r)
{
    return l->s[0] == r || l->s[1] == r;
}
static bool reads(const struct line *l, int r)
{
    return reads_operand(l, r) || l->guard == r;
}

static struct line *add_line(struct program *p, enum op op, int d, int s)
{
    assert_true(p->count < MOST_LINES);
    struct line *l = &p->lines[p->count++];
    *l = (struct line){.op = op, .guard = -1, .d = {d, -1}, .s = {s, -1}, .target = -1};
    return l;
}

static void begin_program(struct program *p)
{
    p->count = 0;
    add_line(p, LOAD_OUT, OUT, -1);
    add_line(p, LOAD_SEED, SEED, -1);
    for (int r = P; r <= BRANCH; r++)
        add_line(p, SET, r, SEED);
}

/* ---- a program in the builder ---- */

static ptx_operand registers[REGISTERS];

static void emit_unguarded(ptx_kernel *k, const struct line *l, const ptx_label *labels)
{
    ptx_u32 a = {l->s[0] < 0 ? (ptx_operand){0} : registers[l->s[0]]};
    ptx_u32 b = {l->s[1] < 0 ? (ptx_operand){0} : registers[l->s[1]]};
    ptx_u32 d = {l->d[0] < 0 ? (ptx_operand){0} : registers[l->d[0]]};
    ptx_u64 out = {registers[OUT]};
    ptx_param param = {0};
    switch (l->op) {
    case LOAD_OUT:
        param = ptx_param_declare(k, "out", 8, 8);
        registers[OUT] = ptx_ld_param_u64(k, param, 0).o;
        break;
    case LOAD_SEED:
        param = ptx_param_declare(k, "seed", 4, 4);
        registers[SEED] = ptx_ld_param_u32(k, param, 0).o;
        break;
    case SET:
        if (registers[l->d[0]].kind == PTX_OPERAND_NONE)
            registers[l->d[0]] = ptx_setp_eq_u32(k, a, ptx_imm_u32(1)).o;
        else
            ptx_setp_eq_u32_to(k, (ptx_pred){registers[l->d[0]]}, a, ptx_imm_u32(1));
        break;
    case MOVE:
        if (d.o.kind == PTX_OPERAND_NONE)
            registers[l->d[0]] = ptx_mov_u32(k, ptx_imm_u32(7)).o;
        else
            ptx_mov_u32_to(k, d, ptx_imm_u32(7));
        break;
    case ADD:
        if (d.o.kind == PTX_OPERAND_NONE)
            registers[l->d[0]] = ptx_add_u32(k, a, b).o;
        else
            ptx_add_u32_to(k, d, a, b);
        break;
    case PAIR: {
        ptx_operand o[4] = {registers[l->d[0]], registers[l->d[1]], out.o, ptx_imm_u32(0).o};
        o[0].type = o[1].type = PTX_U32;
        ptx_emit(k, PTX_OP_ld_global_v2_u32, 0, 0, o, 4, PTX_HERE);
        registers[l->d[0]] = o[0];
        registers[l->d[1]] = o[1];
        break;
    }
    case STORE: ptx_st_global_u32(k, out, 0, a); break;
    case JUMP: ptx_bra(k, labels[l->target]); break;
    }
}

static void emit_program(ptx_kernel *k, const struct program *p)
{
    ptx_label labels[MOST_LINES + 1];
    bool used[MOST_LINES + 1] = {false};
    memset(registers, 0, sizeof registers);
    for (int i = 0; i < p->count; i++)
        if (p->lines[i].op == JUMP && !used[p->lines[i].target]) {
            used[p->lines[i].target] = true;
            labels[p->lines[i].target] = ptx_label_new(k, NULL);
        }
    for (int i = 0; i < p->count; i++) {
        const struct line *l = &p->lines[i];
        if (used[i])
            ptx_label_bind(k, labels[i]);
        if (l->guard < 0)
            emit_unguarded(k, l, labels);
        else if (l->negated)
            ptx_guarded_not(k, (ptx_pred){registers[l->guard]}) emit_unguarded(k, l, labels);
        else
            ptx_guarded(k, (ptx_pred){registers[l->guard]}) emit_unguarded(k, l, labels);
    }
    if (used[p->count])
        ptx_label_bind(k, labels[p->count]);
}

/* The pressure; −1 where the builder refuses the program for a register that was not written. */
static int pressure_of(const struct program *p)
{
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    emit_program(k, p);
    ptx_kernel_end(k);
    ptx_kernel_info info;
    ptxgen_error err;
    ptxgen_status status = ptx_module_status(m, &err);
    if (status == PTXGEN_OK)
        assert_int_equal(ptx_module_kernel_info(m, 0, &info), PTXGEN_OK);
    else if (status != PTXGEN_ERROR_UNINITIALISED)
        fail_msg("%s", err.message);
    ptx_module_destroy(m);
    return status == PTXGEN_OK ? (int)info.pressure : -1;
}

/* ---- the models ---- */

/* What is live before each line; that before line `count` is nothing. */
typedef bool live_map[MOST_LINES + 1][REGISTERS];

/* The weight at the worst line: of what is live before it, and of what is live or written after. */
static int peak_of(const struct program *p, live_map live)
{
    int peak = 0;
    for (int i = 0; i < p->count; i++) {
        const struct line *l = &p->lines[i];
        unsigned before = 0, after = 0;
        for (int r = 0; r < REGISTERS; r++) {
            bool behind = writes(l, r) || live[i + 1][r] || (l->op == JUMP && live[l->target][r]);
            before += live[i][r] ? weights[r] : 0;
            after += behind ? weights[r] : 0;
        }
        peak = (int)before > peak ? (int)before : peak;
        peak = (int)after > peak ? (int)after : peak;
    }
    return peak;
}

/* Every path under every value of P and Q, which setp makes either. Branches go both ways. */
static int real_pressure(const struct program *p)
{
    static bool state[MOST_LINES + 1][4][REGISTERS];
    live_map live = {{false}};
    memset(state, 0, sizeof state);
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = p->count; i-- > 0;)
            for (int v = 0; v < 4; v++)
                for (int r = 0; r < REGISTERS; r++) {
                    const struct line *l = &p->lines[i];
                    bool branch = l->guard == BRANCH;
                    bool holds = l->guard < 0 || branch || (v >> (l->guard - P) & 1) != l->negated;
                    int set = holds && l->op == SET && l->d[0] != BRANCH ? 1 << (l->d[0] - P) : 0;
                    bool behind = (l->op != JUMP || l->guard >= 0) &&
                                  (state[i + 1][v][r] || state[i + 1][v ^ set][r]);
                    if (l->op == JUMP && holds)
                        behind = behind || state[l->target][v][r];
                    bool now = l->guard == r || (holds && reads_operand(l, r)) ||
                               (behind && !(holds && writes(l, r)));
                    changed = changed || (now && !state[i][v][r]);
                    state[i][v][r] = state[i][v][r] || now;
                    live[i][r] = live[i][r] || now;
                }
    }
    return peak_of(p, live);
}

/* ---- the rules ---- */

/* Whether a basic block begins at the line. */
static bool begins_block(const struct program *p, int line)
{
    bool begins = !line || p->lines[line - 1].op == JUMP;
    for (int i = 0; i < p->count; i++)
        begins = begins || (p->lines[i].op == JUMP && p->lines[i].target == line);
    return begins;
}

static bool same_block(const struct program *p, int from, int to)
{
    for (int i = from + 1; i <= to; i++)
        if (begins_block(p, i))
            return false;
    return true;
}

static bool guard_kept(const struct program *p, int guard, int from, int to)
{
    for (int i = from; i < to; i++)
        if (writes(&p->lines[i], guard))
            return false;
    return true;
}

/* The line of the opposite guard that wrote the register last, in one block; −1: there is none. */
static int opposite_of(const struct program *p, int line, int r)
{
    const struct line *mine = &p->lines[line];
    for (int i = line; i-- > 0;)
        if (writes(&p->lines[i], r)) {
            const struct line *other = &p->lines[i];
            bool opposite = mine->guard >= 0 && other->guard == mine->guard &&
                            other->negated != mine->negated && same_block(p, i, line) &&
                            guard_kept(p, mine->guard, i, line);
            return opposite ? i : -1;
        }
    return -1;
}

/* Whether an instruction's writes all complete those of opposite guards. */
static bool completes(const struct program *p, int line)
{
    for (int r = 0; r < REGISTERS; r++)
        if (writes(&p->lines[line], r) && opposite_of(p, line, r) < 0)
            return false;
    return true;
}

static bool read_between(const struct program *p, int r, int first, int last)
{
    for (int i = first; i <= last; i++)
        if (reads(&p->lines[i], r))
            return true;
    return false;
}

/* Whether all that touches the register stands under one guard, in one block, and writes first. */
static bool predicated(const struct program *p, int r, bool in_one_block)
{
    int first = -1, last = -1;
    for (int i = 0; i < p->count; i++) {
        const struct line *l = &p->lines[i];
        if (!writes(l, r) && !reads(l, r))
            continue;
        first = first < 0 ? i : first;
        last = i;
        if (l->guard < 0 || l->guard == r || l->guard != p->lines[first].guard ||
            l->negated != p->lines[first].negated)
            return false;
    }
    return first >= 0 &&
           (!in_one_block || (!reads(&p->lines[first], r) && same_block(p, first, last) &&
                              guard_kept(p, p->lines[first].guard, first, last)));
}

/* Whether no value from above the line is left in the register below it. */
static bool ends_value(const struct program *p, int line, int r, const bool *whole)
{
    const struct line *l = &p->lines[line];
    if (!writes(l, r))
        return false;
    if (l->guard < 0 || whole[r])
        return true;
    for (int i = line + 1; i < p->count && same_block(p, line, i); i++)
        if (writes(&p->lines[i], r))
            return opposite_of(p, i, r) == line && completes(p, i) &&
                   !read_between(p, r, line + 1, i);
    return false;
}

static void solve_rules(const struct program *p, const bool *whole, live_map live)
{
    memset(live, 0, sizeof(live_map));
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = p->count; i-- > 0;)
            for (int r = 0; r < REGISTERS; r++) {
                const struct line *l = &p->lines[i];
                bool behind = ((l->op != JUMP || l->guard >= 0) && live[i + 1][r]) ||
                              (l->op == JUMP && live[l->target][r]);
                bool now = reads(l, r) || (behind && !ends_value(p, i, r, whole));
                changed = changed || now != live[i][r];
                live[i][r] = now;
            }
    }
}

static int ruled_pressure(const struct program *p)
{
    bool whole[REGISTERS];
    live_map live;
    for (int r = 0; r < REGISTERS; r++)
        whole[r] = predicated(p, r, true);
    solve_rules(p, whole, live);
    for (int r = 0; r < REGISTERS; r++)
        whole[r] = whole[r] || (live[0][r] && predicated(p, r, false));
    solve_rules(p, whole, live);
    return peak_of(p, live);
}

/* ---- written cases ---- */

enum { X = WORDS, Y, Z, V, W };

static struct line *guarded(struct program *p, bool negated, enum op op, int d, int s)
{
    struct line *l = add_line(p, op, d, s);
    l->guard = P;
    l->negated = negated;
    return l;
}

/* Two words, from the same load, that live over what is between them and their stores. */
static void hold_two(struct program *p)
{
    add_line(p, PAIR, Z, OUT)->d[1] = V;
}
static void store_two(struct program *p)
{
    add_line(p, STORE, -1, Z)->s[1] = OUT;
    add_line(p, STORE, -1, V)->s[1] = OUT;
}
static void store(struct program *p, int r)
{
    add_line(p, STORE, -1, r)->s[1] = OUT;
}

static void check(const struct program *p, const char *what, int expected)
{
    int got = pressure_of(p);
    if (got != expected)
        fail_msg("%s: %d, not %d", what, got, expected);
}

/* The address counts two; Z and V two more where they are held. */
static void pressure_under_opposite_guards_is_counted(void **state)
{
    (void)state;
    struct program p;

    begin_program(&p);
    guarded(&p, false, MOVE, X, -1);
    guarded(&p, true, MOVE, X, -1);
    hold_two(&p);
    store_two(&p);
    store(&p, X);
    check(&p, "a pair, then others, then a read", 5);

    begin_program(&p);
    guarded(&p, false, MOVE, X, -1);
    hold_two(&p);
    store_two(&p);
    guarded(&p, true, MOVE, X, -1);
    store(&p, X);
    check(&p, "others between the halves of a pair", 5);

    begin_program(&p);
    hold_two(&p);
    store_two(&p);
    guarded(&p, false, MOVE, X, -1);
    guarded(&p, true, MOVE, X, -1);
    store(&p, X);
    check(&p, "others before a pair", 4);

    begin_program(&p);
    add_line(&p, MOVE, X, -1);
    hold_two(&p);
    store_two(&p);
    guarded(&p, false, MOVE, X, -1);
    guarded(&p, true, MOVE, X, -1);
    store(&p, X);
    check(&p, "a pair leaves nothing of the value before it", 4);

    begin_program(&p);
    add_line(&p, MOVE, X, -1);
    guarded(&p, false, STORE, -1, X)->s[1] = OUT;
    hold_two(&p);
    store_two(&p);
    guarded(&p, true, MOVE, X, -1);
    store(&p, X);
    check(&p, "a guarded read is no half of a pair", 5);

    begin_program(&p);
    add_line(&p, MOVE, X, -1);
    hold_two(&p);
    store_two(&p);
    guarded(&p, true, MOVE, X, -1);
    store(&p, X);
    check(&p, "one guarded write leaves the old value", 5);

    begin_program(&p);
    add_line(&p, MOVE, X, -1);
    hold_two(&p);
    store_two(&p);
    guarded(&p, false, MOVE, X, -1);
    store(&p, X);
    guarded(&p, true, MOVE, X, -1);
    store(&p, X);
    check(&p, "a read between the halves is of the old value", 5);

    begin_program(&p);
    add_line(&p, MOVE, X, -1);
    hold_two(&p);
    store_two(&p);
    guarded(&p, false, MOVE, X, -1);
    add_line(&p, SET, P, SEED);
    guarded(&p, true, MOVE, X, -1);
    store(&p, X);
    check(&p, "a guard that changes, out of a word that lives so long, makes no pair", 6);

    begin_program(&p);
    add_line(&p, MOVE, X, -1);
    hold_two(&p);
    store_two(&p);
    guarded(&p, false, MOVE, X, -1);
    guarded(&p, true, MOVE, X, -1)->guard = Q;
    store(&p, X);
    check(&p, "two guards make no pair", 5);

    begin_program(&p);
    hold_two(&p);
    store_two(&p);
    guarded(&p, false, MOVE, X, -1);
    guarded(&p, false, STORE, -1, X)->s[1] = OUT;
    check(&p, "what stands under one guard begins with its write", 4);

    begin_program(&p);
    add_line(&p, MOVE, X, -1);
    add_line(&p, MOVE, Y, -1);
    guarded(&p, false, PAIR, X, OUT)->d[1] = Y;
    hold_two(&p);
    guarded(&p, true, MOVE, X, -1);
    store_two(&p);
    store(&p, X);
    store(&p, Y);
    check(&p, "half a vector is written under the opposite guard", 6);

    begin_program(&p);
    hold_two(&p);
    store_two(&p);
    guarded(&p, false, PAIR, X, OUT)->d[1] = Y;
    guarded(&p, true, MOVE, X, -1);
    guarded(&p, true, MOVE, Y, -1);
    store(&p, X);
    store(&p, Y);
    check(&p, "a whole vector is written under both", 4);

    begin_program(&p);
    add_line(&p, MOVE, X, -1);
    int top = p.count;
    hold_two(&p);
    store_two(&p);
    guarded(&p, false, STORE, -1, X)->s[1] = OUT;
    guarded(&p, true, MOVE, X, -1);
    struct line *back = add_line(&p, JUMP, -1, -1);
    back->guard = BRANCH;
    back->target = top;
    check(&p, "a value that is carried around a loop", 5);

    begin_program(&p);
    add_line(&p, MOVE, X, -1);
    top = p.count;
    guarded(&p, false, MOVE, X, -1);
    guarded(&p, true, MOVE, X, -1);
    store(&p, X);
    hold_two(&p);
    store_two(&p);
    back = add_line(&p, JUMP, -1, -1);
    back->guard = BRANCH;
    back->target = top;
    check(&p, "a value that each turn of a loop makes anew", 4);
}

/* ---- random programs ---- */

static int below(struct random *r, int n)
{
    return (int)(random_bits(r) % (uint64_t)n);
}

static int word(struct random *r)
{
    return WORDS + below(r, WORD_COUNT);
}

static void draw(struct random *r, struct program *p)
{
    begin_program(p);
    int written = below(r, WORD_COUNT + 1), lines = 4 + below(r, 12);
    for (int i = 0; i < written; i++)
        add_line(p, MOVE, WORDS + i, -1);
    int body = p->count;
    for (int i = 0; i < lines; i++) {
        int kind = below(r, 16);
        struct line *l;
        if (kind < 4) {
            l = add_line(p, MOVE, word(r), -1);
        } else if (kind < 7) {
            l = add_line(p, ADD, word(r), word(r));
            l->s[1] = word(r);
        } else if (kind < 9) {
            l = add_line(p, PAIR, word(r), OUT);
            do
                l->d[1] = word(r);
            while (l->d[1] == l->d[0]);
        } else if (kind < 14) {
            l = add_line(p, STORE, -1, word(r));
            l->s[1] = OUT;
        } else if (kind < 15) {
            l = add_line(p, SET, P + below(r, 3), SEED);
            continue;
        } else {
            l = add_line(p, JUMP, -1, -1);
            l->guard = BRANCH;
            l->target = body + below(r, lines);
            continue;
        }
        int guard = below(r, 8);
        l->guard = guard < 5 ? P : guard < 6 ? Q : -1;
        l->negated = below(r, 2);
    }
}

/* Whether every register that is read is written by a line above, so that it has a number. */
static bool is_written_first(const struct program *p)
{
    bool written[REGISTERS] = {false};
    for (int i = 0; i < p->count; i++) {
        for (int r = 0; r < REGISTERS; r++)
            if (reads(&p->lines[i], r) && !written[r])
                return false;
        for (int r = 0; r < REGISTERS; r++)
            written[r] = written[r] || writes(&p->lines[i], r);
    }
    return true;
}

static void pressure_of_random_programs_is_that_of_the_models(void **state)
{
    (void)state;
    struct random random = {22};
    int tried = test_share(40000), measured = 0, guarded_better = 0;
    for (int i = 0; i < tried; i++) {
        struct program p;
        draw(&random, &p);
        int got = is_written_first(&p) ? pressure_of(&p) : -1;
        if (got < 0)
            continue;
        int real = real_pressure(&p), ruled = ruled_pressure(&p);
        if (got < real || got != ruled)
            fail_msg("program %d: pressure %d, really %d, by the rules %d", i, got, real, ruled);
        measured++;
        guarded_better += real < got;
    }
    assert_true(measured > tried / 5);
    assert_true(guarded_better < measured / 4); /* the rules are near the truth */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pressure_under_opposite_guards_is_counted),
        TEST(pressure_of_random_programs_is_that_of_the_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
