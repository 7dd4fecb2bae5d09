//! Where results go, and what is made of a sum.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, Real, WARP};

use super::Source;
use crate::Map;
use crate::common::reduce;

/// The result: sums with bias and residual, between limits.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Target<T> {
    /// The result.
    pub out: GlobalMut<T>,
    /// What is added to each element: another map that lies as the result does; address 0 where there is none.
    pub residual: GlobalPtr<T>,
    /// What is added to each channel; address 0 where there is none.
    pub bias: GlobalPtr<T>,
    /// A counter to which the number of results other than zero is added; address 0 where there is none.
    pub nonzeros: GlobalMut<u32>,
    /// How the result lies.
    pub map: Map,
    /// The least result; −∞ for none.
    pub lo: f32,
    /// The greatest; ∞ for none.
    pub hi: f32,
    /// Tiles along a row of an image; 0 where a tile is a run of pixels, counted through the rows.
    pub tiles_x: u32,
    /// Tiles of an image.
    pub tiles: u32,
    /// Not 0 where the elements of a tile are taken with filters side by side, rather than pixels.
    pub channels_last: u32,
}

/// A tile of the result.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) image: u32,
    pub(super) row: u32,
    pub(super) column: u32,
    pub(super) filter: u32,
}

impl<T: Real> Target<T> {
    /// Tile `tile` of all images, with tiles of so many rows and columns, from filter `filter` on.
    #[inline(always)]
    pub(super) fn place(&self, tile: u32, [rows, columns]: [u32; 2], filter: u32) -> Place {
        let (image, of_image) = (tile / self.tiles, tile % self.tiles);
        if self.tiles_x == 0 {
            return Place { image, row: 0, column: of_image * rows * columns, filter };
        }
        let (row, column) = (of_image / self.tiles_x * rows, of_image % self.tiles_x * columns);
        Place { image, row, column, filter }
    }

    /// Row and column of a tile's pixel, in rows of `columns`.
    #[inline(always)]
    fn in_tile(&self, place: Place, pixel: u32, columns: u32) -> [u32; 2] {
        match self.tiles_x {
            0 => self.pixel(place.column + pixel),
            _ => [place.row + pixel / columns, place.column + pixel % columns],
        }
    }

    /// Bytes from the first pixel of a channel to a tile's; `None` for one outside.
    #[inline(always)]
    pub(super) fn offset(&self, place: Place, pixel: u32, columns: u32) -> Option<u32> {
        let [row, column] = self.in_tile(place, pixel, columns);
        self.map.offset(row, column)
    }

    /// Row and column of a pixel that is counted through the rows.
    #[inline(always)]
    pub(super) fn pixel(&self, pixel: u32) -> [u32; 2] {
        [pixel / self.map.width, pixel % self.map.width]
    }

    /// Filter and pixel of element `at` of a tile, in the order in which neighbours are side by side in memory.
    #[inline(always)]
    pub(super) fn element(&self, at: u32, filters: u32, pixels: u32) -> [u32; 2] {
        if self.channels_last != 0 { [at % filters, at / filters] } else { [at / pixels, at % pixels] }
    }

    /// Finishes and writes the sum of a filter of the tile, and of a pixel in rows of `columns`, if they are there; `source` makes it again where
    /// it is not finite. How many results are not zero.
    ///
    /// # Safety
    /// Nobody else writes it.
    #[inline(always)]
    pub(super) unsafe fn finish_element<G: Gpu>(
        &self,
        gpu: G,
        source: Option<&Source<T>>,
        place: Place,
        [filter, pixel]: [u32; 2],
        columns: u32,
        sum: f32,
    ) -> u32 {
        let channel = place.filter + filter;
        let at = self.in_tile(place, pixel, columns);
        let offset = self.map.offset(at[0], at[1]);
        match offset.filter(|_| channel < self.map.channels) {
            // SAFETY: as promised by the caller; pixel and channel are there.
            Some(offset) => unsafe {
                let sum = match source {
                    Some(source) => source.exact_fallback(gpu, sum, [place.image, channel], at),
                    None => sum,
                };
                self.finish(gpu, [place.image, channel], offset, [sum])
            },
            None => 0,
        }
    }

    /// Finishes and writes the sums of `V` channels of a pixel, at so many bytes from the first one of the channel. How many results are
    /// not zero.
    ///
    /// # Safety
    /// The image, the channels and the pixel are there, and nobody else writes these results. More than one channel lie side by side, at a multiple of
    /// their size.
    #[inline(always)]
    pub(super) unsafe fn finish<G: Gpu, const V: usize>(
        &self,
        gpu: G,
        [image, channel]: [u32; 2],
        offset: u32,
        mut sums: [f32; V],
    ) -> u32 {
        // SAFETY: as promised by the caller. A bias may be anywhere: it is loaded number by number.
        unsafe {
            if self.bias.address() != 0 {
                for (v, sum) in sums.iter_mut().enumerate() {
                    let [bias] = gpu.load_readonly(self.bias.add(channel as usize + v));
                    *sum += bias.to_f32(gpu);
                }
            }
            self.finish_biased(gpu, [image, channel], offset, sums)
        }
    }

