//! Attention under a sparse mask.
//!
//! [`conform()`] is the check that the cases on shapes and values share; the other modules make problems for it.
mod backward;
mod block_backward;
mod blocks;
mod conform;
mod groups;
mod masks;
mod problem;
mod refusals;
mod rules;
mod score_mods;
mod shapes;
mod strides;
mod tuned;
mod values;

pub use conform::conform;
pub use problem::Problem;

use crate::{Case, Effort};

/// All cases of attention.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = shapes::cases();
    cases.extend(masks::cases());
    cases.extend(blocks::cases());
    cases.extend(rules::cases());
    cases.extend(score_mods::cases());
    cases.extend(groups::cases());
    cases.extend(values::cases());
    cases.extend(backward::cases());
    cases.extend(block_backward::cases());
    cases.extend(strides::cases());
    cases.extend(refusals::cases());
    cases.extend(tuned::cases());
    cases
}

/// A case that makes a problem from a seed and checks it.
fn case(
    name: String,
    about: impl Into<String>,
    effort: Effort,
    make: impl Fn(u64) -> anyhow::Result<Problem> + Send + Sync + 'static,
) -> Case {
    Case::new(name, about, move |cx| conform(cx, &make(cx.seed)?)).effort(effort)
}
