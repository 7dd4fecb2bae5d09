//! Results of 16 bits with channels last, from the sums of products on tensor cores.
//!
//! A lane has, of 16 pixels, two, eight apart, and of each eight columns two neighbours. Filters are packed such that of 32 these are eight neighbours: four lanes
//! write 64 bytes of a pixel together, and nothing is exchanged.
//!
//! This code runs once a tile, so that its length is its time: what is not to be done is passed over as a whole, and no result has a branch of its own.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, WARP};

use super::target::Place;
use super::{Source, Target};
use crate::HalfValue;
use crate::common::{RawVector, load_raw, unpack};

/// Filters of a lane side by side, and of four lanes.
const EIGHT: usize = 8;
const WIDE: usize = 32;
/// -0 twice, in either type: what changes no sum.
const MINUS_ZEROS: u32 = 0x8000_8000;
/// From a lane's first pixel of sixteen to its second.
pub(super) const PIXELS_APART: u32 = 8;

/// The filter that column `column` of a group is, of whole 32.
#[inline(always)]
pub(super) const fn filter_of(column: u32) -> u32 {
    // A lane t has columns 2·t and 2·t + 1 of each of four eights.
    column / 32 * 32 + column % 8 / 2 * 8 + column % 32 / 8 * 2 + column % 2
}

/// Where the pixels of a lane are: two of each part of its sums, the halves 0 and 1.
pub(super) trait Pixels: Copy {
    /// A pixel's number in the tile.
    fn in_tile(self, part: u32, half: u32) -> u32;

    /// Bytes from the first element of the result to a pixel, and whether it is there.
    fn find<T>(self, target: &Target<T>, part: u32, half: u32) -> (u64, bool);
}

/// A lane's results of a tile. Channels lie last, in whole eights.
pub(super) struct Results<'a, T, P> {
    pub(super) target: &'a Target<T>,
    pub(super) source: &'a Source<T>,
    /// The tile, and pixels of its rows.
    pub(super) place: Place,
    pub(super) columns: u32,
    pub(super) pixels: P,
    /// Which of a pixel's four lanes this is.
    pub(super) t: u32,
}

