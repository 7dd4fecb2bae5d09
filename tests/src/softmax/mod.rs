//! The softmax over the rows of a sparse matrix, and its gradient.
//!
//! [`conform()`] is the check that nearly all cases share; the other modules make matrices for it.
mod conform;
mod refusals;
mod rows;
mod tuned;
mod values;

pub use conform::conform;

use lacuna::matrix::{Csr, Pattern};

use crate::{Case, Options};

/// All cases of the softmax.
pub(crate) fn cases(options: Options) -> Vec<Case> {
    let mut cases = rows::cases(options);
    cases.extend(values::cases());
    cases.extend(refusals::cases());
    cases.extend(tuned::cases());
    cases
}

/// A matrix whose rows have these lengths, with values from -8 to 8. Columns say nothing to a softmax: a row has the first.
fn with_lengths(lengths: &[u32], seed: u64) -> anyhow::Result<Csr<f32>> {
    let mut ends = vec![0];
    for length in lengths {
        ends.push(ends[ends.len() - 1] + length);
    }
    let cols = lengths.iter().copied().max().unwrap_or(0) as usize;
    let columns = lengths.iter().flat_map(|&length| 0..length).collect();
    of_pattern(Pattern::new(lengths.len(), cols, ends, columns)?, seed)
}

/// A matrix of this pattern, with values from -8 to 8.
fn of_pattern(pattern: Pattern, seed: u64) -> anyhow::Result<Csr<f32>> {
    let values = lacuna::matrix::generate::random_values(pattern.nnz(), seed ^ 1);
    Ok(Csr::with_values(pattern, values.iter().map(|value| 8.0 * value).collect())?)
}
