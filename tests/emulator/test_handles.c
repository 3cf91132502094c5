/* SPDX-License-Identifier: Apache-2.0 */
/* NULL for whatever a call takes, and contexts that are destroyed while something still has them.
 */
#include "bench.h"

#include <pthread.h>
#include <string.h>

static const char kernel[] = ".version 7.0\n.target sm_80\n.global .u32 g = 5;\n"
                             ".visible .entry k(.param .u32 x) { ret; }";

/* ---- NULL ---- */

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        if ((call) == PTXGEN_CUDA_SUCCESS)                                                         \
            fail_msg("%s succeeds", #call);                                                        \
    } while (0)

static void refuse_null_of_devices_and_contexts(const ptxgen_driver *d)
{
    unsigned flags;
    int active;
    REFUSED(d->get_error_name(PTXGEN_CUDA_SUCCESS, NULL));
    REFUSED(d->get_error_string(PTXGEN_CUDA_SUCCESS, NULL));
    REFUSED(d->driver_get_version(NULL));
    REFUSED(d->get_proc_address(NULL, NULL, 0, 0, NULL));
    REFUSED(d->get_proc_address("cuInit", NULL, 0, 0, NULL));
    REFUSED(d->device_get_count(NULL));
    REFUSED(d->device_get(NULL, 0));
    REFUSED(d->device_get_name(NULL, 20, 0));
    REFUSED(d->device_get_attribute(NULL, PTXGEN_CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    REFUSED(d->device_total_mem(NULL, 0));
    REFUSED(d->device_get_uuid(NULL, 0));
    REFUSED(d->device_primary_ctx_retain(NULL, 0));
    REFUSED(d->device_primary_ctx_get_state(0, NULL, &active));
    REFUSED(d->device_primary_ctx_get_state(0, &flags, NULL));
    REFUSED(d->ctx_create(NULL, 0, 0));
    REFUSED(d->ctx_destroy(NULL));
    REFUSED(d->ctx_get_current(NULL));
    REFUSED(d->ctx_push_current(NULL));
    REFUSED(d->ctx_get_device(NULL));
}

static void refuse_null_of_modules(const ptxgen_driver *d, ptxgen_cu_module module)
{
    ptxgen_cu_function function;
    ptxgen_cu_module made;
    ptxgen_cu_launch_config config = {.grid_dim_x = 1,
                                      .grid_dim_y = 1,
                                      .grid_dim_z = 1,
                                      .block_dim_x = 1,
                                      .block_dim_y = 1,
                                      .block_dim_z = 1};
    int value;
    void *pointer_at_null[] = {(void *)1, NULL, NULL}, *size_at_null[] = {(void *)2, NULL, NULL};
    REFUSED(d->module_load_data(NULL, kernel));
    REFUSED(d->module_load_data(&made, NULL));
    REFUSED(d->module_load_data_ex(&made, kernel, 1, NULL, NULL));
    REFUSED(d->module_unload(NULL));
    REFUSED(d->module_get_function(NULL, module, "k"));
    REFUSED(d->module_get_function(&function, NULL, "k"));
    REFUSED(d->module_get_function(&function, module, NULL));
    REFUSED(d->module_get_global(NULL, NULL, NULL, "g"));
    REFUSED(d->module_get_global(NULL, NULL, module, NULL));
    REFUSED(d->func_get_attribute(&value, PTXGEN_CU_FUNC_ATTRIBUTE_NUM_REGS, NULL));
    REFUSED(
        d->func_set_attribute(NULL, PTXGEN_CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 0));
    REFUSED(d->func_set_cache_config(NULL, (ptxgen_cu_function_cache)0));
    REFUSED(d->launch_kernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    REFUSED(d->launch_kernel_ex(NULL, NULL, NULL, NULL));
    REFUSED(d->launch_kernel_ex(&config, NULL, NULL, NULL));
    REFUSED(d->occupancy_max_active_blocks(&value, NULL, 32, 0));
    REFUSED(d->occupancy_max_active_blocks_with_flags(&value, NULL, 32, 0, 0));
    REFUSED(d->occupancy_max_active_clusters(&value, NULL, &config));
    assert_int_equal(d->module_get_function(&function, module, "k"), PTXGEN_CUDA_SUCCESS);
    REFUSED(d->func_get_attribute(NULL, PTXGEN_CU_FUNC_ATTRIBUTE_NUM_REGS, function));
    REFUSED(d->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    REFUSED(d->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){NULL}, NULL));
    REFUSED(d->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, pointer_at_null));
    REFUSED(d->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, size_at_null));
    REFUSED(d->occupancy_max_active_blocks(NULL, function, 32, 0));
    REFUSED(d->occupancy_max_active_clusters(NULL, function, &config));
    REFUSED(d->occupancy_max_active_clusters(&value, function, NULL));
}

