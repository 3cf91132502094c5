/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four processes publish and read entries and memos of one folder, with too little room for all,
 * and are killed at random moments of it, 200 times in all. What a reader gets is always the whole
 * of what some writer wrote, and the last of them all leaves no temporary file and no half of an
 * entry.
 *
 *     kill [KILLS]
 */
#define _GNU_SOURCE
#include "folder.h"
#include "toy.h"

#include "src/runtime/cache_folder.h"
#include "src/runtime/cache_store.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WRITERS = 4, KEYS = 12, MOST_BYTES = 40000, EXIT_WRONG = 3 };

struct site {
    const ptxgen_cache *cache;
    struct keyed_text heads[KEYS];
    struct keyed_text questions[KEYS];
};

/*
 * Contents that differ in length and bytes from writer to writer, and say themselves whether they
 * are whole: word 0 is the seed, word 1 the number of words, the others follow from these.
 */
static size_t make_contents(uint32_t seed, uint32_t words[MOST_BYTES / 4])
{
    uint32_t count = 16 + seed * 2654435761u % (MOST_BYTES / 4 - 16);
    words[0] = seed;
    words[1] = count;
    for (uint32_t i = 2; i < count; i++)
        words[i] = words[i - 1] * 1664525u + seed;
    return count * sizeof *words;
}

static bool is_whole(const ptxgen_cubin *cubin)
{
    static uint32_t wanted[MOST_BYTES / 4];
    uint32_t seed;
    memcpy(&seed, cubin->bytes, sizeof seed);
    size_t size = make_contents(seed, wanted);
    return cubin->size == size && memcmp(cubin->bytes, wanted, size) == 0;
}

/* Every other publication comes with a memo, whose answer says the seed in three places. */
static bool publish_one(const struct site *site, uint32_t random)
{
    static uint32_t words[MOST_BYTES / 4];
    const struct keyed_text *question = &site->questions[random % KEYS];
    ptxgen_cubin cubin = {words, make_contents(random, words)};
    struct entry_point points[] = {{"one", random}, {"two", random}};
    const struct memo_answer answer = {.ptx = {digest_of("", 0), random},
                                       .entries = {.count = 2, .points = points}};
    struct publication publication = {
        .head = &site->heads[random % KEYS], .cubin = &cubin, .question = question};
    char *memo = random / KEYS % 2 ? memo_make(question->text, question->length, &answer) : NULL;
    publication.memo = memo;
    bool published = cache_publish(site->cache, &publication, NULL) == PTXGEN_OK;
    free(memo);
    return published;
}

static bool read_memo(const struct site *site, uint32_t random)
{
    struct memo_answer answer;
    const char *why;
    if (!cache_recall(site->cache, &site->questions[random / 7 % KEYS], &answer, &why))
        return !why;
    const struct entry_points *entries = &answer.entries;
    bool whole = entries->count == 2;
    for (unsigned i = 0; i < entries->count; i++)
        whole = whole && entries->points[i].dynamic_shared_bytes == answer.ptx.bytes;
    entry_points_free(&answer.entries);
    return whole;
}

static bool read_one(const struct site *site, uint32_t random)
{
    ptxgen_cubin cubin = {0};
    const char *why;
    if (!cache_load(site->cache, &site->heads[random / 7 % KEYS], &cubin, &why))
        return true;
    bool whole = is_whole(&cubin);
    ptxgen_cubin_free(&cubin);
    return whole;
}

/* Has the kernel kill this process 1 µs to 4 ms from now, early as likely as late. */
static void order_kill(uint32_t random)
{
    struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    long range = 1000L << random % 13;
    struct itimerspec when = {.it_value.tv_nsec = 1 + (long)(random >> 8) % range};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &how, &timer) != 0 ||
        timer_settime(timer, 0, &when, NULL) != 0)
        abort();
}

/* A few publications in peace, then one that a kill ends, or shortly after. */
static void write_until_killed(const struct site *site, uint32_t random)
{
    for (int i = 0;; i++) {
        random = random * 1664525u + 1013904223u;
        if (i == 3)
            order_kill(random >> 4);
        publish_one(site, random >> 8);
        if (!read_one(site, random >> 8) || !read_memo(site, random >> 8))
            _exit(EXIT_WRONG);
    }
}

