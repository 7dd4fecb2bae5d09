//! Devices: memory, and what must be refused.
mod memory;
mod refusals;

use crate::Case;

/// All cases of this folder.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = memory::cases();
    cases.extend(refusals::cases());
    cases
}
