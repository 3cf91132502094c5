/* SPDX-License-Identifier: Apache-2.0 */
/* From parsed functions to a program: layout of variables, opcode lookup, branch targets. */
#include "src/emulator/arith.h"
#include "src/emulator/decode.h"
#include "src/emulator/layout.h"
#include "src/emulator/shared_buffer.h"

#include <stdlib.h>
#include <string.h>

static const struct emu_opcode *const tables[] = {
    emu_convert_opcodes, emu_compare_opcodes, emu_move_opcodes,     emu_logic_opcodes,
    emu_memory_opcodes,  emu_atomic_opcodes,  emu_control_opcodes,  emu_warp_opcodes,
    emu_barrier_opcodes, emu_async_opcodes,   emu_mbarrier_opcodes, emu_tensor_opcodes,
    emu_wgmma_opcodes};

enum { OPCODE_BUCKETS = 512, MOST_LOCAL_BYTES = 512 << 10, LEAST_DYNAMIC_ALIGNMENT = 16 };

static uint32_t opcode_bucket(struct emu_str name)
{
    uint32_t hash = 5381;
    for (uint32_t i = 0; i < name.length; i++)
        hash = hash * 33 + (unsigned char)name.text[i];
    return hash % OPCODE_BUCKETS;
}

static void index_opcodes(struct emu_decoder *decoder)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct emu_opcode *opcode = tables[t]; opcode->mnemonic; opcode++) {
            struct emu_str name = {opcode->mnemonic, (uint32_t)strlen(opcode->mnemonic)};
            uint32_t bucket = opcode_bucket(name);
            while (decoder->opcodes[bucket])
                bucket = (bucket + 1) % OPCODE_BUCKETS;
            decoder->opcodes[bucket] = opcode;
        }
}

static const struct emu_opcode *find_opcode(const struct emu_decoder *decoder, struct emu_str name)
{
    uint32_t bucket = opcode_bucket(name);
    while (decoder->opcodes[bucket] && !emu_str_is(name, decoder->opcodes[bucket]->mnemonic))
        bucket = (bucket + 1) % OPCODE_BUCKETS;
    return decoder->opcodes[bucket];
}

static bool is_dynamic(const struct emu_variable *variable)
{
    return variable->space == SPACE_SHARED && variable->is_extern;
}

static bool is_static_shared(const struct emu_variable *variable)
{
    return variable->space == SPACE_SHARED && !variable->is_extern;
}

/* ---- which functions and shared variables the kernel reaches ---- */

static void reach(struct emu_decoder *decoder, uint32_t index)
{
    uint32_t known;
    if (emu_map_get(&decoder->unit_of, index, &known))
        return;
    emu_map_put(&decoder->scratch, &decoder->unit_of, index, (uint32_t)decoder->unit_count);
    emu_grow(&decoder->scratch, &decoder->units, decoder->unit_count, &decoder->unit_capacity,
             sizeof *decoder->units);
    decoder->units[decoder->unit_count++] =
        (struct emu_unit){.function = &decoder->module->functions[index], .index = index};
}

static void mark_operand(struct emu_decoder *decoder, const struct emu_arg *operand, uint32_t scope)
{
    uint32_t number, known;
    for (uint32_t i = 0; i < operand->count; i++)
        mark_operand(decoder, &operand->items[i], scope);
    if (operand->pair)
        mark_operand(decoder, operand->pair, scope);
    if (operand->kind != OPERAND_NAME)
        return;
    const struct emu_symbol *symbol =
        emu_find_symbol(decoder->module, operand->name, scope, &number);
    if (!symbol)
        return;
    if (symbol->kind == SYMBOL_VARIABLE && symbol->count == 1 &&
        is_static_shared(&decoder->module->variables[symbol->first]) &&
        !emu_map_get(&decoder->shared_at, symbol->first, &known))
        emu_map_put(&decoder->scratch, &decoder->shared_at, symbol->first, 0);
    if (symbol->kind == SYMBOL_FUNCTION && decoder->module->functions[symbol->first].has_body)
        reach(decoder, symbol->first);
}

