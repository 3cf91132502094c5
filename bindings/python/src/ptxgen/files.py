# SPDX-License-Identifier: Apache-2.0
"""Checkpoints on disk, GGUF and safetensors, as arrays that are read in place."""
from __future__ import annotations

import os
from typing import Any, Iterator, Mapping, Union

import numpy as np

from ._library import call, ffi, files_lib

_DTYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8",
           "U8": "u1", "U16": "<u2", "U32": "<u4", "U64": "<u8", "BOOL": "?"}


class Files(Mapping[str, np.ndarray]):
    """The tensors of a file, of all parts of one, or of a folder, by name.

    Arrays are views into the mapped file and read-only; they keep it open. Types that numpy lacks (BF16, fp8,
    GGUF's blocks) are bytes, with the bytes of a row as the last dimension; ``dtype(name)`` says what they are.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        opened = ffi.new("ptxgen_files **")
        call(files_lib.ptxgen_files_open, os.fsencode(path), opened)
        self._files = ffi.gc(opened[0], files_lib.ptxgen_files_close)
        tensors = files_lib.ptxgen_files_tensors(self._files)
        self._names = [ffi.string(tensors.items[i].name).decode() for i in range(tensors.count)]

    def _tensor(self, name: str) -> Any:
        found = ffi.new("const ptxgen_tensor **")
        call(files_lib.ptxgen_files_require, self._files, name.encode(), found)
        return found[0]

    def dtype(self, name: str) -> str:
        """The type's name as the format has it: "BF16", "Q4_K"."""
        return ffi.string(files_lib.ptxgen_dtype_find(self._tensor(name).dtype).name).decode()

    def shape(self, name: str) -> tuple:
        """The tensor's shape, outermost first."""
        tensor = self._tensor(name)
        return tuple(tensor.shape[i] for i in range(tensor.ndim))

    def __getitem__(self, name: str) -> np.ndarray:
        tensor, shape, known = self._tensor(name), self.shape(name), _DTYPES.get(self.dtype(name))
        owner = ffi.gc(ffi.cast("char *", tensor.data), lambda _, files=self._files: None)
        flat = np.frombuffer(ffi.buffer(owner, tensor.bytes), "u1")
        flat.flags.writeable = False
        if known:
            return flat.view(known).reshape(shape)
        return flat.reshape(*shape[:-1], -1) if shape and tensor.bytes else flat

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
