//! Inputs of attention.
use lacuna::matrix::{Pattern, generate};
use lacuna_reference::ScoreMod;

use crate::Number;
use lacuna_cases::number::rounded;

/// Q, K and V of some heads that share a mask, row by row, one head after another.
#[derive(Clone, Debug)]
pub struct Problem<T = f32> {
    /// The mask, queries × keys.
    pub mask: Pattern,
    /// Elements of a row.
    pub dim: usize,
    /// Heads.
    pub heads: usize,
    /// Multiplies the scores; 1/√d if none.
    pub scale: Option<f32>,
    /// Holds scores.
    pub softcap: Option<f32>,
    /// Of each head, what a step of distance takes of a score.
    pub slopes: Option<Vec<f32>>,
    /// Q.
    pub q: Vec<T>,
    /// K.
    pub k: Vec<T>,
    /// V.
    pub v: Vec<T>,
}

impl Problem {
    /// A problem with this mask, and values uniform in [-2, 2).
    pub fn draw(mask: Pattern, dim: usize, heads: usize, seed: u64) -> Self {
        let draw = |tokens: usize, salt: u64| -> Vec<f32> {
            let values = generate::random_values(heads * tokens * dim, seed ^ salt);
            values.into_iter().map(|value| 2.0 * value).collect()
        };
        let (q, k, v) = (draw(mask.rows(), 1), draw(mask.cols(), 2), draw(mask.cols(), 3));
        Self { mask, dim, heads, scale: None, softcap: None, slopes: None, q, k, v }
    }

    /// The same with values rounded to another type.
    pub fn rounded<T: Number>(&self) -> Problem<T> {
        let Self { ref mask, dim, heads, scale, softcap, ref slopes, .. } = *self;
        let (mask, slopes) = (mask.clone(), slopes.clone());
        let (q, k, v) = (rounded(&self.q), rounded(&self.k), rounded(&self.v));
        Problem { mask, dim, heads, scale, softcap, slopes, q, k, v }
    }

    /// The elements of row `key` of K of the first head.
    pub fn key(&mut self, key: usize) -> &mut [f32] {
        &mut self.k[key * self.dim..][..self.dim]
    }

    /// The elements of row `key` of V of the first head.
    pub fn value(&mut self, key: usize) -> &mut [f32] {
        &mut self.v[key * self.dim..][..self.dim]
    }
}

impl<T> Problem<T> {
    /// What is done to the scores of a head.
    pub fn score_mod(&self, head: usize) -> ScoreMod {
        ScoreMod { softcap: self.softcap, slope: self.slopes.as_ref().map_or(0.0, |slopes| slopes[head]) }
    }

    /// Whether scores are products times the scale.
    pub fn is_plain(&self) -> bool {
        self.softcap.is_none() && self.slopes.is_none()
    }
}
