//! Adds the partial sums of splits.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu};

use super::results::filter_of;
use super::{Scheme, Source, Target, Tile};
use crate::{DeviceValue, Kernel};

/// Results of partial sums, an element a thread: splits one after another, which are under way together.
#[derive(Debug)]
pub struct ReduceSplits<T>(PhantomData<T>);

/// What [`ReduceSplits`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ReduceSplitsArgs<T> {
    /// Partial sums: for each split, group of filters and tile its elements.
    pub partial: GlobalPtr<f32>,
    /// Splits: at least 1.
    pub splits: u32,
    /// Elements of a split.
    pub elements: u32,
    /// Tiles of all images.
    pub tiles: u32,
    /// Filters of a tile.
    pub filters: u32,
    /// Rows of a tile's pixels.
    pub rows: u32,
    /// Columns of them.
    pub columns: u32,
    /// Not 0 where the filters of a tile are in the order in which lanes have them.
    pub by_lanes: u32,
    /// For the exact fallback.
    pub source: Source<T>,
    /// Where results go.
    pub target: Target<T>,
}

/// Threads of a block.
const THREADS: u32 = 256;

impl<T: DeviceValue> Kernel for ReduceSplits<T> {
    type Args = ReduceSplitsArgs<T>;
    type Tile = Tile;

    const TILE: Tile = Tile { scheme: Scheme::Reduce, value: T::TYPE };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let target = &args.target;
        let at = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        let mut nonzeros = 0;
        // SAFETY: the arguments describe partial sums and the result; a thread alone has its element.
        unsafe {
            if at < args.elements {
                let mut sum = 0.0;
                let mut from = args.partial.add(at as usize);
                let mut split = 0;
                while split + 4 <= args.splits {
                    let [a]: [f32; 1] = gpu.load_readonly(from);
                    let [b]: [f32; 1] = gpu.load_readonly(from.add_rows(1, args.elements * 4));
                    let [c]: [f32; 1] = gpu.load_readonly(from.add_rows(2, args.elements * 4));
                    let [d]: [f32; 1] = gpu.load_readonly(from.add_rows(3, args.elements * 4));
                    sum = sum + a + b + c + d;
                    from = from.add_rows(4, args.elements * 4);
                    split += 4;
                }
                while split < args.splits {
                    let [a]: [f32; 1] = gpu.load_readonly(from);
                    sum += a;
                    from = from.add_rows(1, args.elements * 4);
                    split += 1;
                }
                let pixels = args.rows * args.columns;
                let (block, element) = (at / (pixels * args.filters), at % (pixels * args.filters));
                let (group, tile) = (block / args.tiles, block % args.tiles);
                let place = target.place(tile, [args.rows, args.columns], group * args.filters);
                let [filter, pixel] = target.element(element, args.filters, pixels);
                let filter = if args.by_lanes != 0 { filter_of(filter) } else { filter };
                let (source, element) = (Some(&args.source), [filter, pixel]);
                nonzeros = target.finish_element(gpu, source, place, element, args.columns, sum);
            }
            target.count(gpu, nonzeros);
        }
    }
}
