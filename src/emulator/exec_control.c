/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ISA "Control Flow Instructions" and "Miscellaneous Instructions". Functions have one static
 * frame (their registers and parameters are laid out with the kernel's), hence no recursion.
 */
#include "src/emulator/async.h"
#include "src/emulator/decode.h"
#include "src/emulator/global_order.h"
#include "src/emulator/layout.h"
#include "src/emulator/machine.h"

#include <string.h>

/* ---- branches ---- */

static void bra(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    struct emu_fragment *fragment = warp->current;
    uint32_t next = fragment->pc + 1;
    if (mask == fragment->mask) {
        fragment->pc = insn->target;
        return;
    }
    if (mask && insn->aligned && (warp->cta->cluster->launch->checks & PTXGEN_CHECK_DIVERGENCE))
        emu_fault(warp, insn, __builtin_ctz(mask), PTXGEN_CHECK_DIVERGENCE,
                  "bra.uni is taken by lanes 0x%08x only, of 0x%08x", mask, fragment->mask);
    fragment->pc = next;
    if (mask)
        emu_split(warp, mask, insn->target);
}

static void decode_bra(struct emu_decoder *decoder, struct emu_insn *insn)
{
    insn->aligned = emu_mod(decoder, "uni");
    emu_need_operands(decoder, 1, 1);
    insn->exec = bra;
    insn->flow = FLOW_BRANCH;
    insn->flags = INSN_LABEL;
    insn->target = emu_label(decoder, emu_operand_at(decoder, 0));
}

/* Sends the lanes of `mask` to the pc that each has in `targets`; the others to the next. */
static void scatter(struct emu_warp *warp, uint32_t mask, const uint32_t targets[32])
{
    struct emu_fragment *fragment = warp->current;
    uint32_t left = mask, others = fragment->mask & ~mask, next = fragment->pc + 1;
    fragment->mask = others;
    fragment->pc = next;
    bool reuse = others == 0;
    while (left) {
        uint32_t pc = targets[__builtin_ctz(left)], group = 0;
        for (uint32_t rest = left; rest; rest &= rest - 1)
            if (targets[__builtin_ctz(rest)] == pc)
                group |= rest & (0u - rest);
        left &= ~group;
        if (reuse) {
            fragment->mask = group;
            fragment->pc = pc;
            reuse = false;
        } else {
            warp->fragments[warp->fragment_count++] =
                (struct emu_fragment){.pc = pc, .mask = group, .age = fragment->age};
        }
    }
}

static void brx(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint32_t targets[32];
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint64_t index = emu_lane_value(warp, insn->s[0], lane);
        if (index >= insn->list_count)
            emu_fault(warp, insn, lane, PTXGEN_CHECK_OPERANDS,
                      "index %llu in a list of %u branch targets", (unsigned long long)index,
                      insn->list_count);
        targets[lane] = insn->list[index].offset;
    }
    scatter(warp, mask, targets);
}

static void decode_brx(struct emu_decoder *decoder, struct emu_insn *insn)
{
    uint32_t number;
    if (!emu_mod(decoder, "idx"))
        emu_refuse(decoder, ".idx is missing");
    emu_mod(decoder, "uni");
    emu_need_operands(decoder, 2, 2);
    const struct emu_arg *list = emu_operand_at(decoder, 1);
    const struct emu_symbol *symbol =
        list->kind != OPERAND_NAME
            ? NULL
            : emu_find_symbol(decoder->module, list->name, decoder->statement->scope, &number);
    if (!symbol || symbol->kind != SYMBOL_TARGETS)
        emu_refuse(decoder, "'%.*s' is no list of branch targets", (int)list->name.length,
                   list->name.text ? list->name.text : "");
    insn->exec = brx;
    insn->flow = FLOW_BRANCH;
    insn->flags = INSN_LABEL_LIST;
    insn->s[0] = emu_read_nth(decoder, 0, T_u32);
    insn->list_count = (uint16_t)symbol->targets->count;
    insn->list = emu_alloc(&decoder->program->arena, insn->list_count + 1u, sizeof *insn->list);
    for (uint32_t i = 0; i < insn->list_count; i++)
        insn->list[i].offset = emu_label(decoder, &symbol->targets->items[i]);
}

