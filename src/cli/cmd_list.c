/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen list: the kernel families, or the builder's instructions. */
#include "command.h"
#include "exit_code.h"
#include "json_draft.h"
#include "options.h"

#include <stdio.h>

enum { KEY_INSTRUCTIONS = OPTION_COMMAND_KEYS, KEY_JSON };

struct list_options {
    bool instructions, json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct list_options *o = state->input;
    (void)arg;
    switch (key) {
    case KEY_INSTRUCTIONS: o->instructions = true; return 0;
    case KEY_JSON: o->json = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* What is listed: item `index`, or false past the last. */
struct listed {
    char name[PTX_NAME_SIZE + 4], text[1024];
};

static bool instruction_at(size_t index, struct listed *item)
{
    char name[PTX_NAME_SIZE];
    if (index >= ptx_instruction_count())
        return false;
    ptx_instruction_name(index, name, sizeof name);
    snprintf(item->name, sizeof item->name, "ptx_%s", name);
    ptx_instruction_describe(index, item->text, sizeof item->text);
    return true;
}

static bool listed_family_at(size_t index, struct listed *item)
{
    const struct family *family = family_at(index);
    if (!family)
        return false;
    snprintf(item->name, sizeof item->name, "%s", family->name);
    snprintf(item->text, sizeof item->text, "%s", family->summary);
    return true;
}

static ptxgen_status print_json(const char *title, bool (*at)(size_t index, struct listed *item),
                                ptxgen_error *err)
{
    struct json_draft draft;
    struct listed item;
    json_start(&draft);
    cJSON *items = json_add_array(&draft, draft.root, title);
    for (size_t i = 0; at(i, &item); i++) {
        cJSON *object = json_append_object(&draft, items);
        json_add_string(&draft, object, "name", item.name);
        json_add_string(&draft, object, "text", item.text);
    }
    ptxgen_status status = json_print(&draft, err);
    json_free(&draft);
    return status;
}

static int list(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {.name = "instructions",
         .key = KEY_INSTRUCTIONS,
         .doc = "Print the reference page of the PTX builder instead"},
        {.name = "json", .key = KEY_JSON, .doc = "Print JSON"},
        {0},
    };
    static const struct argp argp = {
        .options = options, .parser = parse, .doc = "Prints the kernel families."};
    struct list_options o = {false, false};
    struct listed item;
    ptxgen_error err = {0};
    parse_arguments(&argp, argc, argv, 0, &o);
    bool (*at)(size_t, struct listed *) = o.instructions ? instruction_at : listed_family_at;
    if (o.json)
        return print_json(o.instructions ? "instructions" : "families", at, &err) == PTXGEN_OK
                   ? EXIT_OK
                   : report_failure(&err);
    for (size_t i = 0; at(i, &item); i++)
        printf(o.instructions ? "%s\n    %s\n" : "%-12s %s\n", item.name, item.text);
    return EXIT_OK;
}

const struct command list_command = {"list", "[--instructions] [--json]",
                                     "kernel families, or the builder's instructions", list};
