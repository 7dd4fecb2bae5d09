//! A layer of a network, on the host.
use half::{bf16, f16};
use lacuna_kernels::ValueType;
use lacuna_matrix::Csr;

use super::OPERATION;
use crate::op::Activation;
use crate::{Error, Result};

/// The most inputs or outputs of a layer: kernels count bytes of a row in 32 bits.
pub(super) const MAX_WIDTH: usize = (1 << 30) - 1;

/// The bias of a layer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Bias {
    /// One number for all outputs.
    Scalar(f32),
    /// A number for each output.
    PerOutput(Vec<f32>),
}

impl Bias {
    /// That of an output.
    pub(super) fn of(&self, output: usize) -> f32 {
        match self {
            Self::Scalar(bias) => *bias,
            Self::PerOutput(biases) => biases[output],
        }
    }
}

/// A layer: act(W·x + b) for each sample x.
#[derive(Clone, Debug)]
pub struct Layer {
    weights: Csr<f32>,
    bias: Bias,
    activation: Activation,
    /// The type in which kernels read the weights.
    weight_type: ValueType,
}

impl Layer {
    /// A layer of these weights: rows are its outputs, columns its inputs. An output without weights is act(b).
    ///
    /// # Errors
    /// [`Error::Length`] where `bias` has not a number for each output; [`Error::Parameter`] where a clamp's limits are not in
    /// order; [`Error::TooLarge`] from 2³⁰ inputs or outputs on.
    pub fn new(weights: Csr<f32>, bias: Bias, activation: Activation) -> Result<Self> {
        Error::expect_at_most("the number of inputs of a layer", MAX_WIDTH, weights.cols())?;
        Error::expect_at_most("the number of outputs of a layer", MAX_WIDTH, weights.rows())?;
        if let Bias::PerOutput(biases) = &bias {
            let shape = || "one an output".into();
            Error::expect_len(OPERATION, "the bias", shape, weights.rows(), biases.len())?;
        }
        activation.check(OPERATION)?;
        Ok(Self { weights, bias, activation, weight_type: ValueType::F32 })
    }

    /// As [`new`](Self::new), of weights that stay `f16` on the device: half of the memory, and of what is sent. Features and sums are
    /// `f32`. The paper's kernels read them as `f32`.
    ///
    /// # Errors
    /// As `new`.
    pub fn of_f16(weights: &Csr<f16>, bias: Bias, activation: Activation) -> Result<Self> {
        let layer = Self::new(weights.map_values(f16::to_f32), bias, activation)?;
        Ok(Self { weight_type: ValueType::F16, ..layer })
    }

    /// Inputs.
    pub fn inputs(&self) -> usize {
        self.weights.cols()
    }
    /// Outputs.
    pub fn outputs(&self) -> usize {
        self.weights.rows()
    }
    /// The weights, those of `f16` too: outputs × inputs.
    pub fn weights(&self) -> &Csr<f32> {
        &self.weights
    }
    /// The bias.
    pub fn bias(&self) -> &Bias {
        &self.bias
    }
    /// What is made of sums.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// The type in which the device has the weights.
    pub fn weight_type(&self) -> ValueType {
        self.weight_type
    }

    /// Whether all weights are numbers of bfloat16, and normal ones or zero: tensor cores then lose nothing of their products.
    pub(super) fn is_exact_in_bf16(&self) -> bool {
        let is_exact = |&weight: &f32| {
            let is_normal = weight == 0.0 || weight.is_normal();
            is_normal && bf16::from_f32(weight).to_f32() == weight
        };
        self.weights.values().iter().all(is_exact)
    }

    /// Other weights and biases, which fit each other, with this activation. Weights stay `f16` if all of them are such numbers.
    pub(super) fn with(&self, weights: Csr<f32>, bias: Bias) -> Self {
        let fits = |&weight: &f32| weight.is_nan() || f16::from_f32(weight).to_f32() == weight;
        let is_half = self.weight_type == ValueType::F16 && weights.values().iter().all(fits);
        let weight_type = if is_half { ValueType::F16 } else { ValueType::F32 };
        Self { weights, bias, activation: self.activation, weight_type }
    }

    /// Whether a sample that is all zero stays so.
    pub(super) fn keeps_zero(&self) -> bool {
        let is_zero = |&bias: &f32| self.activation.of(bias) == 0.0;
        let biases = match &self.bias {
            Bias::Scalar(bias) => is_zero(bias),
            Bias::PerOutput(biases) => biases.iter().all(is_zero),
        };
        biases && self.weights.values().iter().all(|weight| weight.is_finite())
    }
}
