/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffers of shared memory: each .shared variable is one, and so is the dynamic part of the
 * launch. An access lies wholly within one buffer, and not in the padding before the next.
 *
 * Where a register's values come from is traced over the whole text, whatever the path taken: a
 * register whose every value is computed from the address of one buffer, and from no other's,
 * points into that buffer, and an access by it stays there. Values that were loaded come from
 * nowhere, and registers that different buffers' addresses reach are not followed: accesses by such
 * addresses may lie in any buffer. PTX has no word for parts of a variable, nor for parts of the
 * dynamic memory: what a kernel lays out in one block of its own is one buffer here.
 */
#ifndef PTXGEN_EMULATOR_SHARED_BUFFER_H
#define PTXGEN_EMULATOR_SHARED_BUFFER_H

#include "src/emulator/access.h"
#include "src/emulator/decode.h"

struct emu_buffer {
    struct emu_str name;
    uint64_t at, end; /* in the CTA's shared memory; the dynamic part ends with the memory */
};

/* ---- decoding ---- */

/* In ascending order; empty ones are left out. */
void emu_buffer_add(struct emu_decoder *decoder, struct emu_str name, uint64_t at, uint64_t end);
/* The number of the buffer that begins at `at`; EMU_NO_SLOT when none does. */
uint32_t emu_buffer_at(const struct emu_program *program, uint64_t at);
/* An operand of the instruction under way is an address of buffer `number`. */
void emu_buffer_named(struct emu_decoder *decoder, uint32_t number);
/* Finds the buffer that each register points into. */
void emu_buffers_trace(struct emu_decoder *decoder);

/* ---- running ---- */

/* Makes a CTA's bytes between buffers such that no access takes them for its own. */
void emu_buffers_pad(const struct emu_launch *launch, uint8_t *state);

/* Faults on an access that leaves its buffer; `flags` are of enum emu_access_flags. */
void emu_buffer_check(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                      uint64_t address, uint32_t bytes, uint32_t flags);

/* Makes and frees what emu_buffer_reach looks at; false without memory. */
bool emu_buffers_start(struct emu_launch *launch);
void emu_buffers_end(struct emu_launch *launch);

/* The bytes that an aligned access with these flags may touch, whatever its place; none where only
 * a look at each place tells. */
static inline struct emu_reach emu_buffer_reach(const struct emu_launch *launch, uint32_t bytes,
                                                uint32_t flags)
{
    const struct emu_reach none = {0, 0};
    uint32_t home = flags >> ACCESS_HOME_SHIFT;
    return home || bytes <= launch->seam ? launch->reaches[home] : none;
}

/* The flags of an access by an address in `base`: the number of the buffer that it points into,
 * plus 1, above ACCESS_HOME_SHIFT. */
static inline uint32_t emu_home(const struct emu_warp *warp, struct emu_src base)
{
    const struct emu_launch *launch = warp->cta->cluster->launch;
    if (!(launch->checks & PTXGEN_CHECK_SHARED_BUFFERS))
        return 0;
    uint32_t home = base.bank ? base.slot + 1 : launch->program->homes[base.slot];
    return home << ACCESS_HOME_SHIFT;
}

#endif
