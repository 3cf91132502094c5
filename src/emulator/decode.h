/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding: from a parsed statement to an emu_insn. Each exec_*.c owns the decoders of its
 * instructions; they take modifiers and operands off the statement with the helpers below, and
 * whatever is left over is reported as unknown.
 */
#ifndef PTXGEN_EMULATOR_DECODE_H
#define PTXGEN_EMULATOR_DECODE_H

#include "src/emulator/index_map.h"
#include "src/emulator/legality.h"
#include "src/emulator/program.h"

struct emu_chip;

/* Where the module's .global and .const variables live on the device, by variable index. */
struct emu_placement {
    const uint64_t *addresses;
    const struct emu_chip *chip;
};

/* One function of the program being made. */
struct emu_unit {
    const struct emu_function *function;
    uint32_t index;           /* of the function, in the module */
    uint32_t *register_slots; /* register number → slot + 1 */
    uint32_t *pc_of;          /* statement index → instruction index */
    uint64_t *variable_at;    /* body variable → offset in its space */
    uint64_t *parameter_at, *result_at;
    uint32_t return_slot;
    uint32_t entry_pc;
};

struct emu_decoder {
    struct emu_program *program;
    const struct emu_module *module;
    struct emu_placement placement;
    struct emu_arena scratch; /* what is needed only while the program is made */
    struct emu_unit *units;   /* the functions that the kernel reaches, in the module's order */
    size_t unit_count, unit_capacity;
    struct emu_index_map unit_of;   /* function index → unit */
    struct emu_unit *unit;          /* being decoded */
    struct emu_index_map shared_at; /* static shared variables of the module that are named */
    uint64_t dynamic_at;            /* where dynamic shared memory starts */
    const struct emu_statement *statement;
    struct emu_insn *insn; /* the instruction under way */
    uint16_t names;        /* the buffer of shared memory that its operands name, plus 1 */
    uint16_t *named;       /* the same of each instruction so far */
    size_t named_capacity;
    const struct emu_opcode *opcodes[512];
    struct emu_legality *legality; /* NULL: the module's target is older than what is known */
    uint32_t used;                 /* modifiers taken, one bit each */
    uint32_t reads[640], writes[320];
    jmp_buf escape;
    ptxgen_error *err;
};

typedef void (*emu_decode)(struct emu_decoder *decoder, struct emu_insn *insn);

struct emu_opcode {
    const char *mnemonic;
    emu_decode decode;
    enum emu_class class_id;
};

/* Every exec_*.c exports one table, ended by a NULL mnemonic. */
extern const struct emu_opcode emu_convert_opcodes[], emu_compare_opcodes[], emu_move_opcodes[],
    emu_logic_opcodes[], emu_memory_opcodes[], emu_atomic_opcodes[], emu_control_opcodes[],
    emu_warp_opcodes[], emu_barrier_opcodes[], emu_async_opcodes[], emu_mbarrier_opcodes[],
    emu_tensor_opcodes[], emu_wgmma_opcodes[];

__attribute__((cold)) _Noreturn void emu_refuse(struct emu_decoder *decoder, const char *format,
                                                ...) PTXGEN_PRINTF(2, 3);

/* Bits of emu_insn.flags: what the end of decoding still has to fill in. */
enum { INSN_LABEL = 1, INSN_LABEL_LIST = 2, INSN_FUNCTION = 4 };

/* ---- modifiers ---- */
bool emu_mod(struct emu_decoder *decoder, const char *name);
/* How often it stands, taken or not. */
uint32_t emu_mod_count(const struct emu_decoder *decoder, const char *name);
/* Index of the first of `names` (NULL-terminated) among the unused modifiers, or -1. */
int emu_mod_of(struct emu_decoder *decoder, const char *const *names);
/* The next unused modifier that is a type; T_none when none is left. */
enum emu_type emu_mod_type(struct emu_decoder *decoder);
/* The same, refusing types that are not in the space-separated list. */
enum emu_type emu_need_type(struct emu_decoder *decoder, const char *allowed);

/* ---- operands ---- */
uint32_t emu_operand_count(const struct emu_decoder *decoder);
void emu_need_operands(struct emu_decoder *decoder, uint32_t least, uint32_t most);
const struct emu_arg *emu_operand_at(struct emu_decoder *decoder, uint32_t index);
struct emu_src emu_read(struct emu_decoder *decoder, const struct emu_arg *operand,
                        enum emu_type type);
struct emu_src emu_write(struct emu_decoder *decoder, const struct emu_arg *operand,
                         enum emu_type type);
/* As above for registers at least as wide as the type (ld, st, cvt). */
struct emu_src emu_read_wide(struct emu_decoder *decoder, const struct emu_arg *operand,
                             enum emu_type type);
struct emu_src emu_write_wide(struct emu_decoder *decoder, const struct emu_arg *operand,
                              enum emu_type type);
struct emu_src emu_constant(struct emu_decoder *decoder, uint64_t value, uint32_t bytes);
struct emu_src emu_read_nth(struct emu_decoder *decoder, uint32_t index, enum emu_type type);
struct emu_src emu_write_nth(struct emu_decoder *decoder, uint32_t index, enum emu_type type);
/* The four components of a special register such as %tid; false when the operand is none. */
bool emu_read_special_vector(struct emu_decoder *decoder, const struct emu_arg *operand,
                             enum emu_type type, struct emu_src components[4]);
/* The unit of a function that the kernel reaches; NULL when it has no body. */
struct emu_unit *emu_unit_of(struct emu_decoder *decoder, uint32_t function);
/* Address of a variable of the module in its own space. */
uint64_t emu_module_address(struct emu_decoder *decoder, uint32_t variable);
/* A constant integer operand. */
uint64_t emu_immediate(struct emu_decoder *decoder, const struct emu_arg *operand);
/* An address operand: base into insn->s[`source`], offset into *offset. `space` resolves names. */
void emu_address(struct emu_decoder *decoder, const struct emu_arg *operand, struct emu_src *base,
                 int64_t *offset);
/* The first unused state space among the modifiers, GENERIC when none is given. */
enum emu_space emu_mod_space(struct emu_decoder *decoder);
/* Space to use for a plain name in an address: LOCAL for variables of .func parameters. */
enum emu_space emu_param_space(struct emu_decoder *decoder, const struct emu_arg *operand);
/* The items of a { } operand, or the operand itself when it is a scalar. */
const struct emu_arg *emu_items(struct emu_decoder *decoder, const struct emu_arg *operand,
                                uint32_t *count);
uint32_t emu_label(struct emu_decoder *decoder, const struct emu_arg *operand);
/* Ends the instruction under way and begins another, for statements that need several. */
void emu_next_insn(struct emu_decoder *decoder);
uint32_t emu_hidden_slot(struct emu_decoder *decoder, enum emu_type type);
struct emu_src emu_slot_src(const struct emu_program *program, uint32_t slot);
/* The function of hints and of what the emulator has no use for. */
void emu_exec_nothing(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask);
void emu_note_read(struct emu_decoder *decoder, struct emu_src source);
void emu_note_write(struct emu_decoder *decoder, struct emu_src source);

/*
 * Makes `function` of `module` ready to run. The program points into the module. Refusals are
 * PTXGEN_ERROR_PTX_SYNTAX with line and column.
 */
ptxgen_status emu_program_make(const struct emu_module *module, const struct emu_function *function,
                               const struct emu_placement *placement, struct emu_program **program,
                               ptxgen_error *err);
void emu_program_free(struct emu_program *program);

#endif
