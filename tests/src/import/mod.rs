//! Index arrays, memory and streams of others: patterns from arrays on the device, and products on memory that no buffer made.
mod foreign;
#[cfg(feature = "cuda")]
mod gpu;
mod lender;
mod lists;

use crate::Case;

/// All cases of this folder.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = foreign::cases();
    cases.extend(lists::cases());
    cases
}
