//! Convolution of one tap (1 × 1) on tensor cores, zeros multiplied: a matrix product of pixels × channels and channels × filters, of `f32` in split
//! precision.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::mma::{CHANNELS, MmaConvArgs};
use super::split::MmaValue;
use super::target::Place;
use super::{Scheme, Tile};
use crate::common::are_finite;
use crate::{Bounds, Kernel};

/// A tile of 32·`WM` output pixels and 8·`N` filters by `WM` × `WK` warps. A warp has 32 pixels, and each `WK`-th sixteen of channels.
///
/// ```text
///   A: 32 pixels × 16 channels            B: 16 channels × 8·N filters        warps of the same pixels add up in shared memory
///   ┌────────────┐ lane 4·g + q has       ┌────────────┐ lies as lanes        ┌──┐ ┌──┐
///   │ 4 × 4      │ pixels 4·g to 4·g + 3, │            │ take it: 16 bytes    │k0│+│k1│+ …  ─► bias, residual, limits ─► out
///   │ of a lane  │ channels 4·q to 4·q + 3│            │ each                 └──┘ └──┘
///   └────────────┘                        └────────────┘
/// ```
/// No tap shares an input with another, so that A goes from global memory to registers, where lanes split it. So does B. Both are loaded a step ahead.
/// The order of pixels, channels and filters among the lanes is free: it is such that a lane loads and stores vectors of four, whether pixels or channels lie
/// side by side. The target's tiles are runs of pixels, counted through the rows of an image; there is one tap and no padding. A sum that is not finite is made again, without tensor cores.
///
/// Lower bounds: the bytes of x and of the result; three products of 16 bits for one of `f32`. L1 moves A once and B `WM` times a block, 4 bytes an element.
#[derive(Debug)]
pub struct PointwiseConv<T, const N: usize, const WM: u32, const WK: u32>(PhantomData<T>);

/// Pixels of a warp.
pub const POINTWISE_PIXELS: u32 = 32;
/// Four pixels of a lane by four channels.
type Input<T> = [[T; 4]; 4];
/// Sums of a lane: of two rows of A each, eight filters, and four accumulators.
type Sums<const N: usize> = [[[f32; 4]; N]; 2];

impl<T: MmaValue, const N: usize, const WM: u32, const WK: u32> Kernel for PointwiseConv<T, N, WM, WK> {
    type Args = MmaConvArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(N.is_multiple_of(2), "values of 16 bits are loaded by twos of eight filters");
        assert!((2 * N as u32).is_multiple_of(WK), "warps share the vectors of a lane");
        let (pixels, filters) = (POINTWISE_PIXELS * WM, Self::FILTERS);
        Tile { scheme: Scheme::PointwiseTile { pixels, filters, warps: WK }, value: T::TYPE }
    };
    const THREADS: u32 = WM * WK * WARP;
    const SHARED_BYTES: u32 = if WK > 1 { WM * WK * Self::SUMS * WARP * 4 } else { 0 };
    const BOUNDS: Bounds =
        Bounds { max_threads: Self::THREADS, min_blocks: if N > 4 { 256 } else { 512 } / Self::THREADS };
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let warp = gpu.thread_idx_x() / WARP;
        let (row, k) = (warp / WK, warp % WK);
        let (group, lane) = (gpu.block_idx_y(), gpu.lane_id());
        let pixels = POINTWISE_PIXELS * WM;
        let mut place = args.target.place(gpu.block_idx_x(), [1, pixels], group * Self::FILTERS);
        let in_tile = row * POINTWISE_PIXELS + lane / 4 * 4;
        place.column += in_tile;
        let work = Work::new(gpu, &args, place);
        let (first, count) = args.of_block(gpu);
        let end = first + count;
        let mut sums: Sums<N> = [[[0.0; 4]; N]; 2];
        // SAFETY: the arguments describe maps and filters.
        unsafe {
            let mut chunk = first + k;
            if chunk < end {
                let mut ahead = (work.load(chunk), Self::load_filters(&work, chunk));
                while chunk < end {
                    let (x, weights) = ahead;
                    chunk += WK;
                    if chunk < end {
                        ahead = (work.load(chunk), Self::load_filters(&work, chunk));
                    }
                    Self::multiply(gpu, &x, &weights, &mut sums);
                }
            }
            Self::write(&work, &sums, in_tile, (row, k));
        }
    }
}

