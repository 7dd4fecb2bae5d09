//! A's values in the order in which they go into a stage: for a matrix whose values stay as they are.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::PackShape;
use crate::spmm::mma::{Stages, TileArgs, TileSource, TileValue};

/// What a producer warp needs to fill its part of the stages `S` from packs `P`, of which it loads `AHEAD` ahead of each step. Denser
/// steps have more, which come late. A tile has `M` units along the rows, and a group of producers as many warps for each.
#[derive(Debug)]
pub struct Prepacked<T, P, S, const AHEAD: usize, const M: u32> {
    /// The first pack of each unit of the warp's rows, and of the unit after them.
    units: GlobalPtr<u32>,
    /// The warp's first pack.
    packs: GlobalPtr<u32>,
    /// Units of the rows; 0 where A has no such rows.
    count: u32,
    /// Where the rows' units lie in a stage, in bytes.
    part: u32,
    /// What was looked up.
    found: StepPacks,
    group: u32,
    /// The warp's number among those of its rows.
    warp: u32,
    of: PhantomData<(T, P, S)>,
}

/// Packs that a warp loads together, of those that come late.
const LATE: usize = 4;

/// The packs of a step: the first, the first of the second unit, and the one after the last.
#[derive(Clone, Copy, Debug, Default)]
struct StepPacks {
    first: u32,
    second: u32,
    end: u32,
}

/// What a lane has loaded of a step.
#[derive(Debug)]
pub struct LoadedPacks<const AHEAD: usize> {
    packs: [[u32; 4]; AHEAD],
    found: StepPacks,
}

impl<T: TileValue, P: PackShape, S: Stages, const AHEAD: usize, const M: u32> Prepacked<T, P, S, AHEAD, M> {
    /// Warps of a group that fill the same rows' units.
    const WARPS: u32 = {
        assert!(S::WARPS.is_multiple_of(M), "each rows' units have as many warps");
        assert!(3 * S::GROUPS < 16, "each group has two barriers of its stage and one of its own");
        S::WARPS / M
    };
    /// Units of a step.
    const UNITS: u32 = {
        let columns = S::CHUNKS * T::COLUMNS;
        assert!(columns.is_multiple_of(P::COLUMNS as u32) && columns <= 2 * P::COLUMNS as u32);
        columns / P::COLUMNS as u32
    };

    /// The lane's parts of the warp's next packs from `first` on, of those below `end`.
    ///
    /// # Safety
    /// The packs are live.
    #[inline(always)]
    unsafe fn load_from<G: Gpu, const N: usize>(&self, gpu: G, first: u32, end: u32) -> [[u32; 4]; N] {
        let mut packs = [[0; 4]; N];
        for (i, loaded) in packs.iter_mut().enumerate() {
            let pack = first + i as u32 * Self::WARPS;
            if pack + self.warp < end {
                // SAFETY: as promised by the caller.
                *loaded = unsafe { P::load(gpu, self.packs.add(pack as usize * P::WORDS)) };
            }
        }
        packs
    }

    /// Puts them into the stage.
    ///
    /// # Safety
    /// It has been cleared, and each place belongs to one nonzero, or to none and gets a zero.
    #[inline(always)]
    unsafe fn put_from<G: Gpu, const N: usize>(
        &self,
        gpu: G,
        a: u32,
        found: &StepPacks,
        first: u32,
        packs: &[[u32; 4]; N],
    ) {
        for (i, values) in packs.iter().enumerate() {
            let pack = first + self.warp + i as u32 * Self::WARPS;
            if pack < found.end {
                // SAFETY: as promised by the caller.
                unsafe { P::put(gpu, Self::unit(a, found, pack), *values) };
            }
        }
    }

    /// Where the unit of pack `pack` lies.
    #[inline(always)]
    fn unit(a: u32, found: &StepPacks, pack: u32) -> u32 {
        if Self::UNITS > 1 && pack >= found.second { a + P::UNIT_BYTES } else { a }
    }
}

