/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other half of the differential run: what is no function of registers. Every protocol of
 * protocol.h is run on a GPU and on the emulator, on random memory, and the memory that it leaves
 * is compared bit by bit.
 *
 *     protocols --gpu --jobs 12
 *
 * Without --gpu the emulator is compared with itself under another schedule. --operands N is the
 * number of threads, of 64 bytes each (10240); --only PATTERN chooses protocols; --jobs N is the
 * number of processes at a time (1); --emit DIR writes the texts and runs
 * nothing; --plant flips a bit of each, to see the comparison fail. Exit
 * status as differential's.
 *
 *     protocols --gpu --jobs 12 --record truth/protocols.txt
 *     protocols --truth truth/protocols.txt
 *
 * The first keeps what the card gave (of 1024 threads), the second compares the emulator with it
 * where there is no card: every protocol must have its line there, and every line its protocol.
 */
#include "processes.h"
#include "protocol.h"
#include "tests/share.h"
#include "truth.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDES = 2, SECONDS = 20 };

struct options {
    bool gpu, plant;
    uint32_t operands;
    unsigned jobs;
    const char *only, *emit, *record, *truth;
};

static bool parse(int count, char **words, struct options *o)
{
    *o = (struct options){.jobs = 1};
    for (int i = 1; i < count; i++) {
        if (!strcmp(words[i], "--gpu"))
            o->gpu = true;
        else if (!strcmp(words[i], "--plant"))
            o->plant = true;
        else if (!strcmp(words[i], "--operands") && i + 1 < count)
            o->operands = (uint32_t)strtoul(words[++i], NULL, 10);
        else if (!strcmp(words[i], "--jobs") && i + 1 < count)
            o->jobs = (unsigned)strtoul(words[++i], NULL, 10);
        else if (!strcmp(words[i], "--only") && i + 1 < count)
            o->only = words[++i];
        else if (!strcmp(words[i], "--emit") && i + 1 < count)
            o->emit = words[++i];
        else if (!strcmp(words[i], "--record") && i + 1 < count)
            o->record = words[++i];
        else if (!strcmp(words[i], "--truth") && i + 1 < count)
            o->truth = words[++i];
        else
            return false;
    }
    if (o->truth && (o->gpu || o->record || o->operands))
        return false;
    if (!o->operands)
        o->operands = o->record ? TRUTH_OPERANDS : 10240;
    o->operands = (o->operands + FORM_THREADS - 1) / FORM_THREADS * FORM_THREADS;
    return o->operands > 0 && o->operands <= 1u << 20 && o->jobs > 0;
}

static int emit(const struct protocol_list *list, const char *folder)
{
    for (size_t i = 0; i < list->count; i++) {
        char path[1024], text[PROTOCOL_TEXT];
        snprintf(path, sizeof path, "%s/protocol%03zu.ptx", folder, i);
        protocol_text(&list->items[i], text);
        FILE *f = fopen(path, "w");
        if (!f || fprintf(f, "// %s\n%s", list->items[i].name, text) < 0 || fclose(f) != 0) {
            fprintf(stderr, "%s cannot be written\n", path);
            return 2;
        }
    }
    return 0;
}

static bool run_side(struct device *d, const struct protocol *p, uint64_t *out)
{
    char text[PROTOCOL_TEXT];
    ptxgen_error err = {0};
    ptxgen_module *module = NULL;
    protocol_text(p, text);
    d->driver.ctx_set_current(d->context);
    bool ran = ptxgen_module_load_ptx(&d->driver, text, NULL, &module, &err) == PTXGEN_OK &&
               device_run_blocks(d, module, "k", &p->blocks, out, &err);
    ptxgen_module_destroy(module);
    if (!ran)
        printf("%s: not run on %s: %.600s\n", p->name, d->name, err.message);
    if (!ran && d->emulated)
        ptxgen_emulator_clear_fault(d->context);
    return ran;
}

static bool is_nan(uint64_t bits)
{
    return (bits & UINT64_MAX >> 1) > UINT64_C(0x7ff0000000000000);
}

