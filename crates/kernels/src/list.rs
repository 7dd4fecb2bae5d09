//! How the list of entry points is made of what each operation says in its own `list.rs`.
//!
//! An operation's macro has the operation's name, and says two things. *Groups* say which kernels there are, as families ×
//! types × shapes:
//!
//! ```text
//! rowsplit persistent [f32 f32_u16] {        family, a flag of it where there is one, types
//!     [4 32 1 32] [4 16 2 32]                shapes: spmm_f32_rowsplit_v4_l32_s1_w32_persistent, the same of f32_u16, …
//! }
//! ```
//!
//! Types are written as in the entry's name: `f32_u16` are values of `f32` with indices of 16 bits, `f32` those with indices
//! of 32 bits, `f32_f16` multiplies `f32` with weights of `f16`. *Families* say what a shape's numbers mean: its part of the
//! name, and the kernel, a type that implements
//! [`Kernel`](crate::Kernel). Attributes before a group are those of its entry points in the PTX: `#[cfg(lacuna_sm = "80")]`
//! keeps them out of older targets, as their kernels' `MIN_SM` says.

/// Makes the list. Its state is the callback, what is listed already, and the operations to come, which it asks one by one.
#[doc(hidden)]
#[macro_export]
macro_rules! kernel_list {
    ([$($callback:tt)+] [$($listed:tt)*] []) => {
        $($callback)+! { $($listed)* }
    };
    ($callback:tt $listed:tt [$next:ident $($later:ident)*]) => {
        $crate::$next! { groups $callback $listed [$($later)*] $next }
    };
    // What an operation answers. Its groups are written in one form, then multiplied by types, then by shapes.
    ($callback:tt $listed:tt $later:tt $operation:ident $(
        $(#[$attribute:meta])* $family:ident $($flag:ident)? [$($types:ident)+] $shapes:tt
    )+) => {
        $crate::kernel_list! {
            @types $callback $listed $later $operation
            $([$(#[$attribute])*] $family [$($flag)?] [$($types)+] $shapes)+
        }
    };
    (@types $callback:tt $listed:tt $later:tt $operation:ident $(
        $attributes:tt $family:ident $flag:tt [$($types:ident)+] $shapes:tt
    )+) => {
        $crate::kernel_list! {
            @shapes $callback $listed $later $operation
            $($($attributes $family $flag $types $shapes)+)+
        }
    };
    (@shapes $callback:tt [$($listed:tt)*] $later:tt $operation:ident $(
        [$($attributes:tt)*] $family:ident $flag:tt $types:ident { $($shape:tt)+ }
    )+) => {
        $crate::kernel_list! {
            $callback
            [$($listed)* $operation { $($($attributes)* { $(
                $crate::$operation!(name $family $flag $types $shape) =>
                $crate::$operation!(kernel $family $flag $types $shape);
            )+ })+ }]
            $later
        }
    };
}

/// What a family makes of a shape: `name` is its first half, a string of parts; `kernel` its second, a type.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_part {
    (name [$($part:expr),+] $($kernel:tt)+) => { concat!($($part),+) };
    (kernel [$($part:expr),+] $($kernel:tt)+) => { $($kernel)+ };
}

/// The type of values in an entry's types; of a width in bits, what stands for all of it.
pub mod value_of {
    pub use core::primitive::{f32, f32 as f32_bf16, f32 as f32_f16, f32 as f32_u16, f32 as f32_u64};
    pub use core::primitive::{u16 as b16, u32 as b32, u32 as b32_bf16, u32 as b32_f16};

    pub use lacuna_gpu::{Bf16 as bf16, Bf16 as bf16_u16, Bf16 as bf16_u64};
    pub use lacuna_gpu::{F16 as f16, F16 as f16_u16, F16 as f16_u64};
}

/// The type of weights in an entry's types, where they may be of another type than what they are multiplied with.
pub mod weights_of {
    pub use core::primitive::{f32, f32 as b32};

    pub use lacuna_gpu::{F16 as b32_f16, F16 as f32_f16};
}

/// The type of indices in an entry's types.
pub mod index_of {
    pub use core::primitive::{u16 as bf16_u16, u16 as f16_u16, u16 as f32_u16};
    pub use core::primitive::{u32 as bf16, u32 as f16, u32 as f32};
    pub use core::primitive::{u64 as bf16_u64, u64 as f16_u64, u64 as f32_u64};
}

/// The products that tensor cores make of `f32`, as a flag names them.
pub mod products_of {
    pub use crate::{Split as split, SplitBf16 as splitbf16, SplitTf32 as splittf32, Tf32 as tf32};
}

/// The form of a row-split kernel, as a flag names it.
pub mod form_of {
    pub use crate::spmm::{Hybrid as hybrid, NoResidue as noresidue, Persistent as persistent};
    pub use crate::spmm::{PreScaled as prescaled, Wide as wide};
}

/// The operand of a tile kernel by warps: of `f32` with a flag that names products, or of 16-bit values.
#[doc(hidden)]
#[macro_export]
macro_rules! operand_of {
    (f32 $products:ident) => { $crate::Single<$crate::list::products_of::$products> };
    ($half:ident) => { $crate::Half<$crate::list::value_of::$half> };
}

/// Whether there is a flag.
#[doc(hidden)]
#[macro_export]
macro_rules! has_flag {
    () => {
        false
    };
    ($flag:ident) => {
        true
    };
}