impl<T: TileValue, P: PackShape, S: Stages, const AHEAD: usize, const M: u32> TileSource<T>
    for Prepacked<T, P, S, AHEAD, M>
{
    type Loaded = LoadedPacks<AHEAD>;
    const COLUMNS_PER_PREFETCH: u32 = 0;
    const AHEAD: u32 = AHEAD as u32 * Self::WARPS * M * P::VALUES as u32;
    const IS_CONSTANT: bool = true;

    #[inline(always)]
    unsafe fn new<G: Gpu>(_: G, args: &TileArgs<T>, [group, warp]: [u32; 2], row: u32) -> Self {
        let (own, warp) = (warp / Self::WARPS, warp % Self::WARPS);
        let row = row + own * P::ROWS as u32;
        let count = args.cols.div_ceil(P::COLUMNS as u32);
        Self {
            units: args.units.add((row / P::ROWS as u32) as usize * count as usize),
            packs: args.packs.add(warp as usize * P::WORDS),
            count: if row < args.rows { count } else { 0 },
            part: own * Self::UNITS * P::UNIT_BYTES,
            found: StepPacks::default(),
            group,
            warp,
            of: PhantomData,
        }
    }

    #[inline(always)]
    unsafe fn look_up<G: Gpu>(&mut self, gpu: G, step: Option<u32>) {
        self.found = StepPacks::default();
        if let Some(step) = step
            && (M == 1 || self.count > 0)
        {
            let unit = step * Self::UNITS;
            let of = |unit: u32| -> u32 {
                // SAFETY: there is a record for each unit, and one more.
                let [first] = unsafe { gpu.load_readonly(self.units.add(unit as usize)) };
                first
            };
            let end = unit + Self::UNITS;
            let end = if end < self.count { end } else { self.count };
            self.found = StepPacks { first: of(unit), second: of(unit + 1), end: of(end) };
        }
    }

    #[inline(always)]
    unsafe fn next<G: Gpu>(&self, gpu: G) -> LoadedPacks<AHEAD> {
        // SAFETY: as promised by the caller.
        let packs = unsafe { self.load_from(gpu, self.found.first, self.found.end) };
        LoadedPacks { packs, found: self.found }
    }

    /// Of a stage that the group has used before, zeros go only where the values were, unless some were not loaded ahead.
    #[inline(always)]
    unsafe fn clear<G: Gpu>(&self, gpu: G, a: u32, before: Option<&LoadedPacks<AHEAD>>) {
        let (a, ahead) = (a + self.part, AHEAD as u32 * Self::WARPS);
        // SAFETY: the threads of the group share the stage; the places are those that this lane has filled.
        unsafe {
            if let Some(LoadedPacks { packs, found }) = before
                && found.end - found.first <= ahead
            {
                for (i, values) in packs.iter().enumerate() {
                    let pack = found.first + self.warp + i as u32 * Self::WARPS;
                    if pack < found.end {
                        P::clear(gpu, Self::unit(a, found, pack), *values);
                    }
                }
                return;
            }
            let threads = Self::WARPS * WARP;
            let own = SharedPtr::<u32>::from_offset(a + (self.warp * WARP + gpu.lane_id()) * 16);
            for i in 0..Self::UNITS * P::UNIT_BYTES / 16 / threads {
                gpu.shared_store(own.add(i * threads * 4), [0u32; 4]);
            }
        }
    }

    #[inline(always)]
    unsafe fn fill<G: Gpu>(&self, gpu: G, a: u32, loaded: &LoadedPacks<AHEAD>) {
        // What another warp has cleared is filled. The pipeline has the barriers up to this.
        gpu.barrier_sync(1 + 2 * S::GROUPS + self.group, S::WARPS * WARP);
        let (a, found) = (a + self.part, &loaded.found);
        // SAFETY: there are such packs; the stage has been cleared, and each place belongs to one nonzero, or to none and gets a
        // zero.
        unsafe {
            self.put_from(gpu, a, found, found.first, &loaded.packs);
            let mut first = found.first + AHEAD as u32 * Self::WARPS;
            while first < found.end {
                let late = self.load_from::<G, LATE>(gpu, first, found.end);
                self.put_from(gpu, a, found, first, &late);
                first += LATE as u32 * Self::WARPS;
            }
        }
        gpu.sync_warp(FULL_WARP);
    }
}
