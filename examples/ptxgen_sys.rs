// SPDX-License-Identifier: Apache-2.0
//! Declarations of the part of ptxgen that dispatches and launches rmsnorm_q4k, for a -sys crate:
//! `rustc ptxgen_sys.rs -L native=LIBDIR -l ptxgen` builds and runs the test at its end. Layouts
//! are those of include/ptxgen/{status,driver,dispatch,rmsnorm_q4k}.h; what is opaque there is here.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_void, CStr};

pub type ptxgen_status = c_int;
pub type ptxgen_cu_context = *mut c_void;
pub type ptxgen_cu_stream = *mut c_void;

pub const PTXGEN_F32: u8 = 0;
pub const PTXGEN_F16: u8 = 1;
pub const PTXGEN_BF16: u8 = 2;

#[repr(C)]
pub struct ptxgen_error {
    pub status: ptxgen_status,
    pub message: [c_char; 1024],
}

/// The driver table. Only its first members are named; the functions behind them are reached through
/// ptxgen. `DRIVER_WORDS` is more than the table has.
pub const DRIVER_WORDS: usize = 256;
#[repr(C)]
pub struct ptxgen_driver {
    pub library: *mut c_void,
    pub version: c_int,
    pub device_count: c_int,
    calls: [*mut c_void; DRIVER_WORDS],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ptxgen_rmsnorm_q4k_spec {
    pub k: u32,
    pub n: [u32; 3],
    pub epsilon: f32,
    pub max_tokens: u32,
    pub x_type: u8,
    pub y_type: u8,
    pub epilogue: u8,
    pub bias: u8,
    pub residual: u8,
    pub residual_out: u8,
    pub reserved: [u8; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ptxgen_rmsnorm_q4k_args {
    pub x: u64,
    pub residual: u64,
    pub residual_out: u64,
    pub gamma: u64,
    pub weights: [u64; 3],
    pub bias: [u64; 3],
    pub y: [u64; 3],
    pub x_stride: u32,
    pub residual_stride: u32,
    pub residual_out_stride: u32,
    pub y_stride: [u32; 3],
    pub m: u32,
    pub overlap_previous: u32,
}

macro_rules! opaque {
    ($($name:ident),*) => { $(#[repr(C)] pub struct $name { _private: [u8; 0] })* };
}
opaque!(ptxgen_dispatcher, ptxgen_dispatch_options, ptxgen_rmsnorm_q4k);

extern "C" {
    pub fn ptxgen_status_name(status: ptxgen_status) -> *const c_char;
    pub fn ptxgen_driver_open(driver: *mut ptxgen_driver, path: *const c_char,
                              err: *mut ptxgen_error) -> ptxgen_status;
    pub fn ptxgen_driver_start(driver: *mut ptxgen_driver, err: *mut ptxgen_error)
        -> ptxgen_status;
    pub fn ptxgen_driver_close(driver: *mut ptxgen_driver);
    pub fn ptxgen_emulator_driver(driver: *mut ptxgen_driver);
    /// NULL options: the calling thread's current context, the default disk cache.
    pub fn ptxgen_dispatcher_create(driver: *const ptxgen_driver,
                                    options: *const ptxgen_dispatch_options,
                                    dispatcher: *mut *mut ptxgen_dispatcher,
                                    err: *mut ptxgen_error) -> ptxgen_status;
    pub fn ptxgen_dispatcher_destroy(dispatcher: *mut ptxgen_dispatcher);
    pub fn ptxgen_rmsnorm_q4k_dispatch(dispatcher: *mut ptxgen_dispatcher,
                                       spec: *const ptxgen_rmsnorm_q4k_spec,
                                       kernel: *mut *mut ptxgen_rmsnorm_q4k,
                                       err: *mut ptxgen_error) -> ptxgen_status;
    pub fn ptxgen_rmsnorm_q4k_launch(kernel: *const ptxgen_rmsnorm_q4k,
                                     args: *const ptxgen_rmsnorm_q4k_args,
                                     stream: ptxgen_cu_stream, err: *mut ptxgen_error)
        -> ptxgen_status;
    pub fn ptxgen_rmsnorm_q4k_destroy(kernel: *mut ptxgen_rmsnorm_q4k);
}

/// A failure in words.
pub fn describe(err: &ptxgen_error) -> String {
    let text = unsafe { CStr::from_ptr(err.message.as_ptr()) };
    text.to_string_lossy().into_owned()
}

/// The declarations link, and an error comes back whole: there is no context to dispatch in.
fn main() {
    unsafe {
        let mut driver: ptxgen_driver = std::mem::zeroed();
        let mut err: ptxgen_error = std::mem::zeroed();
        let mut dispatcher = std::ptr::null_mut();
        if ptxgen_driver_open(&mut driver, std::ptr::null(), &mut err) != 0 {
            println!("{}; on the emulator then", describe(&err));
            ptxgen_emulator_driver(&mut driver);
            assert_eq!(ptxgen_driver_start(&mut driver, &mut err), 0);
        }
        println!("CUDA {}.{}", driver.version / 1000, driver.version % 1000 / 10);
        let status = ptxgen_dispatcher_create(&driver, std::ptr::null(), &mut dispatcher, &mut err);
        assert_eq!(status, err.status);
        assert!(describe(&err).contains("no CUDA context is current"));
        println!("as it should be without a context: {}", describe(&err));
        ptxgen_driver_close(&mut driver);
    }
}
