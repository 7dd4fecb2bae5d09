//! SpMM: C = A·B with A sparse.
//!
//! [`conform()`] is the check that nearly all cases share; the other modules make problems for it.
mod ablation;
mod api;
pub(crate) mod arithmetic;
mod blocks;
mod columns;
mod conform;
mod epilogue;
pub(crate) mod guarded;
mod huge;
mod persistent;
mod pieces;
mod prepacked;
mod problem;
mod product;
mod random;
mod real;
mod reduce;
mod refusals;
mod rows;
mod shapes;
mod tiles;
mod tuned;
mod values;

pub use conform::conform;
pub use guarded::{Placement, Spot};
pub use problem::Problem;

use anyhow::Result;
use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Spmm};
use lacuna_cases::data::Data;

use crate::{Case, Context, Effort, Number, Options};

/// All cases of SpMM.
pub(crate) fn cases(options: Options, data: &Data) -> Vec<Case> {
    let mut cases = columns::cases();
    cases.extend(rows::cases());
    cases.extend(values::cases());
    cases.extend(shapes::cases());
    cases.extend(blocks::cases());
    cases.extend(persistent::cases());
    cases.extend(epilogue::cases());
    cases.extend(reduce::cases());
    cases.extend(pieces::cases());
    cases.extend(tiles::cases());
    cases.extend(prepacked::cases());
    cases.extend(huge::cases());
    cases.extend(refusals::cases());
    cases.extend(api::cases());
    cases.extend(ablation::cases());
    cases.extend(tuned::cases());
    cases.extend(random::cases(options));
    cases.extend(real::cases(data));
    cases
}

/// A product by a plan with `n` columns, on whole buffers: the largest error over its bound in `f32`, and C.
pub(crate) fn product(
    cx: &Context<'_>,
    plan: &Spmm,
    a: &CsrMatrix,
    host: &Csr<f32>,
    b: &[f32],
    n: usize,
) -> Result<(f64, Vec<f32>)> {
    let on_device = cx.device.upload(b)?;
    let mut c = cx.device.upload(&vec![f32::POISON; plan.output_len()])?;
    plan.run(cx.stream, a, on_device.as_slice(), c.as_slice_mut())?;
    let c = c.download(cx.stream)?;
    Ok((lacuna_reference::spmm(host, b, n)?.check(&c)?.worst_over_bound, c))
}

/// A case that makes a problem from a seed and checks it everywhere that [`Placement::USUAL`] names.
fn case(
    name: String,
    about: String,
    effort: Effort,
    make: impl Fn(u64) -> Result<Problem> + Send + Sync + 'static,
) -> Case {
    Case::new(name, about, move |cx| conform(cx, &make(cx.seed)?, &Placement::USUAL)).effort(effort)
}
