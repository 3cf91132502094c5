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

/// y = x · wᵀ + bias, where the layer has one, with w of 4 bits out of a GPTQ, AWQ, compressed-tensors or Marlin checkpoint, x and y f16: packed
/// and uploaded, by the family marlin.
pub struct Linear {
    device: Device,
    kernel: Kernel<Marlin>,
    packed: [Option<Buffer>; 5],
    /// The last is in use; graphs may hold those that were too small.
    workspaces: Mutex<Vec<Buffer>>,
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
        let bias = match files.find(&format!("{layer}{dot}bias"))? {
            Some(tensor) => Some(bias_in_f16(&tensor, info.n)?),
            None => None,
        };
        let spec = sys::ptxgen_marlin_spec {
            bias: u8::from(bias.is_some()),
            k: info.k as u32,
            n: info.n as u32,
            group_size: info.group_size as i32,
            type_: sys::PTXGEN_F16 as u8,
            zeros: u8::from(!info.symmetric),
            act_order: u8::from(info.act_order),
            ..Default::default()
        };
        let kernel = device.dispatch::<Marlin>(&spec)?;
        let [codes, scales, zeros, order] = pack(device, &spec, &checkpoint)?;
        let bias = bias.map(|bits| device.upload(&bits)).transpose()?;
        let packed = [codes, scales, zeros, order, bias];
        Ok(Linear { device: device.clone(), kernel, packed, workspaces: Mutex::default(), k: info.k, n: info.n })
    }

    pub fn k(&self) -> usize {
        self.k
    }

    pub fn n(&self) -> usize {
        self.n
    }

    /// Enqueues y [m, n] = x [m, k] · wᵀ, f16.
    ///
    /// # Safety
    /// x and y stay until the launch has ended, and nothing else writes them or reads y meanwhile. The layer has
    /// one workspace: launches that may run at the same time need a layer each.
    pub unsafe fn forward(&self, m: usize, x: &Buffer, y: &mut Buffer, stream: Stream) -> Result<()> {
        let address = |i: usize| self.packed[i].as_ref().map_or(0, Buffer::address);
        let mut args = sys::ptxgen_marlin_args {
            m: m as u64,
            x: x.address(),
            codes: address(0),
            scales: address(1),
            zeros: address(2),
            order: address(3),
            bias: address(4),
            y: y.address(),
            x_bytes: x.bytes() as u64,
            y_bytes: y.bytes() as u64,
            ..Default::default()
        };
        let bytes = |columns: usize| m.checked_mul(columns).and_then(|n| n.checked_mul(2)).unwrap_or(usize::MAX);
        if x.bytes() < bytes(self.k) || y.bytes() < bytes(self.n) {
            return Err(Error::new(sys::PTXGEN_ERROR_INVALID_ARGUMENT, format!("x or y is too short for M = {m}")));
        }
        if !x.is_of(&self.device) || !y.is_of(&self.device) {
            return Err(Error::new(sys::PTXGEN_ERROR_INVALID_ARGUMENT, "x or y is memory of another device"));
        }
        let needed = self.kernel.workspace_bytes(&args)? as usize;
        let mut workspaces = self.workspaces.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if workspaces.last().map_or(0, Buffer::bytes) < needed {
            workspaces.push(self.device.zeros(needed)?);
        }
        args.workspace = workspaces.last().map_or(0, Buffer::address);
        args.workspace_bytes = workspaces.last().map_or(0, Buffer::bytes) as u64;
        self.kernel.launch(&args, stream)
    }
}

/// A bias of f32, f16 or bf16, rounded to f16.
fn bias_in_f16(tensor: &Tensor<'_>, n: usize) -> Result<Vec<u16>> {
    let element = match tensor.dtype {
        sys::PTXGEN_DTYPE_F32 => sys::PTXGEN_F32,
        sys::PTXGEN_DTYPE_F16 => sys::PTXGEN_F16,
        sys::PTXGEN_DTYPE_BF16 => sys::PTXGEN_BF16,
        _ => return Err(Error::new(sys::PTXGEN_ERROR_UNSUPPORTED, "a bias is F32, F16 or BF16")),
    };
    // SAFETY: the tensor has n elements of that size, at any address; so do the bits.
    unsafe {
        if tensor.data().len() != n * sys::ptxgen_element_size(element) {
            return Err(Error::new(sys::PTXGEN_ERROR_MALFORMED, format!("the bias has not {n} elements")));
        }
        let mut bits = vec![0u16; n];
        for i in 0..n {
            let value = sys::ptxgen_element_load(element, tensor.data().as_ptr().cast(), i);
            sys::ptxgen_element_store(sys::PTXGEN_F16, bits.as_mut_ptr().cast(), i, value);
        }
        Ok(bits)
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
