/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and graphs. */
#include "src/emulator/driver_state.h"

#include <stdlib.h>
#include <string.h>

ptxgen_cu_result emu_stream_of(ptxgen_cu_stream handle, struct CUstream_st **stream)
{
    struct CUctx_st *context;
    ptxgen_cu_result result = emu_bound(&context);
    *stream = NULL;
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    bool implicit = handle == NULL || handle == PTXGEN_CU_STREAM_LEGACY ||
                    handle == PTXGEN_CU_STREAM_PER_THREAD;
    *stream = implicit ? context->default_stream : handle;
    return emu_context_of((*stream)->home) == context ? context->poison
                                                      : PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
}

/* ---- graphs ---- */

static void free_ops(struct CUgraph_st *graph)
{
    for (size_t i = 0; i < graph->count; i++)
        free(graph->ops[i].parameters);
    free(graph->ops);
}

static bool append(struct CUgraph_st *graph, const struct emu_op *op)
{
    if (graph->count == graph->capacity) {
        size_t wider = graph->capacity ? graph->capacity * 2 : 16;
        struct emu_op *ops = realloc(graph->ops, wider * sizeof *ops);
        if (!ops)
            return false;
        graph->ops = ops;
        graph->capacity = wider;
    }
    graph->ops[graph->count++] = *op;
    return true;
}

ptxgen_cu_result emu_enqueue(ptxgen_cu_stream handle, struct emu_op *op)
{
    struct CUstream_st *stream;
    ptxgen_cu_result result = emu_stream_of(handle, &stream);
    if (result == PTXGEN_CUDA_SUCCESS && stream->capture) {
        if (append(stream->capture, op))
            return PTXGEN_CUDA_SUCCESS;
        result = PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    } else if (result == PTXGEN_CUDA_SUCCESS) {
        result = emu_run_op(stream->home.context, stream, op);
    }
    free(op->parameters);
    op->parameters = NULL;
    return result;
}

