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
 */
#include "processes.h"
#include "protocol.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDES = 2, SECONDS = 20 };

struct options {
    bool gpu, plant;
    uint32_t operands;
    unsigned jobs;
    const char *only, *emit;
};

static bool parse(int count, char **words, struct options *o)
{
    *o = (struct options){.operands = 10240, .jobs = 1, .only = "*"};
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
        else
            return false;
    }
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

/* True when it ran on both sides, and they agree. */
static bool run_protocol(const struct protocol *p, const struct options *o, struct device *devices,
                         uint64_t *const out[], bool *dead)
{
    size_t bytes = (size_t)o->operands * FORM_LINE;
    for (int side = 0; side < SIDES; side++)
        if (!run_side(&devices[side], p, out[side])) {
            *dead = !devices[side].emulated;
            return false;
        }
    if (o->plant)
        out[0][bytes / 8 - 1] ^= 1;
    size_t different = compare(p, devices, out, bytes);
    printf("%-72s %9zu words, %zu differ\n", p->name, bytes / p->word, different);
    return different == 0;
}

struct run {
    struct options options;
    struct protocol_list list; /* those chosen */
    bool *agreed;              /* shared by the processes */
    bool dead;                 /* the GPU's context is lost */
};

/* In a process of its own. */
static bool run_protocols(void *context, size_t first, size_t end)
{
    static const ptxgen_emulator_options plain = {.workers = 1}, other = {.seed = 12345};
    struct run *r = context;
    struct device devices[SIDES];
    uint64_t *out[SIDES];
    ptxgen_error err;
    processes_at(first);
    if (!device_open(&devices[0], r->options.gpu ? NULL : &other, r->options.operands, &err) ||
        !device_open(&devices[1], &plain, r->options.operands, &err)) {
        fprintf(stderr, "%s\n", err.message);
        exit(2);
    }
    for (int side = 0; side < SIDES; side++)
        if (!(out[side] = malloc((size_t)r->options.operands * FORM_LINE)))
            abort();
    for (size_t i = first; i < end && !r->dead; i++) {
        processes_at(i);
        r->agreed[i] = run_protocol(&r->list.items[i], &r->options, devices, out, &r->dead);
    }
    for (int side = 0; side < SIDES; side++) {
        if (!r->dead)
            device_close(&devices[side]);
        free(out[side]);
    }
    return !r->dead;
}

static void lose_protocol(void *context, size_t item, const char *why)
{
    struct run *r = context;
    printf("%s: %s\n", r->list.items[item].name, why);
}

static void choose(struct protocol_list *list, const char *pattern)
{
    size_t chosen = 0;
    protocol_list_all(list);
    for (size_t i = 0; i < list->count; i++)
        if (fnmatch(pattern, list->items[i].name, 0) == 0)
            list->items[chosen++] = list->items[i];
    list->count = chosen;
}

static int run_all(struct run *r)
{
    size_t wrong = 0;
    struct processes all = {r->list.count,
                            r->list.count / r->options.jobs + 1,
                            r->options.jobs,
                            SECONDS,
                            r,
                            run_protocols,
                            lose_protocol};
    r->agreed = processes_memory(r->list.count + 1);
    if (!processes_run(&all)) {
        fprintf(stderr, "no process can be made\n");
        return 2;
    }
    for (size_t i = 0; i < r->list.count; i++)
        wrong += !r->agreed[i];
    printf("%zu protocols, %zu of them with a mismatch or not run\n", r->list.count, wrong);
    return wrong || !r->list.count;
}

int main(int count, char **words)
{
    struct run r = {0};
    if (!parse(count, words, &r.options)) {
        fprintf(stderr, "usage: protocols [--gpu] [--operands N] [--only PATTERN] [--jobs N] "
                        "[--emit DIR] [--plant]\n");
        return 2;
    }
    choose(&r.list, r.options.only);
    int code = r.options.emit ? emit(&r.list, r.options.emit) : run_all(&r);
    free(r.list.items);
    return code;
}
