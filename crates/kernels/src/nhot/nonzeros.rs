//! The nonzeros of bags: how a lane loads their indices and weights.
use lacuna_gpu::{GlobalPtr, Gpu};

use super::index::TableIndex;

/// Where the nonzeros of all bags are, and what they weigh. A pointer of address 0 stands for what there is not.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Nonzeros<I> {
    /// Where each bag starts, and the end of the last: one more than bags.
    pub offsets: GlobalPtr<u32>,
    /// The row of the table for each nonzero; below the table's rows.
    pub indices: GlobalPtr<I>,
    /// Weights; without, each is 1.
    pub weights: GlobalPtr<f32>,
    /// Where in the weights each nonzero's is; without, they stand in the nonzeros' order.
    pub places: GlobalPtr<u32>,
    /// A factor for each row of the table, which multiplies weights; without, it is 1.
    pub scales: GlobalPtr<f32>,
    /// Nonzeros of this index are left out; [`TableIndex::NONE`] for none.
    pub padding: I,
}

/// A nonzero, or none.
#[derive(Clone, Copy)]
pub(super) struct Nonzero<I> {
    /// [`TableIndex::NONE`] where there is none.
    pub(super) index: I,
    /// 0 where there is none.
    pub(super) weight: f32,
}

impl<I: TableIndex> Nonzeros<I> {
    /// Start and end of a bag.
    ///
    /// # Safety
    /// There is such a bag.
    #[inline(always)]
    pub(super) unsafe fn range<G: Gpu>(&self, gpu: G, bag: u32) -> (u32, u32) {
        let offset = self.offsets.add(bag as usize);
        // SAFETY: as promised by the caller.
        let ([start], [end]) = unsafe { (gpu.load_readonly(offset), gpu.load_readonly(offset.add(1))) };
        (start, end)
    }

    /// The nonzero at `at`, none from `end` on, nor of the padding index.
    ///
    /// # Safety
    /// There are as many as `end`.
    #[inline(always)]
    pub(super) unsafe fn load<G: Gpu>(&self, gpu: G, at: u32, end: u32) -> Nonzero<I> {
        let mut nonzero = Nonzero { index: I::NONE, weight: 0.0 };
        if at < end {
            // SAFETY: the nonzero is there.
            unsafe {
                let [index] = gpu.load_readonly(self.indices.add(at as usize));
                if index != self.padding {
                    nonzero = Nonzero { index, weight: self.weight(gpu, at, index) };
                }
            }
        }
        nonzero
    }

    /// # Safety
    /// There is this nonzero, with this index.
    #[inline(always)]
    unsafe fn weight<G: Gpu>(&self, gpu: G, at: u32, index: I) -> f32 {
        let mut weight = 1.0;
        // SAFETY: there is a place for each nonzero, a weight for each place, and a scale for each row.
        unsafe {
            if self.weights.address() != 0 {
                let mut place = at;
                if self.places.address() != 0 {
                    [place] = gpu.load_readonly(self.places.add(at as usize));
                }
                [weight] = gpu.load_readonly(self.weights.add(place as usize));
            }
            if self.scales.address() != 0 {
                let [scale] = gpu.load_readonly(self.scales.add(index.into() as usize));
                weight *= scale;
            }
        }
        weight
    }
}
