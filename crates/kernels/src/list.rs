//! How the list of entry points is made of what each operation says in its own `list.rs`.
//!
//! An operation's macro has the operation's name, and says two things. *Groups* say which kernels there are, as families ×
//! types × shapes:
//!
//! ```text
//! rowsplit persistent [f32 f32_u16] {        family, a flag of it where there is one, types
//!     { vector: 4, lanes: 32, split: 1, warps: 32 }
//! }                                          spmm_f32_rowsplit_v4_l32_s1_w32_persistent, and the same of f32_u16
//! ```
//!
//! Types are written as in the entry's name: `f32_u16` are values of `f32` with indices of 16 bits, `f32` those with indices
//! of 32 bits. *Families* say what a shape's fields mean: its part of the name, and the kernel, a type that implements
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
#[doc(hidden)]
#[macro_export]
macro_rules! value_of {
    (f32) => {
        f32
    };
    (f16) => {
        $crate::F16
    };
    (bf16) => {
        $crate::Bf16
    };
    (f32_u16) => {
        f32
    };
    (f16_u16) => {
        $crate::F16
    };
    (bf16_u16) => {
        $crate::Bf16
    };
    (f32_u64) => {
        f32
    };
    (f16_u64) => {
        $crate::F16
    };
    (bf16_u64) => {
        $crate::Bf16
    };
    (b32) => {
        u32
    };
    (b16) => {
        u16
    };
}

/// The type of indices in an entry's types.
#[doc(hidden)]
#[macro_export]
macro_rules! index_of {
    (f32) => {
        u32
    };
    (f16) => {
        u32
    };
    (bf16) => {
        u32
    };
    (f32_u16) => {
        u16
    };
    (f16_u16) => {
        u16
    };
    (bf16_u16) => {
        u16
    };
    (f32_u64) => {
        u64
    };
    (f16_u64) => {
        u64
    };
    (bf16_u64) => {
        u64
    };
}

/// The part of a name that tells of thread blocks in a cluster, where there is more than one.
#[doc(hidden)]
#[macro_export]
macro_rules! cluster_part {
    (1) => {
        ""
    };
    (2) => {
        "_c2"
    };
}
