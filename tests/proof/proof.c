/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof of the instruction table: every instruction, with every modifier and with operands at
 * their limits, is put to the validator and to each assembler found, for every target and PTX
 * version that the assembler knows; the verdicts must agree, or the disagreement be explained in
 * exceptions.h. At an assembler's newest version what both accept must also survive code
 * generation, once for each chip: what sm_90 has is not generated again for sm_90a. Exit status 77
 * (skipped) when there is no assembler.
 *
 * Not put to the assembler, because the validator is meant to be stricter: misaligned constant
 * offsets, addresses without a base register, and operands of another width.
 */
#include "assembler.h"
#include "exceptions.h"

#include <fnmatch.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const int versions[] = {70, 71, 72, 73, 74, 75, 76, 77, 78, 80,
                               81, 82, 83, 84, 85, 86, 87, 88, 90};
static const int chips[] = {80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121};
static const char suffixes[] = {0, 'a', 'f'};
enum {
    VERSION_COUNT = sizeof versions / sizeof *versions,
    CHIP_COUNT = sizeof chips / sizeof *chips,
    SUFFIX_COUNT = sizeof suffixes / sizeof *suffixes
};

/* What the worker processes share. */
struct totals {
    atomic_size_t next_chip, configurations, compared, accepted, generated, disagreements, failures;
    atomic_size_t excused[EXCEPTION_COUNT];
};

struct proof {
    struct probe_list list;
    struct proof_text text;
    const char **lines; /* by probe */
    struct assembler assemblers[MAX_ASSEMBLERS];
    size_t assembler_count;
    struct totals *totals;
};

/* One target, and one assembler after the other. */
struct job {
    const struct proof *proof;
    const struct assembler *assembler;
    ptx_target target;
    char name[16], chip[16];
    uint8_t *ours[VERSION_COUNT];   /* by probe; NULL: not yet asked */
    uint8_t *theirs[VERSION_COUNT]; /* by probe; NULL: not both know the target */
    uint8_t **generated;            /* by assembler, by probe: for the chip, whatever the suffix */
    int *inferred;         /* by probe: the version that an uncapped module declares; 0: refused */
    char **why, **our_why; /* by probe: a reason of either's refusal */
};

static bool excused(const struct job *j, const char *line, int version, bool valid)
{
    bool found = false;
    for (size_t i = 0; i < EXCEPTION_COUNT; i++) {
        const struct exception *e = &exceptions[i];
        if (valid != e->valid || j->assembler->release < e->oldest ||
            j->assembler->release > e->newest || version < e->first_ptx || version > e->last_ptx ||
            fnmatch(e->target, j->name, 0) != 0 || fnmatch(e->line, line, 0) != 0)
            continue;
        atomic_fetch_add(&j->proof->totals->excused[i], 1);
        found = true;
    }
    return found;
}

/* Reports the versions at which the verdicts on one line differ in one direction. */
static void compare_line(const struct job *j, const char *line, const uint8_t *const *ours,
                         const uint8_t *const *theirs, size_t index, bool valid, const char *why)
{
    char where[8 * VERSION_COUNT] = "";
    size_t used = 0;
    for (size_t v = 0; v < VERSION_COUNT; v++)
        if (ours[v] && ours[v][index] == valid && theirs[v][index] != valid &&
            !excused(j, line, versions[v], valid))
            used += (size_t)snprintf(where + used, sizeof where - used, " %d.%d", versions[v] / 10,
                                     versions[v] % 10);
    if (!used)
        return;
    atomic_fetch_add(&j->proof->totals->disagreements, 1);
    printf("ptxas %d.%d, %s, PTX%s: ptxgen %s, ptxas %s: %s -- %s\n", j->assembler->release / 10,
           j->assembler->release % 10, j->name, where, valid ? "accepts" : "refuses",
           valid ? "refuses" : "accepts", line, why ? why : "?");
}

static void compare(const struct job *j)
{
    const uint8_t *ours[VERSION_COUNT], *theirs[VERSION_COUNT];
    memcpy(theirs, j->theirs, sizeof theirs);
    for (size_t v = 0; v < VERSION_COUNT; v++)
        ours[v] = theirs[v] ? j->ours[v] : NULL;
    for (size_t p = 0; p < j->proof->list.count; p++) {
        compare_line(j, j->proof->lines[p], ours, theirs, p, true, j->why[p]);
        compare_line(j, j->proof->lines[p], ours, theirs, p, false, j->our_why[p]);
    }
}

/* ---- verdicts ---- */

static void *allocate(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p)
        abort();
    return p;
}

/* The inferred version must be the first at which a capped module is accepted; that the assembler
 * agrees with each of those verdicts is for compare(). */
