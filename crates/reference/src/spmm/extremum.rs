//! The greatest or the least product of each row, which nonzero it is of, and the gradients.
//!
//! # How far a result may be off
//! Not at all: rounding keeps order, so that the greatest of the rounded products is the greatest product, rounded. What `f32` makes
//! of it is known to the bit. The winner is the first nonzero whose *rounded* product is that number, which is known as well; of
//! NaNs it is the first. A gradient is the sum of the products at the elements that a nonzero, or a row of B, won
//! ([`bound`](crate::bound)).
use std::marker::PhantomData;

use lacuna_matrix::Csr;
use rayon::prelude::*;

use super::Epilogue;
use crate::bound::{Legal, Sum, is_tiny, tiny};
use crate::{ErrorReport, Mismatch, Precision, ReferenceError, Value, elements};

/// Which product of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extremum {
    /// The greatest.
    Greatest,
    /// The least.
    Least,
}

/// The winner of a row without nonzeros.
const NO_WINNER: u32 = u32::MAX;

/// The greatest or the least product of each row and column.
#[derive(Debug, Clone)]
pub struct ExtremumReference<T = f32> {
    /// Rows of C.
    rows: usize,
    n: usize,
    /// The rows that were computed, in the order of the arrays below.
    computed: Vec<usize>,
    /// Nonzeros of each.
    terms: Vec<u32>,
    products: Vec<f32>,
    winners: Vec<u32>,
    result: PhantomData<T>,
}

/// The greatest or the least of the products of A, of `a.rows() × a.cols()`, and B, of `a.cols() × n`, row by row.
///
/// # Errors
/// If `b` has not `a.cols() × n` elements, or a row has 2³² nonzeros.
pub fn spmm_extremum<T: Value>(
    a: &Csr<T>,
    b: &[T],
    n: usize,
    extremum: Extremum,
) -> Result<ExtremumReference<T>, ReferenceError> {
    spmm_extremum_rows(a, b, n, extremum, 0..a.rows())
}

/// As [`spmm_extremum`] for some rows of C, to check large results by samples.
///
/// # Errors
/// As there, and if a row is not a row of A.
pub fn spmm_extremum_rows<T: Value>(
    a: &Csr<T>,
    b: &[T],
    n: usize,
    extremum: Extremum,
    rows: impl IntoIterator<Item = usize>,
) -> Result<ExtremumReference<T>, ReferenceError> {
    if a.cols().checked_mul(n) != Some(b.len()) {
        return Err(ReferenceError::DenseLength { rows: a.cols(), cols: n, got: b.len() });
    }
    let computed: Vec<usize> = rows.into_iter().collect();
    if let Some(&row) = computed.iter().find(|&&row| row >= a.rows()) {
        return Err(ReferenceError::RowOutOfRange { row, rows: a.rows() });
    }
    let elements = computed.len() * n;
    let (mut products, mut winners) = (vec![0.0; elements], vec![NO_WINNER; elements]);
    if n > 0 {
        let rows = products.par_chunks_mut(n).zip(winners.par_chunks_mut(n)).zip(&computed);
        rows.for_each(|((products, winners), &row)| {
            for at in a.pattern().row_range(row) {
                let of_b = &b[a.col_indices()[at] as usize * n..][..n];
                for ((best, winner), x) in products.iter_mut().zip(winners.iter_mut()).zip(of_b) {
                    let product = a.values()[at].to_f32() * x.to_f32();
                    let is_better = match extremum {
                        Extremum::Greatest => product > *best,
                        Extremum::Least => product < *best,
                    };
                    if *winner == NO_WINNER || !best.is_nan() && (is_better || product.is_nan()) {
                        (*best, *winner) = (product, at as u32);
                    }
                }
            }
        });
    }
    let terms = computed.iter().map(|&row| a.pattern().row_range(row).len() as u32).collect();
    let rows = a.rows();
    Ok(ExtremumReference { rows, n, computed, terms, products, winners, result: PhantomData })
}

impl<T: Value> ExtremumReference<T> {
    /// Which nonzero of A won each element of the computed rows of C, row by row; `u32::MAX` in rows without nonzeros.
    pub fn winners(&self) -> &[u32] {
        &self.winners
    }

