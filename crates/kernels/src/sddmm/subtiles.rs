//! C's nonzeros by subtiles of D, as tile kernels take them: the end of a tile then costs by its nonzeros.
//!
//! ```text
//!   D  ┌─64 columns─┬────────────┬─      A subtile has 16×64 elements. Its nonzeros stand together, row by row, each as its
//!   16 │ x   x      │   x        │       place in the subtile. So lane l of a warp takes nonzero l, l + 32, … of them,
//!      │    x      x│ x      x   │       whatever their rows are. A row's nonzeros in a subtile are neighbours in C, too:
//!      ├────────────┼────────────┼─      one number for each row of a subtile makes indices of C of indices of the list.
//!      │  x         │            │
//! ```
use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

/// C's nonzeros by subtiles, one after another along D's rows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Subtiles {
    /// Where the nonzeros of each subtile begin in `places`; after the last subtile, where they end.
    pub starts: GlobalPtr<u32>,
    /// Of each row of each subtile, what is added to an index of `places` to make that of the nonzero in C, modulo 2³².
    pub shifts: GlobalPtr<u32>,
    /// Of each nonzero, row · [`COLUMNS`](Subtiles::COLUMNS) + column, both from the subtile's first on.
    pub places: GlobalPtr<u16>,
    /// Subtiles along a row of D.
    pub across: u32,
    /// Subtiles along a column of D.
    pub down: u32,
}

impl Subtiles {
    /// Rows of a subtile.
    pub const ROWS: u32 = 16;
    /// Columns of a subtile.
    pub const COLUMNS: u32 = 64;

    /// The row and column of D of a place in the subtile whose first element is at this row and column.
    #[inline(always)]
    pub(super) fn element([row, column]: [u32; 2], place: u32) -> [u32; 2] {
        [row + place / Self::COLUMNS, column + place % Self::COLUMNS]
    }
}

/// The nonzeros of a subtile, as a warp has them: as they were loaded, so that nothing waits for the loads before they are used.
#[derive(Clone, Copy)]
pub(super) struct SubtileNonzeros {
    /// Where they begin in [`Subtiles::places`], in even lanes, and where they end, in odd ones.
    bound: u32,
    /// The shift of row `lane % 16`.
    shift: u32,
}

/// Places of a lane that are loaded together.
pub(super) const AT_ONCE: usize = 4;
/// Nonzeros that a warp takes at once.
const TURN: u32 = AT_ONCE as u32 * WARP;

impl SubtileNonzeros {
    /// Those of the subtile whose first element is at this row and column of D: none where D has no such subtile.
    ///
    /// # Safety
    /// The lists are C's.
    #[inline(always)]
    pub(super) unsafe fn of<G: Gpu>(gpu: G, subtiles: &Subtiles, [row, column]: [u32; 2]) -> Self {
        let (down, across) = (row / Subtiles::ROWS, column / Subtiles::COLUMNS);
        let (mut bound, mut shift) = (0, 0);
        if down < subtiles.down && across < subtiles.across {
            let subtile = (down * subtiles.across + across) as usize;
            let bounds = subtiles.starts.add(subtile + (gpu.lane_id() % 2) as usize);
            let shifts = subtile * Subtiles::ROWS as usize + (gpu.lane_id() % Subtiles::ROWS) as usize;
            // SAFETY: each subtile has a start, also for the next, and a shift for each row.
            ([bound], [shift]) =
                unsafe { (gpu.load_readonly(bounds), gpu.load_readonly(subtiles.shifts.add(shifts))) };
        }
        Self { bound, shift }
    }

    /// Where they begin and end.
    #[inline(always)]
    fn bounds<G: Gpu>(&self, gpu: G) -> [u32; 2] {
        [0, 1].map(|lane| gpu.warp_shuffle_idx(FULL_WARP, self.bound, lane, WARP))
    }

    /// The lane's first places: loads that [`take`](Self::take) waits for.
    ///
    /// # Safety
    /// The lists are C's; the whole warp is here.
    #[inline(always)]
    pub(super) unsafe fn places<G: Gpu>(&self, gpu: G, subtiles: &Subtiles) -> [u32; AT_ONCE] {
        // SAFETY: as promised by the caller.
        unsafe { Self::places_between(gpu, subtiles, self.bounds(gpu)) }
    }

    /// The lane's places of a turn from `first` on; 0 past the last.
    ///
    /// # Safety
    /// The lists are C's, and have these.
    #[inline(always)]
    unsafe fn places_between<G: Gpu>(gpu: G, subtiles: &Subtiles, [first, end]: [u32; 2]) -> [u32; AT_ONCE] {
        let mut places = [0; AT_ONCE];
        for (i, place) in places.iter_mut().enumerate() {
            let at = first + i as u32 * WARP + gpu.lane_id();
            if at < end {
                // SAFETY: each nonzero has a place.
                let [loaded] = unsafe { gpu.load_readonly::<u16, 1>(subtiles.places.add(at as usize)) };
                *place = u32::from(loaded);
            }
        }
        places
    }

    /// Gives each nonzero's index in C, its place in the subtile and its sum to `keep`, once, in some lane. The subtile's sums lie in
    /// shared memory, `pitch` from one row to the next; `places` are the lane's [first](Self::places).
    ///
    /// # Safety
    /// The whole warp is here and sees the sums; the lists are C's.
    #[inline(always)]
    pub(super) unsafe fn take<G: Gpu>(
        &self,
        gpu: G,
        subtiles: &Subtiles,
        mut places: [u32; AT_ONCE],
        sums: SharedPtr<f32>,
        pitch: u32,
        mut keep: impl FnMut(u32, u32, f32),
    ) {
        let [mut first, end] = self.bounds(gpu);
        while first < end {
            // SAFETY: as promised by the caller; lanes without a nonzero read the subtile's first sum.
            unsafe {
                let next = Self::places_between(gpu, subtiles, [first + TURN, end]);
                let (mut indices, mut taken) = ([0; AT_ONCE], [0.0; AT_ONCE]);
                for i in 0..AT_ONCE {
                    let row = places[i] / Subtiles::COLUMNS;
                    let at = first + i as u32 * WARP + gpu.lane_id();
                    indices[i] = at.wrapping_add(gpu.warp_shuffle_idx(FULL_WARP, self.shift, row, WARP));
                    [taken[i]] = gpu.shared_load(sums.add(places[i] + row * (pitch - Subtiles::COLUMNS)));
                }
                for i in 0..AT_ONCE {
                    if first + i as u32 * WARP + gpu.lane_id() < end {
                        keep(indices[i], places[i], taken[i]);
                    }
                }
                (first, places) = (first + TURN, next);
            }
        }
    }
}