static void start_writer(const struct site *site, uint32_t seed)
{
    pid_t writer = fork();
    if (writer == 0)
        write_until_killed(site, seed);
    if (writer < 0)
        abort();
}

static int count_damage(void *user, const ptxgen_cache_entry *entry)
{
    *(unsigned *)user += entry->damage != NULL;
    return 0;
}

/* With the lock held nobody publishes: what is unfinished was left by the one that was killed. */
static bool is_unfinished(const struct site *site)
{
    unsigned damaged = 0;
    int folder, lock;
    if (folder_open(site->cache, false, &folder, NULL) != PTXGEN_OK)
        return false;
    folder_lock(site->cache, folder, &lock, NULL);
    ptxgen_cache_visit(site->cache, count_damage, &damaged, NULL, NULL);
    bool unfinished =
        lock >= 0 && (damaged || folder_count(ptxgen_cache_folder(site->cache), ".tmp-"));
    close(lock);
    close(folder);
    return unfinished;
}

struct outcome {
    unsigned kills, unfinished, wrong; /* writers killed; within a publication; that read badly */
};

/* At least `kills`, and on until some of them were within a publication. */
static struct outcome wait_for_kills(const struct site *site, unsigned kills)
{
    struct outcome outcome = {0};
    for (uint32_t started = 0, running = 0;; running--) {
        bool enough = started >= kills && (outcome.unfinished || started >= 20 * kills);
        for (; !enough && running < WRITERS; running++)
            start_writer(site, 1000003 * ++started);
        if (running == 0)
            return outcome;
        int status;
        if (wait(&status) < 0)
            abort();
        outcome.kills++;
        outcome.wrong += !WIFSIGNALED(status);
        outcome.unfinished += is_unfinished(site);
    }
}

static void make_heads(struct site *site, const struct toy_device *device)
{
    ptxgen_target target;
    struct assembler assembler;
    struct origin origin;
    ptxgen_target_parse("sm_90", &target, NULL);
    assembler_read(&device->driver, 0, 0, false, &assembler);
    for (uint32_t i = 0; i < KEYS; i++) {
        struct toy_spec spec = {.a = i};
        const struct ptx_digest ptx = {digest_of("", 0), 0};
        if (!origin_make(&toy_memo, &spec, &target, &assembler, &origin) ||
            !memo_question_make(&toy_memo, &origin, NULL, 0, &site->questions[i]))
            abort();
        manifest_head_make(&origin, &ptx, &site->heads[i]);
    }
}

int main(int argc, char **argv)
{
    static struct site site;
    static struct toy_device device;
    char folder[FOLDER_PATH];
    ptxgen_cache *cache;
    unsigned kills = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 200;
    unsigned damaged = 0, whole = 0, memos = 0;
    toy_open(&device, "cpu");
    folder_make(folder);
    ptxgen_cache_options options = {.folder = folder, .max_bytes = KEYS * MOST_BYTES / 3};
    if (ptxgen_cache_open(&options, &cache, NULL))
        return 1;
    site.cache = cache;
    make_heads(&site, &device);
    struct outcome outcome = wait_for_kills(&site, kills);
    bool published = publish_one(&site, 1);
    size_t temporaries = folder_count(folder, ".tmp-"), files = folder_count(folder, "");
    ptxgen_cache_visit(cache, count_damage, &damaged, NULL, NULL);
    for (uint32_t i = 0; i < KEYS; i++) {
        ptxgen_cubin cubin = {0};
        const char *why;
        struct memo_answer answer = {0};
        whole += cache_load(cache, &site.heads[i], &cubin, &why);
        memos += cache_recall(cache, &site.questions[i], &answer, &why);
        entry_points_free(&answer.entries);
        ptxgen_cubin_free(&cubin);
    }
    printf("%u kills, %u within a publication: %u wrong reads; after the next publication %zu "
           "temporary files, %u whole entries, %u memos, %u damaged, %zu files\n",
           outcome.kills, outcome.unfinished, outcome.wrong, temporaries, whole, memos, damaged,
           files);
    ptxgen_cache_close(cache);
    folder_remove(folder);
    toy_close(&device);
    return outcome.wrong || !outcome.unfinished || !published || temporaries || damaged ||
                   files != 2 * whole + memos + 1 || !memos
               ? 1
               : 0;
}
