//! One measurement of a decoder, as a JSON object.
use std::collections::BTreeMap;

use serde::Serialize;

use crate::machine::MachineRecord;
use crate::timing::Timing;

/// What logits may be off from those of dense weights in full `f32`, as a part of the greatest.
pub const LIMIT: f64 = 1e-3;
/// The same of products in TF32, whose factors have 11 bits.
pub const TF32_LIMIT: f64 = 1e-2;

/// The machine whose model stands in lines for people.
const MODELLED: &str = "H200";

/// A decoder's step on a GPU or on the simulator.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The operation: `decoder`.
    pub op: &'static str,
    /// The sizes in one word.
    pub case: String,
    /// Sentences.
    pub sentences: usize,
    /// Hypotheses of a sentence.
    pub beams: usize,
    /// Words.
    pub vocabulary: usize,
    /// Features of an embedding and of a state.
    pub hidden: usize,
    /// Features inside the feed-forward block; 0 where there is none.
    pub inner: usize,
    /// Whether it is a decoder cut to the simulator's size.
    pub cut: bool,
    /// The part of the layers' weights that was pruned.
    pub sparsity: f64,
    /// Type of values.
    pub value: &'static str,
    /// How exactly sums are computed.
    pub precision: String,
    /// Where weights are from: `drawn`.
    pub weights: &'static str,
    /// Bytes of embeddings, weights and biases.
    pub weight_bytes: usize,
    /// The time of a step; none on the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_us: Option<Timing>,
    /// The modelled time by machine; none on a GPU. A model, never a measurement.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub model_us: BTreeMap<String, f64>,
    /// Words a second: one a step for each sentence. None on the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_s: Option<f64>,
    /// Hypotheses that grow by a word in a second. None on the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypotheses_per_s: Option<f64>,
    /// Each part by itself.
    pub parts: Vec<PartRecord>,
    /// Steps of a cut decoder that were checked part by part.
    pub checked_steps: usize,
    /// Whether they are those of the decoder itself, and not of a cut one.
    pub checked_whole: bool,
    /// The largest error of these over its bound; huge for a wrong step.
    pub error_over_bound: f64,
    /// Beams of these that are the host's choice.
    pub same_beams: usize,
    /// Beams of these that are another, where scores are tied within what they may be off.
    pub tied_beams: usize,
    /// How far logits are from those of dense weights in full `f32`, as a part of the greatest; at most [`limit`](Self::limit).
    pub difference: f64,
    /// Whether beams are those that these logits ask for.
    pub beams_are_right: bool,
    /// The seed of weights and contexts.
    pub seed: u64,
    /// What it ran on.
    #[serde(flatten)]
    pub machine: MachineRecord,
}

/// What a part costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartRecord {
    /// Its name.
    pub name: &'static str,
    /// Its kernels; `none` where nothing is to be done.
    pub kernels: String,
    /// The time of the part by itself; none on the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_us: Option<Timing>,
    /// The modelled time by machine; none on a GPU. A model, never a measurement.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub model_us: BTreeMap<String, f64>,
    /// Its part of the time of all parts, each by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

impl Record {
    /// Whether parts are within their bounds, beams right, and logits near enough.
    pub fn is_right(&self) -> bool {
        self.error_over_bound <= 1.0 && self.difference <= self.limit() && self.beams_are_right
    }

    /// What [`difference`](Self::difference) may be.
    pub fn limit(&self) -> f64 {
        if self.precision == "tf32" { TF32_LIMIT } else { LIMIT }
    }

    /// The measured median, or else the model of an H200.
    pub fn us(&self) -> Option<f64> {
        us(self.time_us, &self.model_us)
    }
}

impl PartRecord {
    /// The measured median, or else the model of an H200.
    pub fn us(&self) -> Option<f64> {
        us(self.time_us, &self.model_us)
    }
}

fn us(time: Option<Timing>, model: &BTreeMap<String, f64>) -> Option<f64> {
    time.map(|time| time.median).or_else(|| model.get(MODELLED).copied())
}
