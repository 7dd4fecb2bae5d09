//! Which kernel suits a lookup: a pure function of the problem shape.
use lacuna_kernels::nhot::{Pass, Tile};
use lacuna_kernels::{Entry, ValueType, entries};

use super::OPERATION;
use crate::op;

/// The problem shape: all that the heuristic sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Bags: rows of the result.
    pub bags: usize,
    /// Indices in all bags.
    pub nnz: usize,
    /// Indices of the largest bag.
    pub longest: usize,
    /// Columns of the table.
    pub columns: usize,
    /// Elements that strides and addresses allow to load at once (1, 2, 4 or 8).
    pub vector: u32,
    /// Type of the table.
    pub value: ValueType,
    /// Bits of an index.
    pub index_bits: u32,
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
    /// The GPU's compute capability, 90 for 9.0.
    pub sm: u32,
}

impl Problem {
    /// Bags of as many 32-bit indices each, and a table of `f32`, on an H200.
    pub fn new(bags: usize, nonzeros: usize, columns: usize) -> Self {
        Self {
            bags,
            nnz: bags.saturating_mul(nonzeros),
            longest: nonzeros,
            columns,
            vector: 8,
            value: ValueType::F32,
            index_bits: 32,
            multiprocessors: 132,
            sm: 90,
        }
    }
}

/// How a lookup is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// Subwarps take the columns of a bag, and share its indices.
    Subwarp {
        /// Elements that a lane loads at once.
        vector: u32,
        /// Lanes of a subwarp.
        lanes: u32,
        /// Loads of a lane for a row.
        chunks: u32,
        /// Subwarps that share a bag.
        split: u32,
    },
}

/// A kernel, and what the heuristic thinks of it.
pub type Choice = op::Choice<Algorithm, Tile>;

impl op::Problem for Problem {
    const OPERATION: &'static str = OPERATION;
    type Algorithm = Algorithm;
    type Tile = Tile;
    const ENTRIES: fn() -> &'static [Entry<Tile>] = entries::nhot;

    fn algorithms(&self, entry: &'static Entry<Tile>) -> impl IntoIterator<Item = Algorithm> {
        let Tile { pass, value, index_bits, vector, lanes, chunks, split, .. } = entry.tile;
        let is_legal = pass == Pass::Lookup
            && value == self.value
            && index_bits == self.index_bits
            && vector <= self.vector
            && self.columns.is_multiple_of(vector as usize)
            && entry.runs_on(self.sm);
        is_legal.then_some(Algorithm::Subwarp { vector, lanes, chunks, split })
    }

    /// Cycles of a lookup. Only comparisons count, and these are coarse: a bag's waits one after another, for as many warps as
    /// fit together; the instructions; and the bytes of rows and indices.
    fn cost(&self, entry: &'static Entry<Tile>, _algorithm: Algorithm) -> f64 {
        let tile = &entry.tile;
        let (bags, split) = (self.bags.max(1) as f64, f64::from(tile.split));
        let parts = (self.columns as f64 / f64::from(tile.block_columns)).ceil().max(1.0);
        let turns = |nonzeros: f64| ((nonzeros / split).ceil() / f64::from(tile.rows)).ceil();
        let lanes = f64::from(tile.lanes * tile.split);
        let joining = match lanes {
            _ if tile.split == 1 => 0.0,
            ..=32.0 => SHUFFLES,
            _ => SHARED,
        };
        let turn = ROWS + LOAD * f64::from(tile.chunks);
        let cycles = |nonzeros: f64| BAG + parts * PART + turns(nonzeros) * turn + joining;
        let multiprocessors = f64::from(self.multiprocessors);
        let mean = self.nnz as f64 / bags;
        let warps = bags * parts * lanes / 32.0;
        let waiting = (warps * cycles(mean) / WARPS / multiprocessors).max(cycles(self.longest as f64));
        let rows = warps * turns(mean) * f64::from(tile.rows);
        let instructions = rows * (ROW_INSTRUCTIONS + VECTOR_INSTRUCTIONS * f64::from(tile.chunks));
        let issuing = instructions / ISSUES / multiprocessors;
        // Each part reads the indices again.
        let row_bytes = self.columns as f64 * f64::from(self.value.bytes());
        let bytes = self.nnz as f64 * (row_bytes + parts * f64::from(self.index_bits / 8));
        let moving = (bytes / BYTES / multiprocessors).max(issuing);
        waiting.max(moving) + NOT_HIDDEN * waiting.min(moving)
    }
}

