/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_time.h"

#include "operand.h"
#include "progress.h"
#include "random.h"

#include <ptxgen/w8a8.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the graph ---- */

static ptxgen_status capture(struct device *d, bench_launch *launch, void *state, uint32_t copies,
                             unsigned launches, ptxgen_cu_graph *graph, ptxgen_error *err)
{
    ptxgen_driver *driver = &d->driver;
    ptxgen_status status = device_check(
        d, driver->stream_begin_capture(d->stream, PTXGEN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "starting to capture a graph", err);
    if (status != PTXGEN_OK)
        return status;
    for (unsigned i = 0; status == PTXGEN_OK && i < launches; i++)
        status = launch(state, i % copies, err);
    ptxgen_cu_result ended = driver->stream_end_capture(d->stream, graph);
    return status == PTXGEN_OK ? device_check(d, ended, "capturing a graph", err) : status;
}

static ptxgen_status instantiate(struct device *d, ptxgen_cu_graph graph,
                                 ptxgen_cu_graph_exec *exec, ptxgen_error *err)
{
    ptxgen_status status =
        ptxgen_driver_require(&d->driver, offsetof(ptxgen_driver, graph_instantiate), err);
    if (status != PTXGEN_OK)
        return status;
    return device_check(d, d->driver.graph_instantiate(exec, graph, 0), "instantiating a graph",
                        err);
}

/* ---- replays ---- */

struct events {
    ptxgen_cu_event start, end;
};

static ptxgen_status create_events(struct device *d, struct events *events, ptxgen_error *err)
{
    *events = (struct events){NULL, NULL};
    ptxgen_cu_result result = d->driver.event_create(&events->start, PTXGEN_CU_EVENT_DEFAULT);
    if (result == PTXGEN_CUDA_SUCCESS)
        result = d->driver.event_create(&events->end, PTXGEN_CU_EVENT_DEFAULT);
    return device_check(d, result, "creating an event", err);
}

static void destroy_events(struct device *d, const struct events *events)
{
    if (events->end)
        d->driver.event_destroy(events->end);
    if (events->start)
        d->driver.event_destroy(events->start);
}

/* Enqueues `times` launches between the two events and waits for them; seconds of one. */
static ptxgen_status between_events(struct device *d, bench_launch *launch, void *state, int times,
                                    const struct events *events, double *seconds, ptxgen_error *err)
{
    float milliseconds = 0;
    ptxgen_status status = device_check(d, d->driver.event_record(events->start, d->stream),
                                        "recording an event", err);
    for (int i = 0; status == PTXGEN_OK && i < times; i++)
        status = device_explain(d, launch(state, 0, err), err);
    if (status == PTXGEN_OK)
        status = device_check(d, d->driver.event_record(events->end, d->stream),
                              "recording an event", err);
    if (status == PTXGEN_OK)
        status = device_wait(d, err);
    if (status == PTXGEN_OK)
        status =
            device_check(d, d->driver.event_elapsed_time(&milliseconds, events->start, events->end),
                         "timing", err);
    *seconds = milliseconds / 1e3 / times;
    return status;
}

/* A graph, as what is launched. */
struct replaying {
    struct device *device;
    ptxgen_cu_graph_exec exec;
};

static ptxgen_status replay(void *state, uint32_t copy, ptxgen_error *err)
{
    const struct replaying *r = state;
    (void)copy;
    return device_check(r->device, r->device->driver.graph_launch(r->exec, r->device->stream),
                        "replaying a graph", err);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static ptxgen_status replay_all(struct device *d, ptxgen_cu_graph_exec exec,
                                const struct events *events, struct timing *t, ptxgen_error *err)
{
    enum { UNMEASURED = 3 };
    struct replaying replaying = {d, exec};
    double unused, *seconds = calloc(t->replays, sizeof *seconds);
    ptxgen_status status = seconds ? PTXGEN_OK
                                   : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                                                 "no memory for %u times", t->replays);
    for (unsigned i = 0; status == PTXGEN_OK && i < UNMEASURED; i++)
        status = between_events(d, replay, &replaying, 1, events, &unused, err);
    for (unsigned i = 0; status == PTXGEN_OK && i < t->replays; i++)
        status = between_events(d, replay, &replaying, 1, events, &seconds[i], err);
    if (status == PTXGEN_OK) {
        t->median = bench_median(seconds, t->replays) / t->launches;
        t->least = seconds[0] / t->launches;
        t->most = seconds[t->replays - 1] / t->launches;
    }
    free(seconds);
    return status;
}

/* Under load the clock falls within a second: what is timed next is to find it as this did. */
static void rest(const struct device *d, double seconds)
{
    if (d->emulated)
        return;
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)(1e9 * (seconds - (double)time.tv_sec));
    nanosleep(&time, NULL);
}

