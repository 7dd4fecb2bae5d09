//! One call, as a JSON object.
use std::collections::BTreeMap;

use serde::Serialize;

use crate::machine::MachineRecord;
use crate::timing::Timing;

/// A call of the library on a problem.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The suite.
    pub suite: String,
    /// The operation.
    pub op: String,
    /// The problem's name.
    pub case: String,
    /// What is called.
    pub call: &'static str,
    /// The kernel's entry point, of plans and runs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub algorithm: String,
    /// The type of the values.
    pub dtype: String,
    /// The type of the column indices.
    pub index: String,
    /// Rows of the sparse matrix.
    pub m: usize,
    /// As in the records of the operation.
    pub k: usize,
    /// As in the records of the operation.
    pub n: usize,
    /// Nonzeros.
    pub nnz: usize,
    /// The seed of what was drawn.
    pub seed: u64,
    /// The time of the call by the host's clock. On the simulator it says nothing of a GPU's host.
    pub host_us: Timing,
    /// Allocations of one call on the host.
    pub allocations: u64,
    /// Bytes that its result holds on the host; on the simulator those on the device are among them.
    pub host_bytes: u64,
    /// Bytes that its result holds on the device.
    pub device_bytes: u64,
    /// What others take for the like by the host's clock: the driver for a bare launch, cuSPARSE.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<String, Timing>,
    /// Why others have no times.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peer_failures: BTreeMap<String, String>,
    /// What it ran on.
    #[serde(flatten)]
    pub machine: MachineRecord,
}
