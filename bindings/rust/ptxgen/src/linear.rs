// SPDX-License-Identifier: Apache-2.0
use std::ffi::CString;
use std::mem::{size_of, zeroed};
use std::ptr;
use std::sync::Mutex;

use crate::device::{Buffer, Device, Stream};
use crate::error::{call, Error, Result};
use crate::family::{Kernel, Marlin};
use crate::files::{Files, Tensor};
use crate::sys;

/// y = x · wᵀ with w of 4 bits out of a GPTQ, AWQ, compressed-tensors or Marlin checkpoint, x and y f16: packed
/// and uploaded, by the family marlin.
pub struct Linear {
    device: Device,
    kernel: Kernel<Marlin>,
    packed: [Option<Buffer>; 4],
    workspace: Mutex<Option<Buffer>>,
    k: usize,
    n: usize,
}

/// The names of a layer's tensors: weights, scales, zeros, g_idx, shape.
fn names(format: &str) -> Option<[&'static str; 5]> {
    match format {
        "gptq" | "gptq_v2" => Some(["qweight", "scales", "qzeros", "g_idx", ""]),
        "awq" => Some(["qweight", "scales", "qzeros", "", ""]),
        "pack-quantized" => {
            Some(["weight_packed", "weight_scale", "weight_zero_point", "weight_g_idx", "weight_shape"])
        }
        "marlin" => Some(["B", "s", "", "", ""]),
        _ => None,
    }
}

fn describe(name: &str, tensor: &Tensor<'_>) -> Result<sys::ptxgen_w4_tensor> {
    let dtype = match tensor.dtype {
        sys::PTXGEN_DTYPE_F32 => sys::PTXGEN_W4_F32,
        sys::PTXGEN_DTYPE_F16 => sys::PTXGEN_W4_F16,
        sys::PTXGEN_DTYPE_BF16 => sys::PTXGEN_W4_BF16,
        sys::PTXGEN_DTYPE_I32 => sys::PTXGEN_W4_I32,
        sys::PTXGEN_DTYPE_I64 => sys::PTXGEN_W4_I64,
        sys::PTXGEN_DTYPE_I8 => sys::PTXGEN_W4_I8,
        _ => {
            let message = format!("{name}: its type is none of those of 4-bit weights");
            return Err(Error::new(sys::PTXGEN_ERROR_UNSUPPORTED, message));
        }
    };
    let dimension = |i: usize| tensor.shape().get(i).map_or(1, |&n| n as usize);
    Ok(sys::ptxgen_w4_tensor { data: tensor.data().as_ptr() as *mut _, dtype, shape: [dimension(0), dimension(1)] })
}

impl Linear {
    /// Packs and uploads a layer. `format` is "gptq", "gptq_v2", "awq", "pack-quantized" or "marlin".
    pub fn from_layer(device: &Device, files: &Files, layer: &str, format: &str) -> Result<Linear> {
        let names = names(format)
            .ok_or_else(|| Error::new(sys::PTXGEN_ERROR_INVALID_ARGUMENT, format!("no format is named {format:?}")))?;
        let choice = CString::new(format).unwrap_or_default();
        // SAFETY: zeroes are a checkpoint without tensors, and structs to be filled.
        let (mut checkpoint, mut info): (sys::ptxgen_w4_checkpoint, sys::ptxgen_w4_info) = unsafe { zeroed() };
        call(|err| unsafe { sys::ptxgen_w4_detect_format(ptr::null(), choice.as_ptr(), &mut checkpoint.format, err) })?;
        let dot = if layer.is_empty() { "" } else { "." };
        let tensors = [
            &mut checkpoint.weights, &mut checkpoint.scales, &mut checkpoint.zeros, &mut checkpoint.g_idx,
            &mut checkpoint.shape,
        ];
        for (to, name) in tensors.into_iter().zip(names).filter(|(_, name)| !name.is_empty()) {
            let name = format!("{layer}{dot}{name}");
            if let Some(tensor) = files.find(&name)? {
                *to = describe(&name, &tensor)?;
            }
        }
        call(|err| unsafe { sys::ptxgen_w4_describe(&checkpoint, &mut info, err) })?;
        let spec = sys::ptxgen_marlin_spec {
            k: info.k as u32,
            n: info.n as u32,
            group_size: info.group_size as i32,
            type_: sys::PTXGEN_F16 as u8,
            zeros: u8::from(!info.symmetric),
            act_order: u8::from(info.act_order),
            ..Default::default()
        };
        let kernel = device.dispatch::<Marlin>(&spec)?;
        let packed = pack(device, &spec, &checkpoint)?;
        Ok(Linear { device: device.clone(), kernel, packed, workspace: Mutex::new(None), k: info.k, n: info.n })
    }

