//! Depthwise convolution of small maps that lie as NCHW: planes in shared memory.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr};

use super::{DepthwiseArgs, add_product};
use crate::common::are_finite;
use crate::conv::{Scheme, Tile};
use crate::{Bounds, DeviceValue, Kernel};

/// A block has [`PLANES`] planes of `SIDE` × `SIDE` pixels, which lie one after another, so that they are brought to shared memory as they lie, by
/// vectors of 16 bytes. A thread has a strip of `ROWS` rows of results of a plane. Results go back through shared memory.
///
/// ```text
///   global  │ plane 0 │ plane 1 │ … │ plane 15 │      shared memory: the same, and sums beside it
///
///   warp 0, lanes  0 to  7:  rows 0 to 2 of planes 0 to 7        warp 1: the same of planes 8 to 15
///   (SIDE = 14)    8 to 15:  rows 3 to 6
///                 16 to 23:  rows 7 to 9
///                 24 to 31:  rows 10 to 13
/// ```
/// So rows of 28 or 56 bytes, which no warp could load whole, are loaded by vectors. Eight planes of 196 numbers begin in every fourth bank,
/// and an odd number of rows of 14 after them in those between: a half warp meets no bank twice. Maps are padded by half of the taps.
#[derive(Debug)]
pub struct DepthwisePlanes<
    T,
    const R: usize,
    const STRIDE: usize,
    const SIDE: usize,
    const ROWS: usize,
    const V: usize,
>(PhantomData<T>);

/// Planes of a block.
pub const PLANES: u32 = 16;
/// Strips of a plane. Some have a row fewer than a thread may have.
const STRIPS: u32 = 4;
/// Planes of a warp.
const WARP_PLANES: u32 = 8;
/// Columns of a padded row at most.
const WINDOW: usize = 16;
/// Rows of a thread's input at most.
const LINES: usize = 6;
/// Numbers of 32 bits that a thread copies at once.
const WORDS: u32 = 4;
/// Results that a thread writes at once.
const RESULTS: u32 = 4;

impl<
    T: DeviceValue,
    const R: usize,
    const STRIDE: usize,
    const SIDE: usize,
    const ROWS: usize,
    const V: usize,
> Kernel for DepthwisePlanes<T, R, STRIDE, SIDE, ROWS, V>
{
    type Args = DepthwiseArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(Self::LINES <= LINES && SIDE + R - 1 <= WINDOW, "there is room for so much");
        assert!(
            SIDE.is_multiple_of(V) && Self::OUT.is_multiple_of(Self::OUT_VECTOR),
            "rows are whole vectors"
        );
        assert!(
            Self::OUT.div_ceil(STRIPS as usize) <= ROWS
                && Self::start(STRIPS - 1) as usize + ROWS <= Self::OUT,
            "strips are as long as a thread's rows, and in the plane"
        );
        let scheme = Scheme::DepthwisePlanes { taps: R as u32, stride: STRIDE as u32, side: SIDE as u32 };
        Tile { scheme, value: T::TYPE }
    };
    const THREADS: u32 = PLANES * STRIPS;
    const SHARED_BYTES: u32 = Self::SUMS + PLANES * (Self::OUT * Self::OUT) as u32 * size_of::<f32>() as u32;
    const MIN_SM: u32 = 80;
    /// Any number of blocks: without one ptxas gives a kernel on compute capability 8.0 too few registers, and spills.
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 4 };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let first = gpu.block_idx_x() * PLANES;
        let planes = u32::min(args.count - first, PLANES);
        let (warp, lane) = (gpu.thread_idx_x() / (WARP_PLANES * STRIPS), gpu.lane_id());
        let own = warp * WARP_PLANES + lane % WARP_PLANES;
        let strip = lane / WARP_PLANES;
        let rows = [Self::start(strip), Self::start(strip + 1)];
        // Threads without a plane read the last one.
        let plane = u32::min(own, planes - 1);
        let [_, channel] = args.divisors[0].divide(first + plane);
        // SAFETY: the arguments describe maps and filters; these planes are the block's alone. Barriers are between those who write shared
        // memory and those who read it.
        unsafe {
            Self::bring(gpu, &args, first, planes);
            let weights = Self::weights(gpu, &args, channel);
            let bias = args.bias(gpu, channel);
            gpu.copy_async_wait::<0>();
            gpu.sync_threads();
            let window = Self::window(gpu, plane, rows[0]);
            if own < planes {
                if are_finite(weights.as_flattened()) {
                    Self::sums::<G, false>(gpu, &args, &weights, bias, &window, own, rows);
                } else {
                    Self::sums::<G, true>(gpu, &args, &weights, bias, &window, own, rows);
                }
            }
            gpu.sync_threads();
            let nonzeros = Self::write(gpu, args, first, planes);
            args.target.count(gpu, nonzeros);
        }
    }
}

