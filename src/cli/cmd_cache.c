/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen cache: what lies in the disk cache, and tending it. */
#include "cache_warm.h"
#include "command.h"
#include "exit_code.h"
#include "json_draft.h"
#include "options.h"
#include "plural.h"

#include <ptxgen/cache.h>

#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEY_FOLDER = OPTION_COMMAND_KEYS, KEY_BYTES, KEY_DEVICE, KEY_THREADS, KEY_JSON };

struct cache_options {
    const char *verb, *argument; /* the argument is NULL when there is none */
    const char *folder, *device;
    uint64_t max_bytes; /* 0: not given */
    unsigned threads;
    bool json;
};

/* ---- the manifest's lines ---- */

/* What stands behind "NAME: " on its line, cut to the buffer; "?" when the line is missing. */
static void find_line(const char *manifest, const char *name, char *value, size_t size)
{
    char wanted[32];
    snprintf(wanted, sizeof wanted, "\n%s: ", name);
    const char *found = strstr(manifest, wanted);
    if (found)
        found += strlen(wanted);
    snprintf(value, size, "%.*s", found ? (int)strcspn(found, "\n,") : 1, found ? found : "?");
}

static void print_time(int64_t seconds)
{
    char text[32];
    time_t time = (time_t)seconds;
    struct tm parts;
    if (localtime_r(&time, &parts) && strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts))
        printf("%s", text);
}

/* ---- list, show, verify ---- */

struct listed {
    size_t entries, memos;
    struct json_draft draft; /* of --json */
    cJSON *items;
};

/* What the manifest says of an entry. */
struct described {
    char family[64], spec[200], target[32];
};

static struct described describe(const ptxgen_cache_entry *entry)
{
    struct described d;
    find_line(entry->manifest, "family", d.family, sizeof d.family);
    find_line(entry->manifest, "target", d.target, sizeof d.target);
    const char *line = strstr(entry->manifest, "\nspec: ");
    snprintf(d.spec, sizeof d.spec, "%.*s", line ? (int)strcspn(line + 7, "\n") : 0,
             line ? line + 7 : "");
    return d;
}

/* Memos only when there is something to say of them. */
static int list_entry(void *user, const ptxgen_cache_entry *entry)
{
    struct listed *listed = user;
    ++*(entry->is_memo ? &listed->memos : &listed->entries);
    if (entry->is_memo && !entry->damage)
        return 0;
    const struct described d = describe(entry);
    printf("%.12s  %8" PRIu64 "  ", entry->key, entry->bytes);
    print_time(entry->used);
    printf("  %s %s %s%s%s%s\n", d.target, d.family, d.spec, entry->is_memo ? "  memo" : "",
           entry->damage ? "  DAMAGED: " : "", entry->damage ? entry->damage : "");
    return 0;
}

static int verify_entry(void *user, const ptxgen_cache_entry *entry)
{
    if (entry->damage) {
        printf("%s%s: %s\n", entry->key, entry->is_memo ? ".memo" : "", entry->damage);
        ++*(size_t *)user;
    }
    return 0;
}

struct wanted {
    const char *key; /* its beginning */
    size_t found;
};

static int show_entry(void *user, const ptxgen_cache_entry *entry)
{
    struct wanted *wanted = user;
    if (strncmp(entry->key, wanted->key, strlen(wanted->key)) != 0)
        return 0;
    wanted->found++;
    printf("%s\n%s", entry->key, entry->manifest);
    if (entry->damage)
        printf("DAMAGED: %s\n", entry->damage);
    return 0;
}

