//! One measurement of a network, as a JSON object.
use std::collections::BTreeMap;

use serde::Serialize;

use super::RankRecord;
use crate::machine::MachineRecord;
use crate::record::is_one;
use crate::timing::Timing;

/// One network with its images, inferred on a GPU or on the simulator. Times are microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The operation.
    pub op: &'static str,
    /// Neurons of a layer.
    pub neurons: usize,
    /// Layers.
    pub layers: usize,
    /// Images.
    pub images: usize,
    /// Where they come from.
    pub source: String,
    /// What was asked for.
    pub algorithm: String,
    /// The kernels that ran, with how many layers each has.
    pub kernels: BTreeMap<String, usize>,
    /// Whether the device had the weights as `f16`.
    pub f16_weights: bool,
    /// Whether images that have become all zero were left out.
    pub prune: bool,
    /// What passes found in the network; none where none were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passes: Option<PassesRecord>,
    /// GPUs that shared the images, where these were dealt to workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkersRecord>,
    /// Images × edges: what the challenge counts.
    pub nominal_edges: u128,
    /// The same of those images that were worked on.
    pub effective_edges: u128,
    /// Places for weights over weights.
    pub padding: f64,
    /// Bytes of the packed network.
    pub weight_bytes: usize,
    /// Bytes of memory for what is between the layers, as of the weights: the first rank's.
    pub workspace_bytes: usize,
    /// Seconds of making or reading images.
    pub images_s: f64,
    /// Seconds of making layers and packing them.
    pub pack_s: f64,
    /// How many ranks shared the images; one where nothing is said.
    #[serde(skip_serializing_if = "is_one")]
    pub ranks: usize,
    /// What each rank had, where there are several: times above are those of the slowest, sample by sample.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<RankRecord>,
    /// How long it all took; none of it on the simulator.
    #[serde(flatten)]
    pub times: Times,
    /// The modelled time of all layers by machine; none on a GPU. A model, never a measurement.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub model_us: BTreeMap<String, f64>,
    /// How many images were left after the layers after which they were listed: layer from 1, images.
    pub live: Vec<(usize, usize)>,
    /// Categories.
    pub categories: usize,
    /// A checksum of their scores; none where these are too many to fetch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scores: Option<String>,
    /// Whether they are the official ones; none where these are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub official: Option<bool>,
    /// How many images the reference inferred, and whether the categories among them agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<(usize, bool)>,
    /// Whether they are those of the kernel that was measured first.
    pub same: bool,
    /// What it ran on.
    #[serde(flatten)]
    pub machine: MachineRecord,
}

/// How long a network took. Times are microseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Times {
    /// Sending the weights, by the host's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights_us: Option<Timing>,
    /// Sending the images, by the host's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features_us: Option<Timing>,
    /// All layers, as graph replays: from device to device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers_us: Option<Timing>,
    /// From weights and images in the host's memory to categories there, by the host's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole_us: Option<Timing>,
    /// The time of each layer by itself, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer_us: Option<Vec<f64>>,
}

/// What passes found in a network.
#[derive(Clone, Debug, Serialize)]
pub struct PassesRecord {
    /// Neurons that became one with another.
    pub merged: usize,
    /// Neurons that were the same number for all images.
    pub constant: usize,
    /// Neurons that no later layer reads.
    pub dead: usize,
    /// Neurons whose sums have other terms, or another order, than before.
    pub regrouped: usize,
    /// Weights before.
    pub edges: usize,
    /// Weights after.
    pub edges_left: usize,
}

/// Workers, one a GPU.
#[derive(Clone, Debug, Serialize)]
pub struct WorkersRecord {
    /// Bytes of each GPU's memory that were allowed; none where there was no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Bytes that were counted on.
    pub bytes: usize,
    /// Bytes of the parts in which weights were sent; none where they stayed on the GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_bytes: Option<usize>,
    /// Images of a GPU at once, at most.
    pub rows: usize,
    /// For each GPU the images that it had, and microseconds of its last run.
    pub shares: Vec<(usize, f64)>,
}

impl Record {
    /// Whether nothing speaks against the result.
    pub fn is_right(&self) -> bool {
        self.same && self.official != Some(false) && self.reference.is_none_or(|(_, agrees)| agrees)
    }

    /// TeraEdges a second in so many microseconds.
    pub fn tera(edges: u128, us: f64) -> f64 {
        edges as f64 / us / 1e6
    }
}
