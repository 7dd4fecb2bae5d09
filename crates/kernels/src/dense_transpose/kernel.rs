//! The kernel; mod.rs draws its tile.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, Scalar, SharedPtr, WARP};

use super::Tile;
use crate::{Bounds, Kernel};

/// Threads of a block.
const THREADS: u32 = 256;
const WARPS: u32 = THREADS / WARP;
/// Turns in which the warps load 32 rows of words, each thread two words a turn.
const TURNS: usize = (WARP / WARPS) as usize;
/// Words from one row of shared memory to the next: one more than the 32 in use, so that a column lies in 32 banks.
const PITCH: u32 = WARP + 1;

/// Transposes of matrices with elements as wide as `W`, 2 or 4 bytes, by tiles of `ROWS` rows and `COLUMNS` columns. Elements are
/// moved, and nothing is computed.
#[derive(Debug)]
pub struct DenseTranspose<W, const ROWS: u32, const COLUMNS: u32>(PhantomData<W>);

/// What [`DenseTranspose`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DenseTransposeArgs<W> {
    /// The first matrix of this launch.
    pub input: GlobalPtr<W>,
    /// Its transpose, to write.
    pub out: GlobalMut<W>,
    /// Elements from one matrix to the next.
    pub input_batch: u64,
    /// The same of the results.
    pub out_batch: u64,
    /// Bytes from one row of a matrix to the next.
    pub input_stride_bytes: u32,
    /// The same of a result, whose rows are the matrix's columns.
    pub out_stride_bytes: u32,
    /// Rows of a matrix, at most 2³⁰.
    pub rows: u32,
    /// Its columns, at most 2³⁰.
    pub columns: u32,
    /// Of elements of 2 bytes, whether the input is loaded by pairs: its rows are aligned to 4 bytes, and its columns even. 0 or 1.
    pub input_pairs: u32,
    /// Whether the result is stored by pairs, likewise: its rows are aligned, and the rows of the input even.
    pub out_pairs: u32,
}

impl<W: Scalar, const ROWS: u32, const COLUMNS: u32> Kernel for DenseTranspose<W, ROWS, COLUMNS> {
    type Args = DenseTransposeArgs<W>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(size_of::<W>() == 4 || size_of::<W>() == 2, "a word is one element or two");
        assert!(ROWS as usize * size_of::<W>() == WARP as usize * 4, "a column of a tile is a word a lane");
        assert!(COLUMNS == 2 * WARP, "a thread has two words of a row");
        Tile { bits: size_of::<W>() as u32 * 8, rows: ROWS, columns: COLUMNS }
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = COLUMNS * PITCH * 4;
    /// 64 warps a multiprocessor, with up to 32 registers a thread, of which what is under way takes 8, or 16 where 16 bits are
    /// loaded one by one.
    const BOUNDS: Bounds = Bounds { max_threads: THREADS, min_blocks: 8 };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: DenseTransposeArgs<W>) {
        let matrix = u64::from(gpu.block_idx_z());
        let share = Share {
            input: args.input.add((matrix * args.input_batch) as usize),
            out: args.out.add((matrix * args.out_batch) as usize),
            first_row: gpu.block_idx_x() * ROWS,
            first_column: gpu.block_idx_y() * COLUMNS,
            rows: Places::of(args.out_pairs),
            columns: Places::of(args.input_pairs),
            warp: gpu.thread_idx_x() / WARP,
            lane: gpu.thread_idx_x() % WARP,
            args,
        };
        // SAFETY: addresses are of elements that are there: each access compares its row and its column. Shared memory is written
        // before the barrier, each word by one thread, and read after it. The tile of the result is this block's alone.
        unsafe {
            let words = match (size_of::<W>(), args.input_pairs) {
                (4, _) => share.load_words(gpu),
                (_, 0) => share.load_elements(gpu),
                _ => share.load_pairs(gpu),
            };
            share.stage(gpu, &words);
            gpu.sync_threads();
            share.store(gpu);
        }
    }
}

/// Where the two elements of a word, or the two words of a thread, stand in a tile's row or column.
#[derive(Clone, Copy)]
struct Places {
    step: u32,
    apart: u32,
}

impl Places {
    /// Neighbours, where they are one access to memory; or else 32 apart.
    #[inline(always)]
    fn of(pairs: u32) -> Self {
        if pairs != 0 { Self { step: 2, apart: 1 } } else { Self { step: 1, apart: WARP } }
    }

    /// Of lane or word `index` the first (0) or second (1).
    #[inline(always)]
    fn at(self, index: u32, second: u32) -> u32 {
        index * self.step + second * self.apart
    }
}

/// A thread's share of a tile.
struct Share<W> {
    args: DenseTransposeArgs<W>,
    /// The matrix, and its transpose.
    input: GlobalPtr<W>,
    out: GlobalMut<W>,
    /// Where the tile begins.
    first_row: u32,
    first_column: u32,
    /// Rows that the elements of a word are from, and columns that the words of a thread are of.
    rows: Places,
    columns: Places,
    warp: u32,
    lane: u32,
}

/// Two words in each turn, of the same rows and two columns.
type Words = [[u32; 2]; TURNS];

impl<W: Scalar> Share<W> {
    /// The row of words that the warp loads in a turn.
    #[inline(always)]
    fn word(&self, turn: usize) -> u32 {
        self.warp + turn as u32 * WARPS
    }

