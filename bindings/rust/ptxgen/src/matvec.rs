// SPDX-License-Identifier: Apache-2.0
use std::ptr;

use crate::device::{Buffer, Device, Stream};
use crate::error::{call, Result};
use crate::sys;

/// What is multiplied by [`GgufMatvec`]: matrices in GGUF types that share x and lie one after the other in one
/// buffer, as Q, K and V are merged.
#[derive(Clone, Copy, Debug)]
pub struct GgufShape<'a> {
    /// The length of a row.
    pub k: u32,
    /// Of each of up to three matrices, its type (`sys::PTXGEN_GGUF_Q4_K`) and its rows.
    pub matrices: &'a [(u32, u32)],
    /// `sys::PTXGEN_EPILOGUE_NONE`; else y = f(gate) * up over two matrices of equal rows.
    pub epilogue: u32,
    /// `sys::PTXGEN_F32`, `PTXGEN_F16` or `PTXGEN_BF16`.
    pub x_type: u32,
    pub y_type: u32,
}

/// Products of up to 8 tokens by the addresses and strides that an engine has (ptxgen/gguf_matvec.h). The kernel is
/// loaded when this is made, so launches may be captured into a graph.
pub struct GgufMatvec {
    device: Device,
    k: u32,
    types: Vec<u32>,
    n: Vec<u32>,
    epilogue: u32,
    x_type: u32,
    y_type: u32,
    workspace_bytes: u64,
}

/// Where a launch's operands are. Strides are in elements, 0 for rows without gaps.
#[derive(Clone, Copy, Debug, Default)]
pub struct GgufOperands {
    pub w: u64,
    pub x: u64,
    pub y: u64,
    pub m: u32,
    pub x_stride: u64,
    pub y_stride: u64,
}

impl GgufMatvec {
    pub fn new(device: &Device, shape: &GgufShape<'_>) -> Result<GgufMatvec> {
        let (types, n): (Vec<u32>, Vec<u32>) = shape.matrices.iter().copied().unzip();
        let mut bytes = 0;
        // SAFETY: both lists have so many numbers.
        call(|err| unsafe {
            sys::ptxgen_gguf_matvec_workspace(
                device.0.dispatcher, types.len() as u32, types.as_ptr(), n.as_ptr(), shape.epilogue, shape.k,
                shape.x_type, shape.y_type, &mut bytes, err,
            )
        })?;
        let GgufShape { k, epilogue, x_type, y_type, .. } = *shape;
        Ok(GgufMatvec { device: device.clone(), k, types, n, epilogue, x_type, y_type, workspace_bytes: bytes })
    }

    /// Bytes of workspace that any launch of this shape needs, at a multiple of 16.
    pub fn workspace_bytes(&self) -> u64 {
        self.workspace_bytes
    }

    /// A workspace for launches in one stream.
    pub fn workspace(&self) -> Result<Buffer> {
        self.device.zeros(self.workspace_bytes as usize)
    }

    /// Enqueues y = w x, with outputs of all matrices side by side in each row of y.
    ///
    /// # Safety
    /// The addresses are of the device, with what the shape, m and the strides say behind them; the workspace has
    /// `workspace_bytes`, and no other launch uses it at the same time. All stay valid until the launch has ended.
    pub unsafe fn launch(&self, at: &GgufOperands, workspace: u64, stream: Stream) -> Result<()> {
        let _entered = self.device.0.enter()?;
        call(|err| {
            sys::ptxgen_gguf_matvec_merged(
                self.device.0.dispatcher, self.types.len() as u32, self.types.as_ptr(), self.n.as_ptr(), ptr::null(),
                self.epilogue, at.w, at.x, at.y, self.k, at.m, at.x_stride, at.y_stride, self.x_type, self.y_type,
                workspace, self.workspace_bytes, stream.0, err,
            )
        })
    }
}
