// SPDX-License-Identifier: Apache-2.0
use std::ffi::{CStr, CString};
use std::ptr;
use std::slice;

use crate::error::{call, Error, Result};
use crate::sys;

/// A checkpoint on disk, GGUF or safetensors: a file, all parts of one, or a folder.
pub struct Files(*mut sys::ptxgen_files);

// SAFETY: what was opened is read-only (files.h).
unsafe impl Send for Files {}
unsafe impl Sync for Files {}

/// A tensor that is read in place.
#[derive(Clone, Copy)]
pub struct Tensor<'a> {
    pub dtype: sys::ptxgen_dtype,
    shape: &'a [u64],
    data: &'a [u8],
}

impl<'a> Tensor<'a> {
    /// Outermost first.
    pub fn shape(&self) -> &'a [u64] {
        self.shape
    }

    /// Little-endian, aligned as the file aligns it.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }
}

impl Files {
    pub(crate) fn raw(&self) -> *const sys::ptxgen_files {
        self.0
    }

    pub fn open(path: &str) -> Result<Files> {
        let mut files = ptr::null_mut();
        let path = CString::new(path).map_err(|_| Error::new(sys::PTXGEN_ERROR_FILE, "a path holds no NUL"))?;
        // SAFETY: the place is ours.
        call(|err| unsafe { sys::ptxgen_files_open(path.as_ptr(), &mut files, err) })?;
        Ok(Files(files))
    }

    /// The tensor's name, of all in the order of the file.
    pub fn names(&self) -> Vec<String> {
        // SAFETY: the list and its names belong to the files.
        unsafe {
            let list = &*sys::ptxgen_files_tensors(self.0);
            let items = if list.count == 0 { &[][..] } else { slice::from_raw_parts(list.items, list.count) };
            items.iter().map(|t| CStr::from_ptr(t.name).to_string_lossy().into_owned()).collect()
        }
    }

    /// The tensor of that name; the error has the nearest names where there is none.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>> {
        let mut found: *const sys::ptxgen_tensor = ptr::null();
        let name = CString::new(name).map_err(|_| Error::new(sys::PTXGEN_ERROR_NOT_FOUND, "a name holds no NUL"))?;
        // SAFETY: the place is ours, and what is found lives as long as the files.
        call(|err| unsafe { sys::ptxgen_files_require(self.0, name.as_ptr(), &mut found, err) })?;
        let tensor = unsafe { &*found };
        let data = if tensor.bytes == 0 {
            &[][..]
        } else {
            unsafe { slice::from_raw_parts(tensor.data.cast(), tensor.bytes) }
        };
        Ok(Tensor { dtype: tensor.dtype, shape: &tensor.shape[..tensor.ndim as usize], data })
    }

    /// The tensor of that name, if there is one.
    pub fn find(&self, name: &str) -> Result<Option<Tensor<'_>>> {
        match self.tensor(name) {
            Err(err) if err.status == sys::PTXGEN_ERROR_NOT_FOUND => Ok(None),
            other => other.map(Some),
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // SAFETY: tensors borrow the files, so none is left.
        unsafe { sys::ptxgen_files_close(self.0) };
    }
}
