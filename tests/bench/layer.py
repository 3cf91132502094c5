#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A layer of Llama-3.1-8B in 8 bits: activations that are quantised once, beside products that each quantise.

    PYTHONPATH=… python3 tests/bench/layer.py [M[,M…]]        needs PyTorch, and the Python package

"once": RMSNorm with the residual and codes in one kernel, q, k, v as one product, codes, o, the same for gate and up,
which are one product with SwiGLU, codes, down: 4 products and 4 kernels ahead. "each": q, k, v, o, gate, up and down
quantise for themselves, with neither norms nor SwiGLU, which other kernels would have to do. A CUDA graph of all
layers, with weights worth more than four L2s, and launches that overlap; the median of replays, for one layer.
"floor": the bytes of the weights at the rate at which they can be read.
"""
import statistics
import sys
import time

import torch

import ptxgen

LAYERS, K, QKV, FFN, REPLAYS = 8, 4096, 6144, 14336, 15


def codes(rows: int, columns: int) -> torch.Tensor:
    return torch.randint(-127, 128, (rows, columns), device="cuda", dtype=torch.int8)


def read_rate() -> float:
    """Bytes a second of a sum over 4 GB."""
    block = torch.empty(1 << 30, device="cuda", dtype=torch.float32).normal_()
    times = []
    for _ in range(10):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        block.max()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
        time.sleep(times[-1] / 1e3)
    return block.numel() * 4 / (min(times) / 1e3)


def measure(launch) -> tuple:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        launch(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        launch(stream)
    times = []
    for _ in range(REPLAYS + 2):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(stream):
            start.record()
            graph.replay()
            end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
        time.sleep(times[-1] / 1e3)
    times = sorted(times[2:])
    return statistics.median(times) * 1e3 / LAYERS, times[0] * 1e3 / LAYERS, times[-1] * 1e3 / LAYERS


class Products:
    """Weights of all layers, and a kernel for each shape."""

    def __init__(self, device: ptxgen.Device, shapes: dict, m: int, **spec) -> None:
        self.device, self.m = device, m
        self.weights = {name: [codes(rows, k) for _ in range(LAYERS)] for name, (rows, k, _) in shapes.items()}
        self.scales = {name: torch.rand(rows, device="cuda") * 1e-3 for name, (rows, _, _) in shapes.items()}
        self.kernels = {
            name: device.dispatch("w8a8", k=k, n=rows // 2 if gated else rows, x_type="f16", y_type="f16",
                                  epilogue="swiglu" if gated else "none", min_m=m, max_m=m, **spec)
            for name, (rows, k, gated) in shapes.items()}
        self.outputs = {name: torch.empty(m, rows // 2 if gated else rows, device="cuda", dtype=torch.float16)
                        for name, (rows, _, gated) in shapes.items()}

    def launch(self, name: str, layer: int, x, stream, **more) -> torch.Tensor:
        self.kernels[name].launch(x=x, w=self.weights[name][layer], w_scale=self.scales[name], y=self.outputs[name],
                                  m=self.m, stream=stream, overlap_previous=1, **more)
        return self.outputs[name]


def once(device: ptxgen.Device, m: int):
    shapes = {"qkv": (QKV, K, False), "o": (K, K, False), "gate_up": (2 * FFN, K, True), "down": (K, FFN, False)}
    p = Products(device, shapes, m, scales="quantised")
    norm = device.dispatch("quantise", k=K, x_type="f16", producer="rmsnorm", residual=1, epsilon=1e-5,
                           gamma_type="f16")
    plain = {k: device.dispatch("quantise", k=k, x_type="f16") for k in (K, FFN)}
    gamma = torch.ones(K, device="cuda", dtype=torch.float16)
    x, residual = (torch.randn(m, K, device="cuda", dtype=torch.float16) for _ in range(2))
    written = torch.empty_like(residual)
    c = {k: codes(m, k) for k in (K, FFN)}
    s = {k: torch.ones(m, device="cuda") for k in (K, FFN)}

    def launch(stream) -> None:
        for layer in range(LAYERS):
            for first, second in (("qkv", "o"), ("gate_up", "down")):
                norm.launch(x=x, residual=residual, residual_out=written, gamma=gamma, codes=c[K], scales=s[K],
                            stream=stream, overlap_previous=1)
                y = p.launch(first, layer, c[K], stream, x_scale=s[K])
                k = K if first == "qkv" else FFN
                plain[k].launch(x=y[:, :k], codes=c[k], scales=s[k], m=m, stream=stream, overlap_previous=1)
                p.launch(second, layer, c[k], stream, x_scale=s[k])

    return launch, sum(w[0].numel() for w in p.weights.values())


def each(device: ptxgen.Device, m: int):
    shapes = {"q": (K, K, False), "k": (1024, K, False), "v": (1024, K, False), "o": (K, K, False),
              "gate": (FFN, K, False), "up": (FFN, K, False), "down": (K, FFN, False)}
    p = Products(device, shapes, m)
    x = torch.randn(m, K, device="cuda", dtype=torch.float16)

    def launch(stream) -> None:
        for layer in range(LAYERS):
            for name in ("q", "k", "v"):
                p.launch(name, layer, x, stream)
            p.launch("o", layer, p.outputs["q"], stream)
            for name in ("gate", "up"):
                p.launch(name, layer, x, stream)
            p.launch("down", layer, p.outputs["gate"], stream)

    return launch, sum(w[0].numel() for w in p.weights.values())


def main() -> None:
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    tokens = [int(word) for word in (sys.argv[1] if len(sys.argv) > 1 else "1,16,64").split(",")]
    with ptxgen.Device("gpu") as device:
        rate = read_rate()
        print(f"{device.name}: reads {rate / 1e12:.2f} TB/s; microseconds a layer, median (least to most)")
        for m in tokens:
            row = []
            for make in (once, each, once, each):
                launch, weight_bytes = make(device, m)
                row.append("%.1f (%.1f to %.1f)" % measure(launch))
                del launch
                torch.cuda.empty_cache()
            print(f"M = {m}: once {row[0]}, {row[2]}; each {row[1]}, {row[3]}; floor {weight_bytes / rate * 1e6:.1f}",
                  flush=True)


main()
