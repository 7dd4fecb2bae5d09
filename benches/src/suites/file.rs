//! What a suite's file may say.
use std::collections::BTreeMap;

use serde::Deserialize;

use super::dlmc::Collection;
use super::graphs::Graphs;
use super::grid::Grid;
use crate::record::single;

/// A suite: its problems, what was published of them, and what is expected.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suite {
    /// What it is, in the list of suites.
    pub(super) about: String,
    /// Whether it is about how uneven rows are.
    #[serde(default)]
    pub(super) by_cov: bool,
    /// Whether the host's time is what is measured.
    #[serde(default)]
    pub(super) by_host: bool,
    /// Another suite, whose cases come first.
    pub(super) like: Option<String>,
    /// The operation of these, if it is another.
    pub(super) op: Option<String>,
    /// Weights of the Deep Learning Matrix Collection.
    pub(super) dlmc: Option<Collection>,
    /// Graphs.
    pub(super) graphs: Option<Graphs>,
    /// Problems by their sizes.
    #[serde(default)]
    pub(super) cases: Vec<Grid>,
    pub(super) published: Option<Published>,
    pub(super) expect: Option<Expected>,
}

/// What a paper has of a suite.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    /// *Sparse GPU Kernels for Deep Learning* (SC 2020), with CUDA 10.1; *Exploiting Online Locality and Reduction Parallelism
    /// for Sampled Dense Matrix Multiplication on GPUs* (PRedS), over 956 matrices of SuiteSparse; or *Accelerating Sparse
    /// Matrix Operations in Neural Networks on Graphics Processing Units* (ACL 2019).
    pub(crate) paper: String,
    /// Its GPU.
    pub(crate) machine: String,
    pub(crate) numbers: Vec<PublishedNumber>,
}

/// A published number, and how ours for the same is worked out of records.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedNumber {
    /// What it is.
    pub(crate) what: String,
    /// As printed.
    pub(crate) value: String,
    /// Table, figure or section.
    #[serde(rename = "where")]
    pub(crate) source: String,
    #[serde(default = "f32_values")]
    pub(crate) dtype: String,
    /// The records' group, where it is of one.
    pub(crate) group: Option<String>,
    /// The records' K, where it is of one.
    pub(crate) k: Option<usize>,
    /// Ours; none for what we do not run.
    pub(crate) ours: Option<Ours>,
}

/// How a number is worked out of the records of a suite. Peers go by their names in records.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ours {
    /// The geometric mean of speedups over a peer.
    MeanOver(String),
    /// The greatest of them.
    MostOver(String),
    /// The part of problems that are faster than a peer.
    FasterThan(String),
    /// The most tera-operations a second.
    MostTflops,
    /// The sparsity from which we, or a peer, are faster than another peer, in the first record's group.
    Crossover {
        /// The peer; none for us.
        of: Option<String>,
        over: String,
    },
    /// The throughput of the case with rows of a variation over that of another, in the first record's group.
    Throughput { cov: f64, over_cov: f64 },
    /// The microseconds of all cases together, if there are so many.
    SumOfUs(usize),
    /// The microseconds of a case.
    UsOf(String),
}

/// What a suite should come to on an H200.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    /// The operation of all cases.
    pub(crate) operation: String,
    /// How many cases there are.
    pub(crate) cases: usize,
    #[serde(default)]
    pub(crate) speedups: Vec<Speedups>,
}

/// What speedups should not fall below, for column indices of u32.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Speedups {
    #[serde(default = "f32_values")]
    pub(crate) dtype: String,
    #[serde(default = "single")]
    pub(crate) precision: String,
    #[serde(default)]
    pub(crate) prepacked: bool,
    /// By peer, the geometric mean over all cases.
    pub(crate) at_least: BTreeMap<String, f64>,
}

fn f32_values() -> String {
    "f32".into()
}
