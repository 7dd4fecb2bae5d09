//! Aᵀ: its pattern and values, and products with it.
//!
//! [`conform()`] is the check that the cases on shapes share: pattern, order and values against the host's transpose, and a
//! product against the oracle.
mod conform;
mod gather;
mod refusals;
mod shapes;
mod training;

pub use conform::conform;

use crate::{Case, Options};

/// All cases of the transpose.
pub(crate) fn cases(options: Options) -> Vec<Case> {
    let mut cases = shapes::cases(options);
    cases.extend(gather::cases());
    cases.extend(training::cases());
    cases.extend(refusals::cases());
    cases
}