ptxgen_status bench_time(struct device *d, bench_launch *launch, void *state, uint32_t copies,
                         unsigned launches, unsigned replays, struct timing *timing,
                         ptxgen_error *err)
{
    ptxgen_driver *driver = &d->driver;
    ptxgen_cu_graph graph = NULL;
    ptxgen_cu_graph_exec exec = NULL;
    struct events events = {NULL, NULL};
    *timing = (struct timing){.replays = replays, .launches = launches};
    ptxgen_status status = launch(state, 0, err); /* may load code, which capturing forbids */
    if (status == PTXGEN_OK)
        status = device_wait(d, err);
    if (status == PTXGEN_OK)
        status = capture(d, launch, state, copies, launches, &graph, err);
    if (status == PTXGEN_OK)
        status = instantiate(d, graph, &exec, err);
    if (status == PTXGEN_OK)
        status = create_events(d, &events, err);
    double started = now_seconds();
    if (status == PTXGEN_OK)
        status = replay_all(d, exec, &events, timing, err);
    rest(d, now_seconds() - started);
    destroy_events(d, &events);
    if (exec)
        driver->graph_exec_destroy(exec);
    if (graph)
        driver->graph_destroy(graph);
    return status;
}

/* ---- plain launches ---- */

ptxgen_status time_launches(struct device *d, bench_launch *launch, void *state, int times,
                            double *seconds, ptxgen_error *err)
{
    struct events events;
    ptxgen_status status = create_events(d, &events, err);
    if (status == PTXGEN_OK)
        status = between_events(d, launch, state, times, &events, seconds, err);
    destroy_events(d, &events);
    return status;
}

/* ---- memory ---- */

uint32_t bench_copies(const struct device *device, uint64_t weight_bytes)
{
    uint64_t wanted = device->emulated ? 0 : 4 * (uint64_t)device->facts.l2_bytes;
    uint64_t copies = weight_bytes ? wanted / weight_bytes + 1 : 0; /* 0: there are no weights */
    return copies < 2 ? 2 : (uint32_t)copies;
}

/* Copies the first `done` bytes at `address` over the rest of `bytes`. */
static ptxgen_status repeat_memory(struct device *d, ptxgen_cu_deviceptr address, size_t done,
                                   size_t bytes, ptxgen_error *err)
{
    ptxgen_cu_result result = PTXGEN_CUDA_SUCCESS;
    while (result == PTXGEN_CUDA_SUCCESS && done < bytes) {
        size_t count = done < bytes - done ? done : bytes - done;
        result = d->driver.memcpy_dtod(address + done, address, count);
        done += count;
    }
    if (result == PTXGEN_CUDA_SUCCESS)
        result = d->driver.ctx_synchronize();
    return device_check(d, result, "filling device memory", err);
}

/* Memory that bench_free frees; none for 0 bytes. */
static ptxgen_status allocate(struct bench_memory *m, const char *what, size_t bytes,
                              uint64_t *address, ptxgen_error *err)
{
    ptxgen_driver *driver = &m->device->driver;
    ptxgen_cu_deviceptr memory = 0;
    ptxgen_cu_result result = bytes ? driver->mem_alloc(&memory, bytes) : PTXGEN_CUDA_SUCCESS;
    *address = memory;
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err, "allocating %zu bytes for %s", bytes, what);
    if (memory)
        m->items[m->count++] = memory;
    return PTXGEN_OK;
}

