//! Real matrices: the Deep Learning Matrix Collection, and graphs.
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use lacuna::matrix::generate;
use lacuna::matrix::io::{mtx, smtx};

use super::{Problem, case};
use crate::data::{self, Data, Folder};
use crate::{Case, Effort};

/// Matrices of the collection that are small enough for the simulator.
const SIMULATED: [&str; 5] = [
    "rn50/magnitude_pruning/0.95/bottleneck_1_block_group_projection_block_group1",
    "rn50/magnitude_pruning/0.95/bottleneck_1_block_group3_1_1",
    "rn50/magnitude_pruning/0.9/final_dense",
    "rn50/magnitude_pruning/0.95/bottleneck_1_block_group4_1_1",
    "transformer/magnitude_pruning/0.95/body_encoder_layer_3_self_attention_multihead_attention_q_fully_connected",
];

/// The file that gives N of each convolution of ResNet-50, for one image.
const BATCH_SIZES: &str = "rn50_batchsizes.txt";

/// N of the Transformer's matrices.
const TRANSFORMER_N: usize = 256;

/// N of graphs.
const GRAPH_N: usize = 64;

/// Cases for the data that there is; for what is packed or lacking, one case each that stands for them.
pub(super) fn cases(data: &Data) -> Vec<Case> {
    let mut cases = of_folder(data, "dlmc", "the Deep Learning Matrix Collection", dlmc);
    cases.extend(of_folder(data, "graphs", "graphs as Matrix Market files", graphs));
    cases
}

fn of_folder(
    data: &Data,
    name: &'static str,
    about: &str,
    read: impl Fn(&Path) -> Result<Vec<Case>, String>,
) -> Vec<Case> {
    let all = format!("spmm/{name}/all");
    let read = match data.folder(name) {
        Folder::At(folder) => read(&folder),
        Folder::Packed => return vec![Case::packed(all, format!("{about}, packed"), name)],
        Folder::Missing(why) => Err(why),
    };
    read.unwrap_or_else(|why| vec![Case::missing(all, about, why)])
}

fn dlmc(folder: &Path) -> Result<Vec<Case>, String> {
    let batch_sizes = Arc::new(batch_sizes(&folder.join(BATCH_SIZES))?);
    let cases = files(folder, "smtx")?.into_iter().map(|(name, path)| {
        let simulated = SIMULATED.contains(&name.as_str());
        let batch_sizes = Arc::clone(&batch_sizes);
        let convolution =
            name.strip_prefix("rn50/").and_then(|name| name.rsplit('/').next()).map(str::to_owned);
        let make = move |seed| {
            let n = match &convolution {
                Some(layer) => *batch_sizes
                    .get(layer)
                    .with_context(|| format!("{BATCH_SIZES} has no line for {layer}"))?,
                None => TRANSFORMER_N,
            };
            Problem::draw(smtx::read_path(&path)?, n, seed)
        };
        let effort = if simulated { Effort::Slow } else { Effort::Gpu };
        case(format!("spmm/dlmc/{name}"), "weights of a network".into(), effort, make)
    });
    Ok(cases.collect())
}

fn graphs(folder: &Path) -> Result<Vec<Case>, String> {
    let cases = files(folder, "mtx")?.into_iter().map(|(name, path)| {
        let effort = if name == "cora" { Effort::Slow } else { Effort::Gpu };
        let make = move |seed| {
            let a = mtx::read_path(&path)?;
            let b = generate::random_values(a.cols() * GRAPH_N, seed);
            Ok(Problem { a, b, n: GRAPH_N })
        };
        case(format!("spmm/graphs/{name}"), format!("a graph, N = {GRAPH_N}"), effort, make)
    });
    Ok(cases.collect())
}

/// The files below `folder` with this extension: their paths inside it without the extension, and whole.
fn files(folder: &Path, extension: &str) -> Result<Vec<(String, PathBuf)>, String> {
    let files = data::files(folder, extension).map_err(|error| unreadable(folder, &error))?;
    let named = files.into_iter().map(|path| {
        let inside = path.strip_prefix(folder).unwrap_or(&path);
        // Sparsities have a point, too: cut off the extension alone.
        let name = inside.with_extension("").to_string_lossy().replace('\\', "/");
        (name, path)
    });
    Ok(named.collect())
}

/// Lines of the form `layer,N`.
fn batch_sizes(path: &Path) -> Result<HashMap<String, usize>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    let size = |line: &str| {
        let (layer, n) = line.split_once(',')?;
        Some((layer.trim().to_owned(), n.trim().parse().ok()?))
    };
    Ok(text.lines().filter_map(size).collect())
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("cannot read {}: {error}; unpack the data again", path.display())
}
