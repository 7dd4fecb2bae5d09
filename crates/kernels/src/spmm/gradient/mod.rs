//! Gradients of the greatest or the least product: only the nonzeros that won have one.
mod b;
mod values;

use lacuna_gpu::{GlobalPtr, Gpu, Real};

pub use b::{BGradient, BGradientArgs};
pub use values::{ValuesGradient, ValuesGradientArgs};

/// The gradient of C, and who won each of its elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Winning<T> {
    /// The gradient of C, M×N.
    pub gradient: GlobalPtr<T>,
    /// Elements from one of the batch to the next.
    pub gradient_batch: u64,
    /// Index of the nonzero that won each element of C, or [`NO_WINNER`](super::NO_WINNER); M×N, row by row.
    pub winners: GlobalPtr<u32>,
    /// Elements from the winners of one product of the batch to the next.
    pub winners_batch: u64,
    /// Elements from one row of winners to the next.
    pub winners_stride: u32,
    /// Bytes from one row of the gradient to the next.
    pub gradient_stride_bytes: u32,
}

impl<T: Real> Winning<T> {
    /// Those of a product of the batch.
    #[inline(always)]
    fn of_product(mut self, batch: u32) -> Self {
        self.gradient = self.gradient.add((u64::from(batch) * self.gradient_batch) as usize);
        self.winners = self.winners.add((u64::from(batch) * self.winners_batch) as usize);
        self
    }

    /// The winners of a row of C.
    #[inline(always)]
    fn winners_of(&self, row: u32) -> GlobalPtr<u32> {
        self.winners.add((u64::from(row) * u64::from(self.winners_stride)) as usize)
    }

    /// The gradient of an element of C.
    ///
    /// # Safety
    /// C has it.
    #[inline(always)]
    unsafe fn gradient_at<G: Gpu>(&self, gpu: G, row: u32, column: u32) -> f32 {
        // SAFETY: as promised by the caller.
        let [x]: [T; 1] = unsafe {
            gpu.load_readonly(self.gradient.add_rows(row, self.gradient_stride_bytes).add(column as usize))
        };
        x.to_f32(gpu)
    }
}
