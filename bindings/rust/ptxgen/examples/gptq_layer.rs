// SPDX-License-Identifier: Apache-2.0
//! A layer of a GPTQ file on the first GPU, or on the emulator: gptq_layer FILE LAYER
use ptxgen::{Device, Error, Files, Linear, Stream};

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().collect();
    let (file, layer) = (words.get(1).expect("FILE LAYER"), words.get(2).expect("LAYER"));
    let device = Device::open("auto")?;
    let linear = Linear::from_layer(&device, &Files::open(file)?, layer, &Default::default())?;
    let tokens = 4;
    let x = device.upload(&vec![0x3c00u16; tokens * linear.k()])?; // 1.0 in f16
    let mut y = device.zeros(2 * tokens * linear.n())?;
    unsafe { linear.forward(tokens, &x, &mut y, Stream::default())? }; // x and y outlive it: y is read below
    let y: Vec<u16> = y.download()?;
    println!("{} outputs, the first is {:#06x} in f16", y.len(), y[0]);
    Ok(())
}
