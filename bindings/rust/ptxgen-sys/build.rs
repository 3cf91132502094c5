// SPDX-License-Identifier: Apache-2.0
//! Finds the installed libraries by pkg-config (or PTXGEN_INCLUDE_DIR and PTXGEN_LIB_DIR), and makes the
//! declarations of their headers with bindgen's command.
use std::env;
use std::path::PathBuf;
use std::process::Command;

fn variable(package: &str, name: &str) -> String {
    let output = Command::new("pkg-config").arg(format!("--variable={name}")).arg(package).output();
    let found = output.ok().filter(|o| o.status.success()).map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    found.filter(|value| !value.is_empty()).unwrap_or_else(|| {
        panic!("pkg-config does not find {package}: install ptxgen, or set PTXGEN_INCLUDE_DIR and PTXGEN_LIB_DIR")
    })
}

fn main() {
    let include = env::var("PTXGEN_INCLUDE_DIR").unwrap_or_else(|_| variable("ptxgen", "includedir"));
    let libraries = env::var("PTXGEN_LIB_DIR").unwrap_or_else(|_| variable("ptxgen", "libdir"));
    for name in ["PTXGEN_INCLUDE_DIR", "PTXGEN_LIB_DIR"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed={include}/ptxgen");
    println!("cargo:rerun-if-changed=generate.sh");
    println!("cargo:rustc-link-search=native={libraries}");
    println!("cargo:rustc-link-lib=ptxgen");
    println!("cargo:rustc-link-lib=ptxgen-files");

    let output = PathBuf::from(env::var_os("OUT_DIR").unwrap()).join("bindings.rs");
    let made = Command::new("./generate.sh").arg(&include).arg(&output).status();
    assert!(made.map_or(false, |status| status.success()), "generate.sh failed: bindgen's command must be installed");
}
