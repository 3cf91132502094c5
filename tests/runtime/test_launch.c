/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels and launches on a fake driver. */
#include "tests/runtime/check.h"
#include "tests/runtime/fake_driver.h"

#include <ptxgen/kernel.h>

#include <pthread.h>
#include <stdatomic.h>

static ptxgen_module *module;
static ptxgen_kernel *kernel;
static ptxgen_error err;

static int set_up(void **state)
{
    (void)state;
    fake_reset();
    fake_make_current(fake_context(0));
    assert_int_equal(
        ptxgen_module_load_ptx(&fake.table, ".version 7.0\n.target sm_80\n", NULL, &module, &err),
        PTXGEN_OK);
    assert_int_equal(ptxgen_kernel_create(module, "axpy", 0, &kernel, &err), PTXGEN_OK);
    fake_forget_calls();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ptxgen_kernel_destroy(kernel);
    ptxgen_module_destroy(module);
    assert_int_equal(fake.depth, 1);
    return 0;
}

static const ptxgen_launch_shape plain = {.grid = {7, 5, 3}, .block = {64, 2, 1}};

static ptxgen_status launch(ptxgen_launch_shape shape)
{
    return ptxgen_launch(kernel, &shape, NULL, NULL, &err);
}

/* ---- creation ---- */

static void a_kernel_has_its_attributes(void **state)
{
    (void)state;
    const ptxgen_kernel_attributes *attributes = ptxgen_kernel_get_attributes(kernel);
    assert_int_equal(attributes->registers, 42);
    assert_int_equal(attributes->max_threads_per_block, 1024);
    assert_int_equal(attributes->max_dynamic_shared_bytes, 48 << 10);
    assert_non_null(ptxgen_kernel_get_function(kernel));
}

static void a_kernel_that_is_not_there_is_named(void **state)
{
    (void)state;
    ptxgen_kernel *missing;
    fake.fail[FAKE_module_get_function] = PTXGEN_CUDA_ERROR_NOT_FOUND;
    assert_fails(ptxgen_kernel_create(module, "axpi", 0, &missing, &err), PTXGEN_ERROR_NOT_FOUND,
                 err, "no kernel named 'axpi'");
    assert_null(missing);
}

static void shared_memory_within_48_kb_needs_no_asking(void **state)
{
    (void)state;
    ptxgen_kernel *modest;
    assert_int_equal(ptxgen_kernel_create(module, "k", 48 << 10, &modest, &err), PTXGEN_OK);
    assert_int_equal(fake.calls[FAKE_func_set_attribute], 0);
    ptxgen_kernel_destroy(modest);
}

static void shared_memory_beyond_48_kb_is_asked_for(void **state)
{
    (void)state;
    ptxgen_kernel *large;
    assert_int_equal(ptxgen_kernel_create(module, "k", (48 << 10) + 1, &large, &err), PTXGEN_OK);
    assert_int_equal(fake.calls[FAKE_func_set_attribute], 1);
    assert_int_equal(
        fake.function_attributes[PTXGEN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES],
        (48 << 10) + 1);
    assert_int_equal(ptxgen_kernel_get_attributes(large)->max_dynamic_shared_bytes, (48 << 10) + 1);
    ptxgen_kernel_destroy(large);
}

