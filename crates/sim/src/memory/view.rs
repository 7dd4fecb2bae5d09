//! Buffers as a launch sees them.
use std::sync::Arc;

use crate::execution::launch::Launch;
use crate::memory::allocation::{Allocation, SLOT_SHIFT};
use crate::order::marks::Marks;

/// A buffer as a launch sees it.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) allocation: Arc<Allocation>,
    pub(crate) marks: Marks,
}

/// The buffers that a worker met last, by the low bits of their slot.
#[derive(Default)]
pub(crate) struct RecentViews<'l>([Option<(u64, &'l View)>; 8]);

impl<'l> RecentViews<'l> {
    /// The buffer that owns the slot of an address.
    #[inline]
    pub(crate) fn at(&mut self, launch: &'l Launch<'l>, address: u64) -> Option<&'l View> {
        let slot = address >> SLOT_SHIFT;
        let entry = &mut self.0[slot as usize % 8];
        match *entry {
            Some((known, view)) if known == slot => Some(view),
            _ => {
                let view = launch.view(address)?;
                *entry = Some((slot, view));
                Some(view)
            }
        }
    }
}