/// The kernels that can do this problem, the best first. Never empty: single elements are always legal.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    op::choose(problem)
}

/// Cycles until a bag of no rows is written: its ends, the first indices, the store's way out.
const BAG: f64 = 1500.0;
/// Cycles until rows that are asked for together have come.
const ROWS: f64 = 700.0;
/// Cycles that they take longer for each load of a lane.
const LOAD: f64 = 50.0;
/// Cycles for each part into which columns are cut: every part reads the bag's ends and indices.
const PART: f64 = 100.0;
/// Cycles of adding up between lanes of a warp, and through shared memory between warps.
const SHUFFLES: f64 = 60.0;
const SHARED: f64 = 250.0;
/// Instructions of a warp for a row: two shuffles, an address and its test; and for each vector a load, and sums.
const ROW_INSTRUCTIONS: f64 = 6.0;
const VECTOR_INSTRUCTIONS: f64 = 6.0;
/// Instructions that a multiprocessor issues in a cycle.
const ISSUES: f64 = 4.0;
/// Warps at work on a multiprocessor.
const WARPS: f64 = 32.0;
/// Bytes that memory moves in a cycle for each multiprocessor: 4.8 TB/s over 132 of 1.98 GHz.
const BYTES: f64 = 18.0;
/// The part of the smaller of waiting and moving that is not hidden behind the larger.
const NOT_HIDDEN: f64 = 0.3;

#[cfg(test)]
mod tests {
    use super::*;

    fn best(problem: &Problem) -> &'static str {
        choose(problem)[0].entry.name
    }

    #[test]
    fn few_long_bags_are_shared() {
        assert_eq!(best(&Problem::new(100, 1, 512)), "nhot_f32_lookup_v4_l32_c2_s1");
        assert_eq!(best(&Problem::new(100, 10, 512)), "nhot_f32_lookup_v4_l32_s4");
        assert_eq!(best(&Problem::new(100, 100, 512)), "nhot_f32_lookup_v4_l32_s8");
        assert_eq!(best(&Problem::new(65_536, 32, 128)), "nhot_f32_lookup_v4_l32_s1");
    }

    #[test]
    fn narrow_tables_have_narrow_subwarps() {
        assert_eq!(best(&Problem::new(65_536, 32, 32)), "nhot_f32_lookup_v4_l8_s1");
        assert_eq!(best(&Problem::new(65_536, 32, 64)), "nhot_f32_lookup_v4_l16_s1");
        assert_eq!(best(&Problem::new(20, 1000, 32)), "nhot_f32_lookup_v4_l8_s32");
        let narrow = Problem { vector: 1, ..Problem::new(1000, 5, 33) };
        assert_eq!(best(&narrow), "nhot_f32_lookup_v1_l32_s1");
    }

    #[test]
    fn every_type_and_any_columns_have_a_kernel() {
        for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
            for index_bits in [32, 64] {
                for columns in [0, 1, 2, 3, 4, 8, 31, 32, 513] {
                    let problem = Problem { value, index_bits, sm: 70, ..Problem::new(10, 10, columns) };
                    for choice in choose(&problem) {
                        assert_eq!(op::find(&problem, choice.algorithm), Some(choice));
                        assert!(choice.cost.is_finite());
                    }
                    assert!(!choose(&problem).is_empty());
                }
            }
        }
    }
}
