//! SDDMM: D = (A·Bᵀ) ⊙ I\[C\] with C sparse, or scaled by C.
//!
//! [`conform()`] is the check that the cases on lengths, shapes and values share; the other modules make problems for it.
mod api;
mod batches;
mod conform;
mod lengths;
mod problem;
mod random;
mod refusals;
mod shapes;
mod splits;
mod tiles;
mod tuned;
mod values;

pub use conform::conform;
pub use problem::Problem;
pub(crate) use problem::transposed;

use crate::{Case, Effort, Options};

/// All cases of SDDMM.
pub(crate) fn cases(options: Options) -> Vec<Case> {
    let mut cases = lengths::cases();
    cases.extend(shapes::cases());
    cases.extend(tiles::cases());
    cases.extend(splits::cases());
    cases.extend(values::cases());
    cases.extend(batches::cases());
    cases.extend(api::cases());
    cases.extend(refusals::cases());
    cases.extend(tuned::cases());
    cases.extend(random::cases(options));
    cases
}

/// A case that makes a problem from a seed and checks it.
fn case(
    name: String,
    about: String,
    effort: Effort,
    make: impl Fn(u64) -> anyhow::Result<Problem> + Send + Sync + 'static,
) -> Case {
    Case::new(name, about, move |cx| conform(cx, &make(cx.seed)?)).effort(effort)
}
