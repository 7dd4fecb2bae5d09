//! The dense product by cuBLAS, for operations that a single one stands for.
use anyhow::{Result, ensure};
use lacuna::{Buffer, Stream};
use lacuna_cases::Number;
use lacuna_reference::Precision;
use lacuna_vendor::cublas::GemmProblem;

use crate::arithmetic;
use crate::peers::{Context, CuBlasLibrary, Peered, data_type, dense_products};

/// A product of M×K and K×N, row by row; B may be N×K, transposed. Or several of one A.
pub(crate) struct DenseProduct<'a, T: Number> {
    /// M, K and N.
    pub(crate) sizes: [usize; 3],
    /// Products: B and C one behind the other.
    pub(crate) batch: usize,
    pub(crate) a: &'a Buffer<T>,
    pub(crate) b: &'a Buffer<T>,
    pub(crate) transposed_b: bool,
    /// What C is before.
    pub(crate) unwritten: Vec<T>,
}

impl<T: Number> DenseProduct<'_, T> {
    /// Measures it in full fp32 and in TF32. `error_over_bound` judges C by an arithmetic.
    pub(crate) fn measure(
        &self,
        library: &mut CuBlasLibrary,
        context: &Context<'_>,
        error_over_bound: impl Fn(Precision, &Buffer<T>, &Stream) -> Result<Option<f64>>,
    ) -> Result<Peered> {
        let Self { sizes: [m, k, n], batch, a, b, transposed_b, ref unwritten } = *self;
        let expected = (m * k, batch * k * n, batch * m * n);
        ensure!((a.len(), b.len(), unwritten.len()) == expected, "operands of other sizes");
        let mut c = context.device.upload(unwritten)?;
        let described = GemmProblem {
            data_type: data_type::<T>(),
            m,
            k,
            n,
            batch,
            transposed_b,
            shared_a: true,
            a: a.as_slice().address(),
            b: b.as_slice().address(),
            c: c.as_slice().address(),
            stream: context.stream.as_raw(),
        };
        let (handle, version) = (library.handle()?, library.version()?);
        let ways = dense_products(data_type::<T>()).iter().map(|&(name, math)| (name.to_string(), math));
        Ok(Peered::of_each(ways, |math| {
            c.upload(unwritten)?;
            // SAFETY: the buffers outlive the product and have its sizes, as was checked; the stream is of this device, whose
            // context is current after the uploads above.
            let gemm = unsafe { handle.gemm(&described, math, |bytes| context.workspace(bytes))? };
            let judged_by = arithmetic::of_cublas(data_type::<T>(), math);
            let judge = |stream: &Stream| error_over_bound(judged_by, &c, stream);
            Ok(Some(context.measure(math.name(), &version, || gemm.run(), judge)?))
        }))
    }
}
