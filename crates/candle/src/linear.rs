//! A linear layer with few weights.
use candle_core::{DType, Result, Tensor, bail};
use candle_nn::{Linear, Module};
use half::{bf16, f16};
use lacuna::matrix::Csr;

use crate::{Backend, Pattern};

/// y = x·Wᵀ + bias for a sparse W (out × in), as `candle_nn::Linear` with most weights left out.
///
/// Kernels want features along rows, (in, tokens): x is transposed first, unless it is the result of such a layer, and y of a matrix is a
/// transposed view. So a layer right after another copies nothing. candle's operations by element give rows again, which the next layer
/// transposes.
#[derive(Clone, Debug)]
pub struct SparseLinear {
    pattern: Pattern,
    values: Tensor,
    bias: Option<Tensor>,
}

impl SparseLinear {
    /// A layer of these weights: a tensor of values of the pattern (out × in), which may be a variable, and an element of the bias for
    /// each row of it.
    ///
    /// # Errors
    /// For tensors of other shapes.
    pub fn new(pattern: Pattern, values: Tensor, bias: Option<Tensor>) -> Result<Self> {
        pattern.batch_of(NAME, values.layout())?;
        if let Some(bias) = bias.as_ref().filter(|bias| bias.dims() != [pattern.rows()]) {
            bail!("{NAME}: the bias has shape {:?}, but ({}) is expected", bias.dims(), pattern.rows())
        }
        Ok(Self { pattern, values, bias })
    }

    /// The layer with the smallest weights left out: a share `sparsity` of them, from 0 to below 1. Of equal ones the first stay. Values
    /// are copies, on the backend's device; to train them, make a `Var` of [`values`](Self::values), and a [`new`](Self::new) layer.
    ///
    /// # Errors
    /// For another share; for weights of other types than `f32`, `f16` and `bf16`.
    pub fn from_linear(backend: &Backend, linear: &Linear, sparsity: f64) -> Result<Self> {
        if !(0.0..1.0).contains(&sparsity) {
            bail!("{NAME}: the sparsity is {sparsity}, but it must be from 0 to below 1")
        }
        let weight = linear.weight();
        let (rows, cols) = weight.dims2()?;
        let dense = weight.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
        let kept = largest(&dense, sparsity);
        let mut offsets = vec![0_u32];
        offsets.extend((0..rows).map(|row| kept.partition_point(|&at| at < (row + 1) * cols) as u32));
        let columns = kept.iter().map(|at| (at % cols.max(1)) as u32).collect();
        let values = kept.iter().map(|&at| dense[at]).collect();
        let host = Csr::new(rows, cols, offsets, columns, values).map_err(candle_core::Error::wrap)?;
        let pattern = Pattern::new(backend, host.pattern().clone())?;
        let values = match weight.dtype() {
            DType::F16 => pattern.values(host.map_values(f16::from_f32).values())?,
            DType::BF16 => pattern.values(host.map_values(bf16::from_f32).values())?,
            DType::F32 => pattern.values(host.values())?,
            other => bail!("{NAME}: weights are {other:?}, but f32, f16 or bf16 is expected"),
        };
        let bias = linear.bias().map(|bias| bias.detach().to_device(backend.device())).transpose()?;
        Self::new(pattern, values, bias)
    }

    /// Where the weights are.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }
    /// The weights, a tensor of values of the pattern.
    pub fn values(&self) -> &Tensor {
        &self.values
    }
    /// The bias: one for each row of the pattern.
    pub fn bias(&self) -> Option<&Tensor> {
        self.bias.as_ref()
    }
}

const NAME: &str = "a sparse linear layer";

/// The places of the weights that stay, ascending: those of the greatest magnitude, NaN above all.
fn largest(weights: &[f32], sparsity: f64) -> Vec<usize> {
    let kept = ((weights.len() as f64 * (1.0 - sparsity)).round() as usize).min(weights.len());
    let mut places: Vec<usize> = (0..weights.len()).collect();
    if kept < places.len() {
        let descending =
            |a: &usize, b: &usize| weights[*b].abs().total_cmp(&weights[*a].abs()).then(a.cmp(b));
        places.select_nth_unstable_by(kept, descending);
        places.truncate(kept);
        places.sort_unstable();
    }
    places
}

impl Module for SparseLinear {
    /// y (…, out) of an x (…, in).
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (inputs, outputs) = (self.pattern.cols(), self.pattern.rows());
        let mut shape = x.dims().to_vec();
        if shape.last() != Some(&inputs) {
            bail!("{NAME}: x has shape {shape:?}, but (…, {inputs}) is expected")
        }
        let tokens =
            x.elem_count().checked_div(inputs).unwrap_or_else(|| shape[..shape.len() - 1].iter().product());
        // A view that is transposed already is taken as it is: to reshape it would copy.
        let x = if shape.len() == 2 { x.clone() } else { x.reshape((tokens, inputs))? };
        let b = x.t()?.contiguous()?;
        let c = match &self.bias {
            Some(bias) => self.pattern.spmm_bias(&self.values, &b, bias)?,
            None => self.pattern.spmm(&self.values, &b)?,
        };
        let y = c.t()?;
        if let [_, _] = shape[..] {
            return Ok(y);
        }
        *shape.last_mut().expect("it has a last dimension") = outputs;
        y.reshape(shape)
    }
}
