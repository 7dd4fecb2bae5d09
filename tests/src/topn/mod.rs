//! The N greatest of each row, and the softmax that is fused with them.
//!
//! [`conform()`] is the check that nearly all cases share; the other modules make problems for it.
mod beam;
mod conform;
mod refusals;
mod shapes;
mod tuned;
mod values;

pub use conform::conform;

use crate::Case;

/// A matrix of logits, and how many are wanted of each row.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Elements of a row.
    pub columns: usize,
    /// How many of them are wanted.
    pub n: usize,
    /// The rows.
    pub logits: Vec<f32>,
}

impl Problem {
    /// Logits from -8 to 8.
    fn drawn(rows: usize, columns: usize, n: usize, seed: u64) -> Self {
        let values = lacuna::matrix::generate::random_values(rows * columns, seed ^ 1);
        Self { columns, n, logits: values.iter().map(|value| 8.0 * value).collect() }
    }

    fn rows(&self) -> usize {
        self.logits.len() / self.columns
    }
}

/// All cases of top-N.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = shapes::cases();
    cases.extend(values::cases());
    cases.extend(refusals::cases());
    cases.extend(beam::cases());
    cases.extend(tuned::cases());
    cases
}
