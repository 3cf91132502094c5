# SPDX-License-Identifier: Apache-2.0
"""The two libraries, their failures as exceptions, and their enumerators by name."""
from __future__ import annotations

import os
import pathlib
from typing import Any

from ._declarations import ffi

__all__ = ["Error", "call", "enumerator", "families", "ffi", "files_lib", "lib"]


def _open(variable: str, name: str) -> Any:
    """The library beside this file, or the one that the environment names."""
    return ffi.dlopen(os.environ.get(variable) or str(pathlib.Path(__file__).with_name(name)))


lib = _open("PTXGEN_LIBRARY", "libptxgen.so")
files_lib = _open("PTXGEN_FILES_LIBRARY", "libptxgen-files.so")


class Error(RuntimeError):
    """A failure of ptxgen: the library's sentence, and its status as ``status`` ("PTXGEN_ERROR_JIT")."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


def call(function: Any, *arguments: Any) -> None:
    """Calls a function whose last parameter is the error; raises :class:`Error` where it fails."""
    err = ffi.new("ptxgen_error *")
    status = function(*arguments, err)
    if status != lib.PTXGEN_OK:
        name = ffi.string(lib.ptxgen_status_name(status)).decode()
        raise Error(name, ffi.string(err.message).decode("utf-8", "replace"))


# The prefix of the enumerators that a member of a spec takes, where a string stands for one.
_PREFIXES = {
    "type": ["PTXGEN_"], "x_type": ["PTXGEN_"], "y_type": ["PTXGEN_"], "gamma_type": ["PTXGEN_"],
    "epilogue": ["PTXGEN_EPILOGUE_"], "activation": ["PTXGEN_ACTIVATION_"],
    "compute": ["PTXGEN_"], "w_type": ["PTXGEN_GGUF_"], "codes": ["PTXGEN_W8A8_"], "w_codes": ["PTXGEN_W8A8_"], "scales": ["PTXGEN_W8A8_"],
    "producer": ["PTXGEN_QUANTISE_"], "norm": ["PTXGEN_GGUF_LINEAR_"], "residual": ["PTXGEN_GGUF_LINEAR_"],
}


def enumerator(member: str, value: Any) -> Any:
    """The number that a member of a spec takes: strings as "silu" or "f16" name enumerators."""
    if not isinstance(value, str):
        return value
    for prefix in _PREFIXES.get(member, []):
        number = getattr(lib, prefix + value.upper().replace("-", "_"), None)
        if number is not None:
            return number
    raise ValueError(f"{member}={value!r} names nothing; the header of the family lists the names")


def families() -> list[str]:
    """The kernel families that the library has."""
    end = "_launch"
    names = (name[len("ptxgen_"):-len(end)] for name in dir(lib) if name.startswith("ptxgen_") and name.endswith(end))
    return sorted(name for name in names if hasattr(lib, f"ptxgen_{name}_family"))
