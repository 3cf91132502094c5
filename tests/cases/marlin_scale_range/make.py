# make.py TYPE ZERO SCALE ROWS FILE: a gptq_v2 layer "l" of K = 256, N = 64 in groups of 64 whose
# scales are all SCALE, x [ROWS, 256], and y = x·w from doubles.
import json, struct, sys
import numpy as np

kind, zero, scale, rows, path = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
K, N, GROUP = 256, 64, 64
rng = np.random.default_rng(1)


def to_bf16(values):  # they are representable
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def store(values):
    return np.asarray(values, np.float16) if kind == 'F16' else to_bf16(values)


def nibbles(values, axis):
    v = np.moveaxis(values.astype(np.uint32), axis, -1)
    v = v.reshape(v.shape[:-1] + (-1, 8))
    words = sum(v[..., i] << np.uint32(4 * i) for i in range(8))
    return np.ascontiguousarray(np.moveaxis(words, -1, axis)).astype(np.uint32)


q = rng.integers(0, 16, (K, N))
x = rng.integers(-8, 9, (rows, K)) * 2.0**-14  # exact in both types, outputs finite in f16
with np.errstate(all='ignore'):
    y = x @ (scale * (q - zero))
tensors = {
    'l.qweight': ('I32', nibbles(q, 0)),
    'l.scales': (kind, store(np.full((K // GROUP, N), scale))),
    'l.qzeros': ('I32', nibbles(np.full((K // GROUP, N), zero), 1)),
    'x': (kind, store(x)),
    'y': ('F32', y.astype(np.float32)),
}
header, data = {'__metadata__': {'checkpoint_format': 'gptq_v2'}}, b''
for name, (dtype, array) in tensors.items():
    raw = np.ascontiguousarray(array).tobytes()
    header[name] = {'dtype': dtype, 'shape': list(array.shape), 'data_offsets': [len(data), len(data) + len(raw)]}
    data += raw
text = json.dumps(header).encode()
text += b' ' * (-len(text) % 8)
open(path, 'wb').write(struct.pack('<Q', len(text)) + text + data)
