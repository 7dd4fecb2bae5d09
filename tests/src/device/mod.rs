//! Devices: memory, streams, and what must be refused.
mod chains;
mod memory;
mod refusals;
mod streams;

use crate::Case;

/// All cases of this folder.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = chains::cases();
    cases.extend(memory::cases());
    cases.extend(refusals::cases());
    cases.extend(streams::cases());
    cases
}
