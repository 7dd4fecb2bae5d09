//! Embedding-bag lookup, and the gradients of table and weights.
//!
//! [`conform()`] is the check that nearly all cases share; the other modules make problems for it.
mod bags;
mod columns;
mod conform;
mod problem;
mod refusals;
mod tuned;
mod values;

pub use conform::conform;
pub use problem::Problem;

use crate::{Case, Options};

/// All cases of the lookup.
pub(crate) fn cases(options: Options) -> Vec<Case> {
    let mut cases = bags::cases(options);
    cases.extend(columns::cases());
    cases.extend(values::cases());
    cases.extend(refusals::cases());
    cases.extend(tuned::cases());
    cases
}
