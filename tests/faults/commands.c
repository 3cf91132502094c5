/* SPDX-License-Identifier: Apache-2.0 */
/* Every subcommand, on small problems. */
#include "jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The command's main, compiled under this name. */
extern int ptxgen_main(int argc, char **argv);

#define GGUF GOLDEN_DIR "/q4k.gguf"
#define MARLIN GOLDEN_DIR "/marlin_g128.safetensors"
#define SPARSE24 GOLDEN_DIR "/sparse24_torch.safetensors"
#define W8A8 GOLDEN_DIR "/w8a8.safetensors"
#define Q4K_TENSORS "--tensor blk.0.attn_q.weight --norm blk.0.attn_norm.weight"

#define COMMAND(words, varies)                                                                     \
    {                                                                                              \
        words, ptxgen_main, varies, false                                                          \
    }

const struct job command_jobs[] = {
    COMMAND("--help", VARIES_HELP),
    COMMAND("list", 0),
    COMMAND("list --instructions", 0),
    COMMAND("devices", VARIES_TEXT),
    COMMAND("files " MARLIN, 0),
    COMMAND("files " GGUF " --json", 0),
    COMMAND("emit rmsnorm_q4k --k 256 --n 8 --annotate", 0),
    COMMAND("emit marlin --k 128 --n 64 --m 1 -o new.ptx", 0),
    COMMAND("emit w8a8 --k 64 --n 64 --m 64 --target sm_90a", 0),
    COMMAND("emit dense --k 64 --n 64 --m 4", 0),
    COMMAND("emit sparse24 --k 64 --n 64 --m 4", 0),
    COMMAND("inspect rmsnorm_q4k --k 256 --n 8", 0),
    COMMAND("inspect marlin --k 128 --n 64", 0),
    COMMAND("run rmsnorm_q4k --k 256 --n 8 --m 1,3 --device cpu:sm_80", 0),
    COMMAND("run rmsnorm_q4k --gguf " GGUF " " Q4K_TENSORS
            " --input input --expect expected.output --device cpu:sm_80",
            0),
    COMMAND("run marlin --k 128 --n 64 --m 2 --zeros --act-order --group-size 32 --bias "
            "--device cpu:sm_90",
            0),
    COMMAND("run marlin --safetensors " MARLIN
            " --layer gptq --input A --expect C --device cpu:sm_80",
            0),
    COMMAND("run w8a8 --k 64 --n 64 --m 3,70 --asymmetric --bias --device cpu:sm_80", 0),
    COMMAND("run quantise --k 64 --m 3 --producer silu-mul --device cpu:sm_80", 0),
    COMMAND("run gguf_rows --k 64 --w-type q8_0 --m 3 --indexed --device cpu:sm_80", 0),
    COMMAND("run w8a8 --safetensors " W8A8 " --device cpu:sm_80", 0),
    COMMAND("run dense --k 72 --n 24 --m 5 --residual --device cpu:sm_80", 0),
    COMMAND("run sparse24 --k 64 --n 40 --m 3 --tier 2 --device cpu:sm_90", 0),
    COMMAND("run sparse24 --k 64 --n 40 --m 3 --tier 1 --device cpu:sm_80", 0),
    COMMAND("run sparse24 --safetensors " SPARSE24 " --layer f16 --m 2 --device cpu:sm_80", 0),
    COMMAND("run rmsnorm_q4k --random-specs 1 --seed 3 --device cpu:sm_80", 0),
    COMMAND("profile rmsnorm_q4k --k 256 --n 8 --device cpu:sm_80", 0),
    COMMAND("profile marlin --k 128 --n 64 --json --device cpu:sm_80", 0),
    COMMAND("convert " MARLIN " new.safetensors --layer gptq --to packed", 0),
    COMMAND("convert " MARLIN " new.safetensors --layer gptq --to awq", 0),
    COMMAND("convert sparse24 " SPARSE24 " new.safetensors --layer f16 --to bitmask", 0),
    COMMAND("cache list", VARIES_TEXT),
    COMMAND("cache show KEY", VARIES_TEXT),
    COMMAND("cache verify", VARIES_TEXT),
    COMMAND("cache prune --max-bytes 20000", VARIES_TEXT),
    COMMAND("cache clear", VARIES_TEXT),
    COMMAND("cache warm specs --device cpu:sm_80", VARIES_TEXT),
    COMMAND("cache warm more-specs --device cpu:sm_80 --threads 2", VARIES_TEXT | VARIES_FILES),
    COMMAND("pack specs -o new.pack --target H200", 0),
    COMMAND("pack --list kernels.pack", 0),
    COMMAND("tune marlin --k 128 --n 64 --m 1 --replays 1 --device cpu:sm_80",
            VARIES_TEXT | VARIES_FILES),
    COMMAND("bench rmsnorm_q4k --device cpu:sm_80 --shape 256x8 --replays 1 --launches 1 "
            "--no-peer",
            VARIES_TEXT),
    COMMAND("bench dense --device cpu:sm_80 --k 64 --n 16 --m 4 --replays 1 --launches 1 --json",
            VARIES_TEXT),
    COMMAND("plot bench.json new.svg", VARIES_TEXT | VARIES_FILES),
};
const size_t command_job_count = sizeof command_jobs / sizeof *command_jobs;

/* ---- the files ---- */

static void add_file(struct tree *tree, const char *name, const char *text, size_t size)
{
    struct entry *entries = realloc(tree->entries, (tree->count + 1) * sizeof *entries);
    struct entry entry = {
        .name = strdup(name), .mode = 0600, .bytes = malloc(size + 1), .size = size};
    if (!entries || !entry.name || !entry.bytes)
        abort();
    memcpy(entry.bytes, text, size);
    entries[tree->count++] = entry;
    tree->entries = entries;
}

/* Does what a job says to the files; what it prints becomes the file `name`. */
static void prepare(struct tree *tree, const char *words, const char *name)
{
    struct job job = {.name = words, .run = ptxgen_main};
    struct outcome outcome = attempt(&job, tree, FAULT_MEMORY, 0);
    if (outcome.code) {
        fprintf(stderr, "ptxgen %s: exit code %d: %s%s\n", words, outcome.code, outcome.out,
                outcome.err);
        abort();
    }
    tree_free(tree);
    *tree = outcome.after;
    if (name)
        add_file(tree, name, outcome.out, outcome.out_size);
    outcome.after = (struct tree){0};
    outcome_free(&outcome);
}

struct tree prepare_files(void)
{
    static const char specs[] = "rmsnorm_q4k --k 256 --n 8\nmarlin --k 128 --n 64 --max-m 8\n";
    static const char more[] = "dense --k 64 --n 16\nrmsnorm_q4k --k 256 --n 8\n"
                               "w8a8 --k 64 --n 64 --max-m 4\n";
    struct tree tree = {0};
    add_file(&tree, "specs", specs, sizeof specs - 1);
    add_file(&tree, "more-specs", more, sizeof more - 1);
    prepare(&tree, "cache warm specs --device cpu:sm_80", NULL);
    prepare(&tree, "pack specs -o kernels.pack", NULL);
    prepare(&tree, "tune marlin --k 128 --n 128 --m 1 --replays 1 --device cpu:sm_80", NULL);
    prepare(&tree,
            "bench dense --device cpu:sm_80 --k 64 --n 16 --m 1:3 --replays 1 --launches 1 "
            "--no-peer --json",
            "bench.json");
    return tree;
}
