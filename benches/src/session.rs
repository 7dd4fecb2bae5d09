//! What one call of the program measures with.
use anyhow::Result;
use clap::Args;
use lacuna::{Choice, Device};
use lacuna_peers::Peers;
use lacuna_vendor::Search;

use crate::cold::Flush;
use crate::machine;
use crate::peers::PeerSession;
use crate::types::{Dtype, Index, Precision, Reduce, Types};

/// Where and how a measurement runs.
#[derive(Args, Clone, Debug)]
pub struct Measure {
    /// `cuda:INDEX`, `sim`, or `auto`: the first GPU, or else the simulator.
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// The type of the values.
    #[arg(long, default_value = "f32")]
    pub dtype: Dtype,
    /// The type of the column indices.
    #[arg(long, default_value = "u32")]
    pub index: Index,
    /// How exactly f32 is multiplied.
    #[arg(long, default_value = "single")]
    pub precision: Precision,
    /// Of SpMM: A is prepacked, so that its values stay as they are (`CsrMatrix::prepacked`). Packing is not timed.
    #[arg(long, alias = "packed")]
    pub prepacked: bool,
    /// Of SpMM: what becomes of a row's products. Peers add them up, whatever it is.
    #[arg(long, default_value = "sum")]
    pub reduce: Reduce,
    /// Of SpMM: rows with more nonzeros are cut into pieces of about so many, by kernels that can; the library's choice if none.
    #[arg(long, value_name = "NONZEROS", value_parser = clap::value_parser!(u64).range(1..))]
    pub longest_piece: Option<u64>,
    /// With cold caches: L2 is flushed before each repetition, which is not timed; ours and peers alike.
    #[arg(long)]
    pub cold: bool,
    /// Measures cuSPARSE and cuBLAS too, where they are installed.
    #[arg(long)]
    pub peers: bool,
    /// Prints JSON lines instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The seed of generated patterns and values.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Measures every legal kernel, not only the library's choice.
    #[arg(long)]
    pub all_algorithms: bool,
    /// Times each kernel this often; the median, minimum and maximum are reported.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub samples: u32,
}

/// A device, the vendor's libraries on it, and how to measure.
#[derive(Debug)]
pub struct Session {
    // Dropped before the device: the libraries' handles live in its context.
    pub(crate) peers: Option<PeerSession>,
    /// The device.
    pub device: Device,
    /// The types of values and indices.
    pub types: Types,
    /// Samples of each timing.
    pub samples: u32,
    /// What makes caches cold before each repetition, if that is wanted.
    pub(crate) cold: Option<Flush>,
    /// Whether A of SpMM is prepacked.
    pub prepacked: bool,
    /// What becomes of a row's products in SpMM.
    pub reduce: Reduce,
    /// What rows are cut to in SpMM, if that is said.
    pub longest_piece: Option<usize>,
    /// Whether to measure every legal kernel.
    pub all_algorithms: bool,
}

/// The algorithms of the kernels that are legal, other than that of the chosen one.
pub(crate) fn others<A: Copy + PartialEq, T>(chosen: &Choice<A, T>, legal: &[Choice<A, T>]) -> Vec<A> {
    legal.iter().map(|choice| choice.algorithm).filter(|&algorithm| algorithm != chosen.algorithm).collect()
}

impl Session {
    /// A plan by the library's choice; and after it, where every legal kernel is wanted, plans by the algorithms that `others`
    /// gives.
    pub(crate) fn plans<P, A: Default>(
        &self,
        plan: impl Fn(A) -> lacuna::Result<P>,
        others: impl FnOnce(&P) -> Vec<A>,
    ) -> Result<Vec<P>> {
        let chosen = plan(A::default())?;
        let others = if self.all_algorithms { others(&chosen) } else { Vec::new() };
        let others = others.into_iter().map(plan).collect::<lacuna::Result<Vec<P>>>()?;
        Ok(std::iter::once(chosen).chain(others).collect())
    }

    /// Opens the device, and loads the vendor's libraries if they are wanted; tells which are not there.
    ///
    /// # Errors
    /// A device that is not there.
    pub fn open(measure: &Measure) -> Result<Self> {
        let Measure { dtype, index, precision, .. } = *measure;
        let types = Types { dtype, index, precision };
        let device = machine::device(&measure.device)?;
        let cold = measure.cold.then(|| Flush::new(&device)).transpose()?;
        let peers = measure.peers.then(|| Peers::load(&Search::from_env()));
        let missing =
            peers.iter().flat_map(|peers| [peers.cusparse.as_ref().err(), peers.cublas.as_ref().err()]);
        for missing in missing.flatten() {
            eprintln!("lacuna-bench: {missing}");
        }
        Ok(Self {
            peers: peers.map(PeerSession::new),
            device,
            types,
            samples: measure.samples,
            cold,
            prepacked: measure.prepacked,
            reduce: measure.reduce,
            longest_piece: measure.longest_piece.map(|length| usize::try_from(length).unwrap_or(usize::MAX)),
            all_algorithms: measure.all_algorithms,
        })
    }
}