impl<T: HalfValue, P: Pixels> Results<'_, T, P> {
    /// Finishes and writes the sums of a warp: 16 pixels a part, and 2·`L` filters. Where a sum is not finite, all are made again. Results that are not zero are
    /// counted, where that is asked for.
    ///
    /// # Safety
    /// The tile is the warp's, whose lanes are all here; the arguments are those of the launch.
    #[inline(always)]
    pub(super) unsafe fn write<G: Gpu, const L: usize, const M: usize>(
        &self,
        gpu: G,
        sums: &mut [[f32; L]; M],
    ) {
        let mut nonzeros = 0;
        if gpu.warp_all(FULL_WARP, are_finite(gpu, sums)) {
            // SAFETY: as promised by the caller.
            nonzeros = unsafe { self.finish(gpu, sums) };
        } else {
            // A loop that the compiler cannot unroll: its body is long.
            let count = gpu.warp_shuffle_idx(FULL_WARP, (L * M) as u32, 0, WARP);
            let mut at = 0;
            while at < count {
                let (part, of_part) = (at / L as u32, at % L as u32);
                let filter = filter_of(of_part / 4 * 8 + 2 * self.t + at % 2);
                let pixel = self.pixels.in_tile(part, at / 2 % 2);
                // SAFETY: as promised by the caller.
                unsafe {
                    let source = Some(self.source);
                    let at = [filter, pixel];
                    nonzeros +=
                        self.target.finish_element(gpu, source, self.place, at, self.columns, f32::NAN);
                }
                at += 1;
            }
            // Lanes have gone ways of their own, and the next tile begins with what the whole warp does.
            gpu.sync_warp(FULL_WARP);
        }
        // SAFETY: all lanes are here.
        unsafe { self.target.count(gpu, nonzeros) };
    }

    /// Finishes and writes sums: with bias and residual, between limits. How many results are not zero, where that is asked for.
    ///
    /// # Safety
    /// As for [`write`](Self::write).
    #[inline(always)]
    unsafe fn finish<G: Gpu, const L: usize, const M: usize>(&self, gpu: G, sums: &mut [[f32; L]; M]) -> u32 {
        let target = self.target;
        let is_wide = |address: u64| address.is_multiple_of(size_of::<RawVector>() as u64);
        // SAFETY: as promised by the caller.
        unsafe {
            if target.bias.address() != 0 {
                if is_wide(target.bias.address()) {
                    self.add_bias::<G, L, M, true>(gpu, sums);
                } else {
                    self.add_bias::<G, L, M, false>(gpu, sums);
                }
            }
            if target.residual.address() != 0 {
                if is_wide(target.residual.address()) {
                    self.add_residual(gpu, sums);
                } else {
                    self.add_unaligned_residual(gpu, sums);
                }
            }
            target.limit(gpu, sums.as_flattened_mut());
            if is_wide(target.out.address()) {
                self.store::<G, L, M, true>(gpu, sums);
            } else {
                self.store::<G, L, M, false>(gpu, sums);
            }
        }
        if target.nonzeros.address() == 0 { 0 } else { self.nonzeros(gpu, sums) }
    }

    /// # Safety
    /// The bias is there, at a multiple of 16 bytes if `ALIGNED`.
    #[inline(always)]
    unsafe fn add_bias<G: Gpu, const L: usize, const M: usize, const ALIGNED: bool>(
        &self,
        gpu: G,
        sums: &mut [[f32; L]; M],
    ) {
        let bias = self.target.bias.add(self.filter(0) as usize);
        for wide in 0..L / 16 {
            // SAFETY: as promised by the caller.
            let bias = unsafe {
                load_eight::<G, T, ALIGNED>(gpu, bias.add(wide * WIDE), self.has_filters(wide as u32))
            };
            for sums in sums.iter_mut() {
                add_eights::<G, T>(gpu, &mut sums.as_chunks_mut::<16>().0[wide], [bias, bias]);
            }
        }
    }

    /// A residual may come from memory, so that four loads are under way at once.
    ///
    /// # Safety
    /// The residual is there, at a multiple of 16 bytes.
    #[inline(always)]
    unsafe fn add_residual<G: Gpu, const L: usize, const M: usize>(&self, gpu: G, sums: &mut [[f32; L]; M]) {
        let load = |part: usize, half: usize, wide: usize| {
            let (offset, is_there) = self.find(part as u32, half as u32, wide as u32);
            // SAFETY: as promised by the caller.
            unsafe { load_eight::<G, T, true>(gpu, self.target.residual.add_bytes(offset), is_there) }
        };
        for (part, sums) in sums.iter_mut().enumerate() {
            let (twos, rest) = sums.as_chunks_mut::<32>();
            for (two, sums) in twos.iter_mut().enumerate() {
                let [first, second] = sums.as_chunks_mut::<16>().0 else { return };
                let (a, b) = (load(part, 0, 2 * two), load(part, 1, 2 * two));
                let (c, d) = (load(part, 0, 2 * two + 1), load(part, 1, 2 * two + 1));
                add_eights::<G, T>(gpu, first, [a, b]);
                add_eights::<G, T>(gpu, second, [c, d]);
            }
            if let Some(sums) = rest.first_chunk_mut::<16>() {
                let (a, b) = (load(part, 0, L / 16 - 1), load(part, 1, L / 16 - 1));
                add_eights::<G, T>(gpu, sums, [a, b]);
            }
        }
    }

    /// The same at any address, slowly: eight after eight in a loop, each of which adds nothing to all other sums. Written out, there would be more loads under way
    /// than registers.
    ///
    /// # Safety
    /// The residual is there.
    #[inline(always)]
    unsafe fn add_unaligned_residual<G: Gpu, const L: usize, const M: usize>(
        &self,
        gpu: G,
        sums: &mut [[f32; L]; M],
    ) {
        let count = gpu.warp_shuffle_idx(FULL_WARP, (L * M / 8) as u32, 0, WARP);
        let mut at = 0;
        while at < count {
            let place = [at / 2 % M as u32, at % 2, at / (2 * M as u32)];
            let [part, half, wide] = place;
            let (offset, is_there) = self.find(part, half, wide);
            // SAFETY: as promised by the caller.
            let [a, b, c, d] =
                unsafe { load_eight::<G, T, false>(gpu, self.target.residual.add_bytes(offset), is_there) };
            for (its_part, sums) in sums.iter_mut().enumerate() {
                for (its_wide, sums) in sums.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                    let of_half = |half: u32| {
                        let is_this = place == [its_part as u32, half, its_wide as u32];
                        let word = |word: u32| if is_this { word } else { MINUS_ZEROS };
                        [word(a), word(b), word(c), word(d)]
                    };
                    let (first, second) = (of_half(0), of_half(1));
                    add_eights::<G, T>(gpu, sums, [first, second]);
                }
            }
            at += 1;
        }
    }

    /// # Safety
    /// Results are this lane's, and begin at a multiple of 16 bytes if `ALIGNED`.
    #[inline(always)]
    unsafe fn store<G: Gpu, const L: usize, const M: usize, const ALIGNED: bool>(
        &self,
        gpu: G,
        sums: &[[f32; L]; M],
    ) {
        for (part, sums) in sums.iter().enumerate() {
            for (wide, sums) in sums.as_chunks::<16>().0.iter().enumerate() {
                for half in 0..2 {
                    let (offset, is_there) = self.find(part as u32, half as u32, wide as u32);
                    let words = words::<G, T>(gpu, sums, half);
                    if is_there {
                        let to = self.target.out.add_bytes(offset);
                        // SAFETY: as promised by the caller.
                        unsafe { store_eight::<G, T, ALIGNED>(gpu, to, words) };
                    }
                }
            }
        }
    }

    /// How many results are neither 0 nor -0.
    #[inline(always)]
    fn nonzeros<G: Gpu, const L: usize, const M: usize>(&self, gpu: G, sums: &[[f32; L]; M]) -> u32 {
        let mut nonzeros = 0;
        for (part, sums) in sums.iter().enumerate() {
            for (wide, sums) in sums.as_chunks::<16>().0.iter().enumerate() {
                for half in 0..2 {
                    let (_, is_there) = self.find(part as u32, half as u32, wide as u32);
                    let [a, b, c, d] = words::<G, T>(gpu, sums, half);
                    let counted = count(a) + count(b) + count(c) + count(d);
                    nonzeros += if is_there { counted } else { 0 };
                }
            }
        }
        nonzeros
    }

    /// The lane's first filter of 32.
    #[inline(always)]
    fn filter(&self, wide: u32) -> u32 {
        self.place.filter + self.t * EIGHT as u32 + wide * WIDE as u32
    }

    /// Whether the result has the lane's filters of 32: channels are whole eights.
    #[inline(always)]
    fn has_filters(&self, wide: u32) -> bool {
        self.filter(wide) < self.target.map.channels
    }

    /// Bytes to these filters of a pixel, and whether they are there.
    #[inline(always)]
    fn find(&self, part: u32, half: u32, wide: u32) -> (u64, bool) {
        let (pixel, is_pixel) = self.pixels.find(self.target, part, half);
        let own = u64::from(self.filter(0)) * size_of::<T>() as u64;
        let wide_bytes = u64::from(wide) * (WIDE * size_of::<T>()) as u64;
        (pixel + own + wide_bytes, is_pixel && self.has_filters(wide))
    }
}

