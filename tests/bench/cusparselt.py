# SPDX-License-Identifier: Apache-2.0
"""cuSPARSELt beside cuBLAS, f16, through PyTorch: what `ptxgen bench sparse24` compares with.

Weights are 2:4 sparse by magnitude, in as many copies as four L2s take; a CUDA graph of launches
goes through them in turn. Times are medians of replays, in microseconds a launch: cuSPARSELt with
its default algorithm and with the one that its own search finds, and cuBLAS on the dense weight.

    python3 cusparselt.py [KxN ...]        8192x8192 and 4096x14336 by default
"""
import sys

import torch

TOKENS = (1, 8, 16, 32, 64, 256, 1024, 4096)
REPLAYS, L2_BYTES = 10, 50e6


def time_graph(calls, launches):
    with torch.cuda.stream(torch.cuda.Stream()):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(launches):
            calls[i % len(calls)]()
    times = []
    for _ in range(REPLAYS + 3):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / launches)
    return sorted(times[3:])[REPLAYS // 2]


def prune(w):
    groups = w.view(w.shape[0], -1, 4)
    kept = groups.abs().topk(2, dim=-1).indices
    return torch.zeros_like(groups).scatter_(-1, kept, groups.gather(-1, kept)).view_as(w)


def time_shape(k, n):
    copies = int(4 * L2_BYTES / (k * n * 9 / 8)) + 2
    dense = prune(torch.randn(n, k, device="cuda", dtype=torch.half))
    compressed = torch._cslt_compress(dense)
    sparse = [compressed.clone() for _ in range(copies)]
    dense = [dense.clone() for _ in range(copies)]
    for m in TOKENS:
        # cuSPARSELt takes multiples of 8 tokens
        x = torch.randn((m + 7) // 8 * 8, k, device="cuda", dtype=torch.half)
        launches = 40 if m < 1024 else 12
        best = torch._cslt_sparse_mm_search(sparse[0], x.t())
        default = time_graph([lambda w=w: torch._cslt_sparse_mm(w, x.t()) for w in sparse], launches)
        found = time_graph(
            [lambda w=w: torch._cslt_sparse_mm(w, x.t(), alg_id=best) for w in sparse], launches)
        cublas = time_graph(
            [lambda w=w: torch.nn.functional.linear(x[:m], w) for w in dense], launches)
        print(f"K={k} N={n} M={m}: cuSPARSELt {default:.1f}, searched {found:.1f}, "
              f"cuBLAS {cublas:.1f} us", flush=True)


for shape in sys.argv[1:] or ("8192x8192", "4096x14336"):
    time_shape(*map(int, shape.split("x")))
