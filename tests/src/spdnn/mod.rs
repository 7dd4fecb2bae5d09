//! Inference of sparse feed-forward networks.
//!
//! [`conform()`] is the check that nearly all cases share: every kernel, with and without pruning, against the oracle. Where
//! sums are exact, the host computes what each layer must leave. The other modules make networks and samples for both.
mod challenge;
mod conform;
mod features;
mod files;
mod grids;
mod half;
mod host;
mod lists;
mod network;
mod passes;
mod pruning;
mod refusals;
mod reuse;
mod shapes;
mod workers;

pub use conform::conform;
pub use network::Network;

use crate::{Case, Options};

/// All cases of inference.
pub(crate) fn cases(options: Options) -> Vec<Case> {
    let mut cases = shapes::cases(options);
    cases.extend(features::cases());
    cases.extend(pruning::cases());
    cases.extend(lists::cases());
    cases.extend(grids::cases());
    cases.extend(reuse::cases());
    cases.extend(files::cases());
    cases.extend(challenge::cases());
    cases.extend(passes::cases());
    cases.extend(workers::cases());
    cases.extend(half::cases());
    cases.extend(refusals::cases());
    cases
}
