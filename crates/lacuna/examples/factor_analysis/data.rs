//! Ratings of a known model.
use lacuna::matrix::generate::{GenerateError, uniform};
use lacuna::matrix::{Csr, Pattern};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, StandardNormal};

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Users: rows of X.
    pub(crate) rows: usize,
    /// Items: columns of X.
    pub(crate) cols: usize,
    /// Columns of the factors; not 0.
    pub(crate) rank: usize,
    /// The part of all ratings that nobody gave.
    pub(crate) sparsity: f64,
    /// Standard deviation of what is added to a rating; that of the ratings themselves is 1.
    pub(crate) noise: f32,
}

/// Ratings X = A·Bᵀ + noise at some places, and the factors behind them.
pub(crate) struct Ratings {
    pub(crate) x: Csr<f32>,
    rank: usize,
    a: Vec<f32>,
    b: Vec<f32>,
}

impl Ratings {
    /// # Errors
    /// A sparsity that is none, or sizes that do not fit 32 bits.
    pub(crate) fn draw(shape: Shape, seed: u64) -> Result<Self, GenerateError> {
        let Shape { rows, cols, rank, sparsity, noise } = shape;
        let pattern = uniform(rows, cols, sparsity, seed)?;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x5eed);
        let mut normal = |scale: f32, len: usize| -> Vec<f32> {
            let draw = |_| scale * Distribution::<f32>::sample(&StandardNormal, &mut random);
            (0..len).map(draw).collect()
        };
        // The product of two rows has variance 1.
        let scale = (rank as f32).powf(-0.25);
        let (a, b) = (normal(scale, rows * rank), normal(scale, cols * rank));
        let mut values = normal(noise, pattern.nnz());
        for (value, (row, column)) in values.iter_mut().zip(places(&pattern)) {
            *value += dot(&a, &b, rank, row, column);
        }
        let x = Csr::with_values(pattern, values).expect("there is a value for each nonzero");
        Ok(Self { x, rank, a, b })
    }

    /// How far a model is from the ratings without noise that nobody gave: root mean square over all empty places; NaN where
    /// there is none.
    pub(crate) fn unseen_error(&self, a: &[f32], b: &[f32]) -> f64 {
        let (mut sum, mut count) = (0.0, 0usize);
        for row in 0..self.x.rows() {
            let seen = self.x.row(row).0;
            for column in (0..self.x.cols()).filter(|&column| seen.binary_search(&(column as u32)).is_err()) {
                let true_rating = dot(&self.a, &self.b, self.rank, row, column);
                sum += f64::from(dot(a, b, self.rank, row, column) - true_rating).powi(2);
                count += 1;
            }
        }
        (sum / count as f64).sqrt()
    }
}

/// Row and column of each nonzero.
fn places(pattern: &Pattern) -> impl Iterator<Item = (usize, usize)> + '_ {
    let row_places = |row: usize| {
        let [start, end] = [row, row + 1].map(|row| pattern.row_offsets()[row] as usize);
        pattern.col_indices()[start..end].iter().map(move |&column| (row, column as usize))
    };
    (0..pattern.rows()).flat_map(row_places)
}

fn dot(a: &[f32], b: &[f32], rank: usize, row: usize, column: usize) -> f32 {
    let (a, b) = (&a[row * rank..][..rank], &b[column * rank..][..rank]);
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
