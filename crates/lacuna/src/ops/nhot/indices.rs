//! Indices that are on the device, and known to be rows of a table.
use crate::Slice;

/// Indices on a device, each known to be below a limit: what wrote them can write no other. So they are looked up without a check
/// on the host, and without waiting for it. Beams of a search have them:
/// [`BeamState::token_indices`](crate::topn::BeamState::token_indices) and
/// [`BeamState::parent_indices`](crate::topn::BeamState::parent_indices).
#[derive(Clone, Copy, Debug)]
pub struct DeviceIndices<'b> {
    indices: Slice<'b, u32>,
    below: usize,
}

impl<'b> DeviceIndices<'b> {
    /// These indices, of which nothing ever writes one that is not below `below`.
    pub(crate) fn new(indices: Slice<'b, u32>, below: usize) -> Self {
        Self { indices, below }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// What all of them are below.
    pub fn below(&self) -> usize {
        self.below
    }

    /// The indices.
    pub fn as_slice(&self) -> Slice<'b, u32> {
        self.indices
    }
}
