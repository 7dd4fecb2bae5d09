//! The dense way of attention by cuBLAS: both products of all heads, without the softmax between them, for which it has no
//! kernel. What that way takes is more than this.
use anyhow::Result;
use lacuna::matrix::Csr;
use lacuna::{Buffer, Stream};
use lacuna_cases::Number;
use lacuna_reference::{Precision, spmm};
use lacuna_vendor::cublas::GemmProblem;

use super::operands::{Host, Operands, unwritten_o};
use crate::arithmetic;
use crate::peers::{Context, CuBlasLibrary, PeerSession, Peered, data_type, dense_products};

/// Measures cuBLAS, where it is there.
pub(super) fn measure<T: Number>(
    session: &mut PeerSession,
    context: &Context<'_>,
    host: &Host<T>,
    operands: &Operands<T>,
) -> Peered {
    session.measure::<T>(
        context,
        |_| Ok(Peered::default()),
        |library| cublas(library, context, host, operands),
    )
}

/// S = Q·Kᵀ and O = S·V, in full fp32 and in TF32.
fn cublas<T: Number>(
    library: &mut CuBlasLibrary,
    context: &Context<'_>,
    host: &Host<T>,
    operands: &Operands<T>,
) -> Result<Peered> {
    let Context { device, stream, problem, .. } = *context;
    let (queries, keys, batch) = (problem.rows(), problem.cols(), problem.batch);
    let scores: Buffer<T> = device.uninitialized(batch * queries * keys)?;
    let mut o = device.upload(&unwritten_o::<T>(problem)?)?;
    let first = GemmProblem {
        data_type: data_type::<T>(),
        m: queries,
        k: problem.width,
        n: keys,
        batch,
        transposed_b: true,
        shared_a: false,
        a: operands.q.as_slice().address(),
        b: operands.k.as_slice().address(),
        c: scores.as_slice().address(),
        stream: stream.as_raw(),
    };
    let second = GemmProblem {
        k: keys,
        n: problem.width,
        transposed_b: false,
        a: scores.as_slice().address(),
        b: operands.v.as_slice().address(),
        c: o.as_slice().address(),
        ..first
    };
    let (handle, version) = (library.handle()?, library.version()?);
    let ways =
        dense_products(data_type::<T>()).iter().map(|&(name, math)| (format!("{name}_products"), math));
    Ok(Peered::of_each(ways, |math| {
        o.upload(&unwritten_o::<T>(problem)?)?;
        let workspace = |bytes| context.workspace(bytes);
        // SAFETY: the buffers outlive the products and have the stated lengths; the stream is of this device, whose context
        // is current after the uploads above.
        let [first, second] =
            unsafe { [handle.gemm(&first, math, workspace), handle.gemm(&second, math, workspace)] };
        let (first, second) = (first?, second?);
        let judged_by = arithmetic::of_cublas(data_type::<T>(), math);
        let record = context.measure(
            math.name(),
            &version,
            || first.run().and_then(|()| second.run()),
            |stream| error_over_bound(context, host, [&scores, &o], judged_by, stream),
        )?;
        Ok(Some(record))
    }))
}

/// The largest error of both products in a row of each head, over the bound of this arithmetic; none where it is out of
/// it. The second is judged by the scores that the first one wrote.
fn error_over_bound<T: Number>(
    context: &Context<'_>,
    host: &Host<T>,
    [scores, o]: [&Buffer<T>; 2],
    arithmetic: Precision,
    stream: &Stream,
) -> Result<Option<f64>> {
    let problem = context.problem;
    let (queries, keys, width) = (problem.rows(), problem.cols(), problem.width);
    let mut worst = 0.0_f64;
    for head in 0..problem.batch {
        let row = head * queries + head * (queries - 1) / problem.batch;
        let [q, k, v] = [&host.q, &host.k, &host.v];
        let scores = scores.slice(row * keys..(row + 1) * keys)?.download(stream)?;
        let o = o.slice(row * width..(row + 1) * width)?.download(stream)?;
        let [k, v] = [k, v].map(|operand| &operand[head * keys * width..][..keys * width]);
        let transposed: Vec<T> =
            (0..width).flat_map(|at| k.iter().skip(at).step_by(width)).copied().collect();
        for (a, b, n, got) in
            [(&q[row * width..][..width], &transposed[..], keys, &scores), (&scores[..], v, width, &o)]
        {
            let len = a.len() as u32;
            let a = Csr::new(1, a.len(), vec![0, len], (0..len).collect(), a.to_vec())?;
            match spmm(&a, b, n)?.precision(arithmetic)?.check(got) {
                Ok(report) => worst = worst.max(report.worst_over_bound),
                Err(_) => return Ok(None),
            }
        }
    }
    Ok(Some(worst))
}
