//! Graphs, real where there is data, or else drawn with as many nodes and nonzeros, and rows that vary as much.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use lacuna::matrix::io::mtx;
use lacuna_cases::Draw;
use lacuna_cases::data::named_files;
use lacuna_cases::exit::Usage;
use serde::Deserialize;

use super::case::{Case, Setup, operation, real, sparse};

/// The folder of graphs.
pub(super) const FOLDER: &str = "graphs";

/// An operation on graphs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Graphs {
    op: String,
    /// Widths of its dense operands.
    widths: Vec<usize>,
    /// What the graphs are like.
    pub(super) drawn: Vec<Graph>,
}

/// What a graph is like.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Graph {
    pub(super) name: String,
    pub(super) nodes: usize,
    /// Nonzeros of the average row.
    pub(super) mean: f64,
    /// The coefficient of variation of the row lengths.
    pub(super) cov: f64,
}

impl Graphs {
    pub(super) fn cases(&self, setup: &Setup) -> Result<Vec<Case>> {
        let graphs = real(setup, FOLDER, &format!("suite {}-graphs", self.op), read)?;
        let drawn = |Graph { name, nodes, mean, cov }: &Graph| {
            (format!("{name} (drawn)"), [*nodes; 2], Draw::Varied { mean: *mean, cov: *cov })
        };
        let op = operation(&self.op)?;
        let mut cases = Vec::new();
        for (name, [rows, cols], pattern) in graphs.unwrap_or_else(|| self.drawn.iter().map(drawn).collect())
        {
            let case = |&width: &usize| {
                sparse(op, [name.clone(), name.clone()], [rows, cols, width], pattern.clone())
            };
            cases.extend(self.widths.iter().map(case));
        }
        Ok(cases)
    }
}

/// The graphs of a folder: their names, sizes and patterns.
fn read(folder: &Path) -> Result<Vec<(String, [usize; 2], Draw)>> {
    let read = |(name, path): (String, PathBuf)| {
        let graph = mtx::read_path(path).with_context(|| name.clone())?;
        let pattern = Arc::clone(graph.pattern());
        Ok((name, [pattern.rows(), pattern.cols()], Draw::Given(pattern)))
    };
    named_files(folder, "mtx").map_err(Usage)?.into_iter().map(read).collect()
}
