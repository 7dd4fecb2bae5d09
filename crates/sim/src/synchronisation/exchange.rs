//! The words that the lanes of a warp give to each other in operations of the whole warp.

/// Words that a lane gives, and in the first four, words that it gets back.
///
/// A product takes four words of A, two of B and four of C; a load of matrices takes four words: the lane's row.
pub(crate) type Parcel = [u32; 10];
/// The parcels of a warp.
pub(crate) type Parcels = [Parcel; LANES];

const LANES: usize = lacuna_gpu::WARP as usize;

/// The words that lanes leave for each other, apart from the calls of shuffles, which are small and many.
#[derive(Debug, Default)]
pub(crate) struct Exchange(Vec<Parcels>);

impl Exchange {
    /// Leaves a thread's words.
    pub(crate) fn give(&mut self, thread: u32, parcel: Parcel) {
        let warp = thread as usize / LANES;
        if self.0.len() <= warp {
            self.0.resize(warp + 1, [[0; 10]; LANES]);
        }
        self.0[warp][thread as usize % LANES] = parcel;
    }

    /// What the warp has left; some lane of it has given something.
    pub(crate) fn warp(&mut self, warp: usize) -> &mut Parcels {
        &mut self.0[warp]
    }

    /// What a thread gets back; it has given something.
    pub(crate) fn result(&self, thread: u32) -> [u32; 4] {
        let [x, y, z, w, ..] = self.0[thread as usize / LANES][thread as usize % LANES];
        [x, y, z, w]
    }
}