static int add_entry(void *user, const ptxgen_cache_entry *entry)
{
    struct listed *listed = user;
    const struct described d = describe(entry);
    struct json_draft *draft = &listed->draft;
    cJSON *object = json_append_object(draft, listed->items);
    json_add_string(draft, object, "key", entry->key);
    json_add_number(draft, object, "bytes", (double)entry->bytes);
    json_add_number(draft, object, "used", (double)entry->used);
    json_add_bool(draft, object, "memo", entry->is_memo);
    json_add_string(draft, object, "target", d.target);
    json_add_string(draft, object, "family", d.family);
    json_add_string(draft, object, "spec", d.spec);
    if (entry->damage)
        json_add_string(draft, object, "damage", entry->damage);
    return 0;
}

static int list_json(const ptxgen_cache *cache)
{
    struct listed listed = {.items = NULL};
    ptxgen_error err;
    json_start(&listed.draft);
    json_add_string(&listed.draft, listed.draft.root, "folder", ptxgen_cache_folder(cache));
    listed.items = json_add_array(&listed.draft, listed.draft.root, "entries");
    ptxgen_status status = ptxgen_cache_visit(cache, add_entry, &listed, NULL, &err);
    if (status == PTXGEN_OK)
        status = json_print(&listed.draft, &err);
    json_free(&listed.draft);
    return status == PTXGEN_OK ? EXIT_OK : report_failure(&err);
}

static int list_all(const ptxgen_cache *cache, const struct cache_options *options)
{
    struct listed listed = {0};
    ptxgen_error err;
    if (options->json)
        return list_json(cache);
    if (ptxgen_cache_visit(cache, list_entry, &listed, NULL, &err) != PTXGEN_OK)
        return report_failure(&err);
    printf("%zu entr%s and %zu memo%s in %s\n", listed.entries, plural_y(listed.entries),
           listed.memos, plural(listed.memos), ptxgen_cache_folder(cache));
    return EXIT_OK;
}

static int show(const ptxgen_cache *cache, const struct cache_options *options)
{
    struct wanted wanted = {options->argument, 0};
    ptxgen_error err;
    if (ptxgen_cache_visit(cache, show_entry, &wanted, NULL, &err) != PTXGEN_OK)
        return report_failure(&err);
    if (wanted.found)
        return EXIT_OK;
    fprintf(stderr, "ptxgen: no entry in %s begins with %s\n", ptxgen_cache_folder(cache),
            options->argument);
    return EXIT_FILE;
}

static int verify(const ptxgen_cache *cache, const struct cache_options *options)
{
    size_t damaged = 0;
    ptxgen_error err;
    (void)options;
    if (ptxgen_cache_visit(cache, verify_entry, &damaged, NULL, &err) != PTXGEN_OK)
        return report_failure(&err);
    return damaged ? EXIT_FILE : EXIT_OK;
}

/* ---- prune, clear, warm ---- */

static int report_removal(ptxgen_status status, const ptxgen_cache_removed *removed,
                          const ptxgen_error *err)
{
    if (status != PTXGEN_OK)
        return report_failure(err);
    printf("removed %" PRIu64 " entr%s and %" PRIu64 " stray%s, %" PRIu64 " byte%s\n",
           removed->entries, plural_y(removed->entries), removed->strays, plural(removed->strays),
           removed->bytes, plural(removed->bytes));
    return EXIT_OK;
}

static int prune(const ptxgen_cache *cache, const struct cache_options *options)
{
    ptxgen_cache_removed removed;
    ptxgen_error err;
    uint64_t most = options->max_bytes ? options->max_bytes : ptxgen_cache_max_bytes(cache);
    return report_removal(ptxgen_cache_prune(cache, most, &removed, &err), &removed, &err);
}

static int clear(const ptxgen_cache *cache, const struct cache_options *options)
{
    ptxgen_cache_removed removed;
    ptxgen_error err;
    (void)options;
    return report_removal(ptxgen_cache_clear(cache, &removed, &err), &removed, &err);
}

static int warm(const ptxgen_cache *cache, const struct cache_options *options)
{
    return cache_warm(cache, options->argument, options->device, options->threads);
}

