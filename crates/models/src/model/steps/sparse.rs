//! Layers with sparse weights.
use lacuna::conv::{Activation, Shape};
use lacuna::matrix::Csr;
use lacuna::{
    Buffer, CsrMatrix, Result, SliceMut, SparsePointwiseConv, Spmm, Stream, Value, pointwise, spmm,
};

use super::values::{matrix_bytes, rounded};
use super::{About, Inputs, Step, Weighted};

/// Weights and bias on the device.
#[derive(Debug)]
struct SparseWeights<T: Value> {
    matrix: CsrMatrix<T>,
    bias: Option<Buffer<T>>,
}

impl<T: Value> SparseWeights<T> {
    fn new(layer: &Weighted<'_, T>) -> Result<Self> {
        let Weighted { planning, conv, folded, .. } = layer;
        let matrix = Csr::from_dense(conv.shape.filters, conv.shape.channels, &folded.filters)?;
        let matrix = CsrMatrix::new(planning.device, &matrix.map_values(T::from_f32))?;
        let bias = folded.bias.as_ref().map(|bias| planning.device.upload(&rounded(bias))).transpose()?;
        Ok(Self { matrix, bias })
    }

    /// Values, columns, offsets of rows, and the bias.
    fn bytes(&self) -> usize {
        matrix_bytes(&self.matrix) + self.bias.as_ref().map_or(0, Buffer::len) * size_of::<T>()
    }
}

/// Taps of 1×1 on maps.
#[derive(Debug)]
pub(super) struct Pointwise<T: Value> {
    plan: SparsePointwiseConv<T>,
    weights: SparseWeights<T>,
    has_residual: bool,
}

impl<T: Value> Pointwise<T> {
    pub(super) fn plan(layer: &Weighted<'_, T>) -> Result<Self> {
        let Weighted { conv, options, plane_strides, .. } = layer;
        let weights = SparseWeights::new(layer)?;
        let mut plan_options = pointwise::Options::default()
            .activation(conv.activation)
            .algorithm(options.sparse_algorithm)
            .precision(options.precision);
        if conv.residual {
            plan_options = plan_options.accumulate();
        }
        let mut shape = conv.shape;
        match *plane_strides {
            // Gaps are computed like pixels: then there are whole vectors.
            [Some(stride), Some(out_stride)] if conv.is_pixelwise() && stride == out_stride => {
                let Shape { batch, channels, filters, .. } = shape;
                shape = Shape::new(channels, [1, stride], filters, [1, 1]).batch(batch);
            }
            strides => [plan_options.input_channel_stride, plan_options.out_channel_stride] = strides,
        }
        let plan = SparsePointwiseConv::plan(&weights.matrix, shape, plan_options)?;
        Ok(Self { plan, weights, has_residual: conv.residual })
    }
}

impl<T: Value> Step<T> for Pointwise<T> {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_, T>, mut out: SliceMut<'_, T>) -> Result<()> {
        if self.has_residual {
            // The product adds to what is there.
            stream.copy(inputs.at(1)?, out.reborrow())?;
        }
        let (weights, bias) = (&self.weights.matrix, self.weights.bias.as_ref().map(Buffer::as_slice));
        self.plan.run(stream, pointwise::Operands { weights, input: inputs.at(0)?, bias, out })
    }

    fn about(&self) -> About {
        let copy = if self.has_residual { "copy + " } else { "" };
        About {
            weight_bytes: self.weights.bytes(),
            workspace_bytes: self.plan.workspace_bytes(),
            ..About::kernel(format!("{copy}{}", self.plan.choice().entry.name))
        }
    }
}

/// A linear layer: a product with each row of the input, as a column.
#[derive(Debug)]
pub(super) struct Linear<T: Value> {
    plan: Spmm<T>,
    weights: SparseWeights<T>,
}

impl<T: Value> Linear<T> {
    pub(super) fn plan(layer: &Weighted<'_, T>) -> Result<Self> {
        let Weighted { conv, options, .. } = layer;
        let weights = SparseWeights::new(layer)?;
        let [lo, hi] = limits(conv.activation);
        let beta = if conv.residual { 1.0 } else { 0.0 };
        let plan_options = spmm::Options::default()
            .algorithm(options.sparse_algorithm)
            .precision(options.precision)
            .beta(beta)
            .clamp(lo, hi)
            .batch(conv.shape.batch);
        let plan = Spmm::plan_with(&weights.matrix, 1, plan_options)?;
        Ok(Self { plan, weights })
    }
}

impl<T: Value> Step<T> for Linear<T> {
    fn run(&self, stream: &Stream, inputs: &Inputs<'_, T>, mut out: SliceMut<'_, T>) -> Result<()> {
        if self.plan.options().beta != 0.0 {
            stream.copy(inputs.at(1)?, out.reborrow())?;
        }
        let bias = self.weights.bias.as_ref().map(Buffer::as_slice);
        let operands = spmm::Operands { a: &self.weights.matrix, b: inputs.at(0)?, c: out, bias };
        self.plan.run_with(stream, operands)
    }

    fn about(&self) -> About {
        About { weight_bytes: self.weights.bytes(), ..About::kernel(self.plan.choice().entry.name) }
    }
}

/// The least and the greatest result.
fn limits(activation: Activation) -> [f32; 2] {
    match activation {
        Activation::Relu => [0.0, f32::INFINITY],
        Activation::Clamp { lo, hi } => [lo, hi],
        _ => [f32::NEG_INFINITY, f32::INFINITY],
    }
}
