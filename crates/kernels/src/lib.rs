//! Every kernel of Lacuna, generic over [`lacuna_gpu::Gpu`], a folder an operation.
//!
//! [`list`](crate::for_each_kernel) names each entry point once. From it come the PTX entry points (in this crate, on that
//! target and with feature `entry-points`, which is on by default), the host's table [`entries`], and the simulator's
//! dispatch.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod attention;
mod common;
pub mod entries;
mod kernel;
mod list;
pub mod nhot;
pub mod sddmm;
pub mod softmax;
pub mod spmm;
pub mod topn;
pub mod transpose;

#[cfg(all(target_arch = "nvptx64", feature = "entry-points"))]
mod ptx;

pub use common::{
    ALIGNED, Arithmetic, DeviceIndex, DeviceValue, Half, HalfValue, IndexType, Operand, PADDING, Products,
    RowMask, RowRecord, Single, Split, Tf32, ValueType,
};
pub use kernel::{Bounds, Entry, EntryTaking, Kernel, runs_on};
pub use lacuna_gpu::{Bf16, F16};