/* Words that differ; the first one is described. */
static size_t compare(const struct protocol *p, const struct device *devices, uint64_t *const out[],
                      size_t bytes)
{
    size_t different = 0;
    const unsigned char *a = (const unsigned char *)out[0], *b = (const unsigned char *)out[1];
    for (size_t at = 0; at < bytes; at += p->word) {
        uint64_t left = 0, right = 0;
        if (!memcmp(a + at, b + at, p->word))
            continue;
        memcpy(&left, a + at, p->word);
        memcpy(&right, b + at, p->word);
        if (p->blocks.out.type == PTX_F64 && is_nan(left) && is_nan(right))
            continue; /* whose payload is open */
        if (!different++)
            printf("%s: CTA %zu, byte %zu: %llx on %s, %llx on %s\n", p->name, at / 8192, at % 8192,
                   (unsigned long long)left, devices[0].name, (unsigned long long)right,
                   devices[1].name);
    }
    return different;
}

/* What is kept of a protocol (truth.h), and whether it ran and agreed. */
struct outcome {
    uint64_t inputs, digest;
    bool agreed, recorded;
};

struct run {
    struct options options;
    struct protocol_list list; /* those chosen */
    struct truth truth;
    struct outcome *outcomes; /* shared by the processes */
    struct facts {
        char name[64];
        int version; /* of the first side's driver */
    } * facts;
    int first_side, end_side; /* those that run */
    bool dead;                /* the GPU's context is lost */
};

static uint64_t digest_of(const struct protocol *p, const uint64_t *out, size_t bytes)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < bytes / sizeof *out; i++)
        digest = truth_fold(digest,
                            p->blocks.out.type == PTX_F64 && is_nan(out[i]) ? UINT64_MAX : out[i]);
    return digest;
}

static uint64_t inputs_of(const struct device *d, const struct protocol *p)
{
    char text[PROTOCOL_TEXT];
    protocol_text(p, text);
    return truth_fold_text(device_block_inputs(d, &p->blocks), text);
}

/* Against the line that is kept of the card. */
static bool compare_with_truth(struct run *r, const struct protocol *p, const struct outcome *o)
{
    char why[512];
    const struct truth_line *line = truth_find(&r->truth, p->name);
    bool differs = !line || truth_differs(line, o->inputs, o->digest, why, sizeof why);
    printf("%-72s %s\n", p->name, differs ? line ? why : "no truth" : "as the card has it");
    return !differs;
}

/* True when it ran on all sides, and they agree. */
static bool run_protocol(struct run *r, size_t index, struct device *devices, uint64_t *const out[])
{
    const struct protocol *p = &r->list.items[index];
    struct outcome *o = &r->outcomes[index];
    size_t bytes = (size_t)r->options.operands * FORM_LINE;
    for (int side = r->first_side; side < r->end_side; side++) {
        if (!run_side(&devices[side], p, out[side])) {
            r->dead = !devices[side].emulated;
            return false;
        }
        if (side == r->first_side) {
            if (r->options.plant)
                out[side][bytes / 8 - 1] ^= 1;
            o->inputs = inputs_of(&devices[side], p);
            o->digest = digest_of(p, out[side], bytes);
            o->recorded = true;
        }
    }
    if (r->options.truth)
        return compare_with_truth(r, p, o);
    size_t different = compare(p, devices, out, bytes);
    printf("%-72s %9zu words, %zu differ\n", p->name, bytes / p->word, different);
    return different == 0;
}

static bool open_devices(struct run *r, struct device *devices)
{
    static const ptxgen_emulator_options plain = {.workers = 1}, other = {.seed = 12345};
    ptxgen_error err;
    for (int side = r->first_side; side < r->end_side; side++)
        if (!device_open(&devices[side],
                         side             ? &plain
                         : r->options.gpu ? NULL
                                          : &other,
                         r->options.operands, &err)) {
            fprintf(stderr, "%s\n", err.message);
            return false;
        }
    memcpy(r->facts->name, devices[r->first_side].name, sizeof r->facts->name);
    r->facts->version = devices[r->first_side].driver.version;
    return true;
}

/* In a process of its own. */
static bool run_protocols(void *context, size_t first, size_t end)
{
    struct run *r = context;
    struct device devices[SIDES];
    uint64_t *out[SIDES];
    processes_at(first);
    if (!open_devices(r, devices))
        exit(2);
    for (int side = r->first_side; side < r->end_side; side++)
        if (!(out[side] = malloc((size_t)r->options.operands * FORM_LINE)))
            abort();
    for (size_t i = first; i < end && !r->dead; i++) {
        processes_at(i);
        r->outcomes[i].agreed = run_protocol(r, i, devices, out);
    }
    for (int side = r->first_side; side < r->end_side; side++) {
        if (!r->dead)
            device_close(&devices[side]);
        free(out[side]);
    }
    return !r->dead;
}

