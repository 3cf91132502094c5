/* SPDX-License-Identifier: Apache-2.0 */
/* As much of CUDA C as these programs use, for clang without the CUDA headers. */
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __noinline__ __attribute__((noinline))

struct index3 {
    unsigned x, y, z;
};
#define threadIdx                                                                                  \
    (index3{(unsigned)__nvvm_read_ptx_sreg_tid_x(), (unsigned)__nvvm_read_ptx_sreg_tid_y(),        \
            (unsigned)__nvvm_read_ptx_sreg_tid_z()})
#define blockIdx                                                                                   \
    (index3{(unsigned)__nvvm_read_ptx_sreg_ctaid_x(), (unsigned)__nvvm_read_ptx_sreg_ctaid_y(),    \
            (unsigned)__nvvm_read_ptx_sreg_ctaid_z()})
#define blockDim                                                                                   \
    (index3{(unsigned)__nvvm_read_ptx_sreg_ntid_x(), (unsigned)__nvvm_read_ptx_sreg_ntid_y(),      \
            (unsigned)__nvvm_read_ptx_sreg_ntid_z()})
#define gridDim                                                                                    \
    (index3{(unsigned)__nvvm_read_ptx_sreg_nctaid_x(), (unsigned)__nvvm_read_ptx_sreg_nctaid_y(),  \
            (unsigned)__nvvm_read_ptx_sreg_nctaid_z()})
#define __syncthreads() __nvvm_bar_sync(0)

static __device__ inline int __shfl_up_sync(unsigned mask, int value, int step)
{
    return __nvvm_shfl_sync_up_i32(mask, value, step, 0);
}
static __device__ inline float __shfl_xor_sync(unsigned mask, float value, int step)
{
    return __nvvm_shfl_sync_bfly_f32(mask, value, step, 31);
}
static __device__ inline float __shfl_down_sync(unsigned mask, float value, int step)
{
    return __nvvm_shfl_sync_down_f32(mask, value, step, 31);
}
static __device__ inline float atomicAdd(float *at, float value)
{
    return __nvvm_atom_add_gen_f(at, value);
}
static __device__ inline unsigned atomicAdd(unsigned *at, unsigned value)
{
    return (unsigned)__nvvm_atom_add_gen_i((int *)at, (int)value);
}
