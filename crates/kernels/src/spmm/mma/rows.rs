//! A's rows in a stage: cleared, and their values put where their columns are.
//!
//! A stage holds A's rows one after the other, each as tiles of 128 bytes, along K; or, for tensor cores that read it by
//! themselves, units of some rows one after the other, and of a unit its tiles, each with its part of all of the unit's rows. A few lanes take a row together. Each
//! loads a vector of 16 bytes of values as they lie in memory, other rows' among them, and their places, a byte each. When the
//! stage is free, the warp clears its rows, and each lane puts those of its values there that are the row's. So a nonzero
//! costs a store, and a vector two loads; a column without a nonzero costs nothing but the clearing.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::TileArgs;
use super::source::TileSource;
use super::value::{TILE_ROW, TileValue};
use crate::RowMask;

/// Rounds in which a warp goes through its rows of a step, some at a time; at most.
const ROUNDS: usize = 8;

/// How a kernel's stages are filled.
pub trait StageFilling: 'static {
    /// Rows of A in a stage.
    const ROWS: u32;
    /// Rows that lie together in a stage, with all their tiles.
    const UNIT_ROWS: u32;
    /// Tiles of A in a stage, along K.
    const TILES: u32;
    /// Warps that fill a stage.
    const WARPS: u32;
    /// The part of a row that its lanes load at once: all nonzeros where one column in `PART` is one.
    const COLUMNS_PER_PREFETCH: u32;
    /// Pieces of a row that a lane loads ahead, 1 or 2: one part of the row, or two. What a fuller row has comes late.
    const AHEAD: usize;
    /// Whether a unit has tile after tile, not row after row.
    const TILE_BY_TILE: bool;
}

/// What a producer lane has loaded for a step, each time that its warp worked on some rows.
#[derive(Clone, Copy, Debug)]
pub struct LoadedRows([[Part; 2]; ROUNDS]);

/// A vector of a row's values, and of those before and after it in memory.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    values: [u32; 4],
    /// Their columns modulo 256, a byte each.
    places: [u32; 2],
    /// Index of the first of them; the row's first nonzero in the step, and where they end.
    index: u32,
    first: u32,
    end: u32,
}

/// Where in a row of `row` bytes the value lies, of `size` bytes, whose place is byte `i` of `word`: one shift takes the byte
/// down and makes bytes of columns.
#[inline(always)]
const fn offset(word: u32, i: u32, size: u32, row: u32) -> u32 {
    let shifted = if i == 0 { word << size.ilog2() } else { word >> (8 * i - size.ilog2()) };
    shifted & (row - size)
}

/// What a producer lane needs to fill its warp's rows of the stages.
#[derive(Debug)]
pub struct Rows<T, F> {
    /// The lane's row's first record, and its chunks; none without a row.
    start: GlobalPtr<u32>,
    chunks: u32,
    /// The lane's row's record in the first chunk of the next step to load.
    masks: GlobalPtr<u32>,
    /// Chunks of the lane's row that are left.
    left: u32,
    /// Of the lane's row in the next step to load: the first nonzero, and where they end.
    first: u32,
    end: u32,
    values: GlobalPtr<T>,
    places: GlobalPtr<u8>,
    /// Where the row that the lane works on first lies in a stage, in bytes, swizzled; and where the warp's rows begin.
    row: u32,
    own: u32,
    filling: PhantomData<F>,
}

impl<T: TileValue, F: StageFilling> Rows<T, F> {
    /// Rows that a warp fills.
    const OWN: u32 = F::ROWS / F::WARPS;
    /// Chunks of 32 columns in a step.
    const CHUNKS: u32 = F::TILES * T::COLUMNS / RowMask::COLUMNS;
    /// Lanes that share a row: enough for its part, and for all lanes to have a row.
    const LANES: u32 = {
        let (lanes, least) = (F::TILES * T::COLUMNS / T::VECTOR / F::COLUMNS_PER_PREFETCH, WARP / Self::OWN);
        if lanes > least { lanes } else { least }
    };
    /// Rows that a warp works on at once.
    const AT_ONCE: u32 = {
        assert!(F::ROWS.is_multiple_of(F::WARPS) && Self::OWN <= WARP, "a lane holds a row's records");
        assert!(256_u32.is_multiple_of(F::TILES * T::COLUMNS), "a place is a column modulo 256");
        assert!(Self::OWN.is_power_of_two(), "rows are numbered by bits, which swizzles take apart");
        assert!(
            Self::LANES <= WARP && Self::OWN.is_multiple_of(WARP / Self::LANES),
            "rows are shared evenly"
        );
        assert!(Self::OWN * Self::LANES <= ROUNDS as u32 * WARP);
        assert!(
            F::ROWS.is_multiple_of(F::UNIT_ROWS) && F::UNIT_ROWS.is_multiple_of(Self::OWN),
            "a warp's rows lie together"
        );
        WARP / Self::LANES
    };
    /// Bytes of a step of a row.
    const STEP: u32 = F::TILES * TILE_ROW;
    /// Bytes from a row to the next of its unit, and from a tile to the next.
    pub(in crate::spmm) const ROW: u32 = if F::TILE_BY_TILE { TILE_ROW } else { Self::STEP };
    const TILE: u32 = if F::TILE_BY_TILE { F::UNIT_ROWS * TILE_ROW } else { TILE_ROW };
    /// Bytes of A in a stage.
    pub(in crate::spmm) const BYTES: u32 = F::ROWS * Self::STEP;

