//! A's rows in a stage: cleared, and their values put where their columns are.
use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::{GROUP_ROWS, GroupValue, TILE_ROW};
use crate::spmm::tiles::{RowMask, TileArgs};

/// Times that a warp works on some rows in a step, at most.
const ROUNDS: usize = 8;

/// What a producer lane has loaded for a step, each time that its warp worked on some rows.
#[derive(Clone, Copy)]
pub(super) struct Loaded([Part; ROUNDS]);

/// A piece of a row's values: 16 bytes, in which other rows' may lie, too.
#[derive(Clone, Copy, Default)]
struct Part {
    values: [u32; 4],
    /// Their places in the row of a window, a byte each.
    places: [u32; 2],
    /// Index of the first of them, and of the row's nonzeros in the window the first and the end.
    index: u32,
    first: u32,
    end: u32,
}

impl Default for Loaded {
    #[inline(always)]
    fn default() -> Self {
        Self([Part::default(); ROUNDS])
    }
}

/// What a producer lane needs to fill its warp's rows of the stages.
pub(super) struct Rows<T, const WM: u32, const WK: u32, const TILES: u32, const WARPS: u32, const LANES: u32>
{
    /// The first record of the lane's row in the next window whose records are loaded.
    masks: GlobalPtr<u32>,
    /// Records of the lane's row that are left; none without a row.
    left: u32,
    /// Of the lane's row in the next window to load: the first nonzero, and how many there are.
    first: u32,
    count: u32,
    values: GlobalPtr<T>,
    places: GlobalPtr<u8>,
    /// Where the lane's first row lies among those of A in a stage, in bytes, swizzled; and where the warp's rows begin.
    row: u32,
    own: u32,
}