static void shared_memory_beyond_the_device_is_refused_with_the_figures(void **state)
{
    (void)state;
    ptxgen_kernel *huge;
    fake.function_attributes[PTXGEN_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = 1024;
    assert_fails(ptxgen_kernel_create(module, "k", 232448 - 1023, &huge, &err),
                 PTXGEN_ERROR_SHARED_MEMORY, err,
                 "1024 bytes of static and 231425 of dynamic shared memory, and device 0 gives a "
                 "CTA 232448");
    assert_int_equal(ptxgen_kernel_create(module, "k", SIZE_MAX, &huge, NULL),
                     PTXGEN_ERROR_SHARED_MEMORY);
    assert_null(huge);
    assert_int_equal(fake.calls[FAKE_func_set_attribute], 0);
    assert_int_equal(ptxgen_kernel_create(module, "k", 232448 - 1024, &huge, &err), PTXGEN_OK);
    ptxgen_kernel_destroy(huge);
}

static void creation_works_from_a_thread_with_another_context(void **state)
{
    (void)state;
    ptxgen_kernel *other;
    fake_make_current(fake_context(1));
    assert_int_equal(ptxgen_kernel_create(module, "k", 0, &other, &err), PTXGEN_OK);
    assert_ptr_equal(fake.stack[0], fake_context(1));
    assert_int_equal(fake.depth, 1);
    ptxgen_kernel_destroy(other);
}

/* ---- occupancy ---- */

static void occupancy_is_the_drivers(void **state)
{
    (void)state;
    int blocks = 0;
    assert_int_equal(ptxgen_kernel_occupancy(kernel, 256, 65536, &blocks, &err), PTXGEN_OK);
    assert_int_equal(blocks, 7);
    assert_fails(ptxgen_kernel_occupancy(kernel, 0, 0, &blocks, &err),
                 PTXGEN_ERROR_INVALID_ARGUMENT, err, "0 threads are not a CTA");
    fake.fail[FAKE_occupancy_max_active_blocks] = PTXGEN_CUDA_ERROR_INVALID_VALUE;
    assert_fails(ptxgen_kernel_occupancy(kernel, 256, 0, &blocks, &err), PTXGEN_ERROR_DRIVER, err,
                 "occupancy of 'axpy'");
}

static void cluster_occupancy_passes_the_shape_on(void **state)
{
    (void)state;
    int clusters = 0;
    ptxgen_launch_shape shape = {.grid = {8, 1, 1}, .block = {128, 1, 1}, .cluster = {4, 1, 1}};
    assert_int_equal(ptxgen_kernel_max_clusters(kernel, &shape, &clusters, &err), PTXGEN_OK);
    assert_int_equal(clusters, 33);
    assert_int_equal(fake.attribute_count, 1);
    assert_int_equal(fake.attributes[0].value.cluster_dim.x, 4);
    fake.table.occupancy_max_active_clusters = NULL;
    assert_fails(ptxgen_kernel_max_clusters(kernel, &shape, &clusters, &err),
                 PTXGEN_ERROR_DRIVER_TOO_OLD, err, "cuOccupancyMaxActiveClusters");
}

/* ---- launch ---- */

static void a_launch_is_exactly_one_driver_call(void **state)
{
    (void)state;
    int n = 5;
    void *arguments[] = {&n};
    ptxgen_launch_shape shape = plain;
    shape.dynamic_shared_bytes = 1024;
    assert_int_equal(ptxgen_launch(kernel, &shape, PTXGEN_CU_STREAM_PER_THREAD, arguments, &err),
                     PTXGEN_OK);
    assert_int_equal(fake.total, 1);
    assert_int_equal(fake.calls[FAKE_launch_kernel], 1);
    assert_memory_equal(fake.grid, ((unsigned int[]){7, 5, 3}), sizeof fake.grid);
    assert_memory_equal(fake.block, ((unsigned int[]){64, 2, 1}), sizeof fake.block);
    assert_int_equal(fake.shared_bytes, 1024);
    assert_ptr_equal(fake.stream, PTXGEN_CU_STREAM_PER_THREAD);
    assert_ptr_equal(fake.parameters, arguments);
}

static void clusters_and_programmatic_launches_are_one_call_too(void **state)
{
    (void)state;
    ptxgen_launch_shape shape = {.grid = {8, 2, 1},
                                 .block = {128, 1, 1},
                                 .cluster = {4, 2, 1},
                                 .programmatic = true,
                                 .cooperative = true};
    assert_int_equal(launch(shape), PTXGEN_OK);
    assert_int_equal(fake.total, 1);
    assert_int_equal(fake.calls[FAKE_launch_kernel_ex], 1);
    assert_int_equal(fake.grid[0], 8);
    assert_int_equal(fake.block[0], 128);
    assert_int_equal(fake.attribute_count, 3);
    assert_int_equal(fake.attributes[0].id, PTXGEN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    assert_int_equal(fake.attributes[0].value.cluster_dim.x, 4);
    assert_int_equal(fake.attributes[0].value.cluster_dim.y, 2);
    assert_int_equal(fake.attributes[0].value.cluster_dim.z, 1);
    assert_int_equal(fake.attributes[1].id,
                     PTXGEN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    assert_int_equal(fake.attributes[1].value.programmatic_stream_serialization_allowed, 1);
    assert_int_equal(fake.attributes[2].id, PTXGEN_CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    assert_int_equal(fake.attributes[2].value.cooperative, 1);
}

static void an_empty_grid_launches_nothing_and_is_no_error(void **state)
{
    (void)state;
    for (int axis = 0; axis < 3; axis++) {
        ptxgen_launch_shape shape = plain;
        shape.grid[axis] = 0;
        assert_int_equal(launch(shape), PTXGEN_OK);
    }
    ptxgen_launch_shape nothing = {.cluster = {2, 1, 1}};
    assert_int_equal(launch(nothing), PTXGEN_OK);
    assert_int_equal(fake.total, 0);
}

static void a_grid_beyond_the_limits_is_refused_not_cut(void **state)
{
    (void)state;
    ptxgen_launch_shape shape = plain;
    shape.grid[0] = (uint64_t)1 << 32; /* 0 when cut to 32 bits */
    assert_int_equal(launch(shape), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(err, "a grid of 4294967296 CTAs in x for 'axpy' passes the limit of 2147483647");
    shape = plain;
    shape.grid[1] = 65536;
    assert_int_equal(launch(shape), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(err, "65536 CTAs in y for 'axpy' passes the limit of 65535");
    shape = plain;
    shape.grid[2] = 65536;
    assert_int_equal(launch(shape), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(err, "in z");
    assert_int_equal(fake.total, 0);
    shape = (ptxgen_launch_shape){.grid = {INT32_MAX, 65535, 65535}, .block = {1, 1, 1}};
    assert_int_equal(launch(shape), PTXGEN_OK);
}

static void a_block_beyond_the_limits_is_refused(void **state)
{
    (void)state;
    static const struct {
        unsigned int block[3];
        const char *words;
    } cases[] = {
        {{0, 1, 1}, "a CTA of 0 threads in x for 'axpy' is not within 1 to 1024"},
        {{1, 1025, 1}, "a CTA of 1025 threads in y"},
        {{1, 1, 65}, "a CTA of 65 threads in z for 'axpy' is not within 1 to 64"},
        {{512, 2, 2}, "a CTA of 2048 threads is more than 'axpy' can have, 1024"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_launch_shape shape = plain;
        memcpy(shape.block, cases[i].block, sizeof shape.block);
        assert_int_equal(launch(shape), PTXGEN_ERROR_INVALID_ARGUMENT);
        assert_says(err, cases[i].words);
    }
    assert_int_equal(fake.total, 0);
}

static void a_cluster_must_divide_the_grid(void **state)
{
    (void)state;
    ptxgen_launch_shape shape = {.grid = {7, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}};
    assert_int_equal(launch(shape), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(err, "a cluster of 2 CTAs in x does not divide the grid's 7");
    shape.cluster[0] = 7;
    shape.cluster[2] = 0;
    assert_int_equal(launch(shape), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(err, "a cluster of 0 CTAs in z");
    assert_int_equal(fake.total, 0);
}

static void more_shared_memory_than_created_for_is_refused(void **state)
{
    (void)state;
    ptxgen_launch_shape shape = plain;
    shape.dynamic_shared_bytes = (48 << 10) + 4;
    assert_int_equal(launch(shape), PTXGEN_ERROR_SHARED_MEMORY);
    assert_says(err, "49156 bytes of dynamic shared memory are more than 'axpy' was created for, "
                     "49152");
    assert_int_equal(fake.total, 0);
}

static void a_driver_without_launch_ex_still_launches_plainly(void **state)
{
    (void)state;
    fake.table.launch_kernel_ex = NULL;
    assert_int_equal(launch(plain), PTXGEN_OK);
    ptxgen_launch_shape shape = plain;
    shape.programmatic = true;
    assert_int_equal(launch(shape), PTXGEN_ERROR_DRIVER_TOO_OLD);
    assert_says(err, "has no cuLaunchKernelEx, which came with CUDA 11.6; it reports CUDA 12.4");
}

static void a_launch_with_another_context_current_says_so(void **state)
{
    (void)state;
    fake.fail[FAKE_launch_kernel] = PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    fake_make_current(fake_context(1));
    assert_int_equal(launch(plain), PTXGEN_ERROR_WRONG_DEVICE);
    assert_says(err, "kernel 'axpy' was loaded into context");
    assert_says(err, "of device 0, which is not the context current in this thread");
    fake_make_current(NULL);
    assert_int_equal(launch(plain), PTXGEN_ERROR_WRONG_DEVICE);
    fake_make_current(fake_context(0));
}

static void a_failed_launch_names_the_kernel_its_shape_and_the_error(void **state)
{
    (void)state;
    fake.fail[FAKE_launch_kernel] = PTXGEN_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    assert_int_equal(launch(plain), PTXGEN_ERROR_DRIVER);
    assert_says(err, "launch of 'axpy' with grid 7×5×3, CTA 64×2×1 and 0 bytes of dynamic shared "
                     "memory: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701");
}

enum { THREADS = 4, LAUNCHES = 1000 };
static atomic_int launched;

static ptxgen_cu_result count_launch(ptxgen_cu_function function, unsigned int grid_x,
                                     unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                                     unsigned int block_y, unsigned int block_z,
                                     unsigned int shared_bytes, ptxgen_cu_stream stream,
                                     void **parameters, void **extra)
{
    (void)function, (void)stream, (void)parameters, (void)extra, (void)shared_bytes;
    unsigned int threads = grid_x * grid_y * grid_z * block_x * block_y * block_z;
    atomic_fetch_add(&launched, threads == 7 * 5 * 3 * 64 * 2);
    return PTXGEN_CUDA_SUCCESS;
}

static void *launch_many_times(void *unused)
{
    (void)unused;
    ptxgen_error own_error;
    for (int i = 0; i < LAUNCHES; i++)
        ptxgen_launch(kernel, &plain, NULL, NULL, &own_error);
    return NULL;
}

static void threads_may_launch_one_kernel_together(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    fake.table.launch_kernel = count_launch;
    atomic_store(&launched, 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_many_times, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&launched), THREADS * LAUNCHES);
}

static void null_arguments_are_refused(void **state)
{
    (void)state;
    assert_fails(ptxgen_launch(NULL, &plain, NULL, NULL, &err), PTXGEN_ERROR_INVALID_ARGUMENT, err,
                 "NULL");
    assert_fails(ptxgen_launch(kernel, NULL, NULL, NULL, &err), PTXGEN_ERROR_INVALID_ARGUMENT, err,
                 "NULL");
    ptxgen_kernel *created;
    assert_fails(ptxgen_kernel_create(NULL, "k", 0, &created, &err), PTXGEN_ERROR_INVALID_ARGUMENT,
                 err, "NULL");
    ptxgen_kernel_destroy(NULL);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_kernel_has_its_attributes),
        CASE(a_kernel_that_is_not_there_is_named),
        CASE(shared_memory_within_48_kb_needs_no_asking),
        CASE(shared_memory_beyond_48_kb_is_asked_for),
        CASE(shared_memory_beyond_the_device_is_refused_with_the_figures),
        CASE(creation_works_from_a_thread_with_another_context),
        CASE(occupancy_is_the_drivers),
        CASE(cluster_occupancy_passes_the_shape_on),
        CASE(a_launch_is_exactly_one_driver_call),
        CASE(clusters_and_programmatic_launches_are_one_call_too),
        CASE(an_empty_grid_launches_nothing_and_is_no_error),
        CASE(a_grid_beyond_the_limits_is_refused_not_cut),
        CASE(a_block_beyond_the_limits_is_refused),
        CASE(a_cluster_must_divide_the_grid),
        CASE(more_shared_memory_than_created_for_is_refused),
        CASE(a_driver_without_launch_ex_still_launches_plainly),
        CASE(a_launch_with_another_context_current_says_so),
        CASE(a_failed_launch_names_the_kernel_its_shape_and_the_error),
        CASE(threads_may_launch_one_kernel_together),
        CASE(null_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
