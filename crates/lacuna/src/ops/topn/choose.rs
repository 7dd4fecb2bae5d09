//! Which kernel suits a problem, and how rows are cut: a pure function of the problem shape.
use lacuna_kernels::topn::{Method, Tile};
use lacuna_kernels::{Entry, ValueType, entries};

use super::OPERATION;
use crate::op;

/// The problem shape: all that the heuristic sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Rows.
    pub rows: usize,
    /// Elements of a row.
    pub columns: usize,
    /// How many are wanted of each row.
    pub n: usize,
    /// Type of the logits.
    pub value: ValueType,
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
    /// The GPU's compute capability, 90 for 9.0.
    pub sm: u32,
}

impl Problem {
    /// The `n` greatest of each of `rows` rows of `columns` elements of `f32`, on an H200.
    pub fn new(rows: usize, columns: usize, n: usize) -> Self {
        Self { rows, columns, n, value: ValueType::F32, multiprocessors: 132, sm: 90 }
    }
}

/// How the greatest of a row are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// Thread blocks hold a row, or a chunk of it, in registers; they find a threshold that few values reach, by
    /// radix select, and sort those.
    RadixSelect {
        /// Threads of a block.
        threads: u32,
        /// Elements that a block can hold.
        capacity: u32,
        /// Chunks of a row, each of a block. Where there are several, a second launch merges what they found.
        chunks: u32,
    },
    /// Thread blocks pass once over a row of any length, or a chunk of it, tile by tile, and gather what reaches the threshold
    /// of the first.
    /// For N up to 512.
    StreamingSelect {
        /// Threads of a block.
        threads: u32,
        /// Chunks of a row, each of a block, up to 32. Where there are several, a second launch selects from what they gathered.
        chunks: u32,
    },
    /// The algorithm of the ACL 2019 paper: each value is inserted into a sorted list by atomic maxima. For a small N.
    Insertion {
        /// Chunks of a row, as for [`RadixSelect`](Self::RadixSelect).
        chunks: u32,
    },
}

/// A kernel, and what the heuristic thinks of it. How many chunks a row has is part of the algorithm.
pub type Choice = op::Choice<Algorithm, Tile>;

/// How rows are cut for a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cut {
    /// Elements of each chunk but perhaps the last.
    pub(super) chunk: u32,
    /// Chunks of a row.
    pub(super) chunks: u32,
    /// Places for the keys that a chunk finds.
    pub(super) room: u32,
}

/// Chunks start at multiples of so many elements: where rows start at 16 bytes, so do they.
const CHUNK_STEP: usize = 8;
/// Rows are cut into as few chunks as can be, and into powers of two times as many, so many ways in all.
const CUTS: u32 = 6;
/// The most chunks of a row from which [`StreamingSelect`](Algorithm::StreamingSelect) gathers: a lane each.
const MAX_PARTS: usize = 32;

impl op::Problem for Problem {
    const OPERATION: &'static str = OPERATION;
    type Algorithm = Algorithm;
    type Tile = Tile;
    const ENTRIES: fn() -> &'static [Entry<Tile>] = entries::topn;

    fn algorithms(&self, entry: &'static Entry<Tile>) -> impl IntoIterator<Item = Algorithm> {
        let is_able = entry.tile.value == Some(self.value) && entry.runs_on(self.sm);
        let least = self.columns.div_ceil(longest(&entry.tile, self.n).max(1));
        let cuts = (0..CUTS).map(move |doublings| least << doublings);
        // Each number of chunks that the algorithm can be asked for comes by itself: several cuts may come to the same.
        cuts.filter(move |_| is_able)
            .filter_map(|chunks| Some(algorithm(entry, cut(self, entry, chunks)?.chunks)))
    }

    fn cost(&self, entry: &'static Entry<Tile>, algorithm: Algorithm) -> f64 {
        match cut(self, entry, algorithm.chunks()) {
            Some(Cut { chunk, chunks, .. }) => cost(self, entry, chunk, chunks),
            None => f64::INFINITY,
        }
    }
}

