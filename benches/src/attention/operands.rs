//! The operands of one layer of attention, and what it should come to.
use anyhow::Result;
use lacuna::{Buffer, Device};
use lacuna_cases::{Number, Problem};
use lacuna_reference::{AttentionReference, Heads, ScoreMod, attention};

use crate::checked::Checked;

/// The operands on the host, one head behind the other.
pub(super) struct Host<T> {
    pub(super) q: Vec<T>,
    pub(super) k: Vec<T>,
    pub(super) v: Vec<T>,
    pub(super) checked: Checked,
    /// Of Q, by head, the rows that are checked.
    checked_q: Vec<Vec<T>>,
    width: usize,
}

impl<T: Number> Host<T> {
    pub(super) fn new(problem: &Problem) -> Result<Self> {
        let (queries, keys, width) = (problem.rows(), problem.cols(), problem.width);
        let q = problem.dense_as::<T>("Q", queries, 0xc)?;
        let k = problem.dense_as::<T>("K", keys, 0xb)?;
        let v = problem.dense_as::<T>("V", keys, 0xd)?;
        let checked = Checked::of(problem)?;
        let of_head = |head: usize| checked.dense(&q[head * queries * width..][..queries * width], width);
        let checked_q = (0..problem.batch).map(of_head).collect();
        Ok(Self { q, k, v, checked, checked_q, width })
    }

    /// What each head's checked rows should be.
    pub(super) fn references(&self, scale: f32) -> Result<Vec<AttentionReference<'_, T>>> {
        let keys = self.checked.pattern.cols() * self.width;
        let references = self.checked_q.iter().enumerate().map(|(head, q)| {
            let (k, v) = (&self.k[head * keys..][..keys], &self.v[head * keys..][..keys]);
            Ok(attention(
                &self.checked.pattern,
                Heads { q, k, v, dim: self.width, scale, score_mod: ScoreMod::default() },
            )?)
        });
        references.collect()
    }
}

/// The operands on a device.
pub(super) struct Operands<T: Number> {
    pub(super) q: Buffer<T>,
    pub(super) k: Buffer<T>,
    pub(super) v: Buffer<T>,
    pub(super) o: Buffer<T>,
}

impl<T: Number> Operands<T> {
    pub(super) fn new(device: &Device, problem: &Problem, host: &Host<T>) -> Result<Self> {
        let [q, k, v] = [&host.q, &host.k, &host.v].map(|operand| device.upload(operand));
        Ok(Self { q: q?, k: k?, v: v?, o: device.upload(&unwritten_o::<T>(problem)?)? })
    }
}

/// What O is before it is computed.
pub(super) fn unwritten_o<T: Number>(problem: &Problem) -> Result<Vec<T>> {
    problem.unwritten("O", problem.batch * problem.rows() * problem.width)
}