    /// Loads an `E` that begins with an element of the tile; 0 where the matrix has no such row or column.
    ///
    /// # Safety
    /// Where it has the element, it has the whole of the `E`, which is aligned.
    #[inline(always)]
    unsafe fn load<E: Scalar, G: Gpu>(&self, gpu: G, row: u32, column: u32) -> E {
        let (row, column) = (self.first_row + row, self.first_column + column);
        let mut element = [E::default()];
        if row < self.args.rows && column < self.args.columns {
            let from = self.input.add_rows(row, self.args.input_stride_bytes).add(column as usize);
            // SAFETY: as promised by the caller; nobody writes the input.
            element = unsafe { gpu.load_streaming(GlobalPtr::<E>::from_address(from.address())) };
        }
        element[0]
    }

    /// Words of one element.
    ///
    /// # Safety
    /// Elements are words.
    #[inline(always)]
    unsafe fn load_words<G: Gpu>(&self, gpu: G) -> Words {
        let mut words = Words::default();
        for (turn, words) in words.iter_mut().enumerate() {
            // SAFETY: a word is an element.
            *words = unsafe {
                [
                    self.load(gpu, self.word(turn), self.columns.at(self.lane, 0)),
                    self.load(gpu, self.word(turn), self.columns.at(self.lane, 1)),
                ]
            };
        }
        words
    }

    /// Words of two elements of a column, from words of two elements of a row.
    ///
    /// # Safety
    /// Elements have 16 bits, and the input allows pairs.
    #[inline(always)]
    unsafe fn load_pairs<G: Gpu>(&self, gpu: G) -> Words {
        let mut words = Words::default();
        for (turn, words) in words.iter_mut().enumerate() {
            let (word, column) = (self.word(turn), self.columns.at(self.lane, 0));
            // SAFETY: columns are even, so where the first of a pair is, there is the second.
            *words = unsafe {
                [self.load(gpu, self.rows.at(word, 0), column), self.load(gpu, self.rows.at(word, 1), column)]
            };
        }
        // All are under way before the first is looked at.
        for words in &mut words {
            let [first, second] = *words;
            *words = [first & 0xffff | second << 16, first >> 16 | second & 0xffff_0000];
        }
        words
    }

    /// The same from elements one by one.
    ///
    /// # Safety
    /// Elements have 16 bits.
    #[inline(always)]
    unsafe fn load_elements<G: Gpu>(&self, gpu: G) -> Words {
        let mut halves = [[[0_u16; 2]; 2]; TURNS];
        for (turn, halves) in halves.iter_mut().enumerate() {
            let word = self.word(turn);
            for (column, halves) in halves.iter_mut().enumerate() {
                let column = self.columns.at(self.lane, column as u32);
                // SAFETY: these are elements.
                *halves = unsafe {
                    [
                        self.load(gpu, self.rows.at(word, 0), column),
                        self.load(gpu, self.rows.at(word, 1), column),
                    ]
                };
            }
        }
        let mut words = Words::default();
        for (turn, words) in words.iter_mut().enumerate() {
            for (column, word) in words.iter_mut().enumerate() {
                let [first, second] = halves[turn][column];
                *word = u32::from(first) | u32::from(second) << 16;
            }
        }
        words
    }

    /// Row `of_second * 32 + column` of shared memory is a column of the tile.
    #[inline(always)]
    fn shared(column: u32, of_second: u32, word: u32) -> SharedPtr<u32> {
        SharedPtr::from_offset(0).add((of_second * WARP + column) * PITCH + word)
    }

    /// Puts the words into shared memory.
    ///
    /// # Safety
    /// Nobody else uses shared memory but threads of the block for this.
    #[inline(always)]
    unsafe fn stage<G: Gpu>(&self, gpu: G, words: &Words) {
        for (turn, words) in words.iter().enumerate() {
            for (second, &word) in words.iter().enumerate() {
                // SAFETY: as promised by the caller; lane and row of words are this thread's.
                unsafe { gpu.shared_store(Self::shared(self.lane, second as u32, self.word(turn)), [word]) };
            }
        }
    }

    /// Stores the tile's columns as rows of the result.
    ///
    /// # Safety
    /// All words are in shared memory; the result has the tile's elements, which are this block's alone, and allows pairs where
    /// `out_pairs` says so.
    #[inline(always)]
    unsafe fn store<G: Gpu>(&self, gpu: G) {
        let mut words = Words::default();
        for (turn, words) in words.iter_mut().enumerate() {
            for (second, word) in words.iter_mut().enumerate() {
                // SAFETY: as promised by the caller.
                [*word] = unsafe { gpu.shared_load(Self::shared(self.word(turn), second as u32, self.lane)) };
            }
        }
        let [row, second_row] = [0, 1].map(|second| self.first_row + self.rows.at(self.lane, second));
        let [has_row, has_second] = [row, second_row].map(|row| row < self.args.rows);
        for (turn, words) in words.iter().enumerate() {
            for (second, &word) in words.iter().enumerate() {
                let column = self.first_column + self.columns.at(self.word(turn), second as u32);
                if column >= self.args.columns {
                    continue;
                }
                let to = self.out.add_rows(column, self.args.out_stride_bytes);
                let address = |row: u32| to.add(row as usize).address();
                // SAFETY: the result has this row, and of it what is compared; the rows of the input are even where pairs are
                // allowed, so where the first of a pair is, there is the second.
                unsafe {
                    if size_of::<W>() == 4 || self.args.out_pairs != 0 {
                        if has_row {
                            gpu.store(GlobalMut::<u32>::from_address(address(row)), [word]);
                        }
                    } else {
                        if has_row {
                            gpu.store(GlobalMut::<u16>::from_address(address(row)), [word as u16]);
                        }
                        if has_second {
                            let upper = (word >> 16) as u16;
                            gpu.store(GlobalMut::<u16>::from_address(address(second_row)), [upper]);
                        }
                    }
                }
            }
        }
    }
}
