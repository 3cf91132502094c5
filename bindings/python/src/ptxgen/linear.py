# SPDX-License-Identifier: Apache-2.0
"""A linear layer out of a checkpoint: found by its name, packed, uploaded and called."""
from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Optional

from ._library import call, enumerator, ffi, files_lib, lib
from .arrays import Buffer, view
from .files import Files
from .kernel import _stream_handle

if TYPE_CHECKING:
    from .device import Device

_SIZES = {"f32": 4, "f16": 2, "bf16": 2}


def _find(files: Files, layer: str, format: Optional[str]) -> Any:
    """The tensors of a layer; ``format`` names a form of ptxgen/layer.h."""
    found, choice = ffi.new("ptxgen_layer *"), ffi.new("ptxgen_layer_choice *")
    if format is not None:
        form = getattr(lib, "PTXGEN_LAYER_" + format.upper().replace("-", "_"), 0)
        if not lib.PTXGEN_LAYER_GPTQ <= form <= lib.PTXGEN_LAYER_DENSE:
            raise ValueError(f"format={format!r} is no form of a layer; ptxgen/layer.h lists them")
        choice.form = form
        choice.kind = lib.PTXGEN_LAYER_W4 if form < lib.PTXGEN_LAYER_BYTES else lib.PTXGEN_LAYER_SPARSE24
    call(files_lib.ptxgen_files_layer, files._files, layer.encode(), choice, found)
    return found


class Linear:
    """y = f(x · wᵀ + bias) of a layer of a checkpoint, bias included where the layer has one.

    ``Linear.from_layer(device, files, "model.layers.0.mlp.down_proj")`` takes a layer in any form that a family
    multiplies: GPTQ, AWQ, compressed-tensors, Marlin, s8 and fp8 with scales, 2:4 sparse, GGUF's types, floats.
    """

    def __init__(self, device: "Device", handle: Any, type: str, codes: bool) -> None:
        self.device, self.type = device, type
        self._handle = ffi.gc(handle, lib.ptxgen_linear_destroy)
        #: Input and output features.
        self.k: int = lib.ptxgen_linear_k(handle)
        self.n: int = lib.ptxgen_linear_n(handle)
        #: The family that computes it, as "marlin".
        self.family: str = ffi.string(lib.ptxgen_linear_family(handle)).decode()
        self._sizes = {"x": 1 if codes else _SIZES[type], "y": _SIZES[type]}
        self._workspaces: dict[int, list] = {}  # by stream; graphs may hold those that were too small
        self._lock = threading.Lock()
        device._kernels.add(self)

    @classmethod
    def from_layer(cls, device: "Device", files: Files, layer: str, *, up: Optional[str] = None,
                   format: Optional[str] = None, type: str = "f16", activation: str = "none",
                   max_m: int = 4096) -> "Linear":
        """Finds, packs and uploads a layer.

        ``type`` is that of x and y: "f16", "bf16" or "f32", as far as the family has it. With ``up``, y = silu(gate)
        · up, the layer being gate. ``format`` is for files that do not say theirs, or wrongly ("gptq_v2"), and for
        2:4 sparse weights that are stored dense ("dense"). ``max_m`` is the most rows of x.
        """
        if type not in _SIZES:
            raise ValueError(f"type={type!r}; there are {', '.join(_SIZES)}")
        gate = _find(files, layer, format)
        other = ffi.NULL if up is None else _find(files, up, format)
        options = ffi.new("ptxgen_linear_options *", {
            "max_m": max_m, "type": enumerator("type", type), "activation": enumerator("activation", activation)})
        made = ffi.new("ptxgen_linear **")
        with device._current():
            call(lib.ptxgen_linear_from_layer, device._dispatcher, gate, other, options, made)
        weight = gate.parts[lib.PTXGEN_LAYER_WEIGHT]
        codes = gate.kind == lib.PTXGEN_LAYER_SPARSE24 and weight.dtype == lib.PTXGEN_DTYPE_I8
        return cls(device, made[0], type, codes)

    def _release(self) -> None:
        """Frees the layer, before the device unloads everything."""
        if self._handle is not None:
            ffi.release(self._handle)
            self._handle = None

    def __call__(self, x: Any, y: Optional[Any] = None, *, x_scale: Any = None, stream: Any = None) -> Any:
        """Enqueues y = layer(x) and returns y, which is made like x where it is not given.

        x is [M, K] and y [M, N]: Buffers, or torch or cupy tensors, of the layer's type; of a 2:4 sparse layer of
        s8 x is codes, with a scale of f32 for each row unless the file has one. The layer keeps a workspace for
        each stream, allocated by the first call that needs it: make one call before you capture a graph.
        """
        if self._handle is None:
            raise ValueError("the device of this layer was closed")
        if y is None:
            y = self._like(x)
        args = ffi.new("ptxgen_linear_args *")
        for name, array in (("x", x), ("y", y)):
            found = view(name, array, self.device)
            if found is None:
                raise ValueError(f"{name} must be given")
            if len(found.shape) > 2:
                raise ValueError(f"{name} has {len(found.shape)} dimensions; reshape it to rows: [M, …]")
            if found.itemsize and found.itemsize != self._sizes[name]:
                raise ValueError(f"{name}: its elements have {found.itemsize} bytes, those of the layer's type "
                                 f"{self._sizes[name]}")
            setattr(args, name, found.address)
            setattr(args, f"{name}_bytes", found.nbytes)
            if len(found.shape) == 2:
                setattr(args, f"{name}_stride", found.row_stride)
            if name == "x":
                args.m = found.shape[0] if len(found.shape) == 2 else 1
        scale = view("x_scale", x_scale, self.device)
        if scale:
            args.x_scale, args.x_scale_bytes = scale.address, scale.nbytes
        handle = _stream_handle(stream)
        with self.device._current():
            self._give_workspace(args, int(ffi.cast("uintptr_t", handle)))
            call(lib.ptxgen_linear_run, self._handle, args, handle)
        return y

    def _like(self, x: Any) -> Any:
        """Room for y, made like x."""
        shape = (*x.shape[:-1], self.n)
        if isinstance(x, Buffer):
            return self.device.empty(shape, x.dtype if self._sizes["x"] == self._sizes["y"] else "f2")
        return x.new_empty(shape) if hasattr(x, "new_empty") else type(x)(shape, x.dtype)

    def _give_workspace(self, args: Any, stream: int) -> None:
        needed = ffi.new("uint64_t *")
        call(lib.ptxgen_linear_workspace_bytes, self._handle, args, needed)
        with self._lock:
            kept = self._workspaces.setdefault(stream, [])
            if needed[0] and (not kept or kept[-1].nbytes < needed[0]):
                kept.append(self.device.zeros((int(needed[0]),), "u1"))
            if kept:
                args.workspace, args.workspace_bytes = kept[-1].address, kept[-1].nbytes
