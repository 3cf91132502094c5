// SPDX-License-Identifier: Apache-2.0
//! Declarations of the part of ptxgen that dispatches and launches rmsnorm_q4k, for a -sys crate:
//! `rustc --edition 2021 ptxgen_sys.rs -L native=LIBDIR -l ptxgen` builds the program at its end.
//! Layouts are those of include/ptxgen/{status,driver,dispatch,rmsnorm_q4k}.h; what is opaque there
//! is opaque here.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};

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

/// A member of the driver table that has no name here.
type call = *mut c_void;

/// The driver table: libcuda's calls in the order of driver_calls.def, of which these suffice for
/// a context and its memory. `DRIVER_WORDS` is more than the rest of the table has.
pub const DRIVER_WORDS: usize = 128;
#[repr(C)]
pub struct ptxgen_driver {
    pub library: *mut c_void,
    pub version: c_int,
    pub device_count: c_int,
    to_contexts: [call; 14],
    pub ctx_create: Option<unsafe extern "C" fn(*mut ptxgen_cu_context, c_uint, c_int) -> c_int>,
    pub ctx_destroy: Option<unsafe extern "C" fn(ptxgen_cu_context) -> c_int>,
    to_synchronize: [call; 5],
    pub ctx_synchronize: Option<unsafe extern "C" fn() -> c_int>,
    to_memory: [call; 13],
    pub mem_alloc: Option<unsafe extern "C" fn(*mut u64, usize) -> c_int>,
    pub mem_free: Option<unsafe extern "C" fn(u64) -> c_int>,
    to_copies: [call; 3],
    pub memcpy_htod: Option<unsafe extern "C" fn(u64, *const c_void, usize) -> c_int>,
    pub memcpy_dtoh: Option<unsafe extern "C" fn(*mut c_void, u64, usize) -> c_int>,
    to_the_end: [call; DRIVER_WORDS],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ptxgen_rmsnorm_q4k_spec {
    pub k: u32,
    pub n: [u32; 3],
    pub epsilon: f32,
    pub max_m: u32,
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
    pub m: u64,
    pub x: u64,
    pub residual: u64,
    pub residual_out: u64,
    pub gamma: u64,
    pub w: [u64; 3],
    pub bias: [u64; 3],
    pub y: [u64; 3],
    pub x_stride: u64,
    pub residual_stride: u64,
    pub residual_out_stride: u64,
    pub y_stride: [u64; 3],
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

/// Copies values into new memory of the device, which its context frees.
unsafe fn to_device<T>(cuda: &ptxgen_driver, values: &[T]) -> u64 {
    let (mut address, bytes) = (0, std::mem::size_of_val(values));
    assert_eq!(cuda.mem_alloc.unwrap()(&mut address, bytes), 0);
    assert_eq!(cuda.memcpy_htod.unwrap()(address, values.as_ptr().cast(), bytes), 0);
    address
}

/// N rows of Q4_K, as in a GGUF file: all weights of row r are (r mod 16) / 64.
fn make_weights(k: usize, n: usize) -> Vec<u8> {
    let mut block = [0u8; 144];
    block[..2].copy_from_slice(&0x2400u16.to_le_bytes()); // d = 1 / 64 in f16, dmin = 0
    block[4..8].fill(1); // the scales of eight sub-blocks
    block[12..16].fill(1);
    let mut rows = Vec::new();
    for r in 0..n {
        block[16..].fill((r % 16 * 17) as u8); // two codes a byte
        rows.extend(block.repeat(k / 256));
    }
    rows
}

/// A product on the first GPU, or without one on the emulator: x and γ are all ones, so y is the
/// sum of a row of weights.
fn main() {
    const K: usize = 512;
    const N: usize = 64;
    let spec = ptxgen_rmsnorm_q4k_spec {
        k: K as u32,
        n: [N as u32, 0, 0],
        epsilon: 1e-6,
        max_m: 1,
        ..Default::default() // x and y f32
    };
    unsafe {
        let mut cuda: ptxgen_driver = std::mem::zeroed();
        let mut err: ptxgen_error = std::mem::zeroed();
        let mut context = std::ptr::null_mut();
        let mut dispatcher = std::ptr::null_mut();
        let mut kernel = std::ptr::null_mut();
        if ptxgen_driver_open(&mut cuda, std::ptr::null(), &mut err) != 0 {
            println!("{}; on the emulator then", describe(&err));
            ptxgen_emulator_driver(&mut cuda);
            assert_eq!(ptxgen_driver_start(&mut cuda, &mut err), 0);
        }
        assert_eq!(cuda.ctx_create.unwrap()(&mut context, 0, 0), 0);
        if ptxgen_dispatcher_create(&cuda, std::ptr::null(), &mut dispatcher, &mut err) != 0
            || ptxgen_rmsnorm_q4k_dispatch(dispatcher, &spec, &mut kernel, &mut err) != 0
        {
            panic!("{}", describe(&err));
        }
        let mut y = vec![0f32; N];
        let args = ptxgen_rmsnorm_q4k_args {
            m: 1,
            x: to_device(&cuda, &[1f32; K]),
            gamma: to_device(&cuda, &[1f32; K]),
            w: [to_device(&cuda, &make_weights(K, N)), 0, 0],
            y: [to_device(&cuda, &y), 0, 0],
            ..Default::default()
        };
        if ptxgen_rmsnorm_q4k_launch(kernel, &args, std::ptr::null_mut(), &mut err) != 0 {
            panic!("{}", describe(&err));
        }
        assert_eq!(cuda.ctx_synchronize.unwrap()(), 0);
        assert_eq!(cuda.memcpy_dtoh.unwrap()(y.as_mut_ptr().cast(), args.y[0], N * 4), 0);
        for (r, &value) in y.iter().enumerate() {
            let wanted = (r % 16 * K) as f32 / 64.0;
            assert!((value - wanted).abs() <= 1e-4 * wanted, "y[{r}] = {value}, not {wanted}");
        }
        println!(
            "CUDA {}.{}: {N} outputs are right; y[15] = {}",
            cuda.version / 1000,
            cuda.version % 1000 / 10,
            y[15]
        );
        ptxgen_rmsnorm_q4k_destroy(kernel);
        ptxgen_dispatcher_destroy(dispatcher);
        assert_eq!(cuda.ctx_destroy.unwrap()(context), 0); // and the memory with it
        ptxgen_driver_close(&mut cuda);
    }
}
