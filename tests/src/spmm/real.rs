//! Real matrices: the Deep Learning Matrix Collection, and graphs.
use std::path::Path;

use anyhow::Result;
use lacuna::matrix::generate;
use lacuna::matrix::io::{mtx, smtx};

use super::{Problem, case};
use crate::{Case, Effort};
use lacuna_cases::data::{Data, Folder, named_files};
use lacuna_cases::dlmc;

/// Matrices of the collection that are small enough for the simulator.
const SIMULATED: [&str; 5] = [
    "rn50/magnitude_pruning/0.95/bottleneck_1_block_group_projection_block_group1",
    "rn50/magnitude_pruning/0.95/bottleneck_1_block_group3_1_1",
    "rn50/magnitude_pruning/0.9/final_dense",
    "rn50/magnitude_pruning/0.95/bottleneck_1_block_group4_1_1",
    "transformer/magnitude_pruning/0.95/body_encoder_layer_3_self_attention_multihead_attention_q_fully_connected",
];

/// N of the Transformer's matrices.
const TRANSFORMER_N: usize = 256;

/// N of graphs.
const GRAPH_N: usize = 64;

/// Cases for the data that there is; for what is packed or lacking, one case each that stands for them.
pub(super) fn cases(data: &Data) -> Vec<Case> {
    let mut cases = of_folder(data, "dlmc", "the Deep Learning Matrix Collection", weights);
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

fn weights(folder: &Path) -> Result<Vec<Case>, String> {
    let cases = dlmc::weights(folder)?.into_iter().map(|dlmc::Weights { name, path, n }| {
        let effort = if SIMULATED.contains(&name.as_str()) { Effort::Slow } else { Effort::Gpu };
        let n = n.unwrap_or(TRANSFORMER_N);
        let make = move |seed| Problem::draw(smtx::read_path(&path)?, n, seed);
        case(format!("spmm/dlmc/{name}"), "weights of a network".into(), effort, make)
    });
    Ok(cases.collect())
}

fn graphs(folder: &Path) -> Result<Vec<Case>, String> {
    let cases = named_files(folder, "mtx")?.into_iter().map(|(name, path)| {
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
