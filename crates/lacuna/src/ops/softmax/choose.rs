//! Which kernels do which rows: a pure function of the problem shape.
use lacuna_kernels::softmax::{Pass, Tile};
use lacuna_kernels::{Entry, ValueType, entries};

use super::RowLengths;

/// The problem shape: all that the heuristic sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// How long the rows are.
    pub lengths: RowLengths,
    /// Whether the row table has them longest first; otherwise one kernel must do them all.
    pub sorted: bool,
    /// Matrices in one run.
    pub batch: usize,
    /// Type of the values.
    pub value: ValueType,
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
    /// The GPU's compute capability, 90 for 9.0.
    pub sm: u32,
}

impl Problem {
    /// The softmax of one matrix of `f32` on an H200, sorted.
    pub fn new(lengths: RowLengths) -> Self {
        Self { lengths, sorted: true, batch: 1, value: ValueType::F32, multiprocessors: 132, sm: 90 }
    }
}

/// How the softmax is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// The library chooses, for rows of different lengths perhaps different kernels.
    #[default]
    Auto,
    /// Groups of so many lanes take a row each, of all lengths: 8 (16 with 16-bit values), 32, or a block of 256.
    Subwarp {
        /// Lanes that work on one row.
        lanes: u32,
    },
}

/// A range of the row table, whose rows are of about one length, and the kernels that do them.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The entry point of the softmax.
    pub forward: &'static Entry<Tile>,
    /// The entry point of its gradient, of the same tile.
    pub backward: &'static Entry<Tile>,
    /// The first row of the part, in the order of the table.
    pub first: u32,
    /// Rows of the part.
    pub rows: u32,
}

impl Part {
    /// Lanes that work on one row.
    pub fn lanes(&self) -> u32 {
        self.forward.tile.lanes
    }

    /// The rows `first..end` by the same kernels; none of none.
    fn with_rows(self, first: u32, end: u32) -> Option<Self> {
        (end > first).then(|| Self { first, rows: end - first, ..self })
    }
}

/// The parts into which the rows are cut, longest rows first; none where all rows are empty. Groups of fewer lanes do shorter
/// rows, if that is worth another launch.
pub fn choose(problem: &Problem) -> Vec<Part> {
    let kernels = able(problem);
    if !problem.sorted {
        let all = problem.lengths.rows();
        let cost = |kernels: &&Part| cost(problem, kernels.forward, 0, all);
        let best = kernels.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
        return best.and_then(|kernels| kernels.with_rows(0, all)).into_iter().collect();
    }
    let end = problem.lengths.nonempty();
    let mut borders: Vec<u32> = problem.lengths.classes().map(|class| class.before).collect();
    borders.push(end);
    // For each border the cheapest way to do the rows before it: its cost, and where each kernel's rows end.
    let mut best: Vec<(f64, Vec<u32>)> =
        borders.iter().map(|&border| (if border == 0 { 0.0 } else { f64::INFINITY }, Vec::new())).collect();
    for kernels in &kernels {
        let way = |i: usize| {
            let ways = (0..=i).map(|from| {
                let (before, ends) = &best[from];
                let cost = before + cost(problem, kernels.forward, borders[from], borders[i]);
                (cost, ends, borders[i])
            });
            // The first of equal ones: it leaves more rows to this kernel, which is the one of fewer lanes.
            let (cost, ends, end) = ways.min_by(|a, b| a.0.total_cmp(&b.0)).expect("there is a border");
            (cost, ends.iter().copied().chain([end]).collect())
        };
        best = (0..borders.len()).map(way).collect();
    }
    let (_, ends) = best.pop().expect("there is a border");
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let parts = kernels.iter().zip(starts.zip(&ends));
    parts.filter_map(|(kernels, (start, &end))| kernels.with_rows(start, end)).collect()
}

/// The parts of this algorithm; `None` where there is no such kernel.
pub(super) fn find(problem: &Problem, wanted: Algorithm) -> Option<Vec<Part>> {
    let Algorithm::Subwarp { lanes } = wanted else { return Some(choose(problem)) };
    let kernels = able(problem).into_iter().find(|kernels| kernels.lanes() == lanes)?;
    let rows = if problem.sorted { problem.lengths.nonempty() } else { problem.lengths.rows() };
    Some(kernels.with_rows(0, rows).into_iter().collect())
}

/// The algorithms that can be asked for.
pub(super) fn legal(problem: &Problem) -> Vec<Algorithm> {
    able(problem).iter().map(|kernels| Algorithm::Subwarp { lanes: kernels.lanes() }).collect()
}

/// All kernels that can do `problem`, those of most lanes first: a softmax's and its gradient's of one tile, and no rows yet.
fn able(problem: &Problem) -> Vec<Part> {
    let able = |entry: &&Entry<Tile>| entry.tile.value == problem.value && entry.runs_on(problem.sm);
    let of = |forward: &'static Entry<Tile>| {
        let tile = Tile { pass: Pass::Backward, ..forward.tile };
        let backward = entries::softmax().iter().filter(able).find(|entry| entry.tile == tile)?;
        (forward.tile.pass == Pass::Forward).then_some(Part { forward, backward, first: 0, rows: 0 })
    };
    let mut kernels: Vec<Part> = entries::softmax().iter().filter(able).filter_map(of).collect();
    kernels.sort_by_key(|kernels| std::cmp::Reverse(kernels.lanes()));
    kernels
}

