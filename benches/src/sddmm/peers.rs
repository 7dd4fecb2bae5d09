//! The same sampled product by the vendor's libraries.
use anyhow::Result;
use lacuna_cases::Number;
use lacuna_vendor::cusparse::SddmmProblem;

use super::Operands;
use crate::arithmetic;
use crate::dense::DenseProduct;
use crate::peers::{
    CUSPARSE, CUSPARSE_KN, Context, CuBlasLibrary, CuSparseLibrary, DEFAULT, PeerSession, Peered, data_type,
};
use crate::record::PeerRecord;

/// cuSPARSE's one algorithm after its preprocessing.
const PREPARED: &str = "preprocessed";

/// How cuSPARSE gets B. Ours is N×K, its fast way; published comparisons have K×N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Nk,
    Kn,
}

impl Layout {
    /// Its peer's name in records.
    fn name(self) -> &'static str {
        match self {
            Self::Nk => CUSPARSE,
            Self::Kn => CUSPARSE_KN,
        }
    }
}

/// Measures the libraries that are there.
pub(super) fn measure<T: Number>(
    session: &mut PeerSession,
    context: &Context<'_>,
    operands: &Operands<T>,
) -> Peered {
    session.measure::<T>(
        context,
        |library| {
            let mut peered = Peered::default();
            for layout in [Layout::Nk, Layout::Kn] {
                let name = layout.name();
                let came_to = cusparse(library, context, operands, layout);
                peered.add(name, came_to.map(|measured| measured.best_and_default(name)));
            }
            Ok(peered)
        },
        |library| cublas(library, context, operands),
    )
}

/// cuSPARSE's algorithm as it comes, and prepared for the pattern. Neither that nor the transposition of B is timed.
fn cusparse<T: Number>(
    library: &mut CuSparseLibrary,
    context: &Context<'_>,
    operands: &Operands<T>,
    layout: Layout,
) -> Result<Peered> {
    let Context { device, stream, problem, .. } = *context;
    let transposed = match layout {
        Layout::Nk => None,
        Layout::Kn => {
            let b = operands.b.download(stream)?;
            Some(device.upload(&transposed(&b, problem.cols(), problem.width))?)
        }
    };
    let b = transposed.as_ref().unwrap_or(&operands.b);
    let row_offsets = device.upload(problem.sparse()?.row_offsets())?;
    let col_indices = device.upload(problem.sparse()?.col_indices())?;
    // Zeros, not NaN: the manual does not promise that D is not read, and multiplied by a factor of 0. What is not written
    // still shows.
    let unwritten = vec![T::from_f32(0.0); problem.matrix.elements()];
    let mut values = device.upload(&unwritten)?;
    let described = SddmmProblem {
        data_type: data_type::<T>(),
        m: problem.rows(),
        k: problem.width,
        n: problem.cols(),
        nnz: problem.matrix.elements(),
        a: operands.a.as_slice().address(),
        b: b.as_slice().address(),
        transposed_b: layout == Layout::Nk,
        row_offsets: row_offsets.as_slice().address(),
        col_indices: col_indices.as_slice().address(),
        values: values.as_slice().address(),
        stream: stream.as_raw(),
    };
    let (handle, version) = (library.handle()?, library.version()?);
    let ways = [DEFAULT, PREPARED].map(|way| (format!("{} {way}", layout.name()), way));
    Ok(Peered::of_each(ways, |way| {
        // SAFETY: the buffers outlive the product, have the stated lengths, and the pattern was checked when made; the
        // stream is of this device, whose context is current after the uploads above.
        let product = unsafe { handle.sddmm(&described, |bytes| context.workspace(bytes)) };
        let product = match product {
            Ok(product) => product,
            Err(error) if error.is_unsupported() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let prepared = way == PREPARED;
        let preprocess_us = prepared.then(|| context.by_host(|| product.preprocess())).transpose()?;
        values.upload(&unwritten)?;
        let judged_by = arithmetic::of_cusparse(data_type::<T>());
        let record = context.measure(
            way,
            &version,
            || product.run(),
            |stream| {
                let got = operands.checked.values(&values.download(stream)?);
                operands.error_over_bound(judged_by, &got)
            },
        )?;
        Ok(Some(PeerRecord { preprocess_us, ..record }))
    }))
}

/// A matrix of `rows` × `columns`, transposed.
fn transposed<T: Copy>(values: &[T], rows: usize, columns: usize) -> Vec<T> {
    (0..columns * rows).map(|at| values[at % rows * columns + at / rows]).collect()
}

/// The whole dense product.
fn cublas<T: Number>(
    library: &mut CuBlasLibrary,
    context: &Context<'_>,
    operands: &Operands<T>,
) -> Result<Peered> {
    let problem = context.problem;
    let (m, n) = (problem.rows(), problem.cols());
    let product = DenseProduct {
        sizes: [m, problem.width, n],
        batch: 1,
        a: &operands.a,
        b: &operands.b,
        transposed_b: true,
        unwritten: problem.unwritten("the dense D", m.saturating_mul(n))?,
    };
    product.measure(library, context, |judged_by, d, stream| {
        let mut got = Vec::with_capacity(operands.checked.pattern.nnz());
        for (at, &row) in operands.checked.rows().iter().enumerate() {
            let dense = d.slice(row * n..(row + 1) * n)?.download(stream)?;
            let columns = operands.checked.pattern.row_columns(at);
            got.extend(columns.iter().map(|&column| dense[column as usize]));
        }
        operands.error_over_bound(judged_by, &got)
    })
}

#[cfg(test)]
mod tests {
    use super::transposed;

    #[test]
    fn rows_become_columns() {
        assert_eq!(transposed(&[1, 2, 3, 4, 5, 6], 2, 3), [1, 4, 2, 5, 3, 6]);
        assert_eq!(transposed::<f32>(&[], 0, 3), [0.0; 0]);
    }
}