/// Whether all sums are finite: zero times anything else is NaN. Four sums of these at once, where comparisons would wait for each other.
#[inline(always)]
fn are_finite<G: Gpu, const L: usize, const M: usize>(gpu: G, sums: &[[f32; L]; M]) -> bool {
    let [mut a, mut b, mut c, mut d] = [0.0; 4];
    for &[first, second, third, fourth] in sums.as_flattened().as_chunks::<4>().0 {
        a = gpu.fma(first, 0.0, a);
        b = gpu.fma(second, 0.0, b);
        c = gpu.fma(third, 0.0, c);
        d = gpu.fma(fourth, 0.0, d);
    }
    a + b + (c + d) == 0.0
}

/// The words of eight results of a pixel, the first or the second.
#[inline(always)]
fn words<G: Gpu, T: HalfValue>(gpu: G, sums: &[f32; 16], half: usize) -> RawVector {
    let pair = |eight: usize| T::pack(gpu, sums[4 * eight + 2 * half], sums[4 * eight + 2 * half + 1]);
    [pair(0), pair(1), pair(2), pair(3)]
}

/// How many of two values of 16 bits are neither 0 nor -0.
#[inline(always)]
const fn count(pair: u32) -> u32 {
    (pair & 0x7fff != 0) as u32 + (pair & 0x7fff_0000 != 0) as u32
}

