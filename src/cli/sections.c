/* SPDX-License-Identifier: Apache-2.0 */
#include "sections.h"

#include <stdio.h>
#include <string.h>

static const char OPEN[] = "// ---- ", CLOSE[] = " ----";

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');
    return end ? end + 1 : at + strlen(at);
}

bool section_reader_start(struct section_reader *reader, const char *text, const char *kernel)
{
    size_t length = strlen(kernel);
    const char *at = text;
    while ((at = strstr(at, ".entry "))) {
        at += strlen(".entry ");
        if (!strncmp(at, kernel, length) && strchr("( \t\n", at[length]))
            break;
    }
    const char *body = at ? strchr(at, '{') : NULL;
    if (!body)
        return false;
    *reader = (struct section_reader){.at = next_line(body), .name = "start"};
    return true;
}

/* Takes the name off a line that begins a section. */
static void note_section(struct section_reader *reader, const char *line, const char *end)
{
    size_t length = (size_t)(end - line), frame = strlen(OPEN) + strlen(CLOSE);
    if (length <= frame || memcmp(line, OPEN, strlen(OPEN)) != 0 ||
        memcmp(end - strlen(CLOSE), CLOSE, strlen(CLOSE)) != 0)
        return;
    snprintf(reader->name, sizeof reader->name, "%.*s", (int)(length - frame), line + strlen(OPEN));
}

/* A comment may follow the instruction. */
static bool reads_as(const char *line, const char *instruction)
{
    size_t length = strlen(instruction);
    if (strncmp(line, instruction, length) != 0)
        return false;
    const char *rest = skip_blanks(line + length);
    return *rest == '\n' || *rest == '\r' || *rest == '\0' || !strncmp(rest, "//", 2);
}

bool section_reader_seek(struct section_reader *reader, const char *instruction)
{
    while (*reader->at && *reader->at != '}') {
        const char *line = skip_blanks(reader->at), *end = line + strcspn(line, "\r\n");
        reader->at = next_line(line);
        note_section(reader, line, end);
        if (reads_as(line, instruction))
            return true;
    }
    return false;
}
