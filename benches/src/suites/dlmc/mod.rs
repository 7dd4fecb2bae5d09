//! Weights of ResNet-50 and of a Transformer: the Deep Learning Matrix Collection (SC 2020, Fig. 9 and Table I), real
//! where there is data, or else drawn with the same shapes, sparsities and variation of the row lengths.
mod layers;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use lacuna::matrix::io::smtx;
use lacuna_verify::data::{Data, Folder};
use lacuna_verify::dlmc::{Weights, weights};

use self::layers::{RESNET, SPARSITIES, TRANSFORMER};
use super::{Case, PatternKind, Setup};
use crate::exit::Usage;
use crate::op::Op;

/// The folder of the collection.
const FOLDER: &str = "dlmc";
/// Images or sentences at once: inference, and a small batch.
const BATCHES: [usize; 2] = [1, 8];
/// Columns that one sentence gives.
const TRANSFORMER_N: usize = 256;

pub(super) fn cases(setup: &Setup) -> Result<Vec<Case>> {
    let mut data = Data::find(setup.data.as_deref()).map_err(|error| Usage(error.to_string()))?;
    data.unpack(FOLDER);
    match data.folder(FOLDER) {
        Folder::At(folder) => {
            let weights = weights(&folder).map_err(Usage)?;
            let cases: Result<Vec<_>> = weights.into_iter().map(real).collect();
            Ok(cases?.concat())
        }
        Folder::Packed => Err(Usage(format!("{FOLDER}.tar.xz cannot be unpacked: unpack it by hand")).into()),
        Folder::Missing(why) => {
            if setup.data.is_some() {
                return Err(Usage(why).into());
            }
            eprintln!("lacuna-bench: suite dlmc is drawn, with the statistics of the real matrices: {why}");
            Ok(drawn())
        }
    }
}

/// The problems of one matrix of the collection.
fn real(weights: Weights) -> Result<Vec<Case>> {
    let pattern = smtx::read_path(&weights.path).with_context(|| weights.name.clone())?;
    let (m, k) = (pattern.rows(), pattern.cols());
    let name = weights.name.replace("magnitude_pruning/", "");
    let network = name.split('/').next().unwrap_or(&name).to_owned();
    Ok(batches(&network, &name, (m, k), weights.n, &PatternKind::Given(Arc::new(pattern))))
}

/// Problems like those of the collection.
fn drawn() -> Vec<Case> {
    let convolutions = RESNET.iter().map(|&(layer, n)| ("rn50", layer, Some(n)));
    let transformer = TRANSFORMER.iter().map(|&layer| ("transformer", layer, None));
    let mut cases = Vec::new();
    for (network, layer, n) in convolutions.chain(transformer) {
        for (sparsity, cov) in SPARSITIES.into_iter().zip(layer.cov) {
            let name = format!("{network}/{sparsity}/{} (drawn)", layer.name);
            let pattern = PatternKind::Varied { mean: (1.0 - sparsity) * layer.k as f64, cov };
            cases.extend(batches(network, &name, (layer.m, layer.k), n, &pattern));
        }
    }
    cases
}

/// A matrix with each batch. `image` is N for one image; where there is none, the network is the Transformer.
fn batches(
    network: &str,
    name: &str,
    (m, k): (usize, usize),
    image: Option<usize>,
    pattern: &PatternKind,
) -> Vec<Case> {
    let case = |batch: usize| {
        // As in the paper, one image is padded to whole vectors of four.
        let n = (image.unwrap_or(TRANSFORMER_N) * batch).next_multiple_of(4);
        let group = format!("{network}, batch {batch}");
        Case { group, ..Case::new(Op::Spmm, name.into(), [m, k, n], pattern.clone()) }
    };
    BATCHES.map(case).into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::thinned;
    use super::*;
    use crate::problem::Problem;

    /// What a name and a batch say of a case, apart from the pattern.
    fn shape(case: &Case) -> (String, usize, usize, usize, String) {
        let name = case.name.trim_end_matches(" (drawn)").to_owned();
        (name, case.rows, case.cols, case.width, case.group.clone())
    }

    #[test]
    fn drawn_matrices_are_like_the_table() {
        let cases = drawn();
        assert_eq!(cases.len(), 216);
        for case in cases.iter().filter(|case| case.rows * case.cols < 300_000 && case.width < 1000) {
            let PatternKind::Varied { mean, cov } = case.pattern else { panic!("{}", case.name) };
            let problem = Problem::generate(case, 1).unwrap();
            let stats = problem.a.pattern().stats();
            let few = 4.0 / (case.rows as f64).sqrt();
            assert!((stats.mean_row_length / mean - 1.0).abs() < few * cov.max(0.1), "{}", case.name);
            assert!((stats.row_length_cov / cov - 1.0).abs() < 0.1 + few, "{}: {stats:?}", case.name);
        }
    }

    #[test]
    fn a_part_has_every_network_and_batch_and_every_sparsity() {
        let part = thinned(drawn(), 48);
        let groups: BTreeSet<&str> = part.iter().map(|case| case.group.as_str()).collect();
        let percent = |case: &Case| (100.0 * case.level().unwrap()).round() as usize;
        let sparsities: BTreeSet<usize> = part.iter().map(percent).collect();
        assert_eq!((groups.len(), sparsities.len()), (4, 4), "{groups:?} {sparsities:?}");
    }

    #[test]
    fn n_is_that_of_the_paper() {
        let cases = drawn();
        let ns = |layer: &str| -> Vec<usize> {
            let here = cases.iter().filter(|case| case.name.contains(layer) && case.name.contains("/0.9/"));
            here.map(|case| case.width).collect()
        };
        assert_eq!(ns("bottleneck_1_block_group4_1_1"), [52, 392]);
        assert_eq!(ns("final_dense"), [4, 8]);
        assert_eq!(ns("encoder_layer_5_ffn_conv1"), [256, 2048]);
    }

    /// The table against the files it was measured from, where they are.
    #[test]
    fn the_table_is_that_of_the_real_matrices() {
        let mut data = Data::find(None).unwrap();
        data.unpack(FOLDER);
        let Folder::At(folder) = data.folder(FOLDER) else {
            eprintln!("skipped: there is no folder of real data");
            return;
        };
        let mut real: Vec<Case> =
            weights(&folder).unwrap().into_iter().flat_map(|weights| super::real(weights).unwrap()).collect();
        let mut drawn = drawn();
        let order = |case: &Case| (case.name.clone(), case.width);
        real.sort_by_key(order);
        drawn.sort_by_key(order);
        assert_eq!(real.len(), drawn.len());
        for (real, drawn) in real.iter().zip(&drawn) {
            assert_eq!(shape(real), shape(drawn));
            let (PatternKind::Given(pattern), PatternKind::Varied { mean, cov }) =
                (&real.pattern, &drawn.pattern)
            else {
                panic!("{}", real.name)
            };
            let stats = pattern.stats();
            assert!((stats.nnz as f64 - mean * real.rows as f64).abs() <= 2.0, "{}: {stats:?}", real.name);
            assert!((stats.row_length_cov - cov).abs() < 0.0006, "{}: {stats:?}", real.name);
        }
    }
}
