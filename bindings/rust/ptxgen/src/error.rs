// SPDX-License-Identifier: Apache-2.0
use std::ffi::CStr;
use std::fmt;

use crate::sys;

/// A failure: the library's sentence, and its status, as `sys::PTXGEN_ERROR_JIT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub status: sys::ptxgen_status,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    pub(crate) fn new(status: sys::ptxgen_status, message: impl Into<String>) -> Error {
        Error { status, message: message.into() }
    }
}

/// Calls a function whose last parameter is the error.
pub(crate) fn call(function: impl FnOnce(*mut sys::ptxgen_error) -> sys::ptxgen_status) -> Result<()> {
    let mut err = std::mem::MaybeUninit::<sys::ptxgen_error>::zeroed();
    match function(err.as_mut_ptr()) {
        sys::PTXGEN_OK => Ok(()),
        status => {
            // SAFETY: zeroes are a valid error, whose text a failing function has filled and terminated.
            let message = unsafe { CStr::from_ptr((*err.as_ptr()).message.as_ptr()) };
            Err(Error::new(status, message.to_string_lossy()))
        }
    }
}
