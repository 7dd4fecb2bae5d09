//! Tokens for the cases.
use lacuna::layer_norm::Shape;
use lacuna::matrix::generate;

/// Tokens in f32, without gaps, and what they are normalised with.
#[derive(Clone, Debug)]
pub struct Tokens {
    pub(super) shape: Shape,
    pub(super) input: Vec<f32>,
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
    pub(super) epsilon: f32,
}

impl Tokens {
    /// Numbers from -4 to 4, and an epsilon of 10⁻⁵.
    pub fn drawn(shape: Shape, seed: u64) -> Self {
        let draw = |len, salt| -> Vec<f32> {
            generate::random_values(len, seed ^ salt).iter().map(|value| 4.0 * value).collect()
        };
        let features = shape.features();
        let input = draw(shape.tokens() * features, 1);
        Self { shape, input, weight: draw(features, 2), bias: draw(features, 3), epsilon: 1e-5 }
    }

    /// The same with other numbers: `of` makes them of what is drawn, and of the index of the element.
    #[must_use]
    pub fn with(mut self, of: impl Fn(usize, f32) -> f32) -> Self {
        for (at, x) in self.input.iter_mut().enumerate() {
            *x = of(at, *x);
        }
        self
    }

    /// The same with another epsilon.
    #[must_use]
    pub fn epsilon(self, epsilon: f32) -> Self {
        Self { epsilon, ..self }
    }

    /// Rows or images, and elements of each.
    pub(super) fn outer(&self) -> [usize; 2] {
        match self.shape {
            Shape::Rows { rows, features } => [rows, features],
            Shape::Maps { images, channels, pixels } => [images, channels * pixels],
        }
    }

    /// Elements from one feature of a token to the next.
    pub(super) fn pixels(&self) -> usize {
        match self.shape {
            Shape::Rows { .. } => 1,
            Shape::Maps { pixels, .. } => pixels,
        }
    }
}
