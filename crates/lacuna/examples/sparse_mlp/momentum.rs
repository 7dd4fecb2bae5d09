//! Gradient descent with momentum.

/// How much of a step the next one repeats.
const MOMENTUM: f32 = 0.9;

/// The last step of some parameters.
#[derive(Debug)]
pub(crate) struct Momentum {
    steps: Vec<f32>,
}

impl Momentum {
    /// For so many parameters.
    pub(crate) fn new(len: usize) -> Self {
        Self { steps: vec![0.0; len] }
    }

    /// Goes on as in the last step, and `rate` times the gradient down.
    pub(crate) fn descend(&mut self, parameters: &mut [f32], gradient: &[f32], rate: f32) {
        for ((parameter, step), slope) in parameters.iter_mut().zip(&mut self.steps).zip(gradient) {
            *step = MOMENTUM * *step - rate * slope;
            *parameter += *step;
        }
    }
}