/* ---- calls ---- */

/* One argument or result: between a caller's place and the callee's parameter. */
struct transfer {
    struct emu_src reg; /* the caller's register, when bytes is not 0 */
    bool is_register;
    uint32_t caller, callee, size;
};

struct call {
    uint32_t return_slot;
    uint32_t count;
    struct transfer transfers[];
};

static void move_bytes(struct emu_warp *warp, uint32_t mask, uint32_t from, uint32_t to,
                       uint32_t size)
{
    uint32_t frame = warp->cta->cluster->launch->program->local_bytes;
    for (uint32_t left = mask; left; left &= left - 1) {
        size_t base = (size_t)__builtin_ctz(left) * frame;
        memcpy(warp->local + base + to, warp->local + base + from, size);
        memcpy(warp->local_state + base + to, warp->local_state + base + from, size);
    }
}

static void pass_register(struct emu_warp *warp, uint32_t mask, const struct transfer *transfer,
                          bool in)
{
    uint32_t frame = warp->cta->cluster->launch->program->local_bytes;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        size_t at = (size_t)lane * frame + transfer->callee;
        uint64_t value = 0;
        if (in) {
            value = emu_lane_value(warp, transfer->reg, lane);
            memcpy(warp->local + at, &value, transfer->size);
            memset(warp->local_state + at, 1, transfer->size);
        } else {
            memcpy(&value, warp->local + at, transfer->size);
            emu_set_lane(warp, transfer->reg, lane, value);
        }
    }
}

static void transfer_all(struct emu_warp *warp, const struct call *call, uint32_t mask, bool in)
{
    for (uint32_t i = 0; i < call->count; i++) {
        const struct transfer *transfer = &call->transfers[i];
        if (transfer->is_register)
            pass_register(warp, mask, transfer, in);
        else
            move_bytes(warp, mask, in ? transfer->caller : transfer->callee,
                       in ? transfer->callee : transfer->caller, transfer->size);
    }
}

static uint32_t *return_row(struct emu_warp *warp, uint32_t slot)
{
    const struct emu_program *program = warp->cta->cluster->launch->program;
    return (uint32_t *)(void *)(warp->bank[0] + program->slots[slot].offset);
}

static void call(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    const struct call *info = insn->extra;
    uint32_t *returns = return_row(warp, info->return_slot), targets[32];
    uint32_t active = warp->written[info->return_slot] & mask;
    if (active)
        emu_fault(warp, insn, __builtin_ctz(active), PTXGEN_CHECK_OPERANDS,
                  "the function is called while it runs: recursion is not emulated");
    transfer_all(warp, info, mask, true);
    for (int l = 0; l < 32; l++) {
        targets[l] = insn->target;
        if (mask >> l & 1)
            returns[l] = warp->current->pc + 1;
    }
    warp->written[info->return_slot] |= mask;
    scatter(warp, mask, targets);
}

static void call_result(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    transfer_all(warp, insn->extra, mask, false);
}

static void leave(struct emu_warp *warp, uint32_t mask)
{
    warp->current->pc++;
    if (mask)
        emu_warp_retire(warp, mask);
}

static void exit_thread(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    if (mask && warp->cta->cluster->copies)
        emu_copies_at_exit(warp, insn, mask);
    leave(warp, mask);
}

static void ret(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    uint32_t targets[32];
    memcpy(targets, return_row(warp, (uint32_t)insn->imm), sizeof targets);
    warp->written[insn->imm] &= ~mask;
    scatter(warp, mask, targets);
}

static void decode_ret(struct emu_decoder *decoder, struct emu_insn *insn)
{
    emu_mod(decoder, "uni");
    emu_need_operands(decoder, 0, 0);
    insn->flow = FLOW_CONTROL;
    insn->exec = decoder->unit->function->is_entry ? exit_thread : ret;
    insn->imm = decoder->unit->return_slot;
}

