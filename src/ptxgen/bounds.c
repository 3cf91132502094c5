/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses at constant offsets of a buffer's own address that reach outside the buffer: into the
 * next one, which no assembler or device tells apart, or behind the last. (Addresses that are
 * computed depend on run-time values: the emulator checks those.)
 */
#include "internal.h"

/* The declaration whose address the register is: written once, by nothing else. */
static const struct ptx_declaration *buffer_of(const ptx_kernel *k, const struct ptx_uses *uses,
                                               uint32_t reg)
{
    const struct ptx_instruction *writer = NULL;
    struct ptx_references refs = ptx_uses_of(uses, reg);
    for (uint32_t j = 0; j < refs.count; j++) {
        if (!refs.list[j].written)
            continue;
        if (writer)
            return NULL;
        writer = &k->code[refs.list[j].at];
    }
    if (!writer)
        return NULL;
    return writer->op == PTX_PSEUDO_SHARED_ADDRESS  ? &k->shared[writer->n]
           : writer->op == PTX_PSEUDO_LOCAL_ADDRESS ? &k->local[writer->n]
                                                    : NULL;
}

static void check_instruction(ptx_kernel *k, const struct ptx_uses *uses, uint32_t at)
{
    const struct ptx_instruction *i = &k->code[at];
    const struct ptx_op *op = &ptx_ops[i->op];
    const ptx_operand *o = &k->operands[i->first];
    for (unsigned t = 0; t < op->term_count; t++) {
        const struct ptx_term *term = ptx_op_term(op, t);
        const struct ptx_declaration *buffer =
            term->kind == PTX_TERM_ADDRESS && o->kind == PTX_OPERAND_REGISTER
                ? buffer_of(k, uses, o->index)
                : NULL;
        int64_t offset = buffer ? (int64_t)o[1].bits : 0, bytes = op->align ? op->align : 1;
        if (buffer && (offset < 0 || offset + bytes > (int64_t)buffer->bytes))
            ptx_fail_at(k, at, PTXGEN_ERROR_OPERAND,
                        "%lld bytes at offset %lld of the buffer '%s' are not all within its %zu",
                        (long long)bytes, (long long)offset, ptx_note_text(k, buffer->note),
                        buffer->bytes);
        o += ptx_term_operands(term, i->n);
    }
}

void ptx_check_bounds(ptx_kernel *k, const struct ptx_uses *uses)
{
    for (uint32_t at = 0; at < k->code_count && !ptx_failed(k); at++)
        if (k->code[at].op < PTX_OP_COUNT)
            check_instruction(k, uses, at);
}