impl Algorithm {
    /// Chunks of a row; 0 where the library chooses.
    pub fn chunks(self) -> usize {
        match self {
            Self::Auto => 0,
            Self::RadixSelect { chunks, .. }
            | Self::StreamingSelect { chunks, .. }
            | Self::Insertion { chunks } => chunks as usize,
        }
    }
}

/// The kernels and cuts that can do this problem, the best first.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    op::choose(problem)
}

/// The choice of this algorithm; `None` where there is no such kernel, or it cannot do the problem so.
pub(super) fn find(problem: &Problem, wanted: Algorithm) -> Option<Choice> {
    if wanted == Algorithm::Auto {
        return choose(problem).into_iter().next();
    }
    // Any number of chunks may be asked for, not only those that the library would choose among.
    let entries = entries::topn().iter().filter(|entry| entry.tile.value == Some(problem.value));
    entries.filter(|entry| entry.runs_on(problem.sm)).find_map(|entry| {
        let Cut { chunk, chunks, .. } = cut(problem, entry, wanted.chunks())?;
        let is_it = algorithm(entry, chunks) == wanted;
        is_it.then(|| Choice { entry, algorithm: wanted, cost: cost(problem, entry, chunk, chunks) })
    })
}

/// The longest chunk that the kernel can do: it holds it, and has room for all of it that may be wanted. 0 where it cannot.
fn longest(tile: &Tile, n: usize) -> usize {
    let has_room = n <= tile.most as usize;
    let longest = match tile.method {
        Method::StreamingSelect if has_room => u32::MAX,
        Method::StreamingSelect => 0,
        _ if has_room => tile.capacity,
        _ => tile.capacity.min(tile.most),
    };
    longest as usize / CHUNK_STEP * CHUNK_STEP
}

/// Rows in about so many chunks, for this kernel; `None` where they do not fit, or chunks would be hardly longer than N.
pub(super) fn cut(problem: &Problem, entry: &Entry<Tile>, chunks: usize) -> Option<Cut> {
    let tile = &entry.tile;
    let longest = longest(tile, problem.n);
    let chunk = problem.columns.div_ceil(chunks.max(1)).next_multiple_of(CHUNK_STEP);
    let chunks = problem.columns.div_ceil(chunk);
    let is_needed = problem.columns > longest;
    let too_many = tile.method == Method::StreamingSelect && chunks > MAX_PARTS;
    if chunk > longest || too_many || chunks > 1 && !is_needed && chunk < 2 * problem.n.max(64) {
        return None;
    }
    let room = match tile.method {
        Method::RadixSelect | Method::Insertion => problem.n as u32,
        Method::StreamingSelect => 4 * tile.most,
        Method::Merge | Method::Finalize | Method::Beam => return None,
    };
    Some(Cut { chunk: u32::try_from(chunk).ok()?, chunks: u32::try_from(chunks).ok()?, room })
}

/// The algorithm that a kernel is, with so many chunks.
fn algorithm(entry: &Entry<Tile>, chunks: u32) -> Algorithm {
    let threads = entry.threads;
    match entry.tile.method {
        Method::RadixSelect => Algorithm::RadixSelect { threads, capacity: entry.tile.capacity, chunks },
        Method::StreamingSelect => Algorithm::StreamingSelect { threads, chunks },
        Method::Insertion => Algorithm::Insertion { chunks },
        Method::Merge | Method::Finalize | Method::Beam => Algorithm::Auto,
    }
}

/// The method of the second launch, which makes one result of those of the chunks.
pub(super) fn second(method: Method) -> Method {
    if method == Method::StreamingSelect { Method::Finalize } else { Method::Merge }
}

/// The kernel of this method, of which there is one.
pub(super) fn of_method(method: Method) -> &'static Entry<Tile> {
    entries::topn().iter().find(|entry| entry.tile.method == method).expect("the list has it")
}

