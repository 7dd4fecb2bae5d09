//! Latent Dirichlet allocation.
use lacuna::Device;
use lacuna::matrix::Csr;

use crate::documents::{Documents, Shape};
use crate::matching::greedy_cosines;
use crate::side::{Inner, Side};
use crate::topics::{Lda, Options, Progress, divergence};

const SHAPE: Shape = Shape { documents: 96, words: 80, topics: 3, length: 60 };

fn options(inner: Inner) -> Options {
    Options { topics: SHAPE.topics, share_prior: 0.05, word_prior: 0.01, inner, seed: 5 }
}

/// A model after its steps, and where it stood after each.
fn fit(counts: &Csr<f32>, inner: Inner, steps: usize) -> (Lda, Vec<Progress>) {
    let mut model = Lda::new(&Device::simulator(), counts, options(inner)).unwrap();
    let progress = (0..steps).map(|_| model.step().unwrap()).collect();
    (model, progress)
}

#[test]
fn finds_the_topics() {
    for seed in [1, 2] {
        let truth = Documents::draw(SHAPE, seed).unwrap();
        let (model, progress) = fit(&truth.counts, Inner::Kernel, 30);
        for (step, pair) in progress.windows(2).enumerate() {
            let [before, after] = [pair[0].objective, pair[1].objective];
            assert!(after < before + 1e-7, "seed {seed}, step {step}: {before}, {after}");
            assert!(pair[1].took.inner <= pair[1].took.step);
        }
        // What is most likely is more likely than the truth.
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        let (mut rows, _) = Side::pair(&device, &stream, &truth.counts, SHAPE.topics, Inner::Plain).unwrap();
        rows.fix(&truth.topics).unwrap();
        let of_truth = divergence(&truth.counts, &rows.products(&stream, &truth.shares).unwrap());
        let last = progress.last().unwrap().divergence;
        assert!((0.8 * of_truth..of_truth).contains(&last), "seed {seed}: {last}, of the truth {of_truth}");

        let cosines = greedy_cosines(&model.topics, &truth.topics, SHAPE.topics);
        assert!(cosines.iter().all(|&cosine| cosine > 0.97), "seed {seed}: {cosines:?}");
        for shares in model.shares.chunks(SHAPE.topics) {
            assert!((shares.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{shares:?}");
        }
        for topic in 0..SHAPE.topics {
            let sum: f32 = model.topics.iter().skip(topic).step_by(SHAPE.topics).sum();
            assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        }
    }
}

#[test]
fn the_dense_product_on_the_host_leads_to_the_same() {
    let truth = Documents::draw(SHAPE, 3).unwrap();
    let (_, kernel) = fit(&truth.counts, Inner::Kernel, 4);
    let (_, plain) = fit(&truth.counts, Inner::Plain, 4);
    for (kernel, plain) in kernel.iter().zip(&plain) {
        assert!((kernel.objective - plain.objective).abs() < 1e-5, "{kernel:?}, {plain:?}");
    }
}

/// Also a word that is listed, and was counted 0 times.
#[test]
fn documents_without_words_have_all_topics_alike() {
    let counts = Csr::new(3, 4, vec![0, 2, 2, 4], vec![0, 1, 2, 3], vec![2.0, 1.0, 0.0, 3.0]).unwrap();
    let (model, progress) = fit(&counts, Inner::Kernel, 3);
    assert!(progress.iter().all(|progress| progress.objective.is_finite()), "{progress:?}");
    assert_eq!(model.shares[3..6], [1.0 / 3.0; 3]);
}

#[test]
fn matching_gives_each_topic_one_partner() {
    // Columns are topics. Both found ones are most like the first true one; the second of them exactly.
    let wanted = [1.0, 0.0, 0.0, 1.0];
    let found = [4.0, 2.0, 3.0, 0.0];
    let cosines = greedy_cosines(&found, &wanted, 2);
    assert!((cosines[0] - 1.0).abs() < 1e-12 && (cosines[1] - 0.6).abs() < 1e-12, "{cosines:?}");
}
