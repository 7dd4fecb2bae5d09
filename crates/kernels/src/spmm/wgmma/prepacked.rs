//! A's values in the order in which they go into a stage: for a matrix whose values stay as they are.
//!
//! A *unit* is 64 rows by 128 columns of A. Its nonzeros lie together, each a value and its *place*, where in the unit it goes, in
//! packs of 128: four for each lane of a warp, which one load brings. So no lane is without a value, but at a unit's end, and
//! nothing is looked up row by row. The four times 32 values of a pack are stored one after the other, and each 32 as far as
//! possible to different banks: their order is made for that.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::{CHUNK, CHUNK_BYTES, ROWS};
use crate::HalfValue;
use crate::spmm::mma::{Stages, TILE_ROW, TileArgs, TileSource};

/// 128 nonzeros of a unit, or fewer and zeros for a place that has none. Of four words for each lane, two hold values and two
/// their places, the first in the lower half.
#[derive(Clone, Copy, Debug)]
pub struct Pack;

impl Pack {
    /// Nonzeros of a pack.
    pub const VALUES: usize = 128;
    /// RawVector of a pack.
    pub const WORDS: usize = 128;
    /// Rows of a unit.
    pub const ROWS: usize = ROWS as usize;
    /// Columns of a unit.
    pub const COLUMNS: usize = 2 * CHUNK as usize;
    /// Places of a unit.
    pub const PLACES: usize = Self::ROWS * Self::COLUMNS;
    /// Bytes of a unit in a stage.
    const UNIT_BYTES: u32 = 2 * CHUNK_BYTES;

    /// The place of an element of a unit: a byte of the unit in a stage. An element takes two.
    #[inline(always)]
    pub const fn place(row: u32, column: u32) -> u16 {
        let (chunk, column) = (column / CHUNK, column % CHUNK);
        (chunk * CHUNK_BYTES + row * TILE_ROW + ((column * 2) ^ (row % 8 * 16))) as u16
    }

    /// The half words, of those of a pack, of nonzero `index` and of its place: those after each other are stored together.
    pub const fn half_words(index: usize) -> [usize; 2] {
        let (lane, turn) = (index % WARP as usize, index / WARP as usize);
        [lane * 8 + turn, lane * 8 + 4 + turn]
    }
}

/// What a producer warp needs to fill its part of the stages `S` from packs, of which it loads `AHEAD` ahead of each step. Denser
/// steps have more, which come late.
#[derive(Debug)]
pub struct Prepacked<T, S, const AHEAD: usize> {
    /// The first pack of each unit of the rows, and of the unit after them.
    units: GlobalPtr<u32>,
    /// The lane's part of the warp's first pack.
    packs: GlobalPtr<u32>,
    /// Units of the rows.
    count: u32,
    /// What was looked up.
    found: StepPacks,
    group: u32,
    warp: u32,
    of: PhantomData<(T, S)>,
}

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

impl<T: HalfValue, S: Stages, const AHEAD: usize> Prepacked<T, S, AHEAD> {
    /// Units of a step.
    const UNITS: u32 = {
        assert!(S::CHUNKS == 2 || S::CHUNKS == 4, "a step is one unit or two");
        S::CHUNKS / 2
    };

    /// The lane's part of pack `pack`.
    ///
    /// # Safety
    /// There is such a pack.
    #[inline(always)]
    unsafe fn load<G: Gpu>(&self, gpu: G, pack: u32) -> [u32; 4] {
        // SAFETY: as promised by the caller.
        unsafe { gpu.load_readonly(self.packs.add(pack as usize * Pack::WORDS)) }
    }

    /// Puts the four values that a lane has of pack `pack` into the stage.
    ///
    /// # Safety
    /// The stage has been cleared.
    #[inline(always)]
    unsafe fn put<G: Gpu>(gpu: G, a: u32, found: &StepPacks, pack: u32, loaded: [u32; 4]) {
        let unit = if Self::UNITS > 1 && pack >= found.second { a + Pack::UNIT_BYTES } else { a };
        for i in 0..2 {
            let (values, places) = (loaded[i], loaded[2 + i]);
            let to = |place: u32| SharedPtr::from_offset(unit + place);
            // SAFETY: each place belongs to one nonzero, or to none and gets a zero.
            unsafe {
                gpu.shared_store(to(places & 0xffff), [values as u16]);
                gpu.shared_store(to(places >> 16), [(values >> 16) as u16]);
            }
        }
    }
}

