//! Embedding-bag lookup: sums and means of the rows of a table that bags name, and their gradients.

mod check;

use crate::bound::{Legal, MAX_TERMS, Precision, Sum};
use crate::{ReferenceError, Value};
use rayon::prelude::*;
use std::marker::PhantomData;
use std::ops::Range;

/// Bags of indices of a table's rows.
#[derive(Debug, Clone, Copy)]
pub struct NHotBags<'b> {
    /// Where each bag starts, and the end of the last: ascending from 0.
    pub offsets: &'b [usize],
    /// The rows, each below the table's.
    pub indices: &'b [usize],
    /// A weight for each index; 1 for none.
    pub weights: Option<&'b [f32]>,
    /// Indices of this row are left out.
    pub padding: Option<usize>,
    /// Whether a sum is divided by the number of its indices.
    pub mean: bool,
}

/// A lookup, or one of its gradients, in `f64`, and what is needed to judge a result of type `T`.
#[derive(Debug, Clone)]
pub struct NHotReference<T = f32> {
    columns: usize,
    /// What each element may be.
    legal: Vec<Legal>,
    /// The products in each row's sums.
    terms: Vec<u32>,
    result: PhantomData<T>,
}

impl NHotBags<'_> {
    fn bags(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The indices of a bag that count, as their numbers among all.
    fn counted(&self, bag: usize) -> impl Iterator<Item = usize> + Clone {
        let range: Range<usize> = self.offsets[bag]..self.offsets[bag + 1];
        range.filter(|&at| Some(self.indices[at]) != self.padding)
    }

    fn weight(&self, at: usize) -> f64 {
        self.weights.map_or(1.0, |weights| f64::from(weights[at]))
    }

    /// What a bag's sum is divided by.
    fn divisor(&self, bag: usize) -> u32 {
        if self.mean { self.counted(bag).count() as u32 } else { 1 }
    }
}

/// Sums or means of the rows that each bag names, of a `table` with rows of `columns`: a row a bag. A product is of a weight and
/// an element, as of two `f32`.
///
/// # Errors
/// If the table is not whole rows that hold all indices, there is not a weight for each index, or a bag has more than
/// [`MAX_TERMS`].
pub fn nhot<T: Value>(
    bags: &NHotBags<'_>,
    table: &[T],
    columns: usize,
) -> Result<NHotReference<T>, ReferenceError> {
    check_inputs(bags)?;
    expect_rows("the table", table.len(), bags.indices.iter().max().map_or(0, |max| max + 1), columns)?;
    let table = T::to_f32s(table);
    let rows = (0..bags.bags()).into_par_iter().map(|bag| {
        let divisor = bags.divisor(bag);
        let element = |column: usize| {
            let factors = bags
                .counted(bag)
                .map(|at| (bags.weight(at), f64::from(table[bags.indices[at] * columns + column])));
            let sum = sum(factors);
            if bags.mean { sum.legal_over(divisor, Precision::Fp32) } else { sum.legal(Precision::Fp32) }
        };
        let terms = bags.counted(bag).count() as u32;
        ((0..columns).map(element).collect(), terms)
    });
    NHotReference::of_rows(columns, rows.collect())
}

/// The gradient of a table of `table_rows` rows from that of the result, `slopes`, which has a row a bag. Each product is one
/// of weight, element and, in a mean, one over the bag's number: two roundings more than of two factors. A weight over that
/// number is not subnormal.
///
/// # Errors
/// As [`nhot`].
pub fn nhot_table_gradient<T: Value>(
    bags: &NHotBags<'_>,
    slopes: &[T],
    columns: usize,
    table_rows: usize,
) -> Result<NHotReference<T>, ReferenceError> {
    check_inputs(bags)?;
    expect_rows("the gradient of the result", slopes.len(), bags.bags(), columns)?;
    let slopes = T::to_f32s(slopes);
    let mut named = vec![Vec::new(); table_rows];
    for bag in 0..bags.bags() {
        let divisor = f64::from(bags.divisor(bag));
        for at in bags.counted(bag) {
            named[bags.indices[at]].push((bag, bags.weight(at) / divisor));
        }
    }
    let rows = named.into_par_iter().map(|named| {
        let element = |column: usize| {
            let factors = named.iter();
            let factors = factors.map(|&(bag, weight)| (weight, f64::from(slopes[bag * columns + column])));
            let sum = sum(factors);
            let more = if bags.mean && sum.terms > 0 { 2 } else { 0 };
            Sum { terms: sum.terms + more, ..sum }.legal(Precision::Fp32)
        };
        ((0..columns).map(element).collect(), named.len() as u32)
    });
    NHotReference::of_rows(columns, rows.collect())
}

