//! Sparse factor analysis by alternating least squares: X ≈ A·Bᵀ at the nonzeros of X.
//!
//! The objective is ½·‖R‖² + ½·λ·(‖A‖² + ‖B‖²), with residuals R = X − A·Bᵀ at X's nonzeros alone. With B fixed it is a
//! least-squares problem for each row of A. A few steps of conjugate gradients (in the form for least squares, CGLS) go
//! towards all of their solutions at once, and no matrix of such a problem is ever made:
//!
//! - the slope of the objective is λ·A − R·B: an SpMM;
//! - what a step along D does to the residuals is (D·Bᵀ) at the nonzeros: an SDDMM.
//!
//! How far to go each row finds from its own part of the two. No step makes the objective larger. B has its turn with Rᵀ.
use std::time::Instant;

use lacuna::matrix::{Csr, generate};
use lacuna::{Device, Result, Stream};

use crate::clock::Took;
use crate::side::{Inner, Side};

/// What may be asked of the solver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Columns of A and B; not 0.
    pub(crate) rank: usize,
    /// λ: what keeps factors small.
    pub(crate) regularization: f32,
    /// Steps of conjugate gradients for each factor in a step.
    pub(crate) cg_steps: usize,
    pub(crate) inner: Inner,
    /// Of the B to start from.
    pub(crate) seed: u64,
}

/// Where the solver stands after a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// What is minimised.
    pub(crate) objective: f64,
    /// Root mean square of the residuals; NaN where there is none.
    pub(crate) error: f64,
    pub(crate) took: Took,
}

/// A matrix and its factors so far.
pub(crate) struct FactorAnalysis {
    options: Options,
    stream: Stream,
    rows: Side,
    columns: Side,
    /// Where each row of X starts, and each row of Xᵀ, and the ends.
    offsets: [Vec<u32>; 2],
    x: Vec<f32>,
    /// A: a row for each row of X.
    pub(crate) a: Vec<f32>,
    /// B: a row for each column of X.
    pub(crate) b: Vec<f32>,
    residuals: Vec<f32>,
}

impl FactorAnalysis {
    /// Starts with A = 0 and a random B.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn new(device: &Device, x: &Csr<f32>, options: Options) -> Result<Self> {
        let stream = device.stream()?;
        let (rows, columns) = Side::pair(device, &stream, x, options.rank, options.inner)?;
        Ok(Self {
            a: vec![0.0; x.rows() * options.rank],
            b: generate::random_values(x.cols() * options.rank, options.seed),
            residuals: x.values().to_vec(),
            x: x.values().to_vec(),
            offsets: [x.row_offsets().to_vec(), x.transpose().row_offsets().to_vec()],
            options,
            stream,
            rows,
            columns,
        })
    }

    /// One step: A, then B, then residuals anew, so that what rounding does to them does not add up.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn step(&mut self) -> Result<Progress> {
        let start = Instant::now();
        let Self { options, stream, rows, columns, offsets, x, a, b, residuals } = self;
        rows.set_values(residuals)?;
        improve(rows, stream, &offsets[0], a, b, residuals, options)?;
        let mut turned = columns.take_values(stream, rows)?;
        improve(columns, stream, &offsets[1], b, a, &mut turned, options)?;

        rows.fix(b)?;
        let products = rows.products(stream, a)?;
        for ((residual, x), product) in residuals.iter_mut().zip(&*x).zip(&products) {
            *residual = x - product;
        }
        let squares = sum_of_squares(residuals);
        let sizes = sum_of_squares(a) + sum_of_squares(b);
        let inner = rows.take_inner_time() + columns.take_inner_time();
        Ok(Progress {
            objective: 0.5 * (squares + f64::from(options.regularization) * sizes),
            error: (squares / x.len() as f64).sqrt(),
            took: Took { step: start.elapsed(), inner },
        })
    }
}

/// Steps of conjugate gradients for `factor`. The side holds its residuals, before and after.
///
/// Updates of factors and residuals are the host's: the library has products, and no sums of vectors.
fn improve(
    side: &mut Side,
    stream: &Stream,
    offsets: &[u32],
    factor: &mut [f32],
    fixed: &[f32],
    residuals: &mut [f32],
    options: &Options,
) -> Result<()> {
    let &Options { rank, regularization, cg_steps, .. } = options;
    let nonzeros = |row: usize| offsets[row] as usize..offsets[row + 1] as usize;
    side.fix(fixed)?;
    let mut descent = downhill(side, stream, factor, regularization)?;
    let mut direction = descent.clone();
    let mut slopes: Vec<f64> = descent.chunks_exact(rank).map(sum_of_squares).collect();
    for step in 1..=cg_steps {
        let change = side.products(stream, &direction)?;
        for (row, &slope) in slopes.iter().enumerate() {
            let (factor, direction) = (&mut factor[row * rank..][..rank], &direction[row * rank..][..rank]);
            let (residuals, change) = (&mut residuals[nonzeros(row)], &change[nonzeros(row)]);
            let curvature = sum_of_squares(change) + f64::from(regularization) * sum_of_squares(direction);
            let length = quotient(slope, curvature);
            add(factor, length, direction);
            add(residuals, -length, change);
        }
        side.set_values(residuals)?;
        if step == cg_steps {
            break;
        }
        descent = downhill(side, stream, factor, regularization)?;
        for (row, slope) in slopes.iter_mut().enumerate() {
            let (direction, descent) = (&mut direction[row * rank..][..rank], &descent[row * rank..][..rank]);
            let new_slope = sum_of_squares(descent);
            let kept = quotient(new_slope, *slope);
            for (direction, descent) in direction.iter_mut().zip(descent) {
                *direction = descent + kept * *direction;
            }
            *slope = new_slope;
        }
    }
    Ok(())
}

/// The direction in which the objective falls fastest: R·B − λ·A.
fn downhill(side: &mut Side, stream: &Stream, factor: &[f32], regularization: f32) -> Result<Vec<f32>> {
    let mut descent = side.sums(stream)?;
    add(&mut descent, -regularization, factor);
    Ok(descent)
}

/// 0 where there is nothing to divide by: such a row has arrived, or has no nonzeros.
fn quotient(over: f64, under: f64) -> f32 {
    if under > 0.0 { (over / under) as f32 } else { 0.0 }
}

fn add(to: &mut [f32], scale: f32, what: &[f32]) {
    for (to, what) in to.iter_mut().zip(what) {
        *to += scale * what;
    }
}

fn sum_of_squares(of: &[f32]) -> f64 {
    of.iter().map(|&x| f64::from(x).powi(2)).sum()
}
