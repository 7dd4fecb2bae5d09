//! The command line.
mod decoder;
mod imported;
mod maps;
mod networks;
mod prune;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use lacuna_cases::exit;

pub use self::decoder::DecoderOptions;
pub use self::imported::ImportOptions;
pub use self::maps::{ConvOptions, ConvSuite, Layout, MapValue, PoolOptions};
pub use self::networks::ModelOptions;
pub use self::prune::PruneOptions;
use crate::operation::Op;
use crate::operations;
use crate::session::Measure;

/// Measures Lacuna's kernels on a GPU, or models them on the simulator.
#[derive(Debug, Parser)]
#[command(
    name = "lacuna-bench",
    version,
    after_help = exit::HELP
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measures one operation on one matrix, or on a dense one of a size.
    Run(RunOptions),
    /// Measures a suite of problems.
    Sweep(SweepOptions),
    /// Describes the patterns of matrices (sparsity, row lengths and how they vary).
    Stats(StatsOptions),
    /// Compares two files of records, case by case.
    Compare(CompareOptions),
    /// Measures what each idea of the SC 2020 paper brings, on its matrices (Table II).
    Ablation(AblationOptions),
    /// Sets the library's choice of kernels against the fastest ones, in records of `sweep --all-algorithms`.
    Oracle(OracleOptions),
    /// Measures the transpose of one matrix: its pattern, and its values.
    Transpose(TransposeOptions),
    /// Measures networks of the Sparse DNN Challenge.
    Spdnn(SpdnnOptions),
    /// Measures convolution: the layers of the PACT 2022 paper, and real feature maps.
    Conv(ConvOptions),
    /// Measures pooling: layers of networks.
    Pool(PoolOptions),
    /// Measures whole networks: MobileNetV1 with sparse weights, ResNet, DenseNet and VGG, beside their dense twins.
    Model(ModelOptions),
    /// Measures the network of an ONNX or a TFLite file.
    Import(ImportOptions),
    /// Measures a step of a translation decoder: lookup, layers, projection, softmax with top-N, and beam search (ACL 2019).
    Decoder(DecoderOptions),
    /// Prunes the weights of a safetensors file by magnitude, and describes what is left.
    Prune(PruneOptions),
    /// Draws a plot of a file of records, as SVG.
    Plot(PlotOptions),
    /// Fits the cost model of SpMM, SDDMM or convolution to times of all kernels, or checks it.
    Fit(FitOptions),
    /// Writes the tables of README.md and docs that are made from records.
    Tables(TablesOptions),
}

/// Whether something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Switch {
    /// It is.
    On,
    /// It is not.
    Off,
}

/// `run`.
#[derive(Args, Debug)]
pub struct RunOptions {
    /// The operation.
    #[arg(value_parser = operations::parser())]
    pub op: Op,
    /// The sparse matrix, of operations on one: `.smtx` (values are drawn) or `.mtx`. Of `nhot` its rows are the bags, and its
    /// columns the rows of the table.
    #[arg(long)]
    pub matrix: Option<PathBuf>,
    /// Of operations on a dense matrix, which is drawn: its rows.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub rows: Option<u32>,
    /// Of operations on a dense matrix: its columns.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub cols: Option<u32>,
    /// Of `spmm`: columns of B. Of `nhot`: columns of the table. Of `topn`: how many are taken of a row.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub n: Option<u32>,
    /// Of `sddmm`: columns of A and B.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub k: Option<u32>,
    /// Of `attention`: columns of Q, K and V in a head.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub d: Option<u32>,
    /// Of `attention` and `sparse-softmax`: heads, which share the pattern.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub heads: u32,
    /// Where and how.
    #[command(flatten)]
    pub measure: Measure,
}