/// Cycles of a launch.
const LAUNCH: f64 = 2500.0;
/// Cycles until a chunk is loaded, and joined.
const LOAD: f64 = 2500.0;
/// Cycles of a block to find the threshold, and what its barriers take longer among many warps: so much a square of its threads.
const THRESHOLD: f64 = 900.0;
const BARRIERS: f64 = 1.0 / 300.0;
/// Cycles of a doubling in the sort, for each pass over the keys.
const DOUBLING: f64 = 250.0;
/// Cycles of a thread for each value that it holds, where it is not kept from them.
const OWN_VALUE: f64 = 60.0;
/// Instructions of a value, over the threads that a multiprocessor runs in a cycle.
const VALUE: f64 = 12.0 / 128.0;
/// Cycles of a multiprocessor for one atomic maximum of the warps.
const INSERTION: f64 = 4.0;
/// Bytes that memory moves in a cycle for each multiprocessor: 4.3 TB/s over 132 of 1.98 GHz.
const BYTES: f64 = 16.5;

/// Of streaming select: cycles of a block from one tile to the next where it is alone, and as much more where all that fit are at work.
const TILE: f64 = 1300.0;
const TILE_AMONG_OTHERS: f64 = 200.0;
/// Cycles until what it gathered of a whole row is down to what is sorted.
const END: f64 = 1000.0;
/// The same for each value that reaches the threshold: about N of a tile, since the threshold is that of the first.
const HIT: f64 = 4.0;
/// So much of the room is filled by what is expected, since it may be more.
const FILLED: f64 = 0.8;
/// Where more is expected: cycles of the robust pass for each value of a thread.
const ROBUST: f64 = 800.0;
/// Bytes that it takes on a multiprocessor in a cycle.
const STREAM_BYTES: f64 = 22.0;
/// Cycles of the second launch, for each part of a row, and for each key.
const FINISH: f64 = 1200.0;
const PART: f64 = 45.0;
const KEY: f64 = 1.0;
/// Keys that it takes at once, to which streaming select refines what it found; and what more of them cost, each.
const FINISH_KEYS: f64 = 4096.0;
const MORE_KEY: f64 = 5.0;
/// Up to so many keys are sorted by comparing each with all.
const RANKED: f64 = 128.0;