impl<T: GroupValue, const WM: u32, const WK: u32, const TILES: u32, const WARPS: u32, const LANES: u32>
    Rows<T, WM, WK, TILES, WARPS, LANES>
{
    const BM: u32 = WM * GROUP_ROWS;
    /// Rows that a warp works on at once.
    const AT_ONCE: u32 = WARP / LANES;
    /// Elements of a piece.
    const PIECE: u32 = 16 / size_of::<T>() as u32;
    /// Bytes of a row of a window.
    const ROW: u32 = TILES * TILE_ROW;
    /// Masks of a window.
    const MASKS: u32 = Self::ROW / size_of::<T>() as u32 / RowMask::COLUMNS;
    /// Rows of a window that a warp fills.
    const OWN: u32 = {
        let own = Self::BM * WK / WARPS;
        assert!(own * WARPS == Self::BM * WK && Self::BM.is_multiple_of(own), "they are of one slice");
        assert!(own.is_multiple_of(RowMask::ROWS) && own <= WARP, "a lane holds a row's records");
        assert!(Self::MASKS <= 2, "a place is a column modulo 64");
        assert!(own / Self::AT_ONCE <= ROUNDS as u32);
        own
    };

    #[inline(always)]
    pub(super) fn new(args: &TileArgs<T>, team: u32, thread: u32, row: u32) -> Self {
        let (warp, lane) = (thread / WARP, thread % WARP);
        let chunks = RowMask::chunks(args.cols);
        let first = warp * Self::OWN;
        let (slice, first) = (first / Self::BM, first % Self::BM);
        let (record, mask) = (row + first + lane % Self::OWN, (team * WK + slice) * Self::MASKS);
        // Records are there for eight rows at a time.
        let has_row = record < args.rows.next_multiple_of(RowMask::ROWS);
        let own = (slice * Self::BM + first) * Self::ROW;
        Self {
            masks: args.masks.add(RowMask::index(record, mask, chunks) * RowMask::WORDS),
            left: if has_row { chunks.saturating_sub(mask) } else { 0 },
            first: 0,
            count: 0,
            values: args.values,
            places: args.places,
            row: own + lane / LANES * Self::ROW + T::swizzle(lane / LANES),
            own: own + lane * 16,
        }
    }

    /// Loads the records of the team's next window, `teams` after the one before.
    ///
    /// # Safety
    /// The masks are live.
    #[inline(always)]
    pub(super) unsafe fn next_records<G: Gpu>(&mut self, gpu: G, teams: u32) {
        (self.first, self.count) = (0, 0);
        for mask in 0..Self::MASKS {
            if mask < self.left {
                let at = mask as usize * RowMask::NEXT_CHUNK * RowMask::WORDS;
                // SAFETY: there is a record.
                let [bits, first] = unsafe { gpu.load_readonly::<u32, 2>(self.masks.add(at)) };
                self.count += bits.count_ones();
                if mask == 0 {
                    self.first = first;
                }
            }
        }
        let next = teams * WK * Self::MASKS;
        self.masks = self.masks.add(next as usize * RowMask::NEXT_CHUNK * RowMask::WORDS);
        self.left = self.left.saturating_sub(next);
    }

    /// Loads the lane's pieces of the next window, whose records it has. The whole warp comes here.
    ///
    /// Nothing asks whether there is anything in a piece, so that nothing waits.
    ///
    /// # Safety
    /// The arguments describe live memory, with [`SPARE`](crate::spmm::SPARE) more after the last nonzero.
    #[inline(always)]
    pub(super) unsafe fn next<G: Gpu>(&self, gpu: G) -> Loaded {
        let lane = gpu.lane_id();
        let mut loaded = Loaded::default();
        for round in 0..Self::OWN / Self::AT_ONCE {
            let row = round * Self::AT_ONCE + lane / LANES;
            let [first, count] =
                [self.first, self.count].map(|x| gpu.warp_shuffle_idx(FULL_WARP, x, row, WARP));
            let index = first / Self::PIECE * Self::PIECE + lane % LANES * Self::PIECE;
            // SAFETY: as promised by the caller.
            let [values, places] = unsafe { self.load(gpu, index) };
            loaded.0[round as usize] =
                Part { values, places: [places[0], places[1]], index, first, end: first + count };
        }
        loaded
    }

    /// A piece from `index` on: its values, and their places in the first two words.
    ///
    /// # Safety
    /// They are live.
    #[inline(always)]
    unsafe fn load<G: Gpu>(&self, gpu: G, index: u32) -> [[u32; 4]; 2] {
        let values = GlobalPtr::<u32>::from_address(self.values.add(index as usize).address());
        let places = GlobalPtr::<u32>::from_address(self.places.add(index as usize).address());
        // SAFETY: as promised by the caller; values and their index are multiples of a piece.
        unsafe {
            let values = gpu.load_readonly(values);
            if Self::PIECE == 8 {
                let [low, high] = gpu.load_readonly(places);
                [values, [low, high, 0, 0]]
            } else {
                let [low] = gpu.load_readonly(places);
                [values, [low, 0, 0, 0]]
            }
        }
    }

    /// Fills the warp's rows of a stage, whose part of A is at `a`. The whole warp comes here.
    ///
    /// # Safety
    /// The stage is empty.
    #[inline(always)]
    pub(super) unsafe fn fill<G: Gpu>(&self, gpu: G, a: u32, loaded: &Loaded) {
        let own = SharedPtr::<u32>::from_offset(a + self.own);
        // SAFETY: the rows are this warp's in the stage; it clears them before it puts values there.
        unsafe {
            for i in 0..Self::OWN * Self::ROW / (16 * WARP) {
                gpu.shared_store(own.add(i * WARP * 4), [0u32; 4]);
            }
            gpu.sync_warp(FULL_WARP);
            let mut is_more = false;
            for round in 0..Self::OWN / Self::AT_ONCE {
                let part = &loaded.0[round as usize];
                Self::put(gpu, self.row_of(a, round), part);
                is_more |= part.index + LANES * Self::PIECE < part.end;
            }
            if is_more {
                self.fill_rest(gpu, a, loaded);
            }
        }
    }

    /// Fills in the pieces that were not loaded ahead.
    ///
    /// # Safety
    /// As for [`fill`](Self::fill).
    #[inline(always)]
    unsafe fn fill_rest<G: Gpu>(&self, gpu: G, a: u32, loaded: &Loaded) {
        for round in 0..Self::OWN / Self::AT_ONCE {
            let mut part = loaded.0[round as usize];
            part.index += LANES * Self::PIECE;
            while part.index < part.end {
                // SAFETY: the piece has nonzeros of the row, whose places are this lane's.
                unsafe {
                    let [values, places] = self.load(gpu, part.index);
                    (part.values, part.places) = (values, [places[0], places[1]]);
                    Self::put(gpu, self.row_of(a, round), &part);
                }
                part.index += LANES * Self::PIECE;
            }
        }
    }

    /// Where the row lies that the lane works on in a round, in bytes, swizzled.
    #[inline(always)]
    fn row_of(&self, a: u32, round: u32) -> u32 {
        (a + self.row + round * Self::AT_ONCE * Self::ROW) ^ T::swizzle(round * Self::AT_ONCE)
    }

    /// Puts a piece's values into their row. A row begins at a multiple of its bytes, so places need no sum.
    ///
    /// # Safety
    /// The places are this lane's in the stage.
    #[inline(always)]
    unsafe fn put<G: Gpu>(gpu: G, row: u32, part: &Part) {
        let begin = part.first.saturating_sub(part.index);
        let end = part.end.saturating_sub(part.index);
        for i in 0..Self::PIECE {
            if begin <= i && i < end {
                let place = part.places[i as usize / 4] >> (i % 4 * 8) & (Self::ROW - 1) & 0xff;
                let to = SharedPtr::from_offset(row ^ place);
                // SAFETY: as promised by the caller.
                unsafe { gpu.shared_store(to, [T::of_piece(&part.values, i)]) };
            }
        }
    }
}
