//! Small problems of every kind.
use super::{Case, PatternKind, uniform};
use crate::op::Op;

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, m, k, n, pattern| Case::new(Op::Spmm, name.into(), [m, k, n], pattern);
    let varied = |mean, cov| PatternKind::Varied { mean, cov };
    vec![
        uniform(256, 512, 128, 0.7),
        uniform(256, 512, 128, 0.8),
        uniform(256, 512, 128, 0.9),
        uniform(512, 512, 32, 0.9),
        uniform(512, 512, 8, 0.9),
        uniform(512, 512, 1, 0.9),
        uniform(256, 256, 33, 0.8),
        uniform(256, 256, 50, 0.8),
        case("1×1 convolution", 128, 64, 784, PatternKind::Uniform { sparsity: 0.8 }),
        case("attention output", 256, 256, 256, PatternKind::Uniform { sparsity: 0.9 }),
        case("even rows", 512, 512, 64, varied(51.0, 0.0)),
        case("uneven rows", 512, 512, 64, varied(51.0, 0.5)),
        case("very uneven rows", 512, 512, 64, varied(51.0, 1.5)),
        case("graph", 2048, 2048, 32, PatternKind::PowerLaw { mean: 5.0, exponent: 2.2 }),
    ]
}
