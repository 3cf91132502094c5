/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulator's driver with streams as a GPU has them. Work that is put on a stream is done when
 * that stream, or the whole context, is waited for, and not before; streams do not wait for the
 * default stream, nor it for them. Copies without a stream, to the device and on it, are work of
 * the default stream. A handle that is unknown, or a launch, an event or a capture on the default
 * stream, is refused, and so is what is left at the program's end: it then exits with code 99.
 *
 * The clock is of launches: each takes a millisecond.
 *
 * The linker puts the two __wrap_ functions in the place of those that they wrap. --device gpu is
 * this driver too, and the command takes it for a card.
 */
#include <ptxgen/emulator.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void __real_ptxgen_emulator_driver(ptxgen_driver *driver);
void __wrap_ptxgen_emulator_driver(ptxgen_driver *driver);
ptxgen_status __wrap_ptxgen_driver_open(ptxgen_driver *driver, const char *path, ptxgen_error *err);

enum { BAD_EXIT = 99, MOST = 4096 };

static ptxgen_driver emulator;
static bool bad, begun;

static void complain(const char *format, ...) PTXGEN_PRINTF(1, 2);
static void complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("deferred driver: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    bad = true;
}

/* ---- handles ---- */

enum what { STREAM, EVENT, GRAPH, EXEC, MODULE, WHATS };
static const char *const whats[WHATS] = {"stream", "event", "graph", "executable graph", "module"};

/* A live handle; of streams also what waits on them, of graphs how many kernels they have. */
struct handle {
    enum what what;
    const void *value;
    struct item *first, **end; /* of a stream */
    bool capturing;
    unsigned kernels;
    bool recorded; /* of an event: it has been reached */
    double clock;
};
static struct handle handles[MOST];
static unsigned handle_count;
static long memory, contexts;

static struct handle *find(enum what what, const void *value)
{
    for (unsigned i = 0; i < handle_count; i++)
        if (handles[i].what == what && handles[i].value == value)
            return &handles[i];
    return NULL;
}

static struct handle *known(enum what what, const void *value, const char *call)
{
    struct handle *h = find(what, value);
    if (!h)
        complain("%s of no live %s", call, whats[what]);
    return h;
}

static void add(enum what what, const void *value)
{
    if (handle_count == MOST)
        abort();
    handles[handle_count++] = (struct handle){.what = what, .value = value};
}

static void drop(struct handle *h)
{
    *h = handles[--handle_count];
}

/* ---- what waits ---- */

enum kind { RUN, RECORD, TO_DEVICE, ON_DEVICE, FILL };
struct item {
    enum kind kind;
    ptxgen_cu_graph graph; /* of a run: to be destroyed with exec when it is this item's own */
    ptxgen_cu_graph_exec exec;
    ptxgen_cu_event event;
    ptxgen_cu_deviceptr to, from;
    void *bytes;
    size_t count;
    unsigned value, kernels;
    struct item *next;
};

static struct item *first_default, **end_default = &first_default;
static double now; /* milliseconds */

static struct item *put(ptxgen_cu_stream stream, struct item item)
{
    struct handle *h = stream ? find(STREAM, stream) : NULL;
    struct item *copy = malloc(sizeof *copy);
    if (!copy)
        abort();
    *copy = item;
    copy->next = NULL;
    struct item **end = stream ? (h->first ? h->end : &h->first) : end_default;
    *end = copy;
    if (stream)
        h->end = &copy->next;
    else
        end_default = &copy->next;
    return copy;
}

static ptxgen_cu_result finish(struct item *i, ptxgen_cu_stream stream)
{
    ptxgen_cu_result result = PTXGEN_CUDA_SUCCESS;
    struct handle *event;
    switch (i->kind) {
    case RUN:
        result = emulator.graph_launch(i->exec, stream);
        now += i->kernels;
        break;
    case RECORD:
        event = find(EVENT, i->event);
        if (event) {
            event->recorded = true;
            event->clock = now;
        }
        break;
    case TO_DEVICE: result = emulator.memcpy_htod(i->to, i->bytes, i->count); break;
    case ON_DEVICE: result = emulator.memcpy_dtod(i->to, i->from, i->count); break;
    case FILL: result = emulator.memset_d8(i->to, (unsigned char)i->value, i->count); break;
    }
    if (i->graph) {
        emulator.graph_exec_destroy(i->exec);
        emulator.graph_destroy(i->graph);
    }
    free(i->bytes);
    free(i);
    return result;
}

static ptxgen_cu_result finish_all(struct item **first, ptxgen_cu_stream stream)
{
    ptxgen_cu_result result = PTXGEN_CUDA_SUCCESS;
    while (*first) {
        struct item *i = *first;
        *first = i->next;
        ptxgen_cu_result got = finish(i, stream);
        result = result == PTXGEN_CUDA_SUCCESS ? got : result;
    }
    return result;
}

