//! Which kernel suits a problem, and how rows are cut: a pure function of the problem's numbers.
use lacuna_kernels::topn::{Method, Tile};
use lacuna_kernels::{Entry, ValueType, entries};

/// What the chooser looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopNProblem {
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

impl TopNProblem {
    /// The `n` greatest of each of `rows` rows of `columns` elements of `f32`, on an H200.
    pub fn new(rows: usize, columns: usize, n: usize) -> Self {
        Self { rows, columns, n, value: ValueType::F32, multiprocessors: 132, sm: 90 }
    }
}

/// How the greatest of a row are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TopNAlgorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// Blocks hold a row, or a chunk of it, in registers; they find a bar that few values reach, and sort those.
    Select {
        /// Threads of a block.
        threads: u32,
        /// Elements that a block can hold.
        capacity: u32,
        /// Chunks of a row, each of a block. Where there are several, a second launch merges what they found.
        chunks: u32,
    },
    /// The algorithm of the ACL 2019 paper: each value is inserted into a sorted list by atomic maxima. For a small N.
    Insert {
        /// Chunks of a row, as for [`Select`](Self::Select).
        chunks: u32,
    },
}

/// A kernel, and how rows are cut for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopNChoice {
    /// Its entry point.
    pub entry: &'static str,
    /// The entry point that merges the results of chunks, where a row has several.
    pub merge: Option<&'static str>,
    /// The algorithm by which it can be asked for.
    pub algorithm: TopNAlgorithm,
    /// Threads of a block.
    pub threads: u32,
    /// Shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Elements of each chunk but perhaps the last.
    pub chunk: u32,
    /// Chunks of a row.
    pub chunks: u32,
    /// The chooser's cost, comparable within one problem only.
    pub cost: f64,
}

/// Chunks start at multiples of so many elements: where rows start at 16 bytes, so do they.
const CHUNK_STEP: usize = 8;
/// Rows are cut up to this far below what a block holds.
const MAX_CUTS: u32 = 5;

/// The kernels and cuts that can do this problem, the best first.
pub fn choose_topn(problem: &TopNProblem) -> Vec<TopNChoice> {
    let mut choices: Vec<TopNChoice> = Vec::new();
    for entry in able(problem) {
        for halvings in 0..MAX_CUTS {
            let least = problem.columns.div_ceil(longest(&entry.tile, problem.n));
            let choice = cut(problem, entry, least << halvings);
            if let Some(choice) =
                choice.filter(|choice| choices.iter().all(|known| known.algorithm != choice.algorithm))
            {
                choices.push(choice);
            }
        }
    }
    choices.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    choices
}

/// The choice of this algorithm; `None` where there is no such kernel, or it cannot do the problem so.
pub(super) fn find(problem: &TopNProblem, wanted: TopNAlgorithm) -> Option<TopNChoice> {
    let chunks = match wanted {
        TopNAlgorithm::Auto => return choose_topn(problem).into_iter().next(),
        TopNAlgorithm::Select { chunks, .. } | TopNAlgorithm::Insert { chunks } => chunks,
    };
    able(problem)
        .filter_map(|entry| cut(problem, entry, chunks as usize))
        .find(|choice| choice.algorithm == wanted)
}

/// The kernels for the type and the GPU that write a list, or results.
fn able(problem: &TopNProblem) -> impl Iterator<Item = &'static Entry<Tile>> {
    let (value, sm) = (problem.value, problem.sm);
    entries::topn().iter().filter(move |entry| entry.tile.value == Some(value) && entry.runs_on(sm))
}

/// The longest chunk that the kernel can do: it holds it, and has room for all of it that may be wanted.
fn longest(tile: &Tile, n: usize) -> usize {
    let longest = if n > tile.most as usize { tile.capacity.min(tile.most) } else { tile.capacity };
    longest as usize / CHUNK_STEP * CHUNK_STEP
}

/// Rows in about so many chunks, for this kernel; `None` where they do not fit, or chunks would be hardly longer than N.
fn cut(problem: &TopNProblem, entry: &Entry<Tile>, chunks: usize) -> Option<TopNChoice> {
    let &Entry { name, threads, shared_bytes, tile, .. } = entry;
    let chunk = problem.columns.div_ceil(chunks.max(1)).next_multiple_of(CHUNK_STEP);
    let chunks = problem.columns.div_ceil(chunk);
    let is_needed = problem.columns > longest(&tile, problem.n);
    if chunk > longest(&tile, problem.n) || chunks > 1 && !is_needed && chunk < 2 * problem.n.max(64) {
        return None;
    }
    let (chunk, chunks) = (u32::try_from(chunk).ok()?, u32::try_from(chunks).ok()?);
    let algorithm = match tile.method {
        Method::Select => TopNAlgorithm::Select { threads, capacity: tile.capacity, chunks },
        Method::Insert => TopNAlgorithm::Insert { chunks },
        Method::Merge => return None,
    };
    let merge = (chunks > 1).then(|| merge().name);
    let cost = cost(problem, entry, chunk, chunks);
    Some(TopNChoice { entry: name, merge, algorithm, threads, shared_bytes, chunk, chunks, cost })
}