static void lose_protocol(void *context, size_t item, const char *why)
{
    struct run *r = context;
    r->outcomes[item].recorded = false;
    printf("%s: %s\n", r->list.items[item].name, why);
}

static void choose(struct protocol_list *list, const char *pattern)
{
    size_t chosen = 0;
    protocol_list_all(list);
    for (size_t i = 0; i < list->count; i++)
        if (!pattern || fnmatch(pattern, list->items[i].name, 0) == 0)
            list->items[chosen++] = list->items[i];
    list->count = chosen;
}

/* Leaves the protocols of this share that have a line; how many have none, and how many lines stand
 * for nothing. */
static size_t choose_kept(struct run *r)
{
    size_t kept = 0, without = 0;
    for (size_t i = 0; i < r->list.count; i++)
        if (!truth_find(&r->truth, r->list.items[i].name)) {
            without++;
            printf("%s: no truth for this protocol: record it on a card\n", r->list.items[i].name);
        } else if (test_in_share((int)i)) {
            r->list.items[kept++] = r->list.items[i];
        }
    r->list.count = kept;
    return without + (r->options.only ? 0 : truth_report_unasked(&r->truth, stdout));
}

/* All protocols that ran on the first side, whether or not the other agrees. */
static bool write_record(const struct run *r)
{
    FILE *f = fopen(r->options.record, "w");
    if (!f)
        return false;
    truth_write_header(f, "protocols", r->facts->name, r->facts->version, r->options.operands);
    for (size_t i = 0; i < r->list.count; i++)
        if (r->outcomes[i].recorded)
            truth_write(f, r->list.items[i].name, r->outcomes[i].inputs, r->outcomes[i].digest);
        else
            printf("%s: not recorded\n", r->list.items[i].name);
    bool written = !ferror(f);
    return fclose(f) == 0 && written;
}

static int run_all(struct run *r)
{
    size_t wrong = r->options.truth ? choose_kept(r) : 0;
    struct processes all = {r->list.count,
                            r->list.count / r->options.jobs + 1,
                            r->options.jobs,
                            SECONDS,
                            r,
                            run_protocols,
                            lose_protocol};
    r->outcomes = processes_memory((r->list.count + 1) * sizeof *r->outcomes);
    r->facts = processes_memory(sizeof *r->facts);
    if (!processes_run(&all)) {
        fprintf(stderr, "no process can be made\n");
        return 2;
    }
    for (size_t i = 0; i < r->list.count; i++)
        wrong += !r->outcomes[i].agreed;
    if (r->options.record && !write_record(r)) {
        fprintf(stderr, "%s cannot be written\n", r->options.record);
        return 2;
    }
    printf("%zu protocols, %zu with a mismatch, not run%s\n", r->list.count, wrong,
           r->options.truth ? ", without a line, or a line without one" : "");
    return wrong || !r->list.count;
}

static bool read_truth(struct run *r)
{
    char why[TRUTH_SENTENCE];
    if (!truth_read(&r->truth, r->options.truth, "protocols", why)) {
        fprintf(stderr, "%s: %s\n", r->options.truth, why);
        return false;
    }
    r->first_side = 1;
    r->options.operands = r->truth.operands;
    return true;
}

int main(int count, char **words)
{
    struct run r = {.end_side = SIDES};
    if (!parse(count, words, &r.options)) {
        fprintf(stderr, "usage: protocols [--gpu] [--operands N] [--only PATTERN] [--jobs N] "
                        "[--emit DIR] [--plant]\n"
                        "                 [--record FILE]\n"
                        "       protocols --truth FILE [--only PATTERN] [--jobs N] [--plant]\n");
        return 2;
    }
    if (r.options.truth && !read_truth(&r))
        return 2;
    choose(&r.list, r.options.only);
    int code = r.options.emit ? emit(&r.list, r.options.emit) : run_all(&r);
    free(r.list.items);
    truth_free(&r.truth);
    return code;
}