    pub fn k(&self) -> usize {
        self.k
    }

    pub fn n(&self) -> usize {
        self.n
    }

    /// Enqueues y [m, n] = x [m, k] · wᵀ, f16. The layer has one workspace: launches that may run at the same
    /// time need a layer each. x and y must outlive the launch.
    pub fn forward(&self, m: usize, x: &Buffer, y: &mut Buffer, stream: Stream) -> Result<()> {
        let address = |i: usize| self.packed[i].as_ref().map_or(0, Buffer::address);
        let mut args = sys::ptxgen_marlin_args {
            m: m as u64,
            x: x.address(),
            codes: address(0),
            scales: address(1),
            zeros: address(2),
            order: address(3),
            y: y.address(),
            x_bytes: x.bytes() as u64,
            y_bytes: y.bytes() as u64,
            ..Default::default()
        };
        if (x.bytes() as u64) < args.m * self.k as u64 * 2 || (y.bytes() as u64) < args.m * self.n as u64 * 2 {
            return Err(Error::new(sys::PTXGEN_ERROR_INVALID_ARGUMENT, format!("x or y is too short for M = {m}")));
        }
        let needed = self.kernel.workspace_bytes(&args)?;
        let mut workspace = self.workspace.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if workspace.as_ref().map_or(0, Buffer::bytes) < needed as usize {
            self.device.synchronize()?; // launches may still use the smaller one
            *workspace = Some(self.device.zeros(needed as usize)?);
        }
        args.workspace = workspace.as_ref().map_or(0, Buffer::address);
        args.workspace_bytes = workspace.as_ref().map_or(0, Buffer::bytes) as u64;
        // SAFETY: the sizes were checked, and the other arrays are the layer's own.
        unsafe { self.kernel.launch(&args, stream) }
    }
}

fn pack(
    device: &Device, spec: &sys::ptxgen_marlin_spec, checkpoint: &sys::ptxgen_w4_checkpoint,
) -> Result<[Option<Buffer>; 4]> {
    // SAFETY: zeroes are to be filled.
    let mut packed: sys::ptxgen_marlin_packed = unsafe { zeroed() };
    call(|err| unsafe { sys::ptxgen_marlin_packed_layout(spec, &mut packed, err) })?;
    let sizes = [packed.codes_bytes, packed.scales_bytes, packed.zeros_bytes, packed.order_bytes];
    // Words, so that the arrays are aligned.
    let mut host: Vec<Vec<u64>> = sizes.iter().map(|bytes| vec![0; bytes / size_of::<u64>() + 1]).collect();
    let mut place = |i: usize| if sizes[i] == 0 { ptr::null_mut() } else { host[i].as_mut_ptr() };
    packed.codes = place(0).cast();
    packed.scales = place(1).cast();
    packed.zeros = place(2).cast();
    packed.order = place(3).cast();
    // SAFETY: the arrays have the sizes of the layout, and the tensors those of their shapes.
    call(|err| unsafe { sys::ptxgen_marlin_pack(spec, checkpoint, ptr::null(), &packed, ptr::null(), err) })?;
    let mut uploaded = [None, None, None, None];
    for i in 0..4 {
        if sizes[i] != 0 {
            // SAFETY: words are bytes, of which there are more than the size.
            let bytes = unsafe { std::slice::from_raw_parts(host[i].as_ptr().cast::<u8>(), sizes[i]) };
            uploaded[i] = Some(device.upload(bytes)?);
        }
    }
    Ok(uploaded)
}
