/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/shared_buffer.h"
#include "src/emulator/layout.h"
#include "src/emulator/shared_memory.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST_ACCESS = 16, MOST_HOMES = 0xfff0 };

/* ---- declarations ---- */

void emu_buffer_add(struct emu_decoder *decoder, struct emu_str name, uint64_t at, uint64_t end)
{
    struct emu_program *program = decoder->program;
    uint32_t count = program->buffer_count;
    if (end == at)
        return;
    emu_grow(&program->arena, &program->buffers, count, &program->buffer_capacity,
             sizeof *program->buffers);
    program->buffers[program->buffer_count++] =
        (struct emu_buffer){.name = name, .at = at, .end = end};
    if (!count)
        program->seam = LARGEST_ACCESS;
    else if (program->buffers[count - 1].end == at)
        while (at % program->seam)
            program->seam /= 2;
}

uint32_t emu_buffer_at(const struct emu_program *program, uint64_t at)
{
    uint32_t low = 0, high = (uint32_t)program->buffer_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (program->buffers[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < program->buffer_count && program->buffers[low].at == at;
    return found && low < MOST_HOMES ? low : EMU_NO_SLOT;
}

/* ---- where registers point ---- */

/* Beside buffers' numbers plus 1: of no buffer, of several or of anything, not known yet. */
enum { HOME_NONE = 0, HOME_ANY = 0xffff, HOME_OPEN = 0xfffe };

static uint16_t join(uint16_t a, uint16_t b)
{
    return a == HOME_OPEN ? b : b == HOME_OPEN || a == b ? a : HOME_ANY;
}

/* Of a sum, a mask, a shift: an offset leaves an address in its buffer. */
static uint16_t combine(uint16_t a, uint16_t b)
{
    if (a == HOME_OPEN || b == HOME_OPEN)
        return HOME_OPEN;
    return a == HOME_NONE ? b : b == HOME_NONE ? a : HOME_ANY; /* two addresses give anything */
}

void emu_buffer_named(struct emu_decoder *decoder, uint32_t number)
{
    decoder->names = combine(decoder->names, (uint16_t)(number + 1));
}

/* `names`: the buffer that its operands name. */
static uint16_t home_of_result(const struct emu_program *program, const struct emu_insn *insn,
                               uint16_t names)
{
    bool chooses = insn->class_id == CLASS_COMPARE;
    uint16_t home = chooses ? HOME_OPEN : HOME_NONE;
    switch (insn->class_id) {
    case CLASS_INTEGER:
    case CLASS_CONVERT:
    case CLASS_MOVE:
    case CLASS_COMPARE:
    case CLASS_WARP: break;
    case CLASS_CONTROL: return HOME_ANY;
    default: return HOME_NONE;
    }
    if (names)
        home = names;
    for (uint32_t i = 0; i < insn->read_count; i++) {
        uint16_t read = program->homes[insn->reads[i]];
        if (program->slots[insn->reads[i]].type != T_pred)
            home = chooses ? join(home, read) : combine(home, read);
    }
    return home;
}

/* The first register that an instruction writes: shfl's, which marks its lanes as written itself,
 * is not in the list of all. */
static bool writes_first(const struct emu_insn *insn)
{
    return insn->d.bytes && !insn->d.absent && !insn->d.bank;
}

static bool define(struct emu_program *program, uint32_t slot, uint16_t home)
{
    uint16_t *known = &program->homes[slot], before = *known;
    *known = join(before, home);
    return *known != before;
}

static bool trace_once(struct emu_program *program, const uint16_t *named)
{
    bool changed = false;
    for (size_t i = 0; i < program->count; i++) {
        const struct emu_insn *insn = &program->code[i];
        uint16_t home = home_of_result(program, insn, named[i]);
        for (uint32_t w = 0; w < insn->write_count; w++)
            changed |= define(program, insn->writes[w], home);
        if (writes_first(insn))
            changed |= define(program, insn->d.slot, home);
    }
    return changed;
}

void emu_buffers_trace(struct emu_decoder *decoder)
{
    enum { MOST_ROUNDS = 32 };
    struct emu_program *program = decoder->program;
    program->homes = emu_alloc(&program->arena, program->slot_count + 1, sizeof *program->homes);
    for (size_t i = 0; i < program->count; i++) {
        const struct emu_insn *insn = &program->code[i];
        for (uint32_t w = 0; w < insn->write_count; w++)
            program->homes[insn->writes[w]] = HOME_OPEN;
        if (writes_first(insn))
            program->homes[insn->d.slot] = HOME_OPEN;
    }
    int rounds = 0;
    while (program->buffer_count && rounds < MOST_ROUNDS && trace_once(program, decoder->named))
        rounds++;
    for (size_t slot = 0; slot < program->slot_count; slot++)
        if (rounds == MOST_ROUNDS || program->homes[slot] >= HOME_OPEN)
            program->homes[slot] = HOME_NONE;
}

/* ---- running ---- */

bool emu_buffers_start(struct emu_launch *launch)
{
    const struct emu_program *program = launch->program;
    launch->seam = launch->checks & PTXGEN_CHECK_SHARED_BUFFERS ? program->seam : LARGEST_ACCESS;
    launch->reaches = malloc((program->buffer_count + 1) * sizeof *launch->reaches);
    if (!launch->reaches)
        return false;
    launch->reaches[0] = (struct emu_reach){0, launch->shared_bytes};
    for (size_t i = 0; i < program->buffer_count; i++) {
        const struct emu_buffer *buffer = &program->buffers[i];
        uint64_t end = buffer->end < launch->shared_bytes ? buffer->end : launch->shared_bytes;
        launch->reaches[i + 1] = (struct emu_reach){
            (uint32_t)buffer->at, buffer->at < end ? (uint32_t)(end - buffer->at) : 0};
    }
    return true;
}

void emu_buffers_end(struct emu_launch *launch)
{
    free(launch->reaches);
}

void emu_buffers_pad(const struct emu_launch *launch, uint8_t *state)
{
    const struct emu_program *program = launch->program;
    uint64_t end = 0;
    if (!(launch->checks & PTXGEN_CHECK_SHARED_BUFFERS))
        return;
    for (uint32_t i = 0; i < program->buffer_count && end < launch->shared_bytes; i++) {
        uint64_t at = program->buffers[i].at;
        at = at < launch->shared_bytes ? at : launch->shared_bytes;
        memset(state + end, BYTE_PADDING, at - end);
        end = program->buffers[i].end;
    }
}

void emu_buffer_check(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                      uint64_t address, uint32_t bytes, uint32_t flags)
{
    const struct emu_launch *launch = warp->cta->cluster->launch;
    const struct emu_program *program = launch->program;
    uint32_t offset = (uint32_t)address & EMU_SHARED_OFFSET_MASK;
    uint32_t home = flags >> ACCESS_HOME_SHIFT, count = (uint32_t)program->buffer_count;
    if (!(launch->checks & PTXGEN_CHECK_SHARED_BUFFERS) || !count || !bytes)
        return;
    uint32_t number = home ? home - 1 : 0;
    while (!home && number + 1 < count && program->buffers[number + 1].at <= offset)
        number++;
    const struct emu_buffer *in = &program->buffers[number];
    if (offset >= in->at && offset + (uint64_t)bytes <= in->end)
        return;
    uint64_t end = in->end < launch->shared_bytes ? in->end : launch->shared_bytes;
    emu_fault_at(warp, insn, lane, PTXGEN_CHECK_SHARED_BUFFERS, address,
                 "%u bytes at offset %u of shared memory are not all in %s '%.*s', %llu bytes from "
                 "offset %llu on%s",
                 bytes, offset, home ? "the buffer" : "any buffer: the one before them is",
                 (int)in->name.length, in->name.text,
                 (unsigned long long)(end > in->at ? end - in->at : 0), (unsigned long long)in->at,
                 home ? ", from which the address comes" : "");
}
