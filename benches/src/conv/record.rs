//! One measurement of a convolution, as a JSON object.
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::layers::MOBILENET_V1;
use crate::machine::MachineRecord;
use crate::record::{self, PeerRecord};
use crate::timing::Timing;

/// What records of convolutions have as their operation.
const OP: &str = "conv";

/// A layer on a GPU or on the simulator.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Record {
    /// The operation.
    pub op: String,
    /// The network, or the file.
    pub case: String,
    /// Images.
    pub batch: usize,
    /// Channels.
    pub channels: usize,
    /// Rows and columns of the maps.
    pub size: [usize; 2],
    /// Filters.
    pub filters: usize,
    /// The part of zeros that was asked for, of drawn maps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
    /// The part of zeros that there is.
    pub zeros: f64,
    /// The part of the weights that is zero, where they are a sparse matrix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparsity: Option<f64>,
    /// Type of maps and filters. Records made before this field was there are of `f32`.
    #[serde(default = "f32_value")]
    pub value: String,
    /// How maps lie.
    pub layout: String,
    /// The kernel's entry point.
    pub algorithm: String,
    /// Splits of the channels.
    pub splits: usize,
    /// Whether it is the library's choice.
    pub chosen: bool,
    /// The time of a run, with bias and ReLU, from dense maps to dense maps; none on the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_us: Option<Timing>,
    /// Millijoules of a run by the driver's counter, where they were asked for and the GPU counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_mj: Option<f64>,
    /// The modelled time by machine; none on a GPU. A model, never a measurement.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub model_us: BTreeMap<String, f64>,
    /// The largest error over its bound; huge for a wrong result.
    pub error_over_bound: f64,
    /// Products of a dense convolution.
    pub products: u64,
    /// What it is set against.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<String, PeerRecord>,
    /// The seed of what was drawn.
    pub seed: u64,
    /// What it ran on.
    #[serde(flatten)]
    pub machine: MachineRecord,
}

fn f32_value() -> String {
    "f32".into()
}

impl Record {
    /// The operation's name.
    pub(crate) fn op() -> String {
        OP.into()
    }

    /// Whether a file of JSON lines begins with a record of a convolution.
    pub fn is_first_of(path: &Path) -> bool {
        record::operation_of_first(path).is_some_and(|op| op == OP)
    }

    /// Reads a file of JSON lines.
    ///
    /// # Errors
    /// [`Usage`](lacuna_cases::exit::Usage): a file that cannot be read, or a line that is no record, with its number.
    pub fn read_lines(path: &Path) -> Result<Vec<Self>> {
        record::read_lines(path)
    }

    /// The measured median, or else nothing.
    pub fn median_us(&self) -> Option<f64> {
        Some(self.time_us?.median)
    }

    /// How many times faster than a peer.
    pub fn speedup(&self, peer: &str) -> Option<f64> {
        Some(self.peers.get(peer)?.time.median / self.median_us()?)
    }

    /// Whether the result is within its bound.
    pub fn is_right(&self) -> bool {
        self.error_over_bound <= 1.0
    }

    /// Whether it is a layer whose channels have filters of their own: MobileNet's are the only ones with dense weights.
    pub fn is_depthwise(&self) -> bool {
        self.case == MOBILENET_V1 && self.sparsity.is_none()
    }

    /// The part of the weights that is zero, in whole per cent; 0 of dense ones.
    pub fn sparsity_percent(&self) -> u32 {
        (self.sparsity.unwrap_or(0.0) * 100.0).round() as u32
    }

    /// The part of zeros that was asked for, in whole per cent; none of real maps.
    pub fn percent(&self) -> Option<u32> {
        self.level.map(|level| (level * 100.0).round() as u32)
    }
}
