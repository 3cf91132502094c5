// SPDX-License-Identifier: Apache-2.0
//! The crate on the emulator, without a disk cache: PTXGEN_CACHE=off cargo test.
use ptxgen::{sys, Dense, Device, Files, Linear, Stream};

fn golden(name: &str) -> String {
    format!("{}/../../../tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn from_f16(bits: u16) -> f64 {
    let (sign, exponent, fraction) = (bits >> 15, i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if sign == 1 { -magnitude } else { magnitude }
}

fn halves(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect()
}

#[test]
fn a_product_in_f32_is_right() {
    let device = Device::open("cpu:sm_80").unwrap();
    let (m, n, k) = (3, 5, 32);
    let x: Vec<f32> = (0..m * k).map(|i| (i % 7) as f32 - 3.0).collect();
    let w: Vec<f32> = (0..n * k).map(|i| (i % 5) as f32 - 2.0).collect();
    let spec = sys::ptxgen_dense_spec { n: n as u32, k: k as u32, type_: sys::PTXGEN_F32 as u8, ..Default::default() };
    let kernel = device.dispatch::<Dense>(&spec).unwrap();
    let (on_x, on_w, on_y) = (device.upload(&x).unwrap(), device.upload(&w).unwrap(), device.zeros(m * n * 4).unwrap());
    let mut args = sys::ptxgen_dense_args {
        m: m as u64,
        x: on_x.address(),
        w: on_w.address(),
        y: on_y.address(),
        ..Default::default()
    };
    let workspace = kernel.workspace(&args).unwrap();
    args.workspace = workspace.address();
    args.workspace_bytes = workspace.bytes() as u64;
    unsafe { kernel.launch(&args, Stream::default()).unwrap() };
    let y: Vec<f32> = on_y.download().unwrap();
    for (i, value) in y.iter().enumerate() {
        let (row, column) = (i / n, i % n);
        let sum: f32 = (0..k).map(|j| x[row * k + j] * w[column * k + j]).sum();
        assert_eq!(*value, sum, "y[{row}, {column}]");
    }
}

#[test]
fn a_layer_of_a_file_gives_the_files_own_output() {
    let device = Device::open("cpu:sm_80").unwrap();
    let files = Files::open(&golden("marlin_g128.safetensors")).unwrap();
    let (x, wanted) = (files.tensor("A").unwrap(), files.tensor("C").unwrap());
    for (layer, format) in [("gptq", "gptq"), ("marlin", "marlin")] {
        let linear = Linear::from_layer(&device, &files, layer, format).unwrap();
        let m = x.shape()[0] as usize;
        let on_x = device.upload(&halves(x.data())).unwrap();
        let mut y = device.zeros(m * linear.n() * 2).unwrap();
        unsafe { linear.forward(m, &on_x, &mut y, Stream::default()).unwrap() };
        let y: Vec<u16> = y.download().unwrap();
        assert_eq!(wanted.dtype, sys::PTXGEN_DTYPE_F32);
        let wanted: Vec<f64> =
            wanted.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()).into()).collect();
        let largest = wanted.iter().fold(0f64, |most, v| most.max(v.abs()));
        for (got, want) in y.into_iter().map(from_f16).zip(&wanted) {
            assert!((got - want).abs() <= 2e-3 * largest, "{layer}: {got} for {want}");
        }
    }
}

#[test]
fn failures_have_the_librarys_sentence() {
    let device = Device::open("cpu:sm_80").unwrap();
    let spec = sys::ptxgen_marlin_spec { k: 100, n: 64, group_size: 128, ..Default::default() };
    let err = device.dispatch::<ptxgen::Marlin>(&spec).err().unwrap();
    assert_eq!(err.status, sys::PTXGEN_ERROR_UNSUPPORTED);
    assert!(err.to_string().contains("K = 100"), "{err}");
    assert!(Device::open("tpu").err().unwrap().to_string().contains("no device is named \"tpu\""));
    assert_eq!(Files::open("/nonexistent").err().unwrap().status, sys::PTXGEN_ERROR_FILE);
    let files = Files::open(&golden("marlin_g128.safetensors")).unwrap();
    assert!(files.tensor("AA").err().unwrap().to_string().contains("did you mean \"A\""));
    assert!(files.find("AA").unwrap().is_none());
    assert!(files.names().iter().any(|name| name == "gptq.qweight"));
    let linear = Linear::from_layer(&device, &files, "gptq", "gptq").unwrap();
    let (x, mut y) = (device.zeros(2 * linear.k()).unwrap(), device.zeros(2 * linear.n()).unwrap());
    let mut refused = |m| unsafe { linear.forward(m, &x, &mut y, Stream::default()) }.err().unwrap().to_string();
    assert!(refused(2).contains("too short"));
    assert!(refused(1 << 60).contains("too short"));
    let elsewhere = Device::open("cpu:sm_90").unwrap().zeros(2 * linear.k()).unwrap();
    let mistaken = unsafe { linear.forward(1, &elsewhere, &mut y, Stream::default()) };
    assert!(mistaken.err().unwrap().to_string().contains("another device"));
}

#[test]
fn handles_outlive_the_names_that_opened_them() {
    let buffer = Device::open("cpu:sm_80").unwrap().upload(&[1u8, 2, 3]).unwrap();
    let moved = std::thread::spawn(move || buffer.download::<u8>().unwrap());
    assert_eq!(moved.join().unwrap(), [1, 2, 3]);
}
