//! A linear layer that is trained on the host.
use lacuna_models::network::{Activation, Convolution};
use lacuna_models::weights::{Tensor, Weights, WeightsError};
use rayon::prelude::*;

use crate::images::{BATCH, Row};

/// The part of a step that the next one repeats.
const MOMENTUM: f32 = 0.9;

/// How fast weights shrink by themselves. Those of pixels that never have ink would otherwise stay as they were drawn, and be taken for
/// large ones when the small ones are pruned.
const DECAY: f32 = 5e-4;

/// A linear layer with its momentum: outputs × inputs. A weight that is zero was pruned: it takes no time, and stays zero.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    names: [String; 2],
    inputs: usize,
    has_relu: bool,
    weights: Vec<f32>,
    bias: Vec<f32>,
    weight_steps: Vec<f32>,
    bias_steps: Vec<f32>,
}

impl Layer {
    /// A layer of a network, with its tensors.
    ///
    /// # Errors
    /// Tensors that are not there, or have another shape.
    pub(crate) fn new(name: &str, layer: &Convolution, weights: &Weights) -> Result<Self, WeightsError> {
        let names = [format!("{name}.weight"), format!("{name}.bias")];
        let (outputs, inputs) = (layer.shape.filters, layer.shape.channels);
        let mut layer = Self {
            weights: Vec::new(),
            bias: Vec::new(),
            weight_steps: vec![0.0; outputs * inputs],
            bias_steps: vec![0.0; outputs],
            has_relu: layer.activation == Activation::Relu,
            inputs,
            names,
        };
        layer.set(weights)?;
        Ok(layer)
    }

    /// Takes its tensors. What was pruned there stands still.
    ///
    /// # Errors
    /// Tensors that are not there, or have another shape.
    pub(crate) fn set(&mut self, weights: &Weights) -> Result<(), WeightsError> {
        let outputs = self.bias_steps.len();
        self.weights = weights.get(&self.names[0], &[outputs, self.inputs])?.values().to_vec();
        self.bias = weights.get(&self.names[1], &[outputs])?.values().to_vec();
        Ok(())
    }

    /// Gives its tensors.
    ///
    /// # Errors
    /// None: there are as many values as the shapes say.
    pub(crate) fn give(&self, weights: &mut Weights) -> Result<(), WeightsError> {
        let outputs = self.bias.len();
        weights.insert(&self.names[0], Tensor::new(vec![outputs, self.inputs], self.weights.clone())?);
        weights.insert(&self.names[1], Tensor::new(vec![outputs], self.bias.clone())?);
        Ok(())
    }

    /// The result for an input.
    pub(crate) fn forward(&self, input: &[Row]) -> Vec<Row> {
        let output = |(weights, &bias): (&[f32], &f32)| {
            let sums = weighted(weights.iter().zip(input), [bias; BATCH]);
            if self.has_relu { sums.map(|sum| sum.max(0.0)) } else { sums }
        };
        self.weights.par_chunks_exact(self.inputs).zip(&self.bias).map(output).collect()
    }

    /// The gradient of the sums of the layer before, from that of this layer's: its ReLU passes on what is not zero.
    pub(crate) fn backward(&self, input: &[Row], gradient: &[Row]) -> Vec<Row> {
        let column = |number: usize| self.weights.iter().skip(number).step_by(self.inputs);
        let before = |(number, input): (usize, &Row)| {
            let mut sums = weighted(column(number).zip(gradient), [0.0; BATCH]);
            sums.iter_mut().zip(input).filter(|(_, input)| **input == 0.0).for_each(|(sum, _)| *sum = 0.0);
            sums
        };
        input.par_iter().enumerate().map(before).collect()
    }

    /// Takes a step down the gradient of the sums, for this input.
    pub(crate) fn step(&mut self, input: &[Row], gradient: &[Row], rate: f32) {
        let rows = self.weights.par_chunks_exact_mut(self.inputs);
        let rows = rows.zip(self.weight_steps.par_chunks_exact_mut(self.inputs)).zip(gradient);
        rows.for_each(|((weights, steps), gradient)| {
            for ((weight, step), input) in weights.iter_mut().zip(steps).zip(input) {
                if *weight != 0.0 {
                    *step = MOMENTUM * *step - rate * (dot(gradient, input) + DECAY * *weight);
                    *weight += *step;
                }
            }
        });
        for ((bias, step), gradient) in self.bias.iter_mut().zip(&mut self.bias_steps).zip(gradient) {
            *step = MOMENTUM * *step - rate * gradient.iter().sum::<f32>();
            *bias += *step;
        }
    }
}

/// The sum of rows, each by its weight, from these sums on.
fn weighted<'r>(rows: impl Iterator<Item = (&'r f32, &'r Row)>, mut sums: Row) -> Row {
    for (&weight, row) in rows {
        if weight != 0.0 {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
        }
    }
    sums
}

/// The product of two rows, in eight sums at once.
fn dot(a: &Row, b: &Row) -> f32 {
    let mut sums = [0.0_f32; 8];
    for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        sums.iter_mut().zip(a).zip(b).for_each(|((sum, a), b)| *sum += a * b);
    }
    sums.iter().sum()
}
