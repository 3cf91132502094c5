// SPDX-License-Identifier: Apache-2.0
//! Declarations of libptxgen and libptxgen-files as bindgen makes them of the headers, whose comments say what
//! each is for. The crate `ptxgen` has owned handles.
#![allow(non_camel_case_types, non_upper_case_globals, non_snake_case, clippy::all)]
#![allow(deref_nullptr, unaligned_references)]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
