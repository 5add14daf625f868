//! Opening shared libraries at run time. Nothing is looked up in them by name: what they register
//! with libtorch when they are opened is all that is wanted of them.

#![expect(unsafe_code, reason = "the loader is a C interface")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// Symbols are looked up when they are first called.
const RTLD_LAZY: c_int = 0x1;
/// Libraries opened later see this one's symbols.
const RTLD_GLOBAL: c_int = 0x100;

// Source: dlopen(3) and dlfcn.h of glibc and musl, which agree on the constants.
unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlerror() -> *mut c_char;
}

/// Opens the library `name`, a path or what the loader searches for, for good and for all others
/// to see. Says what the loader says if it cannot.
pub fn open_library(name: &str) -> Result<(), String> {
    let name = CString::new(name).map_err(|error| error.to_string())?;
    // SAFETY: `name` is a C string that outlives the call. Opening runs the library's own
    // initializers; those of the NVIDIA driver and of libtorch, the only ones opened here, are
    // made for being opened at any time and from any thread.
    let handle = unsafe { dlopen(name.as_ptr(), RTLD_LAZY | RTLD_GLOBAL) };
    if !handle.is_null() {
        // Never closed: libtorch keeps pointers into it until the process ends.
        return Ok(());
    }
    // SAFETY: `dlerror` gives null or a C string that stays until this thread's next call of the
    // loader; it is copied before that.
    let message = unsafe {
        let message = dlerror();
        (!message.is_null()).then(|| CStr::from_ptr(message).to_string_lossy().into_owned())
    };
    Err(message.unwrap_or_else(|| "the loader gave no reason".to_owned()))
}
