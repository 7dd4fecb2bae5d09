//! How a network fits into a device's memory.
use lacuna_kernels::spdnn::TILE_ROWS;

use super::super::weights::{slots_bytes, words};
use super::super::workspace::widths;
use super::super::{Features, OPERATION, PackedNetwork};
use crate::{Error, Result};

/// Bytes of a part of the weights that is sent while layers run: enough for the full rate of the link.
const PART_BYTES: usize = 4 << 20;
/// Weights stay on the device if they take at most this part of its memory.
const RESIDENT_PART: usize = 8;

/// How a network runs on a device: where its weights are, and how many samples go through it at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// Bytes of the parts in which weights are sent while layers run; none where they are all on the device.
    pub part_bytes: Option<usize>,
    /// Samples at once: a multiple of 32, or all.
    pub rows: usize,
    /// Bytes of the device's memory that this takes.
    pub bytes: usize,
}

impl PackedNetwork {
    /// How the network does these samples with at most `limit` bytes of a device's memory: weights and all samples are there, if
    /// they fit; else weights are sent while layers run, unless they are few, and samples go through in parts of about the same
    /// size, as few as can be.
    ///
    /// # Errors
    /// [`Error::Parameter`] where 32 samples take more.
    pub fn fit(&self, features: &Features, limit: usize) -> Result<Fit> {
        let tile = TILE_ROWS as usize;
        let (arrays, layers) = (&self.arrays[..], &*self.layers);
        let resident = 4 * words(arrays);
        let streamed = slots_bytes(arrays, PART_BYTES);
        let of_tile =
            tile * 4 * (widths(layers).iter().sum::<usize>() + 3) + features.device_bytes(tile, layers.tiled);
        let tiles = features.rows().div_ceil(tile).max(1);
        let all = tiles.saturating_mul(of_tile).saturating_add(resident);
        let (part_bytes, weights) = if all <= limit || resident <= (limit / RESIDENT_PART).max(streamed) {
            (None, resident)
        } else {
            (Some(PART_BYTES), streamed)
        };
        let least = weights.saturating_add(of_tile);
        let expected = || format!("at least {least} bytes, for {tile} samples");
        Error::expect(limit >= least, OPERATION, "the limit of memory", expected, limit)?;
        let parts = tiles.div_ceil((limit - weights) / of_tile);
        let tiles = tiles.div_ceil(parts);
        let rows = (tiles * tile).min(features.rows());
        Ok(Fit { part_bytes, rows, bytes: weights + tiles * of_tile })
    }
}