/// What a thread knows.
struct Work<'a, G, T> {
    gpu: G,
    args: &'a MmaConvArgs<T>,
    /// The lane's first pixel, and the tile's first filter.
    place: Place,
    /// Where the lane's first channels of its pixels are, 0 for pixels that are not there.
    from: [u64; 4],
    /// Whether four pixels, or four channels, can be loaded at once.
    are_pixels_wide: bool,
    are_channels_wide: bool,
}

impl<'a, G: Gpu, T: MmaValue> Work<'a, G, T> {
    #[inline(always)]
    fn new(gpu: G, args: &'a MmaConvArgs<T>, place: Place) -> Self {
        let (source, target) = (&args.source, &args.target);
        let from = [0, 1, 2, 3].map(|pixel| {
            let [row, column] = target.pixel(place.column + pixel);
            match source.map.offset(row * source.strides[0], column * source.strides[1]) {
                Some(offset) if row < target.map.height => {
                    let plane = source.map.plane(source.input, place.image, gpu.lane_id() % 4 * 4);
                    plane.add_bytes(offset.into()).address()
                }
                _ => 0,
            }
        });
        let is_whole = source.strides[0] == 1 && source.strides[1] == 1;
        let (map, address) = (&source.map, source.input.address() as u32);
        Self {
            gpu,
            args,
            place,
            from,
            are_pixels_wide: is_whole && map.has_wide_pixels::<T>(address),
            are_channels_wide: map.has_wide_channels::<T>(address),
        }
    }

    /// Loads four channels of the lane's pixels. Zeros stand for what is not there.
    ///
    /// # Safety
    /// The map is there.
    #[inline(always)]
    unsafe fn load(&self, chunk: u32) -> Input<T> {
        let (gpu, map) = (self.gpu, &self.args.source.map);
        let mut x = [[T::default(); 4]; 4];
        let first = chunk * CHANNELS;
        let channels = map.channels - first;
        let own = gpu.lane_id() % 4 * 4;
        let from =
            |pixel: usize| GlobalPtr::<T>::from_address(self.from[pixel]).add_rows(first, map.channel_bytes);
        // SAFETY: as promised by the caller; pixels and channels are loaded that are there.
        unsafe {
            if self.are_pixels_wide {
                for channel in 0..4 {
                    if self.from[0] != 0 && own + channel < channels {
                        let loaded: [T; 4] = gpu.load_readonly(from(0).add_rows(channel, map.channel_bytes));
                        for pixel in 0..4 {
                            x[pixel][channel as usize] = loaded[pixel];
                        }
                    }
                }
            } else if self.are_channels_wide {
                for (pixel, x) in x.iter_mut().enumerate() {
                    if self.from[pixel] != 0 && own < channels {
                        *x = gpu.load_readonly(from(pixel));
                    }
                }
            } else {
                for (pixel, x) in x.iter_mut().enumerate() {
                    for (channel, x) in x.iter_mut().enumerate() {
                        let channel = channel as u32;
                        if self.from[pixel] != 0 && own + channel < channels {
                            [*x] = gpu.load_readonly(from(pixel).add_rows(channel, map.channel_bytes));
                        }
                    }
                }
            }
        }
        x
    }
}

impl<T: MmaValue, const N: usize, const WM: u32, const WK: u32> PointwiseConv<T, N, WM, WK> {
    /// Filters of a tile.
    const FILTERS: u32 = 8 * N as u32;
    /// Sums of a lane, and vectors of four of them.
    const SUMS: u32 = 8 * N as u32;
    const VECTORS: u32 = 2 * N as u32;
    /// Vectors of four words of B that a lane has.
    const QUADS: u32 = N as u32 * T::PARTS / 2;

