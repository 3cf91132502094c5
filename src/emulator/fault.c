/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: kernel, line and text, CTA, thread, address, sentence. */
#include "src/emulator/machine.h"

#include <stdio.h>
#include <string.h>

static void thread_id(const struct emu_warp *warp, int lane, uint32_t id[3])
{
    const uint32_t *block = warp->cta->cluster->launch->block;
    uint32_t linear = warp->index * 32 + (uint32_t)lane;
    id[0] = linear % block[0];
    id[1] = linear / block[0] % block[1];
    id[2] = linear / block[0] / block[1];
}

void emu_fault_record(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                      enum ptxgen_emulator_check check, bool has_address, uint64_t address,
                      const char *sentence)
{
    struct emu_launch *launch = warp->cta->cluster->launch;
    struct emu_str name = launch->program->function->name;
    struct emu_line_cursor cursor = {0};
    struct emu_str text = emu_source_line(launch->program->module, insn->line, &cursor);
    struct ptxgen_emulator_fault fault = {
        .check = check, .line = insn->line, .has_address = has_address, .address = address};
    snprintf(fault.kernel, sizeof fault.kernel, "%.*s", (int)name.length, name.text);
    memcpy(fault.cta, warp->cta->id, sizeof fault.cta);
    thread_id(warp, lane, fault.thread);
    char where[40] = "";
    if (has_address)
        snprintf(where, sizeof where, ", address 0x%llx", (unsigned long long)address);
    snprintf(fault.message, sizeof fault.message,
             "kernel %s, line %u '%.*s', CTA (%u,%u,%u), thread (%u,%u,%u)%s: %s", fault.kernel,
             fault.line, text.length > 200 ? 200 : (int)text.length, text.text, fault.cta[0],
             fault.cta[1], fault.cta[2], fault.thread[0], fault.thread[1], fault.thread[2], where,
             sentence);
    pthread_mutex_lock(&launch->lock);
    if (!launch->faulted)
        launch->fault = fault;
    launch->faulted = true;
    launch->stop = true;
    pthread_mutex_unlock(&launch->lock);
}

_Noreturn void emu_fault(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                         enum ptxgen_emulator_check check, const char *format, ...)
{
    char sentence[700];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    emu_fault_record(warp, insn, lane, check, false, 0, sentence);
    longjmp(warp->worker->escape, 1);
}

_Noreturn void emu_fault_at(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                            enum ptxgen_emulator_check check, uint64_t address, const char *format,
                            ...)
{
    char sentence[700];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    emu_fault_record(warp, insn, lane, check, true, address, sentence);
    longjmp(warp->worker->escape, 1);
}

void emu_launch_out_of_memory(struct emu_launch *launch)
{
    pthread_mutex_lock(&launch->lock);
    launch->out_of_memory = true;
    launch->stop = true;
    pthread_mutex_unlock(&launch->lock);
}

_Noreturn void emu_out_of_memory(struct emu_warp *warp)
{
    emu_launch_out_of_memory(warp->cta->cluster->launch);
    longjmp(warp->worker->escape, 1);
}
