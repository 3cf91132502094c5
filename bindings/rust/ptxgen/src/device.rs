// SPDX-License-Identifier: Apache-2.0
use std::ffi::{c_void, CString};

use std::mem::{size_of, size_of_val, MaybeUninit};
use std::ptr;
use std::sync::Arc;

use crate::error::{call, Error, Result};
use crate::family::{Family, Kernel};
use crate::sys;

/// A driver table, a context and its registry of kernels. It lives as long as anything made from it.
pub(crate) struct Inner {
    driver: Box<sys::ptxgen_driver>,
    context: sys::ptxgen_cu_context,
    ordinal: i32,
    pub(crate) dispatcher: *mut sys::ptxgen_dispatcher,
    emulated: bool,
}

// SAFETY: a started table is only read, and dispatch.h allows any thread to dispatch and release.
unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

impl Inner {
    fn check(&self, result: sys::ptxgen_cu_result, doing: &str) -> Result<()> {
        if result == sys::PTXGEN_CUDA_SUCCESS {
            return Ok(());
        }
        let doing = CString::new(doing).unwrap_or_default();
        // SAFETY: the format takes the one string.
        call(|err| unsafe {
            sys::ptxgen_driver_fail(&*self.driver, result, err, b"%s\0".as_ptr().cast(), doing.as_ptr())
        })
    }

    /// The context is current in this thread while the guard lives, and the one before it afterwards.
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        // SAFETY: every started table has the call.
        let result = unsafe { (self.driver.ctx_push_current.unwrap())(self.context) };
        self.check(result, "entering the context")?;
        Ok(Entered(self))
    }

    fn fault(&self) -> Option<Error> {
        let mut fault = MaybeUninit::<sys::ptxgen_emulator_fault>::zeroed();
        // SAFETY: the context is the emulator's; zeroes are a valid fault.
        let fault = unsafe {
            sys::ptxgen_emulator_last_fault(self.context, fault.as_mut_ptr());
            fault.assume_init()
        };
        // SAFETY: the text is terminated.
        let message = unsafe { std::ffi::CStr::from_ptr(fault.message.as_ptr()) }.to_string_lossy();
        (!message.is_empty()).then(|| Error::new(sys::PTXGEN_ERROR_PTX_FAULT, message))
    }

    fn synchronize(&self) -> Result<()> {
        let _entered = self.enter()?;
        // SAFETY: every started table has the call.
        let result = unsafe { (self.driver.ctx_synchronize.unwrap())() };
        match self.check(result, "running kernels") {
            Err(err) if self.emulated => Err(self.fault().unwrap_or(err)),
            other => other,
        }
    }
}

pub(crate) struct Entered<'a>(&'a Inner);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut left = ptr::null_mut();
        // SAFETY: the context was pushed by this thread.
        unsafe { (self.0.driver.ctx_pop_current.unwrap())(&mut left) };
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: kernels and buffers hold this object, so none of them is left.
        unsafe {
            sys::ptxgen_dispatcher_destroy(self.dispatcher);
            if !self.context.is_null() {
                (self.driver.device_primary_ctx_release.unwrap())(self.ordinal);
            }
            sys::ptxgen_driver_close(&mut *self.driver);
        }
    }
}

/// A stream of the device's context; the default is its default stream.
#[derive(Clone, Copy, Debug)]
pub struct Stream(pub(crate) sys::ptxgen_cu_stream);

impl Stream {
    /// # Safety
    /// The handle is of a stream of the context of the device that it is used with, and outlives its uses.
    pub unsafe fn from_raw(handle: sys::ptxgen_cu_stream) -> Stream {
        Stream(handle)
    }
}

impl Default for Stream {
    fn default() -> Stream {
        Stream(ptr::null_mut())
    }
}

/// Types that may be copied to and from a device byte by byte.
///
/// # Safety
/// Every pattern of bits is a value, and there is no padding.
pub unsafe trait Plain: Copy {}
macro_rules! plain {
    ($($type:ty),*) => { $(unsafe impl Plain for $type {})* };
}
plain!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

/// A GPU by its primary context, or an emulated chip. Clones are the same device.
#[derive(Clone)]
pub struct Device(pub(crate) Arc<Inner>);

impl Device {
    /// Opens "auto" (the first GPU, else the emulator), "gpu", "gpu:1", "cpu" or "cpu:sm_90".
    pub fn open(name: &str) -> Result<Device> {
        let (provider, selector) = name.split_once(':').unwrap_or((name, ""));
        let driver = match provider {
            "auto" => open_gpu("").or_else(|_| open_emulator("cpu")),
            "gpu" => open_gpu(selector),
            "cpu" => open_emulator(name),
            _ => Err(Error::new(
                sys::PTXGEN_ERROR_NO_DEVICE,
                format!("no device is named {name:?}; there are auto, gpu, gpu:NUMBER, cpu, cpu:SM"),
            )),
        }?;
        let (driver, ordinal, emulated) = driver;
        let mut inner = Inner { driver, context: ptr::null_mut(), ordinal, dispatcher: ptr::null_mut(), emulated };
        // SAFETY: every started table has the call; the places are ours.
        let result = unsafe { (inner.driver.device_primary_ctx_retain.unwrap())(&mut inner.context, ordinal) };
        inner.check(result, "entering the device")?;
        let options = sys::ptxgen_dispatch_options { context: inner.context, ..Default::default() };
        let mut dispatcher = ptr::null_mut();
        // SAFETY: the options name the context, and the rest are defaults.
        call(|err| unsafe { sys::ptxgen_dispatcher_create(&*inner.driver, &options, &mut dispatcher, err) })?;
        inner.dispatcher = dispatcher;
        Ok(Device(Arc::new(inner)))
    }

