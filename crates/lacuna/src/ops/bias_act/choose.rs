//! Which kernel suits a matrix: a pure function of the problem shape.
use lacuna_kernels::bias_act::Tile;
use lacuna_kernels::{Entry, ValueType, entries};

use super::OPERATION;
use crate::op;

/// The problem shape: all that the heuristic sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Elements that strides and addresses allow to load at once (1, 2, 4 or 8).
    pub vector: u32,
    /// Type of the values.
    pub value: ValueType,
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
    /// The GPU's compute capability, 90 for 9.0.
    pub sm: u32,
}

impl Problem {
    /// A matrix of `f32` without gaps, on an H200.
    pub fn new(rows: usize, columns: usize) -> Self {
        Self { rows, columns, vector: 8, value: ValueType::F32, multiprocessors: 132, sm: 90 }
    }
}

/// How a matrix is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// Thread blocks have tiles of whole rows, or of parts of them.
    RowTile {
        /// Elements that a thread loads at once.
        vector: u32,
        /// Threads that share a row of the tile.
        lanes: u32,
    },
}

/// A kernel, and what the heuristic thinks of it.
pub type Choice = op::Choice<Algorithm, Tile>;

impl op::Problem for Problem {
    const OPERATION: &'static str = OPERATION;
    type Algorithm = Algorithm;
    type Tile = Tile;
    const ENTRIES: fn() -> &'static [Entry<Tile>] = entries::bias_act;

    fn algorithms(&self, entry: &'static Entry<Tile>) -> impl IntoIterator<Item = Algorithm> {
        let Tile { value, vector, lanes, .. } = entry.tile;
        let is_legal = value == self.value
            && vector <= self.vector
            && self.columns.is_multiple_of(vector as usize)
            && entry.runs_on(self.sm);
        is_legal.then_some(Algorithm::RowTile { vector, lanes })
    }

    /// Instructions of all threads, idle ones too, over those of a multiprocessor: what is cut badly has threads without work.
    fn cost(&self, entry: &'static Entry<Tile>, _algorithm: Algorithm) -> f64 {
        let tile = &entry.tile;
        let blocks = |total: usize, each: u32| (total as f64 / f64::from(each)).ceil().max(1.0);
        let blocks = blocks(self.rows, tile.block_rows) * blocks(self.columns, tile.block_columns);
        let waves = (blocks / f64::from(self.multiprocessors)).max(1.0);
        let elements = f64::from(tile.block_rows) * f64::from(tile.block_columns);
        waves * elements * (VECTOR / f64::from(tile.vector) + ELEMENT)
    }
}

/// The kernels that can do this problem, the best first. Never empty: single elements are always legal.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    op::choose(problem)
}

/// Instructions of a thread for a vector, and for each of its elements.
const VECTOR: f64 = 12.0;
const ELEMENT: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn best(rows: usize, columns: usize, vector: u32) -> &'static str {
        choose(&Problem { vector, ..Problem::new(rows, columns) })[0].entry.name
    }

    #[test]
    fn lanes_follow_the_shape() {
        assert_eq!(best(8192, 4096, 8), "bias_act_f32_v4_l32");
        assert_eq!(best(100_000, 128, 8), "bias_act_f32_v4_l32");
        assert_eq!(best(100_000, 16, 8), "bias_act_f32_v4_l8");
        assert_eq!(best(8192, 49, 8), "bias_act_f32_v1_l32");
        assert_eq!(best(1, 1 << 20, 8), "bias_act_f32_v4_l256");
        assert_eq!(best(8192, 4096, 2), "bias_act_f32_v1_l32");
    }

    #[test]
    fn every_type_and_any_columns_have_a_kernel() {
        for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
            for columns in [0, 1, 2, 3, 4, 8, 31, 32, 513] {
                let problem = Problem { value, sm: 70, ..Problem::new(10, columns) };
                for choice in choose(&problem) {
                    assert_eq!(op::find(&problem, choice.algorithm), Some(choice));
                    assert!(choice.cost.is_finite());
                }
                assert!(!choose(&problem).is_empty());
            }
        }
    }
}
