/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen files: what a checkpoint holds, and which family would run what. */
#include "command.h"
#include "exit_code.h"
#include "file_listing.h"
#include "json_draft.h"
#include "options.h"
#include "plural.h"

#include "../files/printable.h"
#include "../files/tensor_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_JSON = OPTION_COMMAND_KEYS };

struct files_options {
    const char *path;
    bool json;
};

static const struct argp_option options_table[] = {
    {.name = "json", .key = KEY_JSON, .doc = "Print JSON"},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct files_options *o = state->input;
    switch (key) {
    case KEY_JSON: o->json = true; return 0;
    case ARGP_KEY_ARG:
        if (o->path)
            return ARGP_ERR_UNKNOWN;
        o->path = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->path)
            argp_error(state, "a file or a folder must be named");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static uint64_t bytes_of(const struct file_listing *listing)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < listing->count; i++)
        bytes += listing->items[i].tensor->bytes;
    return bytes;
}

static const char *format_of(const ptxgen_files *files)
{
    return ptxgen_files_gguf(files) ? "GGUF" : "safetensors";
}

/* ---- for people ---- */

/* Names as they are, but for control characters, which a terminal would obey. */
static struct printable shown(const char *name)
{
    struct printable quoted = printable(name, strlen(name)), plain;
    size_t length = strlen(name);
    if (length + 2 != strlen(quoted.text) || memcmp(quoted.text + 1, name, length) != 0)
        return quoted;
    memcpy(plain.text, name, length + 1);
    return plain;
}

static void print_tensor(const struct listed_tensor *item, int name_width)
{
    const ptxgen_tensor *t = item->tensor;
    printf("%-*s  %-7s %-16s ", name_width, shown(t->name).text, ptxgen_dtype_find(t->dtype)->name,
           tensor_shape_text(t).text);
    if (!item->family) {
        bool is_part = item->layer && !item->is_weight;
        printf("%s%s\n", is_part ? "" : "none: ", item->note);
        return;
    }
    printf("%s", item->family->name);
    if (item->layer && item->k && item->n)
        printf(" K=%" PRIu32 " N=%" PRIu32, item->k, item->n);
    printf("%s%s\n", *item->note ? " " : "", item->note);
}

static void print_listing(const ptxgen_files *files, const char *path,
                          const struct file_listing *listing)
{
    enum { WIDEST = 60 };
    size_t width = 0;
    for (size_t i = 0; i < listing->count; i++) {
        size_t length = strlen(shown(listing->items[i].tensor->name).text);
        width = length > width ? length : width;
    }
    width = width < WIDEST ? width : WIDEST;
    printf("%s: %s, %zu tensor%s, %" PRIu64 " bytes\n", path, format_of(files), listing->count,
           plural(listing->count), bytes_of(listing));
    for (size_t i = 0; i < listing->count; i++)
        print_tensor(&listing->items[i], (int)width);
}

/* ---- JSON ---- */

static void add_tensor(struct json_draft *draft, cJSON *to, const struct listed_tensor *item)
{
    const ptxgen_tensor *t = item->tensor;
    json_add_string(draft, to, "name", t->name);
    json_add_string(draft, to, "type", ptxgen_dtype_find(t->dtype)->name);
    cJSON *shape = json_add_array(draft, to, "shape");
    for (unsigned i = 0; i < t->ndim; i++)
        json_append_number(draft, shape, (double)t->shape[i]);
    json_add_number(draft, to, "bytes", (double)t->bytes);
    if (item->layer)
        json_add_string(draft, to, "layer", item->layer);
    json_add_string(draft, to, "family", item->family ? item->family->name : "none");
    if (item->k && item->n) {
        json_add_number(draft, to, "k", item->k);
        json_add_number(draft, to, "n", item->n);
    }
    if (*item->note)
        json_add_string(draft, to, item->family ? "options" : "reason", item->note);
}

static ptxgen_status print_json(const ptxgen_files *files, const char *path,
                                const struct file_listing *listing, ptxgen_error *err)
{
    struct json_draft draft;
    json_start(&draft);
    json_add_string(&draft, draft.root, "file", path);
    json_add_string(&draft, draft.root, "format", format_of(files));
    json_add_number(&draft, draft.root, "bytes", (double)bytes_of(listing));
    cJSON *tensors = json_add_array(&draft, draft.root, "tensors");
    for (size_t i = 0; i < listing->count; i++)
        add_tensor(&draft, json_append_object(&draft, tensors), &listing->items[i]);
    ptxgen_status status = json_print(&draft, err);
    json_free(&draft);
    return status;
}

static ptxgen_status list(const struct files_options *o, ptxgen_error *err)
{
    ptxgen_files *files;
    struct file_listing listing;
    ptxgen_status status = ptxgen_files_open(o->path, &files, err);
    if (status != PTXGEN_OK)
        return status;
    status = file_listing_make(files, &listing, err);
    if (status == PTXGEN_OK && o->json)
        status = print_json(files, o->path, &listing, err);
    else if (status == PTXGEN_OK)
        print_listing(files, o->path, &listing);
    file_listing_release(&listing);
    ptxgen_files_close(files);
    return status;
}

static int run(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options_table,
        .parser = parse,
        .args_doc = "FILE",
        .doc = "Prints the tensors of a checkpoint, GGUF or safetensors: type, shape, and the "
               "family that would run each, with the options that name it, or why none would. "
               "Of a checkpoint in several files, FILE is any part, the index or the folder."};
    struct files_options o = {.path = NULL};
    ptxgen_error err = {0};
    parse_arguments(&argp, argc, argv, 0, &o);
    return list(&o, &err) == PTXGEN_OK ? EXIT_OK : report_failure(&err);
}

const struct command files_command = {"files", "FILE [--json]",
                                      "tensors of a checkpoint, and which family runs each", run};
