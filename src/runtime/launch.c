/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/kernel.h>

#include "src/runtime/context.h"
#include "src/runtime/objects.h"

#include <stddef.h>

/* The same on every device since compute capability 3.0. */
static const uint64_t grid_limit[3] = {INT32_MAX, 65535, 65535};
static const unsigned int block_limit[3] = {1024, 1024, 64};

static const char axis_names[] = "xyz";

enum { MAX_LAUNCH_ATTRIBUTES = 3 };

static bool is_empty(const ptxgen_launch_shape *shape)
{
    return shape->grid[0] == 0 || shape->grid[1] == 0 || shape->grid[2] == 0;
}

static bool has_cluster(const ptxgen_launch_shape *shape)
{
    return shape->cluster[0] != 0 || shape->cluster[1] != 0 || shape->cluster[2] != 0;
}

static bool needs_launch_ex(const ptxgen_launch_shape *shape)
{
    return shape->programmatic || shape->cooperative || has_cluster(shape);
}

static ptxgen_status check_grid(const ptxgen_kernel *kernel, const ptxgen_launch_shape *shape,
                                ptxgen_error *err)
{
    for (int axis = 0; axis < 3; axis++)
        if (shape->grid[axis] > grid_limit[axis])
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "a grid of %llu CTAs in %c for '%s' passes the limit of %llu",
                               (unsigned long long)shape->grid[axis], axis_names[axis],
                               kernel->name, (unsigned long long)grid_limit[axis]);
    return PTXGEN_OK;
}

static ptxgen_status check_block(const ptxgen_kernel *kernel, const ptxgen_launch_shape *shape,
                                 ptxgen_error *err)
{
    const unsigned int *block = shape->block;
    for (int axis = 0; axis < 3; axis++)
        if (block[axis] == 0 || block[axis] > block_limit[axis])
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "a CTA of %u threads in %c for '%s' is not within 1 to %u",
                               block[axis], axis_names[axis], kernel->name, block_limit[axis]);
    unsigned int threads = block[0] * block[1] * block[2];
    if (threads > (unsigned int)kernel->attributes.max_threads_per_block)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "a CTA of %u threads is more than '%s' can have, %d", threads,
                           kernel->name, kernel->attributes.max_threads_per_block);
    return PTXGEN_OK;
}

static ptxgen_status check_cluster(const ptxgen_kernel *kernel, const ptxgen_launch_shape *shape,
                                   ptxgen_error *err)
{
    if (!has_cluster(shape))
        return PTXGEN_OK;
    for (int axis = 0; axis < 3; axis++)
        if (shape->cluster[axis] == 0 || shape->grid[axis] % shape->cluster[axis] != 0)
            return ptxgen_fail(
                err, PTXGEN_ERROR_INVALID_ARGUMENT,
                "a cluster of %u CTAs in %c does not divide the grid's %llu for '%s'",
                shape->cluster[axis], axis_names[axis], (unsigned long long)shape->grid[axis],
                kernel->name);
    return PTXGEN_OK;
}

static ptxgen_status check_shared_memory(const ptxgen_kernel *kernel,
                                         const ptxgen_launch_shape *shape, ptxgen_error *err)
{
    size_t limit = (size_t)kernel->attributes.max_dynamic_shared_bytes;
    if (shape->dynamic_shared_bytes > limit)
        return ptxgen_fail(err, PTXGEN_ERROR_SHARED_MEMORY,
                           "%zu bytes of dynamic shared memory are more than '%s' was created for, "
                           "%zu",
                           shape->dynamic_shared_bytes, kernel->name, limit);
    return PTXGEN_OK;
}

static ptxgen_status check_shape(const ptxgen_kernel *kernel, const ptxgen_launch_shape *shape,
                                 ptxgen_error *err)
{
    ptxgen_status status = check_grid(kernel, shape, err);
    if (status == PTXGEN_OK)
        status = check_block(kernel, shape, err);
    if (status == PTXGEN_OK)
        status = check_cluster(kernel, shape, err);
    if (status == PTXGEN_OK)
        status = check_shared_memory(kernel, shape, err);
    return status;
}

static unsigned int list_attributes(const ptxgen_launch_shape *shape,
                                    ptxgen_cu_launch_attribute list[MAX_LAUNCH_ATTRIBUTES])
{
    unsigned int count = 0;
    if (has_cluster(shape)) {
        ptxgen_cu_launch_attribute *cluster = &list[count++];
        cluster->id = PTXGEN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        cluster->value.cluster_dim.x = shape->cluster[0];
        cluster->value.cluster_dim.y = shape->cluster[1];
        cluster->value.cluster_dim.z = shape->cluster[2];
    }
    if (shape->programmatic) {
        ptxgen_cu_launch_attribute *programmatic = &list[count++];
        programmatic->id = PTXGEN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        programmatic->value.programmatic_stream_serialization_allowed = 1;
    }
    if (shape->cooperative) {
        ptxgen_cu_launch_attribute *cooperative = &list[count++];
        cooperative->id = PTXGEN_CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        cooperative->value.cooperative = 1;
    }
    return count;
}

