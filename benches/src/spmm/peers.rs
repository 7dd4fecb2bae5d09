//! The same product by the vendor's libraries.
use anyhow::Result;
use lacuna_cases::Number;
use lacuna_vendor::cusparse::{SpmmAlgorithm, SpmmProblem};

use super::operands::{Operands, unwritten_c};
use crate::arithmetic;
use crate::dense::DenseProduct;
use crate::peers::{CUSPARSE, Context, CuBlasLibrary, CuSparseLibrary, PeerSession, Peered, data_type};
use crate::record::PeerRecord;

/// Measures the libraries that are there.
pub(crate) fn measure<T: Number>(
    session: &mut PeerSession,
    context: &Context<'_>,
    operands: &Operands<T>,
) -> Peered {
    session.measure::<T>(
        context,
        |library| Ok(cusparse(library, context, operands)?.best_and_default(CUSPARSE)),
        |library| cublas(library, context, operands),
    )
}

/// Each of cuSPARSE's algorithms that takes the problem, by its name. All but the default are prepared for the pattern
/// first, which is not timed; the default is what users get who do nothing.
fn cusparse<T: Number>(
    library: &mut CuSparseLibrary,
    context: &Context<'_>,
    operands: &Operands<T>,
) -> Result<Peered> {
    let Context { device, stream, problem, .. } = *context;
    let row_offsets = device.upload(problem.sparse()?.row_offsets())?;
    let col_indices = device.upload(problem.sparse()?.col_indices())?;
    let values = device.upload(operands.a.values())?;
    let mut c = device.upload(&unwritten_c::<T>(problem)?)?;
    let described = SpmmProblem {
        data_type: data_type::<T>(),
        m: problem.rows(),
        k: problem.cols(),
        n: problem.width,
        nnz: problem.matrix.elements(),
        row_offsets: row_offsets.as_slice().address(),
        col_indices: col_indices.as_slice().address(),
        values: values.as_slice().address(),
        b: operands.b.as_slice().address(),
        c: c.as_slice().address(),
        stream: stream.as_raw(),
    };
    let (handle, version) = (library.handle()?, library.version()?);
    let ways = SpmmAlgorithm::ALL.map(|algorithm| (format!("{CUSPARSE} {}", algorithm.name()), algorithm));
    Ok(Peered::of_each(ways, |algorithm| {
        // SAFETY: the buffers outlive the product, have the stated lengths, and the matrix was checked when made; the
        // stream is of this device, whose context is current after the uploads above.
        let product = unsafe { handle.spmm(&described, algorithm, |bytes| context.workspace(bytes)) };
        let product = match product {
            Ok(product) => product,
            Err(error) if error.is_unsupported() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let prepared = algorithm != SpmmAlgorithm::Default;
        let preprocess_us = prepared.then(|| context.by_host(|| product.preprocess())).transpose()?;
        c.upload(&unwritten_c::<T>(problem)?)?;
        let judged_by = arithmetic::of_cusparse(data_type::<T>());
        let record = context.measure(
            algorithm.name(),
            &version,
            || product.run(),
            |stream| operands.error_over_bound(judged_by, &c.download(stream)?),
        )?;
        Ok(Some(PeerRecord { preprocess_us, ..record }))
    }))
}

/// The dense product.
fn cublas<T: Number>(
    library: &mut CuBlasLibrary,
    context: &Context<'_>,
    operands: &Operands<T>,
) -> Result<Peered> {
    let problem = context.problem;
    let a = context.device.upload(&operands.a.to_dense()?)?;
    let product = DenseProduct {
        sizes: [problem.rows(), problem.cols(), problem.width],
        batch: 1,
        a: &a,
        b: &operands.b,
        transposed_b: false,
        unwritten: unwritten_c::<T>(problem)?,
    };
    product.measure(library, context, |judged_by, c, stream| {
        operands.error_over_bound(judged_by, &c.download(stream)?)
    })
}
