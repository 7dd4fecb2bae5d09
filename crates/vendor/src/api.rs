//! A macro that turns a list of C functions into a table of them, resolved at run time.

/// Declares `Api`: one function pointer a line, a constructor that resolves them all, and for each an unsafe
/// method that calls it and turns its status into a `Result`. Among them are `get_property`, `create` and `destroy`,
/// which all vendors have.
///
/// Every function returns the vendor's status as a C `int`.
macro_rules! api {
    ($vendor:expr; $(fn $name:ident = $symbol:literal($($argument:ident: $kind:ty),* $(,)?);)*) => {
        /// The library's functions that are used here.
        pub struct Api {
            $($name: unsafe extern "C" fn($($kind),*) -> ::std::ffi::c_int,)*
        }

        // The vendor decides how many arguments its functions have.
        #[allow(clippy::too_many_arguments)]
        impl Api {
            $(
                #[doc = concat!("Calls `", $symbol, "`.\n\n# Safety\nAs the vendor's manual asks of its arguments.")]
                pub(crate) unsafe fn $name(&self, $($argument: $kind),*) -> Result<(), $crate::Error> {
                    // SAFETY: the caller answers for the arguments.
                    let code = unsafe { (self.$name)($($argument),*) };
                    $crate::Status::new($vendor, code).check($symbol)
                }
            )*
        }

        impl $crate::VendorApi for Api {
            const VENDOR: $crate::Vendor = $vendor;

            fn resolve(library: &::libloading::Library) -> Result<Self, String> {
                $(
                    // SAFETY: the type is that of the function in the vendor's headers. The pointer outlives
                    // `library` only if that is never closed, which `library::open` sees to.
                    let $name = *unsafe {
                        library.get::<unsafe extern "C" fn($($kind),*) -> ::std::ffi::c_int>($symbol)
                    }
                    .map_err(|_| concat!("it is too old, for it has no ", $symbol).to_owned())?;
                )*
                Ok(Self { $($name),* })
            }

            fn property(&self, which: ::std::ffi::c_int) -> Result<::std::ffi::c_int, $crate::Error> {
                let mut value = 0;
                // SAFETY: `value` is an `int` to write to; the library refuses a property that it does not have.
                unsafe { self.get_property(which, &mut value) }?;
                Ok(value)
            }

            fn create_handle(&self) -> Result<$crate::RawHandle, $crate::Error> {
                let mut raw: $crate::RawHandle = ::std::ptr::null_mut();
                // SAFETY: `raw` is a place for the handle.
                unsafe { self.create(&mut raw) }?;
                Ok(raw)
            }

            unsafe fn destroy_handle(&self, handle: $crate::RawHandle) -> Result<(), $crate::Error> {
                // SAFETY: the caller answers for the handle.
                unsafe { self.destroy(handle) }
            }
        }
    };
}

pub(crate) use api;
