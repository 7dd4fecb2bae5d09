//! Problems of every shape: narrow and wide, short and long rows, few and many of them. The chooser's model is fitted
//! to measurements of all kernels on these.
use super::{Case, PatternKind, table, uniform};
use crate::op::Op;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = table::cases();
    for n in [1, 2, 3, 4, 8, 16, 33, 64, 100] {
        cases.push(uniform(1024, 1024, n, 0.9));
    }
    for n in [1, 2, 4, 8, 16, 33, 50, 64] {
        cases.push(uniform(8192, 2048, n, 0.8));
    }
    // Weights of transformers, and of convolutions over images as wide as N.
    for (m, k, n, sparsity) in [
        (512, 512, 256, 0.9),
        (512, 512, 2048, 0.9),
        (2048, 512, 256, 0.9),
        (512, 2048, 256, 0.8),
        (2048, 512, 2048, 0.8),
        (64, 256, 3136, 0.8),
        (256, 64, 3136, 0.8),
        (512, 128, 784, 0.9),
        (2048, 512, 52, 0.9),
        (256, 2304, 196, 0.9),
        (512, 4608, 52, 0.8),
        (128, 1152, 784, 0.9),
        (256, 64, 25_088, 0.8),
    ] {
        cases.push(uniform(m, k, n, sparsity));
    }
    for n in [1, 4, 16, 32, 128] {
        let pattern = PatternKind::PowerLaw { mean: 5.0, exponent: 2.2 };
        let name = format!("graph 20000 {n}");
        cases.push(Case::new(Op::Spmm, name, [20_000, 20_000, n], pattern));
    }
    cases
}
