/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/profile.h"
#include "src/emulator/access.h"

#include <stdlib.h>
#include <string.h>

enum { SECTOR_BYTES = 32, BANKS = 32, BANK_BYTES = 4, MOST_PIECES = 32 * 9 };

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The distinct units of `size` bytes that the lanes touch, sorted. */
static uint32_t distinct_units(uint32_t mask, const uint64_t addresses[32], uint32_t bytes,
                               uint32_t size, uint64_t units[MOST_PIECES])
{
    uint32_t count = 0, kept = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint64_t first = addresses[__builtin_ctz(left)];
        for (uint64_t unit = first / size; unit <= (first + bytes - 1) / size; unit++)
            if (count < MOST_PIECES)
                units[count++] = unit;
    }
    qsort(units, count, sizeof *units, by_value);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || units[i] != units[kept - 1])
            units[kept++] = units[i];
    return kept;
}

static void count_global(struct emu_counters *counters, uint32_t mask, const uint64_t addresses[32],
                         uint32_t bytes)
{
    uint64_t units[MOST_PIECES];
    uint32_t sectors = distinct_units(mask, addresses, bytes, SECTOR_BYTES, units);
    counters->sectors += sectors;
    counters->bytes_moved += (uint64_t)sectors * SECTOR_BYTES;
    counters->bytes_needed += (uint64_t)__builtin_popcount(mask) * bytes;
}

/* Passes that lanes `mask` need: the most different words that fall into one bank. */
static uint32_t passes(uint32_t mask, const uint64_t addresses[32], uint32_t bytes)
{
    uint64_t units[MOST_PIECES];
    uint32_t in_bank[BANKS] = {0}, most = 0;
    uint32_t words = distinct_units(mask, addresses, bytes, BANK_BYTES, units);
    for (uint32_t i = 0; i < words; i++) {
        uint32_t n = ++in_bank[units[i] % BANKS];
        most = n > most ? n : most;
    }
    return most;
}

/* 8-byte accesses go by half warps, 16-byte ones by quarters: each part moves 128 bytes. */
static void count_shared(struct emu_counters *counters, uint32_t mask, const uint64_t addresses[32],
                         uint32_t bytes)
{
    uint32_t parts = bytes >= 16 ? 4 : bytes == 8 ? 2 : 1, lanes = 32 / parts;
    for (uint32_t part = 0; part < parts; part++) {
        uint32_t group = (lanes == 32 ? 0xffffffffu : (1u << lanes) - 1) << (part * lanes);
        if (!(mask & group))
            continue;
        uint32_t needed = passes(mask & group, addresses, bytes);
        counters->shared_accesses++;
        counters->conflicts += needed > 1 ? needed - 1 : 0;
    }
}

void emu_count_access(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask,
                      enum emu_space space, const uint64_t addresses[32], uint32_t bytes)
{
    const struct emu_launch *launch = warp->cta->cluster->launch;
    struct emu_counters *counters = &warp->worker->counters[insn - launch->program->code];
    uint64_t plain[32];
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        plain[lane] = addresses[lane];
    }
    if (!mask || bytes == 0 || bytes > 256)
        return;
    int first = __builtin_ctz(mask);
    enum emu_space window = emu_window(space, &plain[first]);
    for (uint32_t left = mask & (mask - 1); left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        if (emu_window(space, &plain[lane]) != window)
            return;
    }
    if (window == SPACE_GLOBAL)
        count_global(counters, mask, plain, bytes);
    else if (window == SPACE_SHARED || window == SPACE_SHARED_CLUSTER)
        count_shared(counters, mask, plain, bytes);
}

void emu_count_run(struct emu_warp *warp, const struct emu_insn *insn, uint64_t address,
                   uint32_t bytes)
{
    if (!warp->worker->counters || !bytes)
        return;
    const struct emu_launch *launch = warp->cta->cluster->launch;
    struct emu_counters *counters = &warp->worker->counters[insn - launch->program->code];
    uint64_t sectors = (address + bytes - 1) / SECTOR_BYTES - address / SECTOR_BYTES + 1;
    counters->sectors += sectors;
    counters->bytes_moved += sectors * SECTOR_BYTES;
    counters->bytes_needed += bytes;
}

/* ---- the tally over launches ---- */

static const char *const class_names[CLASS_COUNT] = {
    "other",  "integer", "float",   "convert", "move",    "compare", "global", "shared",
    "memory", "atomic",  "control", "warp",    "barrier", "tensor",  "async"};

/* NULL when there is no memory. */
static char *copy_text(struct emu_str text)
{
    char *copy = malloc(text.length + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text.text, text.length);
    copy[text.length] = '\0';
    return copy;
}

/* All from line `first` on. */
static void drop_lines(struct emu_tally *tally, size_t first)
{
    for (size_t i = first; i < tally->count; i++) {
        union {
            const char *constant;
            void *plain;
        } kernel = {tally->lines[i].kernel}, text = {tally->lines[i].text};
        free(kernel.plain);
        free(text.plain);
    }
    tally->count = first;
}

/* The first line of the kernel in the tally; lines are made when the kernel is new. */
static bool find_lines(struct emu_tally *tally, const struct emu_program *program, size_t *first)
{
    struct emu_str name = program->function->name;
    for (size_t i = 0; i < tally->count; i++)
        if (emu_str_is(name, tally->lines[i].kernel) && i + program->count <= tally->count &&
            tally->lines[i].line == program->code[0].line &&
            tally->lines[i + program->count - 1].line == program->code[program->count - 1].line) {
            *first = i;
            return true;
        }
    if (tally->count + program->count > tally->capacity) {
        size_t wider = (tally->count + program->count) * 2;
        struct ptxgen_emulator_line *lines = realloc(tally->lines, wider * sizeof *lines);
        if (!lines)
            return false;
        tally->lines = lines;
        tally->capacity = wider;
    }
    *first = tally->count;
    struct emu_line_cursor cursor = {0};
    for (size_t pc = 0; pc < program->count; pc++) {
        struct ptxgen_emulator_line line = {
            .kernel = copy_text(name),
            .text = copy_text(emu_source_line(program->module, program->code[pc].line, &cursor)),
            .kind = class_names[program->code[pc].class_id],
            .line = program->code[pc].line};
        tally->lines[tally->count++] = line;
        if (!line.kernel || !line.text) {
            drop_lines(tally, *first);
            return false;
        }
    }
    return true;
}

bool emu_tally_add(struct emu_tally *tally, const struct emu_launch *launch)
{
    size_t first;
    if (!find_lines(tally, launch->program, &first))
        return false;
    for (uint32_t w = 0; w < launch->worker_count; w++)
        for (size_t pc = 0; pc < launch->program->count; pc++) {
            const struct emu_counters *from = &launch->workers[w].counters[pc];
            struct ptxgen_emulator_line *to = &tally->lines[first + pc];
            to->warps += from->warps;
            to->lanes += from->lanes;
            to->sectors += from->sectors;
            to->bytes_moved += from->bytes_moved;
            to->bytes_needed += from->bytes_needed;
            to->shared_accesses += from->shared_accesses;
            to->conflicts += from->conflicts;
        }
    return true;
}

void emu_tally_free(struct emu_tally *tally)
{
    drop_lines(tally, 0);
    free(tally->lines);
    *tally = (struct emu_tally){0};
}
