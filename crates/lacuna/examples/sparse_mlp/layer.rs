//! A sparse linear layer that is trained: Y = act(W·X + b), with a column an image.
//!
//! - forward: an SpMM with the bias and the activation in its epilogue;
//! - the gradient by X is Wᵀ·dY: an SpMM with the transposed W, whose values follow W's;
//! - the gradient by W is dY·Xᵀ at the nonzeros of W: an SDDMM.
//!
//! dY is the gradient by W·X + b. What needs no product (sums for the bias, the update) is the host's.
use lacuna::matrix::{Csr, generate};
use lacuna::{Buffer, CsrMatrix, Result, Sddmm, Slice, SliceMut, Spmm, Stream, spmm};

use crate::momentum::Momentum;

/// What a layer is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// The part of its weights that is not zero.
    pub(crate) density: f64,
    /// Whether sums below 0 become 0.
    pub(crate) relu: bool,
}

impl Shape {
    /// Draws a pattern, and weights of it: uniform, with a variance of 2 / n for an output of n weights. So values stay as large
    /// from layer to layer (He and others, 2015), however many weights a row has.
    ///
    /// # Errors
    /// A density that is not of 0 to 1; sizes that do not fit 32 bits.
    pub(crate) fn draw(&self, seed: u64) -> Result<Csr<f32>> {
        let pattern = generate::uniform(self.outputs, self.inputs, 1.0 - self.density, seed)?;
        let mut weights = generate::random_values(pattern.nnz(), seed);
        for row in 0..self.outputs {
            let row = pattern.row_range(row);
            let limit = (6.0 / row.len() as f32).sqrt();
            weights[row].iter_mut().for_each(|weight| *weight *= limit);
        }
        Ok(Csr::with_values(pattern, weights)?)
    }
}

/// What a layer has learnt, on the host.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    /// Outputs × inputs.
    pub(crate) weights: Csr<f32>,
    /// One an output.
    pub(crate) bias: Vec<f32>,
    /// Whether sums below 0 become 0.
    pub(crate) relu: bool,
}

/// The gradients by the parameters of a layer.
#[derive(Debug)]
pub(crate) struct Gradients {
    /// By each weight, row by row.
    pub(crate) weights: Vec<f32>,
    /// By the bias of each output.
    pub(crate) bias: Vec<f32>,
}

/// A layer on the device, for a fixed number of images at once, with its parameters on the host too.
pub(crate) struct Layer {
    pub(crate) parameters: Parameters,
    /// Of weights and bias.
    momenta: [Momentum; 2],
    device_weights: CsrMatrix,
    device_bias: Buffer<f32>,
    forward: Spmm,
    sddmm: Sddmm,
    /// dY: outputs × batch.
    slopes: Buffer<f32>,
    /// The gradient by W.
    weight_slopes: CsrMatrix,
    back: Option<Back>,
}

/// What leads to the gradient by X.
struct Back {
    transposed: CsrMatrix,
    spmm: Spmm,
    /// The gradient by X: inputs × batch.
    slopes: Buffer<f32>,
}

impl Layer {
    /// A layer of these weights for `batch` images at once, without bias yet. With `has_back` it gives a gradient by X, for a
    /// layer before it.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn new(
        stream: &Stream,
        weights: Csr<f32>,
        relu: bool,
        batch: usize,
        has_back: bool,
    ) -> Result<Self> {
        let device = stream.device();
        let (outputs, inputs) = (weights.rows(), weights.cols());
        let device_weights = CsrMatrix::new(device, &weights)?;
        let back = || -> Result<Back> {
            let transposed = device_weights.transposed(stream)?;
            let spmm = Spmm::plan(&transposed, batch)?;
            Ok(Back { transposed, spmm, slopes: device.zeros(inputs * batch)? })
        };
        let options = spmm::Options::default();
        Ok(Self {
            momenta: [Momentum::new(weights.nnz()), Momentum::new(outputs)],
            device_bias: device.zeros(outputs)?,
            forward: Spmm::plan_with(&device_weights, batch, if relu { options.relu() } else { options })?,
            sddmm: Sddmm::plan(&device_weights, batch)?,
            slopes: device.zeros(outputs * batch)?,
            weight_slopes: device_weights.with_zeros(1)?,
            back: has_back.then(back).transpose()?,
            parameters: Parameters { weights, bias: vec![0.0; outputs], relu },
            device_weights,
        })
    }

    /// Y of X: inputs × batch. Returns at once.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn forward(&self, stream: &Stream, x: Slice<'_, f32>, y: SliceMut<'_, f32>) -> Result<()> {
        let bias = Some(self.device_bias.as_slice());
        self.forward.run_with(stream, spmm::Operands { a: &self.device_weights, b: x, c: y, bias })
    }

    /// The gradients by the parameters, and by X where a layer before it needs it, from dY: outputs × batch.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn gradients(
        &mut self,
        stream: &Stream,
        x: Slice<'_, f32>,
        slopes: &[f32],
    ) -> Result<(Gradients, Option<Vec<f32>>)> {
        self.slopes.upload(slopes)?;
        let device_slopes = self.slopes.as_slice();
        self.sddmm.run(stream, device_slopes, x, &mut self.weight_slopes)?;
        let mut by_x = None;
        if let Some(Back { transposed, spmm, slopes }) = &mut self.back {
            transposed.update_from(stream, &self.device_weights)?;
            spmm.run(stream, transposed, device_slopes, slopes.as_slice_mut())?;
            by_x = Some(slopes.download(stream)?);
        }
        let weights = self.weight_slopes.values()?.download(stream)?;
        let batch = slopes.len() / self.parameters.bias.len();
        let bias = slopes.chunks_exact(batch).map(|row| row.iter().sum()).collect();
        Ok((Gradients { weights, bias }, by_x))
    }

    /// Takes one step down, and sends the parameters to the device.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn descend(&mut self, gradients: &Gradients, rate: f32) -> Result<()> {
        let Parameters { weights, bias, .. } = &mut self.parameters;
        let [of_weights, of_bias] = &mut self.momenta;
        of_weights.descend(weights.values_mut(), &gradients.weights, rate);
        of_bias.descend(bias, &gradients.bias, rate);
        self.device_weights.values_mut()?.upload(weights.values())?;
        self.device_bias.upload(bias)
    }
}