/// What a suite is made for.
#[derive(Args, Clone, Debug)]
pub struct SetupOptions {
    /// `v100`, `a100`, `h200`, or `auto`: sizes for this GPU; on the simulator the machine whose model is summed up.
    #[arg(long, default_value = "auto")]
    pub profile: String,
    /// Real matrices for suite `dlmc`: a folder with `dlmc`, as a folder or as .tar.xz. Else the folder that LACUNA_DATA
    /// names, or `data` beside this program; without any, matrices are drawn with the same statistics.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Runs the suite's cases whose names contain this.
    #[arg(long, value_name = "TEXT")]
    pub case: Option<String>,
    /// Runs at most this many of the suite's cases, spread over it: the same ones each time.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
}

/// `sweep`.
#[derive(Args, Debug)]
pub struct SweepOptions {
    /// The suite; `--suite help` lists them.
    #[arg(long)]
    pub suite: String,
    /// What the suite is made for.
    #[command(flatten)]
    pub setup: SetupOptions,
    /// Where and how.
    #[command(flatten)]
    pub measure: Measure,
    /// Also writes the records to this file, as JSON lines.
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// Operations of the SC 2020 paper's Table II.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Ablated {
    /// SpMM.
    Spmm,
    /// SDDMM.
    Sddmm,
}

/// `ablation`.
#[derive(Args, Debug)]
pub struct AblationOptions {
    /// The operation whose kernels are measured.
    #[arg(default_value = "spmm")]
    pub op: Ablated,
    /// What the matrices are made for.
    #[command(flatten)]
    pub setup: SetupOptions,
    /// Where and how.
    #[command(flatten)]
    pub measure: Measure,
}

/// `oracle`.
#[derive(Args, Debug)]
pub struct OracleOptions {
    /// Files of records, JSON lines.
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    pub records: Vec<PathBuf>,
    /// The machine whose model counts, in records of the simulator.
    #[arg(long, default_value = "h200")]
    pub profile: String,
}

/// `transpose`.
#[derive(Args, Debug)]
pub struct TransposeOptions {
    /// The matrix: `.smtx` (values are drawn) or `.mtx`. Without one it is drawn.
    #[arg(long)]
    pub matrix: Option<PathBuf>,
    /// Rows of a drawn matrix.
    #[arg(long, default_value_t = 8192, conflicts_with = "matrix")]
    pub rows: u32,
    /// Columns of a drawn matrix.
    #[arg(long, default_value_t = 2048, conflicts_with = "matrix")]
    pub cols: u32,
    /// The part of a drawn matrix that is zero.
    #[arg(long, default_value_t = 0.9, conflicts_with = "matrix")]
    pub sparsity: f64,
    /// `cuda:INDEX`, `sim`, or `auto`: the first GPU, or else the simulator.
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Prints a JSON line instead of text.
    #[arg(long)]
    pub json: bool,
    /// The seed of drawn patterns and values.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Times each part this often; the median, minimum and maximum are reported.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub samples: u32,
}

