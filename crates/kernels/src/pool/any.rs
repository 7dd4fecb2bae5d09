//! Windows of any size.
use core::marker::PhantomData;

use lacuna_gpu::Gpu;

use super::join::{finish, join_vector, neutral};
use super::window::{THREADS, Work, overlap};
use super::{CHUNK, Scheme, Tile, WindowPoolArgs};
use crate::common::{RawVector, load_raw, round_into};
use crate::{DeviceValue, Kernel};

/// A thread has one result, of `V` channels. The part of its window that is in the map is read row by row, a few pixels at once.
#[derive(Debug)]
pub struct AnyPool<T, const V: usize>(PhantomData<T>);

impl<T: DeviceValue, const V: usize> Kernel for AnyPool<T, V> {
    type Args = WindowPoolArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(V == 1 || V * size_of::<T>() == 16, "a thread loads 16 bytes at once, or an element");
        Tile { scheme: Scheme::Any, vector: V as u32, value: T::TYPE }
    };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let at = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        if at >= args.count {
            return;
        }
        let work = args.work::<1, V>(at);
        // SAFETY: the arguments describe maps; this result is this thread's alone.
        unsafe {
            if args.mode.is_max != 0 {
                Self::pixel::<G, true>(gpu, &args, work);
            } else {
                Self::pixel::<G, false>(gpu, &args, work);
            }
        }
    }
}

impl<T: DeviceValue, const V: usize> AnyPool<T, V> {
    /// Computes and writes a result.
    ///
    /// # Safety
    /// The image, the pixel and the channels are there, and this result is nobody else's.
    #[inline(always)]
    unsafe fn pixel<G: Gpu, const MAX: bool>(gpu: G, args: &WindowPoolArgs<T>, work: Work) {
        let map = &args.map;
        let [top, left] = args.corner(work.row, work.column);
        let rows = overlap(top, args.window[0], map.height);
        let columns = overlap(left, args.window[1], map.width);
        let count = rows.wrapping_mul(columns);
        let mut from = map
            .plane(args.input, work.image, work.channel)
            .add_rows(top.max(0) as u32, map.row_bytes)
            .add_rows(left.max(0) as u32, map.column_bytes);
        let to_next_row = map.row_bytes.wrapping_sub(columns.wrapping_sub(1).wrapping_mul(map.column_bytes));
        let mut all = [neutral::<MAX>(); V];
        let (mut at, mut column) = (0, 0);
        while at < count {
            let mut raw = [RawVector::default(); CHUNK];
            for (i, raw) in raw.iter_mut().enumerate() {
                // SAFETY: the pixel is in the map, and the channels are there; nobody writes them.
                *raw = unsafe { load_raw::<G, T, V>(gpu, from) };
                // After the last pixel it stays there.
                column += 1;
                let is_row_end = column == columns;
                let step = if is_row_end { to_next_row } else { map.column_bytes };
                column = if is_row_end { 0 } else { column };
                from = from.add_bytes(if at + i as u32 + 1 < count { step.into() } else { 0 });
            }
            for (i, raw) in raw.iter().enumerate() {
                join_vector::<G, T, V, MAX>(gpu, raw, at + (i as u32) < count, &mut all);
            }
            at += CHUNK as u32;
        }
        let scale = args.mode.scale_of(count);
        let mut results = [T::default(); V];
        round_into(gpu, &all, |joined| finish::<MAX>(joined, scale), &mut results);
        let to = args
            .out_map
            .plane_mut(args.out, work.image, work.channel)
            .add_rows(work.row, args.out_map.row_bytes)
            .add_rows(work.column, args.out_map.column_bytes);
        // SAFETY: the pixel and the channels are there, and are this thread's.
        unsafe { gpu.store(to, results) };
    }
}