static int by_index(const void *left, const void *right)
{
    const struct emu_unit *a = left, *b = right;
    return (a->index > b->index) - (a->index < b->index);
}

/* What is reached is appended to what is looked through. */
static void find_reachable(struct emu_decoder *decoder, uint32_t kernel)
{
    reach(decoder, kernel);
    for (size_t u = 0; u < decoder->unit_count; u++) {
        const struct emu_function *function = decoder->units[u].function;
        for (size_t i = 0; i < function->statement_count; i++) {
            const struct emu_statement *statement = &function->statements[i];
            for (uint32_t o = 0; o < statement->operand_count; o++)
                mark_operand(decoder, &statement->operands[o], statement->scope);
        }
    }
    qsort(decoder->units, decoder->unit_count, sizeof *decoder->units, by_index);
    decoder->unit_of = (struct emu_index_map){0};
    for (size_t u = 0; u < decoder->unit_count; u++)
        emu_map_put(&decoder->scratch, &decoder->unit_of, decoder->units[u].index, (uint32_t)u);
}

struct emu_unit *emu_unit_of(struct emu_decoder *decoder, uint32_t function)
{
    uint32_t unit;
    return emu_map_get(&decoder->unit_of, function, &unit) ? &decoder->units[unit] : NULL;
}

/* ---- layout ---- */

static uint64_t place(struct emu_decoder *decoder, uint64_t *used, uint64_t size,
                      uint32_t alignment)
{
    uint64_t at = (*used + alignment - 1) / alignment * alignment;
    if (size > UINT32_MAX / 2 || at + size > UINT32_MAX / 2)
        emu_refuse(decoder, "variables of more than 2 GiB in one state space");
    *used = at + size;
    return at;
}

static void place_parameters(struct emu_decoder *decoder, struct emu_unit *unit, uint64_t *local)
{
    struct emu_program *program = decoder->program;
    const struct emu_function *function = unit->function;
    struct emu_arena *arena = &program->arena;
    uint64_t bytes = 0;
    unit->parameter_at =
        emu_alloc(&decoder->scratch, function->parameter_count + 1, sizeof(uint64_t));
    unit->result_at = emu_alloc(&decoder->scratch, function->result_count + 1, sizeof(uint64_t));
    for (size_t i = 0; i < function->parameter_count; i++)
        unit->parameter_at[i] =
            place(decoder, function->is_entry ? &bytes : local, function->parameters[i].size,
                  function->parameters[i].alignment);
    for (size_t i = 0; i < function->result_count; i++)
        unit->result_at[i] =
            place(decoder, local, function->results[i].size, function->results[i].alignment);
    if (function != program->function)
        return;
    program->parameter_count = (uint32_t)function->parameter_count;
    program->parameter_bytes = (uint32_t)bytes;
    program->parameters =
        emu_alloc(arena, function->parameter_count + 1, sizeof(struct emu_parameter));
    for (size_t i = 0; i < function->parameter_count; i++)
        program->parameters[i] = (struct emu_parameter){(uint32_t)unit->parameter_at[i],
                                                        (uint32_t)function->parameters[i].size};
}

static void place_variables(struct emu_decoder *decoder, struct emu_unit *unit, uint64_t *local,
                            uint64_t *shared)
{
    const struct emu_function *function = unit->function;
    unit->variable_at =
        emu_alloc(&decoder->scratch, function->variable_count + 1, sizeof(uint64_t));
    for (size_t i = 0; i < function->variable_count; i++) {
        const struct emu_variable *variable = &function->variables[i];
        if (variable->space == SPACE_SHARED && variable->is_extern)
            continue;
        if (variable->space == SPACE_GLOBAL || variable->space == SPACE_CONST)
            emu_refuse(decoder,
                       "'%.*s': .global and .const variables inside functions are not "
                       "emulated",
                       (int)variable->name.length, variable->name.text);
        unit->variable_at[i] = place(decoder, variable->space == SPACE_SHARED ? shared : local,
                                     variable->size, variable->alignment);
        if (variable->space == SPACE_SHARED)
            emu_buffer_add(decoder, variable->name, unit->variable_at[i], *shared);
    }
}

