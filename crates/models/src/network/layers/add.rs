//! Sums of two values.
use super::expect_same;
use crate::network::{Activation, Problem, Shape};

/// act(x + y). Where y is added to what a convolution makes, [`Conv::residual`](super::Conv::residual) costs no pass of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Add {
    /// What is made of sums.
    pub activation: Activation,
}

impl Add {
    /// Without activation.
    pub fn new() -> Self {
        Self { activation: Activation::Identity }
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        let &[x, y] = inputs else {
            return Err(Problem::Inputs { expected: "two inputs", got: inputs.len() });
        };
        expect_same("the second input", x, y).map(|()| x)
    }
}

impl Default for Add {
    fn default() -> Self {
        Self::new()
    }
}
