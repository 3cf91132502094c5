/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ptxas refuses, the emulator's loader refuses, and no more: both are asked about texts of
 * which one thing was changed (mutate.h). The texts are one instruction each of instructions.txt,
 * and whole modules of tests/corpus. Differences are in legality_exceptions.h.
 */
#include "bench.h"
#include "legality_exceptions.h"
#include "mutate.h"
#include "tests/corpus/corpus.h"
#include "tests/emitted.h"
#include "tests/share.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 64, BATCH = 100, INSTRUCTION_LINE = 7, EVERY_SPEC = 60, MODULE_MUTANTS = 4 };

struct texts {
    struct mutant *mutants;
    bool *refused; /* by ptxas */
    size_t count, capacity;
};

/* ---- texts ---- */

static void *grown(void *old, size_t bytes)
{
    void *p = realloc(old, bytes ? bytes : 1);
    if (!p)
        abort();
    return p;
}

static void add(struct texts *all, struct mutant mutant)
{
    if (!mutant.text)
        return;
    if (all->count == all->capacity) {
        all->capacity = 2 * all->capacity + 1024;
        all->mutants = grown(all->mutants, all->capacity * sizeof *all->mutants);
    }
    all->mutants[all->count++] = mutant;
}

static void free_texts(struct texts *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->mutants[i].text);
    free(all->mutants);
    free(all->refused);
}

#define BETWEEN "between.ptx"
#define REGISTERS                                                                                  \
    "\t.reg .b64 %wide<3>; .reg .b16 %half<3>; .reg .f32 %real<3>; .reg .u32 %whole<3>;\n"

static void add_instructions(struct texts *all, size_t rules_each)
{
    char *list = bench_file(INSTRUCTIONS, NULL), *rest = list;
    struct random random = {20};
    size_t rule = 0;
    int number = 0;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        char text[4096];
        char *instruction = strchr(line, ' ');
        *instruction++ = 0;
        snprintf(text, sizeof text,
                 ".version 8.8\n.target %s\n.address_size 64\n"
                 ".visible .entry k(.param .align 16 .b8 par[64])\n{\n%s\t.reg .pred %%p<99>; .reg "
                 ".b16 %%h<99>; .reg .b32 %%r<400>; .reg .b64 %%d<99>; "
                 ".reg .b128 %%q<9>;\n\t%s;\nL:\tret;\n}\n",
                 line, REGISTERS, instruction);
        for (size_t i = 0; i < rules_each; i++, rule++)
            if (test_in_share(number++))
                add(all, mutate(&random, text, INSTRUCTION_LINE, rule % mutation_count));
    }
    free(list);
}

/* The text with the registers that rules name. */
static char *with_registers(const char *text)
{
    size_t kernels = 0;
    for (const char *at = strstr(text, "\n{\n"); at; at = strstr(at + 1, "\n{\n"))
        kernels++;
    char *made = malloc(strlen(text) + kernels * sizeof REGISTERS + 1), *to = made;
    for (const char *at; (at = strstr(text, "\n{\n")); text = at + 3) {
        memcpy(to, text, (size_t)(at + 3 - text));
        to = stpcpy(to + (at + 3 - text), REGISTERS);
    }
    strcpy(to, text);
    return made;
}

/* Some line that holds an instruction. */
static size_t draw_line(struct random *random, const char *text)
{
    size_t count = 0, wanted = 0, line = 0;
    for (const char *at = text; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL, line++) {
        bool holds = at[0] == '\t' && at[1] != '.' && at[1] != '{' && at[1] != '}';
        if (holds && random_bits(random) % ++count == 0)
            wanted = line;
    }
    return wanted;
}

static void add_modules(struct texts *all)
{
    struct corpus corpus = corpus_read(SPECS);
    struct random random = {21};
    size_t rule = 0;
    for (size_t i = 0; i < corpus.count; i += EVERY_SPEC) {
        const struct corpus_spec *spec = &corpus.specs[i];
        ptxgen_error err = {0};
        ptx_module *module = ptx_module_create(&spec->target.ptx, NULL);
        ptxgen_status emitted =
            family_emit(spec->options, &spec->target, spec->m, module, &err);
        char *plain = text_of_module(module, emitted, &err), *text = with_registers(plain);
        for (size_t n = 0; n < MODULE_MUTANTS; n++, rule++)
            add(all, mutate(&random, text, draw_line(&random, text), rule % mutation_count));
        free(plain);
        free(text);
    }
    corpus_free(&corpus);
}

