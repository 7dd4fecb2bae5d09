//! One measurement of a pooling, as a JSON object.
use std::collections::BTreeMap;

use serde::Serialize;

use crate::machine::MachineRecord;
use crate::record::PeerRecord;
use crate::timing::Timing;

/// A layer on a GPU or on the simulator.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The operation.
    pub op: &'static str,
    /// The network.
    pub case: String,
    /// What is made of windows: `max`, `average_include_padding` or `average_exclude_padding`.
    pub mode: &'static str,
    /// Images.
    pub batch: usize,
    /// Channels.
    pub channels: usize,
    /// Rows and columns of the maps.
    pub size: [usize; 2],
    /// Rows and columns of a window.
    pub window: [usize; 2],
    /// Rows and columns from one window to the next.
    pub strides: [usize; 2],
    /// Rows above and below, and columns on both sides.
    pub padding: [usize; 2],
    /// Type of the maps.
    pub value: &'static str,
    /// How maps lie.
    pub layout: &'static str,
    /// The kernel's entry point.
    pub algorithm: String,
    /// Whether it is the library's choice.
    pub chosen: bool,
    /// The time of a run; none on the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_us: Option<Timing>,
    /// The modelled time by machine; none on a GPU. A model, never a measurement.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub model_us: BTreeMap<String, f64>,
    /// The largest error over its bound; huge for a wrong result.
    pub error_over_bound: f64,
    /// Bytes of input and result, once each.
    pub bytes: u64,
    /// What it is set against.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<String, PeerRecord>,
    /// The seed of what was drawn.
    pub seed: u64,
    /// What it ran on.
    #[serde(flatten)]
    pub machine: MachineRecord,
}

impl Record {
    /// Whether the result is within its bound.
    pub fn is_right(&self) -> bool {
        self.error_over_bound <= 1.0
    }

    /// How many times faster than a peer, where there are both times.
    pub fn speedup(&self, peer: &str) -> Option<f64> {
        Some(self.peers.get(peer)?.time.median / self.time_us?.median)
    }
}
