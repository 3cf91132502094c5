/* SPDX-License-Identifier: Apache-2.0 */
#include "replays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a stream works with. */
struct lane {
    ptxgen_cu_stream stream;
    ptxgen_cu_deviceptr y, workspace;
    ptxgen_cu_graph graph;
    ptxgen_cu_graph_exec exec;
    unsigned char *got;
};

void must_do(ptxgen_status status, const char *what, const ptxgen_error *err)
{
    if (status == PTXGEN_OK)
        return;
    fprintf(stderr, "%s failed: %s\n", what, err->message);
    exit(1);
}

void must(ptxgen_cu_result result, const char *what)
{
    if (result == PTXGEN_CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s failed: %d\n", what, (int)result);
    exit(1);
}

static unsigned char *host_bytes(size_t bytes)
{
    unsigned char *host = malloc(bytes);
    must(host ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_OUT_OF_MEMORY, "malloc");
    return host;
}

static ptxgen_cu_deviceptr allocate(const ptxgen_driver *d, size_t bytes, unsigned char fill)
{
    size_t some = bytes ? bytes : 1; /* there is no allocation of nothing */
    ptxgen_cu_deviceptr address;
    must(d->mem_alloc(&address, some), "cuMemAlloc");
    must(d->memset_d8(address, fill, some), "cuMemsetD8");
    return address;
}

static void open_lane(const ptxgen_driver *d, struct lane *l, const struct replayed *what)
{
    ptxgen_error err;
    l->y = allocate(d, what->y_bytes, REPLAY_POISON);
    l->workspace = allocate(d, what->workspace_bytes, what->workspace_fill);
    l->got = host_bytes(what->y_bytes);
    must(d->stream_create(&l->stream, PTXGEN_CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(d->stream_begin_capture(l->stream, PTXGEN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
         "capturing");
    must_do(what->launch(what->problem, l->y, l->workspace, l->stream, &err), "a launch", &err);
    must(d->stream_end_capture(l->stream, &l->graph), "capturing");
    must(d->graph_instantiate(&l->exec, l->graph, 0), "cuGraphInstantiate");
    must(d->ctx_synchronize(),
         "cuCtxSynchronize"); /* the streams would not wait for what was set */
}

static void close_lane(const ptxgen_driver *d, struct lane *l)
{
    d->graph_exec_destroy(l->exec);
    d->graph_destroy(l->graph);
    d->stream_destroy(l->stream);
    d->mem_free(l->y);
    d->mem_free(l->workspace);
    free(l->got);
}

/* Enqueues a replay over poison, and the copy of what it leaves. */
static void replay(const ptxgen_driver *d, const struct lane *l, size_t y_bytes)
{
    must(d->memset_d8_async(l->y, REPLAY_POISON, y_bytes, l->stream), "cuMemsetD8Async");
    must(d->graph_launch(l->exec, l->stream), "cuGraphLaunch");
    must(d->memcpy_dtoh_async(l->got, l->y, y_bytes, l->stream), "cuMemcpyDtoHAsync");
}

unsigned replays_that_differ(const ptxgen_driver *d, const struct replayed *what, unsigned replays)
{
    struct lane lanes[REPLAY_STREAMS] = {{.stream = NULL}};
    unsigned char *wanted = host_bytes(what->y_bytes);
    for (int i = 0; i < REPLAY_STREAMS; i++)
        open_lane(d, &lanes[i], what);
    replay(d, &lanes[0], what->y_bytes);
    must(d->stream_synchronize(lanes[0].stream), "the first launch");
    memcpy(wanted, lanes[0].got, what->y_bytes);
    unsigned different = !what->is_right(what->problem, wanted);
    for (unsigned r = 0; r < replays; r++) {
        for (int i = 0; i < REPLAY_STREAMS; i++)
            replay(d, &lanes[i], what->y_bytes);
        for (int i = 0; i < REPLAY_STREAMS; i++) {
            must(d->stream_synchronize(lanes[i].stream), "a replay");
            different += memcmp(lanes[i].got, wanted, what->y_bytes) != 0;
        }
    }
    for (int i = 0; i < REPLAY_STREAMS; i++)
        close_lane(d, &lanes[i]);
    free(wanted);
    return different;
}