impl<
    T: DeviceValue,
    const R: usize,
    const STRIDE: usize,
    const SIDE: usize,
    const ROWS: usize,
    const V: usize,
> DepthwisePlanes<T, R, STRIDE, SIDE, ROWS, V>
{
    /// Rows and columns of a plane's results.
    const OUT: usize = (SIDE - 1) / STRIDE + 1;
    /// Sums that a thread writes at once.
    const OUT_VECTOR: usize = if Self::OUT.is_multiple_of(2) { 2 } else { 1 };
    /// Rows of a thread's input.
    const LINES: usize = (ROWS - 1) * STRIDE + R;
    /// Bytes of a plane.
    const PLANE: u32 = (SIDE * SIDE * size_of::<T>()) as u32;
    /// Where sums are in shared memory: behind the planes.
    const SUMS: u32 = PLANES * Self::PLANE;

    /// The first row of results of a strip.
    #[inline(always)]
    const fn start(strip: u32) -> u32 {
        strip * Self::OUT as u32 / STRIPS
    }

    /// Starts bringing the block's planes to shared memory.
    ///
    /// # Safety
    /// The planes are there.
    #[inline(always)]
    unsafe fn bring<G: Gpu>(gpu: G, args: &DepthwiseArgs<T>, first: u32, planes: u32) {
        let from = args.source.input.add_rows(first, Self::PLANE);
        let (bytes, step) = (planes * Self::PLANE, Self::THREADS * 16);
        let mut at = gpu.thread_idx_x() * 16;
        // SAFETY: as promised by the caller: the bytes are those of the planes, of which the first is at a multiple of 16.
        unsafe {
            while at + 16 <= bytes {
                let words = GlobalPtr::<u32>::from_address(from.address()).add_bytes(at.into());
                gpu.copy_async::<u32, { WORDS as usize }>(SharedPtr::from_offset(at), words);
                at += step;
            }
            // What is left of the last planes, fewer than 16 bytes.
            let mut at = bytes / 16 * 16 + gpu.thread_idx_x() * size_of::<T>() as u32;
            while at < bytes {
                let [value] = gpu.load_readonly(from.add_bytes(at.into()));
                gpu.shared_store(SharedPtr::<T>::from_offset(at), [value]);
                at += step;
            }
        }
        gpu.copy_async_commit();
    }

    /// A channel's taps.
    ///
    /// # Safety
    /// The channel is there.
    #[inline(always)]
    unsafe fn weights<G: Gpu>(gpu: G, args: &DepthwiseArgs<T>, channel: u32) -> [[f32; R]; R] {
        let (taps, _) = args.taps(channel, (R * R) as u32);
        let mut weights = [[0.0; R]; R];
        for (r, weights) in weights.iter_mut().enumerate() {
            for (s, weight) in weights.iter_mut().enumerate() {
                // SAFETY: as promised by the caller.
                let [tap] = unsafe { gpu.load_readonly(taps.add(r * R + s)) };
                *weight = tap.to_f32(gpu);
            }
        }
        weights
    }

    /// The input of a thread's rows of results, from one on; zeros outside.
    ///
    /// # Safety
    /// The plane is in shared memory.
    #[inline(always)]
    unsafe fn window<G: Gpu>(gpu: G, plane: u32, row: u32) -> [[f32; WINDOW]; LINES] {
        let mut window = [[0.0_f32; WINDOW]; LINES];
        let edge = R / 2;
        let first = (row * STRIDE as u32).wrapping_sub(edge as u32);
        let mut y = 0;
        while y < Self::LINES {
            let line = first.wrapping_add(y as u32);
            if (y >= edge && y + edge < Self::LINES) || line < SIDE as u32 {
                let line = plane * Self::PLANE + line * (SIDE * size_of::<T>()) as u32;
                let mut x = 0;
                while x < SIDE {
                    // SAFETY: as promised by the caller.
                    let values: [T; V] =
                        unsafe { gpu.shared_load(SharedPtr::<T>::from_offset(line).add(x as u32)) };
                    for v in 0..V {
                        window[y][edge + x + v] = values[v].to_f32(gpu);
                    }
                    x += V;
                }
            }
            y += 1;
        }
        window
    }

    /// Writes a thread's sums, between the limits where nothing is added to them; without what is zero if `EXACT`.
    ///
    /// # Safety
    /// The place of these rows of sums is the thread's.
    #[inline(always)]
    unsafe fn sums<G: Gpu, const EXACT: bool>(
        gpu: G,
        args: &DepthwiseArgs<T>,
        weights: &[[f32; R]; R],
        bias: f32,
        window: &[[f32; WINDOW]; LINES],
        plane: u32,
        rows: [u32; 2],
    ) {
        let sums_at = Self::SUMS + plane * (Self::OUT * Self::OUT * 4) as u32;
        for o in 0..ROWS {
            let row = rows[0] + o as u32;
            let place = SharedPtr::<f32>::from_offset(sums_at + row * (Self::OUT * 4) as u32);
            let mut sums = [0.0; WINDOW];
            let mut x = 0;
            while x < Self::OUT {
                for (r, weights) in weights.iter().enumerate() {
                    for (s, &weight) in weights.iter().enumerate() {
                        let column = x * STRIDE + s;
                        // What is beside the plane is zero.
                        if column >= R / 2 && column < R / 2 + SIDE {
                            let value = window[o * STRIDE + r][column];
                            sums[x] = add_product::<G, EXACT>(gpu, value, weight, sums[x]);
                        }
                    }
                }
                sums[x] += bias;
                x += 1;
            }
            if args.target.residual.address() == 0 {
                args.target.limit(gpu, &mut sums[..Self::OUT]);
            }
            if row < rows[1] {
                let mut x = 0;
                while x < Self::OUT {
                    // SAFETY: as promised by the caller.
                    unsafe {
                        if Self::OUT_VECTOR == 2 {
                            gpu.shared_store(place.add(x as u32), [sums[x], sums[x + 1]]);
                        } else {
                            gpu.shared_store(place.add(x as u32), [sums[x]]);
                        }
                    }
                    x += Self::OUT_VECTOR;
                }
            }
        }
    }

    /// Makes results from the block's sums, and writes them; gives how many of a thread's are not zero.
    ///
    /// # Safety
    /// The sums are in shared memory; the planes of the result are the block's.
    #[inline(always)]
    unsafe fn write<G: Gpu>(gpu: G, mut args: DepthwiseArgs<T>, first: u32, planes: u32) -> u32 {
        let size = (Self::OUT * Self::OUT) as u32;
        // The block's planes as one.
        let bytes = size * size_of::<T>() as u32;
        args.target.out = args.target.out.add_rows(first, bytes);
        if args.target.residual.address() != 0 {
            args.target.residual = args.target.residual.add_rows(first, bytes);
        }
        let count = planes * size;
        let sums = SharedPtr::<f32>::from_offset(Self::SUMS);
        let (mut at, mut nonzeros) = (gpu.thread_idx_x() * RESULTS, 0);
        let is_plain = args.target.residual.address() == 0 && args.target.nonzeros.address() == 0;
        // SAFETY: as promised by the caller.
        unsafe {
            while is_plain && at + RESULTS <= count {
                let results: [f32; RESULTS as usize] = gpu.shared_load(sums.add(at));
                gpu.store(args.target.out.add(at as usize), results.map(|result| T::from_f32(gpu, result)));
                at += Self::THREADS * RESULTS;
            }
            while at + RESULTS <= count {
                let sums: [f32; RESULTS as usize] = gpu.shared_load(sums.add(at));
                nonzeros += args.finish(gpu, [0, 0], at * size_of::<T>() as u32, [0, 0], [[sums]]);
                at += Self::THREADS * RESULTS;
            }
            let mut at = count / RESULTS * RESULTS + gpu.thread_idx_x();
            while at < count {
                let sums: [f32; 1] = gpu.shared_load(sums.add(at));
                nonzeros += args.finish(gpu, [0, 0], at * size_of::<T>() as u32, [0, 0], [[sums]]);
                at += Self::THREADS;
            }
        }
        nonzeros
    }
}