static void decode_exit(struct emu_decoder *decoder, struct emu_insn *insn)
{
    emu_need_operands(decoder, 0, 0);
    insn->flow = FLOW_CONTROL;
    insn->exec = exit_thread;
}

static void trap(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    emu_fault(warp, insn, __builtin_ctz(mask), PTXGEN_CHECK_TRAP, "the kernel traps here");
}

static void fill_transfer(struct emu_decoder *decoder, struct transfer *transfer,
                          const struct emu_arg *item, const struct emu_variable *parameter,
                          uint64_t callee, bool in)
{
    uint32_t number;
    const struct emu_symbol *symbol =
        item->kind != OPERAND_NAME
            ? NULL
            : emu_find_symbol(decoder->module, item->name, decoder->statement->scope, &number);
    transfer->callee = (uint32_t)callee;
    transfer->size = (uint32_t)parameter->size;
    if (symbol && symbol->kind == SYMBOL_VARIABLE && symbol->count == 2) {
        const struct emu_variable *variable = &decoder->unit->function->variables[symbol->first];
        transfer->caller = (uint32_t)decoder->unit->variable_at[symbol->first];
        if (variable->size != parameter->size)
            emu_refuse(decoder, "'%.*s' has %llu bytes, the function's parameter %llu",
                       (int)item->name.length, item->name.text, (unsigned long long)variable->size,
                       (unsigned long long)parameter->size);
        return;
    }
    transfer->is_register = true;
    if (parameter->size > 8)
        emu_refuse(decoder, "a parameter of %llu bytes is not passed in a register",
                   (unsigned long long)parameter->size);
    transfer->reg = in ? emu_read_wide(decoder, item, parameter->type)
                       : emu_write_wide(decoder, item, parameter->type);
}

static const struct call *make_call(struct emu_decoder *decoder, const struct emu_arg *list,
                                    const struct emu_variable *parameters, size_t count,
                                    const uint64_t *at, uint32_t return_slot, bool in)
{
    size_t given = list ? list->count : 0;
    if (given != count)
        emu_refuse(decoder, "%zu %s given, %zu declared", given,
                   in ? "arguments are" : "results are", count);
    struct call *info =
        emu_alloc(&decoder->program->arena, 1, sizeof *info + count * sizeof *info->transfers);
    info->return_slot = return_slot;
    info->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        fill_transfer(decoder, &info->transfers[i], &list->items[i], &parameters[i], at[i], in);
    return info;
}

/* call{.uni} {(results),} function {, (arguments)} {, prototype}; */
static void decode_call(struct emu_decoder *decoder, struct emu_insn *insn)
{
    uint32_t at = 0, number;
    const struct emu_arg *results = NULL, *arguments = NULL;
    emu_mod(decoder, "uni");
    emu_need_operands(decoder, 1, 4);
    if (emu_operand_at(decoder, at)->kind == OPERAND_LIST)
        results = emu_operand_at(decoder, at++);
    const struct emu_arg *callee = emu_operand_at(decoder, at++);
    if (at < emu_operand_count(decoder) && emu_operand_at(decoder, at)->kind == OPERAND_LIST)
        arguments = emu_operand_at(decoder, at++);
    const struct emu_symbol *symbol =
        callee->kind != OPERAND_NAME
            ? NULL
            : emu_find_symbol(decoder->module, callee->name, decoder->statement->scope, &number);
    if (!symbol || symbol->kind != SYMBOL_FUNCTION)
        emu_refuse(decoder, "only calls of a named function are emulated");
    const struct emu_function *function = &decoder->module->functions[symbol->first];
    if (emu_str_is(function->name, "__assertfail")) {
        insn->exec = trap;
        return;
    }
    if (!function->has_body)
        emu_refuse(decoder, "function '%.*s' has no body in this module",
                   (int)function->name.length, function->name.text);
    const struct emu_unit *unit = emu_unit_of(decoder, symbol->first);
    insn->exec = call;
    insn->flow = FLOW_CONTROL;
    insn->flags = INSN_FUNCTION;
    insn->target = symbol->first;
    insn->extra = make_call(decoder, arguments, function->parameters, function->parameter_count,
                            unit->parameter_at, unit->return_slot, true);
    emu_next_insn(decoder);
    insn->exec = call_result;
    insn->extra = make_call(decoder, results, function->results, function->result_count,
                            unit->result_at, unit->return_slot, false);
}