/// The gradient of the weights: one a nonzero, as a column of `f32`.
///
/// # Errors
/// As [`nhot`].
pub fn nhot_weight_gradient<T: Value>(
    bags: &NHotBags<'_>,
    slopes: &[T],
    table: &[T],
    columns: usize,
) -> Result<NHotReference<f32>, ReferenceError> {
    check_inputs(bags)?;
    expect_rows("the gradient of the result", slopes.len(), bags.bags(), columns)?;
    expect_rows("the table", table.len(), bags.indices.iter().max().map_or(0, |max| max + 1), columns)?;
    let (slopes, table) = (T::to_f32s(slopes), T::to_f32s(table));
    let rows = (0..bags.bags()).into_par_iter().flat_map_iter(|bag| {
        let divisor = bags.divisor(bag);
        let (slopes, table) = (&slopes, &table);
        (bags.offsets[bag]..bags.offsets[bag + 1]).map(move |at| {
            let row = bags.indices[at];
            let counts = Some(row) != bags.padding;
            let columns_of_sum = if counts { columns } else { 0 };
            let factors = (0..columns_of_sum).map(|column| {
                (f64::from(slopes[bag * columns + column]), f64::from(table[row * columns + column]))
            });
            let sum = sum(factors);
            let legal = if counts && bags.mean {
                sum.legal_over(divisor, Precision::Fp32)
            } else {
                sum.legal(Precision::Fp32)
            };
            (vec![legal], columns_of_sum as u32)
        })
    });
    NHotReference::of_rows(1, rows.collect())
}

fn sum(factors: impl Iterator<Item = (f64, f64)>) -> Sum {
    let start = Sum { terms: 0, value: 0.0, magnitude: 0.0, tiny: 0.0 };
    factors.fold(start, |sum, (a, b)| {
        let product = a * b;
        let size = if product.is_finite() { product.abs() } else { 0.0 };
        Sum { terms: sum.terms + 1, value: sum.value + product, magnitude: sum.magnitude + size, ..sum }
    })
}

fn check_inputs(bags: &NHotBags<'_>) -> Result<(), ReferenceError> {
    let nnz = bags.indices.len();
    if let Some(got) = bags.weights.map(<[f32]>::len).filter(|&got| got != nnz) {
        return Err(ReferenceError::Values { what: "the weights", expected: nnz, got });
    }
    for (row, ends) in bags.offsets.windows(2).enumerate() {
        let terms = ends[1] - ends[0];
        if terms > MAX_TERMS as usize {
            return Err(ReferenceError::TooManyTerms { row, terms, max: MAX_TERMS });
        }
    }
    Ok(())
}

/// Whether there are `least` rows of `columns`, or more.
fn expect_rows(what: &'static str, got: usize, least: usize, columns: usize) -> Result<(), ReferenceError> {
    if got >= least * columns && (columns == 0 || got.is_multiple_of(columns)) {
        return Ok(());
    }
    Err(ReferenceError::FactorLength { what, rows: least, cols: columns, got })
}

impl<T: Value> NHotReference<T> {
    fn of_rows(columns: usize, rows: Vec<(Vec<Legal>, u32)>) -> Result<Self, ReferenceError> {
        let (legal, terms): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        if let Some(row) = terms.iter().position(|&terms| terms > MAX_TERMS - 2) {
            let terms = terms[row] as usize;
            return Err(ReferenceError::TooManyTerms { row, terms, max: MAX_TERMS - 2 });
        }
        Ok(Self { columns, legal: legal.into_iter().flatten().collect(), terms, result: PhantomData })
    }

    /// The elements in `f64`, row by row.
    pub fn value(&self) -> Vec<f64> {
        self.legal.iter().map(|legal| legal.value).collect()
    }
}
