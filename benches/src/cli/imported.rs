//! The options of networks in files.
use std::path::PathBuf;

use clap::Args;

use super::{Layout, MapValue};

/// `import`.
#[derive(Args, Debug)]
pub struct ImportOptions {
    /// An ONNX or a TFLite file.
    pub file: PathBuf,
    /// Images.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1 << 12))]
    pub batch: u32,
    /// Type of values: of maps, weights and the result. Sums are f32 always.
    #[arg(long, value_enum, default_value_t = MapValue::F32)]
    pub value: MapValue,
    /// How maps lie.
    #[arg(long, value_enum, default_value_t = Layout::Nchw)]
    pub layout: Layout,
    /// Holds layers with many zeros sparse or dense as is faster on this GPU. Without it they are sparse from half of zeros on.
    #[arg(long)]
    pub faster: bool,
    /// Sets the network beside itself with dense weights, by our kernels and by cuDNN.
    #[arg(long)]
    pub twins: bool,
    /// Also measures each layer by itself.
    #[arg(long)]
    pub layers: bool,
    /// Also writes the network, its input and its result into this folder, for `benches/peers/network.py`.
    #[arg(long)]
    pub export: Option<PathBuf>,
    /// Prints JSON lines instead of text.
    #[arg(long)]
    pub json: bool,
    /// `cuda:INDEX`, `sim`, or `auto`: the first GPU, or else the simulator.
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// The seed of the input.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Times each pass this often; the median, minimum and maximum are reported.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub samples: u32,
    /// Also appends the record to this file, as a JSON line.
    #[arg(long)]
    pub out: Option<PathBuf>,
}