static void refuse_null_of_memory(const ptxgen_driver *d, ptxgen_cu_deviceptr memory)
{
    size_t bytes;
    uint64_t dims[2] = {64, 64}, strides[1] = {64};
    uint32_t box[2] = {16, 16}, steps[2] = {1, 1};
    ptxgen_cu_tensor_map map;
    void *address = (void *)(uintptr_t)memory;
    REFUSED(d->mem_alloc(NULL, 4));
    REFUSED(d->mem_get_info(NULL, &bytes));
    REFUSED(d->mem_get_info(&bytes, NULL));
    REFUSED(d->mem_host_alloc(NULL, 4, 0));
    REFUSED(d->memcpy_htod(0, &bytes, 4));
    REFUSED(d->memcpy_htod(memory, NULL, 4));
    REFUSED(d->memcpy_dtoh(NULL, memory, 4));
    REFUSED(d->memcpy_dtoh(&bytes, 0, 4));
    REFUSED(d->memcpy_dtod(0, memory, 4));
    REFUSED(d->memcpy_dtod(memory, 0, 4));
    REFUSED(d->memcpy_htod_async(memory, NULL, 4, NULL));
    REFUSED(d->memcpy_dtoh_async(NULL, memory, 4, NULL));
    REFUSED(d->memcpy_dtod_async(memory, 0, 4, NULL));
    REFUSED(d->memset_d8(0, 0, 4));
    REFUSED(d->memset_d16(0, 0, 4));
    REFUSED(d->memset_d32(0, 0, 4));
    REFUSED(d->memset_d8_async(0, 0, 4, NULL));
    REFUSED(d->memset_d16_async(0, 0, 4, NULL));
    REFUSED(d->memset_d32_async(0, 0, 4, NULL));
    REFUSED(d->pointer_get_attribute(NULL, PTXGEN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
    REFUSED(d->pointer_get_attribute(&bytes, PTXGEN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0));
#define MAP(map, address, dims, strides, box, steps)                                               \
    d->tensor_map_encode_tiled(                                                                    \
        map, (ptxgen_cu_tensor_map_data_type)0, 2, address, dims, strides, box, steps,             \
        (ptxgen_cu_tensor_map_interleave)0, (ptxgen_cu_tensor_map_swizzle)0,                       \
        (ptxgen_cu_tensor_map_l2_promotion)0, (ptxgen_cu_tensor_map_float_oob_fill)0)
    assert_int_equal(MAP(&map, address, dims, strides, box, steps), PTXGEN_CUDA_SUCCESS);
    REFUSED(MAP(NULL, address, dims, strides, box, steps));
    REFUSED(MAP(&map, NULL, dims, strides, box, steps));
    REFUSED(MAP(&map, address, NULL, strides, box, steps));
    REFUSED(MAP(&map, address, dims, NULL, box, steps));
    REFUSED(MAP(&map, address, dims, strides, NULL, steps));
    REFUSED(MAP(&map, address, dims, strides, box, NULL));
}

static void refuse_null_of_streams(const ptxgen_driver *d)
{
    ptxgen_cu_stream stream;
    ptxgen_cu_event event;
    ptxgen_cu_graph graph;
    ptxgen_cu_graph_exec exec;
    size_t count = 0;
    float time;
    assert_int_equal(d->stream_create(&stream, 0), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->event_create(&event, 0), PTXGEN_CUDA_SUCCESS);
    REFUSED(d->stream_create(NULL, 0));
    REFUSED(d->stream_destroy(NULL));
    REFUSED(d->stream_wait_event(stream, NULL, 0));
    REFUSED(d->stream_get_ctx(stream, NULL));
    REFUSED(d->stream_begin_capture(NULL, PTXGEN_CU_STREAM_CAPTURE_MODE_RELAXED));
    REFUSED(d->stream_end_capture(NULL, &graph));
    REFUSED(d->stream_is_capturing(stream, NULL));
    REFUSED(d->event_create(NULL, 0));
    REFUSED(d->event_destroy(NULL));
    REFUSED(d->event_record(NULL, stream));
    REFUSED(d->event_synchronize(NULL));
    REFUSED(d->event_query(NULL));
    REFUSED(d->event_elapsed_time(NULL, event, event));
    REFUSED(d->event_elapsed_time(&time, NULL, event));
    REFUSED(d->event_elapsed_time(&time, event, NULL));
    assert_int_equal(d->stream_begin_capture(stream, PTXGEN_CU_STREAM_CAPTURE_MODE_RELAXED),
                     PTXGEN_CUDA_SUCCESS);
    REFUSED(d->stream_end_capture(stream, NULL));
    assert_int_equal(d->stream_end_capture(stream, &graph), PTXGEN_CUDA_SUCCESS);
    REFUSED(d->graph_instantiate(NULL, graph, 0));
    REFUSED(d->graph_instantiate(&exec, NULL, 0));
    REFUSED(d->graph_launch(NULL, stream));
    REFUSED(d->graph_exec_destroy(NULL));
    REFUSED(d->graph_destroy(NULL));
    REFUSED(d->graph_get_nodes(NULL, NULL, &count));
    REFUSED(d->graph_get_nodes(graph, NULL, NULL));
    assert_int_equal(d->graph_destroy(graph), PTXGEN_CUDA_SUCCESS);
    d->event_destroy(event);
    d->stream_destroy(stream);
}

static void refuse_null_of_links(const ptxgen_driver *d)
{
    ptxgen_cu_link_state link;
    void *cubin;
    size_t size;
    REFUSED(d->link_create(0, NULL, NULL, NULL));
    REFUSED(d->link_create(1, NULL, NULL, &link));
    assert_int_equal(d->link_create(0, NULL, NULL, &link), PTXGEN_CUDA_SUCCESS);
    REFUSED(d->link_add_data(NULL, PTXGEN_CU_JIT_INPUT_PTX, (void *)(uintptr_t)kernel,
                             sizeof kernel, "k", 0, NULL, NULL));
    REFUSED(d->link_add_data(link, PTXGEN_CU_JIT_INPUT_PTX, NULL, 0, "k", 0, NULL, NULL));
    REFUSED(d->link_complete(NULL, &cubin, &size));
    REFUSED(d->link_complete(link, NULL, &size));
    REFUSED(d->link_complete(link, &cubin, &size));
    REFUSED(d->link_destroy(NULL));
    assert_int_equal(d->link_destroy(link), PTXGEN_CUDA_SUCCESS);
}

static void every_call_of_the_table_refuses_null(void **state)
{
    (void)state;
    struct bench bench;
    bench_open(&bench, "cpu");
    bench_load(&bench, kernel);
    ptxgen_cu_deviceptr memory = bench_buffer(&bench, NULL, 64 * 64);
    refuse_null_of_devices_and_contexts(&bench.driver);
    refuse_null_of_modules(&bench.driver, bench.module);
    refuse_null_of_memory(&bench.driver, memory);
    refuse_null_of_streams(&bench.driver);
    refuse_null_of_links(&bench.driver);
    bench_close(&bench);
}

/* Of NULL, and of a context that is destroyed. */
static void refuse_context(ptxgen_cu_context context)
{
    ptxgen_error err;
    ptxgen_emulator_options options = {0};
    ptxgen_emulator_fault fault = {.check = PTXGEN_CHECK_TRAP};
    ptxgen_emulator_profile *profile = (ptxgen_emulator_profile *)&err;
    uint64_t warps = 1, lanes = 1;
    double seconds = 1;
    assert_int_equal(ptxgen_emulator_set_options(context, &options, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "context"));
    ptxgen_emulator_last_fault(context, &fault);
    assert_int_equal(fault.check, PTXGEN_CHECK_NONE);
    ptxgen_emulator_clear_fault(context);
    ptxgen_emulator_last_launch(context, &warps, &lanes, &seconds);
    assert_true(warps == 0 && lanes == 0 && seconds == 0);
    assert_int_equal(ptxgen_emulator_profile_take(context, &profile, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_null(profile);
}

static void the_emulators_functions_refuse_null(void **state)
{
    (void)state;
    struct bench bench;
    ptxgen_error err;
    int ordinal;
    bench_open(&bench, "cpu");
    ptxgen_emulator_driver(NULL);
    assert_int_equal(ptxgen_emulator_ordinal(NULL, &ordinal, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ptxgen_emulator_ordinal("cpu", NULL, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ptxgen_emulator_set_options(bench.context, NULL, NULL),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    ptxgen_emulator_last_fault(bench.context, NULL);
    ptxgen_emulator_last_launch(bench.context, NULL, NULL, NULL);
    assert_int_equal(ptxgen_emulator_profile_take(bench.context, NULL, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ptxgen_emulator_profile_count(NULL), 0);
    assert_null(ptxgen_emulator_profile_line(NULL, 0).kernel);
    ptxgen_emulator_profile_free(NULL);
    refuse_context(NULL);
    bench_close(&bench);
}

/* ---- destroyed contexts ---- */

struct worker {
    const ptxgen_driver *driver;
    ptxgen_cu_context context;
    pthread_barrier_t barrier;
    ptxgen_cu_result results[4];
};

static void *keep_current(void *argument)
{
    struct worker *w = argument;
    const ptxgen_driver *d = w->driver;
    ptxgen_cu_deviceptr memory = 0;
    ptxgen_cu_context current = w->context;
    d->ctx_set_current(w->context);
    pthread_barrier_wait(&w->barrier); /* current here */
    pthread_barrier_wait(&w->barrier); /* destroyed there */
    w->results[0] = d->mem_alloc(&memory, 64);
    w->results[1] = d->ctx_synchronize();
    w->results[2] = d->mem_free(memory);
    w->results[3] = d->stream_synchronize(NULL);
    d->ctx_get_current(&current);
    if (current)
        w->results[0] = PTXGEN_CUDA_SUCCESS;
    return NULL;
}

static void calls_of_a_thread_whose_context_is_destroyed_fail(void **state)
{
    (void)state;
    struct bench bench;
    struct worker worker = {.driver = &bench.driver};
    pthread_t thread;
    bench_open(&bench, "cpu");
    const ptxgen_driver *d = &bench.driver;
    assert_int_equal(d->ctx_create(&worker.context, 0, 0), PTXGEN_CUDA_SUCCESS);
    pthread_barrier_init(&worker.barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, keep_current, &worker), 0);
    pthread_barrier_wait(&worker.barrier);
    assert_int_equal(d->ctx_destroy(worker.context), PTXGEN_CUDA_SUCCESS);
    ptxgen_cu_context successor; /* may stand where the destroyed one stood */
    assert_int_equal(d->ctx_create(&successor, 0, 0), PTXGEN_CUDA_SUCCESS);
    pthread_barrier_wait(&worker.barrier);
    pthread_join(thread, NULL);
    for (int i = 0; i < 4; i++)
        assert_int_equal(worker.results[i], PTXGEN_CUDA_ERROR_CONTEXT_IS_DESTROYED);
    pthread_barrier_destroy(&worker.barrier);
    d->ctx_destroy(successor);
    bench_close(&bench);
}

static void a_destroyed_context_is_refused(void **state)
{
    (void)state;
    struct bench bench;
    ptxgen_cu_context gone;
    bench_open(&bench, "cpu");
    const ptxgen_driver *d = &bench.driver;
    assert_int_equal(d->ctx_create(&gone, 0, 0), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->ctx_destroy(gone), PTXGEN_CUDA_SUCCESS);
    REFUSED(d->ctx_destroy(gone));
    REFUSED(d->ctx_set_current(gone));
    REFUSED(d->ctx_push_current(gone));
    refuse_context(gone);
    bench_close(&bench);
}

/* The second context's memory has the addresses that the first one's had. */
static void modules_and_streams_outlive_their_context(void **state)
{
    (void)state;
    struct bench bench;
    ptxgen_cu_context first, second;
    ptxgen_cu_module module;
    ptxgen_cu_function function;
    ptxgen_cu_stream stream;
    ptxgen_cu_deviceptr memory;
    uint32_t x = 1, *pointer = &x;
    bench_open(&bench, "cpu");
    const ptxgen_driver *d = &bench.driver;
    assert_int_equal(d->ctx_create(&first, 0, 0), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->module_load_data(&module, kernel), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->module_get_function(&function, module, "k"), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->stream_create(&stream, 0), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->ctx_destroy(first), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->ctx_create(&second, 0, 0), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->mem_alloc(&memory, 4), PTXGEN_CUDA_SUCCESS);
    REFUSED(d->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){pointer}, NULL));
    REFUSED(d->stream_synchronize(stream));
    REFUSED(d->stream_get_ctx(stream, &first));
    assert_int_equal(d->stream_destroy(stream), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->module_unload(module), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->memcpy_htod(memory, &x, 4), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(d->mem_free(memory), PTXGEN_CUDA_SUCCESS);
    d->ctx_destroy(second);
    bench_close(&bench);
}

static void a_primary_context_is_released_and_not_destroyed(void **state)
{
    (void)state;
    struct bench bench;
    ptxgen_cu_context primary;
    bench_open(&bench, "cpu");
    const ptxgen_driver *d = &bench.driver;
    assert_int_equal(d->device_primary_ctx_retain(&primary, 0), PTXGEN_CUDA_SUCCESS);
    REFUSED(d->ctx_destroy(primary));
    assert_int_equal(d->device_primary_ctx_release(0), PTXGEN_CUDA_SUCCESS);
    REFUSED(d->device_primary_ctx_release(0));
    REFUSED(d->ctx_set_current(primary));
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_of_the_table_refuses_null),
        cmocka_unit_test(the_emulators_functions_refuse_null),
        cmocka_unit_test(calls_of_a_thread_whose_context_is_destroyed_fail),
        cmocka_unit_test(a_destroyed_context_is_refused),
        cmocka_unit_test(modules_and_streams_outlive_their_context),
        cmocka_unit_test(a_primary_context_is_released_and_not_destroyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
