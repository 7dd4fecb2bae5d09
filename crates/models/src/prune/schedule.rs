//! Sparsity that grows while a network is trained.
use super::{PruneError, check_sparsity};

/// The schedule of Zhu and Gupta (*To prune, or not to prune*, 2017, equation 1), by which the networks of SC 2020 were pruned: sparsity
/// grows quickly at first, and slowly when few weights are left. At step t = t₀ + k·Δt, for k from 0 to n, it is
///
/// s(t) = s_f + (s_i − s_f)·(1 − k/n)³
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CubicSchedule {
    initial: f64,
    target: f64,
    start: u64,
    interval: u64,
    prunings: u64,
}

impl CubicSchedule {
    /// A schedule from sparsity `initial` (s_i) at step `start` (t₀) to `target` (s_f), with `prunings` (n) more, `interval` steps (Δt)
    /// apart.
    ///
    /// # Errors
    /// [`PruneError::Sparsity`] and [`PruneError::Decreases`], of the sparsities; [`PruneError::NoSteps`] where `interval` or `prunings`
    /// is 0; [`PruneError::TooLong`].
    pub fn new(
        initial: f64,
        target: f64,
        start: u64,
        interval: u64,
        prunings: u64,
    ) -> Result<Self, PruneError> {
        check_sparsity("the first sparsity", initial)?;
        check_sparsity("the last sparsity", target)?;
        if target < initial {
            return Err(PruneError::Decreases { initial, target });
        }
        for (what, count) in [("interval", interval), ("prunings", prunings)] {
            if count == 0 {
                return Err(PruneError::NoSteps { what });
            }
        }
        if interval.checked_mul(prunings).and_then(|steps| steps.checked_add(start)).is_none() {
            return Err(PruneError::TooLong { start, interval, prunings });
        }
        Ok(Self { initial, target, start, interval, prunings })
    }

    /// The sparsity at a step of training: that of the last pruning up to this step; 0 before the first.
    pub fn sparsity(&self, step: u64) -> f64 {
        let Some(since) = step.checked_sub(self.start) else { return 0.0 };
        let done = (since / self.interval).min(self.prunings);
        let left = 1.0 - done as f64 / self.prunings as f64;
        self.target + (self.initial - self.target) * left.powi(3)
    }

    /// Whether weights are pruned at this step.
    pub fn is_pruning(&self, step: u64) -> bool {
        (self.start..=self.end()).contains(&step) && (step - self.start).is_multiple_of(self.interval)
    }

    /// The step of the last pruning.
    pub fn end(&self) -> u64 {
        self.start + self.interval * self.prunings
    }
}