    /// Checks a whole C, row by row, at the rows that were computed: each element is the product, exactly, with the epilogue's roundings. A zero is +0, unless
    /// the epilogue may make another of it.
    ///
    /// # Errors
    /// If `got` or a part of the epilogue has the wrong length, `lo` is not at most `hi`, or an element is wrong.
    pub fn check_with(&self, epilogue: &Epilogue<'_, T>, got: &[T]) -> Result<ErrorReport, Mismatch> {
        if self.rows.checked_mul(self.n) != Some(got.len()) {
            return Err(Mismatch::Length { rows: self.rows, cols: self.n, got: got.len() });
        }
        epilogue.check(self.rows, self.n)?;
        let rows = self.computed.iter().flat_map(|&row| &got[row * self.n..][..self.n]);
        let got: Vec<T> = rows.copied().collect();
        let legal = |at: usize| {
            let row = self.computed[at / self.n];
            let (finish, before) = epilogue.of(row, row * self.n + at % self.n);
            finish.legal_of(Legal::exactly(f64::from(self.products[at])), before)
        };
        let tell = |at: usize| (legal(at), self.terms[at / self.n]);
        let checked = elements::check(&got, got.len(), self.n, |at, got| legal(at).judge(got), tell);
        // Rows are told by their place in C.
        let place = |row: usize| self.computed[row];
        checked
            .map(|mut report| {
                report.worst_at = report.worst_at.map(|(row, column)| (place(row), column));
                report
            })
            .map_err(|mut mismatch| {
                if let Mismatch::Elements { row, .. } = &mut mismatch {
                    *row = place(*row);
                }
                mismatch
            })
    }
}

/// Sums of products by the places that they go to.
#[derive(Debug, Clone)]
pub struct ExtremumGradient<T = f32> {
    cols: usize,
    sums: Vec<Sum>,
    result: PhantomData<T>,
}

impl<T: Value> ExtremumGradient<T> {
    fn new(rows: usize, cols: usize) -> Self {
        let none = Sum { terms: 0, value: 0.0, magnitude: 0.0, tiny: 0.0 };
        Self { cols, sums: vec![none; rows * cols], result: PhantomData }
    }

    fn add(&mut self, at: usize, x: T, y: T) {
        let (x, y) = (x.to_f32(), y.to_f32());
        let product = f64::from(x) * f64::from(y);
        let sum = &mut self.sums[at];
        sum.terms += 1;
        sum.value += product;
        sum.magnitude += if product.is_finite() { product.abs() } else { 0.0 };
        sum.tiny += if is_tiny(x) || is_tiny(y) { tiny(x, y) } else { 0.0 };
    }

    /// Checks a gradient, as [`Sum::legal`] says.
    ///
    /// # Errors
    /// If `got` has the wrong length, or an element is wrong.
    pub fn check(&self, got: &[T]) -> Result<ErrorReport, Mismatch> {
        let legal = |at: usize| self.sums[at].legal(Precision::Fp32);
        let tell = |at: usize| (legal(at), self.sums[at].terms);
        elements::check(got, self.sums.len(), self.cols, |at, got| legal(at).judge(got), tell)
    }
}

/// The gradients of A's values, one a nonzero, and of B, K×N, where `gradient` is that of C, M×N, and `winners` says which
/// nonzero each of its elements is of.
///
/// # Panics
/// If the operands do not fit each other, or a winner is not a nonzero of its row.
pub fn spmm_extremum_gradient<T: Value>(
    a: &Csr<T>,
    b: &[T],
    n: usize,
    winners: &[u32],
    gradient: &[T],
) -> [ExtremumGradient<T>; 2] {
    assert_eq!((winners.len(), gradient.len(), b.len()), (a.rows() * n, a.rows() * n, a.cols() * n));
    let (mut of_values, mut of_b) = (ExtremumGradient::new(a.nnz(), 1), ExtremumGradient::new(a.cols(), n));
    for (at, (&winner, &gradient)) in winners.iter().zip(gradient).enumerate() {
        if winner == NO_WINNER {
            continue;
        }
        let (row, column, winner) = (at / n, at % n, winner as usize);
        assert!(a.pattern().row_range(row).contains(&winner), "row {row} has no nonzero {winner}");
        let place = a.col_indices()[winner] as usize * n + column;
        of_values.add(winner, gradient, b[place]);
        of_b.add(place, gradient, a.values()[winner]);
    }
    [of_values, of_b]
}
