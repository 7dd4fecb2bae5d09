//! The options of operations on feature maps.
use std::path::PathBuf;

use clap::Args;
use lacuna::conv::MapLayout;

pub use crate::types::Dtype as MapValue;

/// Layers to convolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ConvSuite {
    /// Those of the paper, with drawn maps.
    Layers,
    /// Layers of networks with other taps and strides, with drawn maps.
    Taps,
    /// Real feature maps of the data folder.
    Maps,
    /// The depthwise layers of MobileNetV1, with drawn maps.
    Depthwise,
    /// Its 1 × 1 layers, with drawn maps and weights that are pruned at random.
    Pointwise,
}

/// How feature maps lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Layout {
    /// Images × channels × rows × columns.
    Nchw,
    /// Channels last.
    Nhwc,
}

impl From<Layout> for MapLayout {
    fn from(layout: Layout) -> Self {
        match layout {
            Layout::Nchw => Self::Nchw,
            Layout::Nhwc => Self::Nhwc,
        }
    }
}

/// How layers of feature maps are measured.
#[derive(Args, Debug)]
pub struct MapHow {
    /// Type of maps and filters.
    #[arg(long, value_enum, default_value_t = MapValue::F32)]
    pub value: MapValue,
    /// How maps lie.
    #[arg(long, value_enum, default_value_t = Layout::Nchw)]
    pub layout: Layout,
    /// Measures every legal kernel, not only the library's choice.
    #[arg(long)]
    pub all_algorithms: bool,
    /// `cuda:INDEX`, `sim`, or `auto`: the first GPU, or else the simulator, where large layers are left out.
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// The seed of what is drawn.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Times each kernel this often; the median, minimum and maximum are reported.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub samples: u32,
    /// Also appends the records to this file, as JSON lines.
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// `conv`.
#[derive(Args, Debug)]
pub struct ConvOptions {
    /// The layers.
    #[arg(long, value_enum, default_value_t = ConvSuite::Layers)]
    pub suite: ConvSuite,
    /// Parts of drawn maps that are zero: 0 to 1.
    #[arg(long, value_delimiter = ',', value_parser = part, default_values_t = [0.0, 0.5, 0.7, 0.9])]
    pub zeros: Vec<f64>,
    /// Images of drawn maps.
    #[arg(long, default_value_t = 1)]
    pub batch: usize,
    /// Widths of MobileNetV1.
    #[arg(long, value_delimiter = ',', default_values_t = [1.0, 1.4, 1.8])]
    pub widths: Vec<f64>,
    /// Of suite `pointwise`: parts of the weights that are zero, 0 to 1.
    #[arg(long, value_delimiter = ',', value_parser = part, default_values_t = [0.9])]
    pub sparsity: Vec<f64>,
    /// Sets each layer beside cuDNN and, where it is depthwise, beside a copy of its bytes; where weights are sparse, beside cuBLAS.
    #[arg(long)]
    pub peers: bool,
    /// Also measures the energy of a call by NVML's counter, where the GPU has one: half a second or more for each kernel, ours and
    /// cuDNN's fastest.
    #[arg(long)]
    pub energy: bool,
    /// Measures kernels also with 1, 2, 4 … 32 splits of the channels, where there are channels for them.
    #[arg(long)]
    pub all_splits: bool,
    /// A folder with `feature_maps`. Else the folder that LACUNA_DATA names, or `data` beside this program.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// How they are measured.
    #[command(flatten)]
    pub how: MapHow,
}

/// `pool`.
#[derive(Args, Debug)]
pub struct PoolOptions {
    /// Images.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub batch: u32,
    /// Measures only layers whose name contains this.
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Sets each layer beside a copy of its bytes.
    #[arg(long)]
    pub peers: bool,
    /// How they are measured.
    #[command(flatten)]
    pub how: MapHow,
}

/// A part of a whole.
pub(super) fn part(text: &str) -> Result<f64, String> {
    let part = text.parse().map_err(|error| format!("{error}"))?;
    if (0.0..=1.0).contains(&part) { Ok(part) } else { Err("expected a part, from 0 to 1".into()) }
}
