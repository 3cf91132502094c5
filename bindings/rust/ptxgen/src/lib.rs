// SPDX-License-Identifier: Apache-2.0
//! GPU kernels for quantised inference, written as PTX at run time, with no CUDA toolkit: owned handles over
//! libptxgen.
//!
//! A [`Device`] is a GPU, by its primary context, or an emulated chip; it dispatches kernels of any
//! [`Family`] by the family's spec, and owns memory as [`Buffer`]s. [`Linear`] is a layer of a checkpoint, and
//! [`GgufMatvec`] a product of GGUF weights by the addresses that an engine has.
//!
//! ```no_run
//! # fn main() -> Result<(), ptxgen::Error> {
//! let device = ptxgen::Device::open("gpu")?;
//! let files = ptxgen::Files::open("model.safetensors")?;
//! let layer = ptxgen::Linear::from_layer(&device, &files, "model.layers.0.mlp.down_proj", &Default::default())?;
//! let x = device.upload(&vec![0u16; 8 * layer.k()])?; // f16
//! let mut y = device.zeros(8 * layer.n() * 2)?;
//! unsafe { layer.forward(8, &x, &mut y, ptxgen::Stream::default())? }; // x and y stay until it has ended
//! device.synchronize()?;
//! # Ok(())
//! # }
//! ```
//!
//! Handles may be sent to other threads and shared by them, as the C headers allow.
pub use ptxgen_sys as sys;

mod device;
mod error;
mod family;
mod files;
mod linear;
mod matvec;

pub use device::{Buffer, Device, Plain, Stream};
pub use error::{Error, Result};
pub use family::{Dense, Family, GgufLinear, GgufRows, Kernel, Marlin, Quantise, RmsnormQ4k, Sparse24, W8a8};
pub use files::{Files, Tensor};
pub use linear::{LayerOptions, Linear};
pub use matvec::{GgufMatvec, GgufOperands, GgufShape};