    /// Goes to a step, which is loaded next; or nowhere, where nothing is left.
    #[inline(always)]
    fn go_to(&mut self, step: Option<u32>) {
        let chunk = step.unwrap_or(0) * Self::CHUNKS;
        self.masks = self.start.add(chunk as usize * RowMask::NEXT_CHUNK * RowMask::WORDS);
        self.left = if step.is_some() { self.chunks.saturating_sub(chunk) } else { 0 };
    }

    /// Looks up where the rows' nonzeros of the next step are. The one after that is `steps` later.
    ///
    /// # Safety
    /// The masks are live.
    #[inline(always)]
    pub(super) unsafe fn look_up_next<G: Gpu>(&mut self, gpu: G, steps: u32) {
        let record = |chunk: u32| self.masks.add(chunk as usize * RowMask::NEXT_CHUNK * RowMask::WORDS);
        let first_of = |chunk: u32| -> u32 {
            if chunk < self.left {
                // SAFETY: there is a record; its second word says where its values begin. Nothing is done with it now, which
                // would wait for it.
                let [first] = unsafe { gpu.load_readonly(record(chunk).add(1)) };
                return first;
            }
            if self.left == 0 {
                return 0;
            }
            // SAFETY: as above; the last record says where the row ends, too.
            let [mask, first] = unsafe { gpu.load_readonly::<u32, 2>(record(self.left - 1)) };
            first + mask.count_ones()
        };
        (self.first, self.end) = (first_of(0), first_of(Self::CHUNKS));
        let next = steps * Self::CHUNKS;
        self.masks = self.masks.add(next as usize * RowMask::NEXT_CHUNK * RowMask::WORDS);
        self.left = self.left.saturating_sub(next);
    }

    /// A vector from `index` on: its values, and their places.
    ///
    /// # Safety
    /// They are live.
    #[inline(always)]
    unsafe fn load<G: Gpu>(&self, gpu: G, index: u32) -> ([u32; 4], [u32; 2]) {
        let values = GlobalPtr::<u32>::from_address(self.values.add(index as usize).address());
        let places = GlobalPtr::<u32>::from_address(self.places.add(index as usize).address());
        // SAFETY: as promised by the caller; values begin at a multiple of 16 bytes, and the index is one of a vector.
        unsafe {
            let values = gpu.load_readonly(values);
            if T::VECTOR == 8 {
                (values, gpu.load_readonly(places))
            } else {
                let [low] = gpu.load_readonly(places);
                (values, [low, 0])
            }
        }
    }

    /// Fills in the vectors that were not loaded ahead.
    ///
    /// # Safety
    /// As for [`TileSource::fill`].
    #[inline(always)]
    unsafe fn fill_rest<G: Gpu>(&self, gpu: G, a: u32, loaded: &LoadedRows) {
        for round in 0..Self::OWN / Self::AT_ONCE {
            let mut part = loaded.0[round as usize][F::AHEAD - 1];
            part.index += Self::LANES * T::VECTOR;
            while part.index < part.end {
                // SAFETY: the vector has nonzeros of the row, whose places are this lane's.
                unsafe {
                    (part.values, part.places) = self.load(gpu, part.index);
                    Self::put(gpu, self.row_of(a, round), &part);
                }
                part.index += Self::LANES * T::VECTOR;
            }
        }
    }

    /// Where the row lies that the lane works on in a round, in bytes, swizzled.
    #[inline(always)]
    fn row_of(&self, a: u32, round: u32) -> u32 {
        (a + self.row + round * Self::AT_ONCE * Self::ROW) ^ T::swizzle(round * Self::AT_ONCE)
    }

    /// Puts a vector's values into their row. Rows and tiles begin at multiples of what lies in them, so that columns need no sum.
    ///
    /// # Safety
    /// The places are this lane's in the stage.
    #[inline(always)]
    unsafe fn put<G: Gpu>(gpu: G, row: u32, part: &Part) {
        let before = |index: u32| index.saturating_sub(part.index);
        let below = |index: u32| !(u32::MAX << before(index).min(T::VECTOR));
        let own = below(part.end) & !below(part.first);
        let (begin, end) = (before(part.first), before(part.end));
        // Bits of a mask against two comparisons: with tiles of warpgroups 3 % faster, with `f32` up to 4 % slower.
        let is_own = |i: u32| if F::TILE_BY_TILE { own >> i & 1 != 0 } else { begin <= i && i < end };
        let size = size_of::<T>() as u32;
        for i in 0..T::VECTOR {
            if is_own(i) {
                let within = offset(part.places[i as usize / 4], i % 4, size, Self::STEP);
                let to = (row ^ (within % Self::ROW)) | (within / Self::ROW * Self::TILE);
                let to = SharedPtr::from_offset(to);
                // SAFETY: as promised by the caller.
                unsafe { gpu.shared_store(to, [T::of_vector(&part.values, i)]) };
            }
        }
    }
}

