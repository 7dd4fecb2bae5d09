//! SpMM on tensor cores: what the other cases, made for rows, do not reach.
//!
//! | module | cases of |
//! | --- | --- |
//! | `shapes` | sizes around tiles, chunks of 32 columns, and groups of 8 rows |
//! | `values` | numbers that tensor cores, or the parts of `f32` that they multiply, cannot hold |
//! | `plans` | options, alignment, and what plans share |
mod plans;
mod shapes;
mod values;

use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::spmm::MEDIUM_ROWS;
use lacuna::{Index, LONG_ROWS, Precision};

use super::Problem;
use super::conform::conform_on_tiles;
use crate::{Case, Context, Number};

/// The lowest compute capability with these kernels.
pub(super) const MIN_SM: u32 = 80;
/// The compute capability with those for prepacked weights.
const PREPACKED_SM: u32 = 90;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = shapes::cases();
    cases.extend(values::cases());
    cases.extend(plans::cases());
    cases
}

/// Types of values that a case takes on the simulator. A GPU takes all.
#[derive(Clone, Copy, PartialEq)]
enum Types {
    All,
    /// `f32` in parts, and `f16`.
    SplitAndF16,
    /// `f32` cut to TF32, and `bf16`.
    Tf32AndBf16,
}

impl Types {
    /// Half of them: sizes that are side by side take the two halves in turn.
    fn in_turn(turn: usize) -> Self {
        if turn.is_multiple_of(2) { Self::SplitAndF16 } else { Self::Tf32AndBf16 }
    }
}

/// A case that makes a problem from a seed and checks it on tensor cores.
fn case(
    name: String,
    about: String,
    types: Types,
    make: impl Fn(u64) -> Result<Problem> + Send + Sync + 'static,
) -> Case {
    Case::new(format!("spmm/tiles/{name}"), about, move |cx| conform(cx, types, &make(cx.seed)?))
}

/// Checks a problem by every algorithm on tensor cores that there is for its N, with `f32` in parts and cut to TF32,
/// and with values rounded to 16 bits; gives the largest error over its bound.
fn conform(cx: &Context<'_>, types: Types, problem: &Problem) -> Result<f64> {
    let types = if cx.device.is_simulator() { types } else { Types::All };
    let mut worst = 0.0_f64;
    if types != Types::Tf32AndBf16 {
        worst = worst.max(conform_as::<f32, u32>(cx, problem, Precision::Single)?);
        worst = worst.max(conform_as::<f16, u16>(cx, problem, Precision::Single)?);
    }
    if types != Types::SplitAndF16 {
        worst = worst.max(conform_as::<f32, u16>(cx, problem, Precision::Tf32)?);
        worst = worst.max(conform_as::<bf16, u32>(cx, problem, Precision::Single)?);
    }
    Ok(worst)
}

fn conform_as<T: Number, I: Index>(cx: &Context<'_>, problem: &Problem, precision: Precision) -> Result<f64> {
    let of = || format!("{} and {}, {precision:?}", T::TYPE, I::TYPE);
    let (worst, tiles) = conform_on_tiles::<T, I>(cx, problem, precision).with_context(of)?;
    // Rows of 16 bytes, by warpgroups of 8; and where three products stand for one, rows of A that are long enough: for prepacked
    // weights, medium ones.
    let is_newest = cx.device.info().sm == PREPACKED_SM;
    let row_bytes = if is_newest && size_of::<T>() == 2 { 8 } else { 16 };
    let whole = (problem.n * size_of::<T>()).is_multiple_of(row_bytes);
    let split = size_of::<T>() == 4 && precision == Precision::Single;
    let least = if is_newest { MEDIUM_ROWS } else { LONG_ROWS };
    let exact = !split || problem.a.nnz() >= least * problem.a.rows();
    let expected = whole && exact && cx.device.info().sm >= MIN_SM;
    ensure!((tiles > 0) == expected, "{}: {tiles} kernels are legal", of());
    Ok(worst)
}
