#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package on a GPU with PyTorch's and CuPy's arrays and streams, without a copy.

    PYTHONPATH=… python3 tests/gpu/python_arrays.py    # needs PyTorch and CuPy; the package as pip installs it
"""
import pathlib

import cupy
import numpy
import torch

import ptxgen

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


def check(name: str, right: bool) -> bool:
    print(f"{'ok' if right else 'WRONG'}: {name}", flush=True)
    return right


def dense(device: ptxgen.Device, dtype: torch.dtype, type: str, stream: torch.cuda.Stream) -> bool:
    m, n, k = 33, 512, 1024
    buffer = torch.randn(m, 2 * k, device="cuda", dtype=dtype)
    x, w = buffer[:, k:], torch.randn(n, k, device="cuda", dtype=dtype)  # rows 2k apart
    kernel = device.dispatch("dense", n=n, k=k, type=type)
    y = torch.full((m, n), float("nan"), device="cuda", dtype=dtype)
    stream.wait_stream(torch.cuda.current_stream())
    kernel.launch(x=x, w=w, y=y, stream=stream)
    stream.synchronize()
    wanted = (x.double() @ w.double().T)
    return ((y.double() - wanted).abs() <= 2 ** -8 * wanted.abs() + 0.05).all().item()


def gptq_layer(device: ptxgen.Device) -> bool:
    files = ptxgen.Files(GOLDEN / "marlin_g128.safetensors")
    layer = ptxgen.Linear.from_layer(device, files, "gptq")
    x, wanted = (torch.tensor(files[name].copy(), device="cuda") for name in ("A", "C"))
    y = layer(x, stream=torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        z = layer(x, stream=torch.cuda.current_stream())
    z.zero_()
    graph.replay()
    torch.cuda.synchronize()
    close = ((y.double() - wanted.double()).abs().max() <= 2e-3 * wanted.double().abs().max()).item()
    return close and torch.equal(y, z)


def gguf_layer(device: ptxgen.Device) -> bool:
    files = ptxgen.Files(GOLDEN / "gguf_products.gguf")
    layer = ptxgen.Linear.from_layer(device, files, "q6_k", type="f32")
    x, wanted = (torch.tensor(files[name].copy(), device="cuda") for name in ("input", "q6_k.y"))
    few, many = layer(x), layer(x.repeat(8, 1))  # of 5 and of 40 rows
    torch.cuda.synchronize()
    return all((y - wanted).abs().max().item() <= 1e-5 * wanted.abs().max().item() for y in (few, many[:5], many[-5:]))


def cupy_layer(device: ptxgen.Device) -> bool:
    files = ptxgen.Files(GOLDEN / "marlin_g128.safetensors")
    layer = ptxgen.Linear.from_layer(device, files, "gptq")
    x, wanted = cupy.asarray(files["A"]), files["C"].astype("f8")
    wide = cupy.full((x.shape[0], x.shape[1] + 8), cupy.nan, x.dtype)  # rows further apart than they are long
    wide[:, :-8] = x
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    y = cupy.full(wanted.shape, cupy.nan, x.dtype)
    layer(wide[:, :-8], y, stream=stream)
    made = layer(x, stream=stream)
    stream.synchronize()
    y, made = cupy.asnumpy(y), cupy.asnumpy(cupy.asarray(made))
    return bool(numpy.abs(y.astype("f8") - wanted).max() <= 2e-3 * numpy.abs(wanted).max()) and (y == made).all()


def main() -> int:
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    with ptxgen.Device("gpu", cache=False) as device:
        print(device.name)
        stream = torch.cuda.Stream()
        right = check("dense f16, a slice of columns, on a stream", dense(device, torch.float16, "f16", stream))
        right &= check("dense bf16", dense(device, torch.bfloat16, "bf16", stream))
        right &= check("a GPTQ layer of a file, and in a graph", gptq_layer(device))
        right &= check("a Q6_K layer of a file in f32, few and many rows", gguf_layer(device))
        right &= check("a GPTQ layer on CuPy's arrays and stream", cupy_layer(device))
    return 0 if right else 1


raise SystemExit(main())
