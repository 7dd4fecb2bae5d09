//! Depthwise convolution of small maps that lie as NCHW: a lane a plane.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr, WARP};

use super::{DepthwiseArgs, add_product, inside};
use crate::common::are_finite;
use crate::conv::{Scheme, Tile};
use crate::{Bounds, DeviceValue, Kernel};

/// A block has 32 planes of `SIDE` × `SIDE` pixels, which lie one after another, so that they are brought to shared memory as they lie, by
/// vectors of 16 bytes. A lane has a plane, and a warp `ROWS` rows of results of each. Results go back through shared memory.
///
/// ```text
///   global  │ plane 0 │ plane 1 │ … │ plane 31 │      shared memory: the same, and sums beside it
///             lane 0    lane 1        lane 31
///   warp 0    rows 0, 1 of each           warp 1   rows 2, 3 of each      …
/// ```
/// So rows of 28 or 56 bytes, which no warp could load whole, are loaded by vectors. Planes of 49 numbers begin in different banks; with
/// 196 numbers, two lanes of each half warp share one. Maps are padded by half of the taps.
#[derive(Debug)]
pub struct DepthwisePlanes<
    T,
    const R: usize,
    const STRIDE: usize,
    const SIDE: usize,
    const ROWS: usize,
    const V: usize,
>(PhantomData<T>);

