//! The candidates that a thread has in registers: its part of a row.
use core::marker::PhantomData;
use core::mem::transmute_copy;

use lacuna_gpu::{GlobalPtr, Gpu};

use super::key::Threshold;
use crate::DeviceValue;

/// RawVector of a vector.
const WORDS: usize = 4;

/// What is not there counts as −∞: it is not greater than anything, and adds nothing.
const ABSENT: f32 = f32::NEG_INFINITY;

/// A thread's fragment of a row: every `THREADS`-th of its whole vectors of `V` elements, and perhaps one element of those before and
/// after them, where the row does not start or end at a multiple of 16 bytes.
#[derive(Clone, Copy)]
pub(super) struct Fragment<T, const V: usize, const THREADS: u32> {
    row: GlobalPtr<T>,
    /// Index of the first element of the first vector.
    first: u32,
    /// Whole vectors of the row from the thread's first on; 0 where it has none.
    vectors: u32,
    /// Index of the edge, and where edges of its kind end.
    edge: [u32; 2],
    /// Whole vectors of the row.
    pub(super) whole: u32,
    /// Index of what comes after them.
    pub(super) tail: u32,
}

impl<T: DeviceValue, const V: usize, const THREADS: u32> Fragment<T, V, THREADS> {
    /// The fragment of this thread of a row of `len` elements, which starts anywhere.
    #[inline(always)]
    pub(super) fn of<G: Gpu>(gpu: G, row: GlobalPtr<T>, len: u32) -> Self {
        Self::of_thread(gpu.thread_idx_x(), row, len)
    }

    /// The fragment of a thread.
    #[inline(always)]
    pub(super) fn of_thread(thread: u32, row: GlobalPtr<T>, len: u32) -> Self {
        const {
            assert!(size_of::<[T; V]>() == size_of::<[u32; WORDS]>(), "a vector is 16 bytes");
            assert!(THREADS >= 2 * V as u32, "a thread for each element before and after the vectors");
        }
        let misaligned = (row.address() / size_of::<T>() as u64) as u32 % V as u32;
        let head = ((V as u32 - misaligned) % V as u32).min(len);
        let whole = (len - head) / V as u32;
        let tail = head + whole * V as u32;
        let edge = if thread < V as u32 { [thread, head] } else { [tail + thread - V as u32, len] };
        let first = head + thread * V as u32;
        Self { row, first, vectors: whole.saturating_sub(thread), edge, whole, tail }
    }

    /// Loads the thread's vectors of a tile: `VECTORS` of them, after `skipped` of the row's, a multiple of `THREADS`. Not past the
    /// first cache, as other loads of what is read once are: that makes a pass a tenth slower.
    ///
    /// # Safety
    /// The row has its elements.
    #[inline(always)]
    pub(super) unsafe fn load<G: Gpu, const VECTORS: usize>(
        &self,
        gpu: G,
        skipped: u32,
    ) -> Candidates<T, V, THREADS, VECTORS> {
        let absent = [T::from_f32(gpu, ABSENT); V];
        // SAFETY: the sizes are equal, and every bit pattern of a `Scalar` is valid.
        let mut words: [[u32; WORDS]; VECTORS] = [unsafe { transmute_copy(&absent) }; VECTORS];
        let first = self.first + skipped * V as u32;
        let vectors = self.vectors.saturating_sub(skipped);
        let from = self.row.add(first as usize).address();
        // SAFETY: the vector lies in the row, where this is called. It is read as words: to unpack them here would wait for
        // the load.
        let load = |i: usize| unsafe {
            let vector = from + (i * THREADS as usize * size_of::<[T; V]>()) as u64;
            gpu.load_readonly(GlobalPtr::<u32>::from_address(vector))
        };
        if skipped + VECTORS as u32 * THREADS <= self.whole {
            // The whole block branches as one, so that these are not mixed with what comes after them.
            for (i, words) in words.iter_mut().enumerate() {
                *words = load(i);
            }
        } else {
            for (i, words) in words.iter_mut().enumerate() {
                if i as u32 * THREADS < vectors {
                    *words = load(i);
                }
            }
        }
        Candidates { words, edge: ABSENT, edge_index: u32::MAX, first, vectors, values: PhantomData }
    }

    /// Loads the first tile, and the element before or after the row's vectors.
    ///
    /// # Safety
    /// The row has its elements.
    #[inline(always)]
    pub(super) unsafe fn load_first<G: Gpu, const VECTORS: usize>(
        &self,
        gpu: G,
    ) -> Candidates<T, V, THREADS, VECTORS> {
        // SAFETY: as promised by the caller.
        unsafe {
            let mut candidates = self.load(gpu, 0);
            (candidates.edge, candidates.edge_index) = self.load_edge(gpu);
            candidates
        }
    }

