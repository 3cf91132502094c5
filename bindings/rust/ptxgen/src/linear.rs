// SPDX-License-Identifier: Apache-2.0
use std::ffi::CString;
use std::mem::zeroed;
use std::ptr;

use crate::device::{Buffer, Device, Stream};
use crate::error::{call, Error, Result};
use crate::files::Files;
use crate::sys;

/// A layer of a checkpoint, packed, uploaded and ready to run: y = f(x · wᵀ + bias), bias included where the layer
/// has one. Any form that a family multiplies: GPTQ, AWQ, compressed-tensors, Marlin, s8 and fp8 with scales, 2:4
/// sparse, GGUF's types, floats.
pub struct Linear {
    handle: *mut sys::ptxgen_linear,
    device: Device,
    element: sys::ptxgen_element,
    /// x is s8 codes.
    codes: bool,
}

// SAFETY: a layer is only read, and runs need no exclusion but that of its workspace, which `forward` asks for.
unsafe impl Send for Linear {}
unsafe impl Sync for Linear {}

/// What is asked of a layer beside its name.
#[derive(Clone, Copy)]
pub struct LayerOptions<'a> {
    /// The other matrix of y = silu(gate) · up, the layer being gate.
    pub up: Option<&'a str>,
    /// For files that do not say their form; zeroes take what the file says.
    pub choice: sys::ptxgen_layer_choice,
    /// The type of x and y, as far as the family has it.
    pub element: sys::ptxgen_element,
    pub activation: sys::ptxgen_activation,
    /// The most tokens of a launch.
    pub max_m: u64,
}

impl Default for LayerOptions<'_> {
    /// f16, no activation, up to 4096 tokens.
    fn default() -> Self {
        // SAFETY: zeroes are a choice of anything.
        let choice = unsafe { zeroed() };
        let activation = sys::PTXGEN_ACTIVATION_NONE;
        LayerOptions { up: None, choice, element: sys::PTXGEN_F16, activation, max_m: 4096 }
    }
}

fn find(files: &Files, layer: &str, choice: &sys::ptxgen_layer_choice) -> Result<sys::ptxgen_layer> {
    let name = CString::new(layer).map_err(|_| Error::new(sys::PTXGEN_ERROR_NOT_FOUND, "a name holds no NUL"))?;
    // SAFETY: zeroes are a layer without tensors, to be filled; what is found lives as long as the files.
    let mut found: sys::ptxgen_layer = unsafe { zeroed() };
    call(|err| unsafe { sys::ptxgen_files_layer(files.raw(), name.as_ptr(), choice, &mut found, err) })?;
    Ok(found)
}

impl Linear {
    /// Finds, packs and uploads a layer, which keeps nothing of the files.
    pub fn from_layer(device: &Device, files: &Files, layer: &str, options: &LayerOptions<'_>) -> Result<Linear> {
        let found = find(files, layer, &options.choice)?;
        let up = options.up.map(|name| find(files, name, &options.choice)).transpose()?;
        // SAFETY: zeroes are options, which are filled.
        let mut filled: sys::ptxgen_linear_options = unsafe { zeroed() };
        filled.max_m = options.max_m;
        filled.type_ = options.element as u8;
        filled.activation = options.activation as u8;
        let up = up.as_ref().map_or(ptr::null(), |up| up as *const _);
        let mut handle = ptr::null_mut();
        let _entered = device.0.enter()?;
        // SAFETY: layers and options are filled, and the place is ours.
        call(|err| unsafe {
            sys::ptxgen_linear_from_layer(device.0.dispatcher, &found, up, &filled, &mut handle, err)
        })?;
        // SAFETY: a layer that was found has weights.
        let weight = unsafe { &*found.parts[sys::PTXGEN_LAYER_WEIGHT as usize] };
        let codes = found.kind == sys::PTXGEN_LAYER_SPARSE24 && weight.dtype == sys::PTXGEN_DTYPE_I8;
        Ok(Linear { handle, device: device.clone(), element: options.element, codes })
    }

    pub fn k(&self) -> usize {
        // SAFETY: the handle is of a layer.
        unsafe { sys::ptxgen_linear_k(self.handle) as usize }
    }

    pub fn n(&self) -> usize {
        // SAFETY: the handle is of a layer.
        unsafe { sys::ptxgen_linear_n(self.handle) as usize }
    }

    /// Enqueues y [m, n] = f(x [m, k] · wᵀ + bias), of the options' element; of 2:4 sparse s8 x is codes, whose
    /// scale is the file's.
    ///
    /// # Safety
    /// x and y stay until the launch has ended, and nothing else writes them or reads y meanwhile. The layer has
    /// one workspace: launches that may run at the same time need a layer each.
    pub unsafe fn forward(&self, m: usize, x: &Buffer, y: &mut Buffer, stream: Stream) -> Result<()> {
        let size = sys::ptxgen_element_size(self.element);
        let bytes = |columns: usize, size: usize| m.checked_mul(columns).and_then(|n| n.checked_mul(size));
        let (of_x, of_y) = (bytes(self.k(), if self.codes { 1 } else { size }), bytes(self.n(), size));
        if of_x.map_or(true, |bytes| x.bytes() < bytes) || of_y.map_or(true, |bytes| y.bytes() < bytes) {
            return Err(Error::new(sys::PTXGEN_ERROR_INVALID_ARGUMENT, format!("x or y is too short for M = {m}")));
        }
        if !x.is_of(&self.device) || !y.is_of(&self.device) {
            return Err(Error::new(sys::PTXGEN_ERROR_INVALID_ARGUMENT, "x or y is memory of another device"));
        }
        let args = sys::ptxgen_linear_args {
            m: m as u64,
            x: x.address(),
            y: y.address(),
            x_bytes: x.bytes() as u64,
            y_bytes: y.bytes() as u64,
            ..Default::default()
        };
        let _entered = self.device.0.enter()?;
        call(|err| sys::ptxgen_linear_run(self.handle, &args, stream.0, err))
    }
}

impl Drop for Linear {
    fn drop(&mut self) {
        // SAFETY: the device, and so the dispatcher, is still there.
        unsafe { sys::ptxgen_linear_destroy(self.handle) };
    }
}
