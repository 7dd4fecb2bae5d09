//! What one call of the program measures with.
use anyhow::Result;
use lacuna::Device;
use lacuna_peers::{Peers, Search};

use crate::cli::Measure;
use crate::machine;
use crate::peers::PeerSession;
use crate::types::Types;

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
    /// Whether A of SpMM is packed.
    pub packed: bool,
    /// Whether to measure every legal kernel.
    pub all_algorithms: bool,
}

impl Session {
    /// Opens the device, and loads the vendor's libraries if they are wanted; tells which are not there.
    ///
    /// # Errors
    /// A device that is not there.
    pub fn open(measure: &Measure) -> Result<Self> {
        let Measure { dtype, index, precision, .. } = *measure;
        let types = Types { dtype, index, precision };
        let device = machine::device(&measure.device)?;
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
            packed: measure.packed,
            all_algorithms: measure.all_algorithms,
        })
    }
}