/// Cycles for all rows. Only comparisons count.
fn cost(problem: &Problem, entry: &Entry<Tile>, chunk: u32, chunks: u32) -> f64 {
    let (threads, chunk, n) = (f64::from(entry.threads), f64::from(chunk), problem.n as f64);
    let blocks = problem.rows as f64 * f64::from(chunks);
    let multiprocessors = f64::from(problem.multiprocessors);
    let sorted = (1.25 * n.min(chunk)).max(32.0);
    let sorting = (1.0 + (sorted / 32.0).log2().ceil()) * DOUBLING * (sorted / threads).max(1.0);
    let capacity = f64::from(entry.tile.capacity);
    let threshold = THRESHOLD + threads * threads * BARRIERS;
    let at_once = multiprocessors * f64::from(entry.bounds.min_blocks.max(1));
    // Of streaming select: what it gathers of a chunk, and how much of the room that is.
    let tiles = (chunk / capacity).max(1.0);
    let reach = 1.1 * n + 4.0;
    let room = f64::from(4 * entry.tile.most);
    let is_robust = tiles * reach > FILLED * room;
    let streaming = threshold
        + tiles * (TILE + TILE_AMONG_OTHERS * (blocks / at_once).min(1.0))
        + tiles * reach * HIT
        + if is_robust { chunk / threads * ROBUST } else { 0.0 };
    let selecting = match entry.tile.method {
        Method::Insertion => chunk * (2.0 + n) / 4.0 * INSERTION,
        // What is gathered of several chunks is sorted later.
        Method::StreamingSelect if chunks > 1 => streaming,
        Method::StreamingSelect => streaming + END + sorting,
        _ => threshold + capacity / threads * OWN_VALUE + sorting,
    };
    // A block that waits lets others work.
    let block = LOAD + selecting;
    let waves = (blocks / at_once).ceil().max(1.0) * block;
    let bytes = chunk * f64::from(problem.value.bytes());
    let each = (blocks / multiprocessors).ceil().max(1.0);
    let parts = f64::from(chunks);
    if entry.tile.method == Method::StreamingSelect {
        let keys = (parts * tiles * reach).min((parts * reach).max(FINISH_KEYS));
        let finishing = LAUNCH
            + FINISH
            + parts * PART
            + keys * KEY
            + (keys - FINISH_KEYS).max(0.0) * MORE_KEY
            + if 1.125 * n + 4.0 > RANKED { sorting } else { 0.0 };
        return LAUNCH + waves.max(each * bytes / STREAM_BYTES) + if chunks > 1 { finishing } else { 0.0 };
    }
    let busy = each * (bytes / BYTES).max(chunk.max(capacity.min(chunk * 2.0)) * VALUE);
    let finishing = if chunks > 1 { LAUNCH + LOAD + parts * (n.log2() + 1.0) * 40.0 } else { 0.0 };
    LAUNCH + waves.max(busy) + 0.5 * waves.min(busy) + finishing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(rows: usize, columns: usize, n: usize) -> Choice {
        choose(&Problem::new(rows, columns, n))[0]
    }

    #[test]
    fn a_row_of_the_paper_is_one_block() {
        for n in [10, 100, 400] {
            let choice = best(1024, 10_240, n);
            assert_eq!(
                (choice.entry.name, choice.algorithm.chunks()),
                ("topn_f32_stream_t256_v4", 1),
                "N = {n}"
            );
        }
        assert_eq!(best(1, 10_240, 10).entry.name, "topn_f32_radix_t512_v5");
    }

    #[test]
    fn streaming_select_gathers_no_more_than_there_is_room_for() {
        for n in [50, 100, 400] {
            for rows in [64, 512, 1024] {
                let choice = best(rows, 151_936, n);
                if let Algorithm::StreamingSelect { .. } = choice.algorithm {
                    let Cut { chunk, .. } =
                        cut(&Problem::new(rows, 151_936, n), choice.entry, choice.algorithm.chunks())
                            .unwrap();
                    let tiles = f64::from(chunk) / f64::from(choice.entry.tile.capacity);
                    assert!(tiles * n as f64 <= 2048.0, "{choice:?}");
                }
            }
        }
    }

    #[test]
    fn long_rows_are_streamed_in_chunks_that_fill_the_gpu() {
        let choice = best(64, 151_936, 50);
        assert_eq!(choice.entry.name, "topn_f32_stream_t512_v4");
        assert_eq!(of_method(second(choice.entry.tile.method)).name, "topn_finalize");
        let Cut { chunk, chunks, .. } =
            cut(&Problem::new(64, 151_936, 50), choice.entry, choice.algorithm.chunks()).unwrap();
        assert!((4..=8).contains(&chunks), "{choice:?}");
        assert!(chunk * (chunks - 1) < 151_936 && chunk * chunks >= 151_936);
        assert!((8..=32).contains(&best(1, 151_936, 50).algorithm.chunks()));
        assert_eq!(best(1024, 151_936, 50).algorithm.chunks(), 1);
    }

    #[test]
    fn every_problem_has_a_kernel_and_each_can_be_asked_for() {
        for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
            for (columns, n) in
                [(1, 1), (33, 33), (1000, 1), (10_240, 1000), (50_257, 5000), (262_144, 262_144)]
            {
                for rows in [1, 100, 8192] {
                    let problem = Problem { value, ..Problem::new(rows, columns, n) };
                    let choices = choose(&problem);
                    assert!(!choices.is_empty(), "{problem:?}");
                    for choice in choices {
                        assert_eq!(find(&problem, choice.algorithm), Some(choice), "{problem:?}");
                        assert!(cut(&problem, choice.entry, choice.algorithm.chunks()).is_some());
                    }
                }
            }
        }
        let strange = Algorithm::RadixSelect { threads: 7, capacity: 10_240, chunks: 1 };
        assert_eq!(find(&Problem::new(1, 100, 5), strange), None);
        assert_eq!(find(&Problem::new(1, 100_000, 5), Algorithm::Insertion { chunks: 1 }), None);
    }
}