    /// The same of sums to which the bias is added.
    ///
    /// # Safety
    /// As for [`finish`](Self::finish).
    #[inline(always)]
    pub(super) unsafe fn finish_biased<G: Gpu, const V: usize>(
        &self,
        gpu: G,
        [image, channel]: [u32; 2],
        offset: u32,
        mut sums: [f32; V],
    ) -> u32 {
        let mut results = [T::default(); V];
        let mut nonzeros = 0;
        // SAFETY: as promised by the caller. No loop goes through two arrays at once, as LLVM would leave them in local memory.
        unsafe {
            if self.residual.address() != 0 {
                let residual = self.map.plane(self.residual, image, channel).add_bytes(offset.into());
                let residual: [T; V] = gpu.load_readonly(residual);
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum += residual[v].to_f32(gpu);
                }
            }
            for (v, result) in results.iter_mut().enumerate() {
                *result = self.limited(gpu, sums[v]);
                nonzeros += u32::from(result.to_f32(gpu) != 0.0);
            }
            gpu.store(self.map.plane_mut(self.out, image, channel).add_bytes(offset.into()), results);
        }
        nonzeros
    }

    /// The same of `V` channels of a pixel that lie a plane apart, as far as they are there.
    ///
    /// # Safety
    /// The image, the first channel and the pixel are there, and nobody else writes these results.
    #[inline(always)]
    pub(super) unsafe fn finish_planes<G: Gpu, const V: usize>(
        &self,
        gpu: G,
        [image, channel]: [u32; 2],
        offset: u32,
        sums: [f32; V],
    ) -> u32 {
        let left = self.map.channels - channel;
        let mut out = self.map.plane_mut(self.out, image, channel).add_bytes(offset.into());
        let mut residual = self.map.plane(self.residual, image, channel).add_bytes(offset.into());
        let mut nonzeros = 0;
        for (v, &sum) in sums.iter().enumerate() {
            if (v as u32) < left {
                let mut sum = sum;
                // SAFETY: as promised by the caller.
                unsafe {
                    if self.bias.address() != 0 {
                        let [bias] = gpu.load_readonly(self.bias.add(channel as usize + v));
                        sum += bias.to_f32(gpu);
                    }
                    if self.residual.address() != 0 {
                        let [residual] = gpu.load_readonly(residual);
                        sum += residual.to_f32(gpu);
                    }
                    let result = self.limited(gpu, sum);
                    nonzeros += u32::from(result.to_f32(gpu) != 0.0);
                    gpu.store(out, [result]);
                }
            }
            out = out.add_bytes(self.map.channel_bytes.into());
            residual = residual.add_bytes(self.map.channel_bytes.into());
        }
        nonzeros
    }

    /// A sum between the limits, as a value. NaN is neither below nor above.
    #[inline(always)]
    pub(super) fn limited<G: Gpu>(&self, gpu: G, sum: f32) -> T {
        let sum = if sum < self.lo { self.lo } else { sum };
        T::from_f32(gpu, if sum > self.hi { self.hi } else { sum })
    }

    /// Brings all sums between the limits, where there are such. NaN stays NaN.
    #[inline(always)]
    pub(super) fn limit<G: Gpu>(&self, gpu: G, sums: &mut [f32]) {
        if self.lo != f32::NEG_INFINITY {
            for sum in sums.iter_mut() {
                *sum = gpu.max_nan(*sum, self.lo);
            }
        }
        if self.hi != f32::INFINITY {
            for sum in sums.iter_mut() {
                *sum = -gpu.max_nan(-*sum, -self.hi);
            }
        }
    }

    /// Adds what the threads of a warp have counted to the counter, where there is one.
    ///
    /// # Safety
    /// All threads of the warp come here; the counter is there, or its address is 0.
    #[inline(always)]
    pub(super) unsafe fn count<G: Gpu>(&self, gpu: G, nonzeros: u32) {
        if self.nonzeros.address() == 0 {
            return;
        }
        let all = reduce(gpu, FULL_WARP, WARP, nonzeros, |a, b| a + b);
        if gpu.lane_id() == 0 && all > 0 {
            // SAFETY: as promised by the caller.
            unsafe { gpu.atomic_add(self.nonzeros, all) };
        }
    }
}
