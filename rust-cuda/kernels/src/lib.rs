//! Lacuna's kernels as rust-cuda compiles them: `RustCuda` is `Gpu` over `cuda_std`, and the entry
//! points are made of the same list as those of rustc's own back end, with the same names and arguments.
//!
//! Without `cuda_builder` this crate can be type-checked only. docs/rust-cuda.md says what of it was ever run.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch, link_llvm_intrinsics))]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]

mod device;

use cuda_std::kernel;
use lacuna_kernels::Kernel;

use self::device::RustCuda;

/// Writes the entry points of a group, as functions without names of their own: what they are called in the PTX is all that
/// counts. (`#[kernel]` adds a `#[no_mangle]`, over which the name given here takes precedence.)
macro_rules! entries {
    ([$($attributes:tt)*] $($name:expr => $kernel:ty;)+) => {
        $($attributes)*
        const _: () = {$(
            const _: () = {
                /// # Safety
                /// Whoever launches keeps the kernel's contract, as `Kernel::run` states it.
                #[unsafe(export_name = $name)]
                #[kernel]
                #[allow(improper_ctypes_definitions, unused_attributes)]
                pub unsafe fn entry(args: <$kernel as Kernel>::Args) {
                    // SAFETY: passed on to the launch.
                    unsafe { <$kernel as Kernel>::run(RustCuda, args) }
                }
            };
        )+};
    };
}
include!("entries.rs");
