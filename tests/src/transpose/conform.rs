//! The check of one matrix.
use anyhow::{Context as _, Result, ensure};
use lacuna::matrix::{Csr, generate};
use lacuna::{CsrMatrix, Spmm};

use crate::Context;
use crate::expect::same_bits;
use crate::spmm::product;

/// Columns of B in the products: odd, and more than a vector.
const N: usize = 5;

/// Transposes `host` on the device twice, and compares with the host. Gives the largest error of the products over its
/// bound.
///
/// # Errors
/// What is wrong.
pub fn conform(cx: &Context<'_>, host: &Csr<f32>) -> Result<f64> {
    let a = CsrMatrix::new(cx.device, host)?;
    let t = a.transposed(cx.stream)?;
    let expected = host.transpose();
    ensure!(
        *t.stats() == expected.pattern().stats(),
        "the pattern of Aᵀ is {:?}, not {:?}",
        t.stats(),
        expected.pattern().stats()
    );
    let permutation = a.transposed_pattern(cx.stream)?.permutation().download(cx.stream)?;
    let order = order(host)?;
    if let Some(at) = order.iter().zip(&permutation).position(|(a, b)| a != b) {
        anyhow::bail!("nonzero {at} of Aᵀ is {} of A, not {}", permutation[at], order[at]);
    }
    ensure!(permutation.len() == order.len(), "{} places for {} nonzeros", permutation.len(), order.len());
    same_bits("values on the host, then on the device", expected.values(), &values(cx, &t)?, 0)?;
    let error = multiply(cx, &t, &expected)?;

    // Another matrix with this pattern: all is worked out again, and comes out the same.
    let again = CsrMatrix::new(cx.device, host)?;
    let repeated = again.transposed_pattern(cx.stream)?.permutation().download(cx.stream)?;
    ensure!(repeated == permutation, "two transposes of one pattern differ");
    // Aᵀ is a matrix as any other: it can be transposed, which gives A again.
    let back = t.transposed(cx.stream).context("of Aᵀ")?;
    ensure!(*back.stats() == *a.stats(), "the transpose of Aᵀ is {:?}, not {:?}", back.stats(), a.stats());
    same_bits("values of A, then of Aᵀᵀ", host.values(), &values(cx, &back)?, 0)?;
    Ok(error.max(multiply(cx, &back, host).context("Aᵀᵀ")?))
}

/// A product on the device against the oracle: the largest error over its bound.
pub(super) fn multiply(cx: &Context<'_>, matrix: &CsrMatrix, host: &Csr<f32>) -> Result<f64> {
    let plan = Spmm::plan(matrix, N)?;
    let b = generate::random_values(plan.input_len(), cx.seed ^ 5);
    Ok(product(cx, &plan, matrix, host, &b, N)?.0)
}

pub(super) fn values(cx: &Context<'_>, matrix: &CsrMatrix) -> Result<Vec<f32>> {
    Ok(matrix.values()?.download(cx.stream)?)
}

/// For each nonzero of Aᵀ its index in A, by the host.
fn order(host: &Csr<f32>) -> Result<Vec<u32>> {
    let numbered = Csr::with_values(host.pattern().clone(), (0..host.nnz() as u32).collect())?;
    Ok(numbered.transpose().values().to_vec())
}
