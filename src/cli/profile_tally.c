/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_tally.h"

#include "sections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The section of that name in the last kernel; a new one when there is none. */
static struct profile_section *find_section(struct profile_tally *tally, const char *kernel,
                                            const char *name)
{
    for (size_t i = tally->count; i > 0 && !strcmp(tally->sections[i - 1].kernel, kernel); i--)
        if (!strcmp(tally->sections[i - 1].name, name))
            return &tally->sections[i - 1];
    struct profile_section *wider =
        realloc(tally->sections, (tally->count + 1) * sizeof *tally->sections);
    if (!wider)
        return NULL;
    tally->sections = wider;
    struct profile_section *made = &wider[tally->count++];
    *made = (struct profile_section){.kernel = kernel};
    snprintf(made->name, sizeof made->name, "%s", name);
    return made;
}

static void count_kind(struct profile_section *section, const char *name, uint64_t warps)
{
    unsigned i = 0;
    while (i < section->kind_count && strcmp(section->kinds[i].name, name) != 0)
        i++;
    if (i == PROFILE_KINDS)
        return;
    if (i == section->kind_count)
        section->kinds[section->kind_count++] = (struct profile_kind){.name = name};
    section->kinds[i].warps += warps;
}

static void add_line(struct profile_section *section, const ptxgen_emulator_line *line)
{
    count_kind(section, line->kind, line->warps);
    section->warps += line->warps;
    section->lanes += line->lanes;
    section->sectors += line->sectors;
    section->bytes_moved += line->bytes_moved;
    section->bytes_needed += line->bytes_needed;
    section->shared_accesses += line->shared_accesses;
    section->conflicts += line->conflicts;
}

static int by_frequency(const void *left, const void *right)
{
    const struct profile_kind *a = left, *b = right;
    return (a->warps < b->warps) - (a->warps > b->warps);
}

/* Lines first … end - 1 of the profile, which are of one kernel. */
static ptxgen_status add_kernel(const ptxgen_emulator_profile *profile, size_t first, size_t end,
                                const char *text, struct profile_tally *tally, ptxgen_error *err)
{
    struct section_reader reader;
    uint32_t number = 0;
    for (size_t i = first; i < end; i++) {
        ptxgen_emulator_line line = ptxgen_emulator_profile_line(profile, i);
        bool found = i > first || section_reader_start(&reader, text, line.kernel);
        if (found && line.line != number)
            found = section_reader_seek(&reader, line.text);
        if (!found)
            return ptxgen_fail(err, PTXGEN_ERROR_STRUCTURE,
                               "%s: the annotated text has no \"%s\" where the kernel has it",
                               line.kernel, line.text);
        number = line.line;
        struct profile_section *section = find_section(tally, line.kernel, reader.name);
        if (!section)
            return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a profile");
        if (line.warps)
            add_line(section, &line);
    }
    return PTXGEN_OK;
}

ptxgen_status profile_tally_make(const ptxgen_emulator_profile *profile, const char *text,
                                 struct profile_tally *tally, ptxgen_error *err)
{
    size_t count = ptxgen_emulator_profile_count(profile), end;
    ptxgen_status status = PTXGEN_OK;
    *tally = (struct profile_tally){0};
    for (size_t first = 0; status == PTXGEN_OK && first < count; first = end) {
        const char *kernel = ptxgen_emulator_profile_line(profile, first).kernel;
        for (end = first + 1; end < count; end++)
            if (strcmp(ptxgen_emulator_profile_line(profile, end).kernel, kernel) != 0)
                break;
        status = add_kernel(profile, first, end, text, tally, err);
    }
    for (size_t i = 0; i < tally->count; i++)
        qsort(tally->sections[i].kinds, tally->sections[i].kind_count,
              sizeof *tally->sections[i].kinds, by_frequency);
    if (status != PTXGEN_OK)
        profile_tally_free(tally);
    return status;
}

void profile_tally_free(struct profile_tally *tally)
{
    free(tally->sections);
    *tally = (struct profile_tally){0};
}
