//! A macro that turns a list of C functions into a table of them, resolved at run time.

/// Declares `Api`: one function pointer a line, a constructor that resolves them all, and for each an unsafe
/// method that calls it and turns its status into a `Result`.
///
/// Every function returns the vendor's status as a C `int`.
macro_rules! api {
    ($vendor:expr; $(fn $name:ident = $symbol:literal($($argument:ident: $kind:ty),* $(,)?);)*) => {
        /// The library's functions that are used here.
        pub(crate) struct Api {
            $($name: unsafe extern "C" fn($($kind),*) -> ::std::ffi::c_int,)*
        }

        // The vendor decides how many arguments its functions have.
        #[allow(clippy::too_many_arguments)]
        impl Api {
            /// Looks every function up.
            ///
            /// # Errors
            /// The function that the library lacks.
            pub(crate) fn resolve(library: &::libloading::Library) -> Result<Self, String> {
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

            $(
                #[doc = concat!("Calls `", $symbol, "`.\n\n# Safety\nAs the vendor's manual asks of its arguments.")]
                pub(crate) unsafe fn $name(&self, $($argument: $kind),*) -> Result<(), $crate::Error> {
                    // SAFETY: the caller answers for the arguments.
                    let code = unsafe { (self.$name)($($argument),*) };
                    $crate::Status::new($vendor, code).check($symbol)
                }
            )*
        }

        impl Api {
            /// The version that the library tells of itself; needs no GPU.
            pub(crate) fn version(&self) -> Result<$crate::Version, $crate::Error> {
                let property = |which| {
                    let mut value = 0;
                    // SAFETY: `value` is an `int` to write to, and 0 to 2 are the properties that exist.
                    unsafe { self.get_property(which, &mut value) }?;
                    Ok::<_, $crate::Error>(value.unsigned_abs())
                };
                Ok($crate::Version { major: property(0)?, minor: property(1)?, patch: property(2)? })
            }
        }
    };
}

pub(crate) use api;