static ptxgen_cu_result finish_default(void)
{
    ptxgen_cu_result result = finish_all(&first_default, NULL);
    end_default = &first_default;
    return result;
}

static ptxgen_cu_result finish_everything(void)
{
    ptxgen_cu_result result = finish_default();
    for (unsigned i = 0; i < handle_count; i++)
        if (handles[i].what == STREAM) {
            ptxgen_cu_stream stream = (ptxgen_cu_stream)(uintptr_t)handles[i].value;
            ptxgen_cu_result got = finish_all(&handles[i].first, stream);
            result = result == PTXGEN_CUDA_SUCCESS ? got : result;
        }
    return result;
}

/* ---- streams ---- */

static ptxgen_cu_result stream_create(ptxgen_cu_stream *stream, unsigned int flags)
{
    ptxgen_cu_result result = emulator.stream_create(stream, flags);
    if (result == PTXGEN_CUDA_SUCCESS)
        add(STREAM, *stream);
    return result;
}

static ptxgen_cu_result stream_destroy(ptxgen_cu_stream stream)
{
    struct handle *h = known(STREAM, stream, "cuStreamDestroy");
    if (!h)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    finish_all(&h->first, stream);
    drop(h);
    return emulator.stream_destroy(stream);
}

static ptxgen_cu_result stream_synchronize(ptxgen_cu_stream stream)
{
    if (!stream) {
        ptxgen_cu_result result = finish_default();
        return result == PTXGEN_CUDA_SUCCESS ? emulator.stream_synchronize(NULL) : result;
    }
    struct handle *h = known(STREAM, stream, "cuStreamSynchronize");
    if (!h)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    ptxgen_cu_result result = finish_all(&h->first, stream);
    return result == PTXGEN_CUDA_SUCCESS ? emulator.stream_synchronize(stream) : result;
}

static ptxgen_cu_result ctx_synchronize(void)
{
    ptxgen_cu_result result = finish_everything();
    return result == PTXGEN_CUDA_SUCCESS ? emulator.ctx_synchronize() : result;
}

static ptxgen_cu_result stream_begin_capture(ptxgen_cu_stream stream, ptxgen_cu_capture_mode mode)
{
    struct handle *h = known(STREAM, stream, "cuStreamBeginCapture");
    if (!h)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    h->capturing = true;
    h->kernels = 0;
    return emulator.stream_begin_capture(stream, mode);
}

static ptxgen_cu_result stream_end_capture(ptxgen_cu_stream stream, ptxgen_cu_graph *graph)
{
    struct handle *h = known(STREAM, stream, "cuStreamEndCapture");
    ptxgen_cu_result result = emulator.stream_end_capture(stream, graph);
    if (!h || result != PTXGEN_CUDA_SUCCESS)
        return result;
    unsigned kernels = h->kernels;
    h->capturing = false;
    add(GRAPH, *graph);
    find(GRAPH, *graph)->kernels = kernels;
    return result;
}

/* ---- launches ---- */

/* The launch that is called between these two is put on the stream. */
static ptxgen_cu_result begin_work(ptxgen_cu_stream stream, const char *call)
{
    struct handle *h = known(STREAM, stream, call);
    if (!h)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    if (h->capturing)
        return PTXGEN_CUDA_SUCCESS;
    return emulator.stream_begin_capture(stream, PTXGEN_CU_STREAM_CAPTURE_MODE_RELAXED);
}

static ptxgen_cu_result end_work(ptxgen_cu_stream stream, ptxgen_cu_result done)
{
    struct handle *h = find(STREAM, stream);
    struct item item = {.kind = RUN, .kernels = 1};
    if (h->capturing) {
        h->kernels++;
        return done;
    }
    ptxgen_cu_result result = emulator.stream_end_capture(stream, &item.graph);
    if (done == PTXGEN_CUDA_SUCCESS && result == PTXGEN_CUDA_SUCCESS)
        done = emulator.graph_instantiate(&item.exec, item.graph, 0);
    if (done == PTXGEN_CUDA_SUCCESS)
        put(stream, item);
    else if (result == PTXGEN_CUDA_SUCCESS)
        emulator.graph_destroy(item.graph);
    return done;
}

static ptxgen_cu_result launch_kernel(ptxgen_cu_function function, unsigned int grid_x,
                                      unsigned int grid_y, unsigned int grid_z,
                                      unsigned int block_x, unsigned int block_y,
                                      unsigned int block_z, unsigned int shared_bytes,
                                      ptxgen_cu_stream stream, void **parameters, void **extra)
{
    ptxgen_cu_result result = begin_work(stream, "cuLaunchKernel");
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    result = emulator.launch_kernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                    shared_bytes, stream, parameters, extra);
    return end_work(stream, result);
}

