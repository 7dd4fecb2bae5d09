//! What becomes of a warp's sums: results, or partial sums.
//!
//! A lane has, of 16 pixels, two, eight apart, and of each eight filters two neighbours. Four lanes share a pixel: of each 16 filters, two and two exchange theirs
//! for four neighbours, so that the four write 32 bytes together.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, WARP};

use super::PRODUCT_PIXELS;
use crate::HalfValue;
use crate::common::{RawVector, are_finite, load_raw, swap, unpack};
use crate::conv::Target;
use crate::conv::mma::MmaConvArgs;

/// Filters of a lane at once.
const FOUR: usize = 4;

/// Writes a warp's results of tile `tile`, which has `pixels`, or its partial sums where there are several splits: 16 pixels of each 64, from `first` on.
///
/// # Safety
/// The pixels are the warp's, whose lanes are all here; the arguments are those of the launch, whose groups have 2·`L` filters.
#[inline(always)]
pub(super) unsafe fn write<G: Gpu, T: HalfValue, const L: usize, const M: usize>(
    gpu: G,
    args: &MmaConvArgs<T>,
    [tile, pixels]: [u32; 2],
    first: u32,
    sums: &[[f32; L]; M],
) {
    let (target, group, filters) = (&args.target, gpu.block_idx_y(), 2 * L as u32);
    let (first, t) = (first + gpu.lane_id() / 4, gpu.lane_id() % 4);
    if gpu.grid_dim_z() > 1 {
        let block = (gpu.block_idx_z() * gpu.grid_dim_y() + group) * args.tiles + tile;
        let partial = args.partial.add_rows(block, filters * pixels * 4);
        rows(sums, |part, half, sums| {
            let to = partial.add(((first + part + 8 * half as u32) * filters + 2 * t) as usize);
            for (eight, sums) in sums.as_chunks::<4>().0.iter().enumerate() {
                // SAFETY: as promised by the caller.
                unsafe { gpu.store(to.add(8 * eight), [sums[2 * half], sums[2 * half + 1]]) };
            }
        });
        return;
    }
    let place = target.place(tile, [1, pixels], group * filters);
    let mut nonzeros = 0;
    if gpu.warp_all(FULL_WARP, sums.iter().all(|sums| are_finite(sums))) {
        let addresses = target.out.address() | target.residual.address() | target.bias.address();
        let first = [tile * pixels + first, place.filter + own_filters(t)];
        // SAFETY: as promised by the caller.
        nonzeros = unsafe {
            if addresses.is_multiple_of((FOUR * size_of::<T>()) as u64) {
                finish::<G, T, L, M, true>(gpu, target, first, sums)
            } else {
                finish::<G, T, L, M, false>(gpu, target, first, sums)
            }
        };
    } else {
        // All of the warp's are made again. A loop that the compiler cannot unroll: its body is long.
        let count = gpu.warp_shuffle_idx(FULL_WARP, (L * M) as u32, 0, WARP);
        let mut at = 0;
        while at < count {
            let (part, of_part) = (at / L as u32, at % L as u32);
            let filter = of_part / 4 * 8 + 2 * t + at % 2;
            let pixel = first + part * PRODUCT_PIXELS + at / 2 % 2 * 8;
            // SAFETY: as promised by the caller.
            unsafe {
                let source = Some(&args.source);
                nonzeros += target.finish_element(gpu, source, place, [filter, pixel], pixels, f32::NAN);
            }
            at += 1;
        }
        // Lanes have gone ways of their own, and the next tile begins with what the whole warp does.
        gpu.sync_warp(FULL_WARP);
    }
    // SAFETY: all lanes are here.
    unsafe { target.count(gpu, nonzeros) };
}

