#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ptxgen from Python by ctypes, on PyTorch's tensors: no copies, on PyTorch's current stream.

    LIBPTXGEN=libptxgen.so python3 torch_rmsnorm_q4k.py           # on a GPU, with PyTorch
    LIBPTXGEN=libptxgen.so python3 torch_rmsnorm_q4k.py --check   # declarations and planning only

A layer y = W · rmsnorm(x), W in Q4_K, is dispatched, launched, captured into a CUDA graph with
PyTorch's own kernels around it, and compared with the library's reference.
"""
import ctypes as c
import os
import sys

K, N, EPSILON, TOKENS = 1024, 256, 1e-6, 4
F32, F16 = 0, 1
Q4_K = c.c_uint32(12)  # ptxgen_gguf_type


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("message", c.c_char * 1024)]


class Spec(c.Structure):
    _fields_ = [("k", c.c_uint32), ("n", c.c_uint32 * 3), ("epsilon", c.c_float),
                ("max_m", c.c_uint32), ("x_type", c.c_uint8), ("y_type", c.c_uint8),
                ("epilogue", c.c_uint8), ("bias", c.c_uint8), ("residual", c.c_uint8),
                ("residual_out", c.c_uint8), ("reserved", c.c_uint8 * 2)]


class Args(c.Structure):
    _fields_ = [("m", c.c_uint64), ("x", c.c_uint64), ("residual", c.c_uint64),
                ("residual_out", c.c_uint64), ("gamma", c.c_uint64), ("w", c.c_uint64 * 3),
                ("bias", c.c_uint64 * 3), ("y", c.c_uint64 * 3), ("x_stride", c.c_uint64),
                ("residual_stride", c.c_uint64), ("residual_out_stride", c.c_uint64),
                ("y_stride", c.c_uint64 * 3), ("overlap_previous", c.c_uint32)]


class Operands(c.Structure):
    _fields_ = [("m", c.c_uint64), ("x", c.c_void_p), ("residual", c.c_void_p),
                ("gamma", c.c_void_p), ("w", c.c_void_p * 3), ("bias", c.c_void_p * 3),
                ("x_stride", c.c_uint64), ("residual_stride", c.c_uint64)]


lib = c.CDLL(os.environ.get("LIBPTXGEN", "libptxgen.so"))
lib.ptxgen_rmsnorm_q4k_destroy.restype = None
lib.ptxgen_dispatcher_destroy.restype = None
lib.ptxgen_dispatcher_target.restype = c.c_void_p
lib.ptxgen_rmsnorm_q4k_agrees.restype = c.c_bool
lib.ptxgen_rmsnorm_q4k_agrees.argtypes = [c.c_double] * 3


def call(name, *arguments):
    """Calls a function whose last parameter is the error; a failure is an exception."""
    err = Error()
    if getattr(lib, name)(*arguments, c.byref(err)) != 0:
        raise RuntimeError(err.message.decode())


class Dispatcher:
    """The registry of the CUDA context that is current here, PyTorch's."""

    def __init__(self):
        self.driver = c.create_string_buffer(16384)  # a ptxgen_driver, which is smaller
        self.handle = c.c_void_p()
        call("ptxgen_driver_open", self.driver, None)
        call("ptxgen_dispatcher_create", self.driver, None, c.byref(self.handle))

    def rmsnorm_q4k(self, spec):
        kernel = c.c_void_p()
        call("ptxgen_rmsnorm_q4k_dispatch", self.handle, c.byref(spec), c.byref(kernel))
        return kernel

    def close(self):
        lib.ptxgen_dispatcher_destroy(self.handle)
        lib.ptxgen_driver_close(self.driver)


def make_spec():
    return Spec(k=K, n=(N, 0, 0), epsilon=EPSILON, max_m=TOKENS, x_type=F16, y_type=F16)


def quantise(rows):
    """Q4_K bytes of rows of floats, as a GGUF file has them."""
    row_bytes = c.c_size_t()
    call("ptxgen_gguf_row_bytes", Q4_K, c.c_size_t(K), c.byref(row_bytes))
    packed = c.create_string_buffer(row_bytes.value * len(rows))
    for i, row in enumerate(rows):
        call("ptxgen_gguf_quantise_row", Q4_K, (c.c_float * K)(*row), c.c_size_t(K),
             c.byref(packed, i * row_bytes.value), row_bytes)
    return packed


