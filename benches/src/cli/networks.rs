//! The options of whole networks.
use std::path::PathBuf;

use clap::Args;

use super::maps::part;
use super::{Layout, MapValue};
use crate::networks::{Named, Suite};

/// `model`.
#[derive(Args, Debug)]
pub struct ModelOptions {
    /// The network.
    #[arg(value_enum, required_unless_present = "suite", conflicts_with = "suite")]
    pub network: Option<Named>,
    /// Measures the networks of a paper, with one image or sequence each, beside their twins.
    #[arg(long, value_enum, conflicts_with_all = ["width", "resolution", "sparsity"])]
    pub suite: Option<Suite>,
    /// The width of MobileNetV1: 1 if nothing is said.
    #[arg(long)]
    pub width: Option<f64>,
    /// Images or sequences: 1 if nothing is said. Of suites `transformer-base` alone takes it.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 12))]
    pub batch: Option<u32>,
    /// Rows and columns of the input: 224 if nothing is said.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 12))]
    pub resolution: Option<u32>,
    /// Tokens of the Transformer's sequences: 12,288 if nothing is said; of `transformer-base`, and its suite, those of a source and of a target: 256.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub tokens: Option<u32>,
    /// The part of the weights of 1×1 and linear layers that is pruned, the smallest of each layer: 0 to 1.
    #[arg(long, default_value_t = 0.0, value_parser = part)]
    pub sparsity: f64,
    /// Weights of this safetensors file, in place of drawn ones: tensors by the network's names, dense, or sparse in CSR.
    #[arg(long, value_name = "FILE", conflicts_with = "suite")]
    pub weights: Option<PathBuf>,
    /// Real masks for `transformer-base`: a folder with `dlmc`, as a folder or as .tar.xz. Else the folder that LACUNA_DATA names, or `data` beside this
    /// program; layers without a file have drawn masks.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Type of values: of maps, weights and the result. Sums are f32 always.
    #[arg(long, value_enum, default_value_t = MapValue::F32)]
    pub value: MapValue,
    /// How maps lie.
    #[arg(long, value_enum, default_value_t = Layout::Nchw)]
    pub layout: Layout,
    /// Holds layers with many zeros sparse or dense as is faster on this GPU, which takes a measurement when the network is planned.
    #[arg(long)]
    pub faster: bool,
    /// Sets the network beside itself with dense weights, by our kernels and by cuDNN, and, where table IV of SC 2020 has it, beside the dense one
    /// of the same accuracy.
    #[arg(long)]
    pub twins: bool,
    /// Checks each layer in its whole size, and not cut: the host takes up to minutes for it.
    #[arg(long)]
    pub check_whole: bool,
    /// Also measures each layer by itself.
    #[arg(long)]
    pub layers: bool,
    /// Also measures energy by NVML's counter, where the GPU has one: half a second or more for each network and layer.
    #[arg(long)]
    pub energy: bool,
    /// Prints JSON lines instead of text.
    #[arg(long)]
    pub json: bool,
    /// `cuda:INDEX`, `sim`, or `auto`: the first GPU, or else the simulator, where networks are cut.
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// The seed of weights and input.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Times each pass this often; the median, minimum and maximum are reported.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub samples: u32,
    /// Also appends the records to this file, as JSON lines.
    #[arg(long)]
    pub out: Option<PathBuf>,
}
