//! How uneven rows cost time (SC 2020, Fig. 7): 75 % zeros, and rows from all equal to very uneven.
use super::{Case, PatternKind, Setup};
use crate::op::Op;

/// The suite's name.
pub(crate) const NAME: &str = "imbalance";

/// Coefficients of variation of the row lengths. At 75 % zeros no pattern has more than 1.73.
const COVS: [f64; 7] = [EVEN, 0.25, 0.5, 0.75, 1.0, 1.25, MOST_UNEVEN];
/// The first and the last of these.
pub(crate) const EVEN: f64 = 0.0;
pub(crate) const MOST_UNEVEN: f64 = 1.5;
/// The part that is not zero.
const DENSITY: f64 = 0.25;

pub(super) fn cases(setup: &Setup) -> Vec<Case> {
    let problem = |(m, k, n): (usize, usize, usize)| {
        COVS.map(|cov| Case {
            group: format!("{m} {k} {n}"),
            ..Case::new(
                Op::Spmm,
                format!("{m} {k} {n} CoV {cov}"),
                [m, k, n],
                PatternKind::Varied { mean: DENSITY * k as f64, cov },
            )
        })
    };
    setup.profile.lstm_problems().iter().copied().flat_map(problem).collect()
}
