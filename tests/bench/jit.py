# SPDX-License-Identifier: Apache-2.0
"""How long the driver takes to assemble PTX files, of any target that the device runs.

Each is loaded seven times, turn about with the others, without the driver's cache; the least, the
median and the most, in milliseconds. A host whose cores are shared varies by half and more: the
least is nearest to the assembler's own time.

    ptxgen emit dense --n 4096 --k 4096 --m 4096 --target sm_80 -o dense.ptx
    python3 jit.py dense.ptx [...]
"""
import ctypes
import os
import statistics
import sys
import time

LOADS = 7


def check(status, what):
    if status:
        sys.exit(f"{what}: CUDA error {status}")


def open_context():
    os.environ["CUDA_CACHE_DISABLE"] = "1"
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    check(cuda.cuInit(0), "cuInit")
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    return cuda


def time_load(cuda, path):
    with open(path, "rb") as file:
        ptx = file.read() + b"\0"
    module = ctypes.c_void_p()
    start = time.perf_counter()
    check(cuda.cuModuleLoadData(ctypes.byref(module), ptx), path)
    took = time.perf_counter() - start
    check(cuda.cuModuleUnload(module), path)
    return took * 1e3


def main(paths):
    if not paths:
        sys.exit(__doc__)
    cuda = open_context()
    times = {path: [] for path in paths}
    for _ in range(LOADS):
        for path in paths:
            times[path].append(time_load(cuda, path))
    for path, of_path in times.items():
        name = os.path.basename(path)
        print(f"{name}: {min(of_path):.1f}, {statistics.median(of_path):.1f}, {max(of_path):.1f} ms")


main(sys.argv[1:])