/* ---- the rest ---- */

static void decode_trap(struct emu_decoder *decoder, struct emu_insn *insn)
{
    emu_need_operands(decoder, 0, 0);
    insn->exec = trap;
}

static void yield(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    (void)insn;
    (void)mask;
    emu_poll(warp, NULL, 0);
    warp->yields = true;
}

static void decode_nanosleep(struct emu_decoder *decoder, struct emu_insn *insn)
{
    emu_need_type(decoder, "u32");
    emu_need_operands(decoder, 1, 1);
    emu_read_nth(decoder, 0, T_u32);
    insn->exec = yield;
}

void emu_exec_nothing(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    (void)warp;
    (void)insn;
    (void)mask;
}

static void wait_ahead(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    (void)insn;
    (void)mask;
    emu_order_wait_ahead(warp);
}

static void launch_dependents(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    (void)insn;
    (void)mask;
    emu_order_launch_dependents(warp);
}

static void decode_pmevent(struct emu_decoder *decoder, struct emu_insn *insn)
{
    emu_need_operands(decoder, 1, 1);
    uint64_t event = emu_immediate(decoder, emu_operand_at(decoder, 0));
    if (!emu_mod(decoder, "mask") && event > 15)
        emu_refuse(decoder, "event %llu; there are 16", (unsigned long long)event);
    insn->exec = emu_exec_nothing;
}

/* Each launch runs alone; what might be under way beside it is only looked for. */
static void decode_griddepcontrol(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const kinds[] = {"launch_dependents", "wait", NULL};
    int kind = emu_mod_of(decoder, kinds);
    if (kind < 0)
        emu_refuse(decoder, ".launch_dependents or .wait is missing");
    emu_need_operands(decoder, 0, 0);
    insn->exec = kind ? wait_ahead : launch_dependents;
}

/* "setmaxnreg.sync.aligned": a multiple of 8 from 24 to 256. */
static void decode_setmaxnreg(struct emu_decoder *decoder, struct emu_insn *insn)
{
    emu_mod(decoder, "inc");
    emu_mod(decoder, "dec");
    if (!emu_mod(decoder, "sync") || !emu_mod(decoder, "aligned"))
        emu_refuse(decoder, ".sync.aligned is missing");
    emu_need_type(decoder, "u32");
    emu_need_operands(decoder, 1, 1);
    uint64_t count = emu_immediate(decoder, emu_operand_at(decoder, 0));
    if (count < 24 || count > 256 || count % 8)
        emu_refuse(decoder, "%llu registers; a multiple of 8 from 24 to 256 is due",
                   (unsigned long long)count);
    insn->exec = emu_exec_nothing;
    insn->flow = FLOW_COLLECT;
    insn->collect = COLLECT_ALIGNED;
}

const struct emu_opcode emu_control_opcodes[] = {
    {"bra", decode_bra, CLASS_CONTROL},
    {"brx", decode_brx, CLASS_CONTROL},
    {"call", decode_call, CLASS_CONTROL},
    {"ret", decode_ret, CLASS_CONTROL},
    {"exit", decode_exit, CLASS_CONTROL},
    {"trap", decode_trap, CLASS_CONTROL},
    {"brkpt", decode_trap, CLASS_CONTROL},
    {"nanosleep", decode_nanosleep, CLASS_CONTROL},
    {"pmevent", decode_pmevent, CLASS_CONTROL},
    {"griddepcontrol", decode_griddepcontrol, CLASS_CONTROL},
    {"setmaxnreg", decode_setmaxnreg, CLASS_CONTROL},
    {NULL, NULL, CLASS_OTHER}};
