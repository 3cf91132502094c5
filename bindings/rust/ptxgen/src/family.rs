// SPDX-License-Identifier: Apache-2.0
use std::marker::PhantomData;
use std::ptr;

use crate::device::{Buffer, Device, Stream};
use crate::error::{call, Result};
use crate::sys;

/// A kernel family: its spec and the arguments of its launches, as its C header describes them.
///
/// # Safety
/// The functions are those of one family of libptxgen, and the types are its own.
pub unsafe trait Family {
    type Spec;
    type Args: Copy;
    fn table() -> *const sys::ptxgen_family;
    /// # Safety
    /// `kernel` is loaded and of this family.
    unsafe fn workspace_bytes(
        kernel: *const sys::ptxgen_loaded, args: *const Self::Args, bytes: *mut u64, err: *mut sys::ptxgen_error,
    ) -> sys::ptxgen_status;
    /// # Safety
    /// As for [`Kernel::launch`].
    unsafe fn launch(
        kernel: *const sys::ptxgen_loaded, args: *const Self::Args, stream: sys::ptxgen_cu_stream,
        err: *mut sys::ptxgen_error,
    ) -> sys::ptxgen_status;
}

macro_rules! family {
    ($(#[$doc:meta])* $name:ident, $spec:ident, $args:ident, $table:ident, $bytes:ident, $launch:ident) => {
        $(#[$doc])*
        pub struct $name;
        unsafe impl Family for $name {
            type Spec = sys::$spec;
            type Args = sys::$args;
            fn table() -> *const sys::ptxgen_family {
                unsafe { sys::$table() }
            }
            unsafe fn workspace_bytes(
                kernel: *const sys::ptxgen_loaded, args: *const sys::$args, bytes: *mut u64,
                err: *mut sys::ptxgen_error,
            ) -> sys::ptxgen_status {
                sys::$bytes(kernel.cast(), args, bytes, err)
            }
            unsafe fn launch(
                kernel: *const sys::ptxgen_loaded, args: *const sys::$args, stream: sys::ptxgen_cu_stream,
                err: *mut sys::ptxgen_error,
            ) -> sys::ptxgen_status {
                sys::$launch(kernel.cast(), args, stream, err)
            }
        }
    };
}

family!(
    /// Weights that are not quantised (ptxgen/dense.h).
    Dense, ptxgen_dense_spec, ptxgen_dense_args, ptxgen_dense_family, ptxgen_dense_workspace_bytes, ptxgen_dense_launch
);
family!(
    /// Weights in GGUF types (ptxgen/gguf_linear.h).
    GgufLinear, ptxgen_gguf_linear_spec, ptxgen_gguf_linear_args, ptxgen_gguf_linear_family,
    ptxgen_gguf_linear_workspace_bytes, ptxgen_gguf_linear_launch
);
family!(
    /// Rows in GGUF types, decoded (ptxgen/gguf_rows.h).
    GgufRows, ptxgen_gguf_rows_spec, ptxgen_gguf_rows_args, ptxgen_gguf_rows_family, ptxgen_gguf_rows_workspace_bytes,
    ptxgen_gguf_rows_launch
);
family!(
    /// 4-bit weights (ptxgen/marlin.h).
    Marlin, ptxgen_marlin_spec, ptxgen_marlin_args, ptxgen_marlin_family, ptxgen_marlin_workspace_bytes,
    ptxgen_marlin_launch
);
family!(
    /// Codes of 8 bits and their scales (ptxgen/quantise.h).
    Quantise, ptxgen_quantise_spec, ptxgen_quantise_args, ptxgen_quantise_family, ptxgen_quantise_workspace_bytes,
    ptxgen_quantise_launch
);
family!(
    /// RMSNorm with Q4_K weights (ptxgen/rmsnorm_q4k.h).
    RmsnormQ4k, ptxgen_rmsnorm_q4k_spec, ptxgen_rmsnorm_q4k_args, ptxgen_rmsnorm_q4k_family,
    ptxgen_rmsnorm_q4k_workspace_bytes, ptxgen_rmsnorm_q4k_launch
);
family!(
    /// 2:4 sparse weights (ptxgen/sparse24.h).
    Sparse24, ptxgen_sparse24_spec, ptxgen_sparse24_args, ptxgen_sparse24_family, ptxgen_sparse24_workspace_bytes,
    ptxgen_sparse24_launch
);
family!(
    /// Weights and activations of 8 bits (ptxgen/w8a8.h).
    W8a8, ptxgen_w8a8_spec, ptxgen_w8a8_args, ptxgen_w8a8_family, ptxgen_w8a8_workspace_bytes, ptxgen_w8a8_launch
);

/// A loaded kernel; it holds its device.
pub struct Kernel<F: Family> {
    device: Device,
    loaded: *mut sys::ptxgen_loaded,
    family: PhantomData<fn() -> F>,
}

// SAFETY: any thread may launch and release (dispatch.h).
unsafe impl<F: Family> Send for Kernel<F> {}
unsafe impl<F: Family> Sync for Kernel<F> {}

impl<F: Family> Kernel<F> {
    pub(crate) fn dispatch(device: &Device, spec: &F::Spec) -> Result<Kernel<F>> {
        let mut loaded = ptr::null_mut();
        let spec: *const F::Spec = spec;
        // SAFETY: the spec is the family's.
        call(|err| unsafe { sys::ptxgen_dispatch(device.0.dispatcher, F::table(), spec.cast(), &mut loaded, err) })?;
        Ok(Kernel { device: device.clone(), loaded, family: PhantomData })
    }

    /// Bytes of workspace that a launch needs.
    pub fn workspace_bytes(&self, args: &F::Args) -> Result<u64> {
        let mut bytes = 0;
        // SAFETY: the kernel is loaded; the query is pure.
        call(|err| unsafe { F::workspace_bytes(self.loaded, args, &mut bytes, err) })?;
        Ok(bytes)
    }

    /// A workspace for launches of these arguments in one stream, zeroed.
    pub fn workspace(&self, args: &F::Args) -> Result<Buffer> {
        self.device.zeros(self.workspace_bytes(args)? as usize)
    }

    /// Enqueues one launch.
    ///
    /// # Safety
    /// The addresses are the device's, with the sizes that the family's header asks for, and stay valid until
    /// the launch has ended.
    pub unsafe fn launch(&self, args: &F::Args, stream: Stream) -> Result<()> {
        let _entered = self.device.0.enter()?;
        call(|err| F::launch(self.loaded, args, stream.0, err))
    }
}

impl<F: Family> Drop for Kernel<F> {
    fn drop(&mut self) {
        // SAFETY: the reference is released once.
        unsafe { sys::ptxgen_release(self.loaded) };
    }
}
