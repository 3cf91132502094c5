# SPDX-License-Identifier: Apache-2.0
"""Arrays on a device: where they are, and how they lie there. Nothing is copied."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from ._library import ffi

if TYPE_CHECKING:
    from .device import Device


@dataclass(frozen=True)
class View:
    """An array by its address: shape in elements, row stride in elements, bytes from its address on, and bytes of
    an element (0: unknown)."""

    address: int
    shape: tuple
    row_stride: int
    nbytes: int
    itemsize: int


class Buffer:
    """Memory of a :class:`Device` with a shape and a numpy dtype, freed with the object.

    ``Device.array`` and ``Device.empty`` make buffers; ``numpy()`` copies one back.
    """

    def __init__(self, device: "Device", shape: tuple, dtype: Any) -> None:
        self.device, self.shape, self.dtype = device, tuple(shape), np.dtype(dtype)
        self.nbytes = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        self.address = device._allocate(self.nbytes)
        device._buffers.add(self)

    def numpy(self) -> np.ndarray:
        """A copy on the host, made after everything that was enqueued on the device has ended."""
        host = np.empty(self.shape, self.dtype)
        self.device._download(self.address, host)
        return host

    def __del__(self) -> None:
        self._free()

    def _free(self) -> None:
        address, self.address = getattr(self, "address", 0), 0
        if address:
            self.device._free(address)


def _row_stride(shape: tuple, strides: tuple, name: str) -> int:
    """The stride of rows in elements, of an array whose rows are contiguous."""
    if shape and strides[-1] != 1 and shape[-1] > 1:
        raise ValueError(f"{name}: the elements of a row must follow each other, not be {strides[-1]} apart")
    inner = shape[-1] if shape else 1
    expected = inner
    for size, stride in zip(shape[-2:0:-1], strides[-2:0:-1]):
        if len(shape) > 2 and size > 1 and stride != expected:
            raise ValueError(f"{name}: all dimensions but the first must be contiguous")
        expected *= size
    return strides[0] if len(shape) > 1 and shape[0] > 1 else inner


def view(name: str, array: Any, device: "Device") -> Optional[View]:
    """What is known of ``array``: a Buffer, a torch or cupy tensor, a plain address, or None."""
    if array is None:
        return None
    if isinstance(array, int):
        return View(array, (), 0, 0, 0)
    if isinstance(array, Buffer):
        if array.device is not device:
            raise ValueError(f"{name} is a buffer of another device")
        inner = array.shape[-1] if array.shape else 1
        return View(array.address, array.shape, inner, array.nbytes, array.dtype.itemsize)
    if hasattr(array, "data_ptr"):  # torch; its CUDA array interface has no bf16
        if array.device.type != "cuda" or array.device.index != device.ordinal:
            raise ValueError(f"{name} is on {array.device}, not on cuda:{device.ordinal}")
        storage = array.untyped_storage()
        nbytes = storage.nbytes() - array.storage_offset() * array.element_size()
        return View(array.data_ptr(), tuple(array.shape), _row_stride(tuple(array.shape), array.stride(), name),
                    nbytes, array.element_size())
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"{name}: {type(array).__name__} is no array on a device; Device.array uploads one")
    shape, item = tuple(interface["shape"]), np.dtype(interface["typestr"]).itemsize
    strides = interface.get("strides")
    if strides is None:
        elements = tuple(int(np.prod(shape[i + 1:], dtype=np.int64)) for i in range(len(shape)))
    else:
        elements = tuple(s // item for s in strides)
    last = sum((n - 1) * s for n, s in zip(shape, elements)) + 1 if all(shape) else 0
    return View(interface["data"][0], shape, _row_stride(shape, elements, name), last * item, item)


def host_pointer(array: np.ndarray) -> Any:
    """A ``void *`` to a contiguous array on the host, which must outlive its use."""
    if not array.flags.c_contiguous:
        raise ValueError("an array for a packer must be contiguous")
    return ffi.cast("void *", array.ctypes.data)