/* Dynamic shared memory starts behind the static part, aligned for the strictest variable. */
static void place_dynamic(struct emu_decoder *decoder, uint64_t shared)
{
    uint32_t alignment = decoder->module->dynamic_alignment;
    for (size_t u = 0; u < decoder->unit_count; u++) {
        const struct emu_function *function = decoder->units[u].function;
        for (size_t i = 0; i < function->variable_count; i++)
            if (is_dynamic(&function->variables[i]) && function->variables[i].alignment > alignment)
                alignment = function->variables[i].alignment;
    }
    alignment = alignment < LEAST_DYNAMIC_ALIGNMENT ? LEAST_DYNAMIC_ALIGNMENT : alignment;
    decoder->dynamic_at = (shared + alignment - 1) / alignment * alignment;
    for (size_t u = 0; u < decoder->unit_count; u++) {
        const struct emu_unit *unit = &decoder->units[u];
        for (size_t i = 0; i < unit->function->variable_count; i++)
            if (is_dynamic(&unit->function->variables[i]))
                unit->variable_at[i] = decoder->dynamic_at;
    }
    emu_buffer_add(decoder, (struct emu_str){"dynamic memory", 14}, decoder->dynamic_at,
                   UINT64_MAX);
    decoder->program->shared_bytes = (uint32_t)shared;
    decoder->program->shared_alignment = alignment;
}

