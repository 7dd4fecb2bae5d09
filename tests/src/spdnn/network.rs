//! Networks with samples, and how they are drawn.
use anyhow::Result;
use half::bf16;
use lacuna::matrix::{Csr, Pattern, generate};
use lacuna::spdnn::{Activation, Bias, Features, Layer};
use lacuna_reference::{SpdnnLayer, SpdnnReference, spdnn};
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::index;
use rand::{RngExt, SeedableRng};

/// A network, and the samples that it is given.
#[derive(Clone, Debug)]
pub struct Network {
    pub(super) layers: Vec<Layer>,
    /// Samples.
    pub(super) rows: usize,
    /// Their numbers, sample by sample.
    pub(super) samples: Vec<f32>,
}

impl Network {
    /// Numbers of a sample.
    pub(super) fn inputs(&self) -> usize {
        self.layers[0].inputs()
    }
    /// Results of a sample.
    pub(super) fn outputs(&self) -> usize {
        self.layers[self.layers.len() - 1].outputs()
    }

    /// The samples, number by number.
    pub(super) fn dense(&self) -> Result<Features> {
        Ok(Features::dense(self.rows, self.inputs(), self.samples.clone())?)
    }

    /// The same with all weights as the nearest numbers of bfloat16.
    pub(super) fn in_bf16(mut self) -> Result<Self> {
        for layer in &mut self.layers {
            let weights = layer.weights().map_values(|weight: f32| bf16::from_f32(weight).to_f32());
            *layer = Layer::new(weights, layer.bias().clone(), layer.activation())?;
        }
        Ok(self)
    }

    /// Whether tensor cores can do all layers.
    pub(super) fn is_exact(&self) -> bool {
        self.layers.iter().all(is_exact)
    }

    /// Whether they can do some.
    pub(super) fn has_exact(&self) -> bool {
        self.layers.iter().any(is_exact)
    }

    /// What the oracle says of them.
    pub(super) fn reference(&self) -> Result<SpdnnReference> {
        self.reference_by(false)
    }

    /// The same of kernels that take `tensor_cores` where weights allow it.
    pub(super) fn reference_by(&self, tensor_cores: bool) -> Result<SpdnnReference> {
        // The oracle counts samples by their numbers. Where they have none, they get one that nobody reads.
        let padded = match &self.layers[0] {
            first if first.inputs() == 0 => {
                let pattern = Pattern::new(first.outputs(), 1, vec![0; first.outputs() + 1], Vec::new())?;
                Some((Csr::with_values(pattern, Vec::new())?, vec![0.0; self.rows]))
            }
            _ => None,
        };
        let mut layers: Vec<SpdnnLayer<'_>> = self.layers.iter().map(reference_layer).collect();
        for (layer, own) in layers.iter_mut().zip(&self.layers) {
            layer.tensor_cores = tensor_cores && is_exact(own);
        }
        if let Some((weights, samples)) = &padded {
            layers[0].weights = weights;
            return Ok(spdnn(samples, &layers)?);
        }
        Ok(spdnn(&self.samples, &layers)?)
    }
}

fn reference_layer(layer: &Layer) -> SpdnnLayer<'_> {
    let bias = match layer.bias() {
        Bias::PerOutput(biases) => biases,
        Bias::Scalar(bias) => std::slice::from_ref(bias),
        other => unreachable!("{other:?} is not drawn"),
    };
    let (lo, hi) = limits(layer.activation());
    SpdnnLayer { weights: layer.weights(), bias, lo, hi, tensor_cores: false }
}

/// Whether all weights are numbers of bfloat16, zeros or normal ones.
fn is_exact(layer: &Layer) -> bool {
    let is_normal = |weight: f32| weight == 0.0 || weight.is_normal();
    layer
        .weights()
        .values()
        .iter()
        .all(|&weight| is_normal(weight) && bf16::from_f32(weight).to_f32() == weight)
}

/// The least and the greatest result.
pub(super) fn limits(activation: Activation) -> (f32, f32) {
    match activation {
        Activation::Relu => (0.0, f32::INFINITY),
        Activation::Clamp { lo, hi } => (lo, hi),
        _ => (f32::NEG_INFINITY, f32::INFINITY),
    }
}

/// What networks are drawn from.
pub(super) struct Draw(Xoshiro256PlusPlus);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    pub(super) fn values(&mut self, len: usize) -> Vec<f32> {
        generate::random_values(len, self.0.random())
    }

    /// A bias for each output, from `low` to `high`.
    pub(super) fn biases(&mut self, outputs: usize, [low, high]: [f32; 2]) -> Bias {
        let biases = self.values(outputs);
        Bias::PerOutput(biases.iter().map(|x| low + (high - low) * (0.5 + 0.5 * x)).collect())
    }

    /// Some inputs, ascending.
    fn columns(&mut self, inputs: usize, length: usize) -> Vec<u32> {
        let mut columns: Vec<u32> =
            index::sample(&mut self.0, inputs, length.min(inputs)).into_iter().map(|i| i as u32).collect();
        columns.sort_unstable();
        columns
    }

    /// A layer whose outputs have so many weights each.
    pub(super) fn layer(
        &mut self,
        inputs: usize,
        lengths: impl IntoIterator<Item = usize>,
        bias: Bias,
        activation: Activation,
    ) -> Result<Layer> {
        let rows = lengths.into_iter().map(|length| self.columns(inputs, length)).collect();
        self.of_rows(inputs, rows, bias, activation)
    }

    /// A layer of classes of so many outputs with the same inputs. Outputs of a class stand apart.
    pub(super) fn classes(
        &mut self,
        inputs: usize,
        sizes: &[usize],
        length: usize,
        bias: Bias,
        activation: Activation,
    ) -> Result<Layer> {
        let columns: Vec<Vec<u32>> = sizes.iter().map(|_| self.columns(inputs, length)).collect();
        let most = sizes.iter().copied().max().unwrap_or(0);
        let turn = |turn: usize| (0..sizes.len()).filter(move |&class| turn < sizes[class]);
        let rows = (0..most).flat_map(turn).map(|class| columns[class].clone()).collect();
        self.of_rows(inputs, rows, bias, activation)
    }

    /// A layer whose outputs have these inputs, ascending.
    pub(super) fn of_rows(
        &mut self,
        inputs: usize,
        rows: Vec<Vec<u32>>,
        bias: Bias,
        activation: Activation,
    ) -> Result<Layer> {
        let pattern = Pattern::of_rows(inputs, rows)?;
        let values = self.values(pattern.nnz());
        Ok(Layer::new(Csr::with_values(pattern, values)?, bias, activation)?)
    }

    /// Samples of which one of five is all zero, and of the others about half of the numbers.
    pub(super) fn samples(&mut self, rows: usize, inputs: usize) -> Vec<f32> {
        let values = self.values(rows * inputs);
        let of = |(at, value): (usize, f32)| match at / inputs % 5 {
            3 => 0.0,
            _ if value < 0.1 && value > -0.9 => 0.0,
            _ => 2.0 * value,
        };
        values.into_iter().enumerate().map(of).collect()
    }

    /// Samples of zeros and ones, of which one of five is all zero.
    pub(super) fn ones(&mut self, rows: usize, inputs: usize) -> Vec<f32> {
        let values = self.values(rows * inputs);
        let of = |(at, value): (usize, f32)| f32::from(u8::from(at / inputs % 5 != 3 && value > 0.4));
        values.into_iter().enumerate().map(of).collect()
    }
}
