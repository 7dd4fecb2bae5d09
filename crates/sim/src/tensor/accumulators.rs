//! The accumulators of a warp, hidden while products of its warpgroup are being added to them.
//!
//! They stay here, and the thread has [`POISON`] in their place until a wait gives them back.
use crate::execution::context::Context;
use crate::report::finding::FindingKind;
use crate::report::site::SiteId;
use crate::tensor::warpgroup::WarpgroupCall;

/// What a thread sees in place of sums to which products are being added: a NaN that no operation gives.
pub(crate) const POISON: f32 = f32::from_bits(0x7fe5_a5a5);

#[derive(Debug, Default)]
pub(crate) struct Accumulators {
    /// The warp's 16 rows of sums, one after the other.
    pub(crate) sums: Vec<f32>,
    /// Whether products have been added that the threads have not got yet.
    hidden: bool,
    /// Whether the last wait gives the sums back.
    given: bool,
}

/// Row and column, among those of its warp, of a lane's sum `index`.
const fn position(lane: usize, index: usize) -> (usize, usize) {
    (lane / 4 + index / 2 % 2 * 8, index / 4 * 8 + lane % 4 * 2 + index % 2)
}

impl Accumulators {
    /// Takes the sums that a product is the first to be added to; others must be those that the products in flight hide.
    pub(crate) fn take(
        &mut self,
        context: &mut Context<'_>,
        (thread, site): (u32, SiteId),
        call: WarpgroupCall,
        sums: &[f32],
    ) {
        self.given = false;
        let (lane, columns) = (thread as usize % 32, 2 * sums.len());
        if !self.hidden {
            if let WarpgroupCall::Multiply(_) = call {
                self.sums.resize(16 * columns, 0.0);
                for (index, &sum) in sums.iter().enumerate() {
                    let (row, column) = position(lane, index);
                    self.sums[row * columns + column] = sum;
                }
            }
        } else if !sums.is_empty() {
            let is_poison = |sum: &f32| sum.to_bits() == POISON.to_bits();
            if self.sums.len() != 16 * columns || !sums.iter().all(is_poison) {
                let detail =
                    format!("{} with sums that are not those of the products in flight", call.name());
                context.report(FindingKind::SumsInFlight, site, thread, None, None, detail);
            }
        }
    }

    /// A product starts.
    pub(crate) fn hide(&mut self) {
        self.hidden = true;
    }

    /// A wait ends; `is_last` says whether it was for all products.
    pub(crate) fn wait(&mut self, is_last: bool) {
        self.given = self.hidden && is_last;
        self.hidden &= !self.given;
    }

    /// Gives a thread its sums back, if its last wait was for all products.
    pub(crate) fn give(&self, thread: u32, sums: &mut [f32]) {
        let (lane, columns) = (thread as usize % 32, 2 * sums.len());
        if self.given && self.sums.len() == 16 * columns {
            for (index, sum) in sums.iter_mut().enumerate() {
                let (row, column) = position(lane, index);
                *sum = self.sums[row * columns + column];
            }
        }
    }
}