    /// Loads the element before or after the row's vectors, and gives its index; `u32::MAX`, and −∞, where the thread has none.
    ///
    /// # Safety
    /// The row has its elements.
    #[inline(always)]
    pub(super) unsafe fn load_edge<G: Gpu>(&self, gpu: G) -> (f32, u32) {
        if self.edge[0] >= self.edge[1] {
            return (ABSENT, u32::MAX);
        }
        // SAFETY: as promised by the caller; the edge lies in the row.
        let [value] = unsafe { gpu.load_streaming(self.row.add(self.edge[0] as usize)) };
        (value.to_f32(gpu), self.edge[0])
    }
}

/// What a thread holds of a tile of a row.
pub(super) struct Candidates<T, const V: usize, const THREADS: u32, const VECTORS: usize> {
    words: [[u32; WORDS]; VECTORS],
    edge: f32,
    /// Index of the edge; `u32::MAX` where the thread has none.
    edge_index: u32,
    /// Index of the first element of the first vector.
    pub(super) first: u32,
    /// Whole vectors of the row from the first on; 0 where the thread has none.
    pub(super) vectors: u32,
    values: PhantomData<T>,
}

impl<T: DeviceValue, const V: usize, const THREADS: u32, const VECTORS: usize>
    Candidates<T, V, THREADS, VECTORS>
{
    /// Elements of a tile, beside edges.
    pub(super) const CAPACITY: u32 = THREADS * (V * VECTORS) as u32;

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
            let numbers = Self::numbers(gpu, words);
            for number in &numbers {
                greatest = greatest.max(*number);
            }
        }
        greatest
    }

    /// Σ 2^((x − m)·scale) of the thread's numbers.
    #[inline(always)]
    pub(super) fn sum<G: Gpu>(&self, gpu: G, m: f32, scale: f32) -> f32 {
        let mut sum = gpu.exp2_approx((self.edge - m) * scale);
        for words in &self.words {
            let numbers = Self::numbers(gpu, words);
            for number in &numbers {
                sum += gpu.exp2_approx((*number - m) * scale);
            }
        }
        sum
    }

    /// Σ 2^(x·scale − base) of the thread's numbers, without an edge.
    #[inline(always)]
    pub(super) fn sum_from<G: Gpu>(&self, gpu: G, scale: f32, base: f32) -> f32 {
        let mut sum = 0.0;
        for words in &self.words {
            let mut part = 0.0;
            for &number in &Self::numbers(gpu, words) {
                part += gpu.exp2_flush(gpu.fma(number, scale, -base));
            }
            sum += part;
        }
        sum
    }

    /// How many of the thread's numbers reach a threshold. Indices of the row begin with `first`.
    #[inline(always)]
    pub(super) fn reach<G: Gpu>(&self, gpu: G, threshold: Threshold, first: u32) -> u32 {
        let mut reach = 0;
        if self.edge_index != u32::MAX {
            reach += u32::from(threshold.from(first).is_reached(self.edge, self.edge_index as i32));
        }
        let threshold = threshold.from(first + self.first);
        for i in 0..VECTORS {
            if i as u32 * THREADS < self.vectors {
                let numbers = Self::numbers(gpu, &self.words[i]);
                for (j, &number) in numbers.iter().enumerate() {
                    let index = i as i32 * THREADS as i32 * V as i32 + j as i32;
                    reach += u32::from(threshold.is_reached(number, index));
                }
            }
        }
        reach
    }

    /// Each number that is there, with its index in the row.
    #[inline(always)]
    pub(super) fn for_each<G: Gpu>(&self, gpu: G, mut work: impl FnMut(f32, u32)) {
        if self.edge_index != u32::MAX {
            work(self.edge, self.edge_index);
        }
        for i in 0..VECTORS {
            if i as u32 * THREADS < self.vectors {
                let first = self.first + i as u32 * THREADS * V as u32;
                let numbers = Self::numbers(gpu, &self.words[i]);
                for (j, &number) in numbers.iter().enumerate() {
                    work(number, first + j as u32);
                }
            }
        }
    }

    /// A bit for each of the vectors' numbers: whether it, or −∞ where it is not there, passes a test.
    #[inline(always)]
    pub(super) fn which<G: Gpu>(&self, gpu: G, test: impl Fn(f32) -> bool) -> u32 {
        let mut bits = 0;
        for (i, words) in self.words.iter().enumerate() {
            for (j, &number) in Self::numbers(gpu, words).iter().enumerate() {
                bits |= u32::from(test(number)) << (i * V + j);
            }
        }
        bits
    }

    /// The number of a bit of [`which`](Self::which), and how far it is from the first. It is chosen among all: registers have no
    /// index.
    #[inline(always)]
    pub(super) fn number_of<G: Gpu>(&self, gpu: G, bit: u32) -> (f32, u32) {
        let (vector, place) = (bit / V as u32, bit % V as u32);
        let mut words = self.words[0];
        for (i, others) in self.words.iter().enumerate().skip(1) {
            words = if i as u32 == vector { *others } else { words };
        }
        let numbers = Self::numbers(gpu, &words);
        let mut number = numbers[0];
        for (j, &other) in numbers.iter().enumerate().skip(1) {
            number = if j as u32 == place { other } else { number };
        }
        (number, vector * THREADS * V as u32 + place)
    }
}
