//! What a thread holds of a row.
use core::marker::PhantomData;
use core::mem::transmute_copy;

use lacuna_gpu::{GlobalPtr, Gpu};

use crate::DeviceValue;

/// Words of a vector.
const WORDS: usize = 4;

/// A thread's share of a row: every `THREADS`-th of its whole vectors of `V` elements, `VECTORS` of them at most, and perhaps
/// one element of those before and after them, where the row does not start or end at a multiple of 16 bytes.
pub(super) struct Held<T, const V: usize, const THREADS: u32, const VECTORS: usize> {
    words: [[u32; WORDS]; VECTORS],
    edge: f32,
    /// Index of the edge; `u32::MAX` where the thread has none.
    edge_index: u32,
    /// Index of the first element of the first vector.
    first: u32,
    /// Whole vectors of the row from the first on; 0 where the thread has none.
    vectors: u32,
    values: PhantomData<T>,
}

/// What is not there counts as −∞: it is not greater than anything, and adds nothing.
const ABSENT: f32 = f32::NEG_INFINITY;

impl<T: DeviceValue, const V: usize, const THREADS: u32, const VECTORS: usize> Held<T, V, THREADS, VECTORS> {
    /// Elements that a block holds, wherever the row starts.
    pub(super) const CAPACITY: u32 = THREADS * (V * VECTORS) as u32;

    /// Loads the share of this thread, all at once.
    ///
    /// # Safety
    /// `row` has `len` elements, at most [`CAPACITY`](Self::CAPACITY).
    #[inline(always)]
    pub(super) unsafe fn load<G: Gpu>(gpu: G, row: GlobalPtr<T>, len: u32) -> Self {
        const {
            assert!(size_of::<[T; V]>() == size_of::<[u32; WORDS]>(), "a vector is 16 bytes");
            assert!(THREADS >= 2 * V as u32, "a thread for each element before and after the vectors");
        }
        let thread = gpu.thread_idx_x();
        let misaligned = (row.address() / size_of::<T>() as u64) as u32 % V as u32;
        let head = ((V as u32 - misaligned) % V as u32).min(len);
        let whole = (len - head) / V as u32;
        let tail = head + whole * V as u32;
        let (edge_index, end) =
            if thread < V as u32 { (thread, head) } else { (tail + thread - V as u32, len) };
        let first = head + thread * V as u32;
        let vectors = whole.saturating_sub(thread);

        let absent = [T::from_f32(gpu, ABSENT); V];
        // SAFETY: the sizes are equal, and every bit pattern of a `Scalar` is valid.
        let mut words: [[u32; WORDS]; VECTORS] = [unsafe { transmute_copy(&absent) }; VECTORS];
        let from = row.add(first as usize);
        for (i, words) in words.iter_mut().enumerate() {
            if i as u32 * THREADS < vectors {
                let vector = from.add(i * THREADS as usize * V);
                // SAFETY: the vector lies in the row. It is read as words: to unpack them here would wait for the load.
                *words = unsafe { gpu.load_streaming(GlobalPtr::<u32>::from_address(vector.address())) };
            }
        }
        let (mut edge, mut index) = (ABSENT, u32::MAX);
        if edge_index < end {
            // SAFETY: the element lies in the row.
            let [value] = unsafe { gpu.load_streaming(row.add(edge_index as usize)) };
            (edge, index) = (value.to_f32(gpu), edge_index);
        }
        Self { words, edge, edge_index: index, first, vectors, values: PhantomData }
    }

    #[inline(always)]
    fn numbers<G: Gpu>(gpu: G, words: &[u32; WORDS]) -> [f32; V] {
        // SAFETY: the sizes are equal, and every bit pattern of a `Scalar` is valid.
        let values: [T; V] = unsafe { transmute_copy(words) };
        values.map(|value| value.to_f32(gpu))
    }

    /// The thread's greatest; NaN does not count.
    #[inline(always)]
    pub(super) fn greatest<G: Gpu>(&self, gpu: G) -> f32 {
        let mut greatest = self.edge;
        for words in &self.words {
            for number in Self::numbers(gpu, words) {
                greatest = greatest.max(number);
            }
        }
        greatest
    }

    /// Σ 2^((x − m)·scale) of the thread's numbers.
    #[inline(always)]
    pub(super) fn sum<G: Gpu>(&self, gpu: G, m: f32, scale: f32) -> f32 {
        let mut sum = gpu.exp2_approx((self.edge - m) * scale);
        for words in &self.words {
            for number in Self::numbers(gpu, words) {
                sum += gpu.exp2_approx((number - m) * scale);
            }
        }
        sum
    }

    /// Each number that is there, with its index in the row.
    #[inline(always)]
    pub(super) fn for_each<G: Gpu>(&self, gpu: G, mut work: impl FnMut(f32, u32)) {
        if self.edge_index != u32::MAX {
            work(self.edge, self.edge_index);
        }
        for (i, words) in self.words.iter().enumerate() {
            if i as u32 * THREADS < self.vectors {
                let first = self.first + i as u32 * THREADS * V as u32;
                for (j, number) in Self::numbers(gpu, words).into_iter().enumerate() {
                    work(number, first + j as u32);
                }
            }
        }
    }
}