/* ---- ptxas ---- */

struct batch {
    char folder[PATH_BYTES];
    size_t members[BATCH], count;
};

/*
 * "ptxas FOLDER/N.ptx, line L; error : …". Modifiers in front of a syntax error are taken for the
 * next file's first instruction: that of the file between, which is legal.
 */
static void read_message(struct texts *all, const struct batch *batch, const char *message)
{
    size_t file = 0;
    const char *path = strstr(message, batch->folder);
    bool header = strstr(message, "does not support .target") != NULL;
    for (size_t i = 0; i < batch->count && header; i++)
        all->refused[batch->members[i]] = true; /* they have the same */
    if (header || (!strstr(message, "fatal ") && !strstr(message, "error ")) ||
        strstr(message, "aborted due to errors") || (path && strstr(path, BETWEEN)))
        return;
    if (!path || sscanf(path + strlen(batch->folder), "/%zu.ptx", &file) != 1)
        fail_msg("ptxas: %s", message);
    all->refused[file] = true;
}

/* Texts that are assembled together have kernels of different names. */
static void write_file(const char *path, const char *text, size_t number)
{
    static const char entry[] = ".entry ";
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (const char *at; (at = strstr(text, entry)); text = at + strlen(entry))
        fprintf(file, "%.*s%sof%zu_", (int)(at - text), text, entry, number);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Runs ptxas on the texts of a batch, which have one target and one version; false if it crashes.
 */
static bool run_ptxas(struct texts *all, const struct batch *batch)
{
    char command[PATH_BYTES * 2 * (BATCH + 2)], message[2048], between[PATH_BYTES];
    char legal[256];
    const struct mutant *first = &all->mutants[batch->members[0]];
    snprintf(legal, sizeof legal,
             ".version %s\n.target sm_%s\n.address_size 64\n"
             ".visible .entry k()\n{\n\t.reg .b32 r;\n\tmov.b32 r, 0;\n\tret;\n}\n",
             first->version, first->target);
    snprintf(between, sizeof between, "%.40s/" BETWEEN, batch->folder);
    write_file(between, legal, all->count);
    int used = snprintf(command, sizeof command, "'%s' -arch=compute_%s -o /dev/null", ptxas_path(),
                        first->target);
    for (size_t i = 0; i < batch->count; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%.40s/%zu.ptx", batch->folder, batch->members[i]);
        write_file(path, all->mutants[batch->members[i]].text, batch->members[i]);
        used += snprintf(command + used, sizeof command - (size_t)used, " %s %s", path, between);
    }
    snprintf(command + used, sizeof command - (size_t)used, " 2>&1");
    FILE *out = popen(command, "r");
    assert_non_null(out);
    while (fgets(message, sizeof message, out))
        read_message(all, batch, message);
    int status = pclose(out);
    for (size_t i = 0; i < batch->count; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%.40s/%zu.ptx", batch->folder, batch->members[i]);
        unlink(path);
    }
    unlink(between);
    return WIFEXITED(status) && (WEXITSTATUS(status) <= 128 || WEXITSTATUS(status) == 255);
}

/* A text at which ptxas crashes is one that it does not take. */
static void ask(struct texts *all, struct batch *batch)
{
    size_t count = batch->count;
    if (!run_ptxas(all, batch))
        for (size_t i = 0; i < count; i++) {
            struct batch alone = {.members = {batch->members[i]}, .count = 1};
            memcpy(alone.folder, batch->folder, sizeof alone.folder);
            all->refused[batch->members[i]] = false;
            if (!run_ptxas(all, &alone))
                all->refused[batch->members[i]] = true;
        }
    batch->count = 0;
}

static bool same_header(const struct mutant *a, const struct mutant *b)
{
    return !strcmp(a->target, b->target) && !strcmp(a->version, b->version);
}

static void ask_ptxas(struct texts *all)
{
    all->refused = calloc(all->count + 1, 1);
    struct batch batch = {.folder = "/tmp/ptxgen-legal-XXXXXX"};
    assert_non_null(mkdtemp(batch.folder));
    bool *done = calloc(all->count + 1, 1);
    for (size_t first = 0; first < all->count; first++) {
        if (done[first])
            continue;
        for (size_t i = first; i < all->count; i++) {
            if (done[i] || !same_header(&all->mutants[i], &all->mutants[first]))
                continue;
            done[i] = true;
            batch.members[batch.count++] = i;
            if (batch.count == BATCH)
                ask(all, &batch);
        }
        if (batch.count)
            ask(all, &batch);
    }
    free(done);
    rmdir(batch.folder);
}

/* ---- the emulator ---- */

/* The chip that runs a target's text. */
static const char *chip_of(const char *target)
{
    static const char *const chips[] = {"80", "86", "87", "89", "90", "100", "103", "120"};
    static char name[16];
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
        if (!strncmp(target, chips[i], strlen(chips[i])) &&
            (!target[strlen(chips[i])] || strchr("af", target[strlen(chips[i])]))) {
            snprintf(name, sizeof name, "cpu:sm_%s", chips[i]);
            return name;
        }
    return NULL;
}

static bool is_excused(const struct mutant *mutant, bool loads)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (loads == exceptions[i].loads && !fnmatch(exceptions[i].rule, mutant->rule, 0) &&
            !fnmatch(exceptions[i].line, mutant->line, 0))
            return true;
    return false;
}

