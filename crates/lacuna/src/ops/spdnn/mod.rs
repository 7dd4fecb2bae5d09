//! Inference of sparse feed-forward networks: layers act(W·x + b) one after another, for many samples at once, of which those that
//! have become all zero are left out on the way.
mod choose;
mod csr;
mod features;
mod file;
mod fused;
mod groups;
mod layer;
mod network;
mod options;
mod packed;
mod passes;
mod prepared;
mod prune;
mod staged;
mod steps;
mod stored;
mod weights;
mod workers;
mod workspace;

const OPERATION: &str = "sparse-DNN inference";

pub use crate::op::Activation;
pub use choose::{Algorithm, Choice, Problem, choose};
pub use features::{DeviceFeatures, Features, PinnedFeatures};
pub use layer::{Bias, Layer};
pub use network::{PackedNetwork, Report, SparseNetwork};
pub use options::Options;
pub use passes::{Passed, Passes, Simplified, simplify};
pub use stored::StoredLayers;
pub use workers::{Dealt, Fit, Share, Workers};
pub use workspace::{Inference, Workspace};
