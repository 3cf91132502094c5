/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEED(call)                                                                                 \
    do {                                                                                           \
        ptxgen_cu_result need_result = (call);                                                     \
        if (need_result != PTXGEN_CUDA_SUCCESS)                                                    \
            fail_msg("%s gives %d: %s", #call, (int)need_result, bench_why(bench));                \
    } while (0)

static const char *bench_why(struct bench *bench)
{
    ptxgen_emulator_fault fault = bench_fault(bench);
    snprintf(bench->log + strlen(bench->log), sizeof bench->log - strlen(bench->log), " %.900s",
             fault.message);
    return bench->log;
}

void bench_open(struct bench *bench, const char *device)
{
    ptxgen_error err;
    memset(bench, 0, sizeof *bench);
    ptxgen_emulator_driver(&bench->driver);
    assert_int_equal(ptxgen_driver_start(&bench->driver, &err), PTXGEN_OK);
    assert_int_equal(ptxgen_emulator_ordinal(device, &bench->ordinal, &err), PTXGEN_OK);
    assert_int_equal(bench->driver.ctx_create(&bench->context, 0, bench->ordinal), 0);
}

void bench_close(struct bench *bench)
{
    for (int i = 0; i < bench->buffer_count; i++)
        bench->driver.mem_free(bench->buffers[i]);
    if (bench->module)
        bench->driver.module_unload(bench->module);
    bench->driver.ctx_destroy(bench->context);
}

void bench_options(struct bench *bench, const ptxgen_emulator_options *options)
{
    assert_int_equal(ptxgen_emulator_set_options(bench->context, options, NULL), PTXGEN_OK);
}

ptxgen_cu_result bench_try_load(struct bench *bench, const char *text)
{
    ptxgen_cu_jit_option options[] = {PTXGEN_CU_JIT_ERROR_LOG_BUFFER,
                                      PTXGEN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {bench->log, (void *)(uintptr_t)1024};
    if (bench->module)
        bench->driver.module_unload(bench->module);
    bench->module = NULL;
    return bench->driver.module_load_data_ex(&bench->module, text, 2, options, values);
}

void bench_load(struct bench *bench, const char *text)
{
    NEED(bench_try_load(bench, text));
}

void bench_kernel(struct bench *bench, const char *target, const char *params, const char *body)
{
    size_t size = strlen(params) + strlen(body) + 200;
    char *text = malloc(size);
    snprintf(text, size,
             ".version 8.6\n.target %s\n.address_size 64\n.visible .entry k(%s)\n{\n%s\n}\n",
             target, params, body);
    bench_load(bench, text);
    free(text);
}

ptxgen_cu_deviceptr bench_blank(struct bench *bench, size_t bytes)
{
    ptxgen_cu_deviceptr address;
    assert_true(bench->buffer_count < BENCH_BUFFERS);
    NEED(bench->driver.mem_alloc(&address, bytes));
    bench->buffers[bench->buffer_count++] = address;
    return address;
}

ptxgen_cu_deviceptr bench_buffer(struct bench *bench, const void *data, size_t bytes)
{
    ptxgen_cu_deviceptr address = bench_blank(bench, bytes);
    if (data)
        NEED(bench->driver.memcpy_htod(address, data, bytes));
    else
        NEED(bench->driver.memset_d8(address, 0, bytes));
    return address;
}

void bench_read(struct bench *bench, void *to, ptxgen_cu_deviceptr from, size_t bytes)
{
    NEED(bench->driver.memcpy_dtoh(to, from, bytes));
}

ptxgen_cu_result bench_launch(struct bench *bench, const char *kernel, uint32_t ctas,
                              uint32_t threads, void **arguments)
{
    ptxgen_cu_function function;
    NEED(bench->driver.module_get_function(&function, bench->module, kernel));
    if (bench->dynamic_bytes)
        NEED(bench->driver.func_set_attribute(
            function, PTXGEN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            (int)bench->dynamic_bytes));
    ptxgen_cu_launch_attribute list[2];
    unsigned int attributes = 0;
    if (bench->cluster > 1) {
        ptxgen_cu_launch_attribute *cluster = &list[attributes++];
        cluster->id = PTXGEN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        cluster->value.cluster_dim.x = bench->cluster;
        cluster->value.cluster_dim.y = cluster->value.cluster_dim.z = 1;
    }
    if (bench->programmatic) {
        ptxgen_cu_launch_attribute *programmatic = &list[attributes++];
        programmatic->id = PTXGEN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        programmatic->value.programmatic_stream_serialization_allowed = 1;
    }
    ptxgen_cu_launch_config config = {.grid_dim_x = ctas,
                                      .grid_dim_y = bench->grid_y ? bench->grid_y : 1,
                                      .grid_dim_z = 1,
                                      .block_dim_x = threads,
                                      .block_dim_y = bench->block_y ? bench->block_y : 1,
                                      .block_dim_z = 1,
                                      .shared_mem_bytes = bench->dynamic_bytes,
                                      .attributes = list,
                                      .attribute_count = attributes};
    return bench->driver.launch_kernel_ex(&config, function, arguments, NULL);
}

void bench_run(struct bench *bench, const char *kernel, uint32_t ctas, uint32_t threads,
               void **arguments)
{
    NEED(bench_launch(bench, kernel, ctas, threads, arguments));
    NEED(bench->driver.ctx_synchronize());
}

ptxgen_emulator_fault bench_fault(struct bench *bench)
{
    ptxgen_emulator_fault fault;
    ptxgen_emulator_last_fault(bench->context, &fault);
    return fault;
}

char *bench_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    size_t room = 1 << 16, used = 0, got;
    char *text = malloc(room + 1);
    while ((got = fread(text + used, 1, room - used, file)) > 0) {
        used += got;
        if (used == room)
            text = realloc(text, (room *= 2) + 1);
    }
    fclose(file);
    text[used] = '\0';
    if (length)
        *length = used;
    return text;
}