/// Adds eight values to each of two pixels.
#[inline(always)]
fn add_eights<G: Gpu, T: HalfValue>(gpu: G, sums: &mut [f32; 16], [first, second]: [RawVector; 2]) {
    let [a, b, c, d] = sums.as_chunks_mut::<4>().0 else { return };
    let add = |sums: &mut [f32; 4], first: u32, second: u32| {
        let [a, b] = unpack::<G, T, 2>(gpu, &[first, 0, 0, 0]);
        let [c, d] = unpack::<G, T, 2>(gpu, &[second, 0, 0, 0]);
        *sums = [sums[0] + a, sums[1] + b, sums[2] + c, sums[3] + d];
    };
    add(a, first[0], second[0]);
    add(b, first[1], second[1]);
    add(c, first[2], second[2]);
    add(d, first[3], second[3]);
}

/// Eight values side by side; zeros for what is not there.
///
/// # Safety
/// They are there, if that is said, and at a multiple of 16 bytes if `ALIGNED`.
#[inline(always)]
unsafe fn load_eight<G: Gpu, T: HalfValue, const ALIGNED: bool>(
    gpu: G,
    from: GlobalPtr<T>,
    is_there: bool,
) -> RawVector {
    if !is_there {
        return [0; 4];
    }
    // SAFETY: as promised by the caller.
    unsafe {
        if ALIGNED {
            return load_raw::<G, T, EIGHT>(gpu, from);
        }
        let load = |v: usize| load_raw::<G, T, 1>(gpu, from.add(v))[0];
        let pair = |v: usize| load(v) | load(v + 1) << 16;
        [pair(0), pair(2), pair(4), pair(6)]
    }
}

/// Writes eight values side by side.
///
/// # Safety
/// They are this lane's, and at a multiple of 16 bytes if `ALIGNED`.
#[inline(always)]
unsafe fn store_eight<G: Gpu, T: HalfValue, const ALIGNED: bool>(gpu: G, to: GlobalMut<T>, words: RawVector) {
    // SAFETY: as promised by the caller.
    unsafe {
        if ALIGNED {
            gpu.store(GlobalMut::<u32>::from_address(to.address()), words);
            return;
        }
        let to = GlobalMut::<u16>::from_address(to.address());
        let store = |pair: usize| {
            gpu.store(to.add(2 * pair), [words[pair] as u16]);
            gpu.store(to.add(2 * pair + 1), [(words[pair] >> 16) as u16]);
        };
        store(0);
        store(1);
        store(2);
        store(3);
    }
}