/* How many verdicts differ without a reason. */
static size_t compare(const struct texts *all, size_t *loaded)
{
    size_t differences = 0;
    struct bench bench;
    bool *done = calloc(all->count + 1, 1);
    for (size_t first = 0; first < all->count; first++) {
        const char *chip = chip_of(all->mutants[first].target);
        if (done[first] || !chip)
            continue;
        bench_open(&bench, chip);
        for (size_t i = first; i < all->count; i++) {
            const struct mutant *mutant = &all->mutants[i];
            if (done[i] || strcmp(mutant->target, all->mutants[first].target))
                continue;
            done[i] = true;
            bool loads = bench_try_load(&bench, mutant->text) == PTXGEN_CUDA_SUCCESS;
            *loaded += loads;
            if (loads)
                assert_int_equal(bench.driver.module_unload(bench.module), PTXGEN_CUDA_SUCCESS);
            bench.module = NULL;
            if (loads != all->refused[i] || is_excused(mutant, loads))
                continue;
            differences++;
            print_error("sm_%s, %s: the emulator %s, ptxas %s: %s%s%s\n", mutant->target,
                        mutant->rule, loads ? "loads" : "refuses", loads ? "refuses" : "takes",
                        mutant->line, loads ? "" : " -- ", loads ? "" : bench.log);
        }
        bench_close(&bench);
    }
    free(done);
    return differences;
}

/* Skips where the assembler is older than the one whose verdicts the exceptions are of. */
static void skip_without_release_13(void)
{
    char command[512], line[512];
    int major = 0;
    skip_without_ptxas();
    snprintf(command, sizeof command, "'%s' --version", ptxas_path());
    FILE *out = popen(command, "r");
    assert_non_null(out);
    while (fgets(line, sizeof line, out))
        if (strstr(line, "release "))
            major = atoi(strstr(line, "release ") + strlen("release "));
    pclose(out);
    if (major >= 13)
        return;
    print_message("ptxas of release %d, not 13: the emulator's loader was not compared\n", major);
    skip();
}

static void changed_text_loads_where_ptxas_takes_it(void **state)
{
    (void)state;
    skip_without_release_13();
    struct texts all = {0};
    size_t loaded = 0;
    const char *more = getenv("PTXGEN_LEGALITY_RULES"); /* to an instruction; there are 19 */
    add_instructions(&all, more ? (size_t)atoi(more) : 2);
    add_modules(&all);
    ask_ptxas(&all);
    size_t differences = compare(&all, &loaded);
    print_message("%zu texts, of which the emulator loads %zu; %zu differences\n", all.count,
                  loaded, differences);
    free_texts(&all);
    assert_int_equal(differences, 0);
}

