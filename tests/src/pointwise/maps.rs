//! Maps and weights for the cases.
use anyhow::Result;
use lacuna::conv::Shape;
use lacuna::matrix::{Csr, generate};
use lacuna_cases::pattern::of_rows;

/// What is convolved, in f32: weights of filters × channels, and images × channels × rows × columns.
#[derive(Clone, Debug)]
pub struct Maps {
    pub(super) shape: Shape,
    pub(super) weights: Csr<f32>,
    pub(super) input: Vec<f32>,
    pub(super) bias: Vec<f32>,
    /// What the result holds before.
    pub(super) before: Vec<f32>,
}

impl Maps {
    /// Numbers from -1 to 1; of the weights this part is zero.
    pub(super) fn drawn(shape: Shape, sparsity: f64, seed: u64) -> Result<Self> {
        let pattern = generate::uniform(shape.filters, shape.channels, sparsity, seed)?;
        let values = generate::random_values(pattern.nnz(), seed ^ 2);
        Ok(Self::of(shape, Csr::with_values(pattern, values)?, seed))
    }

    /// The same with weights in every third filter alone.
    pub(super) fn with_empty_rows(shape: Shape, seed: u64) -> Result<Self> {
        let row = |filter: usize| if filter % 3 == 1 { (0..shape.channels as u32).collect() } else { vec![] };
        let pattern = of_rows(shape.channels, &(0..shape.filters).map(row).collect::<Vec<_>>())?;
        let values = generate::random_values(pattern.nnz(), seed ^ 2);
        Ok(Self::of(shape, Csr::with_values(pattern, values)?, seed))
    }

    /// The same, of which some numbers of input, weights, bias and result are not usual ones.
    pub(super) fn strange(shape: Shape, seed: u64) -> Result<Self> {
        const STRANGE: [f32; 10] =
            [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-45, -1e-40, f32::MAX, f32::MIN, 3e38, 0.0];
        let mut maps = Self::drawn(shape, 0.6, seed)?;
        let mut weights = maps.weights.values().to_vec();
        for (values, step) in
            [(&mut maps.input, 29), (&mut weights, 11), (&mut maps.bias, 5), (&mut maps.before, 53)]
        {
            for (i, value) in values.iter_mut().step_by(step).enumerate() {
                *value = STRANGE[i % STRANGE.len()];
            }
        }
        maps.weights = Csr::with_values(maps.weights.pattern().clone(), weights)?;
        Ok(maps)
    }

    fn of(shape: Shape, weights: Csr<f32>, seed: u64) -> Self {
        let draw = |len, salt| generate::random_values(len, seed ^ salt);
        let (input, bias) = (draw(shape.input_len(), 1), draw(shape.filters, 3));
        Self { shape, weights, input, bias, before: draw(shape.output_len(), 4) }
    }
}
