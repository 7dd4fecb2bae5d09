//! One measurement of a network, as a JSON object.
use std::collections::BTreeMap;

use lacuna_models::network::{Convolution, Network};
use lacuna_models::prune::Masks;
use serde::Serialize;

use crate::machine::MachineRecord;
use crate::timing::Timing;

/// What scores of `f32` may be off from those of the dense network in full `f32`, as a part of the greatest: products in three parts on tensor cores are
/// within 2⁻¹⁵, and what layers lose adds up. A result in TF32, or a wrong one, is beyond it.
pub const LIMIT: f64 = 1e-3;

/// The same of values of 16 bits: weights and each layer's result are rounded, by 2⁻¹¹ or 2⁻⁸, and that adds up over the layers.
pub const LIMIT_F16: f64 = 2e-2;
/// Of bfloat16.
pub const LIMIT_BF16: f64 = 8.0 * LIMIT_F16;

/// The same network with dense weights, by our kernels.
pub const DENSE: &str = "dense";
/// The same network with dense weights, by cuDNN.
pub const CUDNN: &str = "cudnn";
/// The dense network that the paper says has the same accuracy, by our kernels.
pub const SAME_ACCURACY: &str = "same_accuracy";

/// A network on a GPU or on the simulator.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The suite, or `run`.
    pub suite: String,
    /// The operation: `model`.
    pub op: &'static str,
    /// The network.
    pub case: String,
    /// The width, of MobileNetV1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<f64>,
    /// Images.
    pub batch: usize,
    /// Rows and columns of the input, where it is an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<usize>,
    /// Tokens of a sequence, where the input is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// Whether it is a network cut to the simulator's size, with fewer channels too.
    pub cut: bool,
    /// The part of the weights of 1×1 and linear layers that was pruned; 0 of a dense network. Of weights of a file, the part that is zero.
    pub sparsity: f64,
    /// Whether layers with many zeros are held sparse or dense as was faster, and not by their zeros alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub faster: bool,
    /// How maps lie.
    pub layout: &'static str,
    /// Type of values.
    pub value: &'static str,
    /// Where weights are from: `drawn` or `file`.
    pub weights: &'static str,
    /// Where the masks of its layers are from, of a network that DLMC has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub masks: Option<MaskRecord>,
    /// Layers that launch a kernel.
    pub launches: usize,
    /// Layers whose weights are a sparse matrix.
    pub sparse_layers: usize,
    /// Multiply-adds of the dense network.
    pub products: u64,
    /// What it costs.
    #[serde(flatten)]
    pub cost: Cost,
    /// Images or sequences a second; none on the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames_per_s: Option<f64>,
    /// The paper's images or sequences a second, on a V100; none of a cut network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper_frames_per_s: Option<f64>,
    /// Layers that were checked, each by itself.
    pub checked_layers: usize,
    /// Whether they are those of the network itself, and not of a cut one.
    pub checked_whole: bool,
    /// The largest error of these over its bound; huge for a wrong result.
    pub error_over_bound: f64,
    /// How far scores are from those of the dense network in full `f32`, as a part of the greatest; at most [`limit`](Self::limit).
    pub difference: f64,
    /// What it is set against.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<&'static str, Twin>,
    /// Why a peer has no measurement.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peer_failures: BTreeMap<&'static str, String>,
    /// Each layer, where they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerRecord>,
    /// The seed of weights and input.
    pub seed: u64,
    /// What it ran on.
    #[serde(flatten)]
    pub machine: MachineRecord,
}

/// Where masks of layers are from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MaskRecord {
    /// Layers that have DLMC's.
    pub real: Vec<String>,
    /// How many others there are, whose drawn weights are pruned to the same part of zeros.
    pub drawn: usize,
}

impl MaskRecord {
    /// Of a network with these real masks, all of whose other layers that can be sparse are pruned.
    pub(super) fn of(network: &Network, masks: &Masks) -> Self {
        let real: Vec<String> = masks.iter().map(|(layer, _)| layer.to_owned()).collect();
        let with_weights = network.layers().iter().filter_map(|layer| network.convolution(layer));
        let drawn = with_weights.filter(Convolution::may_be_sparse).count() - real.len();
        Self { real, drawn }
    }
}

/// What a network costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// The time of a forward pass; none on the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_us: Option<Timing>,
    /// The modelled time by machine; none on a GPU. A model, never a measurement.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub model_us: BTreeMap<String, f64>,
    /// Millijoules of a pass by the driver's counter, where they were asked for and the GPU counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_mj: Option<f64>,
    /// Bytes that intermediate values share.
    pub peak_bytes: usize,
    /// Bytes that they would have without sharing.
    pub sum_bytes: usize,
    /// Bytes of weights and biases.
    pub weight_bytes: usize,
    /// Bytes of plans' own memory.
    pub workspace_bytes: usize,
}

/// What a network is set against.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Twin {
    /// The width, of MobileNetV1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<f64>,
    /// What it costs.
    #[serde(flatten)]
    pub cost: Cost,
    /// As the record's; none of another network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// The paper's images a second, on a V100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper_frames_per_s: Option<f64>,
    /// The library's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// What a layer is and costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerRecord {
    /// Its name.
    pub name: String,
    /// The kernel; `none` where nothing is to be done.
    pub kernel: String,
    /// Splits of the channels.
    pub splits: usize,
    /// The part of its weights that is zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_weights: Option<f64>,
    /// The part of its result that is zero, with this input.
    pub zero_outputs: f64,
    /// The time of the layer by itself; none on the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_us: Option<Timing>,
    /// The modelled time by machine; none on a GPU. A model, never a measurement.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub model_us: BTreeMap<String, f64>,
    /// Its part of the time of all layers, each by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Millijoules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_mj: Option<f64>,
}

/// The machine whose model stands in tables.
pub(super) const MODELLED: &str = "H200";

impl Cost {
    /// The measured median, or else the model of an H200.
    pub fn us(&self) -> Option<f64> {
        us(self.time_us, &self.model_us)
    }
}

impl LayerRecord {
    /// The measured median, or else the model of an H200.
    pub fn us(&self) -> Option<f64> {
        us(self.time_us, &self.model_us)
    }
}

fn us(time: Option<Timing>, model: &BTreeMap<String, f64>) -> Option<f64> {
    time.map(|time| time.median).or_else(|| model.get(MODELLED).copied())
}

impl Record {
    /// What scores may be off from those of the dense network in full `f32`, with values of this type.
    pub fn limit(&self) -> f64 {
        match self.value {
            "f16" => LIMIT_F16,
            "bf16" => LIMIT_BF16,
            _ => LIMIT,
        }
    }

    /// Whether layers are within their bounds, and scores of this network and of its dense twin near enough.
    pub fn is_right(&self) -> bool {
        let twin = self.peers.get(DENSE).and_then(|twin| twin.difference);
        let limit = self.limit();
        self.error_over_bound <= 1.0 && self.difference <= limit && twin.is_none_or(|off| off <= limit)
    }

    /// How many times faster than a peer; none where the peer is wrong.
    pub fn speedup(&self, peer: &str) -> Option<f64> {
        let twin = self.peers.get(peer)?;
        let is_right = twin.difference.is_none_or(|off| off <= self.limit());
        Some(twin.cost.us()? / self.cost.us()?).filter(|_| is_right)
    }

    /// Images a second, measured.
    pub(super) fn frames_per_s(batch: usize, cost: &Cost) -> Option<f64> {
        cost.time_us.map(|time| batch as f64 / time.median * 1e6)
    }
}