/// Cycles of a launch.
const LAUNCH: f64 = 2000.0;
/// Cycles until a row that fits into registers is written: four waits for memory and two for the lanes.
const ROW: f64 = 3000.0;
/// Cycles of one tile in one pass over a row that does not fit.
const TILE: f64 = 1000.0;
/// Passes over such a row.
const PASSES: f64 = 3.0;
/// Threads at work on a multiprocessor.
const THREADS: f64 = 1024.0;
/// Bytes that memory moves in a cycle for each multiprocessor: 4.8 TB/s over 132 of 1.98 GHz.
const BYTES: f64 = 18.0;
/// The part of the smaller of waiting and moving that is not hidden behind the larger.
const NOT_HIDDEN: f64 = 0.5;

/// Cycles for rows `first..end` of the table by this kernel. Only comparisons count, and these are coarse: bytes decide
/// nothing but against several passes, and the rest is how many lanes wait for how long.
fn cost(problem: &Problem, entry: &Entry<Tile>, first: u32, end: u32) -> f64 {
    if end <= first {
        return 0.0;
    }
    let (mut waiting, mut moving, mut longest) = (0.0, 0.0, 0.0_f64);
    for class in problem.lengths.classes() {
        let rows = end.min(class.before + class.rows).saturating_sub(first.max(class.before));
        if rows == 0 {
            continue;
        }
        let rows = f64::from(rows) * problem.batch as f64;
        let length = class.length as f64;
        let tiles = (length / f64::from(entry.tile.capacity)).ceil();
        let (cycles, moves) =
            if tiles > 1.0 { (ROW + PASSES * tiles * TILE, PASSES + 1.0) } else { (ROW, 2.0) };
        waiting += rows * cycles;
        moving += rows * moves * length * f64::from(entry.tile.value.bytes());
        longest = longest.max(cycles);
    }
    let multiprocessors = f64::from(problem.multiprocessors);
    let waiting = (waiting * f64::from(entry.tile.lanes) / THREADS / multiprocessors).max(longest);
    let moving = moving / BYTES / multiprocessors;
    LAUNCH + waiting.max(moving) + NOT_HIDDEN * waiting.min(moving)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(lengths: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
        let mut ends = vec![0];
        for length in lengths {
            ends.push(ends[ends.len() - 1] + length);
        }
        let problem = Problem::new(RowLengths::of(&ends));
        let parts = choose(&problem);
        let mut next = 0;
        for part in &parts {
            assert_eq!(part.first, next, "{parts:?}");
            next += part.rows;
        }
        assert_eq!(next, problem.lengths.nonempty(), "{parts:?}");
        parts.iter().map(|part| (part.lanes(), part.rows)).collect()
    }

    #[test]
    fn rows_get_lanes_by_their_length() {
        // A causal pattern of 12,288 tokens; a graph of short rows; few rows that a block each can share.
        assert_eq!(parts((0..12_288).map(|i| 1 + (i / 20).max(256))), [(32, 12_288)]);
        assert_eq!(parts(std::iter::repeat_n(9, 100_000)), [(8, 100_000)]);
        assert_eq!(parts(std::iter::repeat_n(8000, 100)), [(256, 100)]);
    }

    #[test]
    fn a_few_long_rows_are_a_launch_of_their_own() {
        let lengths = std::iter::repeat_n(9, 100_000).chain([200_000, 150_000, 0]);
        assert_eq!(parts(lengths), [(256, 2), (8, 100_000)]);
    }

    #[test]
    fn empty_rows_are_not_launched() {
        assert_eq!(parts([0, 0, 0]), []);
        assert_eq!(parts([]), []);
        assert_eq!(parts([0, 5, 0]).len(), 1);
    }

    #[test]
    fn unsorted_rows_are_one_part() {
        let problem = Problem { sorted: false, ..Problem::new(RowLengths::of(&[0, 9, 9, 20_000])) };
        let parts = choose(&problem);
        assert_eq!((parts.len(), parts[0].first, parts[0].rows), (1, 0, 3));
    }

    #[test]
    fn every_type_has_three_kinds_of_both_passes() {
        for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
            let problem = Problem { value, ..Problem::new(RowLengths::of(&[0, 1])) };
            let legal = legal(&problem);
            assert_eq!(legal.len(), 3);
            for algorithm in legal {
                let part = find(&problem, algorithm).unwrap()[0];
                assert_eq!(Algorithm::Subwarp { lanes: part.lanes() }, algorithm);
            }
            assert!(find(&problem, Algorithm::Subwarp { lanes: 7 }).is_none());
        }
    }
}
