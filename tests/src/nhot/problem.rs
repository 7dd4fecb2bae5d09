//! What a lookup is asked of.
use lacuna::nhot;
use lacuna_reference::NHotBags;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Bags, a table's size, and options.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Rows of the table.
    pub table_rows: usize,
    /// Its columns.
    pub columns: usize,
    /// Where bags start, and the end of the last.
    pub offsets: Vec<usize>,
    /// Rows of the table.
    pub indices: Vec<usize>,
    /// Weights, if any.
    pub weights: Option<Vec<f32>>,
    /// Mode, padding index, layout and strides.
    pub options: nhot::Options,
}

impl Problem {
    /// Bags of these lengths, of indices drawn from the rows of a table; some of them are there twice.
    pub(super) fn of_lengths(lengths: &[usize], table_rows: usize, columns: usize, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut offsets = vec![0];
        for length in lengths {
            offsets.push(offsets[offsets.len() - 1] + length);
        }
        let nnz = offsets[lengths.len()];
        let indices = (0..nnz).map(|_| random.random_range(0..table_rows)).collect();
        Self { table_rows, columns, offsets, indices, weights: None, options: nhot::Options::default() }
    }

    /// With weights from -1 to 1.
    pub(super) fn weighted(self, seed: u64) -> Self {
        let weights = lacuna::matrix::generate::random_values(self.indices.len(), seed ^ 3);
        Self { weights: Some(weights), ..self }
    }

    /// With these options.
    pub(super) fn with(self, options: impl FnOnce(nhot::Options) -> nhot::Options) -> Self {
        Self { options: options(self.options), ..self }
    }

    pub(super) fn bags(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(super) fn is_transposed(&self) -> bool {
        self.options.layout == nhot::Layout::Transposed
    }

    /// The bags as the oracle has them.
    pub(super) fn reference(&self) -> NHotBags<'_> {
        NHotBags {
            offsets: &self.offsets,
            indices: &self.indices,
            weights: self.weights.as_deref(),
            padding: self.options.padding_index,
            mean: self.options.mode == nhot::Mode::Mean,
        }
    }
}
