/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory, host memory, copies and fills. */
#include "src/emulator/driver_state.h"
#include "src/emulator/tensormap_tiled.h"

#include <stdlib.h>
#include <string.h>

ptxgen_cu_result emu_cu_mem_alloc(ptxgen_cu_deviceptr *address, size_t bytes)
{
    struct CUctx_st *context;
    ptxgen_cu_result result = emu_current_unsafe(&context);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (!address || bytes == 0)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *address = emu_memory_alloc(&context->memory, bytes, 512);
    return *address ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
}

ptxgen_cu_result emu_cu_mem_free(ptxgen_cu_deviceptr address)
{
    struct CUctx_st *context;
    ptxgen_cu_result result = emu_bound(&context);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (context->capturing)
        return PTXGEN_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (address == 0)
        return PTXGEN_CUDA_SUCCESS;
    return emu_memory_free(&context->memory, address) ? PTXGEN_CUDA_SUCCESS
                                                      : PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

ptxgen_cu_result emu_cu_mem_get_info(size_t *free_bytes, size_t *total_bytes)
{
    struct CUctx_st *context;
    ptxgen_cu_result result = emu_current(&context);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (!free_bytes || !total_bytes)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    pthread_rwlock_rdlock(&context->memory.lock);
    *total_bytes = (size_t)context->memory.limit;
    *free_bytes = (size_t)(context->memory.limit - context->memory.in_use);
    pthread_rwlock_unlock(&context->memory.lock);
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_mem_host_alloc(void **address, size_t bytes, unsigned int flags)
{
    struct CUctx_st *context;
    (void)flags;
    ptxgen_cu_result result = emu_current_unsafe(&context);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (!address || bytes == 0 || bytes > SIZE_MAX - 4096)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *address = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return *address ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
}

ptxgen_cu_result emu_cu_mem_free_host(void *address)
{
    free(address);
    return PTXGEN_CUDA_SUCCESS;
}

/* ---- copies and fills ---- */

static ptxgen_cu_result copy(struct CUctx_st *context, const struct emu_op *op)
{
    uint8_t *to_state = NULL, *from_state = NULL;
    if (op->bytes == 0)
        return PTXGEN_CUDA_SUCCESS;
    if (op->kind == EMU_OP_TO_HOST) {
        const uint8_t *from = emu_memory_host(&context->memory, op->from, op->bytes, NULL);
        if (!from || !op->host_to)
            return PTXGEN_CUDA_ERROR_INVALID_VALUE;
        memcpy(op->host_to, from, op->bytes);
        return PTXGEN_CUDA_SUCCESS;
    }
    uint8_t *to = emu_memory_host(&context->memory, op->to, op->bytes, &to_state);
    if (!to)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    if (op->kind == EMU_OP_DEVICE) {
        const uint8_t *from = emu_memory_host(&context->memory, op->from, op->bytes, &from_state);
        if (!from)
            return PTXGEN_CUDA_ERROR_INVALID_VALUE;
        memmove(to, from, op->bytes);
        memmove(to_state, from_state, op->bytes);
        return PTXGEN_CUDA_SUCCESS;
    }
    if (op->kind == EMU_OP_TO_DEVICE && !op->host_from)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    memset(to_state, 1, op->bytes);
    if (op->kind == EMU_OP_TO_DEVICE) {
        memcpy(to, op->host_from, op->bytes);
    } else if (op->value_bytes == 1) {
        memset(to, (int)op->value, op->bytes);
    } else {
        for (uint64_t i = 0; i < op->bytes; i += op->value_bytes)
            memcpy(to + i, &op->value, op->value_bytes);
    }
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_run_op(struct CUctx_st *context, const struct CUstream_st *stream,
                            const struct emu_op *op)
{
    if (op->kind == EMU_OP_KERNEL)
        return emu_run_kernel(context, stream, op);
    emu_memory_settle(&context->memory);
    pthread_rwlock_rdlock(&context->memory.lock);
    ptxgen_cu_result result = copy(context, op);
    pthread_rwlock_unlock(&context->memory.lock);
    return result;
}

/* The calls without a stream wait for everything, which a capture forbids. */
static ptxgen_cu_result run_now(const struct emu_op *op)
{
    struct CUctx_st *context;
    ptxgen_cu_result result = emu_current_unsafe(&context);
    return result == PTXGEN_CUDA_SUCCESS ? emu_run_op(context, NULL, op) : result;
}

static struct emu_op to_device(ptxgen_cu_deviceptr to, const void *from, size_t bytes)
{
    return (struct emu_op){.kind = EMU_OP_TO_DEVICE, .to = to, .host_from = from, .bytes = bytes};
}

static struct emu_op to_host(void *to, ptxgen_cu_deviceptr from, size_t bytes)
{
    return (struct emu_op){.kind = EMU_OP_TO_HOST, .host_to = to, .from = from, .bytes = bytes};
}

static struct emu_op on_device(ptxgen_cu_deviceptr to, ptxgen_cu_deviceptr from, size_t bytes)
{
    return (struct emu_op){.kind = EMU_OP_DEVICE, .to = to, .from = from, .bytes = bytes};
}

static struct emu_op fill(ptxgen_cu_deviceptr to, uint32_t value, uint32_t width, size_t count)
{
    return (struct emu_op){.kind = EMU_OP_SET,
                           .to = to,
                           .value = value,
                           .value_bytes = width,
                           .bytes = count > UINT64_MAX / 8 ? UINT64_MAX : (uint64_t)count * width};
}

ptxgen_cu_result emu_cu_memcpy_htod(ptxgen_cu_deviceptr to, const void *from, size_t bytes)
{
    struct emu_op op = to_device(to, from, bytes);
    return run_now(&op);
}

ptxgen_cu_result emu_cu_memcpy_dtoh(void *to, ptxgen_cu_deviceptr from, size_t bytes)
{
    struct emu_op op = to_host(to, from, bytes);
    return run_now(&op);
}

ptxgen_cu_result emu_cu_memcpy_dtod(ptxgen_cu_deviceptr to, ptxgen_cu_deviceptr from, size_t bytes)
{
    struct emu_op op = on_device(to, from, bytes);
    return run_now(&op);
}

ptxgen_cu_result emu_cu_memcpy_htod_async(ptxgen_cu_deviceptr to, const void *from, size_t bytes,
                                          ptxgen_cu_stream stream)
{
    struct emu_op op = to_device(to, from, bytes);
    return emu_enqueue(stream, &op);
}

ptxgen_cu_result emu_cu_memcpy_dtoh_async(void *to, ptxgen_cu_deviceptr from, size_t bytes,
                                          ptxgen_cu_stream stream)
{
    struct emu_op op = to_host(to, from, bytes);
    return emu_enqueue(stream, &op);
}

ptxgen_cu_result emu_cu_memcpy_dtod_async(ptxgen_cu_deviceptr to, ptxgen_cu_deviceptr from,
                                          size_t bytes, ptxgen_cu_stream stream)
{
    struct emu_op op = on_device(to, from, bytes);
    return emu_enqueue(stream, &op);
}

ptxgen_cu_result emu_cu_memset_d8(ptxgen_cu_deviceptr to, unsigned char value, size_t count)
{
    struct emu_op op = fill(to, value, 1, count);
    return run_now(&op);
}

ptxgen_cu_result emu_cu_memset_d16(ptxgen_cu_deviceptr to, unsigned short value, size_t count)
{
    struct emu_op op = fill(to, value, 2, count);
    return run_now(&op);
}

ptxgen_cu_result emu_cu_memset_d32(ptxgen_cu_deviceptr to, unsigned int value, size_t count)
{
    struct emu_op op = fill(to, value, 4, count);
    return run_now(&op);
}

ptxgen_cu_result emu_cu_memset_d8_async(ptxgen_cu_deviceptr to, unsigned char value, size_t count,
                                        ptxgen_cu_stream stream)
{
    struct emu_op op = fill(to, value, 1, count);
    return emu_enqueue(stream, &op);
}

ptxgen_cu_result emu_cu_memset_d16_async(ptxgen_cu_deviceptr to, unsigned short value, size_t count,
                                         ptxgen_cu_stream stream)
{
    struct emu_op op = fill(to, value, 2, count);
    return emu_enqueue(stream, &op);
}

ptxgen_cu_result emu_cu_memset_d32_async(ptxgen_cu_deviceptr to, unsigned int value, size_t count,
                                         ptxgen_cu_stream stream)
{
    struct emu_op op = fill(to, value, 4, count);
    return emu_enqueue(stream, &op);
}

/* ---- queries ---- */

ptxgen_cu_result emu_cu_pointer_get_attribute(void *value, ptxgen_cu_pointer_attribute attribute,
                                              ptxgen_cu_deviceptr address)
{
    struct CUctx_st *context;
    ptxgen_cu_result result = emu_bound(&context);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (!value)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    pthread_rwlock_rdlock(&context->memory.lock);
    const struct emu_allocation *found = emu_memory_find(&context->memory, address);
    struct emu_allocation allocation = {0};
    if (found && found->data)
        allocation = *found;
    pthread_rwlock_unlock(&context->memory.lock);
    if (!allocation.data)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case PTXGEN_CU_POINTER_ATTRIBUTE_CONTEXT: memcpy(value, &context, sizeof context); break;
    case PTXGEN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned int *)value = PTXGEN_CU_MEMORYTYPE_DEVICE;
        break;
    case PTXGEN_CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(ptxgen_cu_deviceptr *)value = address; break;
    case PTXGEN_CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned int *)value = 0; break;
    case PTXGEN_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = context->ordinal; break;
    case PTXGEN_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(ptxgen_cu_deviceptr *)value = allocation.address;
        break;
    case PTXGEN_CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)value = (size_t)allocation.size; break;
    default: return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    }
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_tensor_map_encode_tiled(
    ptxgen_cu_tensor_map *map, ptxgen_cu_tensor_map_data_type type, uint32_t rank,
    void *global_address, const uint64_t *global_dim, const uint64_t *global_strides,
    const uint32_t *box_dim, const uint32_t *element_strides,
    ptxgen_cu_tensor_map_interleave interleave, ptxgen_cu_tensor_map_swizzle swizzle,
    ptxgen_cu_tensor_map_l2_promotion l2_promotion, ptxgen_cu_tensor_map_float_oob_fill oob_fill)
{
    struct CUctx_st *context = emu_thread_context();
    ptxgen_error err = {0};
    uint8_t bytes[EMU_TENSOR_MAP_BYTES];
    if (!map)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    emu_tensor_map_args args = {.type = type,
                                .rank = rank,
                                .address = (uint64_t)(uintptr_t)global_address,
                                .dims = global_dim,
                                .strides = global_strides,
                                .box = box_dim,
                                .element_strides = element_strides,
                                .interleave = interleave,
                                .swizzle = swizzle,
                                .l2_promotion = l2_promotion,
                                .oob_fill = oob_fill};
    ptxgen_status status = emu_tensor_map_encode_tiled(bytes, &args, &err);
    if (status == PTXGEN_OK) {
        memcpy(map->opaque, bytes, sizeof bytes);
        return PTXGEN_CUDA_SUCCESS;
    }
    if (context)
        emu_log(context, err.message);
    return status == PTXGEN_ERROR_UNSUPPORTED ? PTXGEN_CUDA_ERROR_NOT_SUPPORTED
                                              : PTXGEN_CUDA_ERROR_INVALID_VALUE;
}