static int by_value(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* The module's static shared variables that are named, in the module's order. */
static void place_shared(struct emu_decoder *decoder, uint64_t *shared)
{
    struct emu_index_map *map = &decoder->shared_at;
    uint32_t *named = emu_alloc(&decoder->scratch, map->count + 1, sizeof *named), count = 0;
    for (uint32_t i = 0; i < map->buckets; i++)
        if (map->keys[i])
            named[count++] = map->keys[i] - 1;
    qsort(named, count, sizeof *named, by_value);
    *map = (struct emu_index_map){0};
    for (uint32_t i = 0; i < count; i++) {
        const struct emu_variable *variable = &decoder->module->variables[named[i]];
        uint64_t at = place(decoder, shared, variable->size, variable->alignment);
        emu_buffer_add(decoder, variable->name, at, *shared);
        emu_map_put(&decoder->scratch, map, named[i], (uint32_t)at);
    }
}

uint64_t emu_module_address(struct emu_decoder *decoder, uint32_t variable)
{
    uint32_t at;
    if (is_dynamic(&decoder->module->variables[variable]))
        return decoder->dynamic_at;
    if (emu_map_get(&decoder->shared_at, variable, &at))
        return at;
    return decoder->placement.addresses ? decoder->placement.addresses[variable] : 0;
}

static void lay_out(struct emu_decoder *decoder)
{
    uint64_t shared = 0, local = 0;
    place_shared(decoder, &shared);
    for (size_t u = 0; u < decoder->unit_count; u++) {
        struct emu_unit *unit = decoder->unit = &decoder->units[u];
        place_parameters(decoder, unit, &local);
        place_variables(decoder, unit, &local, &shared);
        unit->return_slot = emu_hidden_slot(decoder, T_b32);
        unit->register_slots = emu_alloc(
            &decoder->scratch, (size_t)unit->function->register_count + 1, sizeof(uint32_t));
    }
    place_dynamic(decoder, shared);
    if (local > MOST_LOCAL_BYTES)
        emu_refuse(decoder, "the kernel needs %llu bytes of local memory a thread; the limit is %d",
                   (unsigned long long)local, MOST_LOCAL_BYTES);
    decoder->program->local_bytes = (uint32_t)((local + 15) / 16 * 16);
}

/* ---- instructions ---- */

static uint32_t *keep_slots(struct emu_decoder *decoder, const uint32_t *slots, uint32_t count)
{
    uint32_t *kept = emu_alloc(&decoder->program->arena, count + 1, sizeof *kept);
    memcpy(kept, slots, count * sizeof *kept);
    return kept;
}

static void push_insn(struct emu_decoder *decoder)
{
    struct emu_program *program = decoder->program;
    struct emu_insn *insn = decoder->insn;
    insn->reads = keep_slots(decoder, decoder->reads, insn->read_count);
    insn->writes = keep_slots(decoder, decoder->writes, insn->write_count);
    emu_grow(&program->arena, &program->code, program->count, &program->capacity,
             sizeof *program->code);
    emu_grow(&decoder->scratch, &decoder->named, program->count, &decoder->named_capacity,
             sizeof *decoder->named);
    decoder->named[program->count] = decoder->names;
    program->code[program->count++] = *insn;
}

static void begin_insn(struct emu_decoder *decoder)
{
    struct emu_insn *insn = decoder->insn;
    memset(insn, 0, sizeof *insn);
    decoder->names = 0;
    insn->guard.absent = true;
    insn->line = decoder->statement ? decoder->statement->line : decoder->unit->function->line;
    if (decoder->statement && decoder->statement->guard.kind == OPERAND_NAME)
        insn->guard = emu_read(decoder, &decoder->statement->guard, T_pred);
}

void emu_next_insn(struct emu_decoder *decoder)
{
    uint8_t class_id = decoder->insn->class_id;
    push_insn(decoder);
    begin_insn(decoder);
    decoder->insn->class_id = class_id;
}

/* A modifier stands once, but for types of what has several. */
static void refuse_repeated(struct emu_decoder *decoder)
{
    static const struct {
        const char *mnemonic;
        uint32_t types;
    } typed[] = {{"cvt", 2},  {"dp4a", 2},  {"dp2a", 2}, {"set", 2},
                 {"slct", 2}, {"wgmma", 3}, {"mma", 4}};
    const struct emu_statement *statement = decoder->statement;
    uint32_t most = 1;
    for (size_t i = 0; i < sizeof typed / sizeof *typed; i++)
        if (emu_str_is(statement->mnemonic, typed[i].mnemonic))
            most = typed[i].types;
    for (uint32_t a = 0; a < statement->modifier_count; a++)
        for (uint32_t b = 0, times = 1; b < a; b++)
            if (emu_str_equal(statement->modifiers[a], statement->modifiers[b]) && ++times > most)
                emu_refuse(decoder, "modifier .%.*s stands too often",
                           (int)statement->modifiers[a].length, statement->modifiers[a].text);
}

static void decode_statement(struct emu_decoder *decoder, const struct emu_statement *statement)
{
    decoder->statement = statement;
    decoder->used = 0;
    begin_insn(decoder);
    const struct emu_opcode *opcode = find_opcode(decoder, statement->mnemonic);
    if (opcode) {
        decoder->insn->class_id = (uint8_t)opcode->class_id;
        opcode->decode(decoder, decoder->insn);
    } else if (!emu_decode_arith(decoder, decoder->insn)) {
        emu_refuse(decoder, "no instruction of that name is emulated");
    }
    for (uint32_t i = 0; i < statement->modifier_count; i++)
        if (!(decoder->used >> i & 1))
            emu_refuse(decoder, "modifier .%.*s is unknown or does not belong here",
                       (int)statement->modifiers[i].length, statement->modifiers[i].text);
    refuse_repeated(decoder);
    emu_legality_check(decoder);
    push_insn(decoder);
}

/* Falling off the end of a body returns. */
static void decode_end(struct emu_decoder *decoder)
{
    static const struct emu_statement ret = {.mnemonic = {"ret", 3}};
    struct emu_statement end = ret;
    const struct emu_function *function = decoder->unit->function;
    end.line = function->statement_count ? function->statements[function->statement_count - 1].line
                                         : function->line;
    decode_statement(decoder, &end);
}

static void resolve_labels(struct emu_decoder *decoder, size_t first)
{
    struct emu_program *program = decoder->program;
    const uint32_t *pc_of = decoder->unit->pc_of;
    for (size_t i = first; i < program->count; i++) {
        struct emu_insn *insn = &program->code[i];
        if (insn->flags & INSN_LABEL)
            insn->target = pc_of[insn->target];
        if (insn->flags & INSN_LABEL_LIST)
            for (uint32_t t = 0; t < insn->list_count; t++)
                insn->list[t].offset = pc_of[insn->list[t].offset];
    }
}

static void decode_function(struct emu_decoder *decoder, struct emu_unit *unit)
{
    struct emu_program *program = decoder->program;
    const struct emu_function *function = unit->function;
    size_t first = program->count;
    decoder->unit = unit;
    unit->entry_pc = (uint32_t)first;
    unit->pc_of = emu_alloc(&decoder->scratch, function->statement_count + 1, sizeof(uint32_t));
    for (size_t i = 0; i < function->statement_count; i++) {
        unit->pc_of[i] = (uint32_t)program->count;
        decode_statement(decoder, &function->statements[i]);
    }
    unit->pc_of[function->statement_count] = (uint32_t)program->count;
    decode_end(decoder);
    resolve_labels(decoder, first);
}

static void resolve_calls(struct emu_decoder *decoder)
{
    struct emu_program *program = decoder->program;
    for (size_t i = 0; i < program->count; i++)
        if (program->code[i].flags & INSN_FUNCTION)
            program->code[i].target = emu_unit_of(decoder, program->code[i].target)->entry_pc;
}

/* The kernel's code comes first. */
static void make(struct emu_decoder *decoder)
{
    uint32_t kernel = (uint32_t)(decoder->program->function - decoder->module->functions);
    index_opcodes(decoder);
    decoder->legality = emu_legality_new(&decoder->scratch, decoder->module);
    find_reachable(decoder, kernel);
    lay_out(decoder);
    decode_function(decoder, emu_unit_of(decoder, kernel));
    for (size_t u = 0; u < decoder->unit_count; u++)
        if (decoder->units[u].index != kernel)
            decode_function(decoder, &decoder->units[u]);
    resolve_calls(decoder);
    emu_buffers_trace(decoder);
}

ptxgen_status emu_program_make(const struct emu_module *module, const struct emu_function *function,
                               const struct emu_placement *placement, struct emu_program **program,
                               ptxgen_error *err)
{
    struct emu_insn insn;
    struct emu_program *made = calloc(1, sizeof *made);
    struct emu_decoder *decoder = calloc(1, sizeof *decoder);
    int failed = 2;
    if (made && decoder) {
        made->module = module;
        made->function = function;
        made->arena.escape = decoder->scratch.escape = &decoder->escape;
        decoder->program = made;
        decoder->module = module;
        decoder->placement = *placement;
        decoder->insn = &insn;
        decoder->err = err;
        failed = setjmp(decoder->escape);
        if (!failed)
            make(decoder);
        made->arena.escape = NULL;
        emu_arena_free(&decoder->scratch);
    }
    free(decoder);
    if (!failed) {
        *program = made;
        return PTXGEN_OK;
    }
    emu_program_free(made);
    return failed == 1 ? PTXGEN_ERROR_PTX_SYNTAX
                       : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for kernel '%.*s'",
                                     (int)function->name.length, function->name.text);
}

void emu_program_free(struct emu_program *program)
{
    if (!program)
        return;
    free(program->constants);
    emu_arena_free(&program->arena);
    free(program);
}
