//! One measurement of a transpose, as a JSON object.
use std::collections::BTreeMap;

use serde::Serialize;

use crate::machine::MachineRecord;
use crate::record::Counts;
use crate::timing::Timing;

/// One matrix, transposed on a GPU or on the simulator.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The operation.
    pub op: &'static str,
    /// The matrix's name.
    pub case: String,
    /// Rows of A.
    pub m: usize,
    /// Columns of A.
    pub k: usize,
    /// Nonzeros of A.
    pub nnz: usize,
    /// The seed of what was drawn.
    pub seed: u64,
    /// Working out the pattern of Aᵀ on the device, with the row table on the host, by the host's clock; none on the
    /// simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_us: Option<Timing>,
    /// The same without it: transposing on the host, and putting the result on the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_us: Option<Timing>,
    /// Gathering the values, as graph replays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gather_us: Option<Timing>,
    /// The modelled time of the pattern's kernels by machine; none on a GPU. A model, never a measurement.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub build_model_us: BTreeMap<String, f64>,
    /// As `build_model_us`, of gathering.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gather_model_us: BTreeMap<String, f64>,
    /// What the simulator counted in gathering; none on a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gather_counts: Option<Counts>,
    /// Bytes of the work model of gathering: permutation, values and result once each.
    pub gather_bytes: u64,
    /// Whether order and values are the host's.
    pub right: bool,
    /// What it ran on.
    #[serde(flatten)]
    pub machine: MachineRecord,
}