/// Finishes and writes sums: with bias and residual, between limits. `first` is this lane's first pixel, counted through all images, and `channel` its first
/// filter; `WIDE` where four values lie at a multiple of their size. Returns how many results are not zero, where that is asked for.
///
/// # Safety
/// As for [`write`].
#[inline(always)]
unsafe fn finish<G: Gpu, T: HalfValue, const L: usize, const M: usize, const WIDE: bool>(
    gpu: G,
    target: &Target<T>,
    [first, channel]: [u32; 2],
    sums: &[[f32; L]; M],
) -> u32 {
    let map = &target.map;
    let bias = target.bias.add(channel as usize);
    let has_counter = target.nonzeros.address() != 0;
    let mut nonzeros = 0;
    rows(sums, |part, half, sums| {
        let pixel = first + part + 8 * half as u32;
        let is_pixel = pixel < map.height * map.width;
        // Channels lie last, and images one after another.
        let pixel_bytes = if is_pixel { pixel * map.column_bytes } else { 0 };
        let bytes = u64::from(pixel_bytes) + u64::from(channel) * size_of::<T>() as u64;
        let (out, residual) = (target.out.add_bytes(bytes), target.residual.add_bytes(bytes));
        for (some, sums) in sums.as_chunks::<32>().0.iter().enumerate() {
            let filter = |sixteen: usize| (some as u32 * 4 + sixteen as u32) * 16;
            let is_there = |sixteen: usize| is_pixel && channel + filter(sixteen) < map.channels;
            // SAFETY: as promised by the caller; pixels and filters are there, and filters are whole eights.
            unsafe {
                // What is added is loaded at once: it may come from memory.
                let load = |from: GlobalPtr<T>, is_any: bool, sixteen: usize| {
                    let is_there = is_any && is_there(sixteen);
                    load_four::<G, T, WIDE>(gpu, from.add(filter(sixteen) as usize), is_there)
                };
                let bias = |sixteen| load(bias, target.bias.address() != 0, sixteen);
                let residual = |sixteen| load(residual, target.residual.address() != 0, sixteen);
                let (a, b, c, d) = (residual(0), residual(1), residual(2), residual(3));
                let mut write = |sixteen: usize, residual: RawVector| {
                    let mut sums = four(gpu, sums, sixteen, half);
                    add::<G, T>(gpu, &mut sums, &bias(sixteen));
                    if target.residual.address() != 0 {
                        add::<G, T>(gpu, &mut sums, &residual);
                    }
                    let [a, b, c, d] = sums.map(|sum| -gpu.max_nan(-gpu.max_nan(sum, target.lo), -target.hi));
                    let words = [T::pack(gpu, a, b), T::pack(gpu, c, d)];
                    if is_there(sixteen) {
                        store_four::<G, T, WIDE>(gpu, out.add(filter(sixteen) as usize), words);
                    }
                    if has_counter {
                        let counted = count(words[0]) + count(words[1]);
                        nonzeros += if is_there(sixteen) { counted } else { 0 };
                    }
                };
                write(0, a);
                write(1, b);
                write(2, c);
                write(3, d);
            }
        }
    });
    nonzeros
}

/// Calls `work` with the first pixel of each 64, the half of a warp's pixels there, and the sums.
#[inline(always)]
fn rows<const L: usize, const M: usize>(sums: &[[f32; L]; M], mut work: impl FnMut(u32, usize, &[f32; L])) {
    for (part, sums) in sums.iter().enumerate() {
        for half in 0..2 {
            work(part as u32 * PRODUCT_PIXELS, half, sums);
        }
    }
}

/// Four values that lie side by side: at a multiple of their size, or number by number. Zeros stand for what is not there.
///
/// # Safety
/// They are there, if that is said.
#[inline(always)]
unsafe fn load_four<G: Gpu, T: HalfValue, const WIDE: bool>(
    gpu: G,
    from: GlobalPtr<T>,
    is_there: bool,
) -> RawVector {
    if !is_there {
        return [0; 4];
    }
    // SAFETY: as promised by the caller.
    unsafe {
        if WIDE {
            return load_raw::<G, T, FOUR>(gpu, from);
        }
        let load = |v: usize| load_raw::<G, T, 1>(gpu, from.add(v))[0];
        [load(0) | load(1) << 16, load(2) | load(3) << 16, 0, 0]
    }
}

/// Adds four values, which have 16 bits.
#[inline(always)]
fn add<G: Gpu, T: HalfValue>(gpu: G, sums: &mut [f32; FOUR], values: &RawVector) {
    let values = unpack::<G, T, FOUR>(gpu, values);
    for (v, sum) in sums.iter_mut().enumerate() {
        *sum += values[v];
    }
}

/// How many of two values of 16 bits are neither 0 nor -0.
#[inline(always)]
const fn count(pair: u32) -> u32 {
    (pair & 0x7fff != 0) as u32 + (pair & 0x7fff_0000 != 0) as u32
}

/// Writes four values, two of 16 bits a word: at a multiple of their size, or one by one.
///
/// # Safety
/// Their places are there, and this lane's alone.
#[inline(always)]
unsafe fn store_four<G: Gpu, T, const WIDE: bool>(gpu: G, to: GlobalMut<T>, [a, b]: [u32; 2]) {
    // SAFETY: as promised by the caller.
    unsafe {
        if WIDE {
            gpu.store(GlobalMut::<u32>::from_address(to.address()), [a, b]);
        } else {
            let to = GlobalMut::<u16>::from_address(to.address());
            gpu.store(to, [a as u16]);
            gpu.store(to.add(1), [(a >> 16) as u16]);
            gpu.store(to.add(2), [b as u16]);
            gpu.store(to.add(3), [(b >> 16) as u16]);
        }
    }
}

/// The first filter of the four that lane `t` of a pixel gets of sixteen.
const fn own_filters(t: u32) -> u32 {
    t % 2 * 8 + t / 2 * 4
}

/// The lane's four sums of sixteen filters, of a half of the warp's pixels. All lanes are here.
#[inline(always)]
fn four<G: Gpu, const N: usize>(gpu: G, sums: &[f32; N], sixteen: usize, half: usize) -> [f32; FOUR] {
    let pair = |eight: usize| {
        let at = 8 * sixteen + 4 * eight + 2 * half;
        [sums[at], sums[at + 1]]
    };
    let [[a, b], [c, d]] = swap::<G, 1, _, _>(gpu, pair(0), pair(1));
    [a, b, c, d]
}
