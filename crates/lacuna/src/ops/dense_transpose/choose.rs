//! Which kernel suits matrices: a pure function of the problem shape. There is one for elements of each width, which does all shapes.
use lacuna_kernels::dense_transpose::Tile;
use lacuna_kernels::{Entry, ValueType, entries};

use super::OPERATION;
use crate::op;

/// The problem shape: all that the heuristic sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Rows of a matrix.
    pub rows: usize,
    /// Its columns.
    pub columns: usize,
    /// Matrices.
    pub batch: usize,
    /// Type of the values.
    pub value: ValueType,
    /// The GPU's compute capability, 90 for 9.0.
    pub sm: u32,
}

impl Problem {
    /// A matrix of `f32`, on an H200.
    pub fn new(rows: usize, columns: usize) -> Self {
        Self { rows, columns, batch: 1, value: ValueType::F32, sm: 90 }
    }
}

/// How a matrix is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// Thread blocks have a tile each, which goes through shared memory.
    Tile {
        /// Rows of the matrix in a tile.
        rows: u32,
        /// Its columns in a tile.
        columns: u32,
    },
}

/// A kernel, and what the heuristic thinks of it.
pub type Choice = op::Choice<Algorithm, Tile>;

impl op::Problem for Problem {
    const OPERATION: &'static str = OPERATION;
    type Algorithm = Algorithm;
    type Tile = Tile;
    const ENTRIES: fn() -> &'static [Entry<Tile>] = entries::dense_transpose;

    fn algorithms(&self, entry: &'static Entry<Tile>) -> impl IntoIterator<Item = Algorithm> {
        let Tile { bits, rows, columns } = entry.tile;
        let is_legal = bits == 8 * self.value.bytes() && entry.runs_on(self.sm);
        is_legal.then_some(Algorithm::Tile { rows, columns })
    }

    /// Elements of all tiles, with what is beyond the matrices.
    fn cost(&self, entry: &'static Entry<Tile>, _algorithm: Algorithm) -> f64 {
        let padded = |total: usize, each: u32| total.div_ceil(each as usize) as f64 * f64::from(each);
        padded(self.rows, entry.tile.rows) * padded(self.columns, entry.tile.columns) * self.batch as f64
    }
}

/// The kernels that can do this problem, the best first. Never empty.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    op::choose(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_width() {
        for (value, name) in [
            (ValueType::F32, "dense_transpose_b32_32x64"),
            (ValueType::F16, "dense_transpose_b16_64x64"),
            (ValueType::Bf16, "dense_transpose_b16_64x64"),
        ] {
            for [rows, columns] in [[0, 0], [1, 1], [64, 3136], [1 << 29, 1 << 29]] {
                let problem = Problem { value, sm: 70, ..Problem::new(rows, columns) };
                let choices = choose(&problem);
                assert_eq!(choices.iter().map(|choice| choice.entry.name).collect::<Vec<_>>(), [name]);
                assert_eq!(op::find(&problem, choices[0].algorithm), Some(choices[0]));
                assert!(choices[0].cost.is_finite());
            }
        }
    }
}
