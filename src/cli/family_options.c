/* SPDX-License-Identifier: Apache-2.0 */
#include "family_options.h"

#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct family_options *family_new_options(const struct family *family)
{
    struct family_options *o = calloc(1, sizeof *o);
    if (o) {
        o->family = family;
        memcpy(o->spec, family->defaults, family->harness->family()->spec_bytes);
    }
    return o;
}

/* ---- rows ---- */

bool option_given(const struct family_options *o, const char *name)
{
    for (unsigned i = 0; o->family->spec_rows[i].name; i++)
        if (!strcmp(o->family->spec_rows[i].name, name))
            return o->given >> i & 1;
    return false;
}

const struct option_row *option_with(const struct family *family, unsigned rule)
{
    for (const struct option_row *row = family->spec_rows; row->name; row++)
        if (row->rules & rule)
            return row;
    return NULL;
}

void *option_spec(struct family_options *o)
{
    return o->spec;
}

uint32_t *option_number(const struct family_options *o, const struct option_row *row)
{
    return (uint32_t *)(uintptr_t)((const char *)o->spec + row->at);
}

/* "--a, --b and --c": the rows that have the rule, or with 0 all but the first. */
static void list_rows(const struct option_row *rows, unsigned rule, char *list, size_t size)
{
    const struct option_row *chosen[OPTION_ROWS_MOST];
    unsigned count = 0;
    for (unsigned i = 0; rows[i].name; i++)
        if (rule ? rows[i].rules & rule : i > 0)
            chosen[count++] = &rows[i];
    *list = 0;
    for (unsigned i = 0; i < count; i++) {
        size_t used = strlen(list);
        snprintf(list + used, size - used, "%s--%s",
                 !i              ? ""
                 : i + 1 < count ? ", "
                                 : " and ",
                 chosen[i]->name);
    }
}

/* ---- parsing ---- */

static void read_tile(struct argp_state *state, const char *text, const char *const *members,
                      struct family_options *o)
{
    enum { MOST = 31 };
    char *names[MOST + 1] = {NULL};
    uint32_t *places[MOST];
    o->tile = (ptxgen_tile){0};
    for (int i = 0; i < MOST && members[i]; i++) {
        names[i] = (char *)(uintptr_t)members[i];
        places[i] = ptxgen_tile_member(&o->tile, members[i]);
    }
    parse_tile(state, text, names, places);
    o->tile_given = true;
}

static void take(struct argp_state *state, const struct option_row *row, char *arg,
                 struct family_options *o)
{
    unsigned char *byte = o->spec + row->at;
    char option[32];
    snprintf(option, sizeof option, "--%s", row->name);
    switch (row->kind) {
    case OPTION_NUMBER:
        *option_number(o, row) =
            (uint32_t)parse_number(state, option, arg, !(row->rules & OPTION_LEAST_M), UINT32_MAX);
        break;
    case OPTION_CHOICE:
        *byte =
            (unsigned char)(row->value + (uint32_t)parse_choice(state, option, arg, row->choices));
        break;
    case OPTION_FLAG: *byte = (unsigned char)(row->value ? row->value : 1); break;
    case OPTION_TILE: read_tile(state, arg, row->tile, o); break;
    case OPTION_NAME: memcpy((char *)&o->names + row->at, &arg, sizeof arg); break;
    case OPTION_OTHER: row->parse(state, arg, o); break;
    }
}

static error_t parse_spec(int key, char *arg, struct argp_state *state)
{
    struct family_options *o = state->input;
    int row = key - OPTION_FAMILY_KEYS;
    if (key == ARGP_KEY_END && o->family->finish)
        o->family->finish(o);
    if (row < 0 || row >= OPTION_ROWS_MOST)
        return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
    o->given |= UINT32_C(1) << row;
    take(state, &o->family->spec_rows[row], arg, o);
    return 0;
}

/* The first row of the data is the file. */
static void check_data(struct argp_state *state, struct family_options *o)
{
    const struct option_row *rows = o->family->data_rows, *spec = o->family->spec_rows;
    bool lacks = false, has = false;
    char list[200];
    for (unsigned i = 1; rows[i].name; i++) {
        const char *name;
        memcpy(&name, (const char *)&o->names + rows[i].at, sizeof name);
        lacks |= !name && rows[i].rules & OPTION_IN_FILE;
        has |= name != NULL;
    }
    if (o->names.file && lacks) {
        list_rows(rows, OPTION_IN_FILE, list, sizeof list);
        argp_error(state, "--%s needs %s", rows->name, list);
    }
    if (!o->names.file && has) {
        list_rows(rows, 0, list, sizeof list);
        argp_error(state, "%s need --%s", list, rows->name);
    }
    if (o->names.expect && !o->names.input)
        argp_error(state, "--expect needs --input");
    for (unsigned i = 0; o->names.file && spec[i].name; i++)
        if (spec[i].rules & OPTION_OF_FILE && o->given >> i & 1) {
            list_rows(spec, OPTION_OF_FILE, list, sizeof list);
            argp_error(state, "%s come from the tensors of --%s", list, rows->name);
        }
    if (o->family->check_data)
        o->family->check_data(state, o);
}

static error_t parse_data(int key, char *arg, struct argp_state *state)
{
    struct family_options *o = state->input;
    int row = key - OPTION_FAMILY_KEYS - OPTION_ROWS_MOST;
    if (key == ARGP_KEY_END)
        check_data(state, o);
    if (row < 0 || row >= OPTION_ROWS_MOST)
        return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
    take(state, &o->family->data_rows[row], arg, o);
    return 0;
}

const struct argp *family_argp(const struct family *family, bool data, struct made_argp *made)
{
    const struct option_row *rows = data ? family->data_rows : family->spec_rows;
    if (!rows)
        return NULL;
    *made = (struct made_argp){.argp = {.parser = data ? parse_data : parse_spec}};
    for (int i = 0; i < OPTION_ROWS_MOST && rows[i].name; i++)
        made->options[i] =
            (struct argp_option){.name = rows[i].name,
                                 .key = OPTION_FAMILY_KEYS + (data ? OPTION_ROWS_MOST : 0) + i,
                                 .arg = rows[i].arg,
                                 .doc = rows[i].doc};
    made->argp.options = made->options;
    return &made->argp;
}
