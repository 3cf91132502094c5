// SPDX-License-Identifier: Apache-2.0
//! The crate on the emulator, without a disk cache: PTXGEN_CACHE=off cargo test.
use ptxgen::{sys, Dense, Device, Files, GgufMatvec, GgufOperands, GgufShape, LayerOptions, Linear, Stream};

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
    for layer in ["gptq", "marlin"] {
        let linear = Linear::from_layer(&device, &files, layer, &Default::default()).unwrap();
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

/// Rows of Q8_0: an f16 scale of 1 and 32 codes.
fn q8_0_rows(n: usize, k: usize) -> (Vec<u8>, Vec<f32>) {
    let (mut bytes, mut weights) = (Vec::new(), Vec::new());
    for i in 0..n * k {
        if i % 32 == 0 {
            bytes.extend_from_slice(&[0x00, 0x3C]);
        }
        let code = (i * 7 % 11) as i8 - 5;
        bytes.push(code as u8);
        weights.push(f32::from(code));
    }
    (bytes, weights)
}

#[test]
fn merged_matrices_are_multiplied_by_their_addresses() {
    let device = Device::open("cpu:sm_90").unwrap();
    let (k, n, m, gap) = (64, [8, 5], 3, 2);
    let (mut w, mut weights) = q8_0_rows(n[0], k);
    let floats: Vec<f32> = (0..n[1] * k).map(|i| (i % 5) as f32 - 2.0).collect();
    floats.iter().for_each(|v| w.extend_from_slice(&v.to_le_bytes()));
    weights.extend_from_slice(&floats);
    let x: Vec<f32> = (0..m * (k + gap)).map(|i| (i % 7) as f32 - 3.0).collect();
    let matrices = [(sys::PTXGEN_GGUF_Q8_0, n[0] as u32), (sys::PTXGEN_GGUF_F32, n[1] as u32)];
    let shape = GgufShape {
        k: k as u32,
        matrices: &matrices,
        epilogue: sys::PTXGEN_EPILOGUE_NONE,
        x_type: sys::PTXGEN_F32,
        y_type: sys::PTXGEN_F32,
    };
    let matvec = GgufMatvec::new(&device, &shape).unwrap();
    let columns = n[0] + n[1];
    let (on_w, on_x, on_y) = (device.upload(&w).unwrap(), device.upload(&x).unwrap(), device.zeros(m * columns * 4).unwrap());
    let workspace = matvec.workspace().unwrap();
    let mut at = GgufOperands {
        w: on_w.address(),
        x: on_x.address(),
        y: on_y.address(),
        m: m as u32,
        x_stride: (k + gap) as u64,
        y_stride: 0,
    };
    unsafe { matvec.launch(&at, workspace.address(), Stream::default()).unwrap() };
    let y: Vec<f32> = on_y.download().unwrap();
    for (i, value) in y.iter().enumerate() {
        let (row, column) = (i / columns, i % columns);
        let sum: f32 = (0..k).map(|j| x[row * (k + gap) + j] * weights[column * k + j]).sum();
        assert!((value - sum).abs() <= 1e-3, "y[{row}, {column}] is {value} for {sum}");
    }
    at.m = 9;
    let refused = unsafe { matvec.launch(&at, workspace.address(), Stream::default()) };
    assert!(refused.err().unwrap().to_string().contains("m = 9 is above the 8 tokens"));
    let four = GgufShape { matrices: &[(sys::PTXGEN_GGUF_Q8_0, 8); 4], ..shape };
    assert!(GgufMatvec::new(&device, &four).err().unwrap().to_string().contains("count = 4"));
}

#[test]
fn a_layer_may_be_of_any_family_and_of_a_pair() {
    let device = Device::open("cpu:sm_80").unwrap();
    let files = Files::open(&golden("gguf_products.gguf")).unwrap();
    let options = LayerOptions { element: sys::PTXGEN_F32, up: Some("q4_0"), max_m: 5, ..Default::default() };
    let linear = Linear::from_layer(&device, &files, "q8_0", &options).unwrap();
    let floats = |name: &str| -> Vec<f32> {
        let tensor = files.tensor(name).unwrap();
        tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    let x = device.upload(&floats("input")).unwrap();
    let mut y = device.zeros(5 * linear.n() * 4).unwrap();
    unsafe { linear.forward(5, &x, &mut y, Stream::default()).unwrap() };
    let (gate, up) = (floats("q8_0.y"), floats("q4_0.y"));
    let wanted: Vec<f32> = gate.iter().zip(&up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
    let largest = wanted.iter().fold(0f32, |most, v| most.max(v.abs()));
    for (got, want) in y.download::<f32>().unwrap().iter().zip(&wanted) {
        assert!((got - want).abs() <= 2e-3 * largest, "{got} for {want}");
    }
    let err = Linear::from_layer(&device, &files, "q8_x", &options).err().unwrap();
    assert_eq!(err.status, sys::PTXGEN_ERROR_NOT_FOUND);
    assert!(err.to_string().contains("did you mean \"q8_0\""), "{err}");
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
    let linear = Linear::from_layer(&device, &files, "gptq", &Default::default()).unwrap();
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
