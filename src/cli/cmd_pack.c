/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen pack: kernels of a list for named chips, in one file. */
#include "command.h"
#include "exit_code.h"
#include "json_draft.h"
#include "options.h"
#include "output_file.h"
#include "plural.h"
#include "ptxas.h"
#include "../harness/progress.h"
#include "spec_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_TARGET = OPTION_COMMAND_KEYS,
    KEY_PTXAS,
    KEY_LIST,
    KEY_FORCE,
    KEY_JSON,
    MOST_TARGETS = 32
};

struct pack_options {
    const char *path, *output, *ptxas;
    ptxgen_target targets[MOST_TARGETS];
    size_t target_count;
    bool list, json, force;
};

/* Reads names with commas between them. */
static void parse_targets(struct argp_state *state, const char *text, struct pack_options *o)
{
    char name[64];
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (o->target_count == MOST_TARGETS)
            argp_error(state, "--target %s: at most %d targets", text, MOST_TARGETS);
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1),
                 at);
        o->targets[o->target_count++] = parse_target_name(state, name);
        at += length;
        if (!*at)
            return;
    }
}

static void check_arguments(struct argp_state *state, const struct pack_options *o)
{
    if (!o->path)
        argp_error(state, "a SPECFILE must be named, or with --list a pack");
    else if (o->list && (o->output || o->target_count || o->ptxas || o->force))
        argp_error(state, "--list takes a pack alone");
    else if (!o->list && !o->output)
        argp_error(state, "-o FILE must be given");
    else if (o->json && !o->list)
        argp_error(state, "--json goes with --list");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct pack_options *o = state->input;
    switch (key) {
    case KEY_TARGET: parse_targets(state, arg, o); return 0;
    case KEY_PTXAS: o->ptxas = arg; return 0;
    case KEY_LIST: o->list = true; return 0;
    case KEY_JSON: o->json = true; return 0;
    case KEY_FORCE: o->force = true; return 0;
    case 'o': o->output = arg; return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num)
            return ARGP_ERR_UNKNOWN;
        o->path = arg;
        return 0;
    case ARGP_KEY_END: check_arguments(state, o); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- making one ---- */

static ptxgen_status add_all(ptxgen_pack_builder *builder, const struct pack_options *o,
                             const struct spec_list *list, ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    struct progress progress = progress_start("kernels", list->count * o->target_count);
    for (size_t i = 0; status == PTXGEN_OK && i < list->count; i++)
        for (size_t t = 0; status == PTXGEN_OK && t < o->target_count; t++) {
            ptxgen_error why;
            status = ptxgen_pack_add(builder, list->items[i].family, list->items[i].spec,
                                     &o->targets[t], o->ptxas ? ptxas_assemble : NULL,
                                     (void *)(uintptr_t)o->ptxas, &why);
            if (status != PTXGEN_OK)
                ptxgen_fail(err, status, "%.200s:%d: %.700s", list->path, list->lines[i],
                            why.message);
            progress_update(&progress, i * o->target_count + t + 1);
        }
    progress_end(&progress);
    return status;
}

static ptxgen_status write_pack(const struct pack_options *o, const void *bytes, size_t size,
                                ptxgen_error *err)
{
    struct output_file *out;
    ptxgen_status status = output_file_open(o->output, o->force, &out, err);
    if (status != PTXGEN_OK)
        return status;
    status = output_file_write(out, bytes, size, err);
    if (status == PTXGEN_OK)
        return output_file_finish(out, err);
    output_file_abandon(out);
    return status;
}

static ptxgen_status make_pack(const struct pack_options *o, const struct spec_list *list,
                               ptxgen_error *err)
{
    ptxgen_pack_builder *builder;
    const void *bytes;
    size_t size;
    ptxgen_status status = ptxgen_pack_builder_create(&builder, err);
    if (status == PTXGEN_OK)
        status = add_all(builder, o, list, err);
    if (status == PTXGEN_OK)
        status = ptxgen_pack_finish(builder, &bytes, &size, err);
    if (status == PTXGEN_OK)
        status = write_pack(o, bytes, size, err);
    if (status == PTXGEN_OK)
        fprintf(stderr, "ptxgen: %zu kernel%s for %zu target%s, %zu bytes\n", list->count,
                plural(list->count), o->target_count, plural(o->target_count), size);
    ptxgen_pack_builder_destroy(builder);
    return status;
}

/* ---- listing one ---- */

/* What stands behind "NAME: " in a subject, to the end of its line. */
static void find_line(const ptxgen_pack_entry *entry, const char *name, char *value, size_t size)
{
    char subject[8193], wanted[32];
    snprintf(subject, sizeof subject, "\n%.*s", (int)entry->subject_bytes, entry->subject);
    snprintf(wanted, sizeof wanted, "\n%s: ", name);
    const char *found = strstr(subject, wanted);
    found = found ? found + strlen(wanted) : "";
    snprintf(value, size, "%.*s", (int)strcspn(found, "\n"), found);
    for (char *c = value; *c; c++) /* a pack of unknown origin may hold anything */
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static void list_lines(const ptxgen_pack *pack)
{
    ptxgen_pack_entry entry;
    char family[64], spec[400], target[64], code[16];
    for (size_t i = 0; ptxgen_pack_at(pack, i, &entry); i++) {
        find_line(&entry, "family", family, sizeof family);
        find_line(&entry, "spec", spec, sizeof spec);
        find_line(&entry, "target", target, sizeof target);
        snprintf(code, sizeof code, entry.cubin_sm ? "cubin" : "text");
        printf("%.*s %s, %s, %s of %zu bytes\n", (int)strcspn(family, ","), family, spec, target,
               code, entry.code_bytes);
    }
}

static ptxgen_status list_json(const ptxgen_pack *pack, ptxgen_error *err)
{
    struct json_draft draft;
    ptxgen_pack_entry entry;
    json_start(&draft);
    cJSON *kernels = json_add_array(&draft, draft.root, "kernels");
    for (size_t i = 0; ptxgen_pack_at(pack, i, &entry); i++) {
        static const char *const names[] = {"family", "spec", "target", "revision"};
        char value[400];
        cJSON *object = json_append_object(&draft, kernels);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            find_line(&entry, names[k], value, sizeof value);
            json_add_string(&draft, object, names[k], value);
        }
        json_add_string(&draft, object, "code", entry.cubin_sm ? "cubin" : "text");
        json_add_number(&draft, object, "bytes", (double)entry.code_bytes);
    }
    ptxgen_status status = json_print(&draft, err);
    json_free(&draft);
    return status;
}

static ptxgen_status list_pack(const struct pack_options *o, ptxgen_error *err)
{
    ptxgen_pack *pack;
    ptxgen_status status = ptxgen_pack_open(o->path, &pack, err);
    if (status != PTXGEN_OK)
        return status;
    status = ptxgen_pack_verify(pack, err);
    if (status == PTXGEN_OK && o->json)
        status = list_json(pack, err);
    else if (status == PTXGEN_OK)
        list_lines(pack);
    ptxgen_pack_close(pack);
    return status;
}

static int pack(int argc, char **argv)
{
    static const struct argp_option table[] = {
        {.name = "output", .key = 'o', .arg = "FILE", .doc = "The pack that is written"},
        {.name = OUTPUT_FORCE_NAME, .key = KEY_FORCE, .doc = OUTPUT_FORCE_DOC},
        {.name = "target",
         .key = KEY_TARGET,
         .arg = "NAME[,NAME...]",
         .doc = "Chips to make the kernels for (sm_80): H200, RTX-4090 ..., native; sm_90a and the "
                "like stand for the largest common chip of that architecture, and serve no other"},
        {.name = "ptxas",
         .key = KEY_PTXAS,
         .arg = "PATH",
         .doc = "Assemble with this program; otherwise the pack has texts, which the driver "
                "assembles when it loads them"},
        {.name = "list", .key = KEY_LIST, .doc = "Check a pack and print what is in it"},
        {.name = "json", .key = KEY_JSON, .doc = "With --list: print JSON"},
        {0},
    };
    static const struct argp argp = {
        .options = table,
        .parser = parse,
        .args_doc = "SPECFILE -o FILE\n--list FILE",
        .doc =
            "Makes a pack: the code of a list of kernels for named chips in one file, from which "
            "a program loads them without a cache folder (ptxgen/pack.h).\v"
            "SPECFILE has a kernel a line, in the words of ptxgen emit: \"marlin --k 4096 --n "
            "14336\"; what follows a # is skipped."};
    struct pack_options o = {.path = NULL};
    struct spec_list list = {.path = NULL};
    ptxgen_error err = {0};
    parse_arguments(&argp, argc, argv, 0, &o);
    if (!o.target_count)
        o.targets[o.target_count++] = default_target();
    ptxgen_status status = o.list ? list_pack(&o, &err) : spec_list_read(o.path, &list, &err);
    if (status == PTXGEN_OK && !o.list)
        status = make_pack(&o, &list, &err);
    spec_list_free(&list);
    return status == PTXGEN_OK ? EXIT_OK : report_failure(&err);
}

const struct command pack_command = {"pack", "SPECFILE -o FILE [OPTION...]",
                                     "kernels made ahead of time, in one file", pack};
