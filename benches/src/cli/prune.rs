//! The command line of `prune`.
use std::path::PathBuf;

use clap::Args;

/// `prune`.
#[derive(Args, Debug)]
pub struct PruneOptions {
    /// The weights, a safetensors file.
    #[arg(value_name = "IN.safetensors")]
    pub input: PathBuf,
    /// The file to write: all that is in the first, with pruned tensors, in the same types (f64 becomes f32).
    #[arg(value_name = "OUT.safetensors")]
    pub output: PathBuf,
    /// The part of the elements that become zero, from 0 to 1.
    #[arg(long)]
    pub sparsity: f64,
    /// Prunes tensors together, so that each comes to a sparsity of its own; else each is pruned to this sparsity.
    #[arg(long)]
    pub global: bool,
    /// Prunes only tensors whose names fit one of these: `conv` fits names with `conv`, `layer1*weight` those with `layer1` and, after
    /// it, `weight`. Else all of two dimensions or more; others are never pruned.
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub only: Vec<String>,
    /// Writes pruned tensors as sparse ones, in CSR (docs/models-files.md); else they stay as they were.
    #[arg(long)]
    pub csr: bool,
    /// Prints JSON lines instead of a table.
    #[arg(long)]
    pub json: bool,
}
