//! What tiles multiply: values of 16 bits as they are, and `f32` in two parts of bfloat16.
use lacuna_gpu::{Bf16, F16, GlobalMut, GlobalPtr, Gpu, Real, SharedPtr, WARP};

use super::WARPGROUP;
use crate::common::{Rows, SplitRows, bf16_parts};
use crate::{DeviceValue, HalfValue};

/// A value of [`WgmmaTiles`](super::WgmmaTiles).
pub trait WgmmaValue: DeviceValue {
    /// What tensor cores multiply.
    type Part: HalfValue;
    /// Parts of a number.
    const PARTS: u32;
    /// Threads that fill a stage.
    const PRODUCERS: u32;
    /// What is loaded to be split.
    type Loaded<const PASSES: usize>;

    /// Two numbers in their parts, the first number in the lower half; one part is the first.
    fn split<G: Gpu>(gpu: G, low: f32, high: f32) -> [u32; 2];

    /// Writes two neighbouring values.
    ///
    /// # Safety
    /// The place is live and this thread's alone, and is aligned to both.
    unsafe fn store_pair<G: Gpu>(gpu: G, to: GlobalMut<Self>, pair: [f32; 2]);

    /// Adds the products of two vectors of 16 bytes to a sum.
    ///
    /// # Safety
    /// Both are live, and aligned to 16 bytes.
    unsafe fn add_products<G: Gpu>(gpu: G, vectors: [GlobalPtr<Self>; 2], sum: f32) -> f32;

    /// Loads what a thread of a warpgroup has of 64 columns of 16·`PASSES` rows, from a column on, of so many: `SplitRows`. Of values in one
    /// part nothing.
    ///
    /// # Safety
    /// See there.
    unsafe fn load<G: Gpu, const PASSES: usize>(
        gpu: G,
        rows: &Rows<Self>,
        columns: [u32; 2],
    ) -> Self::Loaded<PASSES>;

    /// Puts it in shared memory, part by part: the second so many bytes further.
    ///
    /// # Safety
    /// See `SplitRows::store`.
    unsafe fn store<G: Gpu, const PASSES: usize>(
        gpu: G,
        loaded: &Self::Loaded<PASSES>,
        to: u32,
        to_rest: u32,
    );

    /// Starts adding products of 16 columns of Q and K to `sums`. They are the places of their first parts, and how many bytes further
    /// the second ones are.
    ///
    /// # Safety
    /// See [`warpgroup_mma_f16_columns`](lacuna_gpu::Hopper::warpgroup_mma_f16_columns), for all parts.
    #[inline(always)]
    unsafe fn multiply<G: Gpu, const L: usize>(gpu: G, sums: &mut [f32; L], a: (u32, u32), b: (u32, u32)) {
        let mut add = |a, b| {
            let [a, b] = [a, b].map(SharedPtr::from_offset);
            // SAFETY: passed on to the caller.
            unsafe { Self::Part::warpgroup_mma_columns(gpu, sums, a, b) };
        };
        // The least first.
        if Self::PARTS > 1 {
            add(a.0 + a.1, b.0);
            add(a.0, b.0 + b.1);
        }
        add(a.0, b.0);
    }

    /// The same of 16 weights and rows of V.
    ///
    /// # Safety
    /// See [`warpgroup_mma_f16_registers`](lacuna_gpu::Hopper::warpgroup_mma_f16_registers), for all parts.
    #[inline(always)]
    unsafe fn multiply_weights<G: Gpu, const L: usize, const PANEL: u32>(
        gpu: G,
        sums: &mut [f32; L],
        [weights, rest]: [[u32; 4]; 2],
        (v, to_rest): (u32, u32),
    ) {
        let mut add = |weights, v| {
            // SAFETY: passed on to the caller.
            unsafe {
                Self::Part::warpgroup_mma_registers::<G, L, PANEL>(
                    gpu,
                    sums,
                    weights,
                    SharedPtr::from_offset(v),
                );
            }
        };
        if Self::PARTS > 1 {
            add(rest, v);
            add(weights, v + to_rest);
        }
        add(weights, v);
    }
}

