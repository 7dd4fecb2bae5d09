//! Sampled products: gradients of sparse weights, and products along the edges of graphs.
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use lacuna::matrix::io::mtx;
use lacuna_verify::data::{Data, Folder, named_files};

use super::{Case, PatternKind, Setup, dlmc, rnn};
use crate::exit::Usage;
use crate::op::Op;

/// The names of the suites.
pub(crate) const RNN: &str = "sddmm-rnn";
pub(crate) const DLMC: &str = "sddmm-dlmc";
pub(crate) const GRAPHS: &str = "sddmm-graphs";

/// The group of the SC 2020 paper's grid in suite `sddmm-rnn`.
pub(crate) const GRID: &str = "grid";

/// M, K, N and the part of zeros of problems whose peers' times are well known to us.
const TABLE: [(usize, usize, usize, f64); 6] = [
    (8192, 128, 2048, 0.75),
    (8192, 128, 2048, 0.9),
    (8192, 32, 2048, 0.9),
    (4096, 128, 4096, 0.8),
    (2048, 256, 512, 0.9),
    (12_288, 64, 12_288, 0.95),
];

/// K of graphs: that of PRedS, Table II.
const GRAPH_KS: [usize; 6] = [32, 64, 128, 256, 512, 1024];

/// The folder of graphs.
const FOLDER: &str = "graphs";

/// What the graphs are like: nodes, nonzeros a row, and their coefficient of variation.
const DRAWN: [(&str, usize, f64, f64); 5] = [
    ("ca-CondMat", 23_133, 8.08, 1.316),
    ("citeseer", 3327, 2.77, 1.218),
    ("cora", 2708, 4.90, 1.067),
    ("p2p-Gnutella31", 62_586, 2.36, 1.858),
    ("pubmed", 19_717, 4.50, 1.653),
];

/// The gradients of the weights of suite `rnn`: its N is their K, and its K their N. Before them the table.
pub(super) fn rnn_cases() -> Vec<Case> {
    let case = |name: String, [m, k, n]: [usize; 3], sparsity: f64, group: &str| {
        let case = Case::new(Op::Sddmm, name, [m, n, k], PatternKind::Uniform { sparsity });
        Case { group: group.into(), ..case }
    };
    let table = TABLE.into_iter().map(|(m, k, n, sparsity)| {
        // Two stand in the grid, too: names tell them apart.
        case(format!("table {m} {k} {n} {sparsity}"), [m, k, n], sparsity, "table")
    });
    let grid = rnn::cases().into_iter().filter_map(|weights| {
        let (m, k, n, sparsity) = (weights.rows, weights.width, weights.cols, weights.level()?);
        Some(case(format!("{m} {k} {n} {sparsity}"), [m, k, n], sparsity, GRID))
    });
    table.chain(grid).collect()
}

/// The gradients of the weights of suite `dlmc`: its N is their K.
pub(super) fn dlmc_cases(setup: &Setup) -> Result<Vec<Case>> {
    let gradient = |weights: Case| Case { op: Op::Sddmm, ..weights };
    Ok(dlmc::cases(setup)?.into_iter().map(gradient).collect())
}

/// Graphs, real where there is data, or else drawn with as many nodes and nonzeros, and rows that vary as much.
pub(super) fn graph_cases(setup: &Setup) -> Result<Vec<Case>> {
    let mut data = Data::find(setup.data.as_deref()).map_err(|error| Usage(error.to_string()))?;
    data.unpack(FOLDER);
    let graphs = match data.folder(FOLDER) {
        Folder::At(folder) => {
            let files = named_files(&folder, "mtx").map_err(Usage)?;
            let read = |(name, path): (String, PathBuf)| {
                let graph = mtx::read_path(path).with_context(|| name.clone())?;
                let pattern = Arc::clone(graph.pattern());
                Ok((name, [pattern.rows(), pattern.cols()], PatternKind::Given(pattern)))
            };
            files.into_iter().map(read).collect::<Result<Vec<(String, [usize; 2], PatternKind)>>>()?
        }
        Folder::Packed => {
            return Err(Usage(format!("{FOLDER}.tar.xz cannot be unpacked: unpack it by hand")).into());
        }
        Folder::Missing(why) => {
            if setup.data.is_some() {
                return Err(Usage(why).into());
            }
            eprintln!("lacuna-bench: suite {GRAPHS} is drawn, with the statistics of the real graphs: {why}");
            let drawn = |(name, nodes, mean, cov)| {
                (format!("{name} (drawn)"), [nodes; 2], PatternKind::Varied { mean, cov })
            };
            DRAWN.map(drawn).into()
        }
    };
    let with_each_k = |(name, [rows, cols], pattern): (String, [usize; 2], PatternKind)| {
        GRAPH_KS.map(|k| Case {
            group: name.clone(),
            ..Case::new(Op::Sddmm, name.clone(), [rows, cols, k], pattern.clone())
        })
    };
    Ok(graphs.into_iter().flat_map(with_each_k).collect())
}

#[cfg(test)]
mod tests {
    use lacuna::matrix::generate;

    use super::*;

    #[test]
    fn sizes_are_those_of_the_gradient() {
        let cases = rnn_cases();
        let find = |name: &str| cases.iter().find(|case| case.name == name).unwrap();
        let lstm = find("8192 128 2048 0.9");
        assert_eq!(
            (lstm.op, lstm.op.sizes(lstm.rows, lstm.cols, lstm.width)),
            (Op::Sddmm, [8192, 128, 2048])
        );
        let attention = find("table 12288 64 12288 0.95");
        assert_eq!((attention.rows, attention.cols, attention.width), (12_288, 12_288, 64));
        assert_eq!(cases.iter().filter(|case| case.group == GRID).count(), 72);
    }

    /// Graphs that are drawn against those that they stand for, where these are.
    #[test]
    fn drawn_graphs_are_like_the_real_ones() {
        let mut data = Data::find(None).unwrap();
        data.unpack(FOLDER);
        let Folder::At(folder) = data.folder(FOLDER) else {
            eprintln!("skipped: there is no folder of real data");
            return;
        };
        for (name, path) in named_files(&folder, "mtx").unwrap() {
            let real = mtx::read_path(path).unwrap().pattern().stats();
            let &(_, nodes, mean, cov) = DRAWN.iter().find(|drawn| drawn.0 == name).unwrap();
            let drawn = generate::with_row_cov(nodes, nodes, mean, cov, 1).unwrap().stats();
            assert_eq!((real.rows, real.cols), (nodes, nodes), "{name}");
            assert!((real.mean_row_length - mean).abs() < 0.006, "{name}: {real:?}");
            assert!((real.row_length_cov - cov).abs() < 0.0006, "{name}: {real:?}");
            assert!((drawn.mean_row_length / mean - 1.0).abs() < 0.1, "{name}: {drawn:?}");
            assert!((drawn.row_length_cov / cov - 1.0).abs() < 0.2, "{name}: {drawn:?}");
        }
    }
}
