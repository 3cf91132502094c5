# SPDX-License-Identifier: Apache-2.0
"""A linear layer with 4-bit weights out of a checkpoint: packed, uploaded and called."""
from __future__ import annotations

from typing import Any, Mapping, Optional

import numpy as np

from ._library import call, enumerator, ffi, lib
from .arrays import Buffer, host_pointer, view
from .device import Device
from .files import Files

_TENSORS = {  # the tensors of a layer, by format: members of ptxgen_w4_checkpoint and their names
    "gptq": {"weights": "qweight", "scales": "scales", "zeros": "qzeros", "g_idx": "g_idx"},
    "awq": {"weights": "qweight", "scales": "scales", "zeros": "qzeros"},
    "pack-quantized": {"weights": "weight_packed", "scales": "weight_scale", "zeros": "weight_zero_point",
                       "g_idx": "weight_g_idx", "shape": "weight_shape"},
    "marlin": {"weights": "B", "scales": "s"},
}
_TENSORS["gptq_v2"] = _TENSORS["gptq"]
_DTYPES = {"float32": "PTXGEN_W4_F32", "float16": "PTXGEN_W4_F16", "int32": "PTXGEN_W4_I32",
           "int64": "PTXGEN_W4_I64", "int8": "PTXGEN_W4_I8", "bfloat16": "PTXGEN_W4_BF16"}


class Linear:
    """y = x · wᵀ + bias, where the layer has one, with w of 4 bits, by the family marlin.

    ``Linear.from_layer(device, tensors, "model.layers.0.mlp.down_proj")`` takes a layer of a GPTQ, AWQ,
    compressed-tensors or Marlin checkpoint. ``tensors`` maps names to numpy arrays, as :class:`ptxgen.Files` does.
    """

    def __init__(self, device: Device, kernel: Any, packed: Mapping[str, Buffer], k: int, n: int) -> None:
        self.device, self.kernel, self._packed, self.k, self.n = device, kernel, dict(packed), k, n

    @classmethod
    def from_layer(cls, device: Device, tensors: Mapping[str, np.ndarray], layer: str, *, format: str = "gptq",
                   type: str = "f16", max_m: int = 0) -> "Linear":
        """Packs and uploads a layer. ``type`` is that of x and y, "f16" or "bf16"; ``max_m`` 0 is any M."""
        if format not in _TENSORS:
            raise ValueError(f"format={format!r}; there are {', '.join(_TENSORS)}")
        checkpoint, kept = ffi.new("ptxgen_w4_checkpoint *"), []
        found = ffi.new("ptxgen_w4_format *")
        call(lib.ptxgen_w4_detect_format, ffi.NULL, format.encode(), found)
        checkpoint.format = found[0]
        prefix = f"{layer}." if layer else ""
        for member, name in _TENSORS[format].items():
            if prefix + name in tensors:
                kept.append(_fill(getattr(checkpoint, member), tensors, prefix + name))
        info = ffi.new("ptxgen_w4_info *")
        call(lib.ptxgen_w4_describe, checkpoint, info)
        bias = prefix + "bias" in tensors
        kernel = device.dispatch("marlin", k=info.k, n=info.n, group_size=info.group_size, type=type, max_m=max_m,
                                 zeros=int(not info.symmetric), act_order=int(info.act_order), bias=int(bias))
        packed = ffi.new("ptxgen_marlin_packed *")
        call(lib.ptxgen_marlin_packed_layout, kernel.spec, packed)
        host = {}
        for member in ("codes", "scales", "zeros", "order"):
            size = getattr(packed, f"{member}_bytes")
            if size:
                host[member] = np.zeros(size, "u1")
                setattr(packed, member, ffi.cast("uint32_t *" if member == "order" else "void *",
                                                 host[member].ctypes.data))
        call(lib.ptxgen_marlin_pack, kernel.spec, checkpoint, ffi.NULL, packed, ffi.NULL)
        if bias:
            host["bias"] = _bias(tensors, prefix + "bias", info.n, type)
        return cls(device, kernel, {name: device.array(array) for name, array in host.items()}, info.k, info.n)

    def __call__(self, x: Any, y: Optional[Any] = None, *, stream: Any = None) -> Any:
        """Enqueues y = layer(x) and returns y, which is made like x where it is not given.

        x is [M, K] and y [M, N]: Buffers, or torch or cupy tensors, of the layer's type.
        """
        for name, array in (("x", x), ("y", y)):
            found = view(name, array, self.device)
            if found and found.itemsize != 2:
                raise ValueError(f"{name}: its elements have {found.itemsize} bytes, those of the layer's type 2")
        if y is None:
            shape = (*x.shape[:-1], self.n)
            if isinstance(x, Buffer):
                y = self.device.empty(shape, x.dtype)
            else:
                y = x.new_empty(shape) if hasattr(x, "new_empty") else type(x)(shape, x.dtype)
        self.kernel.launch(x=x, y=y, stream=stream, **self._packed)
        return y


def _floats(tensors: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """A tensor of floats as f32."""
    array = np.ascontiguousarray(tensors[name])
    if isinstance(tensors, Files) and tensors.dtype(name) == "BF16":
        return (array.view("<u2").astype("<u4") << 16).view("<f4")
    return array.astype("<f4")


def _bias(tensors: Mapping[str, np.ndarray], name: str, n: int, type: str) -> np.ndarray:
    """The bias in the layer's type, as bits."""
    floats = _floats(tensors, name).reshape(-1)
    if floats.size != n:
        raise ValueError(f"{name} has {floats.size} elements, not {n}")
    bits = np.empty(n, "<u2")
    for i, value in enumerate(floats):
        lib.ptxgen_element_store(enumerator("type", type), host_pointer(bits), i, float(value))
    return bits


def _fill(tensor: Any, tensors: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """Describes a tensor of a checkpoint; the returned array must live as long as it is used."""
    array = np.ascontiguousarray(tensors[name])
    dtype, shape = array.dtype.name, array.shape
    if isinstance(tensors, Files) and tensors.dtype(name) == "BF16":  # numpy has bytes of these
        dtype, shape = "bfloat16", tensors.shape(name)
    if dtype not in _DTYPES:
        raise ValueError(f"{name}: a tensor of 4-bit weights is not {dtype}")
    tensor.data = host_pointer(array)
    tensor.dtype = getattr(lib, _DTYPES[dtype])
    tensor.shape[0] = shape[0] if shape else 1
    tensor.shape[1] = shape[1] if len(shape) > 1 else 1
    return array
