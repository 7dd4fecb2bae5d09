//! Filters as the kernels read them.
use crate::{Buffer, Value};

/// Filters on a device, in the order in which the kernel of a plan reads them: what [`Conv::pack`](super::Conv::pack) makes.
#[derive(Debug)]
pub struct Filters<T: Value = f32> {
    pub(super) packed: Buffer<T>,
    /// Filters, channels and taps of a channel.
    pub(super) sizes: [usize; 3],
    /// Filters of a lane.
    pub(super) of_lane: u32,
}

impl<T: Value> Filters<T> {
    /// Bytes on the device: those of the filters, and of zeros up to whole groups of them.
    pub fn bytes(&self) -> usize {
        self.packed.len() * size_of::<T>()
    }
}
