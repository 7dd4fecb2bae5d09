//! What sparse weights are set against, beside cuDNN's convolutions: the product with dense weights, by cuBLAS.
use std::collections::BTreeMap;

use anyhow::Result;
use lacuna::Device;
use lacuna_cases::{Matrix, Number, Problem};
use lacuna_vendor::Search;
use lacuna_vendor::cublas::CuBlas;

use super::Pruned;
use super::measure::Truth;
use crate::conv::How;
use crate::dense::DenseProduct;
use crate::peers::{Context, CuBlasLibrary, PeerSession, Peered};
use crate::record::PeerRecord;

/// cuBLAS by type and arithmetic, in records.
pub const CUBLAS: [&str; 4] = ["cublas_f32", "cublas_tf32", "cublas_f16", "cublas_bf16"];

/// cuBLAS over many layers; its times do not depend on what weights hold, and are measured once a shape.
#[derive(Debug)]
pub struct Products(PeerSession);

impl Products {
    /// With cuBLAS if it is there; tells if it is not.
    pub fn load() -> Self {
        let cublas = CuBlas::load(&Search::from_env());
        Self(PeerSession::with_cublas(
            cublas.inspect_err(|missing| eprintln!("lacuna-bench: {missing}")).ok(),
        ))
    }

    /// The times of a layer with dense weights, without bias and activation: all images in one call, as a batch with one A.
    ///
    /// # Errors
    /// What the device says. What cuBLAS cannot do has no time, with a word on stderr.
    pub fn measure<T: Number>(
        &mut self,
        device: &Device,
        pruned: &Pruned,
        how: How<'_>,
    ) -> Result<BTreeMap<String, PeerRecord>> {
        let shape = pruned.dense.shape;
        let problem = Problem {
            name: pruned.dense.name.clone(),
            matrix: Matrix::Sparse(pruned.weights.clone()),
            width: shape.size.iter().product(),
            batch: shape.batch,
            drawn: None,
            seed: how.seed,
            group: String::new(),
            level: None,
            cov: None,
        };
        let stream = device.stream()?;
        let elements = shape.input_len() + shape.output_len() + shape.filters_len();
        let context = Context {
            device,
            stream: &stream,
            op: "pointwise",
            problem: &problem,
            bytes: (elements * size_of::<T>()) as u64,
            samples: how.samples,
            cold: None,
        };
        let dense = |library: &mut CuBlasLibrary| product::<T>(library, &context, pruned, how.checked);
        Ok(self.0.measure::<T>(&context, |_| Ok(Peered::default()), dense).records)
    }
}

/// The dense product by cuBLAS, checked.
fn product<T: Number>(
    library: &mut CuBlasLibrary,
    context: &Context<'_>,
    pruned: &Pruned,
    checked: usize,
) -> Result<Peered> {
    let shape = pruned.dense.shape;
    let truth = Truth::<T>::new(pruned, checked)?;
    let [a, b] = [&truth.weights.to_dense()?, &truth.input].map(|values| context.device.upload(values));
    let product = DenseProduct {
        sizes: [shape.filters, shape.channels, context.problem.width],
        batch: shape.batch,
        a: &a?,
        b: &b?,
        transposed_b: false,
        unwritten: vec![T::POISON; shape.output_len()],
    };
    product.measure(library, context, |judged_by, c, stream| {
        Ok(truth.check(judged_by, false, &c.download(stream)?)?.ok())
    })
}
