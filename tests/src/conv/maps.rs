//! Maps for the cases.
use lacuna::conv::Shape;
use lacuna::matrix::generate;

/// What is convolved, in f32: images × channels × rows × columns, and filters × channels × rows × columns.
#[derive(Clone, Debug)]
pub struct Maps {
    pub(super) shape: Shape,
    pub(super) input: Vec<f32>,
    pub(super) weights: Vec<f32>,
    pub(super) bias: Vec<f32>,
    pub(super) residual: Vec<f32>,
}

impl Maps {
    /// Numbers from -1 to 1, of which a part of the input is zero.
    pub fn drawn(shape: Shape, zeros: f64, seed: u64) -> Self {
        let draw = |len, salt| generate::random_values(len, seed ^ salt);
        let keeps = draw(shape.input_len(), 5);
        let mut input = draw(shape.input_len(), 1);
        for (x, keep) in input.iter_mut().zip(keeps) {
            if f64::from(keep + 1.0) / 2.0 < zeros {
                *x = 0.0;
            }
        }
        let (weights, bias) = (draw(shape.filters_len(), 2), draw(shape.filters, 3));
        Self { shape, input, weights, bias, residual: draw(shape.output_len(), 4) }
    }

    /// The same, and the first and the last pixel of an image have an infinity each.
    pub(super) fn with_infinities(mut self) -> Self {
        let last = self.shape.size.iter().product::<usize>() - 1;
        (self.input[0], self.input[last]) = (f32::INFINITY, f32::NEG_INFINITY);
        self
    }

    /// Some numbers of input, filters, bias and residual are not usual ones.
    pub(super) fn strange(shape: Shape, seed: u64) -> Self {
        const STRANGE: [f32; 10] =
            [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-45, -1e-40, f32::MAX, f32::MIN, 3e38, 0.0];
        let mut maps = Self::drawn(shape, 0.6, seed);
        for (values, step) in
            [(&mut maps.input, 29), (&mut maps.weights, 31), (&mut maps.bias, 5), (&mut maps.residual, 53)]
        {
            for (i, value) in values.iter_mut().step_by(step).enumerate() {
                *value = STRANGE[i % STRANGE.len()];
            }
        }
        maps
    }
}
