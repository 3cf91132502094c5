/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other half of the differential run: what is no function of registers. Every protocol of
 * protocol.h is run on a GPU and on the emulator, on random memory, and the memory that it leaves
 * is compared bit by bit.
 *
 *     protocols --gpu
 *
 * Without --gpu the emulator is compared with itself under another schedule. --operands N is the
 * number of threads, of 64 bytes each (10240); --only PATTERN chooses protocols; --emit DIR writes
 * their texts and runs nothing; --plant flips a bit of each, to see the comparison fail. Exit
 * status as differential's.
 */
#include "protocol.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDES = 2 };

struct options {
    bool gpu, plant;
    uint32_t operands;
    const char *only, *emit;
};

static bool parse(int count, char **words, struct options *o)
{
    *o = (struct options){.operands = 10240, .only = "*"};
    for (int i = 1; i < count; i++) {
        if (!strcmp(words[i], "--gpu"))
            o->gpu = true;
        else if (!strcmp(words[i], "--plant"))
            o->plant = true;
        else if (!strcmp(words[i], "--operands") && i + 1 < count)
            o->operands = (uint32_t)strtoul(words[++i], NULL, 10);
        else if (!strcmp(words[i], "--only") && i + 1 < count)
            o->only = words[++i];
        else if (!strcmp(words[i], "--emit") && i + 1 < count)
            o->emit = words[++i];
        else
            return false;
    }
    o->operands = (o->operands + FORM_THREADS - 1) / FORM_THREADS * FORM_THREADS;
    return o->operands > 0 && o->operands <= 1u << 20;
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
        if (!different++)
            printf("%s: CTA %zu, byte %zu: %llx on %s, %llx on %s\n", p->name, at / 8192, at % 8192,
                   (unsigned long long)left, devices[0].name, (unsigned long long)right,
                   devices[1].name);
    }
    return different;
}

/* True when it ran on both sides, and they agree. */
static bool run_protocol(const struct protocol *p, const struct options *o, struct device *devices,
                         uint64_t *const out[])
{
    size_t bytes = (size_t)o->operands * FORM_LINE;
    for (int side = 0; side < SIDES; side++)
        if (!run_side(&devices[side], p, out[side]))
            return false;
    if (o->plant)
        out[0][bytes / 8 - 1] ^= 1;
    size_t different = compare(p, devices, out, bytes);
    printf("%-72s %9zu words, %zu differ\n", p->name, bytes / p->word, different);
    return different == 0;
}

int main(int count, char **words)
{
    static const ptxgen_emulator_options plain = {.workers = 1}, other = {.seed = 12345};
    struct options options;
    struct device devices[SIDES];
    struct protocol_list list = {0};
    uint64_t *out[SIDES];
    ptxgen_error err;
    size_t ran = 0, wrong = 0;
    if (!parse(count, words, &options)) {
        fprintf(stderr, "usage: protocols [--gpu] [--operands N] [--only PATTERN] [--emit DIR] "
                        "[--plant]\n");
        return 2;
    }
    protocol_list_copies(&list);
    protocol_list_wgmma(&list);
    if (options.emit) {
        int code = emit(&list, options.emit);
        free(list.items);
        return code;
    }
    if (!device_open(&devices[0], options.gpu ? NULL : &other, options.operands, &err) ||
        !device_open(&devices[1], &plain, options.operands, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    for (int side = 0; side < SIDES; side++)
        if (!(out[side] = malloc((size_t)options.operands * FORM_LINE)))
            abort();
    printf("%s against %s\n", devices[0].name, devices[1].name);
    for (size_t i = 0; i < list.count; i++)
        if (fnmatch(options.only, list.items[i].name, 0) == 0) {
            ran++;
            wrong += !run_protocol(&list.items[i], &options, devices, out);
        }
    printf("%zu protocols, %zu of them with a mismatch or not run\n", ran, wrong);
    for (int side = 0; side < SIDES; side++) {
        device_close(&devices[side]);
        free(out[side]);
    }
    free(list.items);
    return wrong || !ran;
}