static ptxgen_cu_launch_config make_config(const ptxgen_launch_shape *shape,
                                           ptxgen_cu_stream stream,
                                           ptxgen_cu_launch_attribute list[MAX_LAUNCH_ATTRIBUTES])
{
    return (ptxgen_cu_launch_config){
        .grid_dim_x = (unsigned int)shape->grid[0],
        .grid_dim_y = (unsigned int)shape->grid[1],
        .grid_dim_z = (unsigned int)shape->grid[2],
        .block_dim_x = shape->block[0],
        .block_dim_y = shape->block[1],
        .block_dim_z = shape->block[2],
        .shared_mem_bytes = (unsigned int)shape->dynamic_shared_bytes,
        .stream = stream,
        .attributes = list,
        .attribute_count = list_attributes(shape, list),
    };
}

/* The driver refuses a function of another context, but does not say so. Asked only after a
 * failure, so that a launch stays one call. */
static bool other_context_is_current(const ptxgen_kernel *kernel)
{
    ptxgen_cu_context current = NULL;
    return kernel->driver->ctx_get_current(&current) == PTXGEN_CUDA_SUCCESS &&
           current != kernel->context;
}

static ptxgen_status fail_launch(const ptxgen_kernel *kernel, const ptxgen_launch_shape *shape,
                                 ptxgen_cu_result result, ptxgen_error *err)
{
    if (other_context_is_current(kernel))
        return ptxgen_fail(err, PTXGEN_ERROR_WRONG_DEVICE,
                           "kernel '%s' was loaded into context %p of device %d, which is not the "
                           "context current in this thread",
                           kernel->name, (void *)kernel->context, kernel->device);
    return ptxgen_driver_fail(kernel->driver, result, err,
                              "launch of '%s' with grid %llu×%llu×%llu, CTA %u×%u×%u and %zu bytes "
                              "of dynamic shared memory",
                              kernel->name, (unsigned long long)shape->grid[0],
                              (unsigned long long)shape->grid[1],
                              (unsigned long long)shape->grid[2], shape->block[0], shape->block[1],
                              shape->block[2], shape->dynamic_shared_bytes);
}

static ptxgen_cu_result launch_plain(const ptxgen_kernel *kernel, const ptxgen_launch_shape *shape,
                                     ptxgen_cu_stream stream, void **parameters)
{
    return kernel->driver->launch_kernel(
        kernel->function, (unsigned int)shape->grid[0], (unsigned int)shape->grid[1],
        (unsigned int)shape->grid[2], shape->block[0], shape->block[1], shape->block[2],
        (unsigned int)shape->dynamic_shared_bytes, stream, parameters, NULL);
}

static ptxgen_cu_result launch_with_attributes(const ptxgen_kernel *kernel,
                                               const ptxgen_launch_shape *shape,
                                               ptxgen_cu_stream stream, void **parameters)
{
    ptxgen_cu_launch_attribute list[MAX_LAUNCH_ATTRIBUTES] = {0};
    ptxgen_cu_launch_config config = make_config(shape, stream, list);
    return kernel->driver->launch_kernel_ex(&config, kernel->function, parameters, NULL);
}

ptxgen_status ptxgen_launch(const ptxgen_kernel *kernel, const ptxgen_launch_shape *shape,
                            ptxgen_cu_stream stream, void *const *arguments, ptxgen_error *err)
{
    if (!kernel || !shape)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_launch: kernel or shape is NULL");
    if (is_empty(shape))
        return PTXGEN_OK;
    ptxgen_status status = check_shape(kernel, shape, err);
    if (status != PTXGEN_OK)
        return status;
    bool extended = needs_launch_ex(shape);
    if (extended && !kernel->driver->launch_kernel_ex)
        return ptxgen_driver_require(kernel->driver, offsetof(ptxgen_driver, launch_kernel_ex),
                                     err);

    void **parameters = (void **)(uintptr_t)arguments; /* libcuda only reads the array */
    ptxgen_cu_result result = extended ? launch_with_attributes(kernel, shape, stream, parameters)
                                       : launch_plain(kernel, shape, stream, parameters);
    return result == PTXGEN_CUDA_SUCCESS ? PTXGEN_OK : fail_launch(kernel, shape, result, err);
}

ptxgen_status ptxgen_kernel_max_clusters(const ptxgen_kernel *kernel,
                                         const ptxgen_launch_shape *shape, int *clusters,
                                         ptxgen_error *err)
{
    if (!kernel || !shape || !clusters || is_empty(shape))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_kernel_max_clusters: kernel, shape or clusters is NULL, or the "
                           "grid is empty");
    const ptxgen_driver *driver = kernel->driver;
    ptxgen_cu_context context;
    ptxgen_status status = check_shape(kernel, shape, err);
    if (status == PTXGEN_OK)
        status = ptxgen_driver_require(driver,
                                       offsetof(ptxgen_driver, occupancy_max_active_clusters), err);
    if (status == PTXGEN_OK)
        status = context_enter(driver, kernel->context, &context, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_cu_launch_attribute list[MAX_LAUNCH_ATTRIBUTES] = {0};
    ptxgen_cu_launch_config config = make_config(shape, NULL, list);
    ptxgen_cu_result result =
        driver->occupancy_max_active_clusters(clusters, kernel->function, &config);
    context_leave(driver);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err, "cluster occupancy of '%s'", kernel->name);
    return PTXGEN_OK;
}
