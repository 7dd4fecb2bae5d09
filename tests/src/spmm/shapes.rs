//! Shapes: those that Sputnik tests itself with, and those whose times on a GPU are well known.
use lacuna::matrix::generate;

use super::problem::Problem;
use super::{Effort, case};
use crate::Case;

/// Sputnik's: M, K, N, nonzeros.
const SPUTNIK: [(usize, usize, usize, usize); 12] = [
    (4, 32, 32, 32),
    (4, 32, 48, 128),
    (7, 96, 40, 333),
    (11, 55, 8, 293),
    (4, 128, 128, 512),
    (64, 512, 512, 16_384),
    (1024, 1024, 512, 131_072),
    (1024, 1024, 256, 131_072),
    (1024, 1024, 128, 131_072),
    (2048, 2048, 128, 1 << 20),
    (6144, 2048, 128, 3 << 20),
    (8192, 2048, 128, 4 << 20),
];

/// M, K, N and the part of A that is zero.
const MEASURED: [(usize, usize, usize, f64); 14] = [
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

/// Products up to which a shape is quick.
const QUICK: usize = 100_000;
/// Products up to which a shape is simulated at all.
const SIMULATED: usize = 20_000_000;

pub(super) fn cases() -> Vec<Case> {
    let sputnik = SPUTNIK.into_iter().map(|(m, k, n, nnz)| {
        case(
            format!("spmm/sputnik/{m}x{k}x{n}"),
            format!("M = {m}, K = {k}, N = {n}, {nnz} nonzeros"),
            effort(nnz * n),
            move |seed| Problem::generated(generate::uniform_nnz(m, k, nnz, seed), n, seed),
        )
    });
    let measured = MEASURED.into_iter().map(|(m, k, n, sparsity)| {
        case(
            format!("spmm/measured/{m}x{k}x{n}_{sparsity}"),
            format!("M = {m}, K = {k}, N = {n}, sparsity {sparsity}"),
            Effort::Gpu,
            move |seed| Problem::generated(generate::uniform(m, k, sparsity, seed), n, seed),
        )
    });
    sputnik.chain(measured).collect()
}

fn effort(products: usize) -> Effort {
    if products <= QUICK {
        Effort::Quick
    } else if products <= SIMULATED {
        Effort::Slow
    } else {
        Effort::Gpu
    }
}
