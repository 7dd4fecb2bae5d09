//! Problems of many shapes whose peers' times are well known to us.
use super::{Case, uniform};

const TABLE: [(usize, usize, usize, f64); 14] = [
    (1024, 1024, 32, 0.7),
    (1024, 1024, 128, 0.9),
    (4096, 1024, 128, 0.8),
    (2048, 2048, 32, 0.9),
    (8192, 2048, 32, 0.9),
    (8192, 2048, 128, 0.7),
    (8192, 2048, 128, 0.75),
    (8192, 2048, 128, 0.9),
    (16_384, 4096, 128, 0.9),
    (8192, 8192, 32, 0.7),
    (8192, 8192, 128, 0.7),
    (512, 2048, 1568, 0.9),
    (512, 512, 3136, 0.8),
    (1024, 256, 196, 0.9),
];

pub(super) fn cases() -> Vec<Case> {
    TABLE.into_iter().map(|(m, k, n, sparsity)| uniform(m, k, n, sparsity)).collect()
}
