//! One measurement of a convolution, as a JSON object.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
    /// The part of zeros that there is.
    pub zeros: f64,
    /// Type of maps and filters.
    pub value: &'static str,
    /// How maps lie.
    pub layout: &'static str,
    /// The kernel's entry point.
    pub algorithm: String,
    /// Splits of the channels.
    pub splits: usize,
    /// Whether it is the library's choice.
    pub chosen: bool,
    /// The time of a run, with bias and ReLU, from dense maps to dense maps; none on the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_us: Option<Timing>,
    /// The modelled time by machine; none on a GPU. A model, never a measurement.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub model_us: BTreeMap<String, f64>,
    /// The largest error over its bound; huge for a wrong result.
    pub error_over_bound: f64,
    /// Products of a dense convolution.
    pub products: u64,
    /// What it is set against.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<String, PeerRecord>,
    /// The seed of what was drawn.
    pub seed: u64,
    /// What it ran on.
    #[serde(flatten)]
    pub machine: MachineRecord,
}

/// Speeds over a peer's, geometric mean and least.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// Cases.
    pub count: usize,
    /// The geometric mean of the speeds over the peer's.
    pub mean: f64,
    /// The least.
    pub least: f64,
}

impl Summary {
    /// Over a peer, of the records that have both times.
    pub fn over<'r>(peer: &str, records: impl Iterator<Item = &'r Record>) -> Option<Self> {
        let speed = |record: &Record| Some(record.peers.get(peer)?.time.median / record.time_us?.median);
        let speeds: Vec<f64> = records.filter_map(speed).collect();
        let (count, sum) = (speeds.len(), speeds.iter().map(|speed| speed.ln()).sum::<f64>());
        let least = speeds.into_iter().reduce(f64::min)?;
        Some(Self { count, mean: (sum / count as f64).exp(), least })
    }
}
