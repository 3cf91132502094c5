# SPDX-License-Identifier: Apache-2.0
"""A device: a GPU by its primary context, which PyTorch and CuPy use too, or an emulated chip."""
from __future__ import annotations

import contextlib
import weakref
from typing import Any, Iterator

import numpy as np

from ._library import Error, call, enumerator, families, ffi, lib
from .arrays import Buffer
from .kernel import Kernel


class Device:
    """A device with a registry of its loaded kernels.

    ``name`` is "auto" (the first GPU, else the emulator), "gpu", "gpu:1", "cpu" or "cpu:sm_90". Kernels
    come from the disk cache, or are compiled by the driver when they are first asked for. ``cache`` False
    leaves the disk alone. Any thread may dispatch and launch; one closes the device, by ``close``, a ``with``
    block, or the end of the object.
    """

    def __init__(self, name: str = "auto", *, cache: bool = True) -> None:
        self._driver = ffi.new("ptxgen_driver *")
        self._dispatcher = ffi.NULL
        self._context = ffi.NULL
        self._ordinal = -1
        self._kernels: "weakref.WeakSet[Kernel]" = weakref.WeakSet()
        self._buffers: "weakref.WeakSet[Buffer]" = weakref.WeakSet()
        provider, _, selector = name.partition(":")
        if provider == "auto":
            try:
                self._open_gpu("")
            except Error:
                self._open_emulator("cpu")
        elif provider == "gpu":
            self._open_gpu(selector)
        elif provider == "cpu":
            self._open_emulator(name)
        else:
            raise ValueError(f"no device is named {name!r}; there are auto, gpu, gpu:NUMBER, cpu, cpu:SM")
        #: The number of a GPU, as in "gpu:1" and "cuda:1".
        self.ordinal: int = self._ordinal
        try:
            self._enter(cache)
        except BaseException:
            self.close()
            raise

    def _open_gpu(self, selector: str) -> None:
        self.emulated = False
        call(lib.ptxgen_driver_open, self._driver, ffi.NULL)
        self._ordinal = int(selector or 0)
        if not 0 <= self._ordinal < self._driver.device_count:
            raise Error("PTXGEN_ERROR_NO_DEVICE",
                        f"there is no gpu:{self._ordinal}; the driver has {self._driver.device_count}")

    def _open_emulator(self, name: str) -> None:
        self.emulated = True
        ordinal = ffi.new("int *")
        lib.ptxgen_emulator_driver(self._driver)
        call(lib.ptxgen_driver_start, self._driver)
        call(lib.ptxgen_emulator_ordinal, name.encode(), ordinal)
        self._ordinal = ordinal[0]

    def _enter(self, cache: bool) -> None:
        context, dispatcher = ffi.new("ptxgen_cu_context *"), ffi.new("ptxgen_dispatcher **")
        self._check(self._driver.device_primary_ctx_retain(context, self._ordinal), "entering the device")
        self._context = context[0]
        options = ffi.new("ptxgen_dispatch_options *", {"context": self._context, "no_cache": not cache})
        call(lib.ptxgen_dispatcher_create, self._driver, options, dispatcher)
        self._dispatcher = dispatcher[0]
        facts = ffi.new("ptxgen_device_facts *")
        call(lib.ptxgen_device_read, self._driver, self._ordinal, facts)
        #: The device's name, as "NVIDIA H200".
        self.name: str = ffi.string(facts.name).decode()
        #: 10 times the major and the minor number, as 90.
        self.compute_capability: int = facts.compute_capability

    def _check(self, result: int, doing: str) -> None:
        if result:
            call(lambda err: lib.ptxgen_driver_fail(self._driver, result, err, b"%s",
                                                    ffi.new("char[]", doing.encode())))

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        """The device's context is current in this thread meanwhile, and the one before it afterwards."""
        if self._context == ffi.NULL:
            raise ValueError("the device was closed")
        self._check(self._driver.ctx_push_current(self._context), "entering the context")
        try:
            yield
        finally:
            self._driver.ctx_pop_current(ffi.new("ptxgen_cu_context *"))

    # ---- kernels ----

    def dispatch(self, family: str, **spec: Any) -> Kernel:
        """The loaded kernel of a spec, compiled at most once.

        ``spec`` has the members of the family's spec by their names in its header: ``device.dispatch("marlin",
        k=4096, n=14336, group_size=128, type="f16", activation="silu")``. Strings name enumerators; a
        sequence fills an array.
        """
        if family not in families():
            raise ValueError(f"no family is named {family!r}; there are {', '.join(families())}")
        filled = ffi.new(f"ptxgen_{family}_spec *")
        members = {member for member, _ in ffi.typeof(f"ptxgen_{family}_spec").fields}
        for member, value in spec.items():
            if member not in members:
                raise TypeError(f"{family}: a spec has no {member!r}; it has {', '.join(sorted(members))}")
            if isinstance(value, (list, tuple)):
                for i, item in enumerate(value):
                    getattr(filled, member)[i] = enumerator(member, item)
            else:
                setattr(filled, member, enumerator(member, value))
        loaded = ffi.new("ptxgen_loaded **")
        call(lib.ptxgen_dispatch, self._dispatcher, getattr(lib, f"ptxgen_{family}_family")(), filled, loaded)
        return Kernel(self, family, filled, loaded[0])

    # ---- memory ----

    def array(self, host: Any) -> Buffer:
        """Uploads a numpy array, or what numpy makes one of; any stream may use it at once."""
        host = np.ascontiguousarray(host)
        buffer = Buffer(self, host.shape, host.dtype)
        if host.nbytes:
            with self._current():
                self._check(
                    self._driver.memcpy_htod(buffer.address, ffi.cast("void *", host.ctypes.data), host.nbytes),
                    f"uploading {host.nbytes} bytes")
            self.synchronize()
        return buffer

    def empty(self, shape: Any, dtype: Any = np.float16) -> Buffer:
        """Memory whose contents are undefined."""
        return Buffer(self, (shape,) if isinstance(shape, int) else shape, dtype)

    def zeros(self, shape: Any, dtype: Any = np.float16) -> Buffer:
        """Memory of zeros; any stream may use it at once."""
        buffer = self.empty(shape, dtype)
        if buffer.nbytes:
            with self._current():
                self._check(self._driver.memset_d8(buffer.address, 0, buffer.nbytes), "clearing memory")
            self.synchronize()
        return buffer

    def synchronize(self) -> None:
        """Waits for everything that was enqueued; a fault of a kernel is raised here."""
        with self._current():
            result = self._driver.ctx_synchronize()
            if result and self.emulated:
                fault = ffi.new("ptxgen_emulator_fault *")
                lib.ptxgen_emulator_last_fault(self._context, fault)
                raise Error("PTXGEN_ERROR_PTX_FAULT", ffi.string(fault.message).decode())
            self._check(result, "running kernels")

    def _allocate(self, nbytes: int) -> int:
        address = ffi.new("ptxgen_cu_deviceptr *")
        with self._current():
            if nbytes:
                self._check(self._driver.mem_alloc(address, nbytes), f"allocating {nbytes} bytes")
        return int(address[0])

    def _download(self, address: int, host: np.ndarray) -> None:
        self.synchronize()
        if host.nbytes:
            with self._current():
                self._check(self._driver.memcpy_dtoh(ffi.cast("void *", host.ctypes.data), address, host.nbytes),
                            f"downloading {host.nbytes} bytes")

    def _free(self, address: int) -> None:
        if self._context != ffi.NULL:
            with self._current():
                self._driver.mem_free(address)

    # ---- the end ----

    def close(self) -> None:
        """Unloads all kernels and leaves the context; kernels refuse to launch afterwards."""
        for kernel in list(self._kernels):
            kernel._release()
        for buffer in list(self._buffers):
            buffer._free()
        if self._dispatcher != ffi.NULL:
            lib.ptxgen_dispatcher_destroy(self._dispatcher)
            self._dispatcher = ffi.NULL
        if self._context != ffi.NULL:
            self._driver.device_primary_ctx_release(self._ordinal)
            self._context = ffi.NULL
        lib.ptxgen_driver_close(self._driver)

    def __del__(self) -> None:
        if hasattr(self, "_buffers"):
            self.close()

    def __enter__(self) -> "Device":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
