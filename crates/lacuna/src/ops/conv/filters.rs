//! Filters as the kernels read them.
use lacuna_gpu::GlobalPtr;

use crate::{Buffer, Value};

/// How filters are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// So many filters a lane.
    Lanes(u32),
    /// As they came.
    AsGiven,
    /// With their channels last.
    ChannelsLast,
    /// For tensor cores, in groups of so many eights.
    Mma(u32),
    /// The same in panels.
    Panels(u32),
    /// The same of one tap, in the order of lanes.
    Pointwise(u32),
    /// The same of up to four channels.
    FewChannels(u32),
}

/// Filters on a device, in the order in which the kernel of a plan reads them: what [`Conv::pack`](super::Conv::pack) makes.
#[derive(Debug)]
pub struct Filters<T: Value = f32> {
    /// Those that kernels by lanes read; of the others the filters as they came: for tensor cores those are for results that are made again.
    pub(super) values: Buffer<T>,
    /// Those that tensor cores read.
    pub(super) words: Option<Buffer<u32>>,
    /// Filters, channels and taps of a channel.
    pub(super) sizes: [usize; 3],
    pub(super) packing: Packing,
}

impl<T: Value> Filters<T> {
    /// Bytes on the device: those of the filters, and of zeros up to whole groups of them; for tensor cores two parts of each, and the
    /// filters as they came.
    pub fn bytes(&self) -> usize {
        self.values.len() * size_of::<T>()
            + self.words.as_ref().map_or(0, |words| words.len() * size_of::<u32>())
    }

    /// Where those are that tensor cores read.
    pub(super) fn words(&self) -> GlobalPtr<u32> {
        self.words.as_ref().map_or(GlobalPtr::from_address(0), |words| words.as_slice().pointer())
    }
}