static const struct verb {
    const char *name, *argument;
    int (*run)(const ptxgen_cache *cache, const struct cache_options *options);
} verbs[] = {
    {"list", NULL, list_all}, {"show", "KEY", show},  {"verify", NULL, verify},
    {"prune", NULL, prune},   {"clear", NULL, clear}, {"warm", "SPECFILE", warm},
};

/* ---- options ---- */

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; name && i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(verbs[i].name, name))
            return &verbs[i];
    return NULL;
}

static void check_arguments(const struct cache_options *options, struct argp_state *state)
{
    const struct verb *verb = find_verb(options->verb);
    if (!verb)
        argp_error(state, "list, show, verify, prune, clear or warm must be named");
    else if (verb->argument && !options->argument)
        argp_error(state, "%s needs a %s", verb->name, verb->argument);
    else if (!verb->argument && options->argument)
        argp_error(state, "%s takes no argument", verb->name);
    else if (options->json && verb->run != list_all)
        argp_error(state, "%s prints no JSON; list does", verb->name);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct cache_options *options = state->input;
    switch (key) {
    case KEY_FOLDER: options->folder = arg; return 0;
    case KEY_BYTES: options->max_bytes = parse_bytes(state, "--max-bytes", arg); return 0;
    case KEY_DEVICE: options->device = arg; return 0;
    case KEY_THREADS:
        options->threads = (unsigned)parse_number(state, "--threads", arg, 1, 256);
        return 0;
    case KEY_JSON: options->json = true; return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 1)
            return ARGP_ERR_UNKNOWN;
        *(state->arg_num ? &options->argument : &options->verb) = arg;
        return 0;
    case ARGP_KEY_END: check_arguments(options, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int cache(int argc, char **argv)
{
    static const struct argp_option table[] = {
        {.name = "folder", .key = KEY_FOLDER, .arg = "PATH", .doc = "Instead of the default one"},
        {.name = "max-bytes",
         .key = KEY_BYTES,
         .arg = "BYTES",
         .doc = "prune: leave at most this; warm: the cache's limit (256M); K, M, G and T are of "
                "2^10, 2^20, 2^30 and 2^40 bytes"},
        {.name = "device",
         .key = KEY_DEVICE,
         .arg = "NAME",
         .doc = "warm: auto (default), gpu, gpu:1, cpu, cpu:sm_80 ..."},
        {.name = "json", .key = KEY_JSON, .doc = "list: print JSON"},
        {.name = "threads",
         .key = KEY_THREADS,
         .arg = "N",
         .doc = "warm: 1 to 256 (all there are)"},
        {0},
    };
    static const struct argp argp = {
        .options = table,
        .parser = parse,
        .args_doc = "list\nshow KEY\nverify\nprune\nclear\nwarm SPECFILE",
        .doc = "Looks into and tends the disk cache of machine code.\v"
               "KEY is the beginning of a key that list or verify prints. A memo says which text a "
               "spec gives, so that its machine code is found without an emission. verify prints "
               "what is damaged and "
               "exits with 4 if anything is. SPECFILE has a kernel a line, in the words of ptxgen "
               "emit: \"rmsnorm_q4k --k 4096 --n 14336\"; what follows a # is skipped. warm exits "
               "with the code of the first kernel that failed (2 when its family refuses it), and "
               "with 4 when one is not kept: the line of the file and the reason are printed."};
    struct cache_options options = {.device = "auto"};
    parse_arguments(&argp, argc, argv, 0, &options);
    const ptxgen_cache_options where = {.folder = options.folder, .max_bytes = options.max_bytes};
    ptxgen_cache *opened;
    ptxgen_error err;
    if (ptxgen_cache_open(&where, &opened, &err) != PTXGEN_OK)
        return report_failure(&err);
    int code = find_verb(options.verb)->run(opened, &options);
    ptxgen_cache_close(opened);
    return code;
}

const struct command cache_command = {"cache",
                                      "list|show KEY|verify|prune|clear|warm SPECFILE [OPTION...]",
                                      "look into and tend the disk cache", cache};
