/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our declarations against cuda.h: every constant, every struct, every call's signature and the
 * CUDA version that brought it. Compiling this file is the test; running it prints the counts.
 */
#include <ptxgen/driver.h>

#include <cuda.h>
#include <cudaTypedefs.h>

#include <stddef.h>
#include <stdio.h>

/* ---- constants ---- */

#define ALL_CONSTANTS(V)                                                                           \
    PTXGEN_CU_RESULTS(V)                                                                           \
    PTXGEN_CU_DEVICE_ATTRIBUTES(V)                                                                 \
    PTXGEN_CU_FUNCTION_ATTRIBUTES(V)                                                               \
    PTXGEN_CU_FUNCTION_CACHES(V)                                                                   \
    PTXGEN_CU_JIT_OPTIONS(V)                                                                       \
    PTXGEN_CU_JIT_INPUT_TYPES(V)                                                                   \
    PTXGEN_CU_POINTER_ATTRIBUTES(V)                                                                \
    PTXGEN_CU_MEMORY_TYPES(V)                                                                      \
    PTXGEN_CU_CAPTURE_MODES(V)                                                                     \
    PTXGEN_CU_CAPTURE_STATUSES(V)                                                                  \
    PTXGEN_CU_PROC_ADDRESS_RESULTS(V)                                                              \
    PTXGEN_CU_FLAGS(V)                                                                             \
    PTXGEN_CU_TENSOR_MAP_DATA_TYPES(V)                                                             \
    PTXGEN_CU_TENSOR_MAP_INTERLEAVES(V)                                                            \
    PTXGEN_CU_TENSOR_MAP_SWIZZLES(V)                                                               \
    PTXGEN_CU_TENSOR_MAP_L2_PROMOTIONS(V)                                                          \
    PTXGEN_CU_TENSOR_MAP_FLOAT_OOB_FILLS(V)                                                        \
    PTXGEN_CU_LAUNCH_ATTRIBUTES(V)