static ptxgen_cu_result launch_kernel_ex(const ptxgen_cu_launch_config *config,
                                         ptxgen_cu_function function, void **parameters,
                                         void **extra)
{
    ptxgen_cu_result result = begin_work(config->stream, "cuLaunchKernelEx");
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    result = emulator.launch_kernel_ex(config, function, parameters, extra);
    return end_work(config->stream, result);
}

/* ---- graphs ---- */

static ptxgen_cu_result graph_instantiate(ptxgen_cu_graph_exec *exec, ptxgen_cu_graph graph,
                                          unsigned long long flags)
{
    struct handle *h = known(GRAPH, graph, "cuGraphInstantiate");
    if (!h)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    unsigned kernels = h->kernels;
    ptxgen_cu_result result = emulator.graph_instantiate(exec, graph, flags);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    add(EXEC, *exec);
    find(EXEC, *exec)->kernels = kernels;
    return result;
}

static ptxgen_cu_result graph_launch(ptxgen_cu_graph_exec exec, ptxgen_cu_stream stream)
{
    struct handle *h = known(EXEC, exec, "cuGraphLaunch");
    if (!h || !known(STREAM, stream, "cuGraphLaunch"))
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    put(stream, (struct item){.kind = RUN, .exec = exec, .kernels = h->kernels});
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result graph_exec_destroy(ptxgen_cu_graph_exec exec)
{
    struct handle *h = known(EXEC, exec, "cuGraphExecDestroy");
    if (!h)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    drop(h);
    finish_everything();
    return emulator.graph_exec_destroy(exec);
}

static ptxgen_cu_result graph_destroy(ptxgen_cu_graph graph)
{
    struct handle *h = known(GRAPH, graph, "cuGraphDestroy");
    if (!h)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    drop(h);
    return emulator.graph_destroy(graph);
}

/* ---- events ---- */

static ptxgen_cu_result event_create(ptxgen_cu_event *event, unsigned int flags)
{
    ptxgen_cu_result result = emulator.event_create(event, flags);
    if (result == PTXGEN_CUDA_SUCCESS)
        add(EVENT, *event);
    return result;
}

static ptxgen_cu_result event_destroy(ptxgen_cu_event event)
{
    struct handle *h = known(EVENT, event, "cuEventDestroy");
    if (!h)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    drop(h);
    return emulator.event_destroy(event);
}

static ptxgen_cu_result event_record(ptxgen_cu_event event, ptxgen_cu_stream stream)
{
    struct handle *h = known(EVENT, event, "cuEventRecord");
    if (!h || !known(STREAM, stream, "cuEventRecord"))
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    h->recorded = false;
    put(stream, (struct item){.kind = RECORD, .event = event});
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result event_elapsed_time(float *milliseconds, ptxgen_cu_event start,
                                           ptxgen_cu_event end)
{
    struct handle *a = known(EVENT, start, "cuEventElapsedTime");
    struct handle *b = known(EVENT, end, "cuEventElapsedTime");
    if (!a || !b)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    if (!a->recorded || !b->recorded)
        return PTXGEN_CUDA_ERROR_NOT_READY;
    *milliseconds = (float)(b->clock - a->clock);
    return PTXGEN_CUDA_SUCCESS;
}

/* ---- memory, modules, contexts ---- */

static ptxgen_cu_result mem_alloc(ptxgen_cu_deviceptr *address, size_t bytes)
{
    ptxgen_cu_result result = emulator.mem_alloc(address, bytes);
    memory += result == PTXGEN_CUDA_SUCCESS;
    return result;
}

static ptxgen_cu_result mem_free(ptxgen_cu_deviceptr address)
{
    finish_everything();
    ptxgen_cu_result result = emulator.mem_free(address);
    memory -= result == PTXGEN_CUDA_SUCCESS && address;
    if (result != PTXGEN_CUDA_SUCCESS)
        complain("cuMemFree of what was not allocated");
    return result;
}

static ptxgen_cu_result memcpy_htod(ptxgen_cu_deviceptr to, const void *from, size_t bytes)
{
    struct item item = {.kind = TO_DEVICE, .to = to, .count = bytes, .bytes = malloc(bytes + 1)};
    if (!item.bytes)
        abort();
    memcpy(item.bytes, from, bytes);
    put(NULL, item);
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result memcpy_dtod(ptxgen_cu_deviceptr to, ptxgen_cu_deviceptr from, size_t bytes)
{
    put(NULL, (struct item){.kind = ON_DEVICE, .to = to, .from = from, .count = bytes});
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result memcpy_dtoh(void *to, ptxgen_cu_deviceptr from, size_t bytes)
{
    ptxgen_cu_result result = finish_default();
    return result == PTXGEN_CUDA_SUCCESS ? emulator.memcpy_dtoh(to, from, bytes) : result;
}

static ptxgen_cu_result memset_d8(ptxgen_cu_deviceptr to, unsigned char value, size_t count)
{
    put(NULL, (struct item){.kind = FILL, .to = to, .value = value, .count = count});
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result module_load_data_ex(ptxgen_cu_module *module, const void *image,
                                            unsigned int option_count,
                                            ptxgen_cu_jit_option *options, void **option_values)
{
    ptxgen_cu_result result =
        emulator.module_load_data_ex(module, image, option_count, options, option_values);
    if (result == PTXGEN_CUDA_SUCCESS)
        add(MODULE, *module);
    return result;
}

static ptxgen_cu_result module_load_data(ptxgen_cu_module *module, const void *image)
{
    return module_load_data_ex(module, image, 0, NULL, NULL);
}

static ptxgen_cu_result module_unload(ptxgen_cu_module module)
{
    struct handle *h = known(MODULE, module, "cuModuleUnload");
    if (!h)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    drop(h);
    finish_everything();
    return emulator.module_unload(module);
}

static ptxgen_cu_result primary_retain(ptxgen_cu_context *context, ptxgen_cu_device device)
{
    ptxgen_cu_result result = emulator.device_primary_ctx_retain(context, device);
    contexts += result == PTXGEN_CUDA_SUCCESS;
    return result;
}

static ptxgen_cu_result primary_release(ptxgen_cu_device device)
{
    ptxgen_cu_result result = emulator.device_primary_ctx_release(device);
    contexts -= result == PTXGEN_CUDA_SUCCESS;
    if (result != PTXGEN_CUDA_SUCCESS)
        complain("cuDevicePrimaryCtxRelease of what nobody holds");
    return result;
}

/* As little memory as the smallest read ceiling of 16 multiprocessors takes, and no L2 to pass by:
 * a bench on --device gpu is short. */
static ptxgen_cu_result mem_get_info(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = *total_bytes = 4 << 20;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result device_get_attribute(int *value, ptxgen_cu_device_attribute attribute,
                                             ptxgen_cu_device device)
{
    ptxgen_cu_result result = emulator.device_get_attribute(value, attribute, device);
    if (attribute == PTXGEN_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
        *value = 0;
    return result;
}

/* ---- the table ---- */

static void look_for_what_is_left(void)
{
    for (unsigned i = 0; i < handle_count; i++)
        complain("a %s is left", whats[handles[i].what]);
    if (memory)
        complain("%ld pieces of memory are left", memory);
    if (contexts)
        complain("the context is held %ld times", contexts);
    fflush(NULL);
    if (bad)
        _exit(BAD_EXIT);
}

void __wrap_ptxgen_emulator_driver(ptxgen_driver *driver)
{
    __real_ptxgen_emulator_driver(&emulator);
    if (!begun && atexit(look_for_what_is_left))
        abort();
    begun = true;
    *driver = emulator;
    driver->device_primary_ctx_retain = primary_retain;
    driver->device_primary_ctx_release = primary_release;
    driver->ctx_synchronize = ctx_synchronize;
    driver->module_load_data = module_load_data;
    driver->module_load_data_ex = module_load_data_ex;
    driver->module_unload = module_unload;
    driver->launch_kernel = launch_kernel;
    driver->launch_kernel_ex = launch_kernel_ex;
    driver->mem_alloc = mem_alloc;
    driver->mem_free = mem_free;
    driver->memcpy_htod = memcpy_htod;
    driver->memcpy_dtoh = memcpy_dtoh;
    driver->memcpy_dtod = memcpy_dtod;
    driver->memset_d8 = memset_d8;
    driver->stream_create = stream_create;
    driver->stream_destroy = stream_destroy;
    driver->stream_synchronize = stream_synchronize;
    driver->stream_begin_capture = stream_begin_capture;
    driver->stream_end_capture = stream_end_capture;
    driver->event_create = event_create;
    driver->event_destroy = event_destroy;
    driver->event_record = event_record;
    driver->event_elapsed_time = event_elapsed_time;
    driver->graph_instantiate = graph_instantiate;
    driver->graph_launch = graph_launch;
    driver->graph_exec_destroy = graph_exec_destroy;
    driver->graph_destroy = graph_destroy;
}

ptxgen_status __wrap_ptxgen_driver_open(ptxgen_driver *driver, const char *path, ptxgen_error *err)
{
    (void)path;
    __wrap_ptxgen_emulator_driver(driver);
    driver->mem_get_info = mem_get_info;
    driver->device_get_attribute = device_get_attribute;
    return ptxgen_driver_start(driver, err);
}