/// Columns of a padded row at most.
const WINDOW: usize = 16;
/// Rows of a thread's input at most.
const LINES: usize = 4;
/// Numbers of 32 bits that a thread copies at once.
const WORDS: u32 = 4;

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
        let scheme = Scheme::DepthwisePlanes { taps: R as u32, stride: STRIDE as u32, side: SIDE as u32 };
        Tile { scheme, value: T::TYPE }
    };
    const THREADS: u32 = WARP * Self::OUT.div_ceil(ROWS) as u32;
    const SHARED_BYTES: u32 = Self::SUMS + WARP * (Self::OUT * Self::OUT) as u32 * size_of::<f32>() as u32;
    const MIN_SM: u32 = 80;
    /// So many registers that a thread's rows are in them.
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 3 };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let first = gpu.block_idx_x() * WARP;
        let planes = u32::min(args.count - first, WARP);
        let (warp, lane) = (gpu.thread_idx_x() / WARP, gpu.lane_id());
        // Lanes without a plane read the last one.
        let plane = u32::min(lane, planes - 1);
        let [_, channel] = args.divisors[0].divide(first + plane);
        // SAFETY: the arguments describe maps and filters; these planes are the block's alone. Barriers are between those who write shared
        // memory and those who read it.
        unsafe {
            Self::bring(gpu, &args, first, planes);
            let weights = Self::weights(gpu, &args, channel);
            let bias = args.bias(gpu, channel);
            gpu.copy_async_wait::<0>();
            gpu.sync_threads();
            let window = Self::window(gpu, plane, warp * ROWS as u32);
            if lane < planes {
                if are_finite(weights.as_flattened()) {
                    Self::sums::<G, false>(gpu, &weights, bias, &window, [lane, warp * ROWS as u32]);
                } else {
                    Self::sums::<G, true>(gpu, &weights, bias, &window, [lane, warp * ROWS as u32]);
                }
            }
            gpu.sync_threads();
            let nonzeros = Self::finish(gpu, &args, first, planes);
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
    const SUMS: u32 = WARP * Self::PLANE;

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

    /// The input of a thread's rows.
    ///
    /// # Safety
    /// The plane is in shared memory.
    #[inline(always)]
    unsafe fn window<G: Gpu>(gpu: G, plane: u32, row: u32) -> [[f32; WINDOW]; LINES] {
        let mut window = [[0.0_f32; WINDOW]; LINES];
        let first = (row * STRIDE as u32).wrapping_sub((R / 2) as u32);
        let plane_at = plane * Self::PLANE;
        let mut y = 0;
        while y < Self::LINES {
            let (line, is_inside) = inside(first.wrapping_add(y as u32), SIDE as u32);
            let line = SharedPtr::<T>::from_offset(plane_at + line * (SIDE * size_of::<T>()) as u32);
            let mut x = 0;
            while x < SIDE {
                // SAFETY: as promised by the caller.
                let values: [T; V] = unsafe { gpu.shared_load(line.add(x as u32)) };
                let mut v = 0;
                while v < V {
                    window[y][R / 2 + x + v] = if is_inside { values[v].to_f32(gpu) } else { 0.0 };
                    v += 1;
                }
                x += V;
            }
            y += 1;
        }
        window
    }

    /// Writes a thread's sums; without what is zero if `EXACT`.
    ///
    /// # Safety
    /// The place of these sums is the thread's.
    #[inline(always)]
    unsafe fn sums<G: Gpu, const EXACT: bool>(
        gpu: G,
        weights: &[[f32; R]; R],
        bias: f32,
        window: &[[f32; WINDOW]; LINES],
        [plane, row]: [u32; 2],
    ) {
        let sums_at = Self::SUMS + plane * (Self::OUT * Self::OUT * 4) as u32;
        let mut o = 0;
        while o < ROWS {
            let place = SharedPtr::<f32>::from_offset(sums_at + (row + o as u32) * (Self::OUT * 4) as u32);
            let mut sums = [0.0; WINDOW];
            let mut x = 0;
            while x < Self::OUT {
                for r in 0..R {
                    for s in 0..R {
                        let value = window[o * STRIDE + r][x * STRIDE + s];
                        sums[x] = add_product::<G, EXACT>(gpu, value, weights[r][s], sums[x]);
                    }
                }
                sums[x] += bias;
                x += 1;
            }
            // SAFETY: as promised by the caller.
            unsafe {
                if row + (o as u32) < Self::OUT as u32 {
                    let mut x = 0;
                    while x < Self::OUT {
                        if Self::OUT_VECTOR == 2 {
                            gpu.shared_store(place.add(x as u32), [sums[x], sums[x + 1]]);
                        } else {
                            gpu.shared_store(place.add(x as u32), [sums[x]]);
                        }
                        x += Self::OUT_VECTOR;
                    }
                }
            }
            o += 1;
        }
    }

    /// Makes results from the block's sums, and writes them; gives how many of a thread's are not zero.
    ///
    /// # Safety
    /// The sums are in shared memory; the planes of the result are the block's.
    #[inline(always)]
    unsafe fn finish<G: Gpu>(gpu: G, args: &DepthwiseArgs<T>, first: u32, planes: u32) -> u32 {
        let size = (Self::OUT * Self::OUT) as u32;
        // The block's planes as one.
        let mut target = args.target;
        let bytes = size * size_of::<T>() as u32;
        target.out = target.out.add_rows(first, bytes);
        if target.residual.address() != 0 {
            target.residual = target.residual.add_rows(first, bytes);
        }
        let count = planes * size;
        let sums = SharedPtr::<f32>::from_offset(Self::SUMS);
        let (mut at, mut nonzeros) = (gpu.thread_idx_x() * WORDS, 0);
        // SAFETY: as promised by the caller.
        unsafe {
            while at + WORDS <= count {
                let sums: [f32; WORDS as usize] = gpu.shared_load(sums.add(at));
                nonzeros += target.finish_biased(gpu, [0, 0], at * size_of::<T>() as u32, sums);
                at += Self::THREADS * WORDS;
            }
            let mut at = count / WORDS * WORDS + gpu.thread_idx_x();
            while at < count {
                let sums: [f32; 1] = gpu.shared_load(sums.add(at));
                nonzeros += target.finish_biased(gpu, [0, 0], at * size_of::<T>() as u32, sums);
                at += Self::THREADS;
            }
        }
        nonzeros
    }
}
