#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/gguf_types.gguf: rows of each type as ggml itself decodes and quantises them.

    python3 -m venv venv && venv/bin/pip install gguf==0.19.0 pywhispercpp==1.5.1
    venv/bin/python make_golden.py venv/lib/python3*/site-packages/libggml-base.so.0 gguf_types.gguf

pywhispercpp is only the carrier of ggml's compiled library (0.13.1). Of each type T of blocks the
file has T.weight [3, 256], random bytes with finite scales, and T.decoded, by dequantize_row_*; of
each type that the library quantises T.quantised, by ggml_quantize_chunk, from `source` [12, 256].
"""
import ctypes
import sys

import gguf
import numpy as np

ROWS, K = 3, 256
TYPES = gguf.GGMLQuantizationType
# Offsets of f16 numbers in a block, and ggml's name for the function.
BLOCKS = {
    "Q4_0": ("q4_0", [0]), "Q4_1": ("q4_1", [0, 2]), "Q5_0": ("q5_0", [0]), "Q5_1": ("q5_1", [0, 2]),
    "Q8_0": ("q8_0", [0]), "Q2_K": ("q2_K", [80, 82]), "Q3_K": ("q3_K", [108]),
    "Q4_K": ("q4_K", [0, 2]), "Q5_K": ("q5_K", [0, 2]), "Q6_K": ("q6_K", [208]),
    "IQ4_NL": ("iq4_nl", [0]), "IQ4_XS": ("iq4_xs", [0]), "MXFP4": ("mxfp4", []),
}
QUANTISED = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "MXFP4"]


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def row_bytes(name):
    weights, size = gguf.GGML_QUANT_SIZES[TYPES[name]]
    return K // weights * size


def random_rows(name, rng):
    rows = rng.integers(0, 256, (ROWS, row_bytes(name)), dtype=np.uint8)
    blocks = rows.reshape(-1, gguf.GGML_QUANT_SIZES[TYPES[name]][1])
    for at in BLOCKS[name][1]:
        blocks[:, at + 1] &= 0xBF  # no infinity and no NaN; subnormal and negative ones stay
    return rows


def sources(rng):
    rows = rng.standard_normal((12, K)).astype(np.float32)
    rows[1] *= np.where(rng.random(K) < 0.03, 40, 1)
    rows[2] = np.abs(rows[2])
    rows[3] = -np.abs(rows[3])
    rows[4] *= 0.02
    rows[5] = np.round(rows[5] * 3)  # many ties
    rows[6, :96] = 0
    rows[7] = 0.7
    rows[8] *= 1e-7  # scales are subnormal or zero in f16
    rows[9] = np.where(rng.random(K) < 0.9, 0, rows[9])
    rows[10] = (rng.random(K) * 2 - 1) * 65504
    rows[11] += 100
    return np.clip(rows, -65504, 65504).astype(np.float32)


def main():
    ggml = ctypes.CDLL(sys.argv[1])
    writer = gguf.GGUFWriter(sys.argv[2], "none")
    rng = np.random.default_rng(1)
    for name, (function, _) in BLOCKS.items():
        rows, decoded = random_rows(name, rng), np.zeros((ROWS, K), np.float32)
        for row, values in zip(rows, decoded):
            ggml["dequantize_row_" + function](pointer(row), pointer(values), ctypes.c_int64(K))
        writer.add_tensor(name + ".weight", rows, raw_dtype=TYPES[name])
        writer.add_tensor(name + ".decoded", decoded)
    source = sources(rng)
    writer.add_tensor("source", source)
    for name in QUANTISED:
        rows = np.zeros((len(source), row_bytes(name)), np.uint8)
        ggml.ggml_quantize_chunk(
            ctypes.c_int(TYPES[name].value), pointer(source), pointer(rows), ctypes.c_int64(0),
            ctypes.c_int64(len(source)), ctypes.c_int64(K), None)
        writer.add_tensor(name + ".quantised", rows, raw_dtype=TYPES[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