ptxgen_status bench_copied_memory(struct bench_memory *m, const char *what, const void *host,
                                  size_t piece, size_t bytes, uint64_t *address, ptxgen_error *err)
{
    ptxgen_status status = allocate(m, what, bytes, address, err);
    if (status == PTXGEN_OK)
        status = device_check(m->device, m->device->driver.memcpy_htod(*address, host, piece), what,
                              err);
    return status == PTXGEN_OK ? repeat_memory(m->device, *address, piece, bytes, err) : status;
}

enum { NORMAL_NUMBERS = 4096 };

/*
 * Normally distributed numbers in a type of elements, or of codes (a negative type): a row of
 * weights that is quantised to them.
 */
static ptxgen_status make_numbers(int type, struct random *r, void *numbers, ptxgen_error *err)
{
    float values[NORMAL_NUMBERS], scale;
    for (size_t i = 0; i < NORMAL_NUMBERS; i++)
        values[i] = (float)random_normal(r);
    if (type >= 0) {
        for (size_t i = 0; i < NORMAL_NUMBERS; i++)
            typed_store(type, numbers, i, (double)values[i]);
        return PTXGEN_OK;
    }
    const ptxgen_w8a8_weights row = {.n = 1,
                                     .k = NORMAL_NUMBERS,
                                     .type = PTXGEN_F32,
                                     .w = values,
                                     .codes = type == ELEMENT_E4M3   ? PTXGEN_W8A8_E4M3
                                              : type == ELEMENT_E5M2 ? PTXGEN_W8A8_E5M2
                                                                     : PTXGEN_W8A8_S8};
    return ptxgen_w8a8_quantise(&row, NORMAL_NUMBERS, numbers, PTXGEN_F32, &scale, err);
}

/* Arrays of different sizes have different numbers. */
static ptxgen_status fill_piece(int type, void *to, size_t bytes, uint64_t seed, ptxgen_error *err)
{
    struct random r = random_start(seed);
    if (type == ELEMENT_BYTES || type == ELEMENT_S32) {
        random_fill(&r, to, bytes);
        return PTXGEN_OK;
    }
    uint64_t numbers[NORMAL_NUMBERS];
    ptxgen_status status = make_numbers(type, &r, numbers, err);
    const size_t element = typed_bytes(type);
    for (size_t i = 0; status == PTXGEN_OK && i < bytes / element; i++) {
        const size_t which = random_bits(&r) % NORMAL_NUMBERS;
        memcpy((char *)to + i * element, (char *)numbers + which * element, element);
    }
    return status;
}

ptxgen_status bench_random_memory(struct bench_memory *m, const char *what, int type, size_t bytes,
                                  uint64_t *address, ptxgen_error *err)
{
    enum { PIECE = 32 << 20 };
    size_t piece = bytes < PIECE ? bytes : PIECE;
    void *host = malloc(piece ? piece : 1);
    if (!host)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %zu bytes of %s", piece,
                           what);
    ptxgen_status status = fill_piece(type, host, piece, bytes, err);
    if (status == PTXGEN_OK)
        status = bench_copied_memory(m, what, host, piece, bytes, address, err);
    free(host);
    return status;
}

ptxgen_status bench_zeroed_memory(struct bench_memory *m, const char *what, size_t bytes,
                                  uint64_t *address, ptxgen_error *err)
{
    ptxgen_driver *driver = &m->device->driver;
    ptxgen_status status = allocate(m, what, bytes, address, err);
    if (status != PTXGEN_OK || !bytes)
        return status;
    ptxgen_cu_result result = driver->memset_d8(*address, 0, bytes);
    if (result == PTXGEN_CUDA_SUCCESS)
        result = driver->ctx_synchronize(); /* launches are on a stream that would not wait */
    return device_check(m->device, result, what, err);
}

void bench_free(struct bench_memory *m)
{
    while (m->count)
        m->device->driver.mem_free(m->items[--m->count]);
}
