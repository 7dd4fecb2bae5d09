//! Maps for the cases.
use lacuna::matrix::generate;
use lacuna::pool::Shape;

/// What is pooled, in f32: images × channels × rows × columns.
#[derive(Clone, Debug)]
pub struct Maps {
    pub(super) shape: Shape,
    pub(super) input: Vec<f32>,
}

impl Maps {
    /// Numbers from -1 to 1.
    pub fn drawn(shape: Shape, seed: u64) -> Self {
        Self { shape, input: generate::random_values(shape.input_len(), seed) }
    }

    /// Numbers below 0: what padding, as a zero, would be greater than.
    pub(super) fn negative(shape: Shape, seed: u64) -> Self {
        let mut maps = Self::drawn(shape, seed);
        for x in &mut maps.input {
            *x = -0.5 - x.abs();
        }
        maps
    }

    /// Every `step`-th number is not a usual one.
    pub(super) fn strange(shape: Shape, step: usize, seed: u64) -> Self {
        const STRANGE: [f32; 11] = [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            -0.0,
            1e-45,
            -1e-40,
            f32::MAX,
            f32::MIN,
            3e38,
            -f32::NAN,
            0.0,
        ];
        let mut maps = Self::drawn(shape, seed);
        for (i, value) in maps.input.iter_mut().step_by(step).enumerate() {
            *value = STRANGE[i % STRANGE.len()];
        }
        maps
    }
}