/* One text a rule of the loader, and its sentence: line, column, instruction and rule. */
static void refusals_name_instruction_and_rule(void **state)
{
    (void)state;
    static const struct {
        const char *target, *version, *body, *sentence;
    } texts[] = {
        {"sm_90", "8.0", "wgmma.fence.sync.aligned;",
         ("line 8, column 2: wgmma: wgmma.fence.sync.aligned needs sm_90a with PTX 8.0 (.target "
          "sm_90, .version 8.0)")},
        {"sm_90", "8.0", "mbarrier.try_wait.parity.shared.b64 p, [r0], 0;", NULL},
        {"sm_80", "8.0", "mbarrier.try_wait.parity.shared.b64 p, [r0], 0;",
         ("line 8, column 2: mbarrier: mbarrier.try_wait.parity.shared.b64 needs sm_90 with PTX "
          "7.8 (.target sm_80, .version 8.0)")},
        {"sm_100", "8.8", "ld.global.v8.b32 {r0,r1,r2,r3,r4,r5,r6,r7}, [d0];", NULL},
        {"sm_100", "8.6", "ld.global.v8.b32 {r0,r1,r2,r3,r4,r5,r6,r7}, [d0];",
         ("line 8, column 2: ld: ld.global.v8.b32 needs sm_100 with PTX 8.8 (.target sm_100, "
          ".version 8.6)")},
        {"sm_80", "8.0", "bar.sync 16;",
         ("line 8, column 2: bar: bar.sync takes constants from 0 to 15, not 16 (.target sm_80, "
          ".version 8.0)")},
        {"sm_80", "8.0", "cvt.f16.f32 h0, f0;",
         ("line 8, column 2: cvt: cvt.f16.f32 needs a modifier such as .rn (.target sm_80, "
          ".version 8.0)")},
        {"sm_80", "8.0", "cvt.rn.u32.s32 r0, r1;",
         ("line 8, column 2: cvt: cvt.rn.u32.s32 does not take a rounding (.target sm_80, "
          ".version 8.0)")},
        {"sm_80", "8.0", "cvt.relu.u32.s32 r0, r1;",
         ("line 8, column 2: cvt: cvt.relu.u32.s32 is no instruction: these types have not these "
          "modifiers")},
        {"sm_80", "8.0", "add.rn.bf16 h0, h1, h2;",
         ("line 8, column 2: add: add.rn.bf16 needs sm_90 with PTX 7.8 (.target sm_80, .version "
          "8.0)")},
        {"sm_80", "8.0", "add.rn.f16 h0, h1, 0x3c00;",
         "line 8, column 2: add: an operand of type .f16 is a register, not '0x3c00'"},
        {"sm_80", "8.0", "elect.sync r0|p, -1;",
         ("line 8, column 2: elect: elect.sync needs sm_90 with PTX 8.0 (.target sm_80, .version "
          "8.0)")},
        {"sm_80", "8.0", ".reg .b32 r1;", "line 8, column 12: 'r1' is declared twice in one scope"},
        {"sm_80", "8.0", ".reg .b32 m1; .reg .b32 m<4>;",
         "line 8, column 26: 'm1' is declared twice in one scope"},
        {"sm_80", "8.0", ".reg .b32 m1; .reg .b32 m<1>;", NULL},
        {"sm_80", "8.0", "{ .reg .b32 r1; mov.b32 r1, 0; }", NULL},
        {"sm_80", "8.0", "st.param.u64 [par], d0;",
         "line 8, column 2: st: 'par' is a parameter of this function, which it cannot write"},
        {"sm_80", "8.0", "ld.global.u32 r0, [d0-16];", "line 8, column 23: ',' is due, not '-'"},
        {"sm_80", "8.0", "ld.global.u32 r0, [d0+-16];", NULL},
        {"sm_80", "8.0", "ld.global.u32 r0, [300];",
         "line 8, column 2: ld: only .local addresses may be constants"},
        {"sm_80", "8.0", "ld.global.u32 r0, [s];",
         "line 8, column 2: ld: 's' is a .shared variable, and the access is to .global memory"},
        {"sm_80", "8.0", "ld.global.u32 r0, [f0];",
         "line 8, column 2: ld: 'f0' is a floating-point register, and no address"},
        {"sm_80", "8.0", "ld.global.u32 r0, [d0, 4];",
         "line 8, column 2: ld: an address has one register or variable, and one offset"},
        {"sm_80", "8.0", "ld.global.u32 f0, [d0];",
         "line 8, column 2: ld: register 'f0' is declared .f32, which does not suit type .u32"},
        {"sm_80", "8.0", "ld.global.v2.u16 {r0, h0}, [d0];",
         "line 8, column 2: ld: the registers of a vector have one width"},
        {"sm_80", "8.0", "ld.relaxed.global.u32 r0, [d0];",
         ("line 8, column 2: ld: a scope such as .gpu stands with .relaxed, .acquire and "
          ".release, and only with them")},
        {"sm_80", "8.0", "ld.gpu.global.u32 r0, [d0];",
         ("line 8, column 2: ld: a scope such as .gpu stands with .relaxed, .acquire and "
          ".release, and only with them")},
        {"sm_80", "8.0", "ld.nc.u32 r0, [d0];",
         "line 8, column 2: ld: .nc is of loads from .global memory"},
        {"sm_80", "8.0", "ld.volatile.global.cg.u32 r0, [d0];",
         "line 8, column 2: ld: a strong access has no cache operator"},
        {"sm_80", "8.0", "add.u32.u32 r0, r1, r2;",
         "line 8, column 2: add: modifier .u32 stands too often"},
        {"sm_80", "8.0", "add.u32 r0, r1, 0f3F800000;",
         ("line 8, column 2: add: the floating-point immediate '0f3F800000' does not suit type "
          ".u32")},
        {"sm_80", "8.0", "add.s32 r0, r1, f0;",
         "line 8, column 2: add: register 'f0' is declared .f32, which does not suit type .s32"},
        {"sm_80", "8.0", "setp.lt.b32 p, r0, r1;",
         "line 8, column 2: setp: type .b32 has no comparison lt "},
        {"sm_80", "8.0", "setp.lo.s32 p, r0, r1;",
         "line 8, column 2: setp: type .s32 has no comparison lo "},
        {"sm_80", "8.0", "atom.global.add.f16 h0, [d0], h1;",
         "line 8, column 2: atom: .noftz stands with 16-bit floats, and only with them"},
        {"sm_80", "8.0", "atom.cg.global.add.u32 r0, [d0], r1;",
         "line 8, column 2: atom: modifier .cg is unknown or does not belong here"},
        {"sm_80", "8.2", ".reg .b128 q;",
         "line 8, column 13: registers of type .b128 need .version 8.3 or later"},
        {"sm_80", "7.3", "ld.global.L1::no_allocate.u32 r0, [d0];",
         ("line 8, column 2: ld: ld.global.L1::no_allocate.u32 has .L1::no_allocate, which needs "
          "sm_80 with PTX 7.4 (.target sm_80, .version 7.3)")},
        {"sm_80", "7.3", "ld.global.L2::256B.u32 r0, [d0];",
         ("line 8, column 2: ld: ld.global.L2::256B.u32 has .L2::256B, which needs sm_80 with PTX "
          "7.4 (.target sm_80, .version 7.3)")},
        {"sm_80", "7.3", "cp.async.ca.shared.global.L2::128B [s], [d0], 4;",
         ("line 8, column 2: cp: cp.async.ca.shared.global.L2::128B has .L2::128B, which needs "
          "sm_80 with PTX 7.4 (.target sm_80, .version 7.3)")},
        {"sm_80", "8.0", "min.xorsign.abs.f32 f0, f1, f0;",
         ("line 8, column 2: min: min.xorsign.abs.f32 has .xorsign.abs, which needs sm_86 with "
          "PTX 7.2 (.target sm_80, .version 8.0)")},
        {"sm_86", "7.1", "min.xorsign.abs.f32 f0, f1, f0;",
         ("line 8, column 2: min: min.xorsign.abs.f32 has .xorsign.abs, which needs sm_86 with "
          "PTX 7.2 (.target sm_86, .version 7.1)")},
        {"sm_80", "8.0", "atom.relaxed.cluster.global.add.u32 r0, [d0], r1;",
         ("line 8, column 2: atom: atom.relaxed.cluster.global.add.u32 has .cluster, which needs "
          "sm_90 with PTX 7.8 (.target sm_80, .version 8.0)")},
        {"sm_80", "8.0", "fence.acq_rel.cluster;",
         ("line 8, column 2: fence: fence.acq_rel.cluster has .cluster, which needs sm_90 with "
          "PTX 7.8 (.target sm_80, .version 8.0)")},
        {"sm_80", "8.0", "bfe.u32 r0, r1, 256, 3;",
         ("line 8, column 2: bfe: bfe.u32 takes constants from 0 to 255, not 256 (.target sm_80, "
          ".version 8.0)")},
        {"sm_80", "8.0", "cp.async.ca.shared.global [s], [d0], 6;",
         "line 8, column 2: cp: cp-size 6; it is 4, 8 or 16"},
        {"sm_90", "8.0", "setmaxnreg.inc.sync.aligned.u32 40;",
         ("line 8, column 2: setmaxnreg: setmaxnreg.inc.sync.aligned.u32 needs sm_90a with PTX "
          "8.0 or sm_100a with PTX 8.6 or sm_101a with PTX 8.6 or sm_120a with PTX 8.7 or sm_100f "
          "with PTX 8.8 or sm_101f with PTX 8.8 or sm_120f with PTX 8.8 (.target sm_90, .version "
          "8.0)")},
        {"sm_80", "8.0", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16 {f0}, {r0}, {r0}, {f0};",
         "line 8, column 2: mma: a matrix element type is missing or unknown (.none)"},
        {"sm_80", "8.0", "mov.b32 r0, {h0, h1, h2};",
         "line 8, column 2: mov: the elements of the vector do not fill the register"},
        {"sm_80", "8.0", "mov.f32 f0, 1;",
         "line 8, column 2: mov: a floating-point immediate is written 0f… or 0d…, not '1'"},
        {"sm_80", "8.0", "add.f32 f0, f1;",
         "line 8, column 2: add: 2 operands; between 3 and 3 are due"},
        {"sm_80", "8.0", "add.wide.u32 r0, r1, r2;",
         "line 8, column 2: add: modifier .wide is unknown or does not belong here"},
        {"sm_80", "8.0", "add r0, r1, r2;",
         "line 8, column 2: add: there is no form for type .none with these modifiers"},
        {"sm_80", "8.0", "mul.lo.f64 r0, r1, r2;",
         "line 8, column 2: mul: operand 'r0' is 32 bits wide, which does not suit type .f64"},
        {"sm_80", "8.0", "ld.global.u32 r0, [f0];",
         "line 8, column 2: ld: 'f0' is a floating-point register, and no address"},
        {"sm_80", "8.0", "setp.lt.b32 p, r0, r1;",
         "line 8, column 2: setp: type .b32 has no comparison lt "},
        {"sm_80", "8.0", "wgmma.fence.sync.aligned;",
         ("line 8, column 2: wgmma: wgmma.fence.sync.aligned needs sm_90a with PTX 8.0 (.target "
          "sm_80, .version 8.0)")},
        {"sm_90", "7.7", "add.u32 r0, r1, r2;",
         "line 2, column 1: .target sm_90 needs .version 7.8 or later, not 7.7"},
    };
    struct bench bench;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[1024];
        bench_open(&bench, strcmp(texts[i].target, "sm_100") ? "cpu:sm_90" : "cpu:sm_100");
        snprintf(
            text, sizeof text,
            ".version %s\n.target %s\n.address_size 64\n.visible .entry k(.param .u64 par)\n{\n"
            "\t.reg .pred p; .reg .b16 h<4>; .reg .b32 r<8>; .reg .f32 f<2>; .reg .b64 d<4>;\n"
            "\t.shared .align 16 .b8 s[64];\n\t%s\n\tret;\n}\n",
            texts[i].version, texts[i].target, texts[i].body);
        bool loads = bench_try_load(&bench, text) == PTXGEN_CUDA_SUCCESS;
        if (loads != !texts[i].sentence)
            fail_msg("%s: %s", texts[i].body, loads ? "loads" : bench.log);
        if (!loads && strcmp(bench.log, texts[i].sentence) != 0)
            fail_msg("%s: '%s', not '%s'", texts[i].body, bench.log, texts[i].sentence);
        bench_close(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_name_instruction_and_rule),
        cmocka_unit_test(changed_text_loads_where_ptxas_takes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
