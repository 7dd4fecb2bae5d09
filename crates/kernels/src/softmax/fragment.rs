//! A lane's fragment of a row.
use core::convert::identity;

use lacuna_gpu::{GlobalMut, Gpu, Real};

use crate::RowRecord;
use crate::common::{RawVector, round_into, unpack_into};

/// What a lane has of a row: every `LANES`-th of the whole chunks of `V` elements, `CHUNKS` of them in a tile, and perhaps
/// one element before or after them.
///
/// *Reverse-offset alignment* (SC 2020, section V-B.2) turned round: SpMM loads from the aligned address before a row on, and
/// leaves out what is not the row's. Here that might be written at this very time, by the lanes of the row before: whole
/// chunks are the row's own, and the ragged ends, fewer than `V` elements each, are spread over lanes.
#[derive(Clone, Copy)]
pub(super) struct Fragment<const V: usize, const LANES: u32, const CHUNKS: usize> {
    /// Index of the element before or after the whole chunks.
    edge: u32,
    has_edge: bool,
    /// Index of the first element of the lane's first chunk.
    body: u32,
    /// Whole chunks from that one on; 0 where the lane has none.
    chunks: u32,
    /// Tiles of the row: the same for all its lanes.
    pub(super) tiles: u32,
}

impl<const V: usize, const LANES: u32, const CHUNKS: usize> Fragment<V, LANES, CHUNKS> {
    const CHUNK: u32 = V as u32;

    /// The fragment of lane `lane` of `LANES`.
    #[inline(always)]
    pub(super) fn of(row: RowRecord, lane: u32) -> Self {
        let aligned = (row.start + Self::CHUNK - 1) & !(Self::CHUNK - 1);
        let body = if aligned < row.end { aligned } else { row.end };
        let chunks = (row.end - body) / Self::CHUNK;
        let tail = body + chunks * Self::CHUNK;
        let (edge, end) =
            if lane < Self::CHUNK { (row.start + lane, body) } else { (tail + lane - Self::CHUNK, row.end) };
        Self {
            edge,
            has_edge: edge < end,
            body: body + lane * Self::CHUNK,
            chunks: chunks.saturating_sub(lane),
            tiles: chunks.div_ceil(LANES * CHUNKS as u32),
        }
    }

    /// Whole chunks from the lane's first of a tile on.
    #[inline(always)]
    fn chunks_from(&self, tile: u32) -> u32 {
        self.chunks.saturating_sub(tile * (LANES * CHUNKS as u32))
    }

    /// Where the lane's first chunk of a tile is: the others are at constant distances, which cost no registers.
    #[inline(always)]
    fn first<T>(&self, values: GlobalMut<T>, tile: u32) -> GlobalMut<T> {
        values.add(self.body as usize + tile as usize * (LANES as usize * CHUNKS * V))
    }

    /// Whether the lane has the `i`-th chunk of a tile, and where, in elements after its first.
    #[inline(always)]
    fn chunk(chunks: u32, i: usize) -> Option<usize> {
        (i as u32 * LANES < chunks).then_some(i * LANES as usize * V)
    }

    /// Loads what the lane has of a tile, as it is in memory, all at once. What is not there is zeros.
    ///
    /// # Safety
    /// `values` are those of the matrix, aligned to a chunk.
    #[inline(always)]
    pub(super) unsafe fn load<G: Gpu, T: Real>(
        &self,
        gpu: G,
        values: GlobalMut<T>,
        tile: u32,
    ) -> [RawVector; CHUNKS] {
        let (first, chunks) = (self.first(values, tile), self.chunks_from(tile));
        let mut words = [RawVector::default(); CHUNKS];
        for (i, words) in words.iter_mut().enumerate() {
            if let Some(offset) = Self::chunk(chunks, i) {
                let chunk = GlobalMut::<u32>::from_address(first.add(offset).address());
                // SAFETY: the chunk lies in the row, and is read as words: unpacking them waits for the load, and would keep
                // the next ones from starting.
                *words = unsafe { gpu.load(chunk) };
            }
        }
        words
    }

    /// The numbers that [`load`](Self::load) loaded, `absent` where there is none.
    #[inline(always)]
    pub(super) fn numbers<G: Gpu, T: Real>(
        &self,
        gpu: G,
        tile: u32,
        words: &[RawVector; CHUNKS],
        absent: f32,
    ) -> [[f32; V]; CHUNKS] {
        const { assert!(size_of::<[T; V]>() == size_of::<RawVector>(), "a chunk is 16 bytes") }
        let chunks = self.chunks_from(tile);
        let mut numbers = [[absent; V]; CHUNKS];
        for (i, (numbers, words)) in numbers.iter_mut().zip(words).enumerate() {
            if Self::chunk(chunks, i).is_some() {
                unpack_into::<G, T, V>(gpu, words, numbers);
            }
        }
        numbers
    }

    /// Writes what the lane has of a tile.
    ///
    /// # Safety
    /// As for [`load`](Self::load); nobody else reads or writes the row.
    #[inline(always)]
    pub(super) unsafe fn store<G: Gpu, T: Real>(
        &self,
        gpu: G,
        values: GlobalMut<T>,
        tile: u32,
        numbers: &[[f32; V]; CHUNKS],
    ) {
        let (first, chunks) = (self.first(values, tile), self.chunks_from(tile));
        for (i, numbers) in numbers.iter().enumerate() {
            if let Some(offset) = Self::chunk(chunks, i) {
                let mut rounded = [T::default(); V];
                round_into(gpu, numbers, identity, &mut rounded);
                // SAFETY: the chunk lies in the row.
                unsafe { gpu.store(first.add(offset), rounded) };
            }
        }
    }

    /// Loads the element at the row's ends, `absent` where the lane has none.
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    #[inline(always)]
    pub(super) unsafe fn load_edge<G: Gpu, T: Real>(&self, gpu: G, values: GlobalMut<T>, absent: f32) -> f32 {
        if !self.has_edge {
            return absent;
        }
        // SAFETY: the element lies in the row.
        let [value] = unsafe { gpu.load(values.add(self.edge as usize)) };
        value.to_f32(gpu)
    }

    /// Writes the element at the row's ends.
    ///
    /// # Safety
    /// As for [`store`](Self::store).
    #[inline(always)]
    pub(super) unsafe fn store_edge<G: Gpu, T: Real>(&self, gpu: G, values: GlobalMut<T>, number: f32) {
        if self.has_edge {
            // SAFETY: the element lies in the row.
            unsafe { gpu.store(values.add(self.edge as usize), [T::from_f32(gpu, number)]) };
        }
    }
}
