//! What tensor cores multiply in tiles: the type of the values, and how they come into shared memory.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr};

use super::{Arithmetic, DeviceValue, HalfValue, Products};

/// The operands of a kernel that multiplies tiles by warps (mma.sync): [`Single`] or [`Half`].
pub trait Operand: Send + Sync + 'static {
    /// Type of the values.
    type Value: DeviceValue;
    /// Which arithmetic this is.
    const ARITHMETIC: Arithmetic;
    /// Values of a 16-byte vector.
    const VECTOR: u32 = 16 / size_of::<Self::Value>() as u32;

    /// Starts copying 16 bytes, or zeros.
    ///
    /// # Safety
    /// As [`Gpu::copy_async_or_zero`].
    unsafe fn copy<G: Gpu>(gpu: G, to: SharedPtr<Self::Value>, from: GlobalPtr<Self::Value>, valid: bool);
}

/// `f32` values, with products `P`: [`Split`](crate::Split) or [`Tf32`](crate::Tf32).
#[derive(Debug)]
pub struct Single<P>(PhantomData<P>);

impl<P: Products> Operand for Single<P> {
    type Value = f32;
    const ARITHMETIC: Arithmetic = P::ARITHMETIC;

    #[inline(always)]
    unsafe fn copy<G: Gpu>(gpu: G, to: SharedPtr<f32>, from: GlobalPtr<f32>, valid: bool) {
        // SAFETY: as promised by the caller.
        unsafe { gpu.copy_async_or_zero::<f32, 4>(to, from, valid) }
    }
}

/// 16-bit values: [`F16`](crate::F16) or [`Bf16`](crate::Bf16).
#[derive(Debug)]
pub struct Half<T>(PhantomData<T>);

impl<T: HalfValue> Operand for Half<T> {
    type Value = T;
    const ARITHMETIC: Arithmetic = Arithmetic::Half;

    #[inline(always)]
    unsafe fn copy<G: Gpu>(gpu: G, to: SharedPtr<T>, from: GlobalPtr<T>, valid: bool) {
        // SAFETY: as promised by the caller.
        unsafe { gpu.copy_async_or_zero::<T, 8>(to, from, valid) }
    }
}