static void validate(struct job *j, size_t v)
{
    struct totals *totals = j->proof->totals;
    ptx_target capped = j->target;
    capped.max_ptx = versions[v];
    for (size_t p = 0; p < j->proof->list.count; p++) {
        ptxgen_error why;
        int version;
        const struct probe *probe = &j->proof->list.probes[p];
        bool valid = probe_is_valid(probe, &capped, &version, &why);
        j->ours[v][p] = valid;
        if (!valid) {
            free(j->our_why[p]);
            j->our_why[p] = strdup(why.message);
        }
        int inferred = j->inferred[p];
        if (valid != (inferred && inferred <= versions[v]) || (valid && version != inferred)) {
            atomic_fetch_add(&totals->disagreements, 1);
            printf("%s: with the cap %d the verdict does not follow from the inferred version %d: "
                   "%s\n",
                   j->name, versions[v], inferred, j->proof->lines[p]);
        }
    }
}

/* What code generation refuses is refused. */
static bool generate(struct job *j, size_t v)
{
    const struct proof *proof = j->proof;
    size_t count = proof->list.count, new = 0;
    uint8_t *done = j->generated[j->assembler - proof->assemblers], *try = allocate(count);
    char arch[32];
    for (size_t p = 0; p < count; p++)
        new += try[p] = j->ours[v][p] && j->theirs[v][p] && !done[p];
    uint8_t *tried = allocate(count);
    memcpy(tried, try, count);
    snprintf(arch, sizeof arch, "-arch=sm_%s", j->chip);
    bool sound = !new || assembler_judge(j->assembler, arch, &proof->text, versions[v], j->name,
                                         try, j->why);
    for (size_t p = 0; p < count; p++) {
        done[p] |= try[p];
        if (tried[p])
            j->theirs[v][p] = try[p];
    }
    atomic_fetch_add(&proof->totals->generated, new);
    free(tried);
    free(try);
    return sound;
}

static bool judge(struct job *j, size_t v)
{
    const struct proof *proof = j->proof;
    size_t count = proof->list.count;
    char arch[32];
    snprintf(arch, sizeof arch, "-arch=compute_%s", j->chip);
    memset(j->theirs[v], 1, count);
    if (!assembler_judge(j->assembler, arch, &proof->text, versions[v], j->name, j->theirs[v],
                         j->why))
        return false;
    if (versions[v] == j->assembler->newest && !generate(j, v))
        return false;
    for (size_t p = 0; p < count; p++)
        atomic_fetch_add(&proof->totals->accepted, j->theirs[v][p]);
    atomic_fetch_add(&proof->totals->configurations, 1);
    atomic_fetch_add(&proof->totals->compared, count);
    return true;
}

static void judge_version(struct job *j, size_t v, bool has_chip)
{
    ptx_target capped = j->target;
    capped.max_ptx = versions[v];
    ptxgen_error why = {0};
    char line[32], arch[32];
    snprintf(line, sizeof line, ".target %s", j->name);
    snprintf(arch, sizeof arch, "-arch=compute_%s", j->chip);
    const uint8_t ours = ptx_target_check(&capped, &why) == PTXGEN_OK;
    const uint8_t theirs = has_chip && assembler_knows(j->assembler, arch, j->name, versions[v]);
    const uint8_t *our_verdict[VERSION_COUNT] = {0}, *their_verdict[VERSION_COUNT] = {0};
    our_verdict[v] = &ours;
    their_verdict[v] = &theirs;
    compare_line(j, line, our_verdict, their_verdict, 0, ours, why.message);
    if (!ours || !theirs)
        return;
    j->theirs[v] = allocate(j->proof->list.count);
    if (!j->ours[v]) {
        j->ours[v] = allocate(j->proof->list.count);
        validate(j, v);
    }
    if (!judge(j, v))
        atomic_fetch_add(&j->proof->totals->failures, 1);
}

static void forget(char **strings, size_t count)
{
    for (size_t p = 0; p < count; p++) {
        free(strings[p]);
        strings[p] = NULL;
    }
}

static void ask_assembler(struct job *j, const struct assembler *assembler)
{
    j->assembler = assembler;
    bool has_chip = assembler_arch(assembler, &j->target, j->chip);
    for (size_t v = 0; v < VERSION_COUNT && versions[v] <= assembler->newest; v++)
        judge_version(j, v, has_chip);
    compare(j);
    for (size_t v = 0; v < VERSION_COUNT; v++) {
        free(j->theirs[v]);
        j->theirs[v] = NULL;
    }
    forget(j->why, j->proof->list.count);
}

