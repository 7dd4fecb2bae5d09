//! What is told of the network at each sparsity.
use std::time::Duration;

use anyhow::Result;
use lacuna::Stream;
use lacuna_models::model::Held;
use lacuna_models::prune;
use lacuna_models::weights::Weights;

use crate::images::Images;
use crate::inference::Inference;
use crate::training::{Training, network};

/// A table on stdout, and what its rows are made with.
pub(crate) struct Table<'t> {
    pub(crate) stream: Stream,
    pub(crate) hidden: &'t [usize],
    pub(crate) test: Images,
    /// Those of them that the device infers.
    pub(crate) inferred: Images,
}

impl Table<'_> {
    /// Names of the columns.
    pub(crate) fn head(&self) {
        println!();
        println!(
            "            training      accuracy, host        accuracy, device      error / its bound  difference /    kB of weights"
        );
        println!(
            "   zeros    loss      s       all  inferred    sparse     dense    sparse     dense  both bounds    sparse     dense"
        );
    }

    /// A row: a network that was trained for so long, up to this loss.
    ///
    /// # Errors
    /// What the device says, and results that are wrong.
    pub(crate) fn row(&self, training: &Training, loss: f64, took: Duration) -> Result<()> {
        let weights = training.weights()?;
        let network = network(self.inferred.len(), self.hidden)?;
        let infer = |held| Inference::run(&self.stream, &network, &weights, held, &self.inferred);
        let (sparse, dense) = (infer(Held::Sparse)?, infer(Held::Dense)?);
        let accuracy = |images: &Images, answers: &[u8]| {
            format!("{:.2} %", 100.0 * images.correct(answers) as f64 / images.len() as f64)
        };
        let of_host = [&self.test, &self.inferred].map(|images| accuracy(images, &training.answers(images)));
        let of_device = [&sparse, &dense].map(|inference| accuracy(&self.inferred, &inference.answers));
        print!("{:>6.2} %  {loss:.4}  {:>5.1}", 100.0 * zeros(&weights), took.as_secs_f64());
        of_host.iter().chain(&of_device).for_each(|accuracy| print!("  {accuracy:>8}"));
        print!("  {:>8.1e}  {:>8.1e}", sparse.error_over_bound, dense.error_over_bound);
        print!("  {:>11.1e}", sparse.difference_over_bound(&dense));
        println!("  {:>8.1}  {:>8.1}", sparse.weight_bytes as f64 / 1e3, dense.weight_bytes as f64 / 1e3);
        for (held, inference) in [("sparse", &sparse), ("dense", &dense)] {
            println!("          {held:>6}: {}", inference.kernels.join(", "));
        }
        Ok(())
    }
}

/// The part of the matrices that is zero.
fn zeros(weights: &Weights) -> f64 {
    let matrices = || weights.iter().filter(|(name, tensor)| prune::is_matrix(name, tensor));
    let values = || matrices().flat_map(|(_, tensor)| tensor.values());
    values().filter(|&&value| value == 0.0).count() as f64 / values().count() as f64
}
