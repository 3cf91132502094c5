/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The part of the CUDA Driver API that ptxgen speaks: handles, constants and structs.
 *
 * These are our own declarations, so that building and using ptxgen needs no CUDA toolkit; a
 * test compares every one of them with cuda.h wherever a toolkit is present. Both headers may
 * be included in one file, in either order:
 *
 *  - Handles are pointers to the same incomplete structs that cuda.h names, hence the same
 *    types: a CUcontext, CUstream or cudaStream_t passes to ptxgen with no cast.
 *  - A constant is libcuda's name with PTXGEN_ in front: PTXGEN_CUDA_ERROR_NO_DEVICE is
 *    CUDA_ERROR_NO_DEVICE. Each enum is written as a list, `PTXGEN_CU_RESULTS(V)` and so on,
 *    so that a name table or a test can be made from it.
 *  - Structs have the layout of their cuda.h namesakes, and hold only the members used here.
 *
 * Nothing here has a lifetime, fails, or depends on a thread.
 */
#ifndef PTXGEN_DRIVER_TYPES_H
#define PTXGEN_DRIVER_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An ordinal handle from cuDeviceGet. */
typedef int ptxgen_cu_device;
/** A device address. The type is cuda.h's, whatever uint64_t is here. */
typedef unsigned long long ptxgen_cu_deviceptr;

typedef struct CUctx_st *ptxgen_cu_context;
typedef struct CUmod_st *ptxgen_cu_module;
typedef struct CUfunc_st *ptxgen_cu_function;
typedef struct CUstream_st *ptxgen_cu_stream;
typedef struct CUevent_st *ptxgen_cu_event;
typedef struct CUgraph_st *ptxgen_cu_graph;
typedef struct CUgraphNode_st *ptxgen_cu_graph_node;
typedef struct CUgraphExec_st *ptxgen_cu_graph_exec;
typedef struct CUlinkState_st *ptxgen_cu_link_state;

/** The two implicit streams by name; NULL is the first of them. */
#define PTXGEN_CU_STREAM_LEGACY ((ptxgen_cu_stream)0x1)
#define PTXGEN_CU_STREAM_PER_THREAD ((ptxgen_cu_stream)0x2)

#define PTXGEN_CU_ENUMERATOR(name, value) PTXGEN_##name = value,