static void prove_target(const struct proof *proof, ptx_target target, uint8_t **generated)
{
    size_t count = proof->list.count;
    struct job j = {.proof = proof,
                    .target = target,
                    .generated = generated,
                    .inferred = allocate(count * sizeof *j.inferred),
                    .why = allocate(count * sizeof *j.why),
                    .our_why = allocate(count * sizeof *j.our_why)};
    snprintf(j.name, sizeof j.name, "sm_%d%.1s", target.sm, &target.suffix);
    for (size_t p = 0; p < count; p++)
        if (!probe_is_valid(&proof->list.probes[p], &target, &j.inferred[p], NULL))
            j.inferred[p] = 0;
    for (size_t a = 0; a < proof->assembler_count; a++)
        ask_assembler(&j, &proof->assemblers[a]);
    forget(j.our_why, count);
    for (size_t v = 0; v < VERSION_COUNT; v++)
        free(j.ours[v]);
    free(j.inferred);
    free(j.why);
    free(j.our_why);
}

static void prove_chip(const struct proof *proof, int chip)
{
    uint8_t *generated[MAX_ASSEMBLERS];
    for (size_t a = 0; a < proof->assembler_count; a++)
        generated[a] = allocate(proof->list.count);
    for (size_t s = 0; s < SUFFIX_COUNT; s++)
        prove_target(proof, (ptx_target){chip, suffixes[s], 0}, generated);
    for (size_t a = 0; a < proof->assembler_count; a++)
        free(generated[a]);
}

/* ---- the whole ---- */

static void run_workers(const struct proof *proof)
{
    long workers = sysconf(_SC_NPROCESSORS_ONLN);
    fflush(stdout);
    for (long w = 0; w < workers; w++)
        if (fork() == 0) {
            setvbuf(stdout, NULL, _IOLBF, 0);
            for (size_t c; (c = atomic_fetch_add(&proof->totals->next_chip, 1)) < CHIP_COUNT;)
                prove_chip(proof, chips[c]);
            fflush(stdout);
            _exit(0);
        }
    for (int status; wait(&status) > 0;)
        if (status != 0)
            atomic_fetch_add(&proof->totals->failures, 1);
}

/* Exceptions of assemblers that are here must have occurred. */
static size_t count_stale_exceptions(const struct proof *proof)
{
    size_t stale = 0;
    for (size_t i = 0; i < EXCEPTION_COUNT; i++) {
        bool here = false;
        for (size_t a = 0; a < proof->assembler_count; a++)
            here = here || (proof->assemblers[a].release >= exceptions[i].oldest &&
                            proof->assemblers[a].release <= exceptions[i].newest);
        if (here && !proof->totals->excused[i]) {
            printf("exception that no longer occurs: %s (%s)\n", exceptions[i].line,
                   exceptions[i].reason);
            stale++;
        }
    }
    return stale;
}

static void index_lines(struct proof *proof)
{
    proof->lines = allocate(proof->list.count * sizeof *proof->lines);
    for (size_t i = 0; i < proof->text.line_count; i++)
        if (proof->text.lines[i].probe >= 0)
            proof->lines[proof->text.lines[i].probe] =
                proof->text.lines[i].text + strspn(proof->text.lines[i].text, "\t");
}

int main(void)
{
    struct proof proof = {0};
    proof.assembler_count = assemblers_find(proof.assemblers);
    const char *named = getenv("PTXAS");
    if (!proof.assembler_count && named && *named) {
        printf("none of the assemblers that PTXAS names can be run: %s\n", named);
        return 1;
    }
    if (!proof.assembler_count) {
        printf(
            "SKIPPED: no ptxas on PATH, in /usr/local/cuda*/bin or named by PTXAS; the instruction "
            "table was NOT proved\n");
        return 77;
    }
    probe_list_build(&proof.list);
    proof_text_build(&proof.list, &proof.text);
    index_lines(&proof);
    struct totals *totals =
        mmap(NULL, sizeof *totals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (totals == MAP_FAILED)
        abort();
    proof.totals = totals;
    for (size_t a = 0; a < proof.assembler_count; a++)
        printf("ptxas %d.%d, up to PTX %d.%d: %s\n", proof.assemblers[a].release / 10,
               proof.assemblers[a].release % 10, proof.assemblers[a].newest / 10,
               proof.assemblers[a].newest % 10, proof.assemblers[a].path);
    run_workers(&proof);
    size_t stale = count_stale_exceptions(&proof);
    printf("%zu instructions in %zu forms; %zu configurations of assembler, target and version; "
           "%zu verdicts compared, %zu of them acceptances, %zu through code generation; "
           "%zu disagreements, %d exceptions (%zu stale), %zu failures\n",
           ptx_op_count, proof.list.count, totals->configurations, totals->compared,
           totals->accepted, totals->generated, totals->disagreements, EXCEPTION_COUNT, stale,
           totals->failures);
    return totals->disagreements || stale || totals->failures || !totals->configurations;
}