    /// The loaded kernel of a spec, compiled at most once.
    pub fn dispatch<F: Family>(&self, spec: &F::Spec) -> Result<Kernel<F>> {
        Kernel::dispatch(self, spec)
    }

    /// Memory with a copy of the values, which any stream may use at once.
    pub fn upload<T: Plain>(&self, values: &[T]) -> Result<Buffer> {
        let buffer = self.allocate(size_of_val(values))?;
        if buffer.bytes != 0 {
            let _entered = self.0.enter()?;
            // SAFETY: both sides have so many bytes.
            let result =
                unsafe { (self.0.driver.memcpy_htod.unwrap())(buffer.address, values.as_ptr().cast(), buffer.bytes) };
            self.0.check(result, "uploading")?;
            self.synchronize()?;
        }
        Ok(buffer)
    }

    /// Memory of zeros, which any stream may use at once.
    pub fn zeros(&self, bytes: usize) -> Result<Buffer> {
        let buffer = self.allocate(bytes)?;
        if bytes != 0 {
            let _entered = self.0.enter()?;
            // SAFETY: the buffer has so many bytes.
            let result = unsafe { (self.0.driver.memset_d8.unwrap())(buffer.address, 0, bytes) };
            self.0.check(result, "clearing memory")?;
            self.synchronize()?;
        }
        Ok(buffer)
    }

    fn allocate(&self, bytes: usize) -> Result<Buffer> {
        let mut address = 0;
        let _entered = self.0.enter()?;
        if bytes != 0 {
            // SAFETY: the place is ours.
            let result = unsafe { (self.0.driver.mem_alloc.unwrap())(&mut address, bytes) };
            self.0.check(result, "allocating memory")?;
        }
        Ok(Buffer { device: self.clone(), address, bytes })
    }

    /// Waits for everything that was enqueued; a fault of a kernel is returned here.
    pub fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }
}

type Started = (Box<sys::ptxgen_driver>, i32, bool);

fn empty_table() -> Box<sys::ptxgen_driver> {
    // SAFETY: zeroes are a table without calls.
    Box::new(unsafe { MaybeUninit::<sys::ptxgen_driver>::zeroed().assume_init() })
}

fn open_gpu(selector: &str) -> Result<Started> {
    let mut driver = empty_table();
    // SAFETY: NULL is the usual library.
    call(|err| unsafe { sys::ptxgen_driver_open(&mut *driver, ptr::null(), err) })?;
    let count = driver.device_count;
    match if selector.is_empty() { Ok(0) } else { selector.parse::<i32>() } {
        Ok(ordinal) if (0..count).contains(&ordinal) => Ok((driver, ordinal, false)),
        _ => {
            // SAFETY: the table was opened.
            unsafe { sys::ptxgen_driver_close(&mut *driver) };
            let message = format!("there is no gpu:{selector}; the driver has {count}");
            Err(Error::new(sys::PTXGEN_ERROR_NO_DEVICE, message))
        }
    }
}

fn open_emulator(name: &str) -> Result<Started> {
    let (mut driver, mut ordinal) = (empty_table(), 0);
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: the table is ours and stays in its box.
    unsafe { sys::ptxgen_emulator_driver(&mut *driver) };
    call(|err| unsafe { sys::ptxgen_driver_start(&mut *driver, err) })?;
    call(|err| unsafe { sys::ptxgen_emulator_ordinal(name.as_ptr(), &mut ordinal, err) })?;
    Ok((driver, ordinal, true))
}

/// Memory of a device, freed with the object. The caller sees to it that no launch still uses it then.
pub struct Buffer {
    device: Device,
    address: u64,
    bytes: usize,
}

impl Buffer {
    /// Whether it is memory of that device.
    pub fn is_of(&self, device: &Device) -> bool {
        Arc::ptr_eq(&self.device.0, &device.0)
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A copy on the host, made after everything that was enqueued has ended.
    pub fn download<T: Plain + Default>(&self) -> Result<Vec<T>> {
        let mut values = vec![T::default(); self.bytes / size_of::<T>()];
        self.device.synchronize()?;
        if !values.is_empty() {
            let to: *mut c_void = values.as_mut_ptr().cast();
            let _entered = self.device.0.enter()?;
            // SAFETY: both sides have so many bytes.
            let result = unsafe {
                (self.device.0.driver.memcpy_dtoh.unwrap())(to, self.address, values.len() * size_of::<T>())
            };
            self.device.0.check(result, "downloading")?;
        }
        Ok(values)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.address == 0 {
            return;
        }
        if let Ok(_entered) = self.device.0.enter() {
            // SAFETY: the address is of mem_alloc, and freed once.
            unsafe { (self.device.0.driver.mem_free.unwrap())(self.address) };
        }
    }
}
