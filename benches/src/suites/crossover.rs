//! From which sparsity on sparse beats dense (SC 2020, Fig. 1): an LSTM's weights from half to nearly all zeros.
use super::{Case, Setup, uniform};

/// The parts of zeros, closer where the lines cross.
const SPARSITIES: [f64; 13] = [0.5, 0.55, 0.6, 0.65, 0.68, 0.71, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99];

pub(super) fn cases(setup: &Setup) -> Vec<Case> {
    let problem = |(m, k, n): (usize, usize, usize)| {
        SPARSITIES.map(|sparsity| Case { group: format!("{m} {k} {n}"), ..uniform(m, k, n, sparsity) })
    };
    setup.profile.lstm_problems().iter().copied().flat_map(problem).collect()
}
