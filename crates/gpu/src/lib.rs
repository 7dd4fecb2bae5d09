//! What a kernel may ask of a GPU.
//!
//! Kernels are ordinary generic functions over [`Gpu`]. Two implementations exist: `Ptx`, zero-sized, which
//! compiles each method to one instruction of an NVIDIA GPU and only exists on that target, and the thread handle
//! of the simulator, which does the same on the host and checks every step. The names follow `cuda_std`.
//!
//! ```text
//!   kernels ──(generic over)──► Gpu ◄──implements── Ptx          (this crate, nvptx64 only)
//!                                   ◄──implements── SimThread    (lacuna-sim, host)
//! ```
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch, link_llvm_intrinsics, stdarch_nvptx))]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]

mod core_matrices;
mod device;
mod hopper;
mod pointer;
mod real;
mod scalar;
mod tensor_map;

#[cfg(target_arch = "nvptx64")]
mod ptx;

pub use core_matrices::CoreMatrices;
pub use device::{FULL_WARP, Gpu, WARP};
pub use hopper::Hopper;
pub use pointer::{GlobalMut, GlobalPtr, SharedPtr};
#[cfg(target_arch = "nvptx64")]
pub use ptx::{Ptx, instructions};
pub use real::{Bf16, F16, Real};
pub use scalar::{AtomicAdd, AtomicBits, AtomicKind, AtomicMax, AtomicOp, Scalar, Word};
pub use tensor_map::{Tensor, TensorMap};

/// This crate's folder, where it was compiled for the host.
pub const FOLDER: &str = env!("CARGO_MANIFEST_DIR");