impl WgmmaValue for f32 {
    type Part = Bf16;
    const PARTS: u32 = 2;
    const PRODUCERS: u32 = WARPGROUP;
    type Loaded<const PASSES: usize> = SplitRows<PASSES>;

    #[inline(always)]
    fn split<G: Gpu>(gpu: G, low: f32, high: f32) -> [u32; 2] {
        bf16_parts(gpu, low, high)
    }
    #[inline(always)]
    unsafe fn store_pair<G: Gpu>(gpu: G, to: GlobalMut<Self>, pair: [f32; 2]) {
        // SAFETY: passed on to the caller.
        unsafe { gpu.store(to, pair) };
    }
    #[inline(always)]
    unsafe fn add_products<G: Gpu>(gpu: G, vectors: [GlobalPtr<Self>; 2], sum: f32) -> f32 {
        // SAFETY: passed on to the caller.
        unsafe { add_products::<G, _, 4>(gpu, vectors, sum) }
    }
    #[inline(always)]
    unsafe fn load<G: Gpu, const PASSES: usize>(
        gpu: G,
        rows: &Rows<Self>,
        columns: [u32; 2],
    ) -> SplitRows<PASSES> {
        // SAFETY: passed on to the caller.
        unsafe { SplitRows::load(gpu, rows, 0, columns) }
    }
    #[inline(always)]
    unsafe fn store<G: Gpu, const PASSES: usize>(gpu: G, loaded: &SplitRows<PASSES>, to: u32, to_rest: u32) {
        // SAFETY: passed on to the caller.
        unsafe { loaded.store(gpu, to, to_rest) };
    }
}

/// See [`WgmmaValue::add_products`], for vectors of `V`.
///
/// # Safety
/// See there.
#[inline(always)]
unsafe fn add_products<G: Gpu, T: Real, const V: usize>(
    gpu: G,
    vectors: [GlobalPtr<T>; 2],
    mut sum: f32,
) -> f32 {
    // SAFETY: as promised by the caller.
    let [a, b]: [[T; V]; 2] = vectors.map(|vector| unsafe { gpu.load_readonly(vector) });
    for i in 0..V {
        sum = gpu.fma(a[i].to_f32(gpu), b[i].to_f32(gpu), sum);
    }
    sum
}

/// Writes the implementation for a type of 16 bits.
macro_rules! half {
    ($type:ident) => {
        impl WgmmaValue for $type {
            type Part = Self;
            const PARTS: u32 = 1;
            const PRODUCERS: u32 = WARP;
            type Loaded<const PASSES: usize> = ();

            #[inline(always)]
            fn split<G: Gpu>(gpu: G, low: f32, high: f32) -> [u32; 2] {
                [Self::pack(gpu, low, high), 0]
            }
            #[inline(always)]
            unsafe fn store_pair<G: Gpu>(gpu: G, to: GlobalMut<Self>, [low, high]: [f32; 2]) {
                let to = GlobalMut::<u32>::from_address(to.address());
                // SAFETY: passed on to the caller.
                unsafe { gpu.store(to, [Self::pack(gpu, low, high)]) };
            }
            #[inline(always)]
            unsafe fn add_products<G: Gpu>(gpu: G, vectors: [GlobalPtr<Self>; 2], sum: f32) -> f32 {
                // SAFETY: passed on to the caller.
                unsafe { add_products::<G, _, 8>(gpu, vectors, sum) }
            }
            #[inline(always)]
            unsafe fn load<G: Gpu, const PASSES: usize>(_: G, _: &Rows<Self>, _: [u32; 2]) {}
            #[inline(always)]
            unsafe fn store<G: Gpu, const PASSES: usize>(_: G, (): &(), _: u32, _: u32) {}
        }
    };
}
half!(F16);
half!(Bf16);