/// The kernel that merges lists.
pub(super) fn merge() -> &'static Entry<Tile> {
    entries::topn().iter().find(|entry| entry.tile.method == Method::Merge).expect("the list has it")
}

/// Cycles of a launch.
const LAUNCH: f64 = 2500.0;
/// Cycles until a chunk is loaded, and joined.
const LOAD: f64 = 2500.0;
/// Cycles of a block to find the bar.
const BAR: f64 = 1000.0;
/// Cycles of a doubling in the sort, for each pass over the keys.
const DOUBLING: f64 = 250.0;
/// Instructions of a value, over the threads that a multiprocessor runs in a cycle.
const VALUE: f64 = 12.0 / 128.0;
/// Cycles of a multiprocessor for one atomic maximum of the warps.
const INSERTION: f64 = 4.0;
/// Threads at work on a multiprocessor.
const THREADS: f64 = 1024.0;
/// Bytes that memory moves in a cycle for each multiprocessor: 4.3 TB/s over 132 of 1.98 GHz.
const BYTES: f64 = 16.5;

/// Cycles for all rows. Only comparisons count.
fn cost(problem: &TopNProblem, entry: &Entry<Tile>, chunk: u32, chunks: u32) -> f64 {
    let (threads, chunk, n) = (f64::from(entry.threads), f64::from(chunk), problem.n as f64);
    let blocks = problem.rows as f64 * f64::from(chunks);
    let multiprocessors = f64::from(problem.multiprocessors);
    let sorted = (1.25 * n.min(chunk)).max(32.0);
    let selecting = match entry.tile.method {
        Method::Insert => chunk * (2.0 + n) / 4.0 * INSERTION,
        _ => BAR + (1.0 + (sorted / 32.0).log2().ceil()) * DOUBLING * (sorted / threads).max(1.0),
    };
    // A block that waits lets others work.
    let resident = (THREADS / threads).floor().max(1.0);
    let held = f64::from(entry.tile.capacity) * VALUE;
    let block = LOAD + selecting + held;
    let at_once = multiprocessors * resident;
    let waves = (blocks / at_once).ceil().max(1.0);
    let bytes = blocks * chunk * f64::from(problem.value.bytes()) / multiprocessors;
    let busy = (blocks / multiprocessors).ceil() * held + bytes / BYTES;
    let merging = if chunks > 1 { LAUNCH + LOAD + f64::from(chunks) * (n.log2() + 1.0) * 40.0 } else { 0.0 };
    LAUNCH + (waves * block).max(busy) + 0.5 * (waves * block).min(busy) + merging
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(rows: usize, columns: usize, n: usize) -> TopNChoice {
        choose_topn(&TopNProblem::new(rows, columns, n))[0]
    }

    #[test]
    fn a_row_of_the_paper_is_one_block() {
        for n in [10, 100, 400] {
            let choice = best(1024, 10_240, n);
            assert_eq!(
                (choice.entry, choice.chunks, choice.merge),
                ("topn_f32_t256_v10", 1, None),
                "N = {n}"
            );
        }
    }

    #[test]
    fn long_rows_are_cut() {
        let choice = best(64, 151_936, 50);
        assert!(choice.chunks >= 15 && choice.merge == Some("topn_merge"), "{choice:?}");
        assert!(choice.chunk * (choice.chunks - 1) < 151_936 && choice.chunk * choice.chunks >= 151_936);
    }

    #[test]
    fn every_problem_has_a_kernel_and_each_can_be_asked_for() {
        for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
            for (columns, n) in
                [(1, 1), (33, 33), (1000, 1), (10_240, 1000), (50_257, 5000), (262_144, 262_144)]
            {
                for rows in [1, 100, 8192] {
                    let problem = TopNProblem { value, ..TopNProblem::new(rows, columns, n) };
                    let choices = choose_topn(&problem);
                    assert!(!choices.is_empty(), "{problem:?}");
                    for choice in choices {
                        assert_eq!(find(&problem, choice.algorithm), Some(choice), "{problem:?}");
                        assert_eq!(choice.merge.is_some(), choice.chunks > 1);
                    }
                }
            }
        }
        let strange = TopNAlgorithm::Select { threads: 7, capacity: 10_240, chunks: 1 };
        assert_eq!(find(&TopNProblem::new(1, 100, 5), strange), None);
        assert_eq!(find(&TopNProblem::new(1, 100_000, 5), TopNAlgorithm::Insert { chunks: 1 }), None);
    }
}