/// `spdnn`.
#[derive(Args, Debug)]
pub struct SpdnnOptions {
    /// Neurons a layer: a power of two from 32 on. The challenge has 1024, 4096, 16384 and 65536.
    #[arg(long, default_value_t = 1024)]
    pub neurons: usize,
    /// Layers. The challenge has 120, 480 and 1920.
    #[arg(long, default_value_t = 120)]
    pub layers: usize,
    /// Images: the first of MNIST's, or drawn ones where there is no MNIST. On the simulator 96 if nothing is said, else 60,000.
    #[arg(long)]
    pub images: Option<usize>,
    /// The kernel of all layers: `auto`, `baseline`, `staged`, `tiles`, `mma`, `fused`, or outputs of a group and tiles of a warp, as in `16x4`.
    #[arg(long, default_value = "auto")]
    pub algorithm: String,
    /// Also measures the paper's two kernels.
    #[arg(long)]
    pub compare_baseline: bool,
    /// Also measures every kernel of groups.
    #[arg(long)]
    pub all_algorithms: bool,
    /// Keeps images that have become all zero in all layers.
    #[arg(long)]
    pub no_prune: bool,
    /// `on`: makes the network smaller before it is packed: equal neurons become one, constant and unread ones are left out.
    #[arg(long, value_enum, default_value_t = Switch::Off)]
    pub passes: Switch,
    /// Sends and keeps the weights as `f16`, which those of the challenge are.
    #[arg(long)]
    pub f16_weights: bool,
    /// GPUs that share the images, from the first on; on the simulator, simulators.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub gpus: u32,
    /// Gigabytes (10^9 bytes) of each GPU's memory at most: weights are sent while layers run, images go through in parts.
    #[arg(long, value_name = "GB")]
    pub memory_limit: Option<f64>,
    /// How many images the reference in f64 infers beside, spread over all; 0 for none.
    #[arg(long, default_value_t = 2000)]
    pub verify: usize,
    /// A folder with `mnist` and `spdnn`. Else the folder that LACUNA_DATA names, or `data` beside this program.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// A folder where images are kept once they are made.
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// `cuda:INDEX`, `cuda`, `sim`, or `auto`: a GPU, or else the simulator. `cuda` and `auto` give each rank on a host a GPU of its
    /// own, as far as there are.
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Times a run this often; the median, minimum and maximum are reported.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub samples: u32,
    /// Also prints the time of each layer.
    #[arg(long, conflicts_with_all = ["gpus", "memory_limit"])]
    pub profile: bool,
    /// Also appends the records to this file, as JSON lines.
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// `stats`.
#[derive(Args, Debug)]
pub struct StatsOptions {
    /// Matrices, or folders that are searched for `.smtx` and `.mtx`.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Prints JSON lines instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// `compare`.
#[derive(Args, Debug)]
pub struct CompareOptions {
    /// The records to compare with.
    pub base: PathBuf,
    /// The records to judge.
    pub new: PathBuf,
    /// A case slower than the base by more than this fraction is a failure.
    #[arg(long, default_value_t = 0.1)]
    pub tolerance: f64,
}

/// `plot`.
#[derive(Args, Debug)]
pub struct PlotOptions {
    /// The records, JSON lines.
    pub records: PathBuf,
    /// The picture to write.
    #[arg(long)]
    pub out: PathBuf,
}

/// `fit`.
#[derive(Args, Debug)]
pub struct FitOptions {
    /// Times of all kernels, of one GPU: records of `sweep --all-algorithms`, of SpMM or of SDDMM, or the form of
    /// benches/records/fit/hopper-spmm.jsonl; or those of `conv --all-algorithms --all-splits`.
    #[arg(long, required = true, num_args = 1..)]
    pub records: Vec<PathBuf>,
    /// Records of SDDMM or of convolutions that the fit must not see, and that are scored. Of SpMM and SDDMM a third of all problems is held
    /// out, too.
    #[arg(long, num_args = 1..)]
    pub held_out: Vec<PathBuf>,
    /// Records of the same convolutions with all kernels, however slow: their times tell costs where `--records` leave a kernel out.
    #[arg(long, num_args = 1..)]
    pub times: Vec<PathBuf>,
    /// Writes the problems there in the compact form; of SDDMM the records of what is at most 1.6 times as slow as the fastest.
    #[arg(long)]
    pub compact: Option<PathBuf>,
    /// Writes the fitted model there.
    #[arg(long, conflicts_with = "check")]
    pub out: Option<PathBuf>,
    /// Fits nothing; fails where a small change of one of the library's constants would choose much better.
    #[arg(long)]
    pub check: bool,
}

/// `tables`.
#[derive(Args, Debug)]
pub struct TablesOptions {
    /// Writes nothing, and fails where a table differs from what the records give.
    #[arg(long)]
    pub check: bool,
    /// The repository.
    #[arg(long, default_value = ".")]
    pub root: PathBuf,
}