#define SAME_CONSTANT(name, value)                                                                 \
    _Static_assert((int)PTXGEN_##name == (int)name, #name " differs from cuda.h");
ALL_CONSTANTS(SAME_CONSTANT)

/* ---- types ---- */

#define SAME_TYPE(ours, theirs)                                                                    \
    _Static_assert(__builtin_types_compatible_p(ours, theirs), #ours " is not " #theirs)
SAME_TYPE(ptxgen_cu_device, CUdevice);
SAME_TYPE(ptxgen_cu_deviceptr, CUdeviceptr);
SAME_TYPE(ptxgen_cu_context, CUcontext);
SAME_TYPE(ptxgen_cu_module, CUmodule);
SAME_TYPE(ptxgen_cu_function, CUfunction);
SAME_TYPE(ptxgen_cu_stream, CUstream);
SAME_TYPE(ptxgen_cu_event, CUevent);
SAME_TYPE(ptxgen_cu_graph, CUgraph);
SAME_TYPE(ptxgen_cu_graph_node, CUgraphNode);
SAME_TYPE(ptxgen_cu_graph_exec, CUgraphExec);
SAME_TYPE(ptxgen_cu_link_state, CUlinkState);

#define SAME_SIZE(ours, theirs)                                                                    \
    _Static_assert(sizeof(ours) == sizeof(theirs), "size of " #ours " is not " #theirs "'s");      \
    _Static_assert(_Alignof(ours) >= _Alignof(theirs), #ours " is aligned less than " #theirs)
SAME_SIZE(ptxgen_cu_result, CUresult);
SAME_SIZE(ptxgen_cu_device_attribute, CUdevice_attribute);
SAME_SIZE(ptxgen_cu_jit_option, CUjit_option);
SAME_SIZE(ptxgen_cu_capture_status, CUstreamCaptureStatus);
SAME_SIZE(ptxgen_cu_proc_address_result, CUdriverProcAddressQueryResult);
SAME_SIZE(ptxgen_cu_memory_type, CUmemorytype);
SAME_SIZE(ptxgen_cu_uuid, CUuuid);
SAME_SIZE(ptxgen_cu_tensor_map, CUtensorMap);
SAME_SIZE(ptxgen_cu_launch_attribute_value, CUlaunchAttributeValue);
SAME_SIZE(ptxgen_cu_launch_attribute, CUlaunchAttribute);
SAME_SIZE(ptxgen_cu_launch_config, CUlaunchConfig);

#define MEMBER_SIZE(type, member) sizeof(((type *)0)->member)
#define SAME_MEMBER(ours, our_member, theirs, their_member)                                        \
    _Static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) &&                 \
                       MEMBER_SIZE(ours, our_member) == MEMBER_SIZE(theirs, their_member),         \
                   #ours "." #our_member " is not where cuda.h has " #their_member)
#define CONFIG(our_member, their_member)                                                           \
    SAME_MEMBER(ptxgen_cu_launch_config, our_member, CUlaunchConfig, their_member)
CONFIG(grid_dim_x, gridDimX);
CONFIG(grid_dim_y, gridDimY);
CONFIG(grid_dim_z, gridDimZ);
CONFIG(block_dim_x, blockDimX);
CONFIG(block_dim_y, blockDimY);
CONFIG(block_dim_z, blockDimZ);
CONFIG(shared_mem_bytes, sharedMemBytes);
CONFIG(stream, hStream);
CONFIG(attributes, attrs);
CONFIG(attribute_count, numAttrs);
SAME_MEMBER(ptxgen_cu_launch_attribute, id, CUlaunchAttribute, id);
SAME_MEMBER(ptxgen_cu_launch_attribute, value, CUlaunchAttribute, value);
#define VALUE(our_member, their_member)                                                            \
    SAME_MEMBER(ptxgen_cu_launch_attribute_value, our_member, CUlaunchAttributeValue, their_member)
VALUE(cooperative, cooperative);
VALUE(cluster_dim, clusterDim);
VALUE(cluster_dim.x, clusterDim.x);
VALUE(cluster_dim.y, clusterDim.y);
VALUE(cluster_dim.z, clusterDim.z);
VALUE(programmatic_stream_serialization_allowed, programmaticStreamSerializationAllowed);
VALUE(programmatic_event.event, programmaticEvent.event);
VALUE(programmatic_event.flags, programmaticEvent.flags);
VALUE(programmatic_event.trigger_at_block_start, programmaticEvent.triggerAtBlockStart);
VALUE(priority, priority);
SAME_MEMBER(ptxgen_cu_tensor_map, opaque, CUtensorMap, opaque);

/*
 * ---- calls ----
 *
 * The list again, with our enum and struct names standing for cuda.h's, so that each signature
 * must be cuda.h's to the letter. The names PFN_…_v<since> carry the version as well.
 */
#define ptxgen_cu_result CUresult
#define ptxgen_cu_device_attribute CUdevice_attribute
#define ptxgen_cu_function_attribute CUfunction_attribute
#define ptxgen_cu_function_cache CUfunc_cache
#define ptxgen_cu_jit_option CUjit_option
#define ptxgen_cu_jit_input_type CUjitInputType
#define ptxgen_cu_pointer_attribute CUpointer_attribute
#define ptxgen_cu_capture_mode CUstreamCaptureMode
#define ptxgen_cu_capture_status CUstreamCaptureStatus
#define ptxgen_cu_proc_address_result CUdriverProcAddressQueryResult
#define ptxgen_cu_uuid CUuuid
#define ptxgen_cu_launch_config CUlaunchConfig
#define ptxgen_cu_tensor_map CUtensorMap
#define ptxgen_cu_tensor_map_data_type CUtensorMapDataType
#define ptxgen_cu_tensor_map_interleave CUtensorMapInterleave
#define ptxgen_cu_tensor_map_swizzle CUtensorMapSwizzle
#define ptxgen_cu_tensor_map_l2_promotion CUtensorMapL2promotion
#define ptxgen_cu_tensor_map_float_oob_fill CUtensorMapFloatOOBfill

#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    typedef ptxgen_cu_result(*our_##member) parameters;                                            \
    _Static_assert(__builtin_types_compatible_p(our_##member, PFN_##name##_v##since),              \
                   #name " differs from cuda.h");
#include <ptxgen/driver_calls.def>

#define COUNT(...) +1

int main(void)
{
    const int constants = ALL_CONSTANTS(COUNT);
#define PTXGEN_DRIVER_CALL(...) +1
    const int calls =
#include <ptxgen/driver_calls.def>
        ;
    printf("%d constants and %d calls are as in cuda.h of CUDA %d.%d\n", constants, calls,
           CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    return 0;
}