    /// Loads a lane's part of 16 channels of the filters: as many vectors as the parts need.
    ///
    /// # Safety
    /// They are there.
    #[inline(always)]
    unsafe fn load_filters<G: Gpu>(work: &Work<'_, G, T>, chunk: u32) -> [[u32; 4]; N] {
        let gpu = work.gpu;
        let row = gpu.block_idx_y() * work.args.chunks + chunk;
        let from = work.args.filters.add_rows(row, Self::QUADS * WARP * 16).add(4 * gpu.lane_id() as usize);
        let mut quads = [[0; 4]; N];
        for (at, quad) in quads.iter_mut().enumerate() {
            if at < Self::QUADS as usize {
                // SAFETY: as promised by the caller.
                *quad = unsafe { gpu.load_readonly(from.add(at * 4 * WARP as usize)) };
            }
        }
        quads
    }

    /// Adds the products of 16 channels, the least first.
    #[inline(always)]
    fn multiply<G: Gpu>(gpu: G, x: &Input<T>, quads: &[[u32; 4]; N], sums: &mut Sums<N>) {
        for (tile, sums) in sums.iter_mut().enumerate() {
            let [first, second] = [x[2 * tile], x[2 * tile + 1]];
            let pairs = [
                T::join(gpu, first[0], first[1]),
                T::join(gpu, second[0], second[1]),
                T::join(gpu, first[2], first[3]),
                T::join(gpu, second[2], second[3]),
            ];
            let upper = pairs.map(|pair| pair.upper);
            for (n, sum) in sums.iter_mut().enumerate() {
                if T::PARTS > 1 {
                    let [a, b, c, d] = quads[n];
                    *sum = T::mma(gpu, pairs.map(|pair| pair.lower), [a, b], *sum);
                    *sum = T::mma(gpu, upper, [c, d], *sum);
                    *sum = T::mma(gpu, upper, [a, b], *sum);
                } else {
                    let [a, b] = [quads[n / 2][n % 2 * 2], quads[n / 2][n % 2 * 2 + 1]];
                    *sum = T::mma(gpu, upper, [a, b], *sum);
                }
            }
        }
    }

    /// Adds the warps' sums, and writes results, or partial sums where there are several splits. A lane has four values side by side.
    ///
    /// # Safety
    /// All threads come here.
    #[inline(always)]
    unsafe fn write<G: Gpu>(work: &Work<'_, G, T>, sums: &Sums<N>, in_tile: u32, (row, k): (u32, u32)) {
        let (gpu, target) = (work.gpu, &work.args.target);
        let is_last = target.channels_last != 0;
        let finish = Finish::new(work, in_tile, POINTWISE_PIXELS * WM, Self::FILTERS);
        let mut nonzeros = 0;
        // SAFETY: as promised by the caller; warps write their own sums, and read others' after the barrier.
        unsafe {
            if WK == 1 {
                for vector in 0..Self::VECTORS {
                    let of_pixels = [0, 1, 2, 3].map(|v| {
                        let [tile, n, at] = place(vector, v, false);
                        sums[tile][n][at]
                    });
                    let of_channels = [0, 1, 2, 3].map(|v| {
                        let [tile, n, at] = place(vector, v, true);
                        sums[tile][n][at]
                    });
                    let values = if is_last { of_channels } else { of_pixels };
                    nonzeros += finish.vector(vector, values);
                }
            } else {
                let lane = SharedPtr::<f32>::from_offset(0).add(gpu.lane_id());
                let own = lane.add((row * WK + k) * Self::SUMS * WARP);
                for (at, &[a, b, c, d]) in sums.as_flattened().iter().enumerate() {
                    let own = own.add(4 * at as u32 * WARP);
                    gpu.shared_store(own, [a]);
                    gpu.shared_store(own.add(WARP), [b]);
                    gpu.shared_store(own.add(2 * WARP), [c]);
                    gpu.shared_store(own.add(3 * WARP), [d]);
                }
                gpu.sync_threads();
                let mut vector = k;
                while vector < Self::VECTORS {
                    let values = [0, 1, 2, 3].map(|v| {
                        let [tile, n, at] = place(vector, v, is_last);
                        let at = ((tile * N + n) * 4 + at) as u32 + row * WK * Self::SUMS;
                        let mut sum = 0.0;
                        for k in 0..WK {
                            let [part]: [f32; 1] = gpu.shared_load(lane.add((at + k * Self::SUMS) * WARP));
                            sum += part;
                        }
                        sum
                    });
                    nonzeros += finish.vector(vector, values);
                    vector += WK;
                }
            }
            if gpu.grid_dim_z() == 1 {
                target.count(gpu, nonzeros);
            }
        }
    }
}

