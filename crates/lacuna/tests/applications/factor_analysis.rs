//! Sparse factor analysis.
use lacuna::Device;
use lacuna::matrix::Csr;

use crate::factors::{FactorAnalysis, Options, Progress};
use crate::ratings::{Ratings, Shape};
use crate::side::Inner;

const SHAPE: Shape = Shape { rows: 64, cols: 48, rank: 3, sparsity: 0.6, noise: 0.1 };
const STEPS: usize = 10;

fn options(inner: Inner) -> Options {
    Options { rank: SHAPE.rank, regularization: 0.02, cg_steps: 3, inner, seed: 5 }
}

/// A model after its steps, and where it stood after each.
fn fit(x: &Csr<f32>, options: Options, steps: usize) -> (FactorAnalysis, Vec<Progress>) {
    let mut model = FactorAnalysis::new(&Device::simulator(), x, options).unwrap();
    let progress = (0..steps).map(|_| model.step().unwrap()).collect();
    (model, progress)
}

#[test]
fn finds_the_ratings_that_nobody_gave() {
    for seed in [1, 2] {
        let ratings = Ratings::draw(SHAPE, seed).unwrap();
        let (model, progress) = fit(&ratings.x, options(Inner::Kernel), STEPS);
        let mut before = 0.5 * ratings.x.values().iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
        for (step, Progress { objective, took, .. }) in progress.iter().enumerate() {
            assert!(*objective < before * (1.0 + 1e-6), "seed {seed}, step {step}: {before}, {objective}");
            assert!(took.inner <= took.step);
            before = *objective;
        }
        // The factors have (64 + 48)·3 − 3² = 327 free numbers for some 1230 ratings: that part of the noise they learn.
        let noise = f64::from(SHAPE.noise);
        let learned = noise * (1.0 - 327.0 / ratings.x.nnz() as f64).sqrt();
        let error = progress[STEPS - 1].error;
        assert!((0.9 * learned..1.1 * learned).contains(&error), "seed {seed}: {error}, not about {learned}");
        // Where nothing was known the model is nearer to the truth than the ratings themselves were.
        let unseen = ratings.unseen_error(&model.a, &model.b);
        assert!(unseen < noise, "seed {seed}: {unseen}");
    }
}

#[test]
fn error_falls_at_each_step() {
    let ratings = Ratings::draw(SHAPE, 3).unwrap();
    // Without regularization the objective is the error alone.
    let (_, progress) = fit(&ratings.x, Options { regularization: 0.0, ..options(Inner::Kernel) }, STEPS);
    for (step, pair) in progress.windows(2).enumerate() {
        assert!(pair[1].error < pair[0].error * (1.0 + 1e-6), "step {step}: {pair:?}");
    }
}

#[test]
fn the_dense_product_on_the_host_leads_to_the_same() {
    let ratings = Ratings::draw(SHAPE, 4).unwrap();
    let (_, kernel) = fit(&ratings.x, options(Inner::Kernel), 4);
    let (_, plain) = fit(&ratings.x, options(Inner::Plain), 4);
    for (kernel, plain) in kernel.iter().zip(&plain) {
        let part = (kernel.objective / plain.objective - 1.0).abs();
        assert!(part < 1e-4, "{} and {}", kernel.objective, plain.objective);
    }
}

/// Users without ratings, and items that nobody rated.
#[test]
fn empty_rows_and_columns_stay_at_nothing() {
    let x = Csr::new(4, 5, vec![0, 0, 2, 2, 3], vec![1, 3, 3], vec![1.0, -2.0, 0.5]).unwrap();
    let options = Options { regularization: 0.001, ..options(Inner::Kernel) };
    let (model, progress) = fit(&x, options, 3);
    let rank = options.rank;
    for row in [0, 2] {
        assert_eq!(model.a[row * rank..][..rank], [0.0; 3]);
    }
    assert!(model.a.iter().chain(&model.b).all(|x| x.is_finite()));
    assert!(progress[2].error < 0.01, "{progress:?}");
}
