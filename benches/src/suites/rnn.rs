//! The grid of *Sparse GPU Kernels for Deep Learning* (SC 2020), Fig. 10: weights of RNN, GRU and LSTM cells.
use super::{Case, uniform};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for hidden in [1024, 2048, 4096, 8192] {
        for gates in [1, 3, 4] {
            for n in [32, 128] {
                for sparsity in [0.7, 0.8, 0.9] {
                    cases.push(uniform(gates * hidden, hidden, n, sparsity));
                }
            }
        }
    }
    cases
}
