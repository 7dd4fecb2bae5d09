//! Windows as large as the map, in NCHW: the plane of a channel becomes one number.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::join::{finish, join, join_vector, neutral};
use super::{CHUNK, PoolMode, Scheme, Tile};
use crate::common::{RawVector, load_raw, reduce};
use crate::{DeviceValue, Kernel};

/// A group of lanes has a plane, which lies in one piece: of n lanes each joins every n-th vector of `V` pixels, lanes of a warp join by
/// shuffles, the farthest first, and warps in shared memory, the first first.
#[derive(Debug)]
pub struct PlanePool<T, const V: usize>(PhantomData<T>);

/// What [`PlanePool`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlanePoolArgs<T> {
    /// The first plane; with `V` > 1 all are at a multiple of a vector.
    pub input: GlobalPtr<T>,
    /// A result a plane.
    pub out: GlobalMut<T>,
    /// Planes: at least 1.
    pub planes: u32,
    /// Bytes from one plane to the next.
    pub plane_bytes: u32,
    /// Pixels of a plane: at least 1, whole vectors.
    pub pixels: u32,
    /// Threads of a plane, at most a block's: 2 to the power of this.
    pub lanes_log2: u32,
    /// What is made of planes; its scale is not 0.
    pub mode: PoolMode,
}

/// Threads of a block.
const THREADS: u32 = 256;

impl<T: DeviceValue, const V: usize> Kernel for PlanePool<T, V> {
    type Args = PlanePoolArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(V == 1 || V * size_of::<T>() == 16, "a thread loads 16 bytes at once, or an element");
        Tile { scheme: Scheme::Planes, vector: V as u32, value: T::TYPE }
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = THREADS / WARP * size_of::<f32>() as u32;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        // SAFETY: the arguments describe planes; all threads of the block come here.
        unsafe {
            if args.mode.is_max != 0 {
                Self::plane::<G, true>(gpu, &args);
            } else {
                Self::plane::<G, false>(gpu, &args);
            }
        }
    }
}

impl<T: DeviceValue, const V: usize> PlanePool<T, V> {
    /// Computes the plane of this thread and its group. Groups past the last plane have that one too, and write nothing.
    ///
    /// # Safety
    /// The arguments describe planes; all threads of the block come here.
    #[inline(always)]
    unsafe fn plane<G: Gpu, const MAX: bool>(gpu: G, args: &PlanePoolArgs<T>) {
        let (thread, lanes) = (gpu.thread_idx_x(), 1 << args.lanes_log2);
        let lane = thread & (lanes - 1);
        let own = (gpu.block_idx_x() * THREADS + thread) >> args.lanes_log2;
        let plane = args.input.add_rows(own.min(args.planes - 1), args.plane_bytes);
        // SAFETY: the plane is there, and nobody writes it.
        let mut joined = unsafe { Self::share::<G, MAX>(gpu, plane, args.pixels / V as u32, [lane, lanes]) };
        joined = reduce(gpu, FULL_WARP, lanes.min(WARP), joined, join::<MAX>);
        if lanes > WARP {
            let (warp, warps) = (thread / WARP, lanes / WARP);
            let parts = SharedPtr::<f32>::from_offset(0);
            // SAFETY: each warp has a place, which is read after the barrier, to which all threads come.
            unsafe {
                if gpu.lane_id() == 0 {
                    gpu.shared_store(parts.add(warp), [joined]);
                }
                gpu.sync_threads();
                if lane == 0 {
                    let mut next = 1;
                    while next < warps {
                        let [part] = gpu.shared_load(parts.add(warp + next));
                        joined = join::<MAX>(joined, part);
                        next += 1;
                    }
                }
            }
        }
        if lane == 0 && own < args.planes {
            let result = T::from_f32(gpu, finish::<MAX>(joined, args.mode.scale));
            // SAFETY: the result is there, and the group's alone.
            unsafe { gpu.store(args.out.add(own as usize), [result]) };
        }
    }

    /// What a lane's vectors join to.
    ///
    /// # Safety
    /// There are so many vectors, at least one, and nobody writes them.
    #[inline(always)]
    unsafe fn share<G: Gpu, const MAX: bool>(
        gpu: G,
        plane: GlobalPtr<T>,
        vectors: u32,
        [lane, lanes]: [u32; 2],
    ) -> f32 {
        let mut sums = [neutral::<MAX>(); V];
        let mut first = lane;
        while first < vectors {
            let mut raw = [RawVector::default(); CHUNK];
            for (i, raw) in raw.iter_mut().enumerate() {
                let at = (first + i as u32 * lanes).min(vectors - 1);
                // SAFETY: as promised by the caller.
                *raw = unsafe { load_raw::<G, T, V>(gpu, plane.add(at as usize * V)) };
            }
            for (i, raw) in raw.iter().enumerate() {
                let is_inside = first + i as u32 * lanes < vectors;
                join_vector::<G, T, V, MAX>(gpu, raw, is_inside, &mut sums);
            }
            first += CHUNK as u32 * lanes;
        }
        let mut joined = neutral::<MAX>();
        for sum in sums {
            joined = join::<MAX>(joined, sum);
        }
        joined
    }
}