impl<T: HalfValue, S: Stages, const AHEAD: usize> TileSource<T> for Prepacked<T, S, AHEAD> {
    type Loaded = LoadedPacks<AHEAD>;
    const COLUMNS_PER_PREFETCH: u32 = 0;
    const AHEAD: u32 = AHEAD as u32 * S::WARPS * Pack::VALUES as u32;
    const IS_CONSTANT: bool = true;

    #[inline(always)]
    unsafe fn new<G: Gpu>(gpu: G, args: &TileArgs<T>, [group, warp]: [u32; 2], row: u32) -> Self {
        let count = args.cols.div_ceil(Pack::COLUMNS as u32);
        Self {
            units: args.units.add((row / ROWS) as usize * count as usize),
            packs: args.packs.add(warp as usize * Pack::WORDS + gpu.lane_id() as usize * 4),
            count,
            found: StepPacks::default(),
            group,
            warp,
            of: PhantomData,
        }
    }

    #[inline(always)]
    unsafe fn look_up<G: Gpu>(&mut self, gpu: G, step: Option<u32>) {
        self.found = StepPacks::default();
        if let Some(step) = step {
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
        let mut packs = [[0; 4]; AHEAD];
        for (i, loaded) in packs.iter_mut().enumerate() {
            let pack = self.found.first + i as u32 * S::WARPS;
            if pack + self.warp < self.found.end {
                // SAFETY: there is such a pack.
                *loaded = unsafe { self.load(gpu, pack) };
            }
        }
        LoadedPacks { packs, found: self.found }
    }

    /// Of a stage that the group has used before, zeros go only where the values were, unless some were not loaded ahead.
    #[inline(always)]
    unsafe fn clear<G: Gpu>(&self, gpu: G, a: u32, before: Option<&LoadedPacks<AHEAD>>) {
        let ahead = AHEAD as u32 * S::WARPS;
        // SAFETY: the threads of the group share the stage; the places are those that this lane has filled.
        unsafe {
            if let Some(LoadedPacks { packs, found }) = before
                && found.end - found.first <= ahead
            {
                for (i, values) in packs.iter().enumerate() {
                    let pack = found.first + self.warp + i as u32 * S::WARPS;
                    if pack < found.end {
                        Self::put(gpu, a, found, pack, [0, 0, values[2], values[3]]);
                    }
                }
                return;
            }
            let threads = S::WARPS * WARP;
            let own = SharedPtr::<u32>::from_offset(a + (self.warp * WARP + gpu.lane_id()) * 16);
            for i in 0..Self::UNITS * Pack::UNIT_BYTES / 16 / threads {
                gpu.shared_store(own.add(i * threads * 4), [0u32; 4]);
            }
        }
    }

    #[inline(always)]
    unsafe fn fill<G: Gpu>(&self, gpu: G, a: u32, loaded: &LoadedPacks<AHEAD>) {
        // What another warp has cleared is filled. The pipeline has the barriers up to this.
        gpu.barrier_sync(1 + 2 * S::GROUPS + self.group, S::WARPS * WARP);
        let found = &loaded.found;
        // SAFETY: there are such packs; the stage has been cleared.
        unsafe {
            for (i, values) in loaded.packs.iter().enumerate() {
                let pack = found.first + self.warp + i as u32 * S::WARPS;
                if pack < found.end {
                    Self::put(gpu, a, found, pack, *values);
                }
            }
            let mut pack = found.first + AHEAD as u32 * S::WARPS;
            while pack + self.warp < found.end {
                let values = self.load(gpu, pack);
                Self::put(gpu, a, found, pack + self.warp, values);
                pack += S::WARPS;
            }
        }
        gpu.sync_warp(FULL_WARP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_a_unit_have_places_of_their_own() {
        let mut seen = [false; Pack::PLACES];
        for row in 0..Pack::ROWS as u32 {
            for column in 0..Pack::COLUMNS as u32 {
                let place = Pack::place(row, column);
                assert!(place.is_multiple_of(2) && !seen[usize::from(place) / 2]);
                seen[usize::from(place) / 2] = true;
            }
        }
    }

    #[test]
    fn nonzeros_of_a_pack_have_half_words_of_their_own() {
        let mut seen = [false; 2 * Pack::WORDS];
        for index in 0..Pack::VALUES {
            for half in Pack::half_words(index) {
                assert!(!seen[half]);
                seen[half] = true;
            }
        }
    }
}
