//! A product with options: an epilogue, gaps between rows, batches.
use anyhow::{Context as _, Result, ensure};
use lacuna::matrix::{Csr, Pattern, generate};
use lacuna::spmm::Reduce;
use lacuna::{CsrMatrix, Index, Spmm, spmm};
use lacuna_reference::{Epilogue, Extremum};

use super::arithmetic::precision_at;
use super::guarded::{Guarded, Placement};
use crate::{Context, Number};
use lacuna_cases::number::rounded;

/// What fills C where nothing may be written.
const GAP: f32 = 12345.0;

/// Matrices of one pattern, and what is asked for.
#[derive(Clone)]
pub(super) struct Product<T> {
    /// One matrix for the whole batch, or one for each product.
    pub(super) a: Vec<Csr<T>>,
    /// Columns of B.
    pub(super) n: usize,
    pub(super) options: spmm::Options,
    /// One value a row of C.
    pub(super) bias: Option<Vec<T>>,
    /// Whether A is prepacked, where it is one matrix.
    is_prepacked: bool,
    seed: u64,
}

impl<T: Number> Product<T> {
    /// One matrix with drawn values, and no bias.
    pub(super) fn new(pattern: &Pattern, n: usize, options: spmm::Options, seed: u64) -> Result<Self> {
        let mut product = Self { a: Vec::new(), n, options, bias: None, is_prepacked: false, seed };
        product.push_matrix(pattern, seed ^ 1)?;
        Ok(product)
    }

    /// With one more matrix of the batch.
    pub(super) fn push_matrix(&mut self, pattern: &Pattern, seed: u64) -> Result<()> {
        let values = generate::random_values(pattern.nnz(), seed);
        self.a.push(Csr::with_values(pattern.clone(), rounded(&values))?);
        Ok(())
    }

    /// With a bias, if asked for.
    pub(super) fn bias(self, wanted: bool) -> Self {
        let rows = self.a[0].rows();
        let bias = wanted.then(|| rounded(&generate::random_values(rows, self.seed ^ 4)));
        Self { bias, ..self }
    }

    /// With A prepacked.
    pub(super) fn prepacked(self) -> Self {
        Self { is_prepacked: true, ..self }
    }

    /// With other options.
    pub(super) fn options(&self, options: spmm::Options) -> Self {
        Self { options, ..self.clone() }
    }

    /// Elements from row to row and from matrix to matrix, of B and of C.
    fn strides(&self) -> [[usize; 2]; 2] {
        let spmm::Options { b_stride, c_stride, b_batch_stride, c_batch_stride, .. } = self.options;
        let a = &self.a[0];
        [(a.cols(), b_stride, b_batch_stride), (a.rows(), c_stride, c_batch_stride)].map(
            |(rows, stride, batch)| {
                let stride = stride.unwrap_or(self.n);
                [stride, batch.unwrap_or(rows * stride)]
            },
        )
    }

    /// Runs at a placement; gives the largest error over its bound.
    pub(super) fn check<I: Index>(&self, cx: &Context<'_>, at: Placement) -> Result<f64> {
        let a = if self.is_prepacked {
            CsrMatrix::<T, I>::prepacked(cx.device, &self.a[0])?
        } else {
            let values: Vec<T> = self.a.iter().flat_map(|a| a.values()).copied().collect();
            CsrMatrix::with_index(cx.device, &self.a[0])?.with_value_batch(self.a.len(), &values)?
        };
        let plan = Spmm::plan_with(&a, self.n, self.options)?;
        let [b_strides, c_strides] = self.strides();

        // Gaps of B are NaN: what reads them shows. Without beta, so is C.
        let mut b = vec![T::CANARY; plan.input_len()];
        let mut before = vec![T::from_f32(GAP); plan.output_len()];
        for product in 0..self.options.batch {
            let seed = self.seed ^ (product as u64 * 16);
            let fill = |to: &mut [T], values: &[T], [stride, batch]: [usize; 2]| {
                for (row, values) in values.chunks(self.n).enumerate() {
                    to[product * batch + row * stride..][..self.n].copy_from_slice(values);
                }
            };
            let draw = |rows: usize, seed: u64| rounded(&generate::random_values(rows * self.n, seed));
            fill(&mut b, &draw(a.cols(), seed ^ 2), b_strides);
            let mut c = draw(a.rows(), seed ^ 3);
            if self.options.beta == 0.0 {
                c.fill(T::POISON);
            }
            fill(&mut before, &c, c_strides);
        }

        let b_buffer = Guarded::new(cx.device, &b, at.b)?;
        let mut c_buffer = Guarded::new(cx.device, &before, at.c)?;
        let bias = self.bias.as_ref().map(|bias| cx.device.upload(bias)).transpose()?;
        let bias = bias.as_ref().map(lacuna::Buffer::as_slice);
        let operands = spmm::Operands { a: &a, b: b_buffer.slice()?, c: c_buffer.slice_mut()?, bias };
        plan.run_with(cx.stream, operands)?;
        let after = c_buffer.read("C", cx.stream)?;
        let precision = precision_at::<T>(plan.choice(), at);
        self.compare(&b, &before, &after, precision)
            .with_context(|| format!("{}, {at:?}", plan.choice().entry.name))
    }

    /// The largest error over its bound, if the gaps are as they were.
    fn compare(
        &self,
        b: &[T],
        before: &[T],
        after: &[T],
        precision: lacuna_reference::Precision,
    ) -> Result<f64> {
        let [b_strides, [c_stride, c_batch]] = self.strides();
        let spmm::Options { alpha, beta, lo, hi, batch, reduce, .. } = self.options;
        let mut worst = 0.0_f64;
        let mut owned = vec![false; after.len()];
        for product in 0..batch {
            let a = &self.a[product % self.a.len()];
            let own = |from: &[T], rows: usize, [stride, batch]: [usize; 2]| -> Vec<T> {
                let row = |row| &from[product * batch + row * stride..][..self.n];
                (0..rows).flat_map(row).copied().collect()
            };
            let c_strides = [c_stride, c_batch];
            let b = own(b, a.cols(), b_strides);
            let c = &own(before, a.rows(), c_strides);
            let epilogue = Epilogue { alpha, beta, c, bias: self.bias.as_deref(), lo, hi };
            let after = own(after, a.rows(), c_strides);
            let sums = || lacuna_reference::spmm(a, &b, self.n)?.precision(precision);
            let extremum = |extremum| lacuna_reference::spmm_extremum(a, &b, self.n, extremum);
            let report = match reduce {
                Reduce::Mean => sums()?.mean().check_with(&epilogue, &after),
                Reduce::Max => extremum(Extremum::Greatest)?.check_with(&epilogue, &after),
                Reduce::Min => extremum(Extremum::Least)?.check_with(&epilogue, &after),
                _ => sums()?.check_with(&epilogue, &after),
            };
            let report = report.with_context(|| format!("product {product}"))?;
            worst = worst.max(report.worst_over_bound);
            for row in 0..a.rows() {
                owned[product * c_batch + row * c_stride..][..self.n].fill(true);
            }
        }
        let gap = T::from_f32(GAP).bits();
        let written = (0..after.len()).find(|&at| !owned[at] && after[at].bits() != gap);
        ensure!(written.is_none(), "C: its gap was written at element {}", written.unwrap_or_default());
        Ok(worst)
    }
}
