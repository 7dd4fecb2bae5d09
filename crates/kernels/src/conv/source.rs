//! What is convolved, and the exact fallback: a result by itself, in `f32`, of nonzeros alone, where a tile that multiplies zeros too has
//! a sum that is not finite.
use lacuna_gpu::{GlobalPtr, Gpu, Real};

use crate::Map;

/// What is convolved, and how.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Source<T> {
    /// The input.
    pub input: GlobalPtr<T>,
    /// How it lies.
    pub map: Map,
    /// The filters for the exact fallback: filters × channels × taps; address 0 where sums are right as they are.
    pub filters: GlobalPtr<T>,
    /// Rows of an image of the result: rows of results may be counted through the images.
    pub out_height: u32,
    /// Rows and columns of taps.
    pub taps: [u32; 2],
    /// Rows and columns from one output pixel to the next.
    pub strides: [u32; 2],
    /// Rows of zeros above, and columns of zeros before the first.
    pub padding: [u32; 2],
}

impl<T: Real> Source<T> {
    /// `sum`, or where it is not finite, the sum of an image, a filter, and an output pixel without what is zero.
    ///
    /// # Safety
    /// They are there.
    #[inline(always)]
    pub(super) unsafe fn exact_fallback<G: Gpu>(
        &self,
        gpu: G,
        sum: f32,
        [image, filter]: [u32; 2],
        [row, column]: [u32; 2],
    ) -> f32 {
        if sum.is_finite() || self.filters.address() == 0 {
            return sum;
        }
        let (image, row) = (image + row / self.out_height, row % self.out_height);
        let [rows, columns] = self.taps;
        let of_channel = rows * columns * size_of::<T>() as u32;
        let mut taps = self.filters.add_rows(filter * self.map.channels, of_channel);
        let mut sum = 0.0;
        let mut channel = 0;
        while channel < self.map.channels {
            let plane = self.map.plane(self.input, image, channel);
            let mut tap = 0;
            while tap < rows * columns {
                let y = (row * self.strides[0] + tap / columns).wrapping_sub(self.padding[0]);
                let x = (column * self.strides[1] + tap % columns).wrapping_sub(self.padding[1]);
                if let Some(offset) = self.map.offset(y, x) {
                    // SAFETY: as promised by the caller.
                    let ([x], [weight]) = unsafe {
                        (
                            gpu.load_readonly(plane.add_bytes(offset.into())),
                            gpu.load_readonly(taps.add(tap as usize)),
                        )
                    };
                    let (x, weight) = (x.to_f32(gpu), weight.to_f32(gpu));
                    sum = if x != 0.0 { gpu.fma(x, weight, sum) } else { sum };
                }
                tap += 1;
            }
            taps = taps.add_rows(1, of_channel);
            channel += 1;
        }
        sum
    }
}
