//! Atomics, by `cuda_std`: without an order, as the trait wants them.
use core::mem::transmute_copy;
use core::sync::atomic::Ordering::{self, Relaxed};

use cuda_std::atomic::mid::*;
use lacuna_gpu::{AtomicAdd, AtomicKind, AtomicMax};

/// Stands for a maximum of `f32`, which is not `AtomicMax`: no GPU has the instruction.
unsafe fn no_maximum(_: *mut f32, _: Ordering, _: f32) -> f32 {
    unreachable!()
}

/// Writes a function that goes by the value's type: its name, the bound, and `cuda_std`'s function for each type.
macro_rules! atomics {
    ($($(#[$doc:meta])* $name:ident: $bound:ident { $($kind:ident, $type:ty => $function:ident;)+ })*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// See [`Gpu`](lacuna_gpu::Gpu), for the value at the pointer.
        #[inline(always)]
        pub(super) unsafe fn $name<T: $bound>(to: *mut T, value: T) -> T {
            // SAFETY: passed on to the caller; `KIND` names the type itself.
            unsafe {
                match T::KIND {
                    $(AtomicKind::$kind => {
                        let old: $type = $function(to.cast(), Relaxed, transmute_copy(&value));
                        transmute_copy(&old)
                    })+
                }
            }
        }
    )*};
}
atomics! {
    /// Adds, for the whole GPU.
    device_add: AtomicAdd {
        U32, u32 => atomic_fetch_add_u32_device;
        I32, i32 => atomic_fetch_add_i32_device;
        U64, u64 => atomic_fetch_add_u64_device;
        F32, f32 => atomic_fetch_add_f32_device;
    }
    /// Adds, for the block.
    block_add: AtomicAdd {
        U32, u32 => atomic_fetch_add_u32_block;
        I32, i32 => atomic_fetch_add_i32_block;
        U64, u64 => atomic_fetch_add_u64_block;
        F32, f32 => atomic_fetch_add_f32_block;
    }
    /// Takes the maximum, for the whole GPU.
    device_max: AtomicMax {
        U32, u32 => atomic_fetch_max_u32_device;
        I32, i32 => atomic_fetch_max_i32_device;
        U64, u64 => atomic_fetch_max_u64_device;
        F32, f32 => no_maximum;
    }
    /// Takes the maximum, for the block.
    block_max: AtomicMax {
        U32, u32 => atomic_fetch_max_u32_block;
        I32, i32 => atomic_fetch_max_i32_block;
        U64, u64 => atomic_fetch_max_u64_block;
        F32, f32 => no_maximum;
    }
}

/// Sets bits, for the whole GPU.
///
/// # Safety
/// See [`Gpu`](lacuna_gpu::Gpu), for the word at the pointer.
#[inline(always)]
pub(super) unsafe fn device_or(to: *mut u32, value: u32) -> u32 {
    // SAFETY: passed on to the caller.
    unsafe { atomic_fetch_or_u32_device(to, Relaxed, value) }
}
