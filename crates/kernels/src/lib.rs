//! Every kernel of Lacuna, generic over [`lacuna_gpu::Gpu`], a folder an operation.
//!
//! An operation is a module, and a name in [`for_each_kernel`]: the macro of that name, in the folder's
//! `list.rs`, names each entry point once. From the whole list come the PTX entry points (in this crate, on that target and
//! with feature `entry-points`, which is on by default), the host's table [`entries`], and the simulator's dispatch.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]

pub mod attention;
pub mod bias_act;
mod common;
pub mod conv;
pub mod dense_transpose;
pub mod entries;
pub mod import;
mod kernel;
pub mod layer_norm;
#[doc(hidden)]
pub mod list;
pub mod nhot;
pub mod pool;
pub mod sddmm;
pub mod softmax;
pub mod spdnn;
pub mod spmm;
pub mod topn;
pub mod transpose;

#[cfg(all(target_arch = "nvptx64", feature = "entry-points"))]
mod ptx;

pub use common::{
    ALIGNED, Arithmetic, DeviceIndex, DeviceValue, Divisor, Half, HalfValue, IndexType, Map, Operand,
    PADDING, Products, RowMask, RowRecord, Single, Split, SplitBf16, SplitTf32, Tf32, ValueType,
};
pub use kernel::{Bounds, Entry, EntryTaking, Kernel, runs_on};
pub use lacuna_gpu::{Bf16, F16};

/// The folders of the crates of which PTX is made, this crate's first: where they lay when they were compiled for the host.
pub const FOLDERS: [&str; 2] = [env!("CARGO_MANIFEST_DIR"), lacuna_gpu::FOLDER];

/// Calls `$callback!` with the whole list: `operation { attributes { "name" => kernel; … } … } …`.
///
/// A name is an expression, of which `concat!` makes a literal; a kernel is a type. An operation is a module of this crate
/// that defines `Tile`, and a macro of the same name.
#[macro_export]
macro_rules! for_each_kernel {
    ($($callback:ident)::+) => {
        $crate::kernel_list! {
            [$($callback)::+] []
            [attention bias_act conv dense_transpose import layer_norm nhot pool sddmm softmax spdnn spmm topn transpose]
        }
    };
}