ptxgen_cu_result emu_cu_graph_instantiate(ptxgen_cu_graph_exec *exec, ptxgen_cu_graph graph,
                                          unsigned long long flags)
{
    (void)flags;
    if (!exec || !graph)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *exec = calloc(1, sizeof **exec);
    if (!*exec)
        return PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < graph->count; i++) {
        struct emu_op op = graph->ops[i];
        if (op.parameters) {
            size_t bytes = op.function->program->parameter_bytes + 16u;
            op.parameters = malloc(bytes);
            if (op.parameters)
                memcpy(op.parameters, graph->ops[i].parameters, bytes);
        }
        if ((graph->ops[i].parameters && !op.parameters) || !append(&(*exec)->graph, &op)) {
            free(op.parameters);
            emu_cu_graph_exec_destroy(*exec);
            *exec = NULL;
            return PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_graph_launch(ptxgen_cu_graph_exec exec, ptxgen_cu_stream handle)
{
    struct CUstream_st *stream;
    ptxgen_cu_result result = emu_stream_of(handle, &stream);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (!exec)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture)
        return PTXGEN_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    for (size_t i = 0; i < exec->graph.count && result == PTXGEN_CUDA_SUCCESS; i++)
        result = emu_run_op(stream->home.context, stream, &exec->graph.ops[i]);
    return result;
}

ptxgen_cu_result emu_cu_graph_exec_destroy(ptxgen_cu_graph_exec exec)
{
    if (!exec)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    free_ops(&exec->graph);
    free(exec);
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_graph_destroy(ptxgen_cu_graph graph)
{
    if (!graph)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    free_ops(graph);
    free(graph);
    return PTXGEN_CUDA_SUCCESS;
}

/* Node handles are opaque; they point at the graph's operations. */
ptxgen_cu_result emu_cu_graph_get_nodes(ptxgen_cu_graph graph, ptxgen_cu_graph_node *nodes,
                                        size_t *count)
{
    if (!graph || !count)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; nodes && i < *count; i++)
        nodes[i] = i < graph->count ? (ptxgen_cu_graph_node)(void *)&graph->ops[i] : NULL;
    if (!nodes || *count > graph->count)
        *count = graph->count;
    return PTXGEN_CUDA_SUCCESS;
}

/* ---- streams ---- */

ptxgen_cu_result emu_cu_stream_create(ptxgen_cu_stream *stream, unsigned int flags)
{
    struct CUctx_st *context;
    ptxgen_cu_result result = emu_current(&context);
    (void)flags;
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (!stream)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *stream = calloc(1, sizeof **stream);
    if (!*stream)
        return PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    (*stream)->home = emu_ref_of(context);
    return PTXGEN_CUDA_SUCCESS;
}

static void end_capture(struct CUstream_st *stream)
{
    struct CUctx_st *context = emu_context_of(stream->home);
    if (!context || stream->mode == PTXGEN_CU_STREAM_CAPTURE_MODE_RELAXED)
        return;
    pthread_mutex_lock(&context->lock);
    context->capturing--;
    pthread_mutex_unlock(&context->lock);
}

ptxgen_cu_result emu_cu_stream_destroy(ptxgen_cu_stream stream)
{
    if (!stream || stream == PTXGEN_CU_STREAM_LEGACY || stream == PTXGEN_CU_STREAM_PER_THREAD)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) {
        end_capture(stream);
        emu_cu_graph_destroy(stream->capture);
    }
    struct CUctx_st *context = emu_context_of(stream->home);
    if (context)
        emu_memory_settle(&context->memory);
    free(stream);
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result stream_wait(ptxgen_cu_stream handle)
{
    struct CUstream_st *stream;
    ptxgen_cu_result result = emu_stream_of(handle, &stream);
    if (result == PTXGEN_CUDA_SUCCESS && stream->capture)
        result = PTXGEN_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (result == PTXGEN_CUDA_SUCCESS)
        emu_memory_settle(&stream->home.context->memory);
    return result;
}

ptxgen_cu_result emu_cu_stream_synchronize(ptxgen_cu_stream stream)
{
    return stream_wait(stream);
}

ptxgen_cu_result emu_cu_stream_query(ptxgen_cu_stream stream)
{
    return stream_wait(stream);
}

ptxgen_cu_result emu_cu_stream_wait_event(ptxgen_cu_stream handle, ptxgen_cu_event event,
                                          unsigned int flags)
{
    struct CUstream_st *stream;
    (void)flags;
    if (!event)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    ptxgen_cu_result result = emu_stream_of(handle, &stream);
    if (result == PTXGEN_CUDA_SUCCESS && !stream->capture)
        emu_memory_settle(&stream->home.context->memory);
    return result;
}

ptxgen_cu_result emu_cu_stream_get_ctx(ptxgen_cu_stream handle, ptxgen_cu_context *context)
{
    struct CUstream_st *stream;
    ptxgen_cu_result result = emu_stream_of(handle, &stream);
    if (!context)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    if (result == PTXGEN_CUDA_ERROR_INVALID_CONTEXT && handle > PTXGEN_CU_STREAM_PER_THREAD) {
        *context = emu_context_of(handle->home);
        return *context ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    if (result == PTXGEN_CUDA_SUCCESS)
        *context = stream->home.context;
    return result;
}

ptxgen_cu_result emu_cu_stream_begin_capture(ptxgen_cu_stream handle, ptxgen_cu_capture_mode mode)
{
    struct CUstream_st *stream;
    ptxgen_cu_result result = emu_stream_of(handle, &stream);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (handle == NULL || handle == PTXGEN_CU_STREAM_LEGACY)
        return PTXGEN_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return PTXGEN_CUDA_ERROR_ILLEGAL_STATE;
    stream->capture = calloc(1, sizeof *stream->capture);
    if (!stream->capture)
        return PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    stream->mode = mode;
    if (mode != PTXGEN_CU_STREAM_CAPTURE_MODE_RELAXED) {
        struct CUctx_st *context = stream->home.context;
        pthread_mutex_lock(&context->lock);
        context->capturing++;
        pthread_mutex_unlock(&context->lock);
    }
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_stream_end_capture(ptxgen_cu_stream handle, ptxgen_cu_graph *graph)
{
    struct CUstream_st *stream;
    ptxgen_cu_result result = emu_stream_of(handle, &stream);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (!graph)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    if (!stream->capture)
        return PTXGEN_CUDA_ERROR_ILLEGAL_STATE;
    end_capture(stream);
    *graph = stream->capture;
    stream->capture = NULL;
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_stream_is_capturing(ptxgen_cu_stream handle,
                                            ptxgen_cu_capture_status *status)
{
    struct CUstream_st *stream;
    ptxgen_cu_result result = emu_stream_of(handle, &stream);
    if (!status)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    if (result == PTXGEN_CUDA_SUCCESS)
        *status = stream->capture ? PTXGEN_CU_STREAM_CAPTURE_STATUS_ACTIVE
                                  : PTXGEN_CU_STREAM_CAPTURE_STATUS_NONE;
    return result;
}

/* ---- events ---- */

ptxgen_cu_result emu_cu_event_create(ptxgen_cu_event *event, unsigned int flags)
{
    struct CUctx_st *context;
    ptxgen_cu_result result = emu_current(&context);
    (void)flags;
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (!event)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *event = calloc(1, sizeof **event);
    return *event ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
}

ptxgen_cu_result emu_cu_event_destroy(ptxgen_cu_event event)
{
    if (!event)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    free(event);
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_event_record(ptxgen_cu_event event, ptxgen_cu_stream handle)
{
    struct CUstream_st *stream;
    ptxgen_cu_result result = emu_stream_of(handle, &stream);
    if (!event)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    if (result == PTXGEN_CUDA_SUCCESS && !stream->capture) {
        event->recorded = true;
        event->time = emu_now();
        emu_memory_settle(&stream->home.context->memory);
    }
    return result;
}

static ptxgen_cu_result event_wait(ptxgen_cu_event event)
{
    struct CUctx_st *context;
    if (!event)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    ptxgen_cu_result result = emu_current(&context);
    if (result == PTXGEN_CUDA_SUCCESS)
        emu_memory_settle(&context->memory);
    return result;
}

ptxgen_cu_result emu_cu_event_synchronize(ptxgen_cu_event event)
{
    return event_wait(event);
}

ptxgen_cu_result emu_cu_event_query(ptxgen_cu_event event)
{
    return event_wait(event);
}

ptxgen_cu_result emu_cu_event_elapsed_time(float *milliseconds, ptxgen_cu_event start,
                                           ptxgen_cu_event end)
{
    if (!milliseconds || !start || !end || !start->recorded || !end->recorded)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    *milliseconds = (float)((end->time - start->time) * 1e3);
    return PTXGEN_CUDA_SUCCESS;
}
