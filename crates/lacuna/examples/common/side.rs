//! A sparse matrix and two dense factors: the products that both solvers are made of.
//!
//! A matrix X (M×N) stands between a factor A with a row for each row of X, and a factor B with a row for each column of
//! it, both of `rank` columns. Seen from A, B is fixed and
//!
//! - (A·Bᵀ) at X's nonzeros is an SDDMM,
//! - V·B, for values V at these nonzeros, is an SpMM.
//!
//! Seen from B both are the same of Xᵀ. A [`Side`] is one of these two views.
use std::sync::Arc;
use std::time::{Duration, Instant};

use lacuna::matrix::{Csr, Pattern};
use lacuna::{Buffer, CsrMatrix, Device, Result, Sddmm, Spmm, Stream};

/// Who computes the products at the nonzeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inner {
    /// [`Sddmm`], on the device.
    Kernel,
    /// The host, which makes the dense product and keeps what is wanted of it: what SDDMM replaces.
    Plain,
}

/// One view of a matrix: its values, which change, and the factor that is fixed meanwhile.
pub(crate) struct Side {
    values: CsrMatrix,
    products: Products,
    spmm: Spmm,
    moving: Buffer<f32>,
    fixed: Buffer<f32>,
    sums: Buffer<f32>,
    inner_time: Duration,
}

/// What [`Inner`] needs.
enum Products {
    Kernel(Box<Sddmm>),
    Plain { pattern: Arc<Pattern>, rank: usize, fixed: Vec<f32> },
}

impl Side {
    /// Both views of `x`, for factors of `rank` columns: that by rows, and that by columns.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn pair(
        device: &Device,
        stream: &Stream,
        x: &Csr<f32>,
        rank: usize,
        inner: Inner,
    ) -> Result<(Self, Self)> {
        let rows = CsrMatrix::new(device, x)?;
        let columns = rows.transposed(stream)?;
        let [of_rows, of_columns] = match inner {
            Inner::Kernel => [Sddmm::plan(&rows, rank)?, Sddmm::plan(&columns, rank)?]
                .map(|plan| Products::Kernel(Box::new(plan))),
            Inner::Plain => {
                let patterns = [Arc::clone(x.pattern()), Arc::clone(x.transpose().pattern())];
                patterns.map(|pattern| Products::Plain { pattern, rank, fixed: Vec::new() })
            }
        };
        Ok((Self::new(device, rows, rank, of_rows)?, Self::new(device, columns, rank, of_columns)?))
    }

    fn new(device: &Device, values: CsrMatrix, rank: usize, products: Products) -> Result<Self> {
        Ok(Self {
            products,
            spmm: Spmm::plan(&values, rank)?,
            moving: device.zeros(values.rows() * rank)?,
            fixed: device.zeros(values.cols() * rank)?,
            sums: device.zeros(values.rows() * rank)?,
            inner_time: Duration::ZERO,
            values,
        })
    }

    /// Fixes the other factor: as many rows as this view has columns.
    ///
    /// # Errors
    /// A length that does not fit; what the device says.
    pub(crate) fn fix(&mut self, factor: &[f32]) -> Result<()> {
        if let Products::Plain { fixed, .. } = &mut self.products {
            *fixed = factor.to_vec();
        }
        self.fixed.upload(factor)
    }

    /// (A·Bᵀ) at the nonzeros, for this A and the fixed B. The values on the device are lost.
    ///
    /// # Errors
    /// A length that does not fit; what the device says.
    pub(crate) fn products(&mut self, stream: &Stream, factor: &[f32]) -> Result<Vec<f32>> {
        let start = Instant::now();
        let products = match &self.products {
            Products::Kernel(sddmm) => {
                self.moving.upload(factor)?;
                sddmm.run(stream, self.moving.as_slice(), self.fixed.as_slice(), &mut self.values)?;
                self.values.values()?.download(stream)?
            }
            Products::Plain { pattern, rank, fixed } => plain_products(pattern, *rank, factor, fixed),
        };
        self.inner_time += start.elapsed();
        Ok(products)
    }

    /// Replaces the values: one a nonzero, row by row.
    ///
    /// # Errors
    /// A length that does not fit; what the device says.
    pub(crate) fn set_values(&mut self, values: &[f32]) -> Result<()> {
        self.values.values_mut()?.upload(values)
    }

    /// Takes the values of the other view, and gives them in the order of this one.
    ///
    /// # Errors
    /// A view of another matrix; what the device says.
    pub(crate) fn take_values(&mut self, stream: &Stream, other: &Self) -> Result<Vec<f32>> {
        self.values.update_from(stream, &other.values)?;
        self.values.values()?.download(stream)
    }

    /// V·B, for the values V and the fixed B.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn sums(&mut self, stream: &Stream) -> Result<Vec<f32>> {
        self.spmm.run(stream, &self.values, self.fixed.as_slice(), self.sums.as_slice_mut())?;
        self.sums.download(stream)
    }

    /// The time that went into [`products`](Self::products), copies included, since this was last asked.
    pub(crate) fn take_inner_time(&mut self) -> Duration {
        std::mem::take(&mut self.inner_time)
    }
}

/// A·Bᵀ in full, a row at a time, of which the row's nonzeros are kept.
fn plain_products(pattern: &Pattern, rank: usize, a: &[f32], b: &[f32]) -> Vec<f32> {
    let mut dense_row = vec![0.0; pattern.cols()];
    let mut products = Vec::with_capacity(pattern.nnz());
    for (a_row, ends) in a.chunks_exact(rank).zip(pattern.row_offsets().windows(2)) {
        for (product, b_row) in dense_row.iter_mut().zip(b.chunks_exact(rank)) {
            *product = a_row.iter().zip(b_row).map(|(a, b)| a * b).sum();
        }
        let columns = &pattern.col_indices()[ends[0] as usize..ends[1] as usize];
        products.extend(columns.iter().map(|&column| dense_row[column as usize]));
    }
    products
}