/// Where element `v` of a lane's vector is among its sums: of two rows of A, eight filters, accumulator. A vector is of four pixels of a filter, or of four filters of a
/// pixel.
#[inline(always)]
const fn place(vector: u32, v: u32, is_of_filters: bool) -> [usize; 3] {
    let (pixel, filter) = if is_of_filters { (vector % 4, vector / 4 * 4 + v) } else { (v, vector) };
    let at = pixel % 2 * 2 + filter % 2;
    [pixel as usize / 2, filter as usize / 2, at as usize]
}

/// What becomes of a lane's vectors.
struct Finish<'w, 'a, G, T> {
    work: &'w Work<'a, G, T>,
    /// Where the tile's partial sums go.
    partial: GlobalMut<f32>,
    /// The lane's first pixel in the tile; pixels and filters of a tile.
    in_tile: u32,
    pixels: u32,
    filters: u32,
    /// Whether four results can be stored at once.
    is_wide: bool,
}

impl<'w, 'a, G: Gpu, T: MmaValue> Finish<'w, 'a, G, T> {
    #[inline(always)]
    fn new(work: &'w Work<'a, G, T>, in_tile: u32, pixels: u32, filters: u32) -> Self {
        let (gpu, args) = (work.gpu, work.args);
        let target = &args.target;
        let block = (gpu.block_idx_z() * gpu.grid_dim_y() + gpu.block_idx_y()) * args.tiles;
        let addresses = (target.out.address() | target.residual.address()) as u32;
        let is_wide = if target.channels_last != 0 {
            target.map.has_wide_channels::<T>(addresses)
        } else {
            target.map.has_wide_pixels::<T>(addresses)
        };
        let partial = args.partial.add_rows(block + gpu.block_idx_x(), filters * pixels * 4);
        Self { work, partial, in_tile, pixels, filters, is_wide }
    }

    /// Writes a vector. How many results are not zero.
    ///
    /// # Safety
    /// It is the lane's, and the whole warp is here.
    #[inline(always)]
    unsafe fn vector(&self, vector: u32, mut sums: [f32; 4]) -> u32 {
        let (gpu, target, place) = (self.work.gpu, &self.work.args.target, self.work.place);
        let is_last = target.channels_last != 0;
        // The lane's filters: four of each sixteen.
        let four = |of_lane: u32| of_lane / 4 * 16 + gpu.lane_id() % 4 * 4 + of_lane % 4;
        let (pixel, filter) = if is_last { (vector % 4, four(vector / 4 * 4)) } else { (0, four(vector)) };
        // SAFETY: as promised by the caller; pixels and filters are written that are there.
        unsafe {
            if gpu.grid_dim_z() > 1 {
                let (in_tile, filters) = (self.in_tile + pixel, self.filters);
                let at = if is_last { in_tile * filters + filter } else { filter * self.pixels + in_tile };
                gpu.store(self.partial.add(at as usize), sums);
                return 0;
            }
            let at = [place.image, place.filter + filter];
            if gpu.warp_all(FULL_WARP, self.is_wide && are_finite(&sums)) {
                let [row, column] = target.pixel(place.column + pixel);
                return match target.map.offset(row, column) {
                    Some(offset) if at[1] < target.map.channels => {
                        if target.bias.address() != 0 {
                            for (v, sum) in sums.iter_mut().enumerate() {
                                let filter = at[1] + if is_last { v as u32 } else { 0 };
                                let [bias] = gpu.load_readonly(target.bias.add(filter as usize));
                                *sum += bias.to_f32(gpu);
                            }
                        }
                        target.finish_biased(gpu, at, offset, sums)
                    }
                    _ => 0,
                };
            }
            let mut nonzeros = 0;
            for v in 0..4 {
                let (pixel, filter) = if is_last { (pixel, filter + v) } else { (v, filter) };
                let sum = sums[v as usize];
                let source = Some(&self.work.args.source);
                nonzeros += target.finish_element(gpu, source, place, [filter, pixel], u32::MAX, sum);
            }
            nonzeros
        }
    }
}
