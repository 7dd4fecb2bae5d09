//! Weights of ResNet-50 and of a Transformer: the Deep Learning Matrix Collection, real where there is data, or else drawn
//! with the same shapes, sparsities and variation of the row lengths.
use std::sync::Arc;

use anyhow::{Context as _, Result};
use lacuna::matrix::io::smtx;
use lacuna_cases::Draw;
use lacuna_cases::dlmc::{Weights, weights};
use lacuna_cases::exit::Usage;
use serde::Deserialize;

use super::case::{Case, Setup, real, sparse};
use crate::spmm;

/// The folder of the collection.
pub(super) const FOLDER: &str = "dlmc";

/// What the collection is like.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Collection {
    /// Images or sentences at once.
    batches: Vec<usize>,
    /// Columns that one sentence gives.
    transformer_n: usize,
    /// The parts of zeros.
    sparsities: Vec<f64>,
    layers: Vec<Layer>,
}

/// A layer of a network.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Layer {
    network: String,
    /// Its name in the collection.
    name: String,
    /// Rows of its weights: outputs.
    m: usize,
    /// Columns: inputs.
    k: usize,
    /// Coefficients of variation of the row lengths at each of the sparsities.
    cov: Vec<f64>,
    /// N for one image, the pixels of its output, or for one sentence.
    n: usize,
}

impl Collection {
    pub(super) fn cases(&self, setup: &Setup) -> Result<Vec<Case>> {
        let real = real(setup, FOLDER, "suite dlmc", |folder| {
            let weights = weights(folder).map_err(Usage)?;
            let cases: Result<Vec<_>> = weights.into_iter().map(|weights| self.real(weights)).collect();
            Ok(cases?.concat())
        })?;
        Ok(real.unwrap_or_else(|| self.drawn()))
    }

    /// The problems of one matrix of the collection.
    pub(super) fn real(&self, weights: Weights) -> Result<Vec<Case>> {
        let pattern = smtx::read_path(&weights.path).with_context(|| weights.name.clone())?;
        let (m, k) = (pattern.rows(), pattern.cols());
        let name = weights.name.replace("magnitude_pruning/", "");
        let network = name.split('/').next().unwrap_or(&name);
        let n = weights.n.unwrap_or(self.transformer_n);
        Ok(self.batches(network, &name, [m, k, n], &Draw::Given(Arc::new(pattern))))
    }

    /// Problems like those of the collection.
    pub(super) fn drawn(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for Layer { network, name, m, k, cov, n } in &self.layers {
            for (&sparsity, &cov) in self.sparsities.iter().zip(cov) {
                let name = format!("{network}/{sparsity}/{name} (drawn)");
                let pattern = Draw::Varied { mean: (1.0 - sparsity) * *k as f64, cov };
                cases.extend(self.batches(network, &name, [*m, *k, *n], &pattern));
            }
        }
        cases
    }

    /// A matrix with each batch.
    fn batches(&self, network: &str, name: &str, [m, k, n]: [usize; 3], pattern: &Draw) -> Vec<Case> {
        let case = |&batch: &usize| {
            let names = [name.to_string(), format!("{network}, batch {batch}")];
            // As in the paper, one image is padded to whole vectors of four.
            let n = (n * batch).next_multiple_of(4);
            sparse(&spmm::OPERATION, names, [m, k, n], pattern.clone())
        };
        self.batches.iter().map(case).collect()
    }
}
