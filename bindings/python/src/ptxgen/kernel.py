# SPDX-License-Identifier: Apache-2.0
"""A loaded kernel, and its launches."""
from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Optional

from ._library import call, ffi, lib
from .arrays import View, view

if TYPE_CHECKING:
    from .device import Device


def _stream_handle(stream: Any) -> Any:
    """A CUstream of None, a handle, a torch or a cupy stream."""
    handle = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream)) or 0
    return ffi.cast("ptxgen_cu_stream", int(handle))


class Kernel:
    """A kernel of one spec, from ``Device.dispatch``; it holds a reference until it is collected."""

    def __init__(self, device: "Device", family: str, spec: Any, loaded: Any) -> None:
        self.device, self.family, self.spec = device, family, spec
        self._loaded = ffi.gc(loaded, lib.ptxgen_release)
        device._kernels.add(self)
        self._launch = getattr(lib, f"ptxgen_{family}_launch")
        self._workspace_query = getattr(lib, f"ptxgen_{family}_workspace_bytes", None)
        self._members = dict(ffi.typeof(f"ptxgen_{family}_args").fields)
        self._workspaces: dict[int, list] = {}  # by stream; graphs may hold those that were too small
        self._lock = threading.Lock()

    def _release(self) -> None:
        """Gives the reference back, before the device unloads everything."""
        if self._loaded is not None:
            ffi.release(self._loaded)
            self._loaded = None

    def _reference(self) -> Any:
        """The family's kernel."""
        if self._loaded is None:
            raise ValueError(f"{self.family}: the device of this kernel was closed")
        return ffi.cast(f"ptxgen_{self.family} *", self._loaded)

    @property
    def source(self) -> str:
        """Where the machine code came from: "assembler", "disk", "override" or "pack"."""
        self._reference()
        return ("assembler", "disk", "override", "pack")[lib.ptxgen_loaded_report(self._loaded).origin]

    def launch(self, *, m: Optional[int] = None, stream: Any = None, **arguments: Any) -> None:
        """Enqueues one launch; nothing is copied, and nothing waits.

        ``arguments`` have the names of the family's header: arrays (a Buffer, a torch or cupy tensor, an
        address, or a sequence of these where the member is an array) and numbers. M, strides and sizes are
        taken from the arrays unless given. ``stream`` is a torch or cupy stream or a handle; None is the
        default stream. The kernel keeps a workspace for each stream, allocated by the first launch that
        needs it: make one launch before you capture a graph.
        """
        args = ffi.new(f"ptxgen_{self.family}_args *")
        numbers = {}
        for name, value in arguments.items():
            if name not in self._members:
                raise TypeError(f"{self.family}: a launch has no {name!r}; it has {', '.join(self._members)}")
            if f"{name}_bytes" not in self._members:
                numbers[name] = value
            elif self._members[name].type.kind == "array":
                for i, item in enumerate(value):
                    self._place(args, name, view(f"{name}[{i}]", item, self.device), i)
            else:
                found = view(name, value, self.device)
                self._place(args, name, found, None)
                if name == "x" and found and m is None and found.shape:
                    m = found.shape[0] if len(found.shape) > 1 else 1
        args.m = 1 if m is None else m
        for name, value in numbers.items():
            setattr(args, name, value)
        handle, kernel = _stream_handle(stream), self._reference()
        with self.device._current():
            self._give_workspace(kernel, args, int(ffi.cast("uintptr_t", handle)))
            call(self._launch, kernel, args, handle)

    def _place(self, args: Any, name: str, found: Optional[View], index: Optional[int]) -> None:
        """Sets an array's address, size and row stride."""
        if found is None:
            return
        values = {name: found.address, f"{name}_bytes": found.nbytes}
        if len(found.shape) > 2 and f"{name}_stride" in self._members:
            raise ValueError(f"{name} has {len(found.shape)} dimensions; reshape it to rows: [M, …]")
        if len(found.shape) > 1 and f"{name}_stride" in self._members:
            values[f"{name}_stride"] = found.row_stride
        for member, value in values.items():
            if index is None:
                setattr(args, member, value)
            else:
                getattr(args, member)[index] = value

    def _give_workspace(self, kernel: Any, args: Any, stream: int) -> None:
        if self._workspace_query is None or "workspace" not in self._members or args.workspace:
            return
        needed = ffi.new("uint64_t *")
        call(self._workspace_query, kernel, args, needed)
        with self._lock:
            kept = self._workspaces.setdefault(stream, [])
            if needed[0] and (not kept or kept[-1].nbytes < needed[0]):
                kept.append(self.device.zeros((int(needed[0]),), "u1"))
            if kept:
                args.workspace, args.workspace_bytes = kept[-1].address, kept[-1].nbytes