/* clang-format off */
/** What every driver call returns. The driver may return values that are not listed here. */
#define PTXGEN_CU_RESULTS(V)                          \
    V(CUDA_SUCCESS, 0)                                \
    V(CUDA_ERROR_INVALID_VALUE, 1)                    \
    V(CUDA_ERROR_OUT_OF_MEMORY, 2)                    \
    V(CUDA_ERROR_NOT_INITIALIZED, 3)                  \
    V(CUDA_ERROR_DEINITIALIZED, 4)                    \
    V(CUDA_ERROR_STUB_LIBRARY, 34)                    \
    V(CUDA_ERROR_DEVICE_UNAVAILABLE, 46)              \
    V(CUDA_ERROR_NO_DEVICE, 100)                      \
    V(CUDA_ERROR_INVALID_DEVICE, 101)                 \
    V(CUDA_ERROR_INVALID_IMAGE, 200)                  \
    V(CUDA_ERROR_INVALID_CONTEXT, 201)                \
    V(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)              \
    V(CUDA_ERROR_INVALID_PTX, 218)                    \
    V(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221)         \
    V(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)        \
    V(CUDA_ERROR_JIT_COMPILATION_DISABLED, 223)       \
    V(CUDA_ERROR_INVALID_SOURCE, 300)                 \
    V(CUDA_ERROR_OPERATING_SYSTEM, 304)               \
    V(CUDA_ERROR_INVALID_HANDLE, 400)                 \
    V(CUDA_ERROR_ILLEGAL_STATE, 401)                  \
    V(CUDA_ERROR_NOT_FOUND, 500)                      \
    V(CUDA_ERROR_NOT_READY, 600)                      \
    V(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                \
    V(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)        \
    V(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                 \
    V(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, 708)         \
    V(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)           \
    V(CUDA_ERROR_ASSERT, 710)                         \
    V(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)           \
    V(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)            \
    V(CUDA_ERROR_MISALIGNED_ADDRESS, 716)             \
    V(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)          \
    V(CUDA_ERROR_INVALID_PC, 718)                     \
    V(CUDA_ERROR_LAUNCH_FAILED, 719)                  \
    V(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720)   \
    V(CUDA_ERROR_NOT_PERMITTED, 800)                  \
    V(CUDA_ERROR_NOT_SUPPORTED, 801)                  \
    V(CUDA_ERROR_SYSTEM_NOT_READY, 802)               \
    V(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)         \
    V(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804) \
    V(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)     \
    V(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)     \
    V(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902)           \
    V(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)       \
    V(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904)        \
    V(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905)       \
    V(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)        \
    V(CUDA_ERROR_CAPTURED_EVENT, 907)                 \
    V(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)    \
    V(CUDA_ERROR_TIMEOUT, 909)                        \
    V(CUDA_ERROR_UNKNOWN, 999)
typedef enum ptxgen_cu_result { PTXGEN_CU_RESULTS(PTXGEN_CU_ENUMERATOR) } ptxgen_cu_result;

/** What cuDeviceGetAttribute answers: bytes, kHz, bits, counts, or 0/1. */
#define PTXGEN_CU_DEVICE_ATTRIBUTES(V)                              \
    V(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                 \
    V(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2)                       \
    V(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3)                       \
    V(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 4)                       \
    V(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5)                        \
    V(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6)                        \
    V(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7)                        \
    V(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)           \
    V(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 9)                 \
    V(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                            \
    V(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 12)              \
    V(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                           \
    V(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                 \
    V(CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 17)                  \
    V(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18)                           \
    V(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 20)                         \
    V(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 31)                   \
    V(CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 32)                          \
    V(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 33)                           \
    V(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 34)                        \
    V(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                    \
    V(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)              \
    V(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                        \
    V(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)       \
    V(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                   \
    V(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 50)                        \
    V(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)             \
    V(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)             \
    V(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81) \
    V(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 82)     \
    V(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 95)                   \
    V(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)    \
    V(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 106)       \
    V(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 108)        \
    V(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 111)    \
    V(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)              \
    V(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 120)                      \
    V(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 127)
typedef enum ptxgen_cu_device_attribute {
    PTXGEN_CU_DEVICE_ATTRIBUTES(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_device_attribute;

/** What cuFuncGetAttribute answers and, from MAX_DYNAMIC_SHARED on, cuFuncSetAttribute takes. */
#define PTXGEN_CU_FUNCTION_ATTRIBUTES(V)                     \
    V(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)            \
    V(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                \
    V(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 2)                 \
    V(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                 \
    V(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                         \
    V(CU_FUNC_ATTRIBUTE_PTX_VERSION, 5)                      \
    V(CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6)                   \
    V(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, 7)                    \
    V(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)    \
    V(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 9) \
    V(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, 10)        \
    V(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 11)          \
    V(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 12)         \
    V(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 13)          \
    V(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 14)
typedef enum ptxgen_cu_function_attribute {
    PTXGEN_CU_FUNCTION_ATTRIBUTES(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_function_attribute;

#define PTXGEN_CU_FUNCTION_CACHES(V)  \
    V(CU_FUNC_CACHE_PREFER_NONE, 0)   \
    V(CU_FUNC_CACHE_PREFER_SHARED, 1) \
    V(CU_FUNC_CACHE_PREFER_L1, 2)     \
    V(CU_FUNC_CACHE_PREFER_EQUAL, 3)
typedef enum ptxgen_cu_function_cache {
    PTXGEN_CU_FUNCTION_CACHES(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_function_cache;

/**
 * Options of the driver's assembler and linker. A value travels in a void *: integers by value,
 * buffers as the pointer itself; a log's size goes in as its capacity and comes back as the
 * number of bytes written.
 */
#define PTXGEN_CU_JIT_OPTIONS(V)                \
    V(CU_JIT_MAX_REGISTERS, 0)                  \
    V(CU_JIT_THREADS_PER_BLOCK, 1)              \
    V(CU_JIT_WALL_TIME, 2)                      \
    V(CU_JIT_INFO_LOG_BUFFER, 3)                \
    V(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, 4)     \
    V(CU_JIT_ERROR_LOG_BUFFER, 5)               \
    V(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)    \
    V(CU_JIT_OPTIMIZATION_LEVEL, 7)             \
    V(CU_JIT_TARGET_FROM_CUCONTEXT, 8)          \
    V(CU_JIT_TARGET, 9)                         \
    V(CU_JIT_FALLBACK_STRATEGY, 10)             \
    V(CU_JIT_GENERATE_DEBUG_INFO, 11)           \
    V(CU_JIT_LOG_VERBOSE, 12)                   \
    V(CU_JIT_GENERATE_LINE_INFO, 13)            \
    V(CU_JIT_CACHE_MODE, 14)
typedef enum ptxgen_cu_jit_option { PTXGEN_CU_JIT_OPTIONS(PTXGEN_CU_ENUMERATOR) } ptxgen_cu_jit_option;

#define PTXGEN_CU_JIT_INPUT_TYPES(V) \
    V(CU_JIT_INPUT_CUBIN, 0)         \
    V(CU_JIT_INPUT_PTX, 1)           \
    V(CU_JIT_INPUT_FATBINARY, 2)     \
    V(CU_JIT_INPUT_OBJECT, 3)        \
    V(CU_JIT_INPUT_LIBRARY, 4)
typedef enum ptxgen_cu_jit_input_type {
    PTXGEN_CU_JIT_INPUT_TYPES(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_jit_input_type;

#define PTXGEN_CU_POINTER_ATTRIBUTES(V)           \
    V(CU_POINTER_ATTRIBUTE_CONTEXT, 1)            \
    V(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)        \
    V(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3)     \
    V(CU_POINTER_ATTRIBUTE_HOST_POINTER, 4)       \
    V(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)         \
    V(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)     \
    V(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)  \
    V(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)
typedef enum ptxgen_cu_pointer_attribute {
    PTXGEN_CU_POINTER_ATTRIBUTES(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_pointer_attribute;

#define PTXGEN_CU_MEMORY_TYPES(V) \
    V(CU_MEMORYTYPE_HOST, 1)      \
    V(CU_MEMORYTYPE_DEVICE, 2)    \
    V(CU_MEMORYTYPE_ARRAY, 3)     \
    V(CU_MEMORYTYPE_UNIFIED, 4)
typedef enum ptxgen_cu_memory_type {
    PTXGEN_CU_MEMORY_TYPES(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_memory_type;

#define PTXGEN_CU_CAPTURE_MODES(V)              \
    V(CU_STREAM_CAPTURE_MODE_GLOBAL, 0)         \
    V(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)   \
    V(CU_STREAM_CAPTURE_MODE_RELAXED, 2)
typedef enum ptxgen_cu_capture_mode {
    PTXGEN_CU_CAPTURE_MODES(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_capture_mode;

#define PTXGEN_CU_CAPTURE_STATUSES(V)           \
    V(CU_STREAM_CAPTURE_STATUS_NONE, 0)         \
    V(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)       \
    V(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)
typedef enum ptxgen_cu_capture_status {
    PTXGEN_CU_CAPTURE_STATUSES(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_capture_status;

#define PTXGEN_CU_PROC_ADDRESS_RESULTS(V)             \
    V(CU_GET_PROC_ADDRESS_SUCCESS, 0)                 \
    V(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 1)        \
    V(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, 2)
typedef enum ptxgen_cu_proc_address_result {
    PTXGEN_CU_PROC_ADDRESS_RESULTS(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_proc_address_result;

/** Flag words of the calls that take an unsigned int. */
#define PTXGEN_CU_FLAGS(V)                  \
    V(CU_CTX_SCHED_AUTO, 0)                 \
    V(CU_CTX_SCHED_SPIN, 1)                 \
    V(CU_CTX_SCHED_YIELD, 2)                \
    V(CU_CTX_SCHED_BLOCKING_SYNC, 4)        \
    V(CU_STREAM_DEFAULT, 0)                 \
    V(CU_STREAM_NON_BLOCKING, 1)            \
    V(CU_EVENT_DEFAULT, 0)                  \
    V(CU_EVENT_BLOCKING_SYNC, 1)            \
    V(CU_EVENT_DISABLE_TIMING, 2)           \
    V(CU_EVENT_WAIT_DEFAULT, 0)             \
    V(CU_OCCUPANCY_DEFAULT, 0)              \
    V(CU_MEMHOSTALLOC_PORTABLE, 1)          \
    V(CU_MEMHOSTALLOC_DEVICEMAP, 2)         \
    V(CU_MEMHOSTALLOC_WRITECOMBINED, 4)     \
    V(CU_GET_PROC_ADDRESS_DEFAULT, 0)
enum { PTXGEN_CU_FLAGS(PTXGEN_CU_ENUMERATOR) };

#define PTXGEN_CU_TENSOR_MAP_DATA_TYPES(V)      \
    V(CU_TENSOR_MAP_DATA_TYPE_UINT8, 0)         \
    V(CU_TENSOR_MAP_DATA_TYPE_UINT16, 1)        \
    V(CU_TENSOR_MAP_DATA_TYPE_UINT32, 2)        \
    V(CU_TENSOR_MAP_DATA_TYPE_INT32, 3)         \
    V(CU_TENSOR_MAP_DATA_TYPE_UINT64, 4)        \
    V(CU_TENSOR_MAP_DATA_TYPE_INT64, 5)         \
    V(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 6)       \
    V(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 7)       \
    V(CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8)       \
    V(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 9)      \
    V(CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, 10)  \
    V(CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, 11)     \
    V(CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, 12)
typedef enum ptxgen_cu_tensor_map_data_type {
    PTXGEN_CU_TENSOR_MAP_DATA_TYPES(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_tensor_map_data_type;

#define PTXGEN_CU_TENSOR_MAP_INTERLEAVES(V) \
    V(CU_TENSOR_MAP_INTERLEAVE_NONE, 0)     \
    V(CU_TENSOR_MAP_INTERLEAVE_16B, 1)      \
    V(CU_TENSOR_MAP_INTERLEAVE_32B, 2)
typedef enum ptxgen_cu_tensor_map_interleave {
    PTXGEN_CU_TENSOR_MAP_INTERLEAVES(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_tensor_map_interleave;

#define PTXGEN_CU_TENSOR_MAP_SWIZZLES(V) \
    V(CU_TENSOR_MAP_SWIZZLE_NONE, 0)     \
    V(CU_TENSOR_MAP_SWIZZLE_32B, 1)      \
    V(CU_TENSOR_MAP_SWIZZLE_64B, 2)      \
    V(CU_TENSOR_MAP_SWIZZLE_128B, 3)
typedef enum ptxgen_cu_tensor_map_swizzle {
    PTXGEN_CU_TENSOR_MAP_SWIZZLES(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_tensor_map_swizzle;

#define PTXGEN_CU_TENSOR_MAP_L2_PROMOTIONS(V)  \
    V(CU_TENSOR_MAP_L2_PROMOTION_NONE, 0)      \
    V(CU_TENSOR_MAP_L2_PROMOTION_L2_64B, 1)    \
    V(CU_TENSOR_MAP_L2_PROMOTION_L2_128B, 2)   \
    V(CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 3)
typedef enum ptxgen_cu_tensor_map_l2_promotion {
    PTXGEN_CU_TENSOR_MAP_L2_PROMOTIONS(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_tensor_map_l2_promotion;

#define PTXGEN_CU_TENSOR_MAP_FLOAT_OOB_FILLS(V) \
    V(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, 0)     \
    V(CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA, 1)
typedef enum ptxgen_cu_tensor_map_float_oob_fill {
    PTXGEN_CU_TENSOR_MAP_FLOAT_OOB_FILLS(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_tensor_map_float_oob_fill;

#define PTXGEN_CU_LAUNCH_ATTRIBUTES(V)                              \
    V(CU_LAUNCH_ATTRIBUTE_IGNORE, 0)                                \
    V(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, 1)                  \
    V(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                           \
    V(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                     \
    V(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 5)  \
    V(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)     \
    V(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, 7)                    \
    V(CU_LAUNCH_ATTRIBUTE_PRIORITY, 8)
typedef enum ptxgen_cu_launch_attribute_id {
    PTXGEN_CU_LAUNCH_ATTRIBUTES(PTXGEN_CU_ENUMERATOR)
} ptxgen_cu_launch_attribute_id;
/* clang-format on */

typedef struct ptxgen_cu_uuid {
    char bytes[16];
} ptxgen_cu_uuid;

/** Value of a launch attribute; the member is the one that its id names. */
typedef union ptxgen_cu_launch_attribute_value {
    char pad[64];
    int cooperative;
    struct {
        unsigned int x, y, z;
    } cluster_dim;
    int programmatic_stream_serialization_allowed;
    struct {
        ptxgen_cu_event event;
        int flags;
        int trigger_at_block_start;
    } programmatic_event;
    int priority;
} ptxgen_cu_launch_attribute_value;

typedef struct ptxgen_cu_launch_attribute {
    ptxgen_cu_launch_attribute_id id;
    char pad[4];
    ptxgen_cu_launch_attribute_value value;
} ptxgen_cu_launch_attribute;

typedef struct ptxgen_cu_launch_config {
    unsigned int grid_dim_x, grid_dim_y, grid_dim_z;
    unsigned int block_dim_x, block_dim_y, block_dim_z;
    unsigned int shared_mem_bytes;
    ptxgen_cu_stream stream;
    ptxgen_cu_launch_attribute *attributes;
    unsigned int attribute_count;
} ptxgen_cu_launch_config;

/** A TMA descriptor: 128 opaque bytes that go to a kernel as a by-value parameter. */
typedef struct ptxgen_cu_tensor_map {
#ifdef __cplusplus
    alignas(128)
#else
    _Alignas(128)
#endif
        uint64_t opaque[16];
} ptxgen_cu_tensor_map;

#ifdef __cplusplus
}
#endif
#endif