impl<T: TileValue, F: StageFilling> TileSource<T> for Rows<T, F> {
    type Loaded = LoadedRows;
    const COLUMNS_PER_PREFETCH: u32 = F::COLUMNS_PER_PREFETCH;
    const AHEAD: u32 = 0;
    const IS_CONSTANT: bool = false;

    #[inline(always)]
    unsafe fn new<G: Gpu>(gpu: G, args: &TileArgs<T>, [group, warp]: [u32; 2], row: u32) -> Self {
        let lane = gpu.lane_id();
        let chunks = RowMask::chunks(args.cols);
        let first = warp * Self::OWN;
        let own = row + first + lane % Self::OWN;
        let place = first / F::UNIT_ROWS * F::UNIT_ROWS * Self::STEP + first % F::UNIT_ROWS * Self::ROW;
        let start = args.masks.add(RowMask::index(own, 0, chunks) * RowMask::WORDS);
        let mut rows = Self {
            start,
            chunks: if own < args.rows { chunks } else { 0 },
            masks: start,
            left: 0,
            first: 0,
            end: 0,
            values: args.values,
            places: args.places,
            row: place + lane / Self::LANES * Self::ROW + T::swizzle(first + lane / Self::LANES),
            own: place + lane * 16,
            filling: PhantomData,
        };
        rows.go_to(Some(group));
        rows
    }

    #[inline(always)]
    unsafe fn look_up<G: Gpu>(&mut self, gpu: G, step: Option<u32>) {
        self.go_to(step);
        // SAFETY: as promised by the caller.
        unsafe { self.look_up_next(gpu, 0) }
    }

    /// A lane for which there is no vector loads the first: so nothing asks what was loaded, and nothing waits. It may lie in the
    /// [`PADDING`](crate::PADDING) after the last nonzero.
    #[inline(always)]
    unsafe fn next<G: Gpu>(&self, gpu: G) -> LoadedRows {
        let lane = gpu.lane_id();
        let mut loaded = LoadedRows([[Part::default(); 2]; ROUNDS]);
        for round in 0..Self::OWN / Self::AT_ONCE {
            let row = round * Self::AT_ONCE + lane / Self::LANES;
            let [first, end] = [self.first, self.end].map(|x| gpu.warp_shuffle_idx(FULL_WARP, x, row, WARP));
            let begin = first / T::VECTOR * T::VECTOR;
            for ahead in 0..F::AHEAD {
                let index = begin + (ahead as u32 * Self::LANES + lane % Self::LANES) * T::VECTOR;
                // SAFETY: as promised by the caller.
                let (values, places) = unsafe { self.load(gpu, if index < end { index } else { begin }) };
                loaded.0[round as usize][ahead] = Part { values, places, index, first, end };
            }
        }
        loaded
    }

    #[inline(always)]
    unsafe fn clear<G: Gpu>(&self, gpu: G, a: u32, _: Option<&LoadedRows>) {
        let own = SharedPtr::<u32>::from_offset(a + self.own);
        // The tiles of the warp's rows may lie apart.
        let tiles = if F::TILE_BY_TILE { F::TILES } else { 1 };
        let vectors = Self::OWN * Self::ROW / 16;
        for (part, i) in (0..tiles).flat_map(|part| (0..vectors.div_ceil(WARP)).map(move |i| (part, i))) {
            if vectors.is_multiple_of(WARP) || gpu.lane_id() < vectors {
                // SAFETY: the rows are this warp's in the stage.
                unsafe { gpu.shared_store(own.add((part * Self::TILE + i * WARP * 16) / 4), [0u32; 4]) };
            }
        }
        gpu.sync_warp(FULL_WARP);
    }

    #[inline(always)]
    unsafe fn fill<G: Gpu>(&self, gpu: G, a: u32, loaded: &LoadedRows) {
        // SAFETY: the rows are this warp's in the stage.
        unsafe {
            for ahead in 0..F::AHEAD {
                let mut is_more = false;
                for round in 0..Self::OWN / Self::AT_ONCE {
                    let part = &loaded.0[round as usize][ahead];
                    Self::put(gpu, self.row_of(a, round), part);
                    is_more |= part.index + Self::LANES * T::VECTOR < part.end;
                }
                if !gpu.warp_any(FULL_WARP, is_more) {
                    return;
                }
            }
            self.fill_rest(gpu, a, loaded);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_column_of_the_step() {
        for column in 0..=255u8 {
            for i in 0..4 {
                // The other places have all bits.
                let mut places = [u8::MAX; 4];
                places[i as usize] = column;
                let word = u32::from_le_bytes(places);
                for (size, row) in [(4, 128), (4, 256), (4, 1024), (2, 128), (2, 256), (2, 512)] {
                    assert_eq!(
                        offset(word, i, size, row),
                        u32::from(column) * size % row,
                        "{column} {i} {size} {row}"
                    );
                }
            }
        }
    }
}
