//! The options of a decoder.
use std::path::PathBuf;

use clap::Args;

use super::maps::part;
use crate::types::Precision;

/// `decoder`. Several sizes with commas between them are measured each with each.
#[derive(Args, Debug)]
pub struct DecoderOptions {
    /// Words: from the 10,240 of the ACL 2019 paper to the vocabularies of today's models.
    #[arg(long, value_delimiter = ',', default_value = "10240,32000,50257,128000,151936",
        value_parser = clap::value_parser!(u32).range(3..=1 << 24))]
    pub vocabulary: Vec<u32>,
    /// Features of an embedding and of a state.
    #[arg(long, value_delimiter = ',', default_value = "512", value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub hidden: Vec<u32>,
    /// Features inside the feed-forward block, for each feature outside; 0 leaves the block out.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=64))]
    pub inner: u32,
    /// Hypotheses of a sentence.
    #[arg(long, value_delimiter = ',', default_value = "4", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub beams: Vec<u32>,
    /// Sentences.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64", value_parser = clap::value_parser!(u32).range(1..=1 << 12))]
    pub batch: Vec<u32>,
    /// The part of the weights of layers, the embedding left out, that is pruned, the smallest of each: 0 to 1.
    #[arg(long, default_value_t = 0.0, value_parser = part)]
    pub sparsity: f64,
    /// How exactly `f32` is multiplied.
    #[arg(long, value_enum, default_value_t)]
    pub precision: Precision,
    /// Checks each part in its whole size, and not cut: the host takes up to minutes for it.
    #[arg(long)]
    pub check_whole: bool,
    /// Prints JSON lines instead of text.
    #[arg(long)]
    pub json: bool,
    /// `cuda:INDEX`, `sim`, or `auto`: the first GPU, or else the simulator, where decoders are cut.
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// The seed of weights and contexts.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Times each step this often; the median, minimum and maximum are reported.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub samples: u32,
    /// Also appends the records to this file, as JSON lines.
    #[arg(long)]
    pub out: Option<PathBuf>,
}