def launch(kernel, x, gamma, weights, y):
    """Enqueues on PyTorch's current stream; the tensors' memory is used where it is."""
    import torch
    args = Args(x=x.data_ptr(), gamma=gamma.data_ptr(), w=(weights.data_ptr(), 0, 0),
                y=(y.data_ptr(), 0, 0), x_stride=x.stride(0), y_stride=(y.stride(0), 0, 0),
                m=x.shape[0])
    stream = c.c_void_p(torch.cuda.current_stream().cuda_stream)
    call("ptxgen_rmsnorm_q4k_launch", kernel, c.byref(args), stream)


def check(plan, packed, x, gamma, y):
    """How many of y are within the reference's bound of what they should be."""
    wanted, bound = (c.c_double * (TOKENS * N))(), (c.c_double * (TOKENS * N))()
    operands = Operands(x=x.data_ptr(), gamma=gamma.data_ptr(),
                        w=(c.addressof(packed), None, None), m=TOKENS)
    call("ptxgen_rmsnorm_q4k_reference", plan, c.byref(operands), 0, 0, N, wanted, bound, None)
    got = y.double().flatten().tolist()
    return sum(lib.ptxgen_rmsnorm_q4k_agrees(g, w, b) for g, w, b in zip(got, wanted, bound))


def run_on_gpu():
    import torch
    torch.manual_seed(0)
    x = torch.randn(TOKENS, K, device="cuda", dtype=torch.float16)
    gamma = torch.rand(K, device="cuda") + 0.5
    packed = quantise(torch.randn(N, K).tolist())
    weights = torch.frombuffer(bytearray(packed.raw), dtype=torch.uint8).cuda()
    y = torch.zeros(TOKENS, N, device="cuda", dtype=torch.float16)

    dispatcher = Dispatcher()
    spec = make_spec()
    kernel = dispatcher.rmsnorm_q4k(spec)
    launch(kernel, x, gamma, weights, y)
    torch.cuda.synchronize()
    plan = c.create_string_buffer(4096)  # a ptxgen_rmsnorm_q4k_plan, which is smaller
    target = c.c_void_p(lib.ptxgen_dispatcher_target(dispatcher.handle))
    call("ptxgen_rmsnorm_q4k_make_plan", c.byref(spec), target, plan)
    right = check(plan, packed, x.cpu(), gamma.cpu(), y.cpu())
    print(f"{right} of {TOKENS * N} outputs are within their bounds")

    doubled = torch.empty_like(y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch(kernel, x, gamma, weights, y)
        torch.mul(y, 2, out=doubled)
    once = y.clone()
    y.zero_()
    graph.replay()
    torch.cuda.synchronize()
    same = torch.equal(once, y) and torch.equal(doubled, once * 2)
    print("the graph gave the same bits" if same else "the graph gave OTHER bits")
    del graph  # it holds launches of the kernel
    lib.ptxgen_rmsnorm_q4k_destroy(kernel)
    dispatcher.close()
    return right == TOKENS * N and same


def check_declarations():
    """What needs neither PyTorch nor a GPU: a plan for sm_80, and the quantiser and reference."""
    target, plan, spec = c.create_string_buffer(256), c.create_string_buffer(4096), make_spec()
    call("ptxgen_target_parse", b"sm_80", target)
    call("ptxgen_rmsnorm_q4k_make_plan", c.byref(spec), target, plan)
    packed = quantise([[(i * j) % 7 - 3.0 for j in range(K)] for i in range(2)])
    x, gamma = (c.c_uint16 * K)(*[0x3C00] * K), (c.c_float * K)(*[1.0] * K)
    operands = Operands(x=c.addressof(x), gamma=c.addressof(gamma),
                        w=(c.addressof(packed), None, None), m=1)
    wanted = (c.c_double * 2)()
    call("ptxgen_rmsnorm_q4k_reference", plan, c.byref(operands), 0, 0, 2, wanted, None, None)
    print(f"rows sum to {wanted[0]:.3f} and {wanted[1]:.3f}")
    return abs(wanted[0] + 3 * K) < 0.01 * K and abs(wanted[1]) < 0.1 * K


if __name__ == "__main__":
    sys.exit(0 if (check_declarations() if "--check" in sys.argv else run_on_gpu()) else 1)
